"""What a person looks at before trusting grades and a bank (001, section 4.4): answers, gaps, influence, edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from retrieval_eval.exam.grades import UNGRADED, Grade, Grids, Rankings, make_grids
from retrieval_eval.exam.items import Bank, diff
from retrieval_eval.exam.scores import DEFAULT_K, correlate, cover_means, cover_scores, exam_labels, places
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats.arrays import Floats


class GradedAnswer(Struct, frozen=True):
    """A grade beside the answer that was extracted; ``grade`` is ``None`` where there is none."""

    query_id: str
    item_id: str
    passage_id: str
    grade: int | None
    answer: str


class Uncovered(Struct, frozen=True):
    """A relevant passage that covers no item: the bank may lack one.

    Attributes:
        label: its relevance by people.
        best_grade: its highest, ``None`` where it has none.
        ungraded: items that it was not graded against; any of them may cover it.
    """

    query_id: str
    passage_id: str
    label: int
    best_grade: int | None
    ungraded: int


class Spurious(Struct, frozen=True):
    """How often an item is covered by passages that people found not relevant, and by relevant ones.

    Attributes:
        not_relevant: passages without relevance that cover it.
        of: passages without relevance that were graded against it.
        relevant: relevant passages that cover it.
        of_relevant: relevant passages that were graded against it.
    """

    query_id: str
    item_id: str
    not_relevant: int
    of: int
    relevant: int
    of_relevant: int


def graded_answers(grids: Grids, answers: Mapping[tuple[str, str, str], str]) -> Iterator[GradedAnswer]:
    """All grades and extracted answers, item by item, the highest grade first, then in the order of the passages.

    Args:
        grids: the grades.
        answers: by query, passage and item.
    """
    for query_id, grid in grids.grids.items():
        for column, item_id in enumerate(grid.items):
            order = np.argsort(-grid.grades[:, column].astype(np.int64), kind="stable")
            for row in order.tolist():
                grade, passage = int(grid.grades[row, column]), grid.passages[row]
                answer = answers.get((query_id, passage, item_id), "")
                if grade != UNGRADED or answer:
                    yield GradedAnswer(query_id, item_id, passage, None if grade == UNGRADED else grade, answer)


def uncovered_passages(grids: Grids, labels: Labels, *, level: int, relevant: int) -> list[Uncovered]:
    """Passages labelled ``relevant`` or more of which no grade reaches ``level``, the most relevant ones first."""
    found = []
    for query_id, grid in grids.grids.items():
        best = grid.grades.max(axis=1, initial=UNGRADED)
        for row, passage in enumerate(grid.passages):
            label = labels.get(query_id, {}).get(passage)
            if label is not None and label >= relevant and best[row] < level:
                missing = int((grid.grades[row] == UNGRADED).sum())
                grade = None if best[row] == UNGRADED else int(best[row])
                found.append(Uncovered(query_id, passage, label, grade, missing))
    return sorted(found, key=lambda passage: -passage.label)


def spurious_items(grids: Grids, labels: Labels, *, level: int, relevant: int) -> list[Spurious]:
    """Items covered by passages labelled below ``relevant``, the most often so first. Only labelled passages count."""
    found = []
    for query_id, grid in grids.grids.items():
        known = labels.get(query_id, {})
        good = np.array([known.get(passage, relevant - 1) >= relevant for passage in grid.passages], np.bool_)
        bad = np.array([passage in known for passage in grid.passages], np.bool_) & ~good
        covers, graded = grid.grades >= level, grid.grades != UNGRADED
        counts = [table[side].sum(axis=0) for side in (bad, good) for table in (covers, graded)]
        for column, item_id in enumerate(grid.items):
            item = Spurious(query_id, item_id, *(int(count[column]) for count in counts))
            if item.not_relevant:
                found.append(item)
    return sorted(found, key=lambda item: (-item.not_relevant, item.relevant))


def grid_rows(grids: Grids, query_id: str) -> Iterator[tuple[str, Sequence[int | None]]]:
    """The grid of one query, passages with the highest sum of grades first; ``None`` stands for an ungraded pair."""
    grid = grids.grids[query_id]
    sums = np.where(grid.grades == UNGRADED, 0, grid.grades).sum(axis=1)
    for row in np.argsort(-sums, kind="stable").tolist():
        yield grid.passages[row], [None if grade == UNGRADED else int(grade) for grade in grid.grades[row]]


class Influence(Struct, frozen=True):
    """What the leaderboard would be without one item.

    Attributes:
        kendall: tau-b of the leaderboards with and without it; ``None`` where one of them has only ties.
        moved: agents whose place changes.
        largest_move: of an agent, in places.
        new_leader: whether another agent, or another set of tied agents, comes first.
    """

    query_id: str
    item_id: str
    kendall: float | None
    moved: int
    largest_move: float
    new_leader: bool


class LabelChange(Struct, frozen=True):
    """A passage whose EXAM-Qrels label an edit changes; ``None`` stands for no label."""

    query_id: str
    passage_id: str
    before: int | None
    after: int | None


class PlaceChange(Struct, frozen=True):
    """An agent's cover and place before and after an edit; ``None`` where nothing is known of it."""

    agent: str
    before: float | None
    after: float | None
    place_before: float | None
    place_after: float | None


