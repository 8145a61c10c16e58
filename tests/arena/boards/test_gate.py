"""Two agents compared from a store: what decides, and what never may."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

from arena.boards.gate.board import GateBoard
from arena.boards.gate.compare import compare
from arena.run.imports import import_table
from arena.store import Store
from judges.errors import InputError
from retrieval_eval.data.tables import write_rows
from tests.conftest import CLI
from tests.support.sample_store import begin_judged, in_conversations, write_store


def store_of(folder: Path, rows: Iterable[tuple[str, ...]]) -> Path:
    """A store of recorded verdicts: query, shown first, shown second, verdict, and perhaps the judge."""
    names = ["qid", "agent_a", "agent_b", "verdict", "judge"]
    write_rows(folder / "verdicts.csv", names, [dict(zip(names, (*row, "j")[:5], strict=True)) for row in rows])
    import_table(folder / "verdicts.csv", str(folder / "s.db"), "recorded")
    return folder / "s.db"


def games(won: int, tied: int, lost: int, first: str = "A", second: str = "B") -> list[tuple[str, str, str, str]]:
    """Both orders of new against old on a query each; what new wins is ``first`` where it is shown first."""
    said = [(first, second)] * won + [("tie", "tie")] * tied + [("B", "A")] * lost
    return [
        row
        for number, (one, other) in enumerate(said)
        for row in ((f"q{number}", "new", "old", one), (f"q{number}", "old", "new", other))
    ]


def compared(path: Path, new: str = "new", old: str = "old", **options: object) -> GateBoard:
    with closing(Store.open(str(path))) as store:
        return compare(store, store.only_tournament(), new, old, **options)


def test_a_better_agent_passes(tmp_path: Path) -> None:
    found = compared(store_of(tmp_path, games(40, 10, 10)))
    assert (found.verdict, found.passed, found.status) == ("better", True, 0)
    (own,) = found.scores
    assert (own.new, own.old) == (0.75, 0.25)
    assert (own.result.wins, own.result.ties, own.result.losses, own.result.difference.n) == (40, 10, 10, 60)
    assert repr(found).startswith("Passed: new is better than old.\nWin rate: new won 0.750 of the points")
    turned = compared(tmp_path / "s.db", "old", "new")
    assert (turned.verdict, turned.status) == ("worse", 1)
    root = ElementTree.fromstring(turned.junit())
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("1", "1", "0")


def test_several_judges_of_a_query_are_one_figure(tmp_path: Path) -> None:
    rows = [(*row, judge) for row in games(20, 0, 0) for judge in "xy"]
    rows += [(*row, "z") for row in games(0, 0, 20)]
    (own,) = compared(store_of(tmp_path, rows)).scores
    assert (own.new, own.result.difference.n, own.result.wins) == (pytest.approx(2 / 3), 20, 20)


def test_the_turns_of_a_conversation_are_one_figure(tmp_path: Path) -> None:
    with closing(Store.create(str(write_store(tmp_path / "s.db")))) as store:
        by_query = compare(store, "sample", "hybrid", "bm25")
        queries = len(store.queries("sample"))
        in_conversations(store, "sample", 2)
        found = compare(store, "sample", "hybrid", "bm25")
    assert [own.result.difference.n for own in by_query.scores] == [queries] * len(by_query.scores)
    assert [own.result.difference.n for own in found.scores] == [-(-queries // 2)] * len(by_query.scores)
    assert [own.on for own in found.scores] == ["pairwise", "criteria", "nDCG@10"]
    for own, before in zip(found.scores, by_query.scores, strict=True):
        assert own.result.difference.value == pytest.approx(before.result.difference.value)
        assert " conversations" in own.finding("hybrid", "bm25")
    assert "Conversations" in [column.heading for column in found.table().columns]


def test_missing_turns_of_a_conversation_are_said_and_may_decide_nothing(tmp_path: Path) -> None:
    path, turns = store_of(tmp_path, games(90, 0, 30)), 4
    with closing(Store.open(str(path))) as store:
        in_conversations(store, "recorded", turns)
        whole = compare(store, "recorded", "new", "old")
        for left, verdict in ((3, "better"), (1, "undecided")):
            last = {f"q{at}" for at in range(120) if at % turns >= left}
            begin_judged(store, verdict, lambda want, last=last: want.query_id not in last, "recorded")
            found = compare(store, verdict, "new", "old")
            (own,) = found.scores
            assert (own.result.difference.n, own.result.missing, own.verdict) == (30, 0, verdict)
            assert f"{len(last)} turns of 30 conversations missing" in " ".join(own.notes)
            assert ("what is missing alone could turn" in " ".join(own.remarks())) == (verdict == "undecided")
    assert whole.verdict == "better"
    assert not [said for said in whole.scores[0].notes if "turn" in said]


def test_scores_of_some_turns_only_are_said_too(tmp_path: Path) -> None:
    with closing(Store.create(str(write_store(tmp_path / "s.db")))) as store:
        in_conversations(store, "sample", 3)
        found = compare(store, "sample", "hybrid", "bm25", on=["criteria"])
        gone = next(iter(store.queries("sample")))
        begin_judged(store, "less", lambda want: want.query_id != gone)
        less = compare(store, "less", "hybrid", "bm25", on=["criteria"])
    assert not found.scores[0].notes
    assert less.scores[0].notes[0].startswith("1 turn of 1 conversation missing")
    assert less.scores[0].result.difference.n == found.scores[0].result.difference.n


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (games(0, 80, 0), "all verdicts on answers that differ are ties"),
        (games(30, 0, 30, "A", "A"), "each order preferred another agent"),
        ([(f"q{n}", "new", "old", "A") for n in range(60)], "shown first in 100% of the verdicts"),
        ([("q0", "new", "third", "A"), ("q0", "old", "third", "A")], "new and old never met"),
    ],
)
def test_games_that_say_nothing_never_pass(tmp_path: Path, rows: list[tuple[str, str, str, str]], why: str) -> None:
    found = compared(store_of(tmp_path, rows))
    assert (found.verdict, found.passed, found.status) == ("undecided", False, 3)
    assert why in repr(found)
    assert why in found.markdown().replace("\\", "")


def test_what_failed_is_missing_and_no_tie(tmp_path: Path) -> None:
    write_store(tmp_path / "s.db", unasked=10, failed=3)
    found = compared(tmp_path / "s.db", "hybrid", "random-passage", on=["pairwise"])
    (own,) = found.scores
    assert own.result.missing + (own.result.difference.n or 0) == 12
    assert own.result.missing > 0
    assert any("verdicts between the two are there" in note for note in own.notes)


def test_each_score_must_pass(played_demo: Path) -> None:
    found = compared(played_demo / "rag-handbook.db", "rag-bm25", "weak-baseline")
    assert [own.on for own in found.scores] == ["pairwise", "criteria", "exam", "nuggets", "alignment", "nDCG@10"]
    verdicts = {own.on: own.verdict for own in found.scores}
    assert verdicts["pairwise"] == "better"
    assert found.verdict == min(verdicts.values(), key=["worse", "undecided", "not worse", "better"].index)
    single = compared(played_demo / "rag-handbook.db", "rag-bm25", "weak-baseline", on=["accuracy", "RR(rel=1)@5"])
    assert [own.on for own in single.scores] == ["accuracy", "RR(rel=1)@5"]
    assert "No language model judged these games." in found.notes


@pytest.mark.parametrize("on", ["pairwise", "exam", "nuggets", "nDCG@10", "criteria"])
def test_each_score_alone_decides_and_says_the_opposite_when_turned_round(played_demo: Path, on: str) -> None:
    store = played_demo / "rag-handbook.db"
    found = compared(store, "rag-hybrid", "weak-baseline", on=[on])
    back = compared(store, "weak-baseline", "rag-hybrid", on=[on])
    assert (found.verdict, found.status, back.verdict, back.status) == ("better", 0, "worse", 1)
    (own,), (other,) = found.scores, back.scores
    assert own.on == on
    assert (own.new, own.old) == pytest.approx((other.old, other.new))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"new": "nobody"}, "no agent 'nobody'"),
        ({"new": "old"}, "cannot be compared with itself"),
        ({"on": "nDCG@3"}, "--on nDCG@3: no such score; known are "),
        ({"margin": 0.5}, "the margin must be"),
    ],
)
def test_wrong_input_is_named(tmp_path: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        compared(store_of(tmp_path, games(2, 0, 1)), **options)


def test_names_from_outside_stay_plain(tmp_path: Path) -> None:
    name = "<b>x</b>|`\n\x1b[1m"
    rows = [(q, name if a == "new" else a, name if b == "new" else b, v) for q, a, b, v in games(9, 0, 3)]
    found = compared(store_of(tmp_path, rows), name)
    assert "<b>" not in found.markdown()
    assert "\x1b" not in found.junit()
    assert ElementTree.fromstring(found.junit()).get("tests") == "1"


def test_commands_end_with_the_verdict(tmp_path: Path, cli: CLI) -> None:
    store = store_of(tmp_path, games(40, 10, 10))
    ended = cli("gate", store, "--new", "new", "--old", "old", "--junit", tmp_path / "out.xml")
    assert (ended.status, ended.err) == (0, "")
    assert "Passed: new is better than old." in ended.out
    assert ElementTree.parse(tmp_path / "out.xml").getroot().get("failures") == "0"
    assert cli("gate", store, "--new", "old", "--old", "new").status == 1
    before = Path(store).read_bytes()
    refused = cli("gate", store, "--new", "new", "--old", "old", "--junit", store)
    assert (refused.status, Path(store).read_bytes() == before) == (2, True)
    ended = cli("compare", store, "old", "new", "--format", "md")
    assert (ended.status, ended.out.splitlines()[0]) == (0, "### Failed: old is worse than new.")
    assert cli("gate", store, "--new", "x", "--old", "new").status == 2
