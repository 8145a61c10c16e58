"""One evaluation by exam: grades of passages on exam items, people's labels, and agents' scores at every level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from judges.errors import DataError, InputError
from retrieval_eval.data.files import read_json
from retrieval_eval.data.rows import finite
from retrieval_eval.data.table_spec import TableSpec
from retrieval_eval.exam.grades import Grade, Graded, Grader, Grids, Rankings, by_document, make_grids, origin_of
from retrieval_eval.exam.items import Bank
from retrieval_eval.exam.scores import (
    DEFAULT_ALPHA,
    DEFAULT_K,
    RATED_LEVELS,
    CoverScores,
    ExamMeasure,
    alpha_ndcg,
    cover_scores,
    places,
)
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import Clusters
from retrieval_eval.stats.scores import Scores

USUAL_LEVEL = 4
"""The lowest grade at which the authors of the method (seed 001) count an item as covered."""


GradedUnit: TypeAlias = Literal["answers", "documents"]


class Study(Struct, frozen=True, dict=True):
    """The input for exam scores and for the comparison of grades with people's labels.

    Attributes:
        source: all grades as the graders gave them, one for each passage and item.
        graded: the same grades, merged by document if documents were cut into passages for grading.
        bank: the bank of exam items; ``None`` without a bank, in which case the graded items are used.
        rankings: the passages of each agent's response, or its documents.
        labels: people's relevance labels, empty if there are none.
        levels: the thresholds in use; at level 4, an item counts as covered by a grade of 4 or more.
        unit: what was graded: passages of ``answers``, or retrieved ``documents``.
        min_grade: the default level, if the configuration names one.
        bank_version: version of the bank with all its texts, if ``bank`` lacks the secret ones.
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
        return self.bank_version or (self.bank.version if self.bank is not None else None)

    @property
    def usual_level(self) -> int:
        """The default level: the configured ``min_grade``, or else 4 if that is a level, or else the highest level."""
        if self.min_grade is not None:
            return self.min_grade
        return USUAL_LEVEL if USUAL_LEVEL in self.levels else max(self.levels)

    @property
    def strange_queries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(query_id for query_id, _ in self.rankings if query_id not in self.grids.grids))

    def of_query(self, query_id: str) -> Study:
        return replace(self, grids=Grids({query_id: self.grids.grids[query_id]}))

    def text_of(self, item_id: str) -> str:
        """The text of an item; a placeholder if the item is secret, its id if the bank is not known."""
        return self.bank.by_id[item_id].open_text if self.bank is not None and item_id in self.bank.by_id else item_id

    def text_of_passage(self, query_id: str, passage_id: str) -> str:
        return self.graded.passages.get(query_id, {}).get(passage_id, "")

    def open_id(self, item_id: str) -> str:
        """The item's id; for a secret item, whose id may reveal it, its number among the query's secret items."""
        if item_id not in self.secret:
            return item_id
        query_id = self.secret[item_id]
        secret_ids = [secret for secret, query in self.secret.items() if query == query_id]
        return f"(secret {secret_ids.index(item_id) + 1})"

    def open_answers(self) -> dict[tuple[str, str, str], str]:
        """Extracted answers by query, passage and item, without answers to secret items, which may reveal them."""
        answers = self.graded.answers(self.grader)
        return {key: answer for key, answer in answers.items() if key[2] not in self.secret}

    @cached_property
    def secret(self) -> Mapping[str, str]:
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
    """Read the input for exam scores from files.

    Args:
        file: the workbench's graded file or a table of grades.
        runs: trec_eval run files; by default the rankings in the file of grades, or else those that follow from the ids
            of the answers' passages.
        qrels: people's relevance labels; by default the judgments in the file of grades.
        items: a shell pattern that the ids of the items must match.
        llm: the grader's model, if there are several graders.
        prompt: the grader's prompt, if there are several graders.

    Raises:
        InputError: a file is invalid, no grader or no item matches, or several graders match.
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
        raise InputError(f"{file}: no graded item has an id that matches the pattern {items!r} of --items")
    known_bank = read_bank(bank) if bank is not None else None
    if known_bank is not None and items is not None:
        known_bank = replace(
            known_bank, items=tuple(item for item in known_bank.items if fnmatchcase(item.item_id, items))
        )
    of_answers = _rankings_of_ids(grades)
    rankings = read_rankings(runs) if runs else graded.rankings or of_answers
    grids = make_grids(grades, known_bank, rankings)
    if known_bank is not None and grids.pairs == grids.ungraded:
        raise InputError(f"{file}: no grade is for an item of the bank {bank}; both files must use the same item ids")
    labels = read_qrels(qrels).labels if qrels is not None else graded.labels
    levels = RATED_LEVELS if grader in graded.rated else (1,)
    unit: GradedUnit = "answers" if of_answers else "documents"
    return Study(source, graded, grader, grades, known_bank, rankings, grids, labels, levels, unit)


def load_labels(file: Path, *, llm: str | None = None, prompt: str | None = None) -> tuple[Labels, Labels] | None:
    """Relevance labels that a model gave to passages, and people's labels; ``None`` if the file grades exam items.

    Args:
        file: the workbench's graded file or a table of grades.

    Raises:
        InputError: the file is invalid, or several graders match.
    """
    from retrieval_eval.exam.grade_files import read_graded

    graded = read_graded(file)
    graders = graded.labelling(llm, prompt)
    if not graders or any((llm or grader.llm, prompt or grader.prompt) == grader for grader in graded.grades):
        return None
    if len(graders) > 1:
        choices = "; ".join(f"--llm {grader.llm!r} --prompt {grader.prompt!r}" for grader in graders)
        raise InputError(f"{file}: several graders labelled its passages; choose one of them: {choices}")
    return graded.direct[graders[0]], graded.labels


def _rankings_of_ids(grades: Sequence[Grade]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Passage ids of each answer, in the answer's order; empty if a passage id does not name its answer."""
    passages: dict[tuple[str, str], dict[int, str]] = {}
    for passage_id in dict.fromkeys(entry.passage_id for entry in grades):
        origin = origin_of(passage_id)
        if origin is None:
            return {}
        query_id, agent, number = origin
        passages.setdefault((query_id, agent), {})[number] = passage_id
    return {key: tuple(by_number[number] for number in sorted(by_number)) for key, by_number in passages.items()}


