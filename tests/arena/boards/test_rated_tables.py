"""``rate FILE``: what each option does to the ratings, on planted tables and on recorded ones."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.boards.rated_tables import RatedTable, TableOptions, column_names, rate_table
from arena.ratings.results import RatingSettings
from judges.errors import InputError

QUICK = RatingSettings(tournaments=5, bootstrap=50, fragility="none")
HEADER = ("qid", "agent_a", "agent_b", "verdict", "judge", "order", "words_a", "words_b", "topic")
STRENGTHS = {"ann": 0.5, "bob": 0.0, "cat": -0.5}
TASTE_FOR_LENGTH = 0.6
TASTE_FOR_FIRST = 0.4

Lines = list[tuple[Any, ...]]


def planted(*, queries: int = 300, seed: int = 0) -> Lines:
    """Every pair once a query in a random order; ``e`` throws coins, and ``d`` likes long and first answers."""
    rng = np.random.default_rng(seed)
    lines: Lines = []
    for query in range(queries):
        words = {agent: int(rng.integers(20, 400)) for agent in STRENGTHS}
        for a, b in (("ann", "bob"), ("bob", "cat"), ("cat", "ann")):
            order, judge = str(rng.choice(["ab", "ba"])), str(rng.choice(["d", "d", "d", "e"]))
            of_length = TASTE_FOR_LENGTH * (np.log(words[a]) - np.log(words[b]))
            gap = STRENGTHS[a] - STRENGTHS[b] + of_length + TASTE_FOR_FIRST * (1 if order == "ab" else -1)
            chance = 1 / (1 + np.exp(-gap)) if judge == "d" else 0.5
            verdict = "TIE" if rng.random() < 0.1 else "A" if rng.random() < chance else "B"
            lines.append((f"q{query}", a, b, verdict, judge, order, words[a], words[b], f"t{query % 20}"))
    return lines


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(lines: Lines, header: Sequence[str] = HEADER, name: str = "v.csv") -> Path:
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *lines])
        return tmp_path / name

    return written


def rated(file: Path, settings: RatingSettings = QUICK, **options: Any) -> RatedTable:
    columns = column_names(options.pop("columns", ()))
    return rate_table(file, settings, TableOptions(columns=columns, **options))


def ratings_of(table: RatedTable) -> dict[str, float]:
    return {row.agent: row.bt for row in table.ratings.agents}


def refusal(file: Path, settings: RatingSettings = QUICK, **options: Any) -> str:
    with pytest.raises(InputError) as raised:
        rated(file, settings, **options)
    return str(raised.value)


def turned(lines: Lines) -> Lines:
    """The same games with the agents in each other's column."""
    other = {"A": "B", "B": "A", "TIE": "TIE", "ab": "ba", "ba": "ab"}
    return [(q, b, a, other[v], j, other[o], wb, wa, t) for q, a, b, v, j, o, wa, wb, t in lines]


def test_it_does_not_matter_in_which_column_an_agent_is(write: Callable[..., Path]) -> None:
    lines = planted(queries=60)
    mixed = [turned([line])[0] if place % 3 else line for place, line in enumerate(lines)]
    settings = RatingSettings(tournaments=5, bootstrap=50, fragility="none", position=True)
    one, other = (rated(write(own), settings, covariates=("log:words", "words_a:words_b")) for own in (lines, mixed))
    assert other.ratings == one.ratings
    assert [row.rating for row in other.controlled.agents] == pytest.approx(
        [row.rating for row in one.controlled.agents]
    )
    for ours, theirs in zip(other.controlled.effects, one.controlled.effects, strict=True):
        assert ours.points == pytest.approx(theirs.points, abs=1e-6)


def test_a_covariate_in_columns_of_any_name_is_that_of_the_agents_in_the_same_order(write: Callable[..., Path]) -> None:
    file = write(planted(queries=60))
    named, paired, opposite = (
        rated(file, covariates=(name,)).controlled for name in ("words", "words_a:words_b", "words_b:words_a")
    )
    assert paired.effects[0].points == named.effects[0].points
    assert opposite.effects[0].points == pytest.approx(-named.effects[0].points)


def test_a_column_to_cluster_by_widens_intervals_and_errors_but_moves_no_rating(write: Callable[..., Path]) -> None:
    """Twenty copies of each query under one topic hold no more than one."""
    once = planted(queries=20)
    copies = [(f"{line[0]}-{copy}", *line[1:]) for copy in range(20) for line in once]
    file = write(copies)
    by_query, by_topic, by_game = (
        rated(file, cluster=cluster, covariates=("words",)) for cluster in ("qid", "topic", "none")
    )
    assert ratings_of(by_query) == ratings_of(by_topic)
    assert by_topic.cluster_column == "topic"
    assert by_topic.ratings.convergence.units == 20
    assert by_query.ratings.convergence.units == 400
    widths = [np.mean([pair.se for pair in one.ratings.pairs]) for one in (by_query, by_topic)]
    assert widths[1] > 3 * widths[0]
    errors = [one.controlled.effects[0].sd for one in (by_query, by_topic) if one.controlled is not None]
    assert errors[1] > 3 * errors[0]
    settings = RatingSettings(tournaments=5, bootstrap=50, fragility="none", cluster=False)
    assert rated(file, settings, cluster="none").ratings.convergence.resampled == "game"
    assert by_game.cluster_column is None


