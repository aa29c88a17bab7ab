"""The site of README and docs/: it is built without warnings, has every public name, and needs no network."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from store_tools import environment

import empo_bi

ROOT = Path(__file__).parents[1]
CHROMIUM = Path("/usr/bin/chromium")


def hook(name: str) -> ModuleType:
    """A module of docs/hooks, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_hook_{name}", ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; warnings are errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment(NO_MKDOCS_2_WARNING="1")
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages_of(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "files" not in path.relative_to(site).parts)


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = "".join(path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html"))
    shown = set(re.findall(r'id="empo_bi\.([\w.]+)"', reference))
    homes = {"analysis", "errors", "goals", "testing"}
    names = set(empo_bi.__all__) - {"__version__", *homes}
    for home in homes:
        names |= {f"{home}.{name}" for name in getattr(empo_bi, home).__all__}
    assert sorted(names - shown) == []
    assert "empo_bi.__version__" in reference


def test_every_page_of_docs_is_on_the_site_and_those_from_outside_are_too(site: Path) -> None:
    names = {path.relative_to(site).as_posix() for path in pages_of(site)}
    written = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    outside = {"index.html", "architecture.html", "contributing.html", "changelog.html", "worlds.html"}
    outside |= {"benchmarks_in_depth.html"}
    assert written | outside <= names


def test_no_page_asks_for_anything_from_the_network(site: Path) -> None:
    for page in pages_of(site):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]* src=\"?([^\"\s>]+)", text)
        loaded += re.findall(r"<link(?![^>]*rel=\"?canonical)[^>]* href=\"?([^\"\s>]+)", text)
        assert loaded
        assert [address for address in loaded if re.match(r"(\w+:)?//", address)] == [], page.name
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:\w+:)?//[^)\s]+", sheet.read_text(encoding="utf-8")) == [], sheet


