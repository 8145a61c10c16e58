"""One evaluation by exam: grades, the bank, rankings and labels brought together, and the scores at every level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from judges.errors import DataError, InputError
from retrieval_eval.data.files import read_json
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.vocabulary import NAMES
from retrieval_eval.exam.grades import Grade, Graded, Grader, Grids, Rankings, make_grids
from retrieval_eval.exam.items import Bank
from retrieval_eval.exam.passages import by_document, origin_of
from retrieval_eval.exam.scores import (
    DEFAULT_ALPHA,
    DEFAULT_K,
    RATED_LEVELS,
    CoverScores,
    ExamMean,
    alpha_ndcg,
    cover_means,
    cover_scores,
    places,
)
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import Clusters

USUAL_LEVEL = 4
"""The grade from which the authors of 001 count an item as covered."""


GradedUnit: TypeAlias = Literal["answers", "documents"]


class Study(Struct, frozen=True, dict=True):
    """What scores and oversight start from.

    Attributes:
        source: all grades as they were given, passage by passage.
        graded: the same by document, where documents were graded and cut.
        grader: whose grades count.
        grades: those grades.
        bank: the test bank, ``None`` where none was given; then the graded items stand for it.
        rankings: of each agent's response the passages, or the documents.
        grids: the grades by query.
        labels: relevance by people, empty where nobody gave any.
        levels: every lowest grade at which an item can count as covered.
        unit: what was graded: passages of ``answers``, or retrieved ``documents``.
        min_grade: which of them is looked at first, where somebody said so.
        bank_version: of the whole bank, where ``bank`` has not all of its texts.
        clusters: the conversations of the queries.
    """

    source: Graded
    graded: Graded
    grader: Grader
    grades: Sequence[Grade]
    bank: Bank | None
    rankings: Rankings
    grids: Grids
    labels: Labels
    levels: tuple[int, ...]
    unit: GradedUnit
    min_grade: int | None = None
    bank_version: str | None = None
    clusters: Clusters = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        """Of the bank, ``None`` without one."""
        return self.bank_version or (self.bank.version if self.bank is not None else None)

    @property
    def usual_level(self) -> int:
        """The ``min_grade``; else 4 where the grades are ratings up to 5, otherwise the highest level."""
        if self.min_grade is not None:
            return self.min_grade
        return USUAL_LEVEL if USUAL_LEVEL in self.levels else max(self.levels)

    @property
    def strange_queries(self) -> tuple[str, ...]:
        """Queries of the rankings that the bank does not have."""
        return tuple(dict.fromkeys(query_id for query_id, _ in self.rankings if query_id not in self.grids.grids))

    def of_query(self, query_id: str) -> Study:
        """The same, of whose grids one query's alone is left."""
        return replace(self, grids=Grids({query_id: self.grids.grids[query_id]}))

    def text_of(self, item_id: str) -> str:
        """The question or nugget; its id where the bank is not known. Of a secret item neither is shown."""
        return self.bank.by_id[item_id].open_text if self.bank is not None and item_id in self.bank.by_id else item_id

    def text_of_passage(self, query_id: str, passage_id: str) -> str:
        """What was graded; empty where the texts are not known."""
        return self.graded.passages.get(query_id, {}).get(passage_id, "")

    def open_id(self, item_id: str) -> str:
        """The item's id; of a secret item, whose id may give it away, a number among the secret ones of its query."""
        if item_id not in self.secret:
            return item_id
        query_id = self.secret[item_id]
        own = [secret for secret, query in self.secret.items() if query == query_id]
        return f"(secret {own.index(item_id) + 1})"

    def open_answers(self) -> dict[tuple[str, str, str], str]:
        """Extracted answers by query, passage and item, without those to secret items, which may repeat them."""
        answers = self.graded.answers(self.grader)
        return {key: answer for key, answer in answers.items() if key[2] not in self.secret}

    @cached_property
    def secret(self) -> Mapping[str, str]:
        """The query of every secret item, by its id."""
        items = self.bank.items if self.bank is not None else ()
        return {item.item_id: item.query_id for item in items if item.secret}


