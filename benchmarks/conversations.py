"""Intervals by conversation against by turn: people's grades of mtrag_human, and how often simulated ones hold.

Prints the section "Conversations" of benchmarks/README.md; the data are those of the folder that RAGLEAGUE_SHARED
names.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import textwrap
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from arena.ratings.games import GameVerdict, VerdictTable, tabulate
from arena.ratings.rate import rate
from arena.ratings.results import Ratings, RatingSettings
from judges.types import Verdict
from retrieval_eval.stats import Floats
from retrieval_eval.stats.agreement import RaterAgreement, rater_agreement
from retrieval_eval.stats.bootstrap import ALONE, Clusters, mean_estimates, units_of
from retrieval_eval.stats.estimate import Estimate

WIN_RATE = "win-rate"
GRADES: Final = (1.0, 4.0)
"""Lowest and highest grade."""
_TURN = "<::>"
"""Separates the conversation from the turn in a query's id."""


class Grades(Struct, frozen=True):
    """People's grades.

    Attributes:
        agents, criteria: names; the criteria without ``WIN_RATE``.
        given: by criterion, rater, query and agent.
    """

    agents: tuple[str, ...]
    criteria: tuple[str, ...]
    given: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(sorted({name for raters in self.given.values() for own in raters.values() for name in own}))

    @property
    def conversations(self) -> dict[str, str]:
        return {name: name.split(_TURN)[0] for name in self.queries}

    def table(self, criterion: str) -> Floats:
        """Mean over raters, shape (agents, queries)."""
        raters = self.given[criterion].values()
        return np.array(
            [
                [np.mean([own[name][agent] for own in raters if agent in own.get(name, {})]) for name in self.queries]
                for agent in self.agents
            ]
        )

    def means(self, criterion: str, clusters: Clusters = ALONE) -> dict[str, Estimate]:
        found = mean_estimates(self.table(criterion), units_of(self.queries, clusters), GRADES)
        return dict(zip(self.agents, found, strict=True))

    def agreement(self, criterion: str, clusters: Clusters = ALONE) -> RaterAgreement:
        labels = [
            {name: {agent: int(grade) for agent, grade in each.items()} for name, each in own.items()}
            for own in self.given[criterion].values()
        ]
        return rater_agreement(labels, clusters=clusters)

    def verdicts(self) -> VerdictTable:
        return tabulate(
            GameVerdict(name, one, other, _preferred(rates[one], rates[other]), rater)
            for rater, own in self.given[WIN_RATE].items()
            for name, rates in own.items()
            for one, other in combinations(sorted(rates), 2)
        )

    def ratings(self, clusters: Clusters = ALONE) -> Ratings:
        return rate(self.verdicts().clustered(clusters), RatingSettings(tournaments=0))


def _preferred(one: float, other: float) -> Verdict:
    return Verdict.TIE if one == other else Verdict.A if one > other else Verdict.B


