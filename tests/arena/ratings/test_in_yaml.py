"""``ratings`` of a configuration: what it asks for reaches the leaderboard, and is what ``rate`` makes of an export."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from streamlit.testing.v1 import AppTest

from arena.config.ratings import RatingsSection
from arena.ratings.games import GameVerdict
from arena.ratings.rate import rate, rate_by_judge
from arena.ratings.results import RatingSettings
from arena.results.cache import cached_leaderboard
from arena.results.games import read_games
from arena.results.ratings import leaderboard, rating_settings
from arena.results.scores import stored_methods
from arena.store import Store
from judges.types import Verdict
from tests.conftest import CLI
from tests.support.pages import page, shown, tables, unfolded
from tests.support.sample_store import SETTINGS, write_store
from tests.support.tournaments import write_data
from ui.data import LOCATION_VARIABLE

WORDS = {"x": 9, "y": 5, "z": 3}
"""Words of an answer at most; the lexical judge likes some of them."""


def answers(queries: int) -> dict[tuple[str, str], str]:
    """Longer ones by x, with more of the query's own words now and then, and a citation here and there."""
    texts = {}
    for number in range(queries):
        for agent, most in WORDS.items():
            said = [f"What is q{number}?"] * (1 + (number * most) % 4)
            cited = " [1]" if (number + most) % 3 == 0 else ""
            texts[f"q{number}", agent] = f"{agent} says: {' '.join(said)} {'so ' * ((number * 7) % most)}{cited}"
    return texts


def write_config(folder: Path, **ratings: Any) -> Path:
    queries = 10
    write_data(folder, [f"q{number}" for number in range(queries)], answers(queries), documents=[])
    content = {
        "name": "small",
        "store": "store.db",
        "data": {"queries": "queries.csv", "answers": "answers.csv"},
        "judges": {"judge": {"provider": "lexical"}},
        "pairwise": {"judges": ["judge"], "documents": {"include": False}},
        "ratings": {"elo": {"tournaments": 20}, "bootstrap": {"samples": 60}, **ratings},
    }
    path = folder / "t.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


ALL = {"position": True, "covariates": ["log_length", "citations"], "anchor": "y"}


def test_the_leaderboard_is_what_rate_makes_of_the_exported_verdicts(cli: CLI, tmp_path: Path) -> None:
    config = write_config(tmp_path, bradley_terry=ALL)
    board = json.loads(cli("run", config, "--format", "json").out)
    assert cli("export", "verdicts", config, tmp_path / "v.csv").status == 0
    by_hand = ["--set", "position=true", "--covariate", "log_length", "--covariate", "citations", "--set", "anchor=y"]
    rated = json.loads(
        cli("rate", tmp_path / "v.csv", *by_hand, "--set", "tournaments=20", "--samples", "60", "--format", "json").out
    )
    names = ("agent", "bt", "bt_low", "bt_high", "elo", "games", "wins")
    assert [[row[name] for name in names] for row in board["agents"]] == [
        [row[name] for name in names] for row in rated["agents"]
    ]
    assert board["controlled"] == rated["controlled"]
    assert board["controlled"]["agents"].keys() == {"x", "y", "z"}
    assert board["controlled"]["agents"]["y"] == 1000
    assert [effect["name"] for effect in board["controlled"]["effects"]] == ["log_length", "citations"]
    assert board["position"] == {
        "effect": rated["position_effect"], "low": rated["position_low"], "high": rated["position_high"]
    }  # fmt: skip
    assert sum(row["games"] for row in board["agents"]) == 2 * 60, "every verdict is a game, and has two agents"
    assert any("Every verdict is a game" in note for note in board["notes"])
    assert "y is fixed at 1000: the intervals are for the difference to it." in board["notes"]


def test_every_place_that_rates_takes_the_position_term(cli: CLI, tmp_path: Path, monkeypatch: Any) -> None:
    config = write_config(tmp_path, bradley_terry=ALL)
    assert cli("run", config).status == 0
    with closing(Store.open(str(tmp_path / "store.db"))) as store:
        fresh = leaderboard(store, "small")
        assert repr(cached_leaderboard(store, "small")) == repr(fresh) == repr(cached_leaderboard(store, "small"))
        table = read_games(store, "small")
        methods = stored_methods(store, "small", table, lambda: store.dataset("small"))
        found = next(method for method in methods if method.name == "bradley_terry")
        assert dict(zip(found.agents, found.points(), strict=True)) == pytest.approx(
            {row.agent: row.bt for row in fresh.ratings.agents} if fresh.ratings else {}
        )
        assert rating_settings(store.settings("small")).position

    table_out = cli("leaderboard", config, "--details").out
    assert "Ratings controlled for log_length and citations" in table_out
    assert "bt_controlled" in cli("leaderboard", config, "--format", "csv").out.splitlines()[0]
    assert cli("report", config, "--out", tmp_path / "r.html").status == 0
    report = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Ratings controlled for log_length and citations" in report
    assert "every verdict is one" in report
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "store.db"))
    opened: AppTest = unfolded(page("leaderboard"), "more")
    assert "Ratings controlled for log_length and citations" in shown(opened)
    assert any("Standard error" in table for table in tables(opened))


