"""The public interface: what ``import ragleague`` gives."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ragleague as rl

CONFIG = """
name: own
store: own.db
data: {{queries: queries.csv, documents: documents.csv, answers: answers.csv}}
judges: {{own: {{provider: python, function: "judge.py:{name}"}}}}
pairwise: {{judges: own}}
"""


@pytest.fixture(scope="module")
def demo(played_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(played_demo, tmp_path_factory.mktemp("interface") / "demo"))


@pytest.fixture(scope="module")
def board(demo: Path) -> rl.Board:
    return rl.open(demo / "tournament.yaml")


def test_every_public_name_is_there_and_costs_nothing_before_it_is_used() -> None:
    assert all(getattr(rl, name) is not None for name in rl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'play_all'"):
        rl.play_all  # noqa: B018
    loaded = "import ragleague, sys; print([m for m in ('numpy', 'arena', 'judges', 'pandas') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_board_says_what_the_command_says(
    board: rl.Board, demo: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo)  # a long path takes more lines of the one screen
    told = cli("leaderboard", "tournament.yaml")
    shown, _, _ = repr(board).partition(" Not known")  # the command has two more lines, and less room for this list
    assert told.out.startswith(shown)
    frame = board.to_frame()
    assert (
        ",".join(frame.columns) == cli("leaderboard", demo / "tournament.yaml", "--format", "csv").out.splitlines()[0]
    )
    assert list(frame["agent"]) == [row.agent for row in board.ratings.agents]
    assert board.conclusion.standing == "none"
    assert board.complete


def test_scores_are_those_of_the_leaderboard(board: rl.Board) -> None:
    frame = board.to_frame().set_index("agent")
    exam = board.scores("exam").set_index("agent")
    pd.testing.assert_series_equal(exam["value"].sort_index(), frame["exam_cover"].sort_index(), check_names=False)
    assert (exam["low"] < exam["value"]).all()
    by_query = board.scores("exam", by="query")
    means = by_query.drop(columns=["score", "query_id"]).mean()
    pd.testing.assert_series_equal(means.sort_index(), exam["value"].sort_index(), check_names=False)
    refusals = {"alignment", "risk", "carefulness", "wrongly_declined", "coverage"}
    assert set(board.scores()["score"]) == {"pairwise", "criteria", "exam", "nuggets", "nDCG@10"} | refusals
    with pytest.raises(rl.InputError, match="no score 'fame'; there are pairwise"):
        board.scores("fame")


def test_games_of_a_board_give_its_ratings(board: rl.Board) -> None:
    games = board.games()
    assert len(games) == 1092
    rated = rl.rate(games, bootstrap=50)
    points = rated.to_frame().set_index("agent")["bt"].sort_index()
    pd.testing.assert_series_equal(points, board.to_frame().set_index("agent")["bt"].sort_index(), atol=0.01)
    assert repr(rated).startswith("Read with care: Tie at the top.")
    assert "rag-dense" in rated._repr_html_()


@pytest.mark.parametrize("what", ["compare", "ratings", "matrix"])
def test_pictures_are_drawn_in_notebooks_and_written(board: rl.Board, what: Any, tmp_path: Path) -> None:
    picture = board.plot(what, tmp_path / "picture.svg")
    assert "weak-baseline" in (picture._repr_html_() or "")
    assert "<svg" in (tmp_path / "picture.svg").read_text()


def test_a_board_shows_itself_in_a_notebook_and_writes_a_report(board: rl.Board, tmp_path: Path) -> None:
    shown = board._repr_html_()
    assert "No language model judged these games" in shown
    assert "<script" not in shown
    assert board.report(tmp_path / "r.html").read_text().startswith("<!doctype html>\n<!-- ragleague report -->")
    with pytest.raises(rl.InputError, match=r"must end in \.html"):
        board.report(tmp_path / "r.txt")
    with pytest.raises(rl.InputError, match="no plot 'pie'"):
        board.plot("pie")  # type: ignore[arg-type]


def test_a_run_asks_nothing_twice_also_where_a_loop_is_running(demo: Path) -> None:
    async def in_a_notebook() -> tuple[rl.Board, rl.Board]:
        return rl.run(demo / "tournament.yaml", progress=False), await rl.arun(demo / "tournament.yaml", progress=False)

    assert all(len(again.games()) == 1092 for again in asyncio.run(in_a_notebook()))


def test_two_agents_are_compared_as_by_the_command(board: rl.Board, demo: Path, cli: Callable[..., Any]) -> None:
    found = board.compare("rag-hybrid", "weak-baseline", on=["pairwise", "exam"], margin=0.1)
    assert (found.verdict, found.passed) == ("better", True)
    names = ["rag-hybrid", "weak-baseline", "--on", "pairwise", "--on", "exam", "--margin", "0.1", "--format", "md"]
    assert found.markdown() == cli("compare", demo / "tournament.yaml", *names).out
    with pytest.raises(rl.InputError, match="no agent 'x'"):
        board.compare("x", "rag-bm25")


def test_a_wrong_table_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(rl.InputError, match="unknown key 'sed'; did you mean 'seed'"):
        rl.rate([], sed=1)
    verdicts = [{"agent_a": "a", "agent_b": "b", "verdict": "A"}]
    frame = pd.DataFrame([("a", "b", "A"), ("a", "b", "Z")], columns=["agent_a", "agent_b", "verdict"])
    unnamed = [{"agent_a": "a", "agent_b": "b", "winner_is": "A"}]
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: rl.open(tmp_path / "absent.db"), r"absent\.db"),
        (
            lambda: rl.rate(verdicts, cluster="zz"),
            r"^verdicts: has no column 'zz' besides those of the verdicts; its other columns: none$",
        ),
        (
            lambda: rl.rate(unnamed),
            r"^verdicts:1: no column 'verdict'; found .*; or give columns=\{'verdict': 'NAME'\}$",
        ),
        (lambda: rl.rate(frame), r"^verdicts:2: 'verdict' must be A, B, .* means: values=\{'WORD': 'A'\} \('Z'\)$"),
        (lambda: rl.rate(frame.assign(verdict=["A", None])), r"^verdicts:2: no verdict .* give skip_empty=True"),
        (lambda: rl.rate(frame.assign(agent_b="a")), r"^verdicts:1: an agent plays .* give skip_self_play=True"),
        (lambda: rl.rate(frame.assign(verdict=[0, 1])), r"^verdicts:1: .* as in values=\{'0': 'A', '1': 'B'\}$"),
        (lambda: rl.rate(frame[:0]), "^verdicts: the table has no rows; add at least one$"),
        (lambda: rl.rate(pd.concat([frame, frame], axis=1)), "^verdicts: two columns have the same name; rename one$"),
        (lambda: rl.rate(3), r"^verdicts: give a frame, dictionaries or a file, and not int$"),  # type: ignore[arg-type]
    ]
    for call, said in wrong:
        with pytest.raises(rl.InputError, match=said):
            call()


JUDGES = """
class Shorter:
    def __call__(self, prompt):
        assert prompt.startswith(prompt.asked.system)
        first, second = prompt.asked.inputs.answers
        return "A" if len(first.text) < len(second.text) else "B"