LEADERBOARD: Final = TableSpec(("agent", "rank", "score"), ("agent",), {"agent": ("method", "run"), "rank": ("place",)})


def read_official(path: Path) -> dict[str, float]:
    """Read an official leaderboard, from JSON with ranks by agent or a table of ranks or scores, as ranks (1 is best).

    Raises:
        DataError: the file cannot be read, names an agent twice, or a rank or score is not a number.
    """
    if path.name.endswith(".json"):
        return _official_json(path)
    ranks: dict[str, float] = {}
    ranked = True
    for row in LEADERBOARD.rows(path):
        ranked = "rank" in row.values
        text = row.text("rank" if ranked else "score")
        if (value := finite(text)) is None:
            raise row.error("an official leaderboard needs a number in its column 'rank' or 'score'", text)
        if row.identifier("agent") in ranks:
            raise row.error("this agent is listed twice", row.text("agent"))
        ranks[row.identifier("agent")] = value
    return ranks if ranked else places(ranks)


def _official_json(path: Path) -> dict[str, float]:
    content = read_json(path)
    if not isinstance(content, Mapping) or not content:
        raise DataError(path, 'must be a JSON object that gives each agent\'s rank, such as {"agent a": 1}')
    for agent, rank in content.items():
        if isinstance(rank, bool) or not isinstance(rank, int | float):
            raise DataError(path, f"the rank of {agent!r} is not a number", value=str(rank))
    return {str(agent): float(rank) for agent, rank in content.items()}


