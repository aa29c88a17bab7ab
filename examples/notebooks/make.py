"""Make the notebooks from the scripts in the folder above, cell by cell, so that there is one source of both.

    python examples/notebooks/make.py           # write them
    python examples/notebooks/make.py --check   # or tell whether they are up to date

A cell tagged "script" is for scripts only: it saves the figures that a notebook shows by itself.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SCRIPTS = sorted(FOLDER.parent.glob("notebook_*.py"))


def path_of(script: Path) -> Path:
    """``notebook_1_first_steps.py`` becomes ``1_first_steps.ipynb``."""
    return FOLDER / script.with_suffix(".ipynb").name.removeprefix("notebook_")


def notebook_of(script: Path) -> str:
    """The notebook as text: no outputs, and ids of cells that do not change by chance."""
    import jupytext
    import nbformat

    notebook = jupytext.reads(script.read_text(encoding="utf-8"), fmt="py:percent")
    notebook.cells = [cell for cell in notebook.cells if "script" not in cell.metadata.get("tags", [])]
    for number, cell in enumerate(notebook.cells):
        cell["id"], cell["metadata"] = f"cell-{number}", {}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return nbformat.writes(notebook, version=4) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a notebook is not up to date")
    options = parser.parse_args()
    for script in SCRIPTS:
        path, text = path_of(script), notebook_of(script)
        if options.check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            sys.exit(f"{path} is not what {script.name} says; run {Path(__file__).name}")
        if not options.check:
            path.write_text(text, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
