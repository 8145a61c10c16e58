"""What is kept of a leaderboard in its store: the same figures, never old ones."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from msgspec import msgpack

from arena.calibration.comparison import Settings
from arena.config.schema import load_config
from arena.data.kinds import Annotation
from arena.results import cache as kept
from arena.results.agreement import calibrate_tournament
from arena.results.cache import cached_games, cached_leaderboard, read, written
from arena.results.games import read_games
from arena.results.ratings import Leaderboard, leaderboard, leaderboard_of
from arena.run.judging import run
from arena.store import Store
from arena.store.annotations import Annotations
from judges.errors import StoreError
from judges.types import JudgeFailure, Task
from tests.golden.worlds import write_whole
from tests.support.sample_store import in_conversations, write_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(str(write_store(tmp_path / "s.db", failed=3, unasked=2, priced=True)))) as opened:
        yield opened


def refuse(*_: object, **__: object) -> Leaderboard:
    raise AssertionError("rated again")


def test_what_is_kept_says_what_a_fresh_one_says_to_the_last_digit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = leaderboard(store, "sample")
    assert repr(cached_leaderboard(store, "sample")) == repr(fresh)
    monkeypatch.setattr(kept, "leaderboard_of", refuse)
    assert repr(cached_leaderboard(store, "sample")) == repr(fresh)
    games = read_games(store, "sample")
    for name in ("agents", "queries", "judges", "a", "b", "query", "judge", "outcome", "identical"):
        np.testing.assert_array_equal(getattr(cached_games(store, "sample"), name), getattr(games, name))


def test_a_new_judgment_takes_it_away_and_a_vote_does_not(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cached_leaderboard(store, "sample")
    Annotations(store, "sample").add([Annotation("verdict", "ann", "q00", "bm25", "dense", "0" * 32, "A")])
    failed = [(want, result) for want, result in store.outcomes("sample", Task.PAIRWISE) if result is not None]
    want, failure = next((want, result) for want, result in failed if isinstance(result, JudgeFailure))
    with monkeypatch.context() as patch:
        patch.setattr(kept, "leaderboard_of", refuse)
        assert repr(cached_leaderboard(store, "sample")) == repr(before)
    judgment = next(result for _, result in failed if not isinstance(result, JudgeFailure))
    store.save([(Task.PAIRWISE, "by-hand@1", type(judgment)(failure.judgment_id, "A", "", "", "judge-1"))])
    after = cached_leaderboard(store, "sample")
    assert after.coverage[Task.PAIRWISE].failed == before.coverage[Task.PAIRWISE].failed - 1
    assert want.judge == "strict"


def test_what_was_read_before_a_change_is_not_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(*given: Any, **options: Any) -> Leaderboard:
        made = leaderboard_of(*given, **options)
        store.save([(Task.PAIRWISE, "by-hand@1", JudgeFailure("new", "empty", "nothing"))])
        return made

    monkeypatch.setattr(kept, "leaderboard_of", meanwhile)
    cached_leaderboard(store, "sample")
    monkeypatch.setattr(kept, "leaderboard_of", refuse)
    with pytest.raises(AssertionError, match="rated again"):
        cached_leaderboard(store, "sample")


def test_a_store_that_cannot_be_written_is_rated_by_each_reader(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object, **__: object) -> bool:
        raise StoreError("another program keeps it locked")

    monkeypatch.setattr("arena.store.cache.FigureCache.keep", locked)
    assert repr(cached_leaderboard(store, "sample")) == repr(leaderboard(store, "sample"))
    with closing(sqlite3.connect(tmp_path / "s.db")) as file:
        assert file.execute("SELECT count(*) FROM figures").fetchone() == (0,)


def test_beginning_again_with_nothing_new_leaves_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = repr(cached_leaderboard(store, "sample"))
    settings, data = store.settings("sample").raw, store.dataset("sample")
    wants = [want for want, _ in store.wanted("sample")]
    judged = [(want.task, "p v1", own) for want, own in store.outcomes("sample", Task.PAIRWISE) if own is not None]
    store.begin("sample", settings, data, wants)
    store.extend("sample", wants[:3])
    store.save([(task, prompt, own) for task, prompt, own in judged if not isinstance(own, JudgeFailure)])
    monkeypatch.setattr(kept, "leaderboard_of", refuse)
    assert repr(cached_leaderboard(store, "sample")) == fresh
    store.begin("sample", settings, data, wants[1:])
    with pytest.raises(AssertionError, match="rated again"):
        cached_leaderboard(store, "sample")


def test_a_new_column_of_conversations_takes_it_away(store: Store) -> None:
    before = cached_leaderboard(store, "sample", below_coverage=True).ratings
    in_conversations(store, "sample", 3)
    after = cached_leaderboard(store, "sample", below_coverage=True).ratings
    assert (before.unit, after.unit) == ("query", "conversation")
    assert after.units == -(-before.units // 3)
    assert [row.bt for row in after.agents] == [row.bt for row in before.agents]


def test_figures_of_another_version_or_damaged_ones_are_made_anew(store: Store, tmp_path: Path) -> None:
    fresh = repr(cached_leaderboard(store, "sample"))
    for change in ("UPDATE figures SET made_by = 'ragleague 0'", "UPDATE figures SET content = CAST('{}' AS BLOB)"):
        with closing(sqlite3.connect(tmp_path / "s.db")) as file, file:
            file.execute(change)
        assert repr(cached_leaderboard(store, "sample")) == fresh


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a tournament with every stage."""
    folder = tmp_path_factory.mktemp("whole")
    write_whole(folder)
    run(load_config(folder / "whole.yaml"), mock.Mock())
    return folder / "whole.db"


