"""The slow figures of a calibration are made once: votes leave them, whatever a judge says takes them away."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arena.calibration.methods import Played
from arena.results import agreement as calibrate
from arena.store import Store
from judges.types import Task
from tests.conftest import CLI
from tests.support.peoples_words import add_people
from tests.support.sample_store import write_store


def calibrated(cli: CLI, path: Path) -> Any:
    ended = cli("calibrate", path, "--format", "json", "--method-samples", 20)
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def refuse(*_: object, **__: object) -> Any:
    raise AssertionError("made anew")


def test_kept_figures_are_those_made_anew_until_something_is_judged(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_store(tmp_path / "s.db")
    fresh = calibrated(cli, path)
    assert calibrated(cli, path) == fresh
    with monkeypatch.context() as patch:
        patch.setattr(calibrate, "style_effects", refuse)
        patch.setattr(calibrate, "spending", refuse)
        with monkeypatch.context() as whole:
            whole.setattr(calibrate, "compare_methods", refuse)
            assert calibrated(cli, path) == fresh
            with pytest.raises(AssertionError, match="made anew"):
                cli("calibrate", path, "--method-samples", 21)
        assert add_people(path, "sample", share=0.2)
        voted = calibrated(cli, path)
        assert voted["comparisons"]
        assert voted["style"] == fresh["style"]
        with closing(Store.create(str(path))) as store:
            known = [result for _, result in store.outcomes("sample", Task.PAIRWISE)[:1] if result is not None]
            store.save([(Task.PAIRWISE, "by-hand@1", result) for result in known])
            assert calibrated(cli, path) == voted, "what the store had changes nothing"
            store.save([(Task.PAIRWISE, "by-hand@1", replace(result, judgment_id="f" * 32)) for result in known])
        with pytest.raises(AssertionError, match="made anew"):
            calibrated(cli, path)


def test_kept_elo_is_that_of_these_games_and_samples(cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_store(tmp_path / "s.db")
    calibrated(cli, path)
    with closing(Store.open(str(path))) as store:
        cache = calibrate.Cache(store, "sample")
        assert cache.made("calibration: elo", lambda: "others", b"other games") == "others"
        assert cache.made("calibration: elo", refuse, b"other games") == "others"
    drawn = Played.drawn
    monkeypatch.setattr(Played, "drawn", lambda own, weights: refuse() if own.name == "elo" else drawn(own, weights))
    calibrated(cli, path)
    with pytest.raises(AssertionError, match="made anew"):
        cli("calibrate", path, "--format", "json", "--method-samples", 20, "--seed", 1)


def test_what_is_said_of_people_is_the_same_whether_all_verdicts_are_read_or_those_people_judged_too(
    cli: CLI, tmp_path: Path
) -> None:
    path = write_store(tmp_path / "s.db")
    assert add_people(path, "sample", share=0.2)
    some, whole = (
        json.loads(cli("calibrate", path, "--format", "json", *more).out)["comparisons"]
        for more in ((), ("--estimates",))
    )
    for level in whole:
        for judge in level["judges"].values():
            del judge["estimates"]
    assert some == whole
