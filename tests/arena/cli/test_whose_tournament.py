"""A configuration shows its own tournament, or says in one line what is stored under its name instead."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import ragleague as rl

Cli = Callable[..., Any]
CONFIG = """
name: x
store: shared.db
data: {{answers: [{files}]}}
judges: {{words: {{provider: lexical}}{judges}}}
pairwise: {{judges: {judge}}}
"""
READERS: Sequence[Sequence[str]] = (
    ("leaderboard", "{}"),
    ("report", "{}", "--out", "r.html"),
    ("export", "verdicts", "{}", "v.csv"),
    ("compare", "{}", "p", "q"),
    ("failures", "{}"),
    ("calibrate", "{}"),
    ("publish", "{}", "site"),
    ("queries", "{}"),
)


def answers(folder: Path, *agents: str, queries: int = 3, words: str = "says") -> None:
    for agent in agents:
        rows = [f"Why {n}?,{agent} {words} {n}\n" for n in range(queries)]
        (folder / f"{agent}.csv").write_text(f"question,answer\n{''.join(rows)}")


def config(path: Path, *agents: str, judge: str = "words", judges: str = "") -> Path:
    files = ", ".join(f"{agent}.csv" for agent in agents)
    path.write_text(CONFIG.format(files=files, judge=judge, judges=judges))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    """Agents p and q, of which a.yaml has run a tournament."""
    monkeypatch.chdir(tmp_path)
    answers(tmp_path, "p", "q", "r", "s")
    assert cli("run", config(tmp_path / "a.yaml", "p", "q")).status == 0
    return tmp_path


OTHER = "another file ran the tournament 'x' in the store (agents p and q; judges words); run this file first"


@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
def test_no_command_shows_what_another_file_ran_under_the_name(command: Sequence[str], folder: Path, cli: Cli) -> None:
    config(folder / "b.yaml", "r", "s")
    told = cli(*(word.format("b.yaml") for word in command))
    assert (told.status, told.out) == (2, "")
    assert " ".join(told.err.split()) == f"error: b.yaml: {OTHER}, or give its tournament another name"
    assert OTHER not in cli(*(word.format("a.yaml") for word in command)).err


def test_neither_does_python_nor_pytest(folder: Path) -> None:
    config(folder / "b.yaml", "r", "s")
    with pytest.raises(rl.InputError, match="another file ran the tournament"):
        rl.open("b.yaml")
    assert set(rl.open("a.yaml").games()["agent_a"]) == {"p", "q"}
    board = rl.run("b.yaml", progress=False)
    assert set(board.games()["agent_a"]) == set(rl.open("b.yaml").games()["agent_a"]) == {"r", "s"}
    with pytest.raises(rl.InputError, match=r"^a\.yaml: .*agents r and s"):
        rl.open("a.yaml")
    assert rl.open("a.yaml", "x").tournament == "x", "who names the tournament gets what the store has"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: answers(folder, "p", words="shouts"),
        lambda folder: answers(folder, "p", "q", queries=2),
        lambda folder: config(folder / "b.yaml", "p"),
        lambda folder: config(folder / "b.yaml", "p", "r"),
        lambda folder: config(folder / "b.yaml", "p", "q", judge="own", judges=", own: {provider: lexical}"),
        lambda folder: (folder / "q.csv").unlink(),
    ],
    ids=["answers", "queries", "fewer agents", "agents", "judge", "no data"],
)
def test_another_file_that_differs_in_what_is_stored_is_refused(
    change: Callable[[Path], Any], folder: Path, cli: Cli
) -> None:
    config(folder / "b.yaml", "p", "q")
    change(folder)
    told = cli("leaderboard", "b.yaml")
    assert told.status == 2
    assert "another file ran the tournament" in " ".join(told.err.split())


def test_a_copy_is_the_same_tournament(folder: Path, cli: Cli) -> None:
    shutil.copytree(folder, folder / "copy")
    told = cli("leaderboard", "copy/a.yaml", "--format", "csv")
    assert (told.out, told.err) == (cli("leaderboard", "a.yaml", "--format", "csv").out, "")
    told = cli("leaderboard", config(folder / "b.yaml", "p", "q"))
    assert (told.status, told.err) == (0, "")


def test_a_file_that_was_edited_shows_what_is_stored_and_says_what_is_not(folder: Path, cli: Cli) -> None:
    before = cli("leaderboard", "a.yaml")
    assert before.err == ""
    config(folder / "a.yaml", "p", "q", "r")
    after = cli("leaderboard", "a.yaml")
    assert (after.status, after.out) == (0, before.out)
    said = "a.yaml: not in the store yet: agent 'r'; run it to bring the store up to date"
    assert " ".join(after.err.split()) == said
    config(folder / "a.yaml", "p", "r")
    said = (
        "a.yaml: not in the store yet: agent 'r'; changed since its last run, which is shown: agent 'q'; "
        "run it to bring the store up to date"
    )
    edited = cli("leaderboard", "a.yaml")
    assert (edited.status, edited.out, " ".join(edited.err.split())) == (0, before.out, said)
    assert cli("run", "a.yaml").status == 0
    assert cli("leaderboard", "a.yaml").err == ""