def test_conversations_of_a_table_are_what_is_drawn_unless_another_column_is_named(write: Callable[..., Path]) -> None:
    header = (*HEADER[:-1], "conversation")
    lines = [(f"{line[0]}-{copy}", *line[1:]) for copy in range(3) for line in planted(queries=20)]
    found = rated(write(lines, header))
    assert (found.cluster_column, found.ratings.unit, found.ratings.units) == ("conversation", "conversation", 20)
    by_turn = rated(write(lines, header), cluster="qid")
    assert (by_turn.cluster_column, by_turn.ratings.unit, by_turn.ratings.units) == (None, "query", 60)
    alone = rated(write([(*line[:-1], "") for line in lines], header)).ratings
    assert alone == by_turn.ratings


def test_each_judge_is_rated_as_its_rows_alone_would_be(write: Callable[..., Path]) -> None:
    lines = planted(queries=60)
    both = rated(write(lines), by_judge=True, cluster="topic").by_judge
    assert list(both) == ["d", "e"]
    for judge, own in both.items():
        alone = rated(write([line for line in lines if line[4] == judge]), cluster="topic").ratings
        assert own.agents == alone.agents
        assert own.pairs == alone.pairs
        assert own.judge_health.first_effect.value == alone.judge_health.first_effect.value


def test_columns_of_other_names_are_read_as_ours(write: Callable[..., Path]) -> None:
    lines = planted(queries=30)
    header = ("topic", "home", "away", "gold", "rater", "side", "words_a", "words_b", "rest")
    given = ("qid=topic", "agent_a=home", "agent_b=away", "verdict=gold", "judge=rater", "order=side")
    assert rated(write(lines, header), columns=given).ratings == rated(write(lines)).ratings


def test_places_are_judged_by_the_rows_alone_that_tell_their_order(write: Callable[..., Path]) -> None:
    lines = planted(queries=100)
    hidden = [(*line[:5], "" if place % 2 else line[5], *line[6:]) for place, line in enumerate(lines)]
    known = rated(write([line for line in hidden if line[5]]), by_judge=True)
    file = write(hidden)
    every = rated(file, by_judge=True)
    pairs = [(known.by_judge[judge], every.by_judge[judge]) for judge in "de"]
    for one, other in [(known.ratings, every.ratings), *pairs]:
        assert other.judge_health.n > one.judge_health.n
        for name in ("first_share", "first_effect", "both_orders", "order_agreement"):
            assert getattr(other.judge_health, name) == getattr(one.judge_health, name), name
    assert every.rows["order_unknown"] == 150
    none = rated(write([(*line[:5], "", *line[6:]) for line in lines])).ratings.judge_health
    assert none.first_share.value is none.first_effect.value is none.order_agreement.value is None
    position = RatingSettings(tournaments=5, bootstrap=50, position=True)
    assert refusal(write(hidden), position).startswith(f"{file}:3: position needs the order of every row")


