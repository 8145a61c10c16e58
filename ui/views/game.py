"""One game: the query, both answers, what the judge said in each order, and the documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from arena.boards.nuggets import support_words
from arena.data.dataset import Dataset
from arena.games.table import GameKey
from arena.stages.nuggets.results import GameNugget, NuggetResults, nuggets_of_game
from judges.errors import CAUSES
from judges.types import JudgeFailure, Judgment, label_of
from ui import data, text
from ui.differences import marked, similarity
from ui.records import GameRecord, RetrievedDocument, Shown, retrieved_documents
from ui.states import nothing, problem
from ui.text import Kind, Line
from ui.views.documents import lines_of, show_document

_DOCUMENTS: Final = 10
"""Documents drawn at first."""
_ALIKE: Final = 0.3
"""Share of common words from which marking the differences leaves something unmarked to read."""


def show_game(source: data.Source, key: GameKey) -> None:
    """Draw one game."""
    dataset, game = data.dataset_of(source, key.query_id), data.game(source, key)
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
    shown = _marked(answers, game)
    for column, agent, side, answer, own in zip(st.columns(2), agents, ("left", "right"), answers, shown, strict=True):
        with column:
            size = f"{len(answer.split()):,} words, {len(answer):,} characters"
            text.lines(Line("strong", agent), Line("quiet", size))
            key = f"answer-{side}-{game.mark}"
            if own is None:
                text.passage(answer, key, empty="The agent answered nothing.", border=True)
            else:
                text.marked_passage(own, key)


def _marked(answers: Sequence[str], game: GameRecord) -> Sequence[str | None]:
    """Both answers with their differences marked, where a reader asks for that and it says something."""
    left, right = answers
    alike = similarity(left, right)
    if alike is None:
        st.caption("The answers are too long to mark where they differ.")
    elif left != right and left.strip() and right.strip():
        meaning = "Marks the words of each answer that the other one does not have in the same place."
        label = f"Mark the differences: {alike:.0%} of the words are the same, in the same order"
        wanted = st.toggle(label, alike >= _ALIKE, key=f"marked-{game.mark}", help=meaning)
        if wanted:
            return marked(left, right)
    return None, None


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
            text.passage(result.reason, f"reason-{key}", empty="The judge gave no reason.", height=220)
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
            text.passage(result.reply, f"reply-{key}", empty="The judge replied nothing.")


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
