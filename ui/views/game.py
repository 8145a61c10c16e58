"""Draw one game with its flags, and the parts that the page of a query also has: nuggets, exam items, documents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import streamlit as st

from arena.boards.games import (
    GameRecord,
    RetrievedDocument,
    ShownOrder,
    address_of,
    documents_of,
    flag,
    flags_of,
    games_on,
)
from arena.boards.queries import exam_matrix, nugget_matrix
from arena.data.dataset import SHARED
from arena.results.games import GameKey
from arena.store.annotations import Annotations, annotator_name
from judges.errors import CAUSES
from judges.types import JudgeFailure, Judgment, details_of, label_of, repeat_of
from ui import data, text
from ui.access import allowed, annotator_field, viewer
from ui.address import link, unfold
from ui.editing import attempt, say_refused
from ui.show import draw
from ui.text import TextLine, nothing, problem

_DOCUMENTS: Final = 10
"""Number of documents of a query that are drawn at first."""

flags = data.stored(flags_of)
"""People's flags, which are comments on odd verdicts, by game."""


@data.derived("Reading the games …", 32)
def games_on_query(source: data.Source, query_id: str) -> list[GameRecord]:
    """All planned games on a query, with the results of their judges."""
    with data.shared(source.location) as store:
        return games_on(store, source.tournament, query_id, data.games(source), data.scores(source))


def to_game(source: data.Source, key: GameKey, **fields: str) -> str:
    """The URL of a game's page; ``fields`` are the filters of the list from which the viewer opens the game."""
    return link("queries", source, view="games", **fields, game=address_of(key))


def show_game(source: data.Source, key: GameKey) -> None:
    """Draw one game: its outcome, the two answers, the judge's verdicts and reasons, flags and documents."""
    dataset = data.dataset_of(source, key.query_id)
    game = next(game for game in games_on_query(source, key.query_id) if game.key == key)
    text.lines(
        TextLine("strong", game.outcome),
        TextLine("lead", dataset.queries[key.query_id].text),
        TextLine("quiet", f"{key.query_id} · judge: {key.judge}", link=link("queries", source, query=key.query_id)),
    )
    text.thread(dataset.queries[key.query_id])
    _show_flags(source, key)
    agents = key.agent_a, key.agent_b
    answers = [dataset.answers[key.query_id, agent] for agent in agents]
    texts = [answer.text for answer in answers]
    with st.container(horizontal=True, gap="medium"):
        raw = text.raw_switch()
        marks = text.alike(*texts) and st.toggle("Mark differences", True, key=f"marked-{game.mark}")
    text.reference(dataset.queries[key.query_id], raw=raw)
    for column, side, answer, other in zip(
        st.columns(2), ("left", "right"), answers, reversed(texts) if marks else (None, None), strict=True
    ):
        with column:
            words = f"{len(answer.text.split()):,} words" if answer.has_text else ""
            text.lines(
                TextLine("strong", answer.agent, link=link("queries", source, agent=repeat_of(answer.agent)[0])),
                TextLine("quiet", words),
            )
            text.answer(answer, f"answer-{side}-{game.mark}", raw=raw, against=other)
    st.subheader("What the judge said", anchor=False)
    if not game.same_answers:
        for column, order in zip(st.columns(len(game.orders)), game.orders, strict=True):
            with column:
                _show_order(order, game)
    show_bank(source, key.query_id, agents)
    labels = data.labels_of_query(source, key.query_id)
    show_documents(source, documents_of(game, dataset, labels, data.settings(source)), key.query_id)


def _show_order(order: ShownOrder, game: GameRecord) -> None:
    """Draw a judge's verdict and reason for one order of the answers; agents' names replace the judge's A and B."""
    key, result = f"{'ab' if order.first == game.agent_a else 'ba'}-{game.mark}", order.result
    with st.container(border=True, key=f"order-{key}"):
        sides = TextLine("quiet", f"A: {order.first}\nB: {order.second}")
        if isinstance(result, Judgment):
            preferred = f"prefers {result.outcome}: {order.preferred}" if order.preferred else "calls it a tie"
            text.lines(TextLine("strong", f"The judge {preferred}"), sides)
            text.passage(result.reason, f"reason-{key}", label="Reason", empty="No reason given.", height=220)
        else:
            text.lines(sides)
        if isinstance(result, JudgeFailure):
            problem("No verdict: the judge failed.", f"{CAUSES.get(result.cause, result.cause)}. {result.message}")
        elif result is None:
            nothing("Not judged yet.")
        if result is not None and result.reply:
            with st.expander("The whole reply", key=f"reply-of-{key}", on_change="rerun") as reply:
                if reply.open:
                    text.quiet(f"{result.model} · {result.latency_s:.1f} s · {_tokens(result)}")
                    text.passage(result.reply, f"reply-{key}", label="Reply", empty="An empty reply.", raw=True)


def _tokens(result: Judgment | JudgeFailure) -> str:
    used = result.usage
    if used.input_tokens is None or used.output_tokens is None:
        return "tokens not known"
    return f"{used.input_tokens:,} tokens read, {used.output_tokens:,} written"