def test_intervals_come_from_the_sandwich_where_it_is_asked_for(cli: CLI, tmp_path: Path) -> None:
    config = write_config(tmp_path, intervals="sandwich")
    board = json.loads(cli("run", config, "--format", "json").out)
    assert cli("export", "verdicts", config, tmp_path / "v.csv").status == 0
    quick = ["--set", "tournaments=20", "--format", "json"]
    formula, drawn = (
        json.loads(cli("rate", tmp_path / "v.csv", "--set", f"intervals={how}", *quick).out)
        for how in ("sandwich", "bootstrap")
    )
    names = ("agent", "bt", "bt_low", "bt_high", "rank_low", "rank_high")
    assert [[row[name] for name in names] for row in board["agents"]] == [
        [row[name] for name in names] for row in formula["agents"]
    ]
    for row, other in zip(formula["agents"], drawn["agents"], strict=True):
        assert row["bt"] == other["bt"]
        assert (row["bt_low"] + row["bt_high"]) / 2 == pytest.approx(row["bt"]), "a formula's interval is symmetric"
        assert row["bt_high"] - row["bt_low"] == pytest.approx(other["bt_high"] - other["bt_low"], rel=0.6)
    assert formula["convergence"]["samples"] == 0


def test_one_query_has_no_sandwich_and_says_so() -> None:
    rows = [GameVerdict("q", *pair, Verdict.A) for pair in (("x", "y"), ("y", "x"), ("x", "z"), ("z", "y"))]
    rated = rate(rows, RatingSettings(intervals="sandwich", tournaments=2, fragility="none", reconcile=False))
    assert rated.agents[0].bt_low is None
    assert any(note.startswith("There are no intervals: all games are on one query") for note in rated.notes)


@pytest.mark.parametrize(
    ("section", "where", "what"),
    [
        ({"anchor": "w"}, "anchor", "no agent is named 'w'"),
        ({"covariates": ["list_items"]}, "covariates", "is the same for both answers of every game"),
        ({"covariates": ["log_lenght"]}, "covariates", "did you mean 'log_length'"),
        ({"covariates": ["citations", "citations"]}, "covariates", "named twice"),
    ],
)
def test_what_cannot_be_rated_is_refused_before_anything_is_asked(
    cli: CLI, tmp_path: Path, section: dict[str, Any], where: str, what: str
) -> None:
    config = write_config(tmp_path, bradley_terry=section)
    for command in ("plan", "run", "doctor"):
        ended = cli(command, config)
        line = next(line for line in (ended.out + ended.err).splitlines() if what in line)
        assert ended.status == 2
        assert re.search(rf"{re.escape(str(config))}:\d+: ratings\.bradley_terry\.{where}: ", line)
    assert not (tmp_path / "store.db").exists()


def test_verdicts_that_cannot_tell_a_quality_have_no_controlled_ratings_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"bradley_terry": {"covariates": ["log_length"]}, "bootstrap": {"samples": 20}}
    monkeypatch.setitem(SETTINGS, "ratings", RatingsSection.model_validate(asked).model_dump(mode="json"))
    with closing(Store.open(str(write_store(tmp_path / "s.db")))) as store:
        board = leaderboard(store, "sample")
    assert board.controlled is None
    assert (
        "No controlled ratings: covariate 'log_length' is the same for both answers of every game, so it has no effect."
        in board.ratings.notes
    )


def test_a_judge_that_has_not_seen_the_anchor_is_rated_around_the_mean() -> None:
    rows = [GameVerdict(f"q{number}", "x", "y", Verdict("AB"[number % 3 == 0]), "one") for number in range(9)]
    rows += [GameVerdict(f"q{number}", "y", "z", Verdict("AB"[number % 2]), "two") for number in range(9)]
    how = RatingSettings(anchor="x", tournaments=2, bootstrap=0, fragility="none")
    boards = rate_by_judge(rows, how)
    assert {row.agent: row.bt for row in boards["one"].agents}["x"] == 1000
    assert not any("anchor" in note for note in boards["one"].notes)
    assert sum(row.bt for row in boards["two"].agents) == pytest.approx(2000)
    assert any(note.startswith("x, the anchor, has no verdict here") for note in boards["two"].notes)