def read_grades(folder: Path) -> Grades:
    given: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    agents: dict[str, None] = {}
    with gzip.open(folder / "human_grades.csv.gz", "rt", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            own = given.setdefault(row["criterion"], {}).setdefault(row["rater"], {})
            own.setdefault(row["qid"], {})[row["agent"]] = float(row["grade"])
            agents[row["agent"]] = None
    return Grades(tuple(sorted(agents)), tuple(name for name in given if name != WIN_RATE), given)


SD = 1.5
"""Standard deviation, in log-odds, of how far a conversation favours one of two agents."""
CENTRE = RatingSettings().centre


class Held(Struct, frozen=True):
    """Share of intervals of a rating that hold the truth, and their mean width in points."""

    covered: float
    width: float


def simulated(simulations: int, conversations: int, turns: int, seed: int = 0) -> dict[str, Held]:
    """Two equally good agents; each conversation favours one of them on all of its turns."""
    rng = np.random.default_rng(seed)
    names = [f"{at:03}-{turn}" for at in range(conversations) for turn in range(turns)]
    clusters = {name: name.split("-")[0] for name in names}
    rows: dict[str, list[tuple[bool, float]]] = {"by conversation": [], "by turn": []}
    for _ in range(simulations):
        p = 1 / (1 + np.exp(-np.repeat(rng.normal(0, SD, conversations), turns)))
        said = np.where(rng.random(p.size) < p, Verdict.A, Verdict.B).tolist()
        table = tabulate(GameVerdict(name, "a", "b", Verdict(one)) for name, one in zip(names, said, strict=True))
        for by, own in (("by conversation", table.clustered(clusters)), ("by turn", table)):
            found = rate(own, RatingSettings(tournaments=0, bootstrap=0, intervals="sandwich", fragility="none"))
            row = found.agents[0]
            assert row.bt_low is not None
            assert row.bt_high is not None
            rows[by].append((row.bt_low <= CENTRE <= row.bt_high, row.bt_high - row.bt_low))
    return {by: Held(*np.array(own, float).mean(axis=0).tolist()) for by, own in rows.items()}


def _written(own: Estimate) -> str:
    return f"{own.value:.2f} ({own.low:.2f} to {own.high:.2f})"


def _wider(whole: Sequence[Estimate], single: Sequence[Estimate]) -> float:
    ratios = [
        ((a.high or 0) - (a.low or 0)) / ((b.high or 0) - (b.low or 0)) for a, b in zip(whole, single, strict=True)
    ]
    return float(np.mean(ratios))


def _folded(line: str) -> str:
    return line if line.startswith("|") else textwrap.fill(line, 120)


def page(grades: Grades, simulations: int) -> str:
    clusters, criteria = grades.conversations, grades.criteria
    lines = [
        f"{len(grades.queries)} turns of {len(set(clusters.values()))} conversations, {len(grades.agents)} agents, "
        f"{len(grades.given[WIN_RATE])} people, three an answer. Means of grades from 1 to 4, 95 % "
        "intervals by conversation, then by turn:",
        "",
        f"| | {' | '.join(grades.agents)} | wider |",
        "|---" * (len(grades.agents) + 2) + "|",
    ]
    for criterion in criteria:
        whole, single = grades.means(criterion, clusters), grades.means(criterion)
        cells = [f"{_written(whole[name])}, {_written(single[name])}" for name in grades.agents]
        ratio = _wider([*whole.values()], [*single.values()])
        lines.append(f"| {criterion} | {' | '.join(cells)} | {ratio:.2f} times |")
    lines += [
        "",
        "An interval of a mean reaches as far as queries worse than any seen could take it: ten conversations of "
        "which none was lost leave open that three in ten are, and 77 turns that one in twenty is. That, more than "
        "what turns share, makes these intervals by conversation so wide, mostly downwards. Alphas and ratings have "
        "no such bound.",
        "",
        "Krippendorff's alpha of the raters, grades as an order:",
        "",
        "| | by conversation | by turn |",
        "|---|---|---|",
    ]
    for criterion in criteria:
        both = [grades.agreement(criterion, own).alpha_ordinal for own in (clusters, ALONE)]
        lines.append(f"| {criterion} | {' | '.join(map(_written, both))} |")
    whole_ratings, ratings = grades.ratings(clusters), grades.ratings()
    single_rows = {row.agent: row for row in ratings.agents}
    lines += [
        "",
        f"Win rates as {len(grades.verdicts()):,} verdicts, Bradley-Terry ratings ({whole_ratings.units} "
        f"{whole_ratings.noun[1]}, {ratings.units} {ratings.noun[1]}):",
        "",
        "| | by conversation | by turn | places by conversation |",
        "|---|---|---|---|",
    ]
    for row in whole_ratings.agents:
        ends = [f"{own.bt:.0f} ({own.bt_low:.0f} to {own.bt_high:.0f})" for own in (row, single_rows[row.agent])]
        lines.append(f"| {row.agent} | {' | '.join(ends)} | {row.rank_low} to {row.rank_high} |")
    lines += ["", f"Orders, best first: by win rate {', '.join(row.agent for row in whole_ratings.agents)}."]
    for criterion in criteria:
        means = grades.means(criterion)
        lines.append(f"By {criterion} {', '.join(sorted(means, key=lambda name: -(means[name].value or 0)))}.")
    lines += [
        "",
        f"Two agents as good as each other in {simulations:,} simulated tournaments of 40 conversations with 8 turns: "
        f"each conversation favours one of them on all of its turns, by {SD:g} log-odds (a standard deviation). Share "
        "of the 95 % intervals of a rating that hold the truth:",
        "",
        "| intervals | hold the truth | mean width |",
        "|---|---|---|",
        *(
            f"| {by} | {own.covered:.1%} | {own.width:.0f} points |"
            for by, own in simulated(simulations, 40, 8).items()
        ),
    ]
    return "\n".join(_folded(line) for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = Path(os.environ.get("RAGLEAGUE_SHARED", "../shared")) / "data/mtrag_human"
    parser.add_argument("folder", type=Path, nargs="?", default=folder)
    parser.add_argument("--simulations", type=int, default=1000)
    given = parser.parse_args()
    print(page(read_grades(given.folder), given.simulations), end="")


if __name__ == "__main__":
    main()
