import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arena.data.verdicts import is_win_matrix, read_verdicts, read_win_matrix, write_verdicts
from arena.ratings.games import GameVerdict
from judges.errors import DataError
from judges.types import Verdict
from retrieval_eval.data.rows import spelling_problem

A, B, TIE = Verdict


def table(folder: Path, content: str, name: str = "verdicts.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def only_game(folder: Path, header: str, row: str) -> GameVerdict:
    (game,) = read_verdicts(table(folder, f"{header}\n{row}\n")).verdicts
    return game


def problem(path: Path, **options: bool) -> str:
    with pytest.raises(DataError) as raised:
        read_verdicts(path, **options)
    return str(raised.value)


def test_our_own_columns_are_read(tmp_path: Path) -> None:
    read = read_verdicts(
        table(tmp_path, "qid,agent_a,agent_b,verdict,judge,reason,words\nq1,x,y,A,j,short,3\nq1,y,x,TIE,j,,4\n")
    )
    assert read.verdicts == [GameVerdict("q1", "x", "y", A, "j"), GameVerdict("q1", "y", "x", TIE, "j")]
    assert read.extras == {"reason": ["short", ""], "words": ["3", "4"]}
    assert (read.rows, read.skipped, read.self_play, read.duplicates, read.conflicts) == (2, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("word", "verdict"),
    [(word, A) for word in ("A", "a", "model_a", "agent_a", "left", "first", "1", "x")]
    + [(word, B) for word in ("B", "b", "model_b", "agent_b", "right", "second", "2", "y")]
    + [(word, TIE) for word in ("TIE", "tie", "Draw", "C", "n", "tie (bothbad)", "tie (inconsistent)")],
)
@pytest.mark.parametrize("column", ["verdict", "winner", "vote"])
def test_spellings_of_a_verdict(tmp_path: Path, column: str, word: str, verdict: Verdict) -> None:
    assert only_game(tmp_path, f"agent_a,agent_b,{column}", f"x,y,{word}").verdict == verdict


@pytest.mark.parametrize("word", ["0", "A wins", "ab", "both", "z", "[[A]]", "3", "1.5", "?"])
def test_an_unknown_winner_is_never_a_tie(tmp_path: Path, word: str) -> None:
    path = table(tmp_path, f"agent_a,agent_b,winner\nx,y,A\nx,y,{word}\n")
    assert problem(path, skip_empty=True).startswith(f"{path}:3: 'winner' must be A, B, TIE")
    assert repr(word) in problem(path)


@pytest.mark.parametrize("order", ["ba", "BA", "2", "second"])
def test_order_turns_places_and_letters_keep_their_columns(tmp_path: Path, order: str) -> None:
    shown = {"A": B, "1": B, "x": B, "model_a": B, "B": A, "tie": TIE, "left": A, "right": B, "first": A}
    for word, verdict in shown.items():
        game = only_game(tmp_path, "qid,agent_a,agent_b,winner,order", f"q,x,y,{word},{order}")
        assert game == GameVerdict("q", "y", "x", verdict), word


@pytest.mark.parametrize("order", ["ab", "AB", "1", "first"])
def test_order_ab_is_as_written(tmp_path: Path, order: str) -> None:
    assert only_game(tmp_path, "agent_a,agent_b,verdict,order", f"x,y,A,{order}") == GameVerdict(None, "x", "y", A)


def test_an_empty_order_is_counted_and_an_unknown_one_refused(tmp_path: Path) -> None:
    assert read_verdicts(table(tmp_path, "agent_a,agent_b,verdict,order\nx,y,A,\nx,y,B,ba\n")).order_unknown == 1
    assert ":2: 'order' must be one of ab, ba" in problem(
        table(tmp_path, "agent_a,agent_b,verdict,order\nx,y,A,abba\n")
    )


def test_a_row_with_both_orders_is_two_games_and_letters_mean_places(tmp_path: Path) -> None:
    header = "question_id,judge,model_a,model_b,winner_ab,winner_ba,final"
    read = read_verdicts(table(tmp_path, f"{header}\n1,j,x,y,A,A,inconsistent\n1,j,x,z,tie,z,z\n"))
    assert read.verdicts == [
        GameVerdict("1", "x", "y", A, "j"),
        GameVerdict("1", "y", "x", A, "j"),
        GameVerdict("1", "x", "z", TIE, "j"),
        GameVerdict("1", "z", "x", A, "j"),
    ]
    assert read.extras == {"final": ["inconsistent"] * 2 + ["z"] * 2}
    assert read.rows == 2
    mapped = read_verdicts(table(tmp_path, f"{header}\n1,j,x,y,B,A,tie\n"), columns={"verdict": "winner_ba"})
    assert mapped.verdicts == [GameVerdict("1", "y", "x", A, "j")]


@pytest.mark.parametrize(("text", "verdict"), [("1", A), ("1.0", A), ("1.49", A), ("2.0", B), ("1.5001", B)])
def test_a_preference_goes_to_the_nearer_side(tmp_path: Path, text: str, verdict: Verdict) -> None:
    assert only_game(tmp_path, "iid,baseline,model,preference", f"3,x,y,{text}") == GameVerdict("3", "x", "y", verdict)


def test_preferences_that_are_ties_or_nothing(tmp_path: Path) -> None:
    path = table(tmp_path, "baseline,model,preference\nx,y,1.5\nx,y,0\nx,y,0.0\n")
    assert [game.verdict for game in read_verdicts(path, values={"0": "TIE"}).verdicts] == [TIE] * 3
    for text in ("0.9", "2.1", "-1", "inf"):
        assert "must be A, B, TIE" in problem(table(tmp_path, f"baseline,model,preference\nx,y,{text}\n"))


@pytest.mark.parametrize("empty", ["", " ", "error", "NaN"])
def test_a_row_without_a_verdict_is_refused_or_counted(tmp_path: Path, empty: str) -> None:
    path = table(tmp_path, f"agent_a,agent_b,verdict\nx,y,A\nx,y,{empty}\n")
    assert ":3: no verdict in 'verdict'" in problem(path)
    read = read_verdicts(path, skip_empty=True)
    assert (read.rows, len(read.verdicts), read.skipped) == (2, 1, 1)


def test_self_play_is_refused_or_counted(tmp_path: Path) -> None:
    path = table(tmp_path, "agent_a,agent_b,verdict\nx,y,A\nx,x,A\n")
    assert ":3: an agent plays against itself" in problem(path)
    assert "('x')" in problem(path)
    read = read_verdicts(path, skip_self_play=True)
    assert (read.rows, len(read.verdicts), read.self_play) == (2, 1, 1)


@pytest.mark.parametrize("row", ["q,,y,A", "q,x,nan,A", "q,NaN,y,A", ",x,y,A", "q, ,,A"])
def test_missing_names_are_refused_with_their_line(tmp_path: Path, row: str) -> None:
    path = table(tmp_path, f"qid,agent_a,agent_b,verdict\nq,x,y,A\n{row}\n")
    assert problem(path, skip_empty=True, skip_self_play=True).startswith(f"{path}:3: ")


def test_a_name_that_is_also_a_word_for_the_other_side_is_refused(tmp_path: Path) -> None:
    assert ":2: the winner is ambiguous" in problem(table(tmp_path, "agent_a,agent_b,winner\nb,a,b\n"))
    assert only_game(tmp_path, "agent_a,agent_b,verdict", "B,A,A").verdict == A


def test_repeats_and_conflicts_are_counted_and_kept(tmp_path: Path) -> None:
    rows = ["q,x,y,A,j,r1", "q,x,y,A,j,r2", "q,x,y,B,j,r3", "q,y,x,A,j,r4", "q,x,y,A,k,r5", "q,x,y,A,j,r6"]
    read = read_verdicts(table(tmp_path, "\n".join(["qid,agent_a,agent_b,verdict,judge,reason", *rows]) + "\n"))
    assert (len(read.verdicts), read.duplicates, read.conflicts) == (6, 2, 1)


def test_a_further_column_tells_games_apart(tmp_path: Path) -> None:
    read = read_verdicts(table(tmp_path, "agent_a,agent_b,verdict,turn\nx,y,A,1\nx,y,B,2\nx,y,B,2\n"))
    assert (read.duplicates, read.conflicts) == (1, 0)


def test_columns_of_other_names_can_be_mapped(tmp_path: Path) -> None:
    path = table(tmp_path, "verdict,home,away,gold\nnonsense,x,y,b\n")
    read = read_verdicts(path, columns={"agent_a": "home", "agent_b": "away", "verdict": "gold"})
    assert read.verdicts == [GameVerdict(None, "x", "y", B)]
    assert read.extras == {"verdict": ["nonsense"]}
    with pytest.raises(DataError, match=r"no column 'golf'"):
        read_verdicts(path, columns={"verdict": "golf"})
    with pytest.raises(DataError, match="ragleague has no such column for verdicts"):
        read_verdicts(path, columns={"victor": "gold"})
    with pytest.raises(DataError, match="no column 'agent_a'"):
        read_verdicts(path)


def test_lines_of_jsonl_may_differ_in_their_columns(tmp_path: Path) -> None:
    first = {"agent_a": "x", "agent_b": "y", "verdict": "A"}
    lines = [first, {**first, "order": "ba", "note": "n"}, {"model_a": "x", "model_b": "y", "winner": "model_b"}]
    path = table(tmp_path, "".join(json.dumps(line) + "\n" for line in lines), "verdicts.jsonl")
    read = read_verdicts(path)
    assert [(game.agent_a, game.verdict) for game in read.verdicts] == [("x", A), ("y", B), ("x", B)]
    assert read.extras == {"note": ["", "n", ""]}
    table(tmp_path, json.dumps(first) + '\n{"agent_a": "x", "agent_b": "y"}\n', "verdicts.jsonl")
    assert ":2: no column 'verdict'" in problem(path)


storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
agent_names = st.sampled_from(["A", "B", "tie", "C", "left", "model_b", "1"]) | storable_text.filter(
    lambda name: bool(name.strip()) and name.casefold() not in {"nan", "<na>"}
)


@st.composite
def written_games(draw: st.DrawFn) -> list[GameVerdict]:
    pairs = st.lists(agent_names, min_size=2, max_size=2, unique=True)
    with_query = draw(st.booleans())
    games = draw(st.lists(st.tuples(pairs, st.sampled_from(Verdict), storable_text), min_size=1, max_size=6))
    spelt: dict[str, str] = {}
    assume(not any(spelling_problem("agents", name, spelt) for pair, _, _ in games for name in pair))
    return [
        GameVerdict(draw(agent_names) if with_query else None, *pair, verdict, judge) for pair, verdict, judge in games
    ]


@settings(max_examples=80, deadline=None)
@given(games=written_games(), extension=st.sampled_from([".csv", ".tsv.gz", ".jsonl", ".parquet"]))
def test_any_verdicts_come_back_equal(
    tmp_path_factory: pytest.TempPathFactory, games: list[GameVerdict], extension: str
) -> None:
    path = tmp_path_factory.mktemp("verdicts") / f"verdicts{extension}"
    write_verdicts(path, games)
    read = read_verdicts(path)
    assert read.verdicts == games
    assert read.order_unknown == 0


def test_writing_refuses_what_would_not_come_back(tmp_path: Path) -> None:
    games = [GameVerdict("q", "x", "y", A), GameVerdict(None, "x", "y", A)]
    with pytest.raises(ValueError, match="every game has a query or none"):
        write_verdicts(tmp_path / "v.csv", games)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("agent,x,y\nx,,60\ny,41,\n", ":3: this agent and 'x' together won more than all games ('41 + 60')"),
        ("agent,x,y\nx,,60\ny,,\n", ":3: only one of the two percentages of this agent and 'x' is given"),
        ("agent,x,y\nx,,many\ny,4,\n", ":2: the percentage against 'y' must be a number from 0 to 100 ('many')"),
        ("agent,x,y\nx,,101\ny,0,\n", ":2: the percentage against 'y' must be"),
        ("agent,x,y\nx,,60\nx,4,\n", ":3: this agent already has a row; remove one ('x')"),
        ("agent,x\nx,\ny,4\n", "no column 'y'"),
        (
            "agent,x,y,z\nx,,60,1\ny,4,,1\n",
            "this column has the name of no agent with a row; add a row for this agent, or remove the column ('z')",
        ),
        ("agent,x,y\nx,,0.6\ny,0.4,\n", "if these are fractions, multiply them by 100"),
        ("agent,x,y\nx,,\ny,,\n", "no value is above 1"),
    ],
)
def test_a_matrix_that_is_none_is_refused(tmp_path: Path, content: str, expected: str) -> None:
    path = table(tmp_path, content, "matrix.csv")
    assert is_win_matrix(path)
    with pytest.raises(DataError) as raised:
        read_win_matrix(path)
    assert expected in str(raised.value)


def test_agents_that_never_met_have_no_percentage(tmp_path: Path) -> None:
    _, percentages = read_win_matrix(table(tmp_path, "model,x,y,z,average\nx,,60,,6\ny,40,,50,1\nz,,50,,1\n"))
    assert np.isnan(percentages[0, 2])
    assert percentages[1].tolist()[0] == 40


def test_the_verdicts_that_ragelo_writes_are_read_as_they_are(tmp_path: Path) -> None:
    table = tmp_path / "pairwise_answers_evaluations.csv"
    table.write_text(
        "qid,agent_a,agent_b,raw_answer,answer,relevance\n"
        'q_1,agent1,agent2,"Both answer.\n[[A]]",A,\nq_1,agent2,agent1,Equal. [[C]],C,\n'
    )
    read = read_verdicts(table)
    assert [game.verdict for game in read.verdicts] == [Verdict.A, Verdict.TIE]
    assert read.extras["reason"][1] == "Equal. [[C]]"
