"""The report, whose figures are the leaderboard's, and published pages, which lead to each other and do nothing."""

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
from benchmarks import page_store
from tests.support.browser import chromium
from tests.support.sample_store import AGENTS, write_store
from tests.support.votes import cast_votes


@pytest.fixture
def write(cli: Any, tmp_path: Path) -> Any:
    """Write a report of a source; gives its text."""

    def run(source: object, *options: object, status: int = 0) -> str:
        ended = cli("report", source, "--out", tmp_path / "report.html", *options)
        assert ended.status == status, ended.err
        return (tmp_path / "report.html").read_text(encoding="utf-8")

    return run


@pytest.fixture(scope="module")
def demo_page(played_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of the demo: rating it takes longer than any test with it."""
    out = tmp_path_factory.mktemp("report") / "demo.html"
    done = CliRunner().invoke(app, ["report", str(played_demo / "tournament.yaml"), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out.read_text(encoding="utf-8")


def test_failures_and_what_is_left_are_counted_and_fail_the_check(write: Any, tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.db", failed=30, unasked=20, criteria=False)
    page = write(store, status=3)
    assert "Not enough verdicts to rate" in page
    assert checks(page)["Share of judgments made"] == "failed"
    assert "Leaderboard</caption>" not in page
    assert "Why judgments failed" in page
    assert page.count("Figures use what is there.") == 1, "the appendix does not repeat the memo"
    rated = write(store, "--below-coverage")
    assert all(f">{agent}<" in rated for agent in AGENTS)
    assert checks(rated)["Share of judgments made"] == "failed"
    assert "65%" in rated


def test_people_are_held_against_the_judge_and_correct_its_figures(write: Any, tmp_path: Path) -> None:
    people = {f"q{number:02}": {f"q{number:02}-common": 2, f"q{number:02}-d0": 0} for number in range(12)}
    store = write_store(tmp_path / "s.db", margin=0.5, qrels=people)
    cast_votes(store, AGENTS)
    page = write(store)
    assert "Bradley-Terry ratings corrected by people: strict, verdicts" in page
    kept = {name: status for name, status in checks(page).items() if name.startswith("Agreement of people")}
    assert set(kept) == {
        "Agreement of people with the judge strict on verdicts",
        "Agreement of people with the judge strict on labels",
    }
    assert kept["Agreement of people with the judge strict on labels"] == "failed"


def test_people_who_judged_other_things_are_no_error(write: Any, tmp_path: Path) -> None:
    elsewhere = {"q01": {"no-such-document": 1}}
    page = write(write_store(tmp_path / "s.db", qrels=elsewhere))
    assert 'id="people"' not in page
    assert "Judges and people have no labels of the same things to compare." in page
    assert checks(page)["Agreement of people with the judge"] == "unknown"


def test_an_agent_that_leaves_out_a_query_is_named(cli: Any, write: Any, tmp_path: Path) -> None:
    for name, rows in {
        "queries.csv": ["qid,query", *(f"q{n},what is {n}?" for n in range(12))],
        "answers.csv": [
            "qid,agent,answer",
            *(f"q{n},{agent},{n} {agent} says" for n in range(12) for agent in "ab" if n or agent == "a"),
        ],
        "t.yaml": [
            "{name: t, store: t.db, data: {queries: queries.csv, answers: answers.csv},",
            "judges: {words: {provider: lexical}}, pairwise: {judges: [words]}}",
        ],
    }.items():
        (tmp_path / name).write_text("\n".join(rows), encoding="utf-8")
    assert cli("run", tmp_path / "t.yaml").status == 0
    page = write(tmp_path / "t.yaml")
    assert checks(page)["Share of queries answered"] == "failed"
    assert "b 11 of 12" in page


def test_a_tournament_without_games_is_no_error(write: Any, tmp_path: Path) -> None:
    page = write(write_store(tmp_path / "s.db", queries=0))
    assert "No verdicts yet" in page


def test_a_report_is_replaced_and_any_other_file_is_not(
    cli: Any, demo_page: str, played_demo: Path, tmp_path: Path
) -> None:
    config, out = played_demo / "tournament.yaml", tmp_path / "r.html"
    out.write_text(f"{demo_page}<!-- the last one -->", encoding="utf-8")
    assert cli("report", config, "--out", out).status == 0
    assert "the last one" not in out.read_text(encoding="utf-8")
    out.write_text("<p>mine</p>", encoding="utf-8")
    refused = cli("report", config, "--out", out)
    assert refused.status == 2
    assert "exists and is not a report" in refused.err
    assert out.read_text(encoding="utf-8") == "<p>mine</p>"
    assert cli("report", config, "--out", out, "--force").status == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("r.db", "must end in .html"),
        (".", "must end in .html"),
        ("no/folder/r.html", "cannot be written"),
        ("d.html", "folder"),
    ],
)
def test_an_output_that_cannot_be_is_one_line(cli: Any, played_demo: Path, tmp_path: Path, out: str, said: str) -> None:
    (tmp_path / "d.html").mkdir()
    ended = cli("report", played_demo / "tournament.yaml", "--out", tmp_path / out)
    assert ended.status == 2
    (line,) = ended.err.splitlines()
    assert said in line
    assert not list(tmp_path.glob(".*.tmp"))


def test_an_unknown_tournament_is_said(cli: Any, tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.db")
    ended = cli("report", store, "--tournament", "other", "--out", tmp_path / "r.html")
    assert ended.status == 2
    assert "'other'" in ended.err
    assert not (tmp_path / "r.html").exists()


def test_a_report_does_not_grow_with_the_games(write: Any, tmp_path: Path) -> None:
    agents = [f"agent-{number:02}" for number in range(8)]
    few, many = (
        write(write_store(tmp_path / f"{queries}.db", agents=agents, queries=queries, criteria=False))
        for queries in (20, 40)
    )
    assert len(many) < 1.02 * len(few) < 105_000
    assert all(f">{agent}<" in many for agent in agents)


def checks(page: str) -> dict[str, str]:
    """Status of each trust check by name."""
    found = {}
    for part in page.split('<li class="')[1:]:
        status, _, rest = part.partition('"')
        if status in {"passed", "failed", "unknown"}:
            found[rest.partition("<p><b>")[2].partition("</b>")[0]] = status
    return found


HOSTILE = ("<script>window.__pwned=1</script>", "../../up", "a\"b'c&d", "![x](http://127.0.0.1:9/leak.png)")


@pytest.fixture(scope="module")
def site(played_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("published") / "site"
    done = CliRunner().invoke(app, ["publish", str(played_demo / "tournament.yaml"), str(out)])
    assert done.exit_code == 0, done.output
    assert "wrote 35 pages" in done.stderr
    return out


def links(page: Path) -> set[str]:
    return {unescape(link) for link in re.findall(r'href="?([^">]*)', page.read_text(encoding="utf-8"))}


def test_every_link_leads_to_a_page_or_to_a_part_of_one(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 1 + 1 + 26 + 7
    written = {page: page.stat().st_mtime_ns for page in pages}
    assert written[site / "index.html"] == max(written.values()), "the last: where it is, all is"
    for page in pages:
        for link in links(page):
            path, _, part = link.partition("#")
            target = (page.parent / path) if path else page
            assert target.is_file(), f"{page}: {link}"
            assert site in target.resolve().parents
            assert not part or f"id={part}" in target.read_text(encoding="utf-8"), f"{page}: {link}"


def test_no_item_of_the_exam_is_published(site: Path, played_demo: Path) -> None:
    whole = "".join(unescape(page.read_text(encoding="utf-8")) for page in site.rglob("*.html"))
    assert "fusion-bm25" in whole
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
    assert "index.html: exists, and 'publish' did not write it" in refused.err
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


def test_planted_names_and_texts_do_nothing_and_fit_any_window(cli: Any, tmp_path: Path) -> None:
    write_store(
        tmp_path / "s.db", name=HOSTILE[0], agents=HOSTILE, wording=lambda _kind, text: "\n".join((text, *HOSTILE))
    )
    assert cli("publish", tmp_path / "s.db", tmp_path / "site").status == 0
    assert {path.name for path in tmp_path.iterdir()} <= {"s.db", "s.db-shm", "s.db-wal", "site"}
    with served(tmp_path / "site") as (address, asked), chromium() as browser:
        page = browser.new_page()
        heard: list[str] = []
        page.on("request", lambda one: heard.append(one.url))
        page.on("console", lambda message: pytest.fail(message.text))
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.goto(address)
        for pressed in (HOSTILE[1], "Queries", "q00: "):
            page.locator("a", has_text=pressed).first.click()
            page.wait_for_load_state()
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
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


def test_a_large_tournament_stays_small_and_says_what_is_left_out(tmp_path: Path) -> None:
    path = page_store.write(tmp_path / "s.db", agents=50, queries=60, games_per_query=20)
    done = CliRunner().invoke(app, ["publish", str(path), str(tmp_path / "site")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "site" / "queries" / "1.html").read_text(encoding="utf-8")
    assert len(re.findall(r"Answer \d+ to 0:", page)) == 12
    assert "Answers of the 6 best and the 6 worst here. 38 more are in the store." in page
    assert {f"agents/{number}.html" for number in range(1, 51)} <= links(tmp_path / "site" / "index.html")
    query_pages = list((tmp_path / "site" / "queries").iterdir())
    assert sum(each.stat().st_size for each in query_pages) <= 25_000 * len(query_pages)  # 200 of them: 5 MB


def test_the_judges_of_imported_verdicts_are_named(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict,judge\nq1,x,y,A,gpt\nq2,x,y,B,gpt\n")
    cli("import", "verdicts", tmp_path / "v.csv", "--store", tmp_path / "s.db")
    assert cli("report", tmp_path / "s.db", "--out", tmp_path / "r.html").status == 0
    assert "<li>Judge: gpt</li>" in (tmp_path / "r.html").read_text()
