"""One game: the query, both answers, what the judge said in each order, and the documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st

from arena.boards.nuggets import support_words
from arena.config.judging import ReferencesSection
from arena.config.stored import StoredSettings
from arena.data.dataset import SHARED, Dataset
from arena.data.games import GameKey
from arena.stages.nuggets.results import GameNugget, NuggetResults, nuggets_of_game
from arena.stages.samples import LabelResults, outcomes
from arena.store import IDENTICAL, Result, Store
from judges.errors import CAUSES
from judges.prompts.tasks import references
from judges.types import AnnotatedDocument, Document, JudgeFailure, Judgment, Task, Verdict, label_of
from ui import data, text
from ui.text import Kind, Line, nothing, problem
from ui.views.retrieval import lines_of, show_document

_DOCUMENTS: Final = 10
"""Documents drawn at first."""


@st.cache_resource(max_entries=32, show_spinner="Reading the game …")
def _game(source: data.Source, key: GameKey) -> GameRecord:
    """One game with what its judge said, word for word."""
    with closing(Store.open(source.location)) as store:
        of_query = outcomes(store, source.tournament, Task.PAIRWISE, key.query_id)
    names = {key.agent_a, key.agent_b}
    orders = [
        Shown(*((want.item, want.other) if want.order == "ab" else (want.other, want.item)), result)
        for want, result in of_query
        if want.judge == key.judge and {want.item, want.other} == names
    ]
    score = float(data.scores(source)[data.games(source).find(key)])
    return GameRecord(*key, tuple(orders), None if np.isnan(score) else score)


def show_game(source: data.Source, key: GameKey) -> None:
    """Draw one game."""
    dataset, game = data.dataset_of(source, key.query_id), _game(source, key)
    text.lines(
        Line("quiet", "The query"),
        Line("lead", dataset.queries[game.query_id].text),
        Line("quiet", f"{game.query_id} · judge: {game.judge}"),
        Line("strong", _outcome(game)),
    )
    _show_answers(game, dataset)
    st.subheader("What the judge said", anchor=False)
    if game.same_answers:
        st.info("Both answers are the same text: a tie, without asking the judge.")
    else:
        for column, order in zip(st.columns(len(game.orders)), game.orders, strict=True):
            with column:
                _show_order(order, game)
    if (nuggets := data.nuggets(source)) is not None:
        _show_nuggets(nuggets, game)
    documents = retrieved_documents(game, dataset, data.labels_of_query(source, key.query_id), data.settings(source))
    _show_documents(documents, game)


def _outcome(game: GameRecord) -> str:
    """How the game ended and why, in one line."""
    if game.score is None:
        return "No verdict yet."
    ending = f"{game.winner} wins" if game.winner is not None else "A tie"
    if game.same_answers:
        return f"{ending}: both answers are the same text."
    if sum(order.preferred is not None for order in game.orders) < 2:
        return f"{ending}, by the one order that has a verdict."
    return f"{ending}: the two orders {'disagree' if game.orders_disagree else 'agree'}."


def _show_answers(game: GameRecord, dataset: Dataset) -> None:
    agents = game.agent_a, game.agent_b
    answers = [dataset.answers[game.query_id, agent].text for agent in agents]
    switches = st.container(horizontal=True, gap="medium")
    with switches:
        raw = text.raw_switch()
        marks = text.alike(*answers) and st.toggle("Mark differences", True, key=f"marked-{game.mark}")
    others = reversed(answers) if marks else (None, None)
    for column, agent, side, answer, other in zip(
        st.columns(2), agents, ("left", "right"), answers, others, strict=True
    ):
        with column:
            size = f"{len(answer.split()):,} words, {len(answer):,} characters"
            text.lines(Line("strong", agent), Line("quiet", size))
            key, empty = f"answer-{side}-{game.mark}", "The agent answered nothing."
            text.passage(answer, key, label=f"Answer of {agent}", empty=empty, raw=raw, against=other)


def _show_order(order: Shown, game: GameRecord) -> None:
    """One order's verdict and reason. The judge knew the answers as A and B only, so the names are spelled out."""
    key = f"{'ab' if order.first == game.agent_a else 'ba'}-{game.mark}"
    with st.container(border=True, key=f"order-{key}"):
        result = order.result
        shown = (
            Line("quiet", "Shown to the judge as answer A, then answer B"),
            Line("body", f"A: {order.first}\nB: {order.second}"),
        )
        if isinstance(result, Judgment):
            preferred = f"prefers {result.outcome}: {order.preferred}" if order.preferred else "calls it a tie"
            text.lines(*shown, Line("strong", f"The judge {preferred}"))
            text.passage(result.reason, f"reason-{key}", label="Reason", empty="The judge gave no reason.", height=220)
            _show_reply(result, key)
            return
        text.lines(*shown)
        if isinstance(result, JudgeFailure):
            problem("No verdict: the judge failed.", f"{CAUSES.get(result.cause, result.cause)}. {result.message}")
            _show_reply(result, key)
        else:
            nothing("Not judged yet. Run `ragleague run` to ask the judge.")


