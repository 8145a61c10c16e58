"""Audit: known cheats play against the agents' answers, to see whether a judge gives points away to them.

Their games are a task of their own, so they enter no rating: cheats are placed against the ratings that the agents have
without them. On each query all of them meet one agent, the agents in turn, in both orders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import numpy as np
from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator, Field

from arena.boards.trust import NOT_FOOLED
from arena.calibration.gaming import CANARIES, COPIES, rating_for
from arena.config.whole import Config
from arena.data.dataset import Dataset
from arena.present.blocks import Board, Check, Checks, Section, Status, settled
from arena.present.numbers import COUNT, PERCENT, listed, with_interval
from arena.present.table import Column, Table
from arena.ratings.rate import rate
from arena.ratings.results import Ratings
from arena.results.cache import cached_games
from arena.results.ratings import rating_settings
from arena.results.samples import outcomes
from arena.stages.base import Release, TournamentStage
from arena.stages.labels import Labels
from arena.store import IDENTICAL, Store, Wanted
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.prompts.tasks import PairwiseOptions, pairwise_prompt, references
from judges.sections import Section as ConfigSection
from judges.sections import as_list, each_once, nearest
from judges.types import Answer, Judgment, Prompt, Task, Verdict
from retrieval_eval.stats.bootstrap import Clusters, share_estimate, units_of
from retrieval_eval.stats.estimate import Estimate

AUDIT: Final = Task("audit")
BAR: Final = 0.15
"""Share of points that may be given away."""
_POINTS: Final = {Verdict.A.value: 1.0, Verdict.TIE.value: 0.5, Verdict.B.value: 0.0}


def _known(names: list[str]) -> list[str]:
    if unknown := [name for name in names if name not in CANARIES]:
        raise ValueError(f"unknown cheat {unknown[0]!r}{nearest(unknown[0], CANARIES)}")
    return each_once(names)


class AuditSection(ConfigSection):
    """[Known cheats play](judge-card.md#cheats) under the rules of ``pairwise``, and are never rated."""

    judge: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1)]
    """One judge, or a list."""
    canaries: Annotated[list[str], BeforeValidator(as_list), AfterValidator(_known), Field(min_length=1)] = [*CANARIES]
    """The cheats, all by default."""


SECTION: Final = AuditSection


class AuditStage(TournamentStage):
    """A game is wanted of the cheat, as ``item``, and the agent, as ``other``; order "ba" shows the agent first."""

    key = "audit"

    def __init__(self, section: AuditSection, config: Config, data: Dataset, labels: Labels) -> None:
        super().__init__(config, data, labels)
        if config.pairwise is None:
            raise ConfigError("audit: cheats play under the rules of 'pairwise', which the configuration lacks")
        self._section, self._rules = section, config.pairwise
        self.templates = {AUDIT: load_prompt(self._rules.prompt, Task.PAIRWISE)}
        self.waits_for_labels = labels.are_shown(self._rules.documents)
        self._options = PairwiseOptions(self._rules.documents.options(), self._rules.citations, self._rules.factors)
        self._opponents = _opponents(data)

    def first(self, query_id: str) -> Release:
        """All games on a query."""
        agent = self._opponents.get(query_id)
        return Release.all(
            Wanted(AUDIT, judge, query_id, canary, agent, order)
            for judge in self._section.judge
            for canary in self._section.canaries
            for order in ("ab", "ba")
            if agent is not None
        )

    def prompt(self, want: Wanted) -> Prompt | None:
        """As that of a game between agents; the documents are those of the one agent."""
        documents = self.labels.shown(want.query_id, {want.other}, self._rules.documents)
        if documents is None:
            return None
        query, answers = self.data.queries[want.query_id], self._shown(want)
        if self._options.checks_citations:  # a cheat cites, if at all, what the answer cites that it meets
            shown = [entry.document.doc_id for entry in references(documents, self._options.references)]
            first, second = (self.data.renumbered(own, shown, want.other) for own in answers)
            answers = first, second
        return pairwise_prompt(self.templates[AUDIT], query, answers, documents, self._options)

    def _shown(self, want: Wanted) -> tuple[Answer, Answer]:
        other = self.data.answers[want.query_id, want.other]
        text = CANARIES[want.item](self.data.queries[want.query_id].text, other.text)
        canary = Answer(want.query_id, want.item, text)
        return (canary, other) if want.order == "ab" else (other, canary)

    def free(self, want: Wanted) -> str | None:
        """Answers of the same text are a tie."""
        first, second = self._shown(want)
        return IDENTICAL if first.text == second.text else None


def _opponents(data: Dataset) -> dict[str, str]:
    """Whom the cheats meet, by query: the agents in turn."""
    found: dict[str, str] = {}
    for number, query_id in enumerate(data.queries):
        if there := [agent for agent in data.agents if (query_id, agent) in data.answers]:
            found[query_id] = there[number % len(there)]
    return found


