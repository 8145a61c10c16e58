"""The vocabulary of tables: canonical names of columns, descriptions of their contents, and spellings in other tools.

A spelling means the same in every command. A ``TableSpec`` defines which columns a kind of table has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

Columns: TypeAlias = Mapping[str, str | None]
"""The user's column for each canonical name; ``None`` if no column shall be used for the name."""


class Term(Struct, frozen=True):
    """Description of a column's contents, and the column's other spellings, best first."""

    holds: str
    spellings: Sequence[str] = ()


JOINED: Final[Mapping[str, tuple[str, str]]] = {
    "answer": (
        "generated model system rag llm bot chatbot assistant ai agent predicted actual final",
        "answer response output",
    ),
    "reference": (
        "gt gold golden reference expected ground_truth correct ideal target true best",
        "answer answers response output outputs",
    ),
}
"""Words of two-word spellings, such as ``model_output``: for each column the first words and the second words."""


def _term(holds: str, words: str, column: str = "") -> Term:
    """A term with the given spellings and with the two-word spellings that ``JOINED`` lists for the column."""
    first, second = (part.split() for part in JOINED.get(column, ("", "")))
    joined = (f"{left}_{right}" for left in first for right in second)
    return Term(holds, tuple(dict.fromkeys((*words.split(), *joined))))


def _of_side(side: str, others: str) -> str:
    return " ".join([f"{name}_{side}" for name in _AGENTS.split()] + [others])


_AGENTS: Final = "system run_id model agent_name system_name generator"
VOCABULARY: Final[Mapping[str, Term]] = {
    "qid": _term(
        "id of the query; without it, queries are told apart by their texts",
        "query_id topic_id question_id prompt_id _id id number",
    ),
    "query": _term(
        "text of the query; in a table of queries also `text`, `title`, `topic`, `narrative`",
        "question user_input input inputs prompt query_text user_query instruction",
    ),
    "messages": _term(
        "what was said before the query in its [conversation](conversations.md)",
        "conversation_history chat_history message_history dialogue_history dialog_history",
    ),
    "conversation": Term("of a query: the conversation that it is a turn of"),
    "turn": Term("of a query: its place there, from 1"),
    "agent": _term("whose answer it is; without it, the file's name", _AGENTS),
    "answer": _term(
        "its text; it may be empty, and is judged then like any other",
        "response output actual_output prediction answer_text completion generation hypothesis generated_text "
        "generated outputs predictions",
        "answer",
    ),
    "passages": _term(
        "a list of the texts that were retrieved for the answer",
        "contexts retrieved_contexts retrieved_context retrieval_context retrieval_contexts retrieved_documents "
        "retrieved_passages retrieved_docs retrieved_chunks source_documents",
    ),
    "reference": _term(
        "a gold answer to the query, which judges of answers see, and agents do not",
        "reference_answer expected_output expected_answer ground_truth ground_truths gold_answer gt gold golden "
        "expected targets",
        "reference",
    ),
    "did": _term(
        "id of the document; without it, documents are told apart by their texts",
        "_id pid docid doc_id document_id corpus_id passage_id paragraph_id id",
    ),
    "document": _term(
        "its text", "segment passage contents text body document_text content page_content chunk passage_text"
    ),
    "rank": Term("of a retrieved document: its rank, from 1; without it, the order of the rows"),
    "score": _term("of a retrieved document: its score; or a grade", "sim similarity"),
    "error": _term("why there is no answer", "error_message error_msg err exception failure"),
    "agent_a": _term("the agent of the first answer", _of_side("a", "left generator_1 model_1 system_1")),
    "agent_b": _term("the agent of the second answer", _of_side("b", "right generator_2 model_2 system_2")),
    "verdict": _term("which answer is better", "winner vote preference preferred choice"),
    "judge": _term("who judged", "annotator worker rater judge_name annotator_id worker_id rater_id"),
    "annotator": _term("who judged", "judge worker rater judge_name annotator_id worker_id rater_id"),
    "order": _term("which of the two answers was shown first", "baseline_shown"),
    "reason": _term("why the judge said so", "raw_answer"),
    "label": _term("relevance of a document", "relevance rel"),
    "item": _term("id of a question or nugget of a test bank", "item_id question_id nugget_id"),
    "grade": _term("how well a passage answers an item", "rating self_rating"),
    "llm": _term("the model that graded", "model grader"),
    "prompt": _term("the prompt that it was given", "prompt_class"),
    "facet": _term("subtopic of a query", "facet_id"),
    "question": _term("text of an item that is a question", "question_text"),
    "nugget": _term("text of an item that is a nugget", "nugget_text"),
    "answers": _term("gold answers of an item", "gold_answers"),
    "length": _term("words of an answer", "response_length words"),
}
"""All columns that have other spellings or that the user can choose.

The spellings come from RAGElo, ragas, DeepEval, promptfoo, RAGChecker, Giskard, BEIR, MS MARCO, Pyserini and TREC.
Case, spaces, ``_`` and ``-`` are ignored, so ``retrievalContext`` equals ``retrieval_context``.
"""
SHOWN_SWAPPED: Final = {"ab": False, "ba": True, "1": False, "2": True, "first": False, "second": True}
"""For each word of the column ``order``, whether agent_b's answer was shown first."""
OF_DATA: Final = (
    *("qid", "query", "messages", "conversation", "turn", "agent", "answer", "passages", "reference"),
    *("did", "document", "rank", "score"),
)
"""Columns of queries, answers and documents, which a configuration can map."""


def spellings(column: str) -> Sequence[str]:
    """The other spellings of a column; empty if the vocabulary lacks the column."""
    return VOCABULARY[column].spellings if column in VOCABULARY else ()


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """The name in lower case without spaces, ``_`` and ``-``, for comparison."""
    return re.sub(r"[\s_-]", "", name).casefold()


def how_to_name(column: str, theirs: str = "NAME") -> str:
    """How the user chooses the column for a canonical name: in the YAML file, or on the command line."""
    return f"columns: {{{column}: {theirs}}}, or --column {column}={theirs.replace('null', '')}"
