"""What words and numbers of verdicts mean, by themselves and by what the user says."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragleague as rl
from arena.data.verdict_words import Coding, meanings
from arena.data.verdicts import read_verdicts
from arena.results.opinion_tables import TableReading, read_opinions
from judges.errors import DataError, InputError
from judges.types import Verdict

A, TIE, B = Verdict.A, Verdict.TIE, Verdict.B


def table(folder: Path, column: str, *cells: object) -> Path:
    path = folder / "votes.csv"
    rows = "".join(f"q{number},new,old,{cell}\n" for number, cell in enumerate(cells))
    path.write_text(f"qid,model_a,model_b,{column}\n{rows}")
    return path


def said(path: Path, *values: str, **how: bool) -> list[Verdict]:
    return [game.verdict for game in read_verdicts(path, values=meanings(values), **how).verdicts]


@pytest.mark.parametrize("column", ["preference", "winner", "vote"])
@pytest.mark.parametrize(
    ("cells", "values", "verdicts"),
    [
        ((0, 1), ("0=A", "1=B"), [A, B]),
        ((0, 1), ("0=B", "1=A"), [B, A]),
        (("0.0", "1.0"), ("0=A", "1=B"), [A, B]),
        ((0, 1, 2), ("0=A", "1=B", "2=TIE"), [A, B, TIE]),
        ((0, 1, 2), ("0=TIE", "1=A", "2=B"), [TIE, A, B]),
        ((-1, 0, 1), ("-1=A", "0=TIE", "1=B"), [A, TIE, B]),
        ((-3, -1, 0, 2, 3), ("-3..-1=A", "0=TIE", "1..3=B"), [A, A, TIE, B, B]),
        ((0, 0, 0), ("0=TIE",), [TIE, TIE, TIE]),
        ((0, 1, 2), ("0=TIE",), [TIE, A, B]),
    ],
)
def test_a_zero_is_refused_until_the_coding_is_said(
    tmp_path: Path, column: str, cells: tuple[object, ...], values: tuple[str, ...], verdicts: list[Verdict]
) -> None:
    path = table(tmp_path, column, *cells)
    with pytest.raises(DataError, match=f"'{column}' holds .*; what 0 means differs from study to study: .*--value"):
        said(path)
    assert said(path, *values) == verdicts


def test_the_coding_that_an_error_proposes_can_be_used(tmp_path: Path) -> None:
    for cells in ((0, 1), (0, 1, 2), (-3, -2, 0, 1), (1, 2, 4, 7), (0, 1, 1.25, 2), (3, 4)):
        path = table(tmp_path, "preference", *cells)
        with pytest.raises(DataError) as refused:
            said(path)
        proposed = [word.strip() for word in str(refused.value).split("--value ")[1:]]
        proposed[-1] = proposed[-1].split(" ")[0]
        assert len(said(path, *proposed)) == len(cells), proposed


def test_a_number_beside_those_that_are_said_is_never_guessed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"votes.csv:4: 'winner': no --value says what this number means \('2'\)"):
        said(table(tmp_path, "winner", 0, 1, 2), "0=A", "1=B")


def test_alpacaevals_weights_stay_where_its_ties_are_said(tmp_path: Path) -> None:
    path = table(tmp_path, "preference", 0, 1, "1.0004", "1.75", 2)
    read = read_verdicts(path, values={"0": "TIE"}, preferences=True)
    assert [game.verdict for game in read.verdicts] == [TIE, A, A, B, B]
    assert read.table.preference is not None
    assert read.table.preference.round(4).tolist() == [0.5, 1, 0.9996, 0.25, 0]


def test_words_of_a_study(tmp_path: Path) -> None:
    path = table(tmp_path, "winner", "A ist besser", "b IST besser", "beide schlecht", "weiß nicht", "new")
    with pytest.raises(DataError, match=r"or say what it means: --value WORD=A \('A ist besser'\)"):
        said(path)
    values = ("A ist besser=A", "B ist besser=B", "beide schlecht=both_bad", "weiß nicht=")
    with pytest.raises(DataError, match=":5: no verdict in 'winner'"):
        said(path, *values)
    assert said(path, *values, skip_empty=True) == [A, B, TIE, A]
    assert read_verdicts(path, values=meanings(values), skip_empty=True).both_bad == 1


def test_a_word_may_mean_a_place_or_an_agent(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("qid,agent_a,agent_b,vote,order\n1,x,y,erste,ba\n2,x,y,Ypsilon,ab\n3,x,y,1 = 2,ab\n")
    games = read_verdicts(path, values=meanings(["erste=first", "Ypsilon=y", "1 = 2=TIE"])).verdicts
    assert [(game.agent_a, game.verdict) for game in games] == [("y", A), ("x", B), ("x", TIE)]


def test_words_in_memory() -> None:
    rows = [{"qid": str(number), "model_a": "x", "model_b": "y", "winner": word} for number, word in enumerate("++-=")]
    rated = rl.rate(rows, values={"+": "A", "-": "B", "=": "TIE"}, bootstrap=0)
    assert {row.agent: (row.wins, row.ties, row.losses) for row in rated.ratings.agents}["x"] == (2, 1, 1)


def test_booleans_are_asked_about(tmp_path: Path) -> None:
    path = table(tmp_path, "winner", "True", "False")
    with pytest.raises(DataError, match="--value True=A --value False=B"):
        said(path)
    assert said(path, "true=A", "false=B") == [A, B]


def test_whole_numbers_of_pandas_are_the_numbers(tmp_path: Path) -> None:
    assert said(table(tmp_path, "winner", "1.0", "2.0")) == [A, B]


@pytest.mark.parametrize(
    ("word", "bad", "good"),
    [
        *((word, 1, 0) for word in ("both_bad", "bothbad", "Both Bad", "both-bad", "tie (bothbad)", "Tie (both bad)")),
        *((word, 0, 1) for word in ("both_good", "both good", "tie (bothgood)")),
        *((word, 0, 0) for word in ("tie", "TIE", "draw", "A")),
    ],
)
def test_ties_that_say_more_are_counted_apart(tmp_path: Path, word: str, bad: int, good: int) -> None:
    read = read_verdicts(table(tmp_path, "winner", word))
    assert [game.verdict for game in read.verdicts] == [A if word == "A" else TIE]
    assert (read.both_bad, read.both_good) == (bad, good)


def test_peoples_votes_in_their_words(tmp_path: Path) -> None:
    path = table(tmp_path, "winner", "neu", "alt", 0)
    with pytest.raises(DataError):
        read_opinions(path)
    read = read_opinions(path, TableReading(values={"neu": "A", "alt": "B", "0": "TIE"}))
    assert [one.value for one in read.groups[""]] == [1, -1, 0]


@pytest.mark.parametrize("given", [["besser"], ["=A"], ["a=A", "a=B"]])
def test_what_is_no_coding_is_refused(given: list[str]) -> None:
    with pytest.raises(InputError, match="--value: "):
        meanings(given)
    with pytest.raises(InputError, match=r"write a range as LOW\.\.HIGH"):
        Coding.of({"3..1": "A"})


def test_two_columns_of_a_verdict(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("qid,model_a,model_b,vote,choice\n1,x,y,A,B\n")
    with pytest.raises(DataError, match="two columns may be the verdict: vote, choice; say --column verdict=NAME"):
        read_verdicts(path)
    assert [game.verdict for game in read_verdicts(path, columns={"verdict": "choice"}).verdicts] == [B]
    path.write_text("qid,model_a,model_b,winner,preference,answer\n1,x,y,A,2,text\n")
    assert [game.verdict for game in read_verdicts(path).verdicts] == [A]


def test_names_of_grades_are_those_of_run(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("id,system_name,question,answer,clear,answer grade\nq7,x,why?,because,3,1\n")
    read = read_opinions(path)
    assert [(one.query_id, one.item, one.value) for one in read.groups[""]] == [
        ("q7", ("x", "clear"), 3),
        ("q7", ("x", "answer grade"), 1),
    ]
    path.write_text("id,system_name,criterion,grade,rater_id\nq7,x,clear,3,me\n")
    (one,) = read_opinions(path).groups[""]
    assert (one.query_id, one.item, one.rater, one.value) == ("q7", ("x", "clear"), "me", 3)
    path.write_text("topic_id,document_id,relevance\nq7,d1,-2\nq7,d2,-1\nq7,d3,-1\n")
    labels = read_opinions(path)
    assert labels.level == "labels"
    assert labels.notes == ("3 labels below 0: -2 (1), -1 (2); each counts as a label of its own",)
