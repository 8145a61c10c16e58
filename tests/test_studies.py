"""The studies of recorded judgments: every command of their page is run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conversations import page, read_grades, simulated
from benchmarks.studies import a_quarter, llmbar_tables, with_words
from tests.test_docs import ROOT, assert_occur_in_order, blocks, shown

COMMANDS = [
    entry
    for block in blocks(ROOT / "benchmarks/studies.md")
    if block.language == "text" and block.file is None
    for entry in shown(block.text)
]


@pytest.fixture(scope="module")
def made(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tables that ``benchmarks.studies`` makes."""
    folder = tmp_path_factory.mktemp("made")
    with_words(shared / "data/mtbench_multijudge", folder / "words.csv")
    a_quarter(shared / "data/mtbench_human/human_votes.csv", folder / "few.csv")
    llmbar_tables(shared / "data/llmbar", folder / "verdicts.csv", folder / "gold.csv", folder / "panel.csv")
    return folder


@pytest.mark.parametrize("entry", COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_says_what_the_page_shows(
    entry: Any, cli: Any, shared: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    words: list[str] = []
    for word in shlex.split(entry.command.replace("$RAGLEAGUE_SHARED", str(shared)))[1:]:
        folder, _, pattern = word.rpartition("/")
        words += [str(path) for path in sorted(Path(folder).glob(pattern))] if "*" in pattern else [word]
    ended = cli(*words)
    assert ended.status == entry.status, ended.err
    assert_occur_in_order(entry, ended.out)


def test_intervals_by_conversation_are_what_their_section_says(shared: Path) -> None:
    grades = read_grades(shared / "data/mtrag_human")
    said, _, _ = page(grades, 1).partition("Two agents as good")
    assert said in (ROOT / "benchmarks/README.md").read_text()
    of_people = grades.ratings(grades.conversations)
    assert [(row.agent, round(row.bt)) for row in of_people.agents] == [
        ("reference", 1038),
        ("gpt-4o", 998),
        ("llama-3.1-405b-instruct", 964),
    ]
    assert (of_people.unit, of_people.units) == ("conversation", 10)


def test_simulated_intervals_hold_by_conversation_and_not_by_turn() -> None:
    found = simulated(100, 40, 8, seed=1)
    assert 0.92 <= found["by conversation"].covered <= 0.97
    assert found["by turn"].covered < 0.85
