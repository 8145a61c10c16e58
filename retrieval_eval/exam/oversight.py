"""Figures that help people to check grades and test banks (001, section 4.4).

They show passages and items whose grades disagree with people's relevance labels, each item's influence on the
leaderboard, and the effect of an edit of the bank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from retrieval_eval.exam.grades import UNGRADED, Grade, Grids, Rankings, make_grids
from retrieval_eval.exam.items import Bank, diff
from retrieval_eval.exam.scores import DEFAULT_K, correlate, cover_scores, exam_labels, places
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats import Floats


class Uncovered(Struct, frozen=True):
    """A relevant passage that covers no item, which suggests that the bank lacks one.

    ``best_grade`` is ``None`` without grades; ``ungraded`` is the number of items without a grade for this passage,
    which may cover any of them.
    """

    query_id: str
    passage_id: str
    label: int
    best_grade: int | None
    ungraded: int


class Spurious(Struct, frozen=True):
    """How many passages cover an item: of those that people labelled not relevant, and of those labelled relevant.

    ``of`` and ``of_relevant`` are the numbers of non-relevant and of relevant passages with a grade for the item.
    """

    query_id: str
    item_id: str
    not_relevant: int
    of: int
    relevant: int
    of_relevant: int


def graded_answers(grids: Grids, answers: Mapping[tuple[str, str, str], str]) -> Iterator[Grade]:
    """Yield grades and extracted answers item by item, highest grade first, ties in the order of the passages.

    The grade is ``None`` if there is only an answer. ``answers`` has the extracted answers by query, passage and item.
    """
    for query_id, grid in grids.grids.items():
        for column, item_id in enumerate(grid.items):
            order = np.argsort(-grid.grades[:, column].astype(np.int64), kind="stable")
            for row in order.tolist():
                grade, passage = int(grid.grades[row, column]), grid.passages[row]
                answer = answers.get((query_id, passage, item_id), "")
                if grade != UNGRADED or answer:
                    yield Grade(query_id, passage, item_id, None if grade == UNGRADED else grade, answer)


def uncovered_passages(grids: Grids, labels: Labels, *, level: int, relevant: int) -> list[Uncovered]:
    """Passages with a label of at least ``relevant`` and all grades below ``level``, most relevant first."""
    uncovered = []
    for query_id, grid in grids.grids.items():
        best = grid.grades.max(axis=1, initial=UNGRADED)
        for row, passage in enumerate(grid.passages):
            label = labels.get(query_id, {}).get(passage)
            if label is not None and label >= relevant and best[row] < level:
                missing = int((grid.grades[row] == UNGRADED).sum())
                grade = None if best[row] == UNGRADED else int(best[row])
                uncovered.append(Uncovered(query_id, passage, label, grade, missing))
    return sorted(uncovered, key=lambda passage: -passage.label)


def spurious_items(grids: Grids, labels: Labels, *, level: int, relevant: int) -> list[Spurious]:
    """Items covered by passages with a label below ``relevant``, most often covered first."""
    spurious = []
    for query_id, grid in grids.grids.items():
        query_labels = labels.get(query_id, {})
        is_relevant = np.array(
            [query_labels.get(passage, relevant - 1) >= relevant for passage in grid.passages], np.bool_
        )
        not_relevant = np.array([passage in query_labels for passage in grid.passages], np.bool_) & ~is_relevant
        covers, graded = grid.grades >= level, grid.grades != UNGRADED
        counts = [table[side].sum(axis=0) for side in (not_relevant, is_relevant) for table in (covers, graded)]
        for column, item_id in enumerate(grid.items):
            item = Spurious(query_id, item_id, *(int(count[column]) for count in counts))
            if item.not_relevant:
                spurious.append(item)
    return sorted(spurious, key=lambda item: (-item.not_relevant, item.relevant))


def grid_rows(grids: Grids, query_id: str) -> Iterator[tuple[str, Sequence[int | None]]]:
    """Yield a query's passages and their grades, highest sum of grades first; ``None`` for an ungraded pair."""
    grid = grids.grids[query_id]
    sums = np.where(grid.grades == UNGRADED, 0, grid.grades).sum(axis=1)
    for row in np.argsort(-sums, kind="stable").tolist():
        yield grid.passages[row], [None if grade == UNGRADED else int(grade) for grade in grid.grades[row]]


