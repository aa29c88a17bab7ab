"""Rules of the house that a machine can check: few parameters, and switches of the documented functions in one room."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import empo_bi

PACKAGE = Path(empo_bi.__file__).parent
MOST_PARAMETERS = 10
MOST_ANY = 420
COMPILED = {"kernel", "rule", "inlined", "allocating"}  # who take arrays one by one
DOCUMENTED = {"compute_human_policy_prior", "compute_robot_policy", "enumerate_dag", "plan"}
SWITCHES = {
    "use_disk_slicing", "disk_cache_dir", "use_float16", "use_compression", "archive_dir", "sliced_cache", "num_workers",
    "use_attainment_cache", "return_attainment_cache", "return_Vh", "return_values", "return_markov_chain",
    "progress_callback",
}  # fmt: skip


@functools.cache
def modules() -> list[tuple[str, ast.Module]]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return [(path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def parameters_of(function: ast.FunctionDef) -> list[str]:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def may_have_many(function: ast.FunctionDef) -> bool:
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    is_command = any(mark.startswith("click.command") for mark in marks)
    return is_command or not COMPILED.isdisjoint(marks) or function.name in DOCUMENTED


def test_functions_have_at_most_ten_parameters() -> None:
    found = [
        f"{name}:{function.lineno} {function.name} has {len(parameters_of(function))}"
        for name, tree in modules()
        for function in functions(tree)
        if len(parameters_of(function)) > MOST_PARAMETERS and not may_have_many(function)
    ]
    assert not found, f"{found}; put parameters that belong together into a frozen dataclass, as in solving/options.py"


def test_exceptions_are_needed() -> None:
    many = {
        function.name
        for _, tree in modules()
        for function in functions(tree)
        if len(parameters_of(function)) > MOST_PARAMETERS
    }
    assert many >= DOCUMENTED


def test_switches_of_the_documented_functions_are_known_in_one_room_only() -> None:
    """Neither as names nor in messages."""
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if "compat" not in path.parts}
    found = [
        f"{path.relative_to(PACKAGE)}: {switch}" for path, text in sources.items() for switch in SWITCHES if switch in text
    ]
    assert not found, f"{found}; translate them in empo_bi/compat"


def test_making_a_pipeline_does_no_work() -> None:
    """Dataclasses without a ``__post_init__``: their constructors assign, and that is all."""
    for name in ("pipeline", "run", "parameter_sets", "stored_results", "problem", "options"):
        tree = ast.parse((PACKAGE / "solving" / f"{name}.py").read_text(encoding="utf-8"))
        assert not {function.name for function in functions(tree)} & {"__init__", "__post_init__"}, name


def test_any_is_rare_in_annotations() -> None:
    """Version 0.1 had 1,073; half of that was the aim, and it may only become fewer."""
    n = sum(isinstance(node, ast.Name) and node.id == "Any" for _, tree in modules() for node in ast.walk(tree))
    assert n <= MOST_ANY, f"{n} times Any; name what it is, or use object for what is only passed on"