def load_study(
    file: Path,
    *,
    bank: Path | None = None,
    runs: Sequence[Path] = (),
    qrels: Path | None = None,
    items: str | None = None,
    llm: str | None = None,
    prompt: str | None = None,
) -> Study:
    """Read everything.

    Args:
        file: the workbench's graded file or a table of grades.
        bank: the test bank.
        runs: trec_eval runs; without them the rankings in the file of grades, or those that the ids of passages of
            answers tell.
        qrels: relevance by people; without it the judgments in the file of grades.
        items: a shell pattern that the ids of the items must match.
        llm: the grader's model, where there are several graders.
        prompt: the grader's prompt, likewise.

    Raises:
        InputError: a file is wrong, no grader or no item fits, or several graders do.
    """
    from retrieval_eval.data.runs import read_rankings
    from retrieval_eval.data.trec import read_qrels
    from retrieval_eval.exam.bank_files import read_bank
    from retrieval_eval.exam.grade_files import read_graded

    source = read_graded(file)
    graded = by_document(source)
    grader = graded.chosen(llm, prompt)
    grades = [entry for entry in graded.grades[grader] if items is None or fnmatchcase(entry.item_id, items)]
    if not grades:
        raise InputError(f"{file}: no graded item has an id like {items!r}")
    known = read_bank(bank) if bank is not None else None
    if known is not None and items is not None:
        known = replace(known, items=tuple(item for item in known.items if fnmatchcase(item.item_id, items)))
    of_answers = _rankings_of_ids(grades)
    rankings = read_rankings(runs) if runs else graded.rankings or of_answers
    grids = make_grids(grades, known, rankings)
    if known is not None and grids.pairs == grids.ungraded:
        raise InputError(f"{file}: no grade is for an item of the bank {bank}; are the ids those of the bank?")
    labels = read_qrels(qrels).labels if qrels is not None else graded.labels
    levels = RATED_LEVELS if grader in graded.rated else (1,)
    unit: GradedUnit = "answers" if of_answers else "documents"
    return Study(source, graded, grader, grades, known, rankings, grids, labels, levels, unit)


def load_labels(file: Path, *, llm: str | None = None, prompt: str | None = None) -> tuple[Labels, Labels] | None:
    """Relevance labels that a model gave without items, and those of people; ``None`` where grades of items are meant.

    Args:
        file: the workbench's graded file or a table of grades.
        llm: the model.
        prompt: its prompt.

    Raises:
        InputError: the file is wrong, or several fit.
    """
    from retrieval_eval.exam.grade_files import read_graded

    graded = read_graded(file)
    fitting = graded.labelling(llm, prompt)
    if not fitting or any((llm or own.llm, prompt or own.prompt) == own for own in graded.grades):
        return None
    if len(fitting) > 1:
        there = "; ".join(f"--llm {own.llm!r} --prompt {own.prompt!r}" for own in fitting)
        raise InputError(f"{file}: several graders labelled its passages; name one: {there}")
    return graded.direct[fitting[0]], graded.labels