_COLUMNS: Final = (
    Column("judge", "Judge"),
    Column("canary", "Cheat"),
    Column("queries", "Queries", COUNT, "Those on which both orders were judged."),
    Column("missing", "Missing", COUNT, "Queries without both verdicts; in no figure."),
    Column("points", "Points", PERCENT, "Share of points against the agents, a tie half.", "95% interval"),
    Column("fair", "Fair", PERCENT, "What it deserves: half where it copies the answer that it meets."),
    Column("given", "Given away", PERCENT, "Points less what is fair.", "95% interval"),
    Column("rank", "Would rank", meaning="The place that these points would give it among the agents."),
)


class AuditBoard(Board, frozen=True):
    """What the cheats got; ``rows`` as of the table."""

    rows: Sequence[Mapping[str, Any]]

    def sections(self) -> list[Section]:  # noqa: D102
        lead = "Known cheats played against the agents. They are rated apart and are no agents."
        table = Table("audit", "Points given away to cheats", _COLUMNS, self.rows)
        return [Section("audit", "Can the judge be gamed?", lead, [Checks(self.checks()), table])]

    def checks(self) -> list[Check]:
        """That each judge gives little away."""
        return [self._check(judge) for judge in dict.fromkeys(row["judge"] for row in self.rows)]

    def _check(self, judge: str) -> Check:
        own = [row for row in self.rows if row["judge"] == judge]
        status = {row["canary"]: settled(row["given"], -1, BAR) for row in own}
        fooled = [name for name, found in status.items() if found == "failed"]
        unknown = [name for name, found in status.items() if found == "unknown"]
        known = [row for row in own if row["given"].value is not None]
        said = "Of no cheat are both verdicts of a query there"
        if known:
            worst = max(known, key=lambda row: row["given"].value)
            said = f"It gives {with_interval(worst['given'], PERCENT)} of points away to '{worst['canary']}'"
        if fooled:
            said += f", and is fooled by {listed(fooled)}"
        elif unknown:
            said += f"; not known for {listed(unknown, 3)}"
        verdict: Status = "failed" if fooled else "unknown" if unknown else "passed"
        remedy = "Take another judge or prompt, and look for such answers among those of the agents."
        if verdict == "unknown":
            remedy = "Add queries: a cheat meets one agent on each."
        return Check(f"{NOT_FOOLED} {judge}", verdict, f"{said}; the bar is {PERCENT.write(BAR)}.", remedy)

    def json(self) -> list[dict[str, Any]]:  # noqa: D102
        return [dict(row) for row in self.rows]


def board(store: Store, tournament: str) -> AuditBoard:
    """What the stage has come to."""
    settings, games = store.settings(tournament), cached_games(store, tournament)
    how = replace(rating_settings(settings), intervals="sandwich", bootstrap=0, tournaments=0, fragility="none")
    rated = rate(games.verdicts(), how) if games.played.any() else None
    points: defaultdict[tuple[str, str], dict[tuple[str, str], dict[str, float]]] = defaultdict(dict)
    for want, result in outcomes(store, tournament, AUDIT):
        own = points[want.judge, want.item].setdefault((want.query_id, want.other), {})
        if isinstance(result, Judgment):
            won = _POINTS[str(result.outcome)]
            own[want.order] = won if want.order == "ab" else 1 - won
    return AuditBoard([_row(key, own, rated, games.clusters) for key, own in points.items()])


def _row(
    key: tuple[str, str],
    games: Mapping[tuple[str, str], Mapping[str, float]],
    rated: Ratings | None,
    clusters: Clusters,
) -> dict[str, Any]:
    judge, canary = key
    ratings = {} if rated is None else {row.agent: row.bt for row in rated.agents}
    whole = {game: sum(own.values()) / 2 for game, own in games.items() if len(own) == 2}
    unit = units_of([clusters.get(game[0], repr(game)) for game in whole])
    share = share_estimate(np.bincount(unit, [*whole.values()]), np.bincount(unit))
    fair = 0.5 if canary in COPIES else 0.0
    met = [ratings[agent] for _, agent in whole if agent in ratings]
    model: dict[str, Any] = {}
    if rated is not None:
        model = {"ties": rated.settings.tie_model, "tie_parameter": rated.tie_parameter, "scale": rated.settings.scale}
    places = [_place(rating_for(end, met, **model), ratings) for end in (share.value, share.high, share.low)]
    rank = None
    if places[0] is not None:
        rank = f"{places[0]} of {len(ratings) + 1}"
        rank += f" ({places[1]} to {places[2]})" if None not in places and places[1] != places[2] else ""
    value, low, high = (None if end is None else end - fair for end in (share.value, share.low, share.high))
    return {
        "judge": judge,
        "canary": canary,
        "queries": len(whole),
        "missing": len(games) - len(whole),
        "points": share,
        "fair": fair,
        "given": Estimate(value, low, high),
        "rank": rank,
    }


def _place(rating: float | None, ratings: Mapping[str, float]) -> int | None:
    """The place among the agents, which keep their ratings."""
    return None if rating is None or not ratings else 1 + sum(own > rating for own in ratings.values())