class Influence(Struct, frozen=True):
    """How the leaderboard changes if one item of the test bank is left out.

    Attributes:
        kendall: tau-b of the leaderboards with and without the item; ``None`` if all agents of either are tied.
        moved: number of agents whose place changes.
        largest_move: largest change of an agent's place.
        new_leader: whether another agent, or another set of tied agents, becomes first.
    """

    query_id: str
    item_id: str
    kendall: float | None
    moved: int
    largest_move: float
    new_leader: bool


class LabelChange(Struct, frozen=True):
    """A passage's EXAM-Qrels label before and after an edit; ``None`` without a label."""

    query_id: str
    passage_id: str
    before: int | None
    after: int | None


class PlaceChange(Struct, frozen=True):
    """An agent's cover (mean share of covered items) and place before and after an edit; ``None`` if unknown."""

    agent: str
    before: float | None
    after: float | None
    place_before: float | None
    place_after: float | None


class EditEffect(Struct, frozen=True):
    """Effect of a new version of a test bank on labels and the leaderboard, computed from the existing grades.

    Attributes:
        labels: passages whose label changes.
        places: each agent's cover and place before and after the edit, in the order of the new leaderboard.
        kendall: tau-b of the old and the new leaderboard.
        to_grade: number of pairs of passage and item without a grade in the new version. Labels and scores use only
            items with grades.
    """

    labels: tuple[LabelChange, ...]
    places: tuple[PlaceChange, ...]
    kendall: float | None
    to_grade: int


class Covers(Struct, frozen=True):
    """Which items (questions or nuggets) of one query each agent's answer covers.

    ``by_agent`` is 1 if an agent covers an item, 0 if not, NaN if unknown; shape (agents, items).
    """

    items: tuple[str, ...]
    weights: Floats
    by_agent: Floats


def exam_covers(
    grids: Grids, rankings: Rankings, *, level: int, k: int = DEFAULT_K
) -> tuple[tuple[str, ...], dict[str, Covers]]:
    """The agents' names, and which items each agent covers, by query; leaves out queries without items."""
    agents = tuple(sorted({agent for _, agent in rankings}))
    covers = {}
    for query_id, grid in grids.grids.items():
        if grid.items:
            by_agent = np.zeros((len(agents), len(grid.items)))
            for number, agent in enumerate(agents):
                response_grades = grid.grades[grid.rows(rankings.get((query_id, agent), ())[:k])]
                covered, unknown = (response_grades >= level).any(axis=0), (response_grades == UNGRADED).any(axis=0)
                by_agent[number] = np.where(covered, 1.0, np.where(unknown, np.nan, 0.0))
            covers[query_id] = Covers(grid.items, grid.weights, by_agent)
    return agents, covers


def influences(grids: Grids, rankings: Rankings, *, level: int, k: int = DEFAULT_K) -> list[Influence]:
    """Each item's influence on the leaderboard of EXAM-Cover, largest first; see ``left_out``."""
    return left_out(*exam_covers(grids, rankings, level=level, k=k))