def _rankings_of_ids(grades: Sequence[Grade]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Which passages make up whose answer, where every id leads back to one; an answer without any is not known of."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for passage_id in dict.fromkeys(entry.passage_id for entry in grades):
        origin = origin_of(passage_id)
        if origin is None:
            return {}
        query_id, agent, number = origin
        found.setdefault((query_id, agent), {})[number] = passage_id
    return {key: tuple(own[number] for number in sorted(own)) for key, own in found.items()}


def read_official(path: Path) -> dict[str, float]:
    """An official leaderboard as places, 1 best: a JSON object from agent to rank, or a table ``agent, rank|score``.

    Raises:
        DataError: the file cannot be read or a place is not a number.
    """
    if path.name.endswith(".json"):
        return _official_json(path)
    found: dict[str, float] = {}
    ranked = True
    for row in read_rows(path, ("agent",), {"agent": ("method", "run", *NAMES["agent"]), "rank": ("place",)}):
        ranked = "rank" in row.values
        given = row.text("rank" if ranked else "score")
        try:
            value = float(given)
        except ValueError:
            raise row.error("an official leaderboard has a number in its column 'rank' or 'score'", given) from None
        if row.identifier("agent") in found:
            raise row.error("this agent stands there twice", row.text("agent"))
        found[row.identifier("agent")] = value
    return found if ranked else places(found)


def _official_json(path: Path) -> dict[str, float]:
    content = read_json(path)
    if not isinstance(content, Mapping) or not content:
        raise DataError(path, "is not a JSON object from agent to rank")
    for agent, rank in content.items():
        if isinstance(rank, bool) or not isinstance(rank, int | float):
            raise DataError(path, f"the rank of {agent!r} is not a number", value=str(rank))
    return {str(agent): float(rank) for agent, rank in content.items()}


ExamMeasure: TypeAlias = Literal["cover", "least", "possible", "normalised", "alpha_ndcg"]
"""EXAM-Cover@k; the same if no ungraded pair covered its item, and if every one did; normalised cover; alpha-nDCG@k."""


class ExamScores(Struct, frozen=True):
    """What every agent reaches in an exam.

    Attributes:
        study: what is scored.
        grids: the grades that count.
        cover: of each agent, query and level.
        means: by level and measure, each agent's mean over queries.
        workbench: whether means are over the queries to which an agent has a response, as the workbench's code counts.
        official: places of the agents on another leaderboard, to compare with.
    """

    study: Study
    grids: Grids
    cover: CoverScores
    means: Mapping[int, Mapping[ExamMeasure, Mapping[str, ExamMean]]]
    workbench: bool = False
    official: Mapping[str, float] | None = None

    @property
    def level(self) -> int:
        """The grade from which an item usually counts as covered."""
        return self.study.usual_level

    @property
    def covers(self) -> dict[str, ExamMean]:
        """By agent with a score, the first one first, the mean cover at the usual level."""
        found = self.means[self.level]["cover"]
        return {agent: found[agent] for agent in self.places(self.level)}

    def places(self, level: int, measure: ExamMeasure = "cover") -> dict[str, float]:
        """The place of each agent with a score, the first one first, then by name; ties share the average."""
        scored = {agent: mean.value for agent, mean in self.means[level][measure].items()}
        found = places({agent: value for agent, value in scored.items() if value is not None})
        return dict(sorted(found.items(), key=lambda own: (own[1], own[0])))

    def agents(self, level: int) -> dict[str, dict[str, Any]]:
        """By agent, the first one first: ``place``, the mean of each measure, and how much that rests on.

        Those of whom nothing is known come last, without a place.
        """
        counts = {
            "queries": self.cover.present.sum(axis=1).tolist(),
            "pairs": self.cover.pairs.sum(axis=1).tolist(),
            "graded": self.cover.graded.sum(axis=1).tolist(),
            "missing": self.cover.missing.sum(axis=1).tolist(),
        }
        places = self.places(level)
        return {
            agent: {
                "place": places.get(agent),
                **{measure: own[agent] for measure, own in self.means[level].items()},
                **{name: own[self.cover.agents.index(agent)] for name, own in counts.items()},
            }
            for agent in dict.fromkeys([*places, *self.cover.agents])
        }


def exam_scores(
    study: Study,
    *,
    k: int = DEFAULT_K,
    alpha: float = DEFAULT_ALPHA,
    workbench: bool = False,
    official: Mapping[str, float] | None = None,
) -> ExamScores:
    """Score all agents.

    Args:
        study: what to score.
        k: passages of a response that count.
        alpha: of alpha-nDCG.
        workbench: as its code does: divide by the items that have a grade instead of the bank's, every item with the
            weight 1, and average over the queries to which an agent has a response.
        official: places of the agents on another leaderboard.
    """
    grids = make_grids(study.grades, None, study.rankings) if workbench else study.grids
    cover = cover_scores(grids, study.rankings, levels=study.levels, k=k, clusters=study.clusters)
    scores: dict[ExamMeasure, Floats] = {
        "cover": cover.cover,
        "least": cover.least,
        "possible": cover.possible,
        "normalised": cover.normalised,
        "alpha_ndcg": _alpha_ndcg(study, grids, cover, alpha),
    }
    means = {
        level: {measure: cover_means(cover, of, level, own_queries=workbench) for measure, of in scores.items()}
        for level in cover.levels
    }
    return ExamScores(study, grids, cover, means, workbench, official)


def _alpha_ndcg(study: Study, grids: Grids, cover: CoverScores, alpha: float) -> Floats:
    """Of every response, shape (agents, queries, levels); 0 where an agent has none, NaN where nobody knows."""
    found = np.zeros(cover.cover.shape)
    for at, query_id in enumerate(cover.queries):
        responses = [study.rankings.get((query_id, agent), ()) for agent in cover.agents]
        for place, level in enumerate(cover.levels):
            found[:, at, place] = alpha_ndcg(grids.grids[query_id], responses, level=level, k=cover.k, alpha=alpha)
    return found