def _show_reply(result: Judgment | JudgeFailure, key: str) -> None:
    """The reply as it came, for those who doubt the parser."""
    if not result.reply:
        return
    with st.expander("The whole reply", key=f"reply-of-{key}", on_change="rerun") as reply:
        if reply.open:
            text.quiet(f"{result.model} · {result.latency_s:.1f} s · {_tokens(result)}")
            text.passage(result.reply, f"reply-{key}", label="Reply", empty="The judge replied nothing.", raw=True)


def _tokens(result: Judgment | JudgeFailure) -> str:
    used = result.usage
    if used.input_tokens is None or used.output_tokens is None:
        return "tokens not known"
    return f"{used.input_tokens:,} tokens read, {used.output_tokens:,} written"


def _show_nuggets(results: NuggetResults, game: GameRecord) -> None:
    """Which facts each answer states: those on which the two differ, the others on a click."""
    st.subheader("Nuggets", anchor=False)
    found = nuggets_of_game(results.assignments, game.query_id, game.agent_a, game.agent_b)
    if not found:
        st.caption(f"No nuggets for this query: {results.without.get(game.query_id, 'the bank has none')}.")
        return
    apart, alike = ([entry for entry in found if entry.decides is decides] for decides in (True, False))
    st.caption(
        f"Facts that an answer to the query may state, {len(found):,} in all. The two answers differ on {len(apart):,}."
    )
    _list_nuggets(apart, game)
    if alike:
        label = f"{len(alike):,} on which they do not differ"
        with st.expander(label, key=f"alike-{game.mark}", on_change="rerun") as opened:
            if opened.open:
                _list_nuggets(alike, game)


def _list_nuggets(entries: Sequence[GameNugget], game: GameRecord) -> None:
    for entry in entries:
        importance = entry.nugget.importance or "importance not known"
        labels = ((game.agent_a, entry.label_a), (game.agent_b, entry.label_b))
        with st.container(border=True):
            text.lines(
                Line("strong", entry.nugget.text, [(importance, "good" if importance == "vital" else "")]),
                Line("quiet", " · ".join(f"{agent}: {support_words(label)}" for agent, label in labels)),
            )


def _show_documents(documents: Sequence[RetrievedDocument], game: GameRecord) -> None:
    st.subheader("Documents", anchor=False)
    if not documents:
        st.caption("Neither agent came with documents for this query.")
        return
    shown = sum(entry.shown for entry in documents)
    st.caption(
        f"The two agents retrieved {len(documents):,} documents for this query; the judge of this game saw {shown:,} "
        "of them. Labels are the relevance judge's: 0 is not relevant, higher is more relevant."
    )
    drawn = documents
    if len(documents) > _DOCUMENTS and not st.toggle(f"Show all {len(documents):,}", key=f"documents-{game.mark}"):
        drawn = documents[:_DOCUMENTS]
    for number, entry in enumerate(drawn):
        said = [] if entry.result is None else lines_of(entry.result)
        show_document(entry.document, _signs(entry), entry.ranks, said, f"{number}-{game.mark}")


def _signs(entry: RetrievedDocument) -> list[tuple[str, Kind]]:
    label = f"label {label_of(entry.result.outcome)}" if isinstance(entry.result, Judgment) else "no label"
    return [(label, ""), ("shown to the judge", "good")] if entry.shown else [(label, "")]