class EditEffect(Struct, frozen=True):
    """What a new version of a bank changes while only the old grades are known.

    Attributes:
        labels: passages whose label changes.
        places: of all agents, in the order of the new leaderboard.
        kendall: tau-b of the two leaderboards.
        to_grade: pairs of passage and item that the new version needs graded. Until then labels and scores are over the
            items that have grades.
    """

    labels: tuple[LabelChange, ...]
    places: tuple[PlaceChange, ...]
    kendall: float | None
    to_grade: int


class Covers(Struct, frozen=True):
    """Who covers which items of one query.

    Attributes:
        items: ids.
        weights: shape (items,).
        by_agent: 1 where an agent covers an item, 0 where it does not, NaN where nobody knows; shape (agents, items).
    """

    items: tuple[str, ...]
    weights: Floats
    by_agent: Floats


def exam_covers(
    grids: Grids, rankings: Rankings, *, level: int, k: int = DEFAULT_K
) -> tuple[tuple[str, ...], dict[str, Covers]]:
    """The agents, and by query who covers which items of it; queries without items are left out."""
    agents = tuple(sorted({agent for _, agent in rankings}))
    found = {}
    for query_id, grid in grids.grids.items():
        if grid.items:
            by_agent = np.zeros((len(agents), len(grid.items)))
            for number, agent in enumerate(agents):
                seen = grid.grades[grid.rows(rankings.get((query_id, agent), ())[:k])]
                covered, unknown = (seen >= level).any(axis=0), (seen == UNGRADED).any(axis=0)
                by_agent[number] = np.where(covered, 1.0, np.where(unknown, np.nan, 0.0))
            found[query_id] = Covers(grid.items, grid.weights, by_agent)
    return agents, found


def influences(grids: Grids, rankings: Rankings, *, level: int, k: int = DEFAULT_K) -> list[Influence]:
    """Leave out each item in turn, those that move the leaderboard most first; see ``left_out``."""
    return left_out(*exam_covers(grids, rankings, level=level, k=k))


