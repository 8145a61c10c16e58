"""Every page in every state of a store, as one sheet for each state: ``python -m docs.make_state_pictures OUT_DIR``.

The demo, light, dark and as on a phone; a store without a tournament; one of whose judgments many failed; one whose run
was killed at the start. For eyes: what no test sees.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from msgspec import Struct
from PIL import Image
from playwright.sync_api import Browser

from arena.store import Store
from arena.store.runners import Runner
from arena.store.runs import Runs
from docs.make_screenshots import ADDRESSES
from tests.support.browser import chromium, served, settle
from tests.support.sample_store import write_store

_TALLEST: Final = 1400
"""Pixels of a page that are shown."""
_ACROSS: Final = 2560
"""Width of a sheet before it is made smaller."""
_SCALE: Final = 0.5
_COLOURS: Final = 224


class Sheet(Struct, frozen=True):
    """How one state is looked at."""

    name: str
    store: Path
    config: Path | None = None
    width: int = 1280
    scheme: Literal["light", "dark"] = "light"


def main() -> None:
    """Write the sheets."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, chromium() as browser:
        for sheet in sheets(Path(folder)):
            with served(sheet.store, sheet.config) as address:
                pictures = [picture(browser, sheet, f"{address}/{page}") for page in ADDRESSES.values()]
            put_together(pictures, sheet.width).save(out / f"{sheet.name}.png", optimize=True)


def sheets(folder: Path) -> list[Sheet]:
    """The states, their stores made."""
    call = "import sys; from arena.cli.main import main; sys.argv[0] = 'ragleague'; main()"
    demo = folder / "demo"
    command = [sys.executable, "-c", call, "demo", "--out", str(demo)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
    store, config = demo / "rag-handbook.db", demo / "tournament.yaml"
    Store.create(str(folder / "empty.db")).close()
    killed = write_store(folder / "killed.db", queries=3, unasked=36, criteria=False)
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with closing(Store.open(str(killed))) as opened:
        Runs(opened, "sample").begin(Runner(pid=process.pid))  # whose process is gone
    return [
        Sheet("demo", store, config),
        Sheet("demo-dark", store, config, scheme="dark"),
        Sheet("demo-phone", store, config, width=390),
        Sheet("empty", folder / "empty.db"),
        Sheet("failures", write_store(folder / "failures.db", failed=40)),
        Sheet("killed", killed),
    ]


def picture(browser: Browser, sheet: Sheet, address: str) -> Image.Image:
    """The upper part of a page."""
    page = browser.new_page(
        viewport={"width": sheet.width, "height": _TALLEST}, color_scheme=sheet.scheme, reduced_motion="reduce"
    )
    page.goto(address)
    settle(page)
    page.wait_for_timeout(800)  # charts draw once more when their width is known
    taken = page.screenshot()
    page.close()
    return Image.open(io.BytesIO(taken)).convert("RGB")


def put_together(pictures: Sequence[Image.Image], width: int) -> Image.Image:
    """The pictures in rows, smaller, in few colours."""
    columns = _ACROSS // width
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * width, rows * _TALLEST), "white")
    for place, own in enumerate(pictures):
        sheet.paste(own, (place % columns * width, place // columns * _TALLEST))
    size = int(sheet.width * _SCALE), int(sheet.height * _SCALE)
    return sheet.resize(size, Image.Resampling.LANCZOS).quantize(_COLOURS)


if __name__ == "__main__":
    main()
