"""The report: its figures are the leaderboard's, it says what is missing, and it holds nothing that it must not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from arena.cli.main import app
from tests.support.exams import ANSWERS, exam_config, graded, write_exam
from tests.support.nugget_store import write_nugget_tournament
from tests.support.page_tables import PageTable, plots, tables
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


def shown(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}"


def test_the_figures_are_those_of_the_leaderboard(cli: Any, demo_page: str, played_demo: Path) -> None:
    board = json.loads(cli("leaderboard", played_demo / "tournament.yaml", "--format", "json").out)
    found = tables(demo_page)
    rows = found["Leaderboard"].by_name()
    assert list(rows) == [row["agent"] for row in board["agents"]]
    for row in board["agents"]:
        cells = rows[row["agent"]]
        assert cells["Rank"] == str(row["rank"])
        assert cells["Ranks (95%)"] in {f"{row['rank_low']} to {row['rank_high']}", str(row["rank_low"])}
        assert cells["Bradley-Terry"] == shown(row["bt"], 0)
        assert cells["95% interval"] == f"{shown(row['bt_low'], 0)} to {shown(row['bt_high'], 0)}"
        assert (cells["Elo"], cells["Order noise"]) == (shown(row["elo"], 0), shown(row["elo_order_sd"], 1))
        assert cells["Group"] == row["group"]
        for heading, name in {"Won": "wins", "Tied": "ties", "Lost": "losses"}.items():
            assert cells[heading] == f"{row[name]:g}"
        grades = found["Mean grades by criterion"].by_name()[row["agent"]]
        for name, grade in row["criteria"].items():
            assert grades[name] == shown(grade["mean"], 2)
        documents = found["Documents retrieved, by measure"].by_name()[row["agent"]]
        measures = board["retrieval"]["scores"]["judge"]["agents"][row["agent"]]["measures"]
        for name, estimate in measures.items():
            assert documents[name] == shown(estimate["value"], 3)
    stages = found["By stage"].rows[1:]
    assert sorted([int(count) for count in row[2:6]] for row in stages) == sorted(
        [stage[name] for name in ("wanted", "judged", "failed", "left")] for stage in board["coverage"].values()
    )
    assert f"{board['judge_health']['longer_share']:.1%}" in demo_page
    assert "are tied for first: no two of them can be told apart" in demo_page


def test_the_win_matrix_and_its_mirror_image_sum_to_a_hundred(demo_page: str) -> None:
    matrix = tables(demo_page)["Win matrix, row against column"]
    cells = [row[1:] for row in matrix.rows[1:]]
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            if i != j:
                assert int(cell[:-2]) + int(cells[j][i][:-2]) in {99, 100, 101}  # each is rounded
                assert cell.endswith("26")
            else:
                assert cell == ""


def test_equal_stores_give_equal_reports_but_for_the_time(write: Any, demo_page: str, played_demo: Path) -> None:
    second = write(played_demo / "tournament.yaml")
    differing = [one for one, other in zip(demo_page.splitlines(), second.splitlines(), strict=True) if one != other]
    assert all("Written" in line for line in differing)


def test_failures_and_what_is_left_are_counted_and_fail_the_check(write: Any, tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.db", failed=30, unasked=20, criteria=False)
    page = write(store, status=3)
    assert "Not enough verdicts to rate" in page
    assert checks(page)["Enough is judged"] == "failed"
    assert "Leaderboard" not in tables(page)
    assert tables(page)["Why judgments failed"].rows[1][3] == "30"
    rated = write(store, "--below-coverage")
    assert len(tables(rated)["Leaderboard"].rows) == 1 + len(AGENTS)
    assert checks(rated)["Enough is judged"] == "failed"
    by_stage = tables(rated)["By stage"].by_name()["Games judged, each order counted"]
    assert (by_stage["Failed"], by_stage["Left"], by_stage["Done"]) == ("30", "20", "65.3%")


def test_a_clear_leader_is_named_with_what_the_lead_is_worth(write: Any, tmp_path: Path) -> None:
    page = write(write_store(tmp_path / "s.db", queries=40, margin=0.5))
    assert "<h1>Clear leader</h1>" in page
    assert f"{AGENTS[0]} would win about" in page
    assert page.count(">leads<") == 1


def test_too_few_queries_fail_a_check_and_what_nobody_knows_passes_none(write: Any, tmp_path: Path) -> None:
    page = write(write_store(tmp_path / "s.db", queries=4))
    assert checks(page)["Enough queries"] == "failed"
    assert checks(page)["People agree with the judge"] == "unknown"


def test_people_are_held_against_the_judge_and_correct_its_figures(cli: Any, write: Any, tmp_path: Path) -> None:
    people = {f"q{number:02}": {f"q{number:02}-common": 2, f"q{number:02}-d0": 0} for number in range(12)}
    store = write_store(tmp_path / "s.db", margin=0.5, qrels=people)
    cast_votes(store, AGENTS)
    page = write(store)
    found = tables(page)
    own = json.loads(cli("calibrate", store, "--estimates", "--json", "--seed", "3", "--samples", "200").out)
    verdicts, labels = (one["judges"]["strict"] for one in own["comparisons"])
    heading, *rows = found["Judges against people"].rows
    for level, said in (("verdicts", verdicts), ("labels", labels)):
        (row,) = (dict(zip(heading, row, strict=True)) for row in rows if row[:2] == ["strict", level])
        assert (row["Things"], row["Kappa"]) == (f"{said['n']}", f"{said['kappa']:.2f}")
    rated = found["Bradley-Terry ratings corrected by people: strict, verdicts"].by_name()
    for agent in verdicts["estimates"]["ratings"]["agents"]:
        assert rated[agent["agent"]]["Corrected"] == f"{agent['corrected']:,.0f}"
    kept = {name: status for name, status in checks(page).items() if name.startswith("People agree")}
    assert set(kept) == {
        "People agree with the judge strict on verdicts",
        "People agree with the judge strict on labels",
    }
    assert kept["People agree with the judge strict on labels"] == "failed"
    (plot,) = [own for name, own in plots(page).items() if name.startswith("Bland and Altman's plot of strict")]
    named = {"bias": "bias", "upper": "upper limit", "lower": "lower limit"}
    assert {f"{words} {labels[name]:+.2f}" for name, words in named.items()} <= set(plot.texts)
    assert len(plot.marks) > 1


def test_without_labels_of_people_there_is_no_section_on_them(demo_page: str) -> None:
    assert 'id="people"' not in demo_page
    assert checks(demo_page)["People agree with the judge"] == "unknown"


def test_people_who_judged_other_things_are_no_error(write: Any, tmp_path: Path) -> None:
    elsewhere = {"q01": {"no-such-document": 1}}
    page = write(write_store(tmp_path / "s.db", qrels=elsewhere))
    assert 'id="people"' not in page
    assert "Judges and people have no labels of the same things to compare." in page
    assert checks(page)["People agree with the judge"] == "unknown"


def test_ways_of_scoring_are_held_against_each_other(cli: Any, demo_page: str, played_demo: Path) -> None:
    own = json.loads(cli("calibrate", played_demo / "tournament.yaml", "--json", "--seed", "7").out)["methods"]
    found = tables(demo_page)
    taus = next(own for name, own in found.items() if name.startswith("Kendall's tau")).by_name()
    words = {"elo": "Elo", "bradley_terry": "Bradley-Terry", "criteria": "Criteria"}
    for pair in own["pairs"]:
        cell = taus[words.get(pair["first"], pair["first"])][words.get(pair["second"], pair["second"])]
        assert cell.startswith(f"{pair['kendall']:.2f}")
    places = found["Places by each way of scoring, scores in brackets"].by_name()
    for agent, place in own["methods"]["criteria"]["ranks"].items():
        assert places[agent]["Criteria"].startswith(f"{place} (")


def test_each_of_several_judges_is_shown(cli: Any, write: Any, played_demo: Path, tmp_path: Path) -> None:
    shutil.copytree(played_demo, tmp_path / "demo")
    config = tmp_path / "demo/tournament.yaml"
    content = yaml.safe_load(config.read_text(encoding="utf-8"))
    content["judges"]["second"] = {"provider": "lexical", "max_tokens": 7}
    content["pairwise"]["judges"] = [*content["pairwise"]["judges"], "second"]
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert cli("run", config).status == 0
    board = json.loads(cli("leaderboard", config, "--format", "json").out)
    page = write(config)
    rows = tables(page)["What each judge alone would say"].by_name()
    for judge, own in board["by_judge"].items():
        for row in own["agents"]:
            assert rows[row["agent"]][judge] == f"{row['rank']} ({shown(row['bt'], 0)})"
    assert tables(page)["Do the judges agree with each other?"].rows[1][3] == f"{board['judges']['alpha']['value']:.2f}"
    assert checks(page)["Judges agree with each other"] == "passed"  # they are one and the same
    assert set(tables(page)["Each judge by itself"].by_name()) == {"baseline", "second"}


def test_nuggets_are_those_of_the_leaderboard(cli: Any, write: Any, tmp_path: Path) -> None:
    config = write_nugget_tournament(tmp_path)
    assert cli("run", config).status == 0
    board = json.loads(cli("leaderboard", config, "--format", "json").out)
    page = write(config)
    rows = tables(page)["Nuggets of answers"].by_name()
    assert len(rows) == len(board["nuggets"]["agents"]) == 3
    for agent, own in board["nuggets"]["agents"].items():
        assert (rows[agent]["V strict"], rows[agent]["All"]) == (shown(own["v_strict"], 3), shown(own["a"], 3))
        assert rows[agent]["Assigned"] == "100.0%"


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


def test_what_answers_took_is_shown_with_the_front(write: Any, tmp_path: Path) -> None:
    page = write(write_store(tmp_path / "s.db", priced=True))
    row = tables(page)["What an answer takes"].by_name()[AGENTS[-1]]
    assert (row["Latency, median"], row["Cost of a query"]) == ("800 ms", "$0.0020")
    assert {name.split(":")[0]: len(plot.marks) for name, plot in plots(page).items() if name.startswith("Rating")} == {
        "Rating against latency": len(AGENTS),
        "Rating against cost": len(AGENTS),
    }
    assert 'id="costs"' not in write(write_store(tmp_path / "t.db"))


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
    assert len(tables(page)["EXAM-Cover"].rows) == 1 + len({agent for _, agent in ANSWERS})
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
    assert "ragarena leaderboard tournament.yaml" in page


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


def test_a_large_tournament_stays_small(write: Any, tmp_path: Path) -> None:
    agents = [f"agent-{number:02}" for number in range(12)]
    page = write(write_store(tmp_path / "s.db", agents=agents, queries=60))  # 7,920 verdicts
    assert len(page.encode()) < 150_000
    assert len(tables(page)["Leaderboard"].rows) == 13


def test_every_table_names_its_columns_and_rows(demo_page: str) -> None:
    for table in tables(demo_page).values():
        assert_named(table)
    assert demo_page.count('<th scope="row">') + demo_page.count('<th scope="col"') == demo_page.count("<th ")


def assert_named(table: PageTable) -> None:
    assert table.caption
    assert all(table.rows[0]), table.caption
    assert all(row[0] for row in table.rows), table.caption
    assert {len(row) for row in table.rows} == {len(table.rows[0])}, table.caption


def checks(page: str) -> dict[str, str]:
    """Status of each trust check by name."""
    found = {}
    for part in page.split('<li class="')[1:]:
        status, _, rest = part.partition('"')
        if status in {"passed", "failed", "unknown"}:
            found[rest.partition("<h3>")[2].partition("</h3>")[0]] = status
    return found