def left_out(agents: tuple[str, ...], covers: Mapping[str, Covers]) -> list[Influence]:
    """Leave out each item in turn, those that move the leaderboard most first. A query's only item takes it along.

    The leaderboard is that of the mean over queries of the share of weights that an agent covers, among the items of
    which that is known. A query without any, or whose items weigh nothing, is in no mean.
    """
    counted = {query_id: own for query_id, own in covers.items() if own.weights.sum() > 0}
    shares = {query_id: _shares(own.by_agent, own.weights) for query_id, own in counted.items()}
    total = sum(map(_part, shares.values()), np.zeros((2, len(agents))))
    whole = _places(agents, total)
    unmoved = correlate(whole, whole).kendall
    found = []
    for query_id, own in counted.items():
        rest = total - _part(shares[query_id])
        for column, item_id in enumerate(own.items):
            left = np.arange(len(own.items)) != column
            ranks = _places(agents, rest + _part(_shares(own.by_agent[:, left], own.weights[left])))
            moves = [abs(ranks[agent] - place) for agent, place in whole.items() if agent in ranks]
            moved = sum(move > 0 for move in moves)
            tau = correlate(whole, ranks).kendall if moved else unmoved
            new_leader = _leaders(whole) != _leaders(ranks)
            found.append(Influence(query_id, item_id, tau, moved, max(moves, default=0.0), new_leader))
    return sorted(found, key=lambda item: (not item.new_leader, -item.moved, -item.largest_move))


def _shares(by_agent: Floats, weights: Floats) -> Floats:
    """Share of the weights that each agent covers among the items of which it is known; NaN without any."""
    known = ~np.isnan(by_agent)
    covered, of = np.where(known, by_agent, 0.0) @ weights, known @ weights
    shares: Floats = np.divide(covered, of, out=np.full(of.shape, np.nan), where=of > 0)
    return shares


def _part(shares: Floats) -> Floats:
    """What one query adds to the sums of shares and to their number, shape (2, agents)."""
    known = ~np.isnan(shares)
    return np.array([np.where(known, shares, 0.0), known])


def edit_effect(
    before: Bank, after: Bank, grades: Iterable[Grade], rankings: Rankings, *, level: int, k: int = DEFAULT_K
) -> EditEffect:
    """Compare labels and places under two versions of a bank. Grades of an item whose question changed do not count."""
    grades = list(grades)
    changed = {new.item_id for old, new in diff(before, after).edited if new.item_id == old.item_id}
    kept = [entry for entry in grades if entry.item_id not in changed]
    there = {entry.item_id for entry in kept if entry.grade is not None}
    known = replace(after, items=tuple(item for item in after.items if item.item_id in there))
    grids, new_grids = make_grids(grades, before, rankings), make_grids(kept, known, rankings)
    means = [_means(side, rankings, level, k) for side in (grids, new_grids)]
    ranks = [places({agent: mean for agent, mean in side.items() if mean is not None}) for side in means]
    moves = [
        PlaceChange(agent, means[0].get(agent), mean, ranks[0].get(agent), ranks[1].get(agent))
        for agent, mean in means[1].items()
    ]
    return EditEffect(
        tuple(_label_changes(grids, new_grids)),
        tuple(sorted(moves, key=lambda move: (move.place_after is None, move.place_after or 0, move.agent))),
        correlate(*ranks).kendall,
        make_grids(kept, after, rankings).ungraded,
    )


def _means(grids: Grids, rankings: Rankings, level: int, k: int) -> dict[str, float | None]:
    scores = cover_scores(grids, rankings, levels=(level,), k=k)
    return {agent: value.value for agent, value in cover_means(scores, scores.cover, level).items()}


def _label_changes(old: Grids, new: Grids) -> Iterable[LabelChange]:
    before, after = exam_labels(old).labels, exam_labels(new).labels
    for query_id in dict.fromkeys([*before, *after]):
        sides = before.get(query_id, {}), after.get(query_id, {})
        for passage in dict.fromkeys([*sides[0], *sides[1]]):
            labels = sides[0].get(passage), sides[1].get(passage)
            if labels[0] != labels[1]:
                yield LabelChange(query_id, passage, *labels)


def _places(agents: tuple[str, ...], total: Floats) -> dict[str, float]:
    """Places of the agents of whom anything is known, by their sums of shares and the number of these."""
    return places({agent: part / n for agent, part, n in zip(agents, *total.tolist(), strict=True) if n})


def _leaders(ranks: dict[str, float]) -> set[str]:
    return {agent for agent, place in ranks.items() if place == min(ranks.values())}