def show_bank(source: data.Source, query_id: str, agents: Sequence[str]) -> None:
    """Draw which nuggets and exam items the answers cover, if the tournament has any."""
    results, study = data.nuggets(source), data.study(source)
    if results is not None:
        st.subheader("Nuggets", anchor=False)
        if (picture := nugget_matrix(results.assignments, query_id, agents)) is not None:
            draw(picture)
        else:
            st.caption(f"No nuggets for this query: {results.without.get(query_id, 'the bank has none')}.")
    if study is not None and (picture := exam_matrix(study, query_id, agents, data.exam_depth(source))) is not None:
        st.subheader("Exam", anchor=False)
        draw(picture)


def show_documents(source: data.Source, documents: Sequence[RetrievedDocument], query_id: str) -> None:
    """Draw retrieved documents with their relevance labels by judges and people."""
    if not documents:
        return
    st.subheader("Documents", anchor=False)
    if shown := sum(document.shown for document in documents):
        st.caption(f"The judge of this game saw {shown:,} of {len(documents):,}.")
    if len(documents) > _DOCUMENTS and not st.toggle(
        f"Show all {len(documents):,}", key="documents", bind="query-params"
    ):
        documents = documents[:_DOCUMENTS]
    judges = data.labels_by_judge(source, query_id)
    for number, document in enumerate(documents):
        label_lines = [
            line
            for judge, results in judges.items()
            for line in _label_lines(
                results.get((query_id, document.document.doc_id)), judge if len(judges) > 1 else ""
            )
        ]
        _show_document(document, label_lines, f"{number}-{query_id.encode('utf-8', 'replace').hex()}")


def _show_document(retrieved: RetrievedDocument, label_lines: Sequence[TextLine], key: str) -> None:
    signs: list[tuple[str, text.Tone]] = [("no label" if retrieved.label is None else f"label {retrieved.label}", "")]
    if retrieved.human is not None:
        signs.append((f"people say {retrieved.human}", "good" if retrieved.human == retrieved.label else "bad"))
    if retrieved.shown:
        signs.append(("shown to the judge", "good"))
    title, doc_id = retrieved.document.metadata.get("title", ""), retrieved.document.doc_id
    by = ", ".join(f"{'every agent' if agent == SHARED else agent} at rank {rank}" for agent, rank in retrieved.ranks)
    with st.container(border=True, key=f"document-{key}"):
        heading = TextLine("strong", f"{title} ({doc_id})" if title else doc_id, signs)
        text.lines(heading, TextLine("quiet", f"Retrieved by {by}"), *label_lines)
        with st.expander("The text", key=f"open-{key}", on_change="rerun") as opened:
            if opened.open:
                text.passage(retrieved.document.text, f"text-{key}", label="Document", empty="The document is empty.")


def _label_lines(result: Judgment | JudgeFailure | None, judge: str) -> list[TextLine]:
    """Lines with one relevance judge's label and reason; ``judge`` is its name, or empty if there is only one judge."""
    prefix = f"{judge}: " if judge else ""
    if isinstance(result, Judgment):
        details = ", ".join(f"{name} {value}" for name, value in details_of(result.outcome).items())
        label = f"{prefix}label {label_of(result.outcome)}. " if judge else ""
        reason = TextLine("body", label + (result.reason.strip() or "The relevance judge gave no reason."))
        return [TextLine("quiet", prefix + details), reason] if details else [reason]
    if isinstance(result, JudgeFailure):
        return [TextLine("body", f"{prefix}No label: {CAUSES.get(result.cause, result.cause)}. {result.message}")]
    return [TextLine("body", f"{prefix}Not judged yet.")]


def _show_flags(source: data.Source, key: GameKey) -> None:
    """Draw the flags on the game; viewers who may vote can also add one."""
    game_flags = flags(source).get(key, ())
    for flag_annotation in game_flags:
        text.lines(
            TextLine("body", f"{flag_annotation.annotator}: {flag_annotation.value['comment']}", [("flagged", "bad")])
        )
    say_refused("Not saved.")
    if not allowed("vote"):
        return
    with unfold("Flag this game", "flag") as opened:
        if not opened.open:
            return
        annotator_field(width=320)
        st.text_area("What is odd about it?", key="comment", max_chars=2000)
        with st.container(horizontal=True):
            st.button("Flag", on_click=partial(attempt, _flag, source, key, True, may="vote"), type="primary")
            if game_flags:
                st.button("Take my flag back", on_click=partial(attempt, _flag, source, key, False, may="vote"))


def _flag(source: data.Source, key: GameKey, comment: bool) -> None:
    """Flag a game with the comment in the form or, if ``comment`` is false, take the viewer's flag back."""
    person = viewer()
    annotator = annotator_name(st.session_state["annotator"] if person is None else person.name)
    words = st.session_state["comment"].strip() if comment else None
    with data.shared(source.location) as store:
        dataset = store.dataset(source.tournament, key.query_id)
        Annotations(store, source.tournament).add([flag(key, dataset, annotator, words)])
    st.session_state["comment"] = ""
