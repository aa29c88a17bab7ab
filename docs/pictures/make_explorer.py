"""Make the pictures of the explorer that docs/explorer.md shows: ``python docs/pictures/make_explorer.py``.

It takes playwright (``pip install playwright``) and a Chromium that is installed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from empo_bi import Params, load_world, solve, write_report

HERE = Path(__file__).parent
# name, world, steps, width, height, colours, state, what cells are coloured by
SHOTS = [
    ("explorer_desktop", "asymmetric_freeing", 12, 1400, 1180, "light", 4, "reached"),
    ("explorer_dark", "one_key_two_rooms", 7, 1400, 900, "dark", 3, "none"),
    ("explorer_phone", "asymmetric_freeing", 12, 390, 844, "light", 4, "none"),
]


def shoot(browser: Any, folder: Path, name: str, world: str, steps: int, size: tuple[int, int], colours: str, step: int,
          overlay: str, full: bool) -> None:  # fmt: skip
    report = folder / f"{world}.html"
    if not report.exists():
        params = Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=50)
        with solve(load_world(world, max_steps=steps), params) as solution:
            print(write_report(solution, report))
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=colours)
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator("#slider").fill(str(step))
    page.select_option("#overlay", overlay)
    page.evaluate("document.activeElement.blur()")
    page.screenshot(path=HERE / f"{name}.png", full_page=full)
    page.close()
    _fewer_colours(HERE / f"{name}.png")


def _fewer_colours(path: Path) -> None:
    """Files become three times smaller, and nobody sees it."""
    from PIL import Image

    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path, f"{path.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="whole pages, for those who look for flaws")
    full = parser.parse_args().full
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as started, tempfile.TemporaryDirectory() as folder:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, world, steps, width, height, colours, step, overlay in SHOTS:
            shoot(browser, Path(folder), name, world, steps, (width, height), colours, step, overlay, full)
        browser.close()


if __name__ == "__main__":
    main()