def as_mapping(prompt):
    (name,) = prompt.asked.contract.choices
    return {prompt.asked.contract.reason: "first", name: "A"}

async def broken(prompt):
    raise ConnectionError("the model is away")

def silent(prompt):
    return None
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Shorter", {"weak-baseline"}),
        ("as_mapping", set()),
        ("broken", "exception: ConnectionError: the model is away"),
        ("silent", "contract: the function returned a NoneType, not a text or a mapping"),
    ],
)
def test_a_judge_of_ones_own(name: str, expected: Any, demo: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    for table in ("queries.csv", "documents.csv", "answers.csv"):
        rows = pd.read_csv(demo / table, dtype=str)
        rows[rows["qid"].isin(["q01", "q02", "q03"])].to_csv(tmp_path / table, index=False)
    (tmp_path / "judge.py").write_text(JUDGES)
    (tmp_path / "own.yaml").write_text(CONFIG.format(name=name))
    board = rl.run(tmp_path / "own.yaml", progress=False)
    if isinstance(expected, str):
        assert not board.complete
        causes = cli("failures", tmp_path / "own.yaml", "--format", "json").out
        cause, _, message = expected.partition(": ")
        assert f'"{cause}"' in causes
        assert message in causes
    else:
        assert board.complete
        games = board.games()
        if expected:
            assert set(board.to_frame()["agent"][:1]) == expected
        else:
            assert set(games["verdict"]) <= {"A", "TIE"}


def test_functions_are_agents_and_are_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = rl.load({"old": [{"question": f"Why {n}?", "answer": f"Because of {n}."} for n in range(4)]})
    asked: list[str] = []

    def text(query: rl.Query) -> str:
        asked.append(query.text)
        return f"Nobody knows {query.text}"

    async def whole(query: rl.Query) -> rl.Answer:
        asked.append(query.text)
        if "3" in query.text:
            raise ConnectionError("the model is away")
        return {"answer": "It is written [1].", "documents": [{"id": "d1", "text": "A text."}], "cost_usd": 0.5}

    def changed(query: rl.Query) -> str:
        asked.append(query.text)
        return f"Everybody knows {query.text}"

    def play(agents: dict[str, Any]) -> rl.Board:
        asked.clear()
        return rl.run(data, agents=agents, judge="lexical", progress=False)

    board = play({"text": text, "whole": whole})
    assert len(asked) == 8
    assert not board.complete
    games = board.games()
    assert len(games) == 2 * (3 * 3 + 1)
    assert set(games["agent_a"]) == {"old", "text", "whole"}
    assert asyncio.run(rl.arun(data, agents={"text": text, "whole": whole}, judge="lexical")).tournament
    assert [board.to_frame()["games"].sum(), *asked[8:]] == [2 * len(games) / 2, "Why 3?"]
    play({"text": changed, "whole": whole})
    assert sorted(asked) == ["Why 0?", "Why 1?", "Why 2?", "Why 3?", "Why 3?"]
    play({"text": {"kind": "python", "function": changed, "version": "2"}, "whole": whole})
    assert len(asked) == 5


def test_agents_alone_answer_loaded_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = rl.load(queries=[{"qid": f"q{n}", "query": f"Why {n}?"} for n in range(3)])
    agents: dict[str, Any] = {name: lambda query, name=name: f"{name}: {query.text}" for name in ("one", "other")}
    board = rl.run(data, agents=agents, judge="lexical", progress=False)
    assert set(board.games()["agent_a"]) == {"one", "other"}  # of one source, but each was asked
    assert board.complete

    def broken(query: rl.Query) -> str:
        raise ConnectionError("the model is away")

    for wrong, message in (
        ({}, "no game can be played: there are no answers"),
        ({"one": agents["one"]}, "'one' is the only agent; add the answers of another"),
        ({"one": "mine.py:ask"}, r"name each agent's function, such as agents=\{'new': my_function\}"),
        ([broken], "name each agent's function"),
        ({"one": broken, "other": broken}, "nothing was judged; agent 'one' answered nothing: ConnectionError: the mo"),
    ):
        with pytest.raises(rl.InputError, match=message):
            rl.run(data, agents=wrong, judge="lexical", progress=False)  # type: ignore[arg-type]
    with pytest.raises(rl.InputError, match="give answers, or queries"):
        rl.load()


VERDICTS = [{"qid": str(n), "agent_a": "x", "agent_b": "y", "verdict": "AB"[n % 2]} for n in range(4)]
ANSWERS = {name: [{"question": "Why?", "answer": name}] for name in "xy"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda _: rl.rate(VERDICTS, bootstrap="x"), "rate.bootstrap: must be a whole number, not 'x'"),
        (lambda _: rl.rate(VERDICTS, level=95), "rate.level: must be less than 1, not 95"),
        (lambda _: rl.rate(VERDICTS, initial=float("nan")), "rate.initial: must be a finite number, not nan"),
        (lambda _: rl.rate(VERDICTS, columns=["verdict"]), "columns: must be a section, such as .*, not .'verdict'."),
        (lambda _: rl.rate(VERDICTS, covariates="length"), "covariates: must be a list, such as .*, not 'length'"),
        (lambda _: rl.rate([1, 2]), "verdicts: give a frame, dictionaries or a file, and not int"),
        (lambda _: rl.load(ANSWERS, limit="many"), "limit: must be a whole number, not 'many'"),
        (lambda _: rl.load(ANSWERS, limit=0), "limit: must be at least 1, not 0"),
        (
            lambda _: rl.load(ANSWERS, columns={"answer": 3}),
            "columns.answer: must be a text in quotes or a list, .*, not 3",
        ),
        (lambda _: rl.load([None]), "answers: give files, frames, dictionaries or samples, and not NoneType"),
        (lambda _: rl.load({}), "answers: the table has no rows; add at least one"),
        (lambda _: rl.load(""), "answers: the name of a file is empty; name a file"),
        (lambda _: rl.load({"a": 3}), "a: give files, frames, dictionaries or samples, and not int"),
        (lambda _: rl.run(rl.load(ANSWERS), judge="lexical", store=3), "store: must be a text .*, not 3"),
        (lambda _: rl.run(rl.load(ANSWERS)), "run: loaded data need a judge, such as judge='openai/gpt-4.1-mini'"),
        (
            lambda _: rl.run(rl.load(ANSWERS), judge="lexical", limit=1),
            "run: limit is only for a YAML file; limit loaded",
        ),
        (lambda _: rl.run("own.yaml", judge="lexical"), "run: own.yaml names agents, judge and store itself; leave"),
        (lambda _: rl.run([], judge="lexical"), "run: give a YAML file or the result of rl.load, and not list"),
        (lambda _: rl.open(3), "open: must be a text in quotes or the path of a file, not 3"),
        (lambda board: board.compare("rag-bm25", "rag-dense", margin="x"), "margin: must be a number, not 'x'"),
        (lambda board: board.compare("rag-bm25", "rag-dense", margin=-1), "--margin -1: give a number from 0 to "),
        (lambda board: board.compare("rag-bm25", "rag-dense", on=3), "on: must be a text .*, not 3"),
        (lambda board: board.plot("compare", 3), "path: must be a text in quotes or the path of a file, not 3"),
        (lambda board: board.report(3), "report: must be a text in quotes or the path of a file, not 3"),
    ],
)
def test_an_argument_of_a_wrong_kind_is_named(board: rl.Board, call: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(rl.InputError, match=f"^{said}"):
        call(board)


def test_json_is_what_the_commands_print(demo: Path, board: rl.Board, cli: Any, tmp_path: Path) -> None:
    assert board.json() == json.loads(cli("leaderboard", demo / "tournament.yaml", "--format", "json").out)
    table = tmp_path / "verdicts.csv"
    assert cli("export", "verdicts", demo / "tournament.yaml", table).status == 0
    assert rl.rate(table).json() == json.loads(cli("rate", table, "--format", "json").out)


def test_categories_are_read_as_texts() -> None:
    rows = [(f"q{number}", "x", "y", "AB"[number % 3 == 0]) for number in range(9)]
    table = pd.DataFrame(rows, columns=["qid", "agent_a", "agent_b", "verdict"])
    assert rl.rate(table.astype("category")).json() == rl.rate(table).json()


def test_columns_of_several_kinds_are_names_and_gaps_make_no_fractions() -> None:
    plain = [{**own, "qid": str(at % 7), "verdict": "12"[at % 3 > 0]} for at, own in enumerate(VERDICTS * 9)]
    mixed = [{**own, "qid": at % 7 if at % 2 else str(at % 7)} for at, own in enumerate(plain)]
    assert rl.rate(mixed).json() == rl.rate(plain).json()
    gaps = pd.DataFrame([*plain, {**plain[0], "verdict": None}]).astype({"verdict": float})
    assert rl.rate(gaps, skip_empty=True).to_frame().equals(rl.rate(plain).to_frame())
    with pytest.raises(rl.InputError, match="skip_empty=True"):
        rl.rate(gaps)
    with pytest.raises(rl.InputError, match="has no rows"):
        rl.rate(gaps[:0])