@dataclass(frozen=True, slots=True)
class Shown:
    """One order of a game: ``first`` is the judge's answer A, ``second`` its B; ``result`` is ``None`` if not asked."""

    first: str
    second: str
    result: Result | None

    @property
    def preferred(self) -> str | None:
        """The agent preferred, the empty string for a tie, ``None`` without a verdict."""
        if not isinstance(self.result, Judgment):
            return None
        return {Verdict.A: self.first, Verdict.B: self.second, Verdict.TIE: ""}[Verdict(str(self.result.outcome))]


@dataclass(frozen=True, slots=True)
class GameRecord:
    """One query, two agents, one judge.

    Attributes:
        orders: one or two, as planned.
        score: of ``agent_a`` in the rated game: 1, 0.5 or 0; ``None`` without a verdict.
    """

    query_id: str
    agent_a: str
    agent_b: str
    judge: str
    orders: tuple[Shown, ...]
    score: float | None

    @property
    def key(self) -> GameKey:
        """What names the game."""
        return GameKey(self.query_id, self.agent_a, self.agent_b, self.judge)

    @property
    def mark(self) -> str:
        """Twelve hexadecimal digits for the keys of the page's elements."""
        return hashlib.sha256(json.dumps(self.key).encode()).hexdigest()[:12]

    @property
    def winner(self) -> str | None:
        """The agent that won the rated game, if one did."""
        return {1.0: self.agent_a, 0.0: self.agent_b}.get(-1.0 if self.score is None else self.score)

    @property
    def orders_disagree(self) -> bool:
        """Whether both orders have a verdict and prefer different agents, or one of them neither."""
        preferred = [order.preferred for order in self.orders]
        return len(preferred) == 2 and None not in preferred and preferred[0] != preferred[1]

    @property
    def same_answers(self) -> bool:
        """Whether the two answers are the same text, which is a tie that no judge was asked about."""
        return any(order.result is not None and order.result.judgment_id == IDENTICAL for order in self.orders)


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A document that one of a game's two agents retrieved.

    Attributes:
        result: what the relevance judge said, ``None`` if it was not asked.
        ranks: agent and rank of each retrieval; ``SHARED`` for one given to every agent.
        shown: whether the answer judge saw it.
    """

    document: Document
    result: Result | None
    ranks: tuple[tuple[str, int], ...]
    shown: bool


def retrieved_documents(
    game: GameRecord, data: Dataset, labels: LabelResults, settings: StoredSettings
) -> list[RetrievedDocument]:
    """The documents behind a game: those shown to its judge first, as they were ordered, then the others."""
    ranks: dict[str, list[tuple[str, int]]] = {}
    for entry in data.retrieved.get(game.query_id, ()):
        if entry.agent in {SHARED, game.agent_a, game.agent_b}:
            ranks.setdefault(entry.doc_id, []).append((entry.agent, entry.rank))
    results = {doc_id: labels.get((game.query_id, doc_id)) for doc_id in ranks}
    shown = [] if game.same_answers else _shown(ranks, results, data, settings)
    others = sorted(set(ranks) - set(shown), key=lambda doc_id: (-_label(results[doc_id]), doc_id))
    return [
        RetrievedDocument(data.documents[doc_id], results[doc_id], tuple(ranks[doc_id]), doc_id in shown)
        for doc_id in (*shown, *others)
    ]


def _shown(
    ranks: Mapping[str, Sequence[tuple[str, int]]],
    results: Mapping[str, Result | None],
    data: Dataset,
    settings: StoredSettings,
) -> list[str]:
    """Ids of the documents that the answer judge saw, in its order."""
    section = ReferencesSection() if settings.pairwise is None else settings.pairwise.documents
    depth = settings.depth
    pool = [doc_id for doc_id, found in ranks.items() if depth is None or any(rank <= depth for _, rank in found)]
    if settings.retrieval is None:
        annotated = [AnnotatedDocument(data.documents[doc_id]) for doc_id in pool]
    else:
        annotated = [
            AnnotatedDocument(data.documents[doc_id], _label(result))
            for doc_id in pool
            if isinstance(result := results[doc_id], Judgment)
        ]
    return [entry.document.doc_id for entry in references(annotated, section.options())]


def _label(result: Result | None) -> int:
    """The label, or less than any label where there is none."""
    return label_of(result.outcome) if isinstance(result, Judgment) else -1
