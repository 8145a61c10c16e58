"""Tables about retrieval: scores by judges' and by people's relevance labels, their agreement, and citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from arena.boards.metrics import (
    COEFFICIENTS,
    agreement_json,
    coefficients,
    confusion,
    measures,
    rankings,
    share_labelled,
)
from arena.boards.quantities import quantity
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, PERCENT, counted
from arena.present.table import Column, Table, TableRow, fields, flat, plain
from arena.results.documents import LabelSource, RetrievalBoard
from retrieval_eval.stats.bootstrap import FEW_QUERIES

if TYPE_CHECKING:
    from arena.results.documents import CitationBoard
    from retrieval_eval.scores.citations import CitationScores
    from retrieval_eval.scores.metrics import Metrics
    from retrieval_eval.stats.agreement import LabelAgreement

_CITATIONS: Final = (
    Column("agent", "Agent"),
    quantity("citation_precision").column("precision", interval=True),
    Column("queries", "Queries", COUNT, "Those on which precision is defined."),
    Column("uncited", "Cite nothing", COUNT, "Answers that cite nothing; they are in no mean."),
    Column("unlabelled", "No label", COUNT, "Answers that cite only documents without a label; they are in no mean."),
    Column("cited", "Cited", COUNT, "Documents cited, once for each answer."),
    Column("labelled", ""),
    Column("relevant", ""),
    Column("unresolved", ""),
    Column("coverage", "Labelled", PERCENT, "Share of the documents cited that have a label."),
)
WHOSE: Final[Mapping[LabelSource, str]] = {"judge": "the judge", "people": "people"}
_CITATION_KEYS: Final[Mapping[LabelSource, str]] = {
    "judge": "citation_precision",
    "people": "citation_precision_people",
}


class Citations(Board, frozen=True):
    """Citation precision of a tournament's agents; the agents in ``order`` come first, then the others, best first."""

    cited: CitationBoard
    order: Sequence[str] = ()

    def sections(self) -> list[Section]:
        lead = "Are the documents that the answers cite relevant?"
        note = f"Relevant from label {self.cited.relevant} on; means over the queries where precision is defined."
        tables = [
            citations_table(
                f"citations_{source}", f"Citations, by labels of {WHOSE[source]}", scores, self.order, [note]
            )
            for source, scores in self.cited.scores.items()
        ]
        return [Section("citations", "Citations", lead, tables)]

    def json(self) -> TableRow:
        return {
            "relevant": self.cited.relevant,
            **{source: citations(scores) for source, scores in self.cited.scores.items()},
        }

    def columns(self, agent: str) -> TableRow:
        scores = self.cited.scores.items()
        return {
            _CITATION_KEYS[source]: by_agent[agent].precision if agent in by_agent else None
            for source, by_agent in scores
        }


def citations(scores: Mapping[str, CitationScores]) -> dict[str, TableRow]:
    return {agent: flat(figures) | {"coverage": figures.coverage} for agent, figures in scores.items()}


def citations_table(
    name: str, title: str, scores: Mapping[str, CitationScores], order: Sequence[str] = (), notes: Sequence[str] = ()
) -> Table:
    best = sorted(scores, key=lambda agent: (-(scores[agent].precision.value or 0), agent))
    agents = [*(agent for agent in order if agent in scores), *(agent for agent in best if agent not in order)]
    figures = citations(scores)
    unresolved = [
        f"{agent} {agent_scores.unresolved}" for agent, agent_scores in scores.items() if agent_scores.unresolved
    ]
    remarks = [f"Numbers that stand for no document, left out: {', '.join(unresolved)}."] if unresolved else []
    return Table(name, title, _CITATIONS, [{"agent": agent, **figures[agent]} for agent in agents], [*notes, *remarks])


_KEYS: Final[Mapping[LabelSource, str]] = {"judge": "retrieval", "people": "retrieval_people"}
_JUDGES: Final = (
    Column("judge", "Judge"),
    Column("n", "Documents", COUNT, "Those that people labelled as well."),
    *(column for column in COEFFICIENTS if column.key == "kappa"),
)


