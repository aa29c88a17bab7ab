"""The README, the docs, the docstrings and the examples are true: all their code runs."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import empo_bi
from empo_bi.batch.spec import KEYS, read_spec
from empo_bi.world.codes import ACTION_SETS, CELL_CODES
from empo_bi.world.lint import KNOWN_KEYS

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "worlds/README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]
MODULES = [
    "empo_bi.worlds",
    "empo_bi.events",
    "empo_bi.testing",
    "empo_bi.testing.check",
    "empo_bi.world.as_model",
    "empo_bi.world.fields",
    "empo_bi.world.load",
    "empo_bi.world.key_layout",
    "empo_bi.world.bush.world",
    "empo_bi.results.shortest_paths",
    "empo_bi.world.pettingzoo",
    "empo_bi.solving.enumeration",
    "empo_bi.solving.solve",
    "empo_bi.compat.documented",
    "empo_bi.results.chain",
    "empo_bi.dag.dag",
    "empo_bi.world.goals",
    "empo_bi.analysis.to_xarray",
    "empo_bi.analysis.to_pandas",
    "empo_bi.memory.profiler",
    "empo_bi.runtime.byte_sizes",
    "empo_bi.planner.plan",
    "empo_bi.solving.opening",
    "empo_bi.report.report",
    "empo_bi.compat.archives",
    "empo_bi.batch.batch",
    "empo_bi.batch.spec",
    "empo_bi.batch.table",
]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))
SMALLER = {
    "freeing_sweep.py": ["--samples", "12", "--steps", "3", "5", "--workers", "1", "--plot", "drivers.png"],
    "choosing_parameters.py": ["--out", "."],
}


@pytest.mark.parametrize("page", PAGES)
def test_the_python_code_of_a_page_runs_from_top_to_bottom(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write to the present folder
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in blocks:
        if "import stormpy" in block:
            pytest.importorskip("stormpy", reason=f"the rest of {page} needs Storm; pip install 'empo-bi[peers]'")
        exec(compile(block, page, "exec"), namespace)
    assert bool(capsys.readouterr().out) == bool(blocks)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write a profile to the present folder
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_explains_itself(path: Path, tmp_path: Path) -> None:
    options = SMALLER.get(path.name, [])
    options += ["--out", str(tmp_path / "runs")] if options else []
    command = [sys.executable, str(path), *options]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout.strip()
    usage = subprocess.run([sys.executable, str(path), "--help"], capture_output=True, text=True, check=True)
    assert "usage" in usage.stdout


def test_the_first_example_finds_the_known_number_of_bodies_and_names_unknown_worlds() -> None:
    command = [sys.executable, str(ROOT / "examples" / "first_world.py")]
    assert "18,028 bodies" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    stopped = subprocess.run([*command, "--max-states", "500"], capture_output=True, text=True, check=False)
    assert "error: " in stopped.stderr
    assert "more than max_states=500" in stopped.stderr
    assert "conflicts/after_you" in subprocess.run([*command, "--list"], capture_output=True, text=True, check=True).stdout
    failed = subprocess.run([*command, "--world", "asymetric_freeing"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "Did you mean 'asymmetric_freeing'" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_the_page_on_world_files_names_every_key_code_and_action_set() -> None:
    page = (ROOT / "docs" / "world_files.md").read_text(encoding="utf-8")
    assert [key for key in KNOWN_KEYS if f"`{key}`" not in page] == []
    assert [name for name in ACTION_SETS if f"`{name}`" not in page] == []
    spelled = {code for code in CELL_CODES if f"`{code}`" in page}
    families = {code for code in CELL_CODES if f"`{code[0]}?`" in page}
    assert sorted(set(CELL_CODES) - spelled - families) == []


def test_the_batches_shown_in_the_docs_are_such_and_the_worked_example_is_the_one_that_is_shipped() -> None:
    page = (ROOT / "docs" / "batch.md").read_text(encoding="utf-8")
    first, worked = (read_spec(block) for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL))
    assert first.samples == 50
    shipped = read_spec(ROOT / "examples" / "freeing_sweep.yaml")
    assert worked == replace(shipped, out=worked.out, folder=worked.folder, metrics=worked.metrics)
    assert [key for key in KEYS if f"`{key}`" not in page] == []


def test_the_map_shown_in_the_tutorial_is_the_world_loaded_there() -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    shown = empo_bi.load_world("asymmetric_freeing").map_text().replace("\n", "\n    ")
    assert shown in tutorial


def test_the_readme_shows_what_its_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", readme, flags=re.DOTALL)
    exec(compile(block[0], "README.md", "exec"), {})
    assert capsys.readouterr().out == textwrap.dedent(block[1])


def test_the_readme_shows_a_picture_in_the_first_screen_and_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert any("docs/pictures/first_look.png" in line for line in lines[:12])
    assert len(lines) <= 140
    assert (ROOT / "docs" / "pictures" / "first_look.png").stat().st_size < 200_000


INLINE_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@pytest.fixture(scope="module")
def spoken_of() -> dict[str, Any]:
    """What the docs mean by names of variables."""
    world = empo_bi.load_world("asymmetric_freeing", max_steps=2)
    solution = empo_bi.solve(world, progress=False)
    return {
        "empo_bi": empo_bi, "world": world, "solution": solution, "dag": solution.dag, "chain": solution.markov_chain,
        "values": solution.values, "policy": solution.robot_policy, "prior": solution.prior, "goal": solution.goals[0][0],
        "generator": world.possible_goal_generator, "rollouts": solution.rollouts(2, seed=0),
        "report": solution.at(world.initial_state()), "events": empo_bi.events, "worlds": empo_bi.worlds,
    }  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_names_in_backticks_are_there_and_only_functions_have_parentheses(page: str, spoken_of: dict[str, Any]) -> None:
    """``world.all_profiles()`` was an array that the docs called."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for code in INLINE_CODE.findall(text):
        for name, attribute, call in re.findall(r"(?<![\w./])(\w+)\.([A-Za-z_]\w*)(\(?)", code):
            if name not in spoken_of or attribute in ("yaml", "zip", "html", "md"):
                continue
            is_module = name == "empo_bi" and importlib.util.find_spec(f"empo_bi.{attribute}") is not None
            assert is_module or hasattr(spoken_of[name], attribute), f"{page}: `{code}`: there is no {name}.{attribute}"
            if call:
                assert callable(getattr(spoken_of[name], attribute)), f"{page}: `{code}`: {name}.{attribute} is no function"


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("worlds/*.md"), *ROOT.glob("benchmarks/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_benchmark_of_worlds_runs_on_a_small_world() -> None:
    """Benchmarks are part of the default tests so that they do not rot; no time is asserted."""
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_worlds.py"), "--no-start", "--worlds", "asymmetric_freeing"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"asymmetric_freeing +3 +4 +31 .*x\n", run.stdout)


def test_the_benchmark_of_dags_runs_on_small_horizons() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_dag.py"), "--quick", "--profile"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"\n +engine .* [\d,]+ +[\d,]+ +\d+x\n", run.stdout)
    assert re.search(r"\n +6 +1,845 +592 +31,744 +memory .*\n +disk ", run.stdout)
    assert re.search(r"\n +2,597 +752 +37,888 .*wanted: below 1,500 MB", run.stdout)
    assert re.search(r"\n +zstd 5 .* B", run.stdout)


@pytest.mark.slow
def test_the_benchmark_of_workers_runs_on_small_worlds() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "memory_workers.py"), "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(
        r"Threads.*\n +1 +\d+ MB\n +2 +\d+ MB +-?[\d.]+ MB\n.*Processes.*\n +2 +\d+ MB +\d+ MB\n", run.stdout, re.S
    )


