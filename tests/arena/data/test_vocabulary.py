"""A spelling of a column means the same in every table that has the column."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragleague as rl
from arena.data.files import load_dataset
from arena.data.verdicts import read_verdicts, read_win_matrix
from arena.results.exam import read_official
from arena.results.nugget_comparison import read_condition
from arena.results.opinion_tables import read_opinions
from retrieval_eval.agents.build import read_recorded
from retrieval_eval.agents.spec import AgentSpec
from retrieval_eval.data.runs import read_run
from retrieval_eval.data.table_spec import VOCABULARY, TableSpec, spellings
from retrieval_eval.data.trec import read_qrels, read_recordings
from retrieval_eval.exam.grade_files import read_graded

PACKAGES = ("retrieval_eval", "arena")


def specs() -> dict[str, TableSpec]:
    """Every kind of table, by the name of its constant."""
    here = Path(__file__).parents[3]
    found: dict[str, TableSpec] = {}
    for path in (path for package in PACKAGES for path in sorted((here / package).rglob("*.py"))):
        if ": Final = TableSpec(" in path.read_text(encoding="utf-8"):
            module = importlib.import_module(".".join(path.relative_to(here).with_suffix("").parts))
            found |= {name: value for name, value in vars(module).items() if isinstance(value, TableSpec)}
    return found


SPECS = specs()


def test_there_are_all_kinds_of_tables() -> None:
    assert {"TOPICS", "ANSWERS", "DOCUMENTS", "VERDICTS", "RUNS", "QRELS", "GRADES", "BANK", "MATRIX"} <= SPECS.keys()


@pytest.mark.parametrize("kind", SPECS)
def test_every_spelling_is_read_in_every_table_that_has_the_column(kind: str) -> None:
    spec = SPECS[kind]
    for column in spec.columns:
        # With messages, a title is not the query.
        others = [name for name in {*spec.columns, *spec.needed} - {column} if (column, name) != ("query", "messages")]
        for spelling in {*spellings(column), *spec.spellings(column)} - set(spec.columns):
            for theirs in (spelling, spelling.upper(), spelling.replace("_", " "), spelling.replace("_", "-")):
                assert spec.named([*others, theirs])[theirs] == column, (column, theirs)


def test_a_name_of_ours_is_never_read_as_another_column() -> None:
    for kind, spec in SPECS.items():
        names = [*spec.columns, *spec.needed]
        assert all(ours == theirs for theirs, ours in spec.named(names).items()), kind


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def of_answers(path: Path) -> object:
    return sorted({agent for _, agent in load_dataset(answers=[path]).answers})


def of_recorded(path: Path) -> object:
    return ["x"] if read_recorded("x", AgentSpec(kind="file", answers=path), {}, "").answers == {"q": "a x"} else []


AGENTS: dict[str, tuple[Callable[[Path], object], dict[str, Any]]] = {
    "run": (of_answers, {"query": "q", "answer": "a {}"}),
    "agents": (of_recorded, {"qid": "q", "answer": "a {}"}),
    "calibrate": (
        lambda path: sorted(one.item[0] for one in read_opinions(path).groups[""]),
        {"qid": "q", "criterion": "clear", "score": 1},
    ),
    "calibrate, wide": (
        lambda path: sorted(one.item[0] for one in read_opinions(path).groups[""]),
        {"qid": "q", "clear": 1},
    ),
    "nuggets": (lambda path: list(read_condition(path, "strict").runs), {"qid": "q", "strict": 0.5}),
    "exam": (lambda path: sorted(read_official(path)), {"score": 0.5}),
    "matrix": (lambda path: read_win_matrix(path)[0], {"x": 60, "y": 40}),
}


@pytest.mark.parametrize("spelling", ["agent", *spellings("agent")])
@pytest.mark.parametrize("kind", AGENTS)
def test_every_command_reads_every_name_of_the_agents(tmp_path: Path, kind: str, spelling: str) -> None:
    read, cells = AGENTS[kind]
    rows = [
        {spelling: agent} | {name: str(cell).replace("{}", agent) for name, cell in cells.items()} for agent in "xy"
    ]
    assert read(written(tmp_path, rows)) == (["x"] if kind == "agents" else ["x", "y"])


@pytest.mark.parametrize("spelling", ["agent", *spellings("agent")])
def test_runs_and_games_read_every_name_of_the_agents(tmp_path: Path, spelling: str) -> None:
    assert read_run(written(tmp_path, [{"qid": "q", "did": "d", "score": 1, spelling: "x"}])).name == "x"
    path = written(tmp_path, [{"qid": "q", f"{spelling}_a": "x", f"{spelling}_b": "y", "winner": "A"}])
    (game,) = read_verdicts(path).verdicts
    assert (game.agent_a, game.agent_b, game.verdict) == ("x", "y", "A")
    (row,) = read_recordings(path)
    assert (row.text("agent_a"), row.text("agent_b"), row.text("verdict")) == ("x", "y", "A")
    (opinion,) = read_opinions(path).groups[""]
    assert opinion.item == ("x", "y")
    assert {
        one.agent for one in rl.rate([{f"{spelling}_a": "x", f"{spelling}_b": "y", "winner": "A"}] * 3).ratings.agents
    } == {"x", "y"}


@pytest.mark.parametrize("spelling", [name for name in ("did", *spellings("did")) if name not in {"_id", "id"}])
def test_every_name_of_a_document_is_read(tmp_path: Path, spelling: str) -> None:
    assert read_qrels(written(tmp_path, [{"qid": "q", spelling: "d", "label": 1}])).labels == {"q": {"d": 1}}
    for label in ("label", "relevance", "rel", "grade", "score"):
        path = written(tmp_path, [{"qid": "q", spelling: "d", label: 1}])
        assert read_qrels(path).labels == {"q": {"d": 1}}
        (opinion,) = read_opinions(path).groups[""]
        assert (opinion.item, opinion.value) == (("d",), 1)
    graded = read_graded(written(tmp_path, [{"qid": "q", spelling: "d", "item": "i", "rating": 1}]))
    assert [entry.passage_id for entries in graded.grades.values() for entry in entries] == ["d"]


def test_the_vocabulary_names_a_column_once() -> None:
    for column, entry in VOCABULARY.items():
        assert entry.holds, column
        assert len({*entry.spellings, column}) == len(entry.spellings) + 1, column
