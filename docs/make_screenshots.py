"""Pictures of pages and report, from the project's root: ``python -m docs.make_screenshots STORE OUT_DIR``.

Starts the server on a store, or on a YAML file as one who edits does, opens each page in the system's Chromium and
writes one PNG file per page, and one of the report, folded. Those of ``docs/exam.md`` and ``docs/nuggets.md``
show the examples there, after their commands: ``tournament.yaml docs/images --height 400 --pages bank``, and
``cats.yaml`` with ``nuggets assess``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page

from arena.config.schema import load_config
from tests.support.browser import chromium, say_name, served, settle
from ui.app import PAGES as MENU

PAGES = ("leaderboard", "compare", "checks", "vote", "report")
ADDRESSES = {
    view: f"{page.address}?view={view}" if len(page.views) > 1 else page.address for page in MENU for view in page.views
} | {"leaderboard": ""}
"""By the name of a page, or of a part of one."""
REPORT = "report"


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description="Write pictures of the web leaderboard's pages and of the report.")
    parser.add_argument("store", help="a store, or a YAML file that names one")
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--pages", nargs="+", default=PAGES, help="as their addresses name them, or the parts of them")
    parser.add_argument("--width", type=int, default=1280, help="of the window, in pixels")
    parser.add_argument("--height", type=int, default=900, help="least height; a longer page gets a higher picture")
    parser.add_argument("--dark", action="store_true", help="as a browser set to dark shows the pages")
    given = parser.parse_args()
    given.out_dir.mkdir(parents=True, exist_ok=True)
    config = Path(given.store) if given.store.endswith((".yaml", ".yml")) else None
    store = given.store if config is None else load_config(config).store
    with served(store, config) as address, chromium() as browser:
        page = browser.new_page(color_scheme="dark" if given.dark else "light", reduced_motion="reduce")
        say_name(page.context, address, "bob")
        for name in [name for name in given.pages if name != REPORT]:
            page.set_viewport_size({"width": given.width, "height": given.height})
            page.goto(f"{address}/{ADDRESSES[name]}")
            _fit(page, given.width, given.height)
            page.screenshot(path=given.out_dir / f"{name}.png")
        if REPORT in given.pages:
            page.set_viewport_size({"width": given.width, "height": given.height})
            with TemporaryDirectory() as folder:
                page.goto(_report(store, Path(folder)).as_uri())
                page.screenshot(path=given.out_dir / f"{REPORT}.png", full_page=True)


def _report(store: str, folder: Path) -> Path:
    out = folder / "report.html"
    call = "import sys; from arena.cli.main import main; sys.argv[0] = 'ragleague'; main()"
    subprocess.run([sys.executable, "-c", call, "report", store, "--out", str(out)], check=True)  # noqa: S603 - ours
    return out


def _fit(page: Page, width: int, least: int) -> None:
    """Make the window as high as the page: Streamlit scrolls a container inside, which a full-page picture cuts."""
    settle(page)
    page.wait_for_timeout(800)  # charts draw once more when their width is known
    height = page.evaluate("document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight")
    page.set_viewport_size({"width": width, "height": max(least, int(height) + 20)})
    page.wait_for_timeout(800)


if __name__ == "__main__":
    main()