def test_every_board_is_kept(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store.create(str(whole))) as store:
        fresh = cached_leaderboard(store, "whole")
        monkeypatch.setattr(kept, "leaderboard_of", refuse)
        again = cached_leaderboard(store, "whole")
    assert fresh.exam is not None
    assert fresh.nuggets is not None
    assert again is not fresh
    assert repr(again) == repr(fresh)


def test_arrays_come_back_as_they_were() -> None:
    names = ("agents", "queries", "judges")
    for array in (np.arange(6.0).reshape(2, 3), np.array([True, False]), np.array(names), np.arange(4)[::2]):
        again = read(written((array, array[0])))
        np.testing.assert_array_equal(again[0], array)
        assert again[0].dtype == array.dtype
        assert repr(again[1]) == repr(array[0])


def test_whoever_changes_a_figure_raises_the_number_that_keeps_old_ones_away(whole: Path, store: Store) -> None:
    with closing(Store.open(str(whole))) as judged:
        boards: list[Any] = [leaderboard(judged, "whole"), leaderboard(store, "sample", below_coverage=True)]
        boards += [calibrate_tournament(own, name, Settings()) for own, name in ((judged, "whole"), (store, "sample"))]
    figures = sorted(
        {figure for board in boards for figure in _figures(msgpack.decode(zlib.decompress(written(board))))}
    )
    digest = hashlib.sha256(json.dumps(figures).encode()).hexdigest()[:16]
    assert (kept.FIGURES, digest) == (19, "542c79d8522e0edd"), "raise arena.results.cache.FIGURES, and write both here"


def _figures(written: Any) -> Iterator[float]:
    """The fractions that a value holds, to six digits, and none next to 0: what is left differs between machines."""
    if isinstance(written, float):
        yield float(f"{written:.6g}") if abs(written) > 1e-9 else 0.0
    elif isinstance(written, list) and written[:2] == ["array", "<f8"]:
        yield from _figures(np.frombuffer(written[-1]).tolist())
    elif isinstance(written, list | dict):
        parts = written.values() if isinstance(written, dict) else written
        yield from (figure for one in parts for figure in _figures(one))


@pytest.mark.parametrize("value", [object(), Path("file"), np.array([object()])])
def test_only_frozen_values_are_written(value: object) -> None:
    with pytest.raises(TypeError):
        written(value)


@pytest.mark.parametrize(
    "value",
    [
        ["os", "system", "ls"],
        ["subprocess", "Popen", "ls"],
        ["subprocess", "Popen", {"args": "ls"}],
        ["arena.__main__", "main", "ls"],
        ["arena.store", "Store", {}],
        ["arena.results.outcomes", "Coverage", {"wanted": 1}],
        ["arena.nowhere", "Nothing", {}],
        ["array", "O", [1], b"\0" * 8],
    ],
)
def test_nothing_but_frozen_types_is_made_of_what_a_store_holds(value: list[Any]) -> None:
    with pytest.raises(ValueError, match="no frozen value"):
        read(zlib.compress(msgpack.encode(value)))


@pytest.mark.parametrize(
    "content", [b"", b"{}", zlib.compress(b"\x91" * 9), zlib.compress(msgpack.encode([["again"], 0]))]
)
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="frozen value"):
        read(content)