class Retrieval(Board, frozen=True):
    """Retrieval scores of a tournament; the agents in ``order`` come first, then the others, best first."""

    board: RetrievalBoard
    order: Sequence[str] = ()

    def sections(self) -> list[Section]:
        sections: list[Section] = []
        if self.board.scores:
            lead = "Does each agent find what is relevant? From 0 to 1, higher is better."
            sections.append(Section("retrieval", "Documents retrieved", lead, [self._scores()]))
        if self.board.judges:
            lead = "A judge that gives nearly all documents the same label separates nothing."
            sections.append(Section("retrieval-labels", "Labels given", lead, [self._labels()]))
        if (between := self.board.between_judges) is not None:
            lead = f"Do the judges agree, on {counted(between.documents, 'document')} labelled by several?"
            sections.append(Section("retrieval-judges", "Labels of several judges", lead, [coefficients(between)]))
        if (agreement := self.board.agreement) is not None:
            lead = "Do people agree with the judge?"
            sections.append(Section("retrieval-agreement", "Labels of people", lead, self._agreement(agreement)))
        return sections

    def agents(self) -> list[str]:
        scores = next(iter(self.board.scores.values()), None)
        by_agent = {} if scores is None else scores.estimates
        by_value = {agent: scores_of_agent[self.board.measures[0]].value for agent, scores_of_agent in by_agent.items()}
        scored = {agent: value for agent, value in by_value.items() if value is not None}
        best = [*sorted(scored, key=lambda agent: (-scored[agent], agent)), *sorted(by_value.keys() - scored.keys())]
        return list(dict.fromkeys([*self.order, *best, *self.board.distributions, *self.board.without_documents]))

    def scored(self) -> list[str]:
        """The agents with a retrieval column on the leaderboard: all that were scored, if any has a mean score."""
        agents: dict[str, None] = {}
        for scores in self.board.scores.values():
            if any(estimates[self.board.measures[0]].value is not None for estimates in scores.estimates.values()):
                agents |= dict.fromkeys(scores.runs)
        return list(agents)

    def columns(self, agent: str) -> TableRow:
        row: TableRow = {}
        for source, scores in self.board.scores.items():
            estimates, key = scores.estimates.get(agent), _KEYS[source]
            if estimates is not None:
                coverage = scores.coverage[agent]
                left_out = {*coverage.unasked, *coverage.unknown.get(scores.measures[0], ())}
            row[f"{key}_queries"] = estimates and len(scores.topics) - len(left_out)
            row[f"{key}_missing"] = estimates and coverage.missing_labels
            for position, measure in enumerate(scores.measures):
                estimate, name = estimates and estimates[measure], f"{key}_{measure}"
                row[name] = estimate and estimate.value
                if not position:
                    row |= {f"{name}_low": estimate and estimate.low, f"{name}_high": estimate and estimate.high}
        return row

    def json(self) -> Any:
        board = self.board
        shape = fields(board, "measures", "queries", "without_documents") | {
            "scores": {
                source: {
                    "topics": len(scores.topics) - scores.unlabelled,
                    "labels": scores.labels,
                    "without_relevant": scores.without_relevant,
                    "agents": {
                        agent: fields(coverage, "missing", "missing_labels", "unknown")
                        | {"measures": scores.estimates[agent], "unanswered": coverage.unasked}
                        for agent, coverage in scores.coverage.items()
                    },
                }
                for source, scores in board.scores.items()
            },
            "labels": {agent: {**plain(labels), **labels.json()} for agent, labels in board.distributions.items()},
            "judges": {
                judge: plain(labels.distribution) | {"agreement": labels.agreement and agreement_json(labels.agreement)}
                for judge, labels in board.judges.items()
            },
            "between_judges": board.between_judges and flat(board.between_judges),
            "agreement": board.agreement and agreement_json(board.agreement),
            "rankings": {measure: flat(agreement) for measure, agreement in board.rankings.items()},
        }
        return plain(shape)

    def _scores(self) -> Table:
        columns = [
            Column("agent", "Agent"),
            Column("labels", "Labels of" if len(self.board.scores) > 1 else ""),
            *measures(self.board.measures),
            Column("missing", "Nothing found", COUNT, "Queries for which it has no documents; they count as 0."),
        ]
        if self.board.failing:
            meaning = "Queries on which the agent failed; they are in none of its figures."
            columns.append(Column("unanswered", "No answer", COUNT, meaning))
        columns.append(Column("labelled", "Labelled", meaning="Documents with a label, where not all have one."))
        if self.board.lacking:
            meaning = "Queries on which a label of its first documents is missing; in the mean of no measure."
            columns.append(Column("unknown", "Not known", COUNT, meaning))
        columns.append(Column("mean_label", "Mean label", FIGURE))
        notes = [
            f"By labels of {WHOSE[source]}: means over the "
            f"{counted(len(scored.topics) - scored.unlabelled, 'query', 'queries')} of {self.board.queries:,} with "
            "labels"
            + (f"; on {len(zeros):,} none is above 0, so all score 0" if (zeros := scored.without_relevant) else "")
            + ("; of each agent those that are not known left out." if self.board.lacking else ".")
            for source, scored in self.board.scores.items()
        ]
        unlabelled = "A document that was not to be labelled" if self.board.lacking else "A document without a label"
        notes.append(f"{unlabelled} counts as not relevant; Judged is the share that has one.")
        rows = [
            {"agent": agent, "labels": WHOSE[source], **self._row(agent, source, scores)}
            for agent in self.agents()
            for source, scores in self.board.scores.items()
        ]
        return Table("retrieval", "Documents retrieved, by measure", columns, rows, notes)

    def _row(self, agent: str, source: LabelSource, scores: Metrics) -> TableRow:
        labels, row = self.board.distributions.get(agent), TableRow()
        if agent in scores.coverage:
            coverage = scores.coverage[agent]
            row |= {**scores.estimates[agent], "missing": len(coverage.missing), "unanswered": len(coverage.unasked)}
            row |= {"unknown": max(map(len, coverage.unknown.values()), default=0)}
        if source == "judge" and labels is not None:
            row |= {"mean_label": labels.mean}
            if labels.judged < labels.wanted:
                row |= {"labelled": f"{labels.judged:,} of {labels.wanted:,}"}
        return row

    def _labels(self) -> Table:
        board = self.board
        distributions = {agent: board.distributions[agent] for agent in self.agents() if agent in board.distributions}
        distributions |= {
            f"all documents, judge {judge}": judge_labels.distribution for judge, judge_labels in board.judges.items()
        }
        labels = sorted({label for distribution in distributions.values() for label in distribution.counts})
        columns = [
            Column("documents", "Documents of"),
            *(Column(f"label {label}", f"Label {label}", COUNT) for label in labels),
            Column("failed", "Failed", COUNT),
            Column("left", "Not judged", COUNT),
            Column("mean_label", "Mean label", FIGURE),
        ]
        rows = [
            {
                "documents": name,
                **{f"label {label}": distribution.counts.get(label, 0) for label in labels},
                "failed": distribution.failed or None,
                "left": distribution.left or None,
                "mean_label": distribution.mean if name in board.distributions else None,
            }
            for name, distribution in distributions.items()
        ]
        return Table("labels_given", "Labels given", columns, rows)

    def _agreement(self, agreement: LabelAgreement) -> list[Block]:
        if not agreement.n:
            return [Remarks(["Not known: no document has both a label of people and one of the judge."])]
        labelled = f"{agreement.n + agreement.first_only:,} that people labelled"
        share = PERCENT.write(share_labelled(agreement))
        remarks = [f"Documents with both labels: {agreement.n:,} of the {labelled} ({share})."]
        few = agreement.queries < FEW_QUERIES
        if few:
            queries = counted(agreement.queries, "query", "queries")
            remarks.append(f"Too few to tell how far both agree: {counted(agreement.n, 'document')} of {queries}.")
        blocks: list[Block] = [
            Remarks(remarks),
            *([] if few else [coefficients(agreement)]),
            confusion(agreement, "What is taken for what", "People", "judge"),
        ]
        if len(self.board.judges) > 1:
            by_judge = {
                judge: judge_labels.agreement
                for judge, judge_labels in self.board.judges.items()
                if judge_labels.agreement
            }
            rows = [{"judge": judge, **flat(agreement_of_judge)} for judge, agreement_of_judge in by_judge.items()]
            blocks.append(Table("agreement_by_judge", "Each judge alone", _JUDGES, rows))
        if self.board.rankings:
            notes = ["Labels that agree poorly on single documents may still rank agents well."]
            title = "Do both labels put the agents in one order?"
            blocks.append(rankings(title, {"": self.board.rankings}, notes, several=False))
        return blocks