def test_equations_of_pages_and_docstrings_are_mathml_and_nothing_is_left_unconverted(site: Path) -> None:
    assert (site / "theory.html").read_text(encoding="utf-8").count("<math") > 100
    assert (site / "reference" / "solving.html").read_text(encoding="utf-8").count("<math") >= 5
    for page in pages_of(site):
        text = re.sub(r"<code.*?</code>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)  # which may speak of them
        left = re.findall(
            r'class="arithmatex"|:math:|\.\. math::|:(?:func|class|meth|attr|mod):|\\(?:sum|frac|pi|mid)\b', text
        )
        assert left == [], page.name


def test_links_to_files_of_the_repository_lead_to_copies(site: Path) -> None:
    assert 'href="files/examples/freeing_sweep.yaml"' in (site / "batch.html").read_text(encoding="utf-8")
    copied = site / "files" / "examples" / "freeing_sweep.yaml"
    assert copied.read_bytes() == (ROOT / "examples" / "freeing_sweep.yaml").read_bytes()


def test_links_of_the_repository_become_links_of_the_site_except_in_code() -> None:
    links = hook("repository_pages").links_for_the_site
    text = "[a](../README.md#start) [b](memory.md) [c](https://x.org/README.md) [d](#here)\n```\n[e](../README.md)\n```\n"
    assert links(text, "docs/batch.md") == text.replace("(../README.md#start)", "(index.md#start)")
    assert links("[a](../worlds/README.md)", "benchmarks/README.md") == "[a](worlds.md)"
    assert (
        links("[a](../batch.md) [b](../../LICENSE)", "docs/reference/batches.md") == "[a](../batch.md) [b](../files/LICENSE)"
    )
    assert links("![p](docs/pictures/first_look.png)", "README.md") == "![p](pictures/first_look.png)"


def test_equations_of_docstrings_and_names_become_markdown() -> None:
    markdown = hook("docstrings").markdown
    assert markdown("As :math:`x_1`.") == "As $x_1$."
    assert markdown("See:\n\n.. math::\n    a = b\n    + c\n\nAfter.") == "See:\n\n\n$$\na = b\n+ c\n$$\n\nAfter."
    assert markdown(".. math:: a = b") == "\n$$\na = b\n$$"
    assert 'identifier="empo_bi.solve" optional><code>solve</code>' in markdown("as :func:`solve` does")


def test_entries_of_docstrings_show_types_defaults_and_descriptions_wherever_these_stand() -> None:
    entry = hook("docstrings").entry
    assert entry("n : int, optional", "How many.", {}, {"n": "None"}) == "**`n`** (int, optional) – How many."
    assert entry("n : int", "How many.", {}, {"n": "5"}) == "**`n`** (int, default `5`) – How many."
    assert entry("n : int", "", {}, {}) == "**`n`** (int)"
    assert entry("first : Solution, with both phases", "", {}, {}) == "**`first`** – Solution, with both phases"
    assert entry("x_N : (N,), what is shown", "of each", {}, {}) == "**`x_N`** – (N,), what is shown\nof each"
    assert entry("a, b : as there", "", {}, {"a": "1", "b": "2"}) == "**`a=1`**, **`b=2`** – as there"
    assert entry("state, level", "", {"level": "int"}, {}) == "**`state`**, **`level`** (`int`)"
    assert entry("(N, k) float64", "By state.", {}, {}) == "(N, k) float64\n\nBy state."


def test_a_section_ends_where_the_next_begins() -> None:
    markdown = hook("docstrings").markdown
    section = "Parameters\n----------\na : int\n    One,\n\n    in two parts.\nb : see :func:`solve`\n\n"
    shown = markdown(f"Do.\n\n{section}Notes\n-----\nc : no.")
    assert "-   **`a`** (int) – One,\n\n    in two parts.\n-   **`b`** – see <autoref" in shown
    assert shown.endswith("Notes\n-----\nc : no.")


def test_no_entry_of_the_reference_lacks_what_its_dash_announces_and_defaults_are_values(site: Path) -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html")}
    for name, text in pages.items():
        assert re.findall(r"–\s*(?:<div[^>]*>\s*</div>\s*)?</(?:li|p)>", text) == [], name
        assert re.findall(r"default <code>([A-Z]\w*[A-Z])</code>", text) == [], name
    assert "<strong><code>min_probability</code></strong> (float in [0, 1], default <code>1e-06</code>)" in pages["analysis"]


def test_primes_and_limits_of_equations_are_where_they_belong() -> None:
    mathml = hook("equations").mathml
    assert "<munder><mo>min</mo><mi>r</mi></munder>" in mathml(r"\min_r x", display=True)
    assert "<msup>" not in mathml("s'", display=False)
    assert "&#x02032;" in mathml("s'", display=False)


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Silent, directory=os.fspath(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(not CHROMIUM.exists(), reason="no browser at /usr/bin/chromium")
def test_pages_fit_a_desktop_and_a_phone_and_nothing_leaves_the_server(address: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    elsewhere: list[str] = []
    complaints: list[str] = []
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        for width in (1280, 390):
            page = browser.new_page(viewport={"width": width, "height": 800})
            page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else elsewhere.append(r.url))
            page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
            page.on("pageerror", lambda e: complaints.append(str(e)))
            for name in (
                "index",
                "tutorial",
                "theory",
                "computation",
                "glossary",
                "comparison",
                "reference/solving",
                "reference/errors",
            ):
                page.goto(f"{address}{name}.html")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than {width}"
                heights = page.evaluate("[...document.querySelectorAll('math')].map(e => e.getBoundingClientRect().height)")
                assert all(height > 5 for height in heights)
                assert page.evaluate("[...document.images].every(e => e.complete && e.naturalWidth > 0)")
            page.goto(f"{address}theory.html")
            wide = page.evaluate(
                "[...document.querySelectorAll('.equation')].filter(e => e.scrollWidth > e.clientWidth)"
                ".map(e => getComputedStyle(e).backgroundAttachment)"
            )
            assert bool(wide) == (width == 390)
            assert all("local" in how and "scroll" in how for how in wide)  # shadows say that there is more
            assert page.evaluate("document.querySelector('munder').getBoundingClientRect().height") > 20
            page.close()
        browser.close()
    assert elsewhere == []
    assert complaints == []
