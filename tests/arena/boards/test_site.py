"""A published tournament: its pages lead to each other, hold what they may, and do nothing."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from tests.support.browser import chromium
from tests.support.sample_store import write_store

HOSTILE = ("<script>window.__pwned=1</script>", "../../up", "a\"b'c&d", "![x](http://127.0.0.1:9/leak.png)")


@pytest.fixture(scope="module")
def site(played_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("published") / "site"
    done = CliRunner().invoke(app, ["publish", str(played_demo / "tournament.yaml"), str(out)])
    assert done.exit_code == 0, done.output
    assert "wrote 35 pages" in done.stderr
    return out


def links(page: Path) -> set[str]:
    return {unescape(link) for link in re.findall(r'href="([^"]*)"', page.read_text(encoding="utf-8"))}


def test_every_link_leads_to_a_page_or_to_a_part_of_one(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 1 + 1 + 26 + 7
    for page in pages:
        for link in links(page):
            path, _, part = link.partition("#")
            target = (page.parent / path) if path else page
            assert target.is_file(), f"{page}: {link}"
            assert site in target.resolve().parents
            assert not part or f'id="{part}"' in target.read_text(encoding="utf-8"), f"{page}: {link}"


def test_a_query_s_page_has_answers_documents_games_and_no_item_of_the_exam(site: Path, played_demo: Path) -> None:
    whole = "".join(page.read_text(encoding="utf-8") for page in site.rglob("*.html"))
    page = (site / "queries/1.html").read_text(encoding="utf-8")
    for part in ("Answers", "Documents", "Games", "fusion-bm25 against fusion-dense", "uses 0.571 of the question"):
        assert part in page
    assert str(played_demo) not in whole
    bank = (played_demo / "exam.csv").read_text(encoding="utf-8").splitlines()
    assert len(bank) > 70
    assert not [line for line in bank[1:] if line.split(",", 1)[1].strip(chr(34)) in whole]


def test_a_second_call_replaces_its_pages_drops_stale_ones_and_keeps_other_files(
    cli: Any, site: Path, played_demo: Path, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    shutil.copytree(site, out)
    shutil.copy(out / "agents/1.html", out / "agents/99.html")
    (out / "CNAME").write_text("example.org", encoding="utf-8")
    (out / "about.html").write_text("<p>mine</p>", encoding="utf-8")
    assert cli("publish", played_demo / "tournament.yaml", out).status == 0
    assert not (out / "agents/99.html").exists()
    assert (out / "CNAME").read_text(encoding="utf-8") == "example.org"
    assert (out / "about.html").read_text(encoding="utf-8") == "<p>mine</p>"
    (out / "index.html").write_text("<p>mine</p>", encoding="utf-8")
    refused = cli("publish", played_demo / "tournament.yaml", out)
    assert (refused.status, (out / "index.html").read_text(encoding="utf-8")) == (2, "<p>mine</p>")
    assert "index.html: a page that 'publish' did not write" in refused.err
    assert "name a folder" in cli("publish", played_demo / "tournament.yaml", out / "CNAME").err


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A plain file server; gives its address and what was asked of it."""
    asked: list[str] = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, _format: str, *args: Any) -> None:
            asked.append(str(args[0]))

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()


@pytest.mark.parametrize("width", [1280, 390])
def test_planted_names_and_texts_do_nothing_and_fit_the_window(cli: Any, tmp_path: Path, width: int) -> None:
    write_store(
        tmp_path / "s.db", name=HOSTILE[0], agents=HOSTILE, wording=lambda _kind, text: "\n".join((text, *HOSTILE))
    )
    assert cli("publish", tmp_path / "s.db", tmp_path / "site").status == 0
    assert {path.name for path in tmp_path.iterdir()} <= {"s.db", "s.db-shm", "s.db-wal", "site"}
    with served(tmp_path / "site") as (address, asked), chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900})
        heard: list[str] = []
        page.on("request", lambda one: heard.append(one.url))
        page.on("console", lambda message: pytest.fail(message.text))
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.goto(address)
        for pressed in (HOSTILE[1], "Queries", "q00: "):
            page.locator("a", has_text=pressed).first.click()
            page.wait_for_load_state()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate("typeof window.__pwned") == "undefined"
            assert page.locator("script, img, iframe, form").count() == 0
        assert page.locator("h2", has_text="Games").count() == 1
        assert all(url.startswith(address) for url in heard)
        assert len(asked) >= 5


def test_reference_answers_are_not_published(tmp_path: Path) -> None:
    path = write_store(tmp_path / "s.db", queries=2, criteria=False, reference="Sixty days, the key says.")
    done = CliRunner().invoke(app, ["publish", str(path), str(tmp_path / "site")])
    assert done.exit_code == 0, done.output
    assert "the key says" not in "".join(page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html"))
