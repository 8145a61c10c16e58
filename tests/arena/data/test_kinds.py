"""What can be judged: one record a kind, which files, votes and calibration read alike."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from arena.config.stages import further_stages
from arena.data.dataset import Dataset
from arena.data.kinds import FLAG, KINDS, Annotation, kind_of, kind_of_columns, texts_now
from arena.people.votes import read_table, write_table
from judges.types import Answer, Document, Query

ROOT = Path(__file__).resolve().parents[3]
DATA = Dataset(
    {"q": Query("q", "Why do cats purr?")},
    {"d": Document("d", "Purring calms.")},
    {("q", agent): Answer("q", agent, f"It calms, says {agent} [d].") for agent in "xy"},
)
SAID = [
    Annotation("verdict", "ann", "q", "y", "x", "", "A"),
    Annotation("relevance", "ann", "q", "d", "", "", 2),
    Annotation("criteria", "ann", "q", "x", "", "", {"depth": 0, "tone": 1.5}),
    Annotation("support", "ann", "q", "x", json.dumps([0, "d"]), "", 1),
]


@pytest.mark.parametrize("annotation", SAID, ids=lambda annotation: annotation.kind)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_what_is_written_of_a_kind_is_read_back_the_same(tmp_path: Path, annotation: Annotation, ending: str) -> None:
    kind, path = KINDS[annotation.kind], tmp_path / f"votes.{ending}"
    assert list(kind.annotations(kind.opinions(annotation))) == [annotation]
    write_table(path, kind, [annotation])
    digest = texts_now(annotation, DATA, {})
    assert read_table(path, DATA).annotations == [replace(annotation, texts=digest)]


def test_a_table_holds_the_kind_with_the_most_of_its_columns() -> None:
    kinds = [kind for kind in KINDS.values() if kind.level and kind.name != "verdict"]
    assert len(kinds) == 5
    for kind in kinds:
        assert kind_of_columns({"qid", "did", "label", *kind.columns, kind.column}) is kind
    assert kind_of_columns({"qid", "agent", "tone"}) is None


def test_every_kind_but_flags_has_a_level_of_its_own() -> None:
    levels = {kind.level: kind for kind in KINDS.values() if kind is not FLAG}
    assert len(levels) == len(KINDS) - 1
    assert [kind_of(level) for level in levels] == [*levels.values()]
    assert all(kind.form is not None and kind.section for kind in levels.values())


@pytest.mark.parametrize("key", further_stages())
def test_at_most_three_files_besides_its_modules_name_a_stage(key: str) -> None:
    naming = []
    for package in ("arena", "ui"):
        for path in sorted((ROOT / package).rglob("*.py")):
            nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
            words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
            modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
            if path.stem != key and (key in words or any(module.split(".")[-1] == key for module in modules)):
                naming.append(path.name)
    assert len(naming) <= 3, naming
