"""The report: its figures are the leaderboard's, it says what is missing, and it holds nothing that it must not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from tests.support.exams import exam_config, graded, write_exam
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


def test_equal_stores_give_equal_reports_but_for_the_time(write: Any, demo_page: str, played_demo: Path) -> None:
    second = write(played_demo / "tournament.yaml")
    differing = [one for one, other in zip(demo_page.splitlines(), second.splitlines(), strict=True) if one != other]
    assert all("Written" in line for line in differing)


def test_failures_and_what_is_left_are_counted_and_fail_the_check(write: Any, tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.db", failed=30, unasked=20, criteria=False)
    page = write(store, status=3)
    assert "Not enough verdicts to rate" in page
    assert checks(page)["Enough is judged"] == "failed"
    assert "Leaderboard</caption>" not in page
    assert "Why judgments failed" in page
    rated = write(store, "--below-coverage")
    assert all(f">{agent}<" in rated for agent in AGENTS)
    assert checks(rated)["Enough is judged"] == "failed"
    assert "65%" in rated


def test_a_clear_leader_is_named_with_what_the_lead_is_worth(write: Any, tmp_path: Path) -> None:
    page = write(write_store(tmp_path / "s.db", queries=40, margin=0.5))
    assert "<h2>Clear leader</h2>" in page
    assert f"{AGENTS[0]} would win about" in page
    assert page.count("<h1") == 1


def test_people_are_held_against_the_judge_and_correct_its_figures(write: Any, tmp_path: Path) -> None:
    people = {f"q{number:02}": {f"q{number:02}-common": 2, f"q{number:02}-d0": 0} for number in range(12)}
    store = write_store(tmp_path / "s.db", margin=0.5, qrels=people)
    cast_votes(store, AGENTS)
    page = write(store)
    assert "Bradley-Terry ratings corrected by people: strict, verdicts" in page
    kept = {name: status for name, status in checks(page).items() if name.startswith("People agree")}
    assert set(kept) == {
        "People agree with the judge strict on verdicts",
        "People agree with the judge strict on labels",
    }
    assert kept["People agree with the judge strict on labels"] == "failed"


def test_people_who_judged_other_things_are_no_error(write: Any, tmp_path: Path) -> None:
    elsewhere = {"q01": {"no-such-document": 1}}
    page = write(write_store(tmp_path / "s.db", qrels=elsewhere))
    assert 'id="people"' not in page
    assert "Judges and people have no labels of the same things to compare." in page
    assert checks(page)["People agree with the judge"] == "unknown"


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
    assert checks(page)["Every agent answered every query"] == "failed"
    assert "b 11 of 12" in page


def test_a_tournament_without_games_is_no_error(write: Any, tmp_path: Path) -> None:
    page = write(write_store(tmp_path / "s.db", queries=0))
    assert "No verdicts yet" in page


def test_the_exam_s_scores_are_there_and_its_secret_items_are_not(cli: Any, write: Any, tmp_path: Path) -> None:
    secret = "Which planet is hidden from every agent?"
    items = (("skin", "Is skin an organ?", "false"), ("skin", secret, "true"), ("rock", "Who was it?", "false"))
    write_exam(tmp_path, items, ("qid", "question", "secret"))
    config = exam_config(tmp_path)
    graded(config)
    page = write(config.store)
    assert "EXAM-Cover" in page
    assert secret not in page
    assert "Is skin an organ?" not in page  # no item is


def test_keys_and_paths_are_not_in_it(
    write: Any, played_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret-0123456789")
    shutil.copytree(played_demo, tmp_path / "demo")
    page = write(tmp_path / "demo/tournament.yaml")
    assert "sk-very-secret" not in page
    assert str(tmp_path) not in page
    assert "ragleague leaderboard tournament.yaml" in page


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
    assert "no report stands there" in refused.err
    assert out.read_text(encoding="utf-8") == "<p>mine</p>"
    assert cli("report", config, "--out", out, "--force").status == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("r.db", "ends in .html"),
        (".", "ends in .html"),
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
