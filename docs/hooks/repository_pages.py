"""Pages of the repository that lie outside docs/ become pages of the site, and links lead there.

In the repository, pages link to each other and to files by relative paths (``../README.md``, ``../examples/sweep.yaml``).
The site has the same pages, by the names in ``PAGES``, and a copy of every file that some page links to, below ``files/``.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks_in_depth.md",
    "worlds/README.md": "worlds.md",
}
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#\s]+)(?P<after>[)#\s])")
FENCE = re.compile(r"(^```.*?^```[ ]*$)", flags=re.DOTALL | re.MULTILINE)


def page_of(source: str) -> str:
    """Where the repository's file ``source`` is on the site."""
    if source in PAGES:
        return PAGES[source]
    return source.removeprefix("docs/") if source.startswith("docs/") else f"files/{source}"


def source_of(page: str) -> str:
    """The file of the repository that a page of the site is made of."""
    return next((source for source, name in PAGES.items() if name == page), f"docs/{page}")


def _linked(source: str, target: str) -> str | None:
    """The repository's file that a link in ``source`` leads to; None for links that lead elsewhere, or nowhere."""
    if "://" in target or target.startswith("mailto:"):
        return None
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    return found if (ROOT / found).is_file() else None


def _outside_of_code(text: str, change: Any) -> str:
    return "".join(part if i % 2 else LINK.sub(change, part) for i, part in enumerate(FENCE.split(text)))


def links_for_the_site(text: str, source: str) -> str:
    """Markdown of the repository's file ``source``, with links as the site wants them."""
    folder = posixpath.dirname(page_of(source))

    def change(link: re.Match[str]) -> str:
        found = _linked(source, link["target"])
        if found is None:
            return link[0]
        return link["before"] + posixpath.relpath(page_of(found), folder or ".") + link["after"]

    return _outside_of_code(text, change)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages from outside docs/, and files that pages link to."""
    texts = {source_of(file.src_uri): file.content_string for file in files.documentation_pages()}
    for source, page in PAGES.items():
        texts[source] = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=texts[source]))
    wanted = {_linked(source, link["target"]) for source, text in texts.items() for link in LINK.finditer(text)}
    for found in sorted(path for path in wanted if path and page_of(path).startswith("files/")):
        files.append(File.generated(config, page_of(found), abs_src_path=str(ROOT / found)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    return links_for_the_site(markdown, source_of(page.file.src_uri))