LINE = ("q1", "ann", "bob", "A", "d", "ab", 5, 9, "t1")


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        (
            LINE,
            {"covariates": ("length",)},
            ": has no column 'length_a' besides those of the verdicts; its other columns: topic, words_a, words_b",
        ),
        (
            LINE,
            {"cluster": "theme"},
            ": has no column 'theme' besides those of the verdicts; its other columns: topic, words_a, words_b",
        ),
        (
            ("q2", *LINE[1:6], "many", 9, "t1"),
            {"covariates": ("words",)},
            ":3: the covariate 'words_a' is not a number",
        ),
        (("q2", *LINE[1:6], 5, "", "t1"), {"covariates": ("words",)}, ":3: the covariate 'words_b' is not a number"),
        (("q2", *LINE[1:6], -5, 9, "t1"), {"covariates": ("log:words",)}, ":3: the covariate 'words_a' is negative"),
        (("q1", *LINE[1:8], "t2"), {"cluster": "topic"}, ":3: query 'q1' has 't1' as 'topic' above"),
        (("q2", *LINE[1:8], ""), {"cluster": "topic"}, ":3: --cluster topic: this row has no value"),
        (("q2", *LINE[1:4], "", *LINE[5:]), {"by_judge": True}, ":3: --by judge needs a judge in every row"),
        (LINE, {"columns": ("verdict",)}, "--column: write NAME=COLUMN, as in verdict=gold, not 'verdict'"),
        (
            LINE,
            {"columns": ("qid=topic", "qid=judge")},
            "columns: only one column can be 'qid' here; name one: --column qid=topic",
        ),
        (LINE, {"columns": ("winner=topic",)}, "ragleague has no such column for verdicts"),
        (("q2", "NaN", *LINE[2:]), {}, ":3: 'agent_a' is a missing value"),
        (("q2", "nan", "nan", *LINE[3:]), {"skip_self_play": True}, ":3: 'agent_a' is a missing value"),
        (("q2", "bob", *LINE[2:]), {}, ":3: an agent plays against itself"),
        (("q2", *LINE[1:3], "ann wins", *LINE[4:]), {}, ":3: 'verdict' must be A, B, TIE"),
        (("q2", *LINE[1:3], "", *LINE[4:]), {}, ":3: no verdict in 'verdict'"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(
    write: Callable[..., Path], line: tuple[Any, ...], options: dict[str, Any], said: str
) -> None:
    file = write([LINE, line])
    assert said in refusal(file, **options)
    if said.startswith(":"):
        assert refusal(file, **options).startswith(f"{file}{said}")


def test_what_the_whole_table_lacks_is_refused(write: Callable[..., Path]) -> None:
    bare = write([LINE[1:4]], HEADER[1:4])
    assert "--by judge needs a judge" in refusal(bare, by_judge=True)
    assert "--column qid=COLUMN" in refusal(write([LINE[1:]], HEADER[1:]), cluster="topic")
    assert "no row has a verdict, so there is nothing to rate" in refusal(
        write([(*LINE[:3], "", *LINE[4:])]), skip_empty=True
    )
    same = write([(*LINE[:6], 7, 7, "t1")])
    assert "the same for both answers" in refusal(same, covariates=("words",))


def test_an_anchor_is_held_and_an_unknown_one_refused(write: Callable[..., Path]) -> None:
    file = write(planted(queries=30))
    settings = RatingSettings(tournaments=5, bootstrap=50, anchor="bob")
    held = rated(file, settings, covariates=("words",))
    assert ratings_of(held)["bob"] == pytest.approx(1000)
    assert next(row.rating for row in held.controlled.agents if row.agent == "bob") == pytest.approx(1000)
    nobody = RatingSettings(tournaments=5, bootstrap=50, anchor="dan")
    assert "'dan' has no games; choose one of ann, bob, cat" in refusal(file, nobody)
    lines = [*planted(queries=30), ("q0", "ann", "cat", "A", "f", "ab", 5, 9, "t0")]
    assert "judge 'f': " in refusal(write(lines), settings, by_judge=True)


def test_repeats_conflicts_and_rows_left_out_are_counted(write: Callable[..., Path]) -> None:
    extra = [
        LINE,
        LINE,
        (*LINE[:3], "B", *LINE[4:]),
        ("q9", "bob", "bob", *LINE[3:]),
        ("q9", *LINE[1:3], "error", *LINE[4:]),
    ]
    table = rated(write(extra), skip_empty=True, skip_self_play=True)
    assert table.rows == {
        "rows": 5,
        "verdicts": 3,
        "skipped": 1,
        "self_play": 1,
        "duplicates": 1,
        "conflicts": 1,
        "order_unknown": 0,
        "order_assumed": 0,
        "weighted": 0,
        "strong": 0,
        "both_bad": 0,
        "both_good": 0,
    }


def test_a_table_without_orders_that_names_one_agent_first_is_told_how_to_say_so(cli: Any, tmp_path: Path) -> None:
    rows = [f"q{query},x,y,{'AAB'[query % 3]}" for query in range(90)]
    (tmp_path / "v.csv").write_text("\n".join(["qid,agent_a,agent_b,verdict", *rows]), encoding="utf-8")
    assumed = cli("rate", tmp_path / "v.csv", "--samples", "100").out
    assert "the answer shown first won 60 of 90 verdicts with a winner. Strength and place cannot be" in assumed
    assert "Places: without a column 'order' agent_a counts as the one shown first" in assumed
    unknown = "\n".join(["qid,agent_a,agent_b,verdict,order", *(f"{row}," for row in rows)])
    (tmp_path / "v.csv").write_text(unknown, encoding="utf-8")
    not_known = cli("rate", tmp_path / "v.csv", "--samples", "100").out
    assert (
        "Conclusion: Clear leader. x leads, 120 points above y, at 95% confidence over 90 games on 90 queries."
        in not_known
    )
    assert "Places:" not in not_known


def test_each_judge_s_ratings_stand_beside_those_of_all(write: Callable[..., Path], cli: Callable[..., Any]) -> None:
    file = write(planted())
    shown = cli("rate", file, "--by", "judge", "--samples", 50).out
    assert "Leaderboard of all judges together" in shown
    (alone,) = re.findall(r"What each judge alone would say\n(.*?)\n\n", shown, re.DOTALL)
    assert alone.split("\n")[0].split() == ["Agent", "All", "judges", "d", "e"]
    by_judge = json.loads(cli("rate", file, "--by", "judge", "--samples", 50, "--format", "json").out)["by_judge"]
    assert list(by_judge) == ["d", "e"]
    assert rated(file).by_judge == {}, "they are not asked for"