def test_the_benchmark_of_solving_runs_on_small_horizons() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_solve.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in ("Against the oracle", "Memory and disk", "Workers", "one pass", "Bandwidth"))


@pytest.mark.slow
def test_the_table_of_memory_runs_on_small_worlds() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "memory_table.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for part in ("DAGs: ", "Solutions: ", "Both together", "The obvious data structures"):
        assert part in done.stdout
    assert len(re.findall(r"\n +asymmetric_freeing +5 +1,253 .*x\n", done.stdout)) == 4


@pytest.mark.slow
def test_the_benchmark_of_batches_runs_on_few_settings() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_batch.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"batch, 1 worker .*x ", done.stdout)) == 2


def test_the_benchmark_of_the_planner_runs_on_small_horizons() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_plan.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\n +asymmetric_freeing +12 +592 .* 24,137 +0\.\d\d", done.stdout)
    assert re.search(r"within a factor 1.5: \d of 2; inside the range: \d of 2", done.stdout)
    assert re.search(r"\n +carousel +6 +1,147 +on disk .* MB +\d\.\d\d ", done.stdout)
    assert "memory within 25%" in done.stdout


def test_the_architecture_is_one_page_and_every_design_record_is_in_the_index() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= 110
    folder = ROOT / "docs" / "design"
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.glob("*.md") if f"]({path.name})" not in index) == ["index.md"]
