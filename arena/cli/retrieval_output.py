"""Retrieval on a leaderboard, for people: a table of the agents, and below it what the labels are worth."""

from __future__ import annotations

from collections.abc import Sequence

from arena.boards.metrics import share_labelled as coverage
from arena.cli.console import output
from arena.cli.figures import counted, interval, say, value
from arena.cli.tables import print_table
from arena.retrieval import LabelScores, RetrievalBoard, Source
from retrieval_eval.relevance import MeanLabel
from retrieval_eval.stats.agreement import LabelAgreement
from retrieval_eval.stats.estimate import Estimate


def print_retrieval(board: RetrievalBoard, ranked: Sequence[str]) -> None:
    """Write the table and its notes to standard output.

    Args:
        board: what to write.
        ranked: agents in the order of the ratings; the others follow, best first.
    """
    if board.scores:
        _print_scores(board, ranked)
        output.print()
    for source, scores in board.scores.items():
        _say_topics(source, scores, board)
    if board.between_judges is not None:
        own = board.between_judges
        alphas = f"Krippendorff's alpha {_told(own.alpha)}, as an order {_told(own.alpha_ordinal)}"
        say(f"relevance judges: {alphas}, on {counted(own.documents, 'document', 'documents')} labelled by several")
    if board.agreement is not None:
        say(f"labels of the judge and of people: {_agreement_words(board.agreement)}")
    for measure, ranking in list(board.rankings.items())[:1]:
        coefficients = f"Kendall's tau {_told(ranking.kendall_tau)}, Spearman's rho {_told(ranking.spearman)}"
        queries = counted(ranking.topics, "query", "queries")
        say(f"agents ranked by either's {measure}: {coefficients} on {queries} that both labelled")
    if board.scores or board.agreement is not None:
        output.print()


def _print_scores(board: RetrievalBoard, ranked: Sequence[str]) -> None:
    first, *others = board.measures
    several = len(board.scores) > 1
    rows = []
    for agent in _order(board, ranked):
        for source, scores in board.scores.items():
            own = scores.agents.get(agent)
            cells = ["-"] * (len(board.measures) + 2 + board.failing)
            if own is not None:
                cells = [_four(own.measures[first]), interval(own.measures[first], 3)]
                cells += [*(_four(own.measures[measure]) for measure in others), str(len(own.missing))]
                cells += [str(len(own.unanswered))] if board.failing else []
            mean = _mean(board.mean_labels.get(agent)) if source == "judge" else "-"
            rows.append([*([source] if several else []), agent, *cells, *([mean] if board.mean_labels else [])])
    headings = [first, "95 %\ninterval", *others, "nothing\nfound", *(["no\nanswer"] if board.failing else [])]
    headings += ["mean\nlabel"] if board.mean_labels else []
    names = [*(["labels"] if several else []), "retrieval"]
    print_table(names, [heading.replace("(", "\n(", 1) for heading in headings], rows)


def _order(board: RetrievalBoard, ranked: Sequence[str]) -> list[str]:
    scores = next(iter(board.scores.values()))
    first = board.measures[0]
    found = {agent: own.measures[first].value or 0.0 for agent, own in scores.agents.items()}
    best = sorted(found, key=lambda agent: (-found[agent], agent))
    return list(dict.fromkeys([*ranked, *best, *board.without_documents]))


def _say_topics(source: Source, scores: LabelScores, board: RetrievalBoard) -> None:
    whose = "the judge" if source == "judge" else "people"
    queries = counted(board.queries, "query has", "queries have")
    line = f"retrieval by labels of {whose}: {len(scores.topics):,} of {queries} some"
    if scores.without_relevant:
        line += f", {len(scores.without_relevant):,} of them none above 0, where every agent scores 0"
    say(line)


def _agreement_words(own: LabelAgreement) -> str:
    share = coverage(own)
    pairs = f"{own.n:,} of people's {own.n + own.first_only:,} labels" + ("" if share is None else f" ({share:.1%})")
    weighted = f"linear {value(own.kappa_linear)}, quadratic {value(own.kappa_quadratic)}"
    return f"kappa {_told(own.kappa)}, {weighted}, alpha {value(own.alpha)}, on {pairs}"


def _mean(mean: MeanLabel | None) -> str:
    """The mean label, and of how many documents where not all have one."""
    if mean is None or mean.mean is None:
        return "-"
    return f"{mean.mean:.2f}" + (f" of {mean.judged}" if mean.judged < mean.of else "")


def _four(estimate: Estimate) -> str:
    return "-" if estimate.value is None else f"{estimate.value:.4f}"


def _told(estimate: Estimate) -> str:
    return value(estimate) if estimate.low is None else f"{value(estimate)} ({interval(estimate)})"