def left_out(agents: tuple[str, ...], covers: Mapping[str, Covers]) -> list[Influence]:
    """Leave out each item in turn and compare leaderboards, largest influence first.

    An agent's score on a query is the weight of the items that it covers, divided by the weight of all items that it is
    known to cover or not to cover. The leaderboard ranks agents by their mean score. A query does not count if its
    items have a total weight of 0, or if its only item is the one left out.
    """
    counted = {query_id: cover for query_id, cover in covers.items() if cover.weights.sum() > 0}
    shares = {query_id: _shares(cover.by_agent, cover.weights) for query_id, cover in counted.items()}
    total = sum(map(_part, shares.values()), np.zeros((2, len(agents))))
    all_places = _places(agents, total)
    self_tau = correlate(all_places, all_places).kendall
    item_influences = []
    for query_id, cover in counted.items():
        rest = total - _part(shares[query_id])
        for column, item_id in enumerate(cover.items):
            remaining = np.arange(len(cover.items)) != column
            new_places = _places(agents, rest + _part(_shares(cover.by_agent[:, remaining], cover.weights[remaining])))
            moves = [abs(new_places[agent] - place) for agent, place in all_places.items() if agent in new_places]
            moved_agents = sum(move > 0 for move in moves)
            tau = correlate(all_places, new_places).kendall if moved_agents else self_tau
            new_leader = _leaders(all_places) != _leaders(new_places)
            item_influences.append(Influence(query_id, item_id, tau, moved_agents, max(moves, default=0.0), new_leader))
    return sorted(item_influences, key=lambda item: (not item.new_leader, -item.moved, -item.largest_move))


def _shares(by_agent: Floats, weights: Floats) -> Floats:
    """Each agent's share of covered items by weight, over items known to be covered or not; NaN without any."""
    known = ~np.isnan(by_agent)
    covered, known_weights = np.where(known, by_agent, 0.0) @ weights, known @ weights
    shares: Floats = np.divide(
        covered, known_weights, out=np.full(known_weights.shape, np.nan), where=known_weights > 0
    )
    return shares


def _part(shares: Floats) -> Floats:
    """One query's contribution to each agent's sum of shares and to its number of shares, shape (2, agents)."""
    known = ~np.isnan(shares)
    return np.array([np.where(known, shares, 0.0), known])


def edit_effect(
    before: Bank, after: Bank, grades: Iterable[Grade], rankings: Rankings, *, level: int, k: int = DEFAULT_K
) -> EditEffect:
    """Compare passages' labels and agents' places by two versions of a test bank; ignores grades of edited items."""
    grades = list(grades)
    changed = {new.item_id for old, new in diff(before, after).edited if new.item_id == old.item_id}
    valid = [entry for entry in grades if entry.item_id not in changed]
    graded_ids = {entry.item_id for entry in valid if entry.grade is not None}
    graded_bank = replace(after, items=tuple(item for item in after.items if item.item_id in graded_ids))
    grids, new_grids = make_grids(grades, before, rankings), make_grids(valid, graded_bank, rankings)
    both_means = [_means(side, rankings, level, k) for side in (grids, new_grids)]
    both_places = [places({agent: mean for agent, mean in side.items() if mean is not None}) for side in both_means]
    moves = [
        PlaceChange(agent, both_means[0].get(agent), mean, both_places[0].get(agent), both_places[1].get(agent))
        for agent, mean in both_means[1].items()
    ]
    return EditEffect(
        tuple(_label_changes(grids, new_grids)),
        tuple(sorted(moves, key=lambda move: (move.place_after is None, move.place_after or 0, move.agent))),
        correlate(*both_places).kendall,
        make_grids(valid, after, rankings).ungraded,
    )


def _means(grids: Grids, rankings: Rankings, level: int, k: int) -> dict[str, float | None]:
    means = cover_scores(grids, rankings, levels=(level,), k=k).by_level[level]["cover"].means
    return {agent: mean.value for agent, mean in means.items()}


def _label_changes(old: Grids, new: Grids) -> Iterable[LabelChange]:
    before, after = exam_labels(old).labels, exam_labels(new).labels
    for query_id in dict.fromkeys([*before, *after]):
        sides = before.get(query_id, {}), after.get(query_id, {})
        for passage in dict.fromkeys([*sides[0], *sides[1]]):
            labels = sides[0].get(passage), sides[1].get(passage)
            if labels[0] != labels[1]:
                yield LabelChange(query_id, passage, *labels)


def _places(agents: tuple[str, ...], total: Floats) -> dict[str, float]:
    return places({agent: part / n for agent, part, n in zip(agents, *total.tolist(), strict=True) if n})


def _leaders(ranks: dict[str, float]) -> set[str]:
    return {agent for agent, place in ranks.items() if place == min(ranks.values())}
