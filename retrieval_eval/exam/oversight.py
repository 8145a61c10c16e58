"""What a person looks at before trusting grades and a bank (001, section 4.4): answers, gaps, influence, edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_eval.exam.grades import UNGRADED, Grade, Grid, Grids, Labels, Rankings, make_grids
from retrieval_eval.exam.items import Bank, diff
from retrieval_eval.exam.scores import DEFAULT_K, correlate, cover_means, cover_scores, exam_labels, places
from retrieval_eval.stats.bootstrap import Floats


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """A grade beside the answer that was extracted; ``grade`` is ``None`` where there is none."""

    query_id: str
    item_id: str
    passage_id: str
    grade: int | None
    answer: str


@dataclass(frozen=True, slots=True)
class Uncovered:
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


@dataclass(frozen=True, slots=True)
class Spurious:
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


@dataclass(frozen=True, slots=True)
class Influence:
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


@dataclass(frozen=True, slots=True)
class LabelChange:
    """A passage whose EXAM-Qrels label an edit changes; ``None`` stands for no label."""

    query_id: str
    passage_id: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """An agent's cover and place before and after an edit."""

    agent: str
    before: float
    after: float
    place_before: float
    place_after: float


@dataclass(frozen=True)
class EditEffect:
    """What a new version of a bank changes while only the old grades are known.

    Attributes:
        labels: passages whose label changes.
        places: of all agents, in the order of the new leaderboard.
        kendall: tau-b of the two leaderboards.
        to_grade: pairs of passage and item that the new version needs graded. Until then added and edited items count
            as covered by nobody, which lowers every score alike in the bank's size.
    """

    labels: tuple[LabelChange, ...]
    places: tuple[PlaceChange, ...]
    kendall: float | None
    to_grade: int


def influences(grids: Grids, rankings: Rankings, *, level: int, k: int = DEFAULT_K) -> list[Influence]:
    """Leave out each item in turn, those that move the leaderboard most first. A query's only item takes it along."""
    scores = cover_scores(grids, rankings, levels=(level,), k=k)
    cover = scores.cover[:, :, 0]
    total = cover.sum(axis=1)
    whole = _places(scores.agents, total)
    found = []
    for at, query_id in enumerate(scores.queries):
        grid = grids.grids[query_id]
        size = grid.weights.sum()
        covers = _covered_items(grid, rankings, scores.agents, level=level, k=k)
        for column, item_id in enumerate(grid.items):
            weight, left = grid.weights[column], size - grid.weights[column]
            only = len(grid.items) == 1
            without = 0.0 if only else (cover[:, at] * size - weight * covers[:, column]) / left
            queries = len(scores.queries) - only
            ranks = _places(scores.agents, (total - cover[:, at] + without) / max(queries, 1))
            moves = [abs(ranks[agent] - whole[agent]) for agent in scores.agents]
            found.append(
                Influence(
                    query_id,
                    item_id,
                    correlate(whole, ranks).kendall,
                    sum(move > 0 for move in moves),
                    max(moves, default=0.0),
                    _leaders(whole) != _leaders(ranks),
                )
            )
    return sorted(found, key=lambda item: (not item.new_leader, -item.moved, -item.largest_move))


def edit_effect(
    before: Bank, after: Bank, grades: Iterable[Grade], rankings: Rankings, *, level: int, k: int = DEFAULT_K
) -> EditEffect:
    """Compare labels and places under two versions of a bank. Grades of an item whose question changed do not count."""
    grades = list(grades)
    changed = {new.item_id for old, new in diff(before, after).edited if new.item_id == old.item_id}
    grids = make_grids(grades, before, rankings)
    new_grids = make_grids((entry for entry in grades if entry.item_id not in changed), after, rankings)
    means = [_means(side, rankings, level, k) for side in (grids, new_grids)]
    ranks = [places(side) for side in means]
    moves = [
        PlaceChange(agent, means[0][agent], means[1][agent], ranks[0][agent], ranks[1][agent]) for agent in means[1]
    ]
    return EditEffect(
        tuple(_label_changes(grids, new_grids)),
        tuple(sorted(moves, key=lambda move: (move.place_after, move.agent))),
        correlate(*ranks).kendall,
        new_grids.ungraded,
    )


def _means(grids: Grids, rankings: Rankings, level: int, k: int) -> dict[str, float]:
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


def _covered_items(grid: Grid, rankings: Rankings, agents: tuple[str, ...], *, level: int, k: int) -> Floats:
    """Whether the first k passages of each agent cover each item, shape (agents, items)."""
    found = np.zeros((len(agents), len(grid.items)))
    for number, agent in enumerate(agents):
        rows = grid.rows(rankings.get((grid.query_id, agent), ())[:k])
        found[number] = (grid.grades[rows] >= level).any(axis=0)
    return found


def _places(agents: tuple[str, ...], scores: Floats) -> dict[str, float]:
    return places(dict(zip(agents, scores.tolist(), strict=True)))


def _leaders(ranks: dict[str, float]) -> set[str]:
    return {agent for agent, place in ranks.items() if place == min(ranks.values())}
