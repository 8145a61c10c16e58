"""Nuggets before and after people have edited them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.nuggets.editing import Kind, changes, edited
from retrieval_eval.nuggets.files import read_banks
from retrieval_eval.nuggets.types import Importance, NuggetBank, make_nuggets

V, O = Importance.VITAL, Importance.OKAY  # noqa: E741


def bank(*nuggets: tuple[str, Importance | None] | tuple[str, Importance | None, Any], **details: Any) -> NuggetBank:
    origins = [{"from": own[2]} if len(own) > 2 else {} for own in nuggets]
    made = make_nuggets("q", [own[0] for own in nuggets], [own[1] for own in nuggets], origins)
    return NuggetBank("q", "Why?", made, details)


OLD = bank(("a", V), ("b", V), ("c", O), ("d", O), ("e", None))


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        (OLD, [Kind.KEPT] * 5),
        (bank(("a", V)), [Kind.KEPT, *[Kind.REMOVED] * 4]),
        (bank(("a", O), ("b", V), ("c", O), ("d", O), ("e", None)), [Kind.IMPORTANCE, *[Kind.KEPT] * 4]),
        (bank(("a and b", V, ["a", "b"]), ("c", O), ("d", O), ("e", None)), [Kind.MERGED, *[Kind.KEPT] * 3]),
        (
            bank(("a1", V, "a"), ("a2", V, ["a"]), ("b", V), ("c", O), ("d", O), ("e", V)),
            [Kind.SPLIT, Kind.SPLIT, Kind.KEPT, Kind.KEPT, Kind.KEPT, Kind.IMPORTANCE],
        ),
        (
            bank(("A.", V, "a"), ("new", O), ("b", V), ("c", O), ("d", O), ("e", None)),
            [Kind.REWORDED, Kind.ADDED, *[Kind.KEPT] * 4],
        ),
        (bank(), [Kind.REMOVED] * 5),
    ],
)
def test_every_edit_is_told_by_what_the_new_list_has(after: NuggetBank, kinds: list[Kind]) -> None:
    assert [change.kind for change in changes(OLD, after)] == kinds


def test_a_merged_nugget_tells_both_texts_and_importances() -> None:
    (change, *_) = changes(OLD, bank(("c and a", V, ["c", "a"])))
    assert (change.before, change.after, change.importance_before, change.importance) == (("c", "a"), "c and a", O, V)


def test_what_was_not_there_cannot_be_the_origin() -> None:
    with pytest.raises(ValueError, match="names 'z', which the list before does not have"):
        changes(OLD, bank(("y", V, ["z"])))
    with pytest.raises(ValueError, match="must be a text or a list of texts"):
        changes(OLD, bank(("y", V, 3)))


def test_history_grows_with_every_edit_that_changes_something() -> None:
    once = edited(OLD, bank(("a", V)), by="ann", at="2026-01-01")
    assert edited(once, bank(("a", V)), by="bob", at="2026-01-02") == once
    twice = edited(once, bank(("a", O, "a")), by="bob", at="2026-01-02")
    assert [(entry["by"], len(entry["changes"])) for entry in twice.details["history"]] == [("ann", 4), ("bob", 1)]
    assert twice.nuggets[0].details == {}
    assert twice.details["history"][1]["changes"][0]["importance"] == "okay"


def written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_the_command_shows_before_and_after_and_keeps_the_history(cli: Any, tmp_path: Path) -> None:
    before = written(
        tmp_path / "before.jsonl",
        {"qid": "1", "query": "Why?", "nuggets": [{"text": "cats purr"}, {"text": "to calm"}, {"text": "dogs bark"}]},
        {"qid": "2", "query": "When?", "nuggets": [{"text": "now"}]},
    )
    merged = {"text": "purring calms", "importance": "vital", "from": ["cats purr", "to calm"]}
    after = written(tmp_path / "after.jsonl", {"qid": "1", "query": "Why?", "nuggets": [merged]})
    out = tmp_path / "out.jsonl"
    ended = cli("nuggets", "edit", before, after, "--out", out, "--by", "ann")
    assert ended.status == 0, ended.err
    assert re.search(r"merged +1 +cats purr \+ to calm +purring calms", ended.out)
    assert "dogs bark" in ended.out
    assert "1 kept, 1 merged, 1 removed" in ended.out
    assert "not in the edited file, kept as they were: 2" in ended.out
    first, second = read_banks(out)
    assert [nugget.text for nugget in first.nuggets] == ["purring calms"]
    assert first.details["history"][0]["by"] == "ann"
    assert "history" not in second.details
    assert cli("nuggets", "edit", before, after, "--out", out).status == 2
    wrong = written(tmp_path / "wrong.jsonl", {"qid": "1", "nuggets": [{"text": "x", "from": "y"}]})
    refused = cli("nuggets", "edit", before, wrong, "--out", tmp_path / "new.jsonl")
    assert refused.status == 2
    assert "wrong.jsonl: query '1': 'from' of 'x' names 'y'" in refused.err


def test_a_history_that_is_none_is_not_written_over() -> None:
    with pytest.raises(ValueError, match="'history' must be a list of edits"):
        edited(bank(("a", V), history=None), bank(("b", V)), by="ann", at="now")
