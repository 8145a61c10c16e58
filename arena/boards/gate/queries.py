"""Two agents compared query by query: where the new one lost, in which groups of queries, and what both cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from arena.boards.compare import score_of
from arena.boards.gate.board import group_table
from arena.boards.gate.compare import compare
from arena.boards.gate.figures import FORM, MARGIN, PAIRWISE, SIGNED, GroupCompared
from arena.data.dataset import groupings
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import counted, listed
from arena.present.picture import nowhere
from arena.present.table import Column, Table, fields
from arena.ratings.games import WinAndTie
from arena.results.cache import cached_games
from arena.results.costs import CostBoard, agent_costs
from arena.results.games import GameTable
from arena.results.groups import shares_against
from arena.results.scores import means_of
from arena.store import Store
from judges.types import Query
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.scores import Scores


class QueryPair(Struct, frozen=True):
    """The scores of both agents on one query; for games, their shares of the points against each other."""

    query_id: str
    new: float
    old: float
    lower: bool = False

    @property
    def difference(self) -> float:
        """How much better the new agent is; old minus new if ``lower`` is better."""
        return self.old - self.new if self.lower else self.new - self.old


class PairBoard(Board, frozen=True, eq=False):
    """Two agents compared by one score, by group of queries and query by query.

    Attributes:
        margin: how much worse the new agent may be on a group and still pass.
        pairs: the queries with a score of both agents, the new agent's largest losses first.
        groups: the comparison on each group of queries by each column, as ``compare(by=COLUMN)`` makes it.
    """

    new: str
    old: str
    on: str
    margin: float
    pairs: Sequence[QueryPair]
    groups: Sequence[GroupCompared]
    costs: CostBoard
    queries: Mapping[str, Query]

    @property
    def finding(self) -> str:
        worse = sum(pair.difference < 0 for pair in self.pairs)
        better = sum(pair.difference > 0 for pair in self.pairs)
        of = f"of {counted(len(self.pairs), 'query', 'queries')}"
        return f"{self.new} does worse than {self.old} on {worse:,} {of}, better on {better:,}, alike on the others."

    @property
    def collapsed(self) -> str:
        """A warning if the new agent is worse in some group by more than chance; empty if there is none."""
        names = [group.name for group in self.groups if group.verdict == "worse"]
        return f"Worse than {self.old} by more than chance where {listed(names)}." if names else ""

    def sections(self) -> Sequence[Section]:
        return [*self.details(), Section("pairs", "Queries", "", [Remarks([self.finding]), self.query_table()])]

    def details(self) -> list[Section]:
        """Sections on groups of queries and on costs; each is left out if it would be empty."""
        tested, few = ([group for group in self.groups if group.few is few] for few in (False, True))
        untested = f"{counted(len(few), 'group')} of fewer than {FEW_QUERIES} queries: too few to tell."
        blocks: list[Block] = [group_table(tested)] if tested else []
        groups = Section("groups", "By group of queries", "", blocks + [Remarks([untested])] * bool(few))
        return [*([groups] if self.groups else []), *self.costs.sections()]

    def scores_line(self, pair: QueryPair) -> str:
        if self.on == PAIRWISE:  # the two shares say it all
            return f"{self.new} won {FORM.write(pair.new)} of the points, {self.old} {FORM.write(pair.old)}"
        figures = f"{self.new} {FORM.write(pair.new)}, {self.old} {FORM.write(pair.old)}"
        return f"{figures}, difference {SIGNED.write(pair.difference)}"

    def query_table(self, link: Callable[[str], str] = nowhere) -> Table:
        rows = [
            fields(pair, "query_id", "new", "old", "difference")
            | {"text": self.queries[pair.query_id].text, "to": link(pair.query_id)}
            for pair in self.pairs
        ]
        columns = (
            Column("query_id", "Query", link="to"),
            Column("text", "Text", link="to"),
            Column("new", "New", FORM),
            Column("old", "Old", FORM),
            Column("difference", "" if self.on == PAIRWISE else "New less old", SIGNED),
        )
        return Table("pairs", "", columns, rows)


def pair_board(
    store: Store, tournament: str, pair: tuple[str, str], on: str, *, margin: float = MARGIN, by: str = ""
) -> PairBoard:
    """Compare two agents on each query and each group of queries, by one of the scores that ``compare`` accepts.

    ``by`` names the only column of groups; by default all columns share one correction.
    """
    new, old = pair
    data = store.dataset(tournament)
    every: Sequence[Scores] = ()
    if on == PAIRWISE:
        games = cached_games(store, tournament)
        scores = _shares(games, store.settings(tournament).win_and_tie, new, old)
        lower = False
    else:
        every = means_of(store, tournament, lambda: data, every=True)
        means = next(means for means in every if means.name in (on, score_of(on)))
        means = means.contributions() if means.conditional else means
        scores, lower = {}, means.lower
        if new in means.agents and old in means.agents:
            both = means.values[[means.agents.index(new), means.agents.index(old)]].T.tolist()
            scores = dict(zip(means.queries, map(tuple, both), strict=True))
    pairs = [
        QueryPair(name, *both, lower)
        for name, both in scores.items()
        if name in data.queries and not np.isnan(both).any()
    ]
    columns = [by] if by else [*groupings(data.queries.values())]
    groups: Sequence[GroupCompared] = ()
    if columns:
        groups = compare(store, tournament, new, old, on=on, margin=margin, by=columns, every=every).groups
    costs = [costs for costs in agent_costs(data, {}) if costs.agent in (new, old)]
    return PairBoard(
        new,
        old,
        on,
        margin,
        sorted(pairs, key=lambda pair: pair.difference),
        groups,
        CostBoard(tuple(sorted(costs, key=lambda costs: costs.agent != new))),
        data.queries,
    )


def _shares(games: GameTable, win_and_tie: WinAndTie, new: str, old: str) -> dict[str, tuple[float, float]]:
    """By query, the shares of the points that the new and the old agent won in their games against each other."""
    if new not in games.agents or old not in games.agents:
        return {}
    won = shares_against(games, new, games.scores(win_and_tie))[games.agents.index(old)].tolist()
    return {name: (share, 1 - share) for name, share in zip(games.queries, won, strict=True)}
