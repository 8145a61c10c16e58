"""Tables for calibration: criteria in columns, places that nobody told, and leaderboards of judge and people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from arena.calibration.comparison import USUAL
from arena.calibration.methods import leaderboard_agreement
from arena.data.kinds import CRITERIA, KINDS, RELEVANCE, JudgedKind
from arena.results.opinion_tables import TableReading, read_opinions
from arena.results.table_agreement import OpinionFiles, calibrate_tables
from arena.run.imports import import_table
from judges.errors import DataError, InputError
from tests.conftest import CLI

WIDE = "qid,agent,accuracy,tone,reason\nq1,x,2,1,good\nq1,y,0,1.5,\nq2,x,1,0,\n"
LONG = (
    "qid,agent,criterion,score\nq1,x,accuracy,2\nq1,x,tone,1\nq1,y,accuracy,0\nq1,y,tone,1.5\n"
    "q2,x,accuracy,1\nq2,x,tone,0\n"
)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_criteria_in_columns_are_those_in_lines(tmp_path: Path) -> None:
    wide, long = (read_opinions(written(tmp_path / "j.csv", text)) for text in (WIDE, LONG))
    assert wide.level == long.level == "criteria"
    assert wide.groups == long.groups


def test_criteria_in_columns_name_their_rater(tmp_path: Path) -> None:
    read = read_opinions(written(tmp_path / "p.csv", "qid,model,accuracy,worker\nq1,x,2,ann\n"))
    assert [(one.item, one.rater, one.value) for one in read.groups[""]] == [(("x", "accuracy"), "ann", 2)]


def test_an_empty_grade_in_a_column_is_refused_or_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "qid,agent,accuracy,tone\nq1,x,2,\n")
    with pytest.raises(DataError, match=r"2.*'tone' is empty"):
        read_opinions(path)
    read = read_opinions(path, TableReading(skip_empty=True))
    assert len(read.groups[""]) == 1
    assert read.notes == ("1 without a value left out",)


def test_a_table_with_a_criterion_and_no_score_is_no_table_of_criteria_in_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'agent_a'"):
        read_opinions(written(tmp_path / "p.csv", "qid,agent,criterion,mark\nq1,x,tone,2\n"))


def test_what_export_writes_is_what_people_may_say(cli: CLI, played_demo: Path, tmp_path: Path) -> None:
    config = played_demo / "tournament.yaml"
    cli("export", config, tmp_path / "grades.csv", "--what", "criteria")
    found = json.loads(
        cli("calibrate", config, "--people", tmp_path / "grades.csv", "--method-samples", 0, "--format", "json").out
    )
    (own,) = found["comparisons"]
    assert own["level"] == "criteria"
    assert own["judges"]["lexical"]["agreement"] == 1


@pytest.mark.parametrize(
    ("columns", "rows", "known"),
    [
        ("qid,agent_a,agent_b,verdict", ["q1,x,y,A", "q2,x,y,B"], False),
        ("qid,agent_a,agent_b,verdict", ["q1,x,y,A", "q1,y,x,B"], True),
        ("qid,agent_a,agent_b,verdict,order", ["q1,x,y,A,ab", "q2,x,y,B,ab"], True),
        ("qid,left,right,winner", ["q1,x,y,left", "q2,x,y,right"], True),
        ("qid,agent_a,agent_b,winner_ab,winner_ba", ["q1,x,y,A,B", "q2,x,y,A,A"], True),
    ],
)
def test_places_are_told_only_where_a_table_tells_them(
    columns: str, rows: Sequence[str], known: bool, cli: CLI, tmp_path: Path
) -> None:
    judge = written(tmp_path / "judge.csv", "\n".join((columns, *rows)))
    people = written(tmp_path / "people.csv", "qid,agent_a,agent_b,verdict,order\nq1,x,y,A,ab\nq2,x,y,B,ab\n")
    found = json.loads(cli("calibrate", judge, "--people", people, "--format", "json").out)
    assert ("first_share" in found["comparisons"][0]["judges"]["judge"]) is known
    assert any("no column 'order'" in note for note in found["notes"]) is not known


def verdicts(strengths: Mapping[str, int], queries: int, upset: int) -> dict[str, dict[tuple[str, ...], float]]:
    """The stronger agent wins but for every ``upset``-th game."""
    names = sorted(strengths)
    found: dict[str, dict[tuple[str, ...], float]] = {}
    game = 0
    for query in range(queries):
        for first in range(len(names)):
            for second in range(first + 1, len(names)):
                game += 1
                a, b = names[first], names[second]
                won = 1.0 if strengths[a] > strengths[b] else -1.0
                found.setdefault(f"q{query}", {})[a, b] = -won if game % upset == 0 else won
    return found


def test_leaderboards_agree_by_the_places_of_agents() -> None:
    people = verdicts({"a": 4, "b": 3, "c": 2, "d": 1}, 20, 7)
    own = leaderboard_agreement("verdicts", people, people, (50, 0))
    assert own.kendall.value == pytest.approx(1)
    other = leaderboard_agreement("verdicts", verdicts({"a": 3, "b": 4, "c": 2, "d": 1}, 20, 7), people, (50, 0))
    assert other.kendall.value == pytest.approx(stats.kendalltau([4, 3, 2, 1], [3, 4, 2, 1]).statistic)
    assert other.kendall.low is None, "no resample of the queries moves a place"


def test_leaderboards_rest_on_the_same_things() -> None:
    people = {"q0": {("a", "tone"): 3.0, ("b", "tone"): 2.0, ("c", "tone"): 1.0}}
    judge = {**people, "q1": {("c", "tone"): 90.0}}
    own = leaderboard_agreement("criteria", judge, people, means=CRITERIA.means)
    assert (own.agents, own.kendall.value) == (3, pytest.approx(1))


def test_citations_are_ranked_by_the_agents_that_cite() -> None:
    values = {f"q{query}": {(agent, "0", "d1"): float(at) for at, agent in enumerate("abc")} for query in range(3)}
    own = leaderboard_agreement("support", values, values, means=KINDS["support"].means)
    assert own is not None
    assert (own.agents, own.kendall.value) == (3, pytest.approx(1))


@pytest.mark.parametrize("kind", [RELEVANCE, CRITERIA])
def test_two_agents_and_documents_have_no_leaderboard(kind: JudgedKind) -> None:
    values = {"q0": {("a", "tone"): 3.0, ("b", "tone"): 2.0}}
    assert leaderboard_agreement(kind.level, values, values, means=kind.means) is None


SAID = ("A", "B", "A", "A", "B", "A", "A", "A", "B", "A", "A", "B")
"""A verdict for each of twelve conversations, all turns of which repeat it."""


def verdicts_of_turns(path: Path, turns: int, *, named: bool, people: bool = False) -> Path:
    """A table of verdicts; people say otherwise in every fourth conversation."""
    rows = [
        f"q{at}-{turn},x,y,{'AB'[said == 'A'] if people and at % 4 == 0 else said}{f',c{at}' if named else ''}"
        for at, said in enumerate(SAID)
        for turn in range(turns)
    ]
    return written(path, "\n".join([f"qid,agent_a,agent_b,verdict{',conversation' if named else ''}", *rows, ""]))


@pytest.mark.parametrize("turns", [1, 5])
def test_verdicts_from_elsewhere_are_taken_in_by_conversation(cli: CLI, tmp_path: Path, turns: int) -> None:
    cli("import", verdicts_of_turns(tmp_path / "v.csv", turns, named=turns > 1), "--store", tmp_path / "s.db")
    gated = cli("gate", tmp_path / "s.db", "--new", "x", "--old", "y", "--format", "json")
    (own,) = json.loads(gated.out)["scores"]
    assert own["queries"] == 12
    assert (own["low"], own["high"]) == pytest.approx((-0.156, 0.403), abs=0.001)


@pytest.mark.parametrize(("judges", "people"), [(True, False), (False, True)])
def test_conversations_of_either_side_count_in_calibration(
    cli: CLI, tmp_path: Path, judges: bool, people: bool
) -> None:
    first = verdicts_of_turns(tmp_path / "j.csv", 5, named=judges)
    second = verdicts_of_turns(tmp_path / "p.csv", 5, named=people, people=True)
    found = json.loads(cli("calibrate", first, "--people", second, "--format", "json").out)
    (judge,) = found["comparisons"][0]["judges"].values()
    assert (judge["n"], judge["queries"]) == (60, 12)


def test_a_column_of_conversations_is_no_criterion_and_says_one_thing_of_a_query(tmp_path: Path) -> None:
    read = read_opinions(written(tmp_path / "p.csv", "qid,agent,tone,conversation\nq1,x,2,c1\nq2,x,1,c1\nq3,x,1,\n"))
    assert {one.item for one in read.groups[""]} == {("x", "tone")}
    assert read.clusters == {"q1": "c1", "q2": "c1"}
    with pytest.raises(DataError, match=r"3.*'q1' belongs to the conversation 'c1' in a row above"):
        read_opinions(written(tmp_path / "p.csv", "qid,agent,tone,conversation\nq1,x,2,c1\nq1,y,1,c2\n"))
    with pytest.raises(InputError, match="conversations 'c1' and 'C1' differ in case or spaces only"):
        import_table(
            written(tmp_path / "v.csv", "qid,agent_a,agent_b,verdict,conversation\nq1,x,y,A,c1\nq2,x,y,A,C1\n"),
            str(tmp_path / "s.db"),
            "t",
        )
    table = "qid,agent_a,agent_b,verdict,conversation\nq1,x,y,A,c1\nq1,x,z,A,c2\n"
    with pytest.raises(DataError, match=r"3.*'q1' has 'c1' as 'conversation' above"):
        read_opinions(written(tmp_path / "v.csv", table))


def test_agreement_in_every_case_is_more_than_chance(cli: CLI, tmp_path: Path) -> None:
    """No resample differs then, so kappa has no interval; one vote less must not look better."""
    rows = [(f"q{number}", "AB"[number % 2]) for number in range(40)]

    def table(name: str, said: list[tuple[str, str]]) -> Path:
        games = "".join(f"{query},x,y,{verdict}\n" for query, verdict in said)
        return written(tmp_path / name, f"qid,agent_a,agent_b,verdict\n{games}")

    judge, people = table("judge.csv", rows), table("people.csv", rows)
    nearly = table("nearly.csv", [*rows[:-1], (rows[-1][0], "AB"[rows[-1][1] == "A"])])
    for votes in (people, nearly):
        assert cli("calibrate", judge, "--people", votes).out.startswith("passed: Agreement of people with the judge")


TURNS = [("1", "A"), ("2", "B")]


def write_turns(path: Path, judge: str, column: str = "turn") -> Path:
    rows = [f"q{query},x,y,{verdict},{judge},{turn}" for query in range(12) for turn, verdict in TURNS]
    path.write_text("\n".join([f"qid,agent_a,agent_b,verdict,judge,{column}", *rows]) + "\n")
    return path


def test_rows_that_a_further_column_tells_apart_are_not_taken_for_one(tmp_path: Path) -> None:
    judge, people = write_turns(tmp_path / "j.csv", "j"), write_turns(tmp_path / "p.csv", "p")
    with pytest.raises(InputError, match="differ in column 'turn'; use --item turn to tell them apart, or --by turn"):
        calibrate_tables(OpinionFiles([judge]), OpinionFiles([people]), USUAL)
    (found,) = calibrate_tables(
        OpinionFiles([judge], TableReading(("turn",))), OpinionFiles([people], TableReading(("turn",))), USUAL
    ).comparisons
    assert found.judges["j"].n == 24
    assert found.judges["j"].votes.share.value == 1


def test_grades_that_a_further_column_tells_apart_are_not_taken_for_one(tmp_path: Path) -> None:
    for name in "jp":
        rows = [f"q{query},x,good,{1 + turn},{name},{turn}" for query in range(12) for turn in (0, 1)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["qid,agent,criterion,score,judge,turn", *rows]))
    with pytest.raises(InputError, match="differ in column 'turn'"):
        calibrate_tables(OpinionFiles([tmp_path / "j.csv"]), OpinionFiles([tmp_path / "p.csv"]), USUAL)


def test_a_column_of_one_side_alone_is_a_note(tmp_path: Path) -> None:
    judge, people = write_turns(tmp_path / "j.csv", "j", "round"), write_turns(tmp_path / "p.csv", "p")
    notes = calibrate_tables(OpinionFiles([judge]), OpinionFiles([people]), USUAL).notes
    assert f"{people}: rows of one item differ in turn, and count as one" in notes


def graded(path: Path, *, turns: bool = False) -> Path:
    """Grades of two criteria by two people; of the third agent on every second query."""
    draws = np.random.default_rng(3).normal(0, 0.6, (24, 2, 3, 2)).round(2)
    lines = ["qid,agent,annotator,completeness,precision" + ",conversation" * turns]
    for query in range(24):
        for at, person in enumerate(("ann", "bob")):
            for number, (agent, completeness, precision) in enumerate([("rag", 2, 3), ("ragf", 2.6, 2.9), ("x", 2, 2)]):
                if agent == "x" and query % 2:
                    continue
                own = draws[query, at, number]
                cells = [f"q{query}", agent, person, f"{completeness + own[0]:.2f}", f"{precision + own[1]:.2f}"]
                lines.append(",".join([*cells, *([f"c{query // 3}"] if turns else [])]))
    return written(path, "\n".join(lines) + "\n")


def queries_means(path: Path, agent: str, criterion: str) -> dict[str, float]:
    rows = pd.read_csv(path)
    means = rows[rows.agent == agent].groupby("qid")[criterion].mean()
    return dict(means.items())


def test_peoples_grades_compare_agents_as_a_paired_t_test_does(tmp_path: Path, cli: CLI) -> None:
    path = graded(tmp_path / "people.csv")
    ended = cli("calibrate", "--people", path, "--format", "json")
    assert ended.status == 0, ended.err
    tests = json.loads(ended.out)["people_grades"]
    assert [(each["criterion"], each["first"], each["second"], each["queries"], each["n"]) for each in tests] == [
        (criterion, *pair, number, number)
        for criterion in ("completeness", "precision")
        for *pair, number in (("rag", "ragf", 24), ("rag", "x", 12), ("ragf", "x", 12))
    ]
    expected = []
    for each in tests:
        first, second = (queries_means(path, each[side], each["criterion"]) for side in ("first", "second"))
        shared = sorted(first.keys() & second.keys())
        expected.append(stats.ttest_rel([first[query] for query in shared], [second[query] for query in shared]).pvalue)
        mean = sum(first[query] - second[query] for query in shared) / len(shared)
        assert each["difference"]["value"] == pytest.approx(mean, abs=1e-6)
        assert each["difference"]["low"] < mean < each["difference"]["high"]
    assert [each["p_t"] for each in tests] == pytest.approx(expected, abs=1e-6)
    ranked, running = sorted(range(6), key=expected.__getitem__), 0.0
    for place, at in enumerate(ranked):
        running = max(running, min(1.0, (6 - place) * expected[at]))
        assert tests[at]["p_t_holm"] == pytest.approx(running, abs=1e-6)
    assert tests[0]["p_t_holm"] < 0.05 < tests[3]["p_t_holm"], "of completeness alone the new one is better"
    shown = cli("calibrate", "--people", path).out
    assert "Agents by people's grades" in shown
    assert "Queries" in shown
    assert "Units" not in shown
    assert cli("calibrate", "--people", path, "--format", "csv").out.startswith(
        "group,criterion,first,second,queries,n,"
    )


def test_turns_of_a_conversation_are_one_unit_of_peoples_grades(tmp_path: Path, cli: CLI) -> None:
    path = graded(tmp_path / "people.csv", turns=True)
    (first, *_) = json.loads(cli("calibrate", "--people", path, "--format", "json").out)["people_grades"]
    assert (first["queries"], first["n"]) == (24, 8)
    rag, ragf = (queries_means(path, agent, "completeness") for agent in ("rag", "ragf"))
    sums = [sum(rag[f"q{at}"] - ragf[f"q{at}"] for at in range(3 * number, 3 * number + 3)) for number in range(8)]
    assert first["p_t"] == pytest.approx(stats.ttest_1samp(sums, 0).pvalue, abs=1e-6)
    assert "Units" in cli("calibrate", "--people", path).out


def test_judges_and_people_compared_say_it_too_and_without_grades_there_is_nothing_to_say(
    tmp_path: Path, cli: CLI
) -> None:
    path = graded(tmp_path / "people.csv")
    both = cli(
        "calibrate", written(tmp_path / "judge.csv", path.read_text().replace(",ann,", ",judge,")), "--people", path
    )
    assert "Judges against people" in both.out
    assert "Agents by people's grades" in both.out
    labels = written(tmp_path / "labels.csv", "qid,did,label\nq1,d1,1\n")
    ended = cli("calibrate", "--people", labels)
    assert (ended.status, "no grades of two agents to compare" in ended.err) == (2, True)
    assert cli("calibrate").status == 2