class ExamScores(Struct, frozen=True):
    """Exam scores of every agent.

    Attributes:
        workbench: whether means are over the queries to which the agent has a response, as in the rubric workbench.
        official: ranks of the agents on an official leaderboard, for comparison.
    """

    study: Study
    grids: Grids
    cover: CoverScores
    by_level: Mapping[int, Mapping[ExamMeasure, Scores]]
    workbench: bool = False
    official: Mapping[str, float] | None = None

    @property
    def level(self) -> int:
        return self.study.usual_level

    @property
    def scores(self) -> tuple[Scores, ...]:
        """Cover scores at the default level over all queries, by which agents are compared, also in workbench mode."""
        return (self.cover.by_level[self.level]["cover"],)

    def places(self, level: int, measure: ExamMeasure = "cover") -> dict[str, float]:
        scored = {agent: mean.value for agent, mean in self.by_level[level][measure].means.items()}
        ranks = places({agent: value for agent, value in scored.items() if value is not None})
        return dict(sorted(ranks.items(), key=lambda entry: (entry[1], entry[0])))

    def agents(self, level: int) -> dict[str, dict[str, Any]]:
        """Figures of each agent, best first: ``place``, the mean of each measure, and the counts of queries and grades.

        Agents without a score come last and have no place.
        """
        cover = self.cover
        tables = {"queries": cover.present, "pairs": cover.pairs, "graded": cover.graded, "missing": cover.gaps.missing}
        counts = {
            name: dict(zip(cover.gaps.agents, table.sum(axis=1).tolist(), strict=True))
            for name, table in tables.items()
        }
        places = self.places(level)
        return {
            agent: {
                "place": places.get(agent),
                **{measure: scores.means[agent] for measure, scores in self.by_level[level].items()},
                **{name: by_agent[agent] for name, by_agent in counts.items()},
            }
            for agent in dict.fromkeys([*places, *cover.gaps.agents])
        }


def exam_scores(
    study: Study,
    *,
    k: int = DEFAULT_K,
    alpha: float = DEFAULT_ALPHA,
    workbench: bool = False,
    official: Mapping[str, float] | None = None,
) -> ExamScores:
    """Compute the exam scores of all agents.

    Args:
        k: number of passages of a response that count, from the first on.
        workbench: score as the rubric workbench does: divide by the items that have a grade instead of the bank's, give
            every item the weight 1, and average over the queries to which the agent has a response.
        official: ranks of the agents on an official leaderboard.
    """
    grids = make_grids(study.grades, None, study.rankings) if workbench else study.grids
    cover = cover_scores(grids, study.rankings, levels=study.levels, k=k, clusters=study.clusters)
    by_level: dict[int, dict[ExamMeasure, Scores]] = {}
    for level, measures in cover.by_level.items():
        diverse = _alpha_ndcg(study, grids, cover, level, alpha)
        by_level[level] = {**measures, "alpha_ndcg": replace(measures["cover"], values=diverse, ends=None)}
        if workbench:
            by_level[level] = {
                measure: replace(scores, values=np.where(cover.present, scores.values, np.nan))
                for measure, scores in by_level[level].items()
            }
    return ExamScores(study, grids, cover, by_level, workbench, official)


def _alpha_ndcg(study: Study, grids: Grids, cover: CoverScores, level: int, alpha: float) -> Floats:
    """Alpha-nDCG of every response, shape (agents, queries); 0 without a response, NaN if grades are missing."""
    agents, queries = cover.gaps.agents, cover.gaps.queries
    columns = []
    for query_id in queries:
        responses = [study.rankings.get((query_id, agent), ()) for agent in agents]
        columns.append(alpha_ndcg(grids.grids[query_id], responses, level=level, k=cover.k, alpha=alpha))
    return np.array(columns).reshape(len(queries), len(agents)).T
