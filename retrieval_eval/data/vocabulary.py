"""The vocabulary of tables: the name of every column that is read, what it holds, and its spellings in other tools.

A spelling means the same in every command. Which columns a kind of table has, its ``TableSpec`` says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Final, TypeAlias

from msgspec import Struct

Columns: TypeAlias = Mapping[str, str | None]
"""The user's column for a name of ours; ``None`` if no column is to be used for it."""


class Term(Struct, frozen=True):
    """What a column holds, and its other spellings, best first."""

    holds: str
    spellings: Sequence[str] = ()


def _joined(first: str, second: str) -> tuple[str, ...]:
    """``model_answer``, ``model_output``, ...: every first word joined with every second word."""
    return tuple(f"{left}_{right}" for left, right in product(first.split(), second.split()))


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
"""Spellings of two words, for ``_joined``: the first words and the second words."""
_AGENTS: Final = ("system", "run_id", "model", "agent_name", "system_name", "generator")
_RATERS: Final = ("judge", "annotator", "worker", "rater", "judge_name", "annotator_id", "worker_id", "rater_id")

VOCABULARY: Final[Mapping[str, Term]] = {
    "qid": Term(
        "id of the query; without it, queries are told apart by their texts",
        ("query_id", "topic_id", "question_id", "prompt_id", "_id", "id", "number"),
    ),
    "query": Term(
        "text of the query; in a table of queries also `text`, `title`, `topic`, `narrative`",
        ("question", "user_input", "input", "inputs", "prompt", "query_text", "user_query", "instruction"),
    ),
    "messages": Term(
        "what was said before the query in its [conversation](conversations.md)",
        ("conversation_history", "chat_history", "message_history", "dialogue_history", "dialog_history"),
    ),
    "conversation": Term("of a query: the conversation that it is a turn of"),
    "turn": Term("of a query: its place there, from 1"),
    "agent": Term("whose answer it is; without it, the file's name", _AGENTS),
    "answer": Term(
        "its text; it may be empty, and is judged then like any other",
        tuple(
            dict.fromkeys(
                (
                    *("response", "output", "actual_output", "prediction", "answer_text", "completion", "generation"),
                    *("hypothesis", "generated_text", "generated", "outputs", "predictions"),
                    *_joined(*JOINED["answer"]),
                )
            )
        ),
    ),
    "passages": Term(
        "a list of the texts that were retrieved for the answer",
        (
            *("contexts", "retrieved_contexts", "retrieved_context", "retrieval_context", "retrieval_contexts"),
            *("retrieved_documents", "retrieved_passages", "retrieved_docs", "retrieved_chunks", "source_documents"),
        ),
    ),
    "reference": Term(
        "a gold answer to the query, which judges of answers see, and agents do not",
        tuple(
            dict.fromkeys(
                (
                    *("reference_answer", "expected_output", "expected_answer", "ground_truth", "ground_truths"),
                    *("gold_answer", "gt", "gold", "golden", "expected", "targets"),
                    *_joined(*JOINED["reference"]),
                )
            )
        ),
    ),
    "did": Term(
        "id of the document; without it, documents are told apart by their texts",
        ("_id", "pid", "docid", "doc_id", "document_id", "corpus_id", "passage_id", "paragraph_id", "id"),
    ),
    "document": Term(
        "its text",
        (
            *("segment", "passage", "contents", "text", "body", "document_text", "content", "page_content", "chunk"),
            "passage_text",
        ),
    ),
    "rank": Term("of a retrieved document: its rank, from 1; without it, the order of the rows"),
    "score": Term("of a retrieved document: its score; or a grade", ("sim", "similarity")),
    "error": Term("why there is no answer", ("error_message", "error_msg", "err", "exception", "failure")),
    "agent_a": Term(
        "the agent of the first answer",
        (*(f"{name}_a" for name in _AGENTS), "left", "generator_1", "model_1", "system_1"),
    ),
    "agent_b": Term(
        "the agent of the second answer",
        (*(f"{name}_b" for name in _AGENTS), "right", "generator_2", "model_2", "system_2"),
    ),
    "verdict": Term("which answer is better", ("winner", "vote", "preference", "preferred", "choice")),
    "judge": Term("who judged", _RATERS[1:]),
    "annotator": Term("who judged", tuple(name for name in _RATERS if name != "annotator")),
    "order": Term("which of the two answers was shown first", ("baseline_shown",)),
    "reason": Term("why the judge said so", ("raw_answer",)),
    "label": Term("relevance of a document", ("relevance", "rel")),
    "item": Term("id of a question or nugget of a test bank", ("item_id", "question_id", "nugget_id")),
    "grade": Term("how well a passage answers an item", ("rating", "self_rating")),
    "llm": Term("the model that graded", ("model", "grader")),
    "prompt": Term("the prompt that it was given", ("prompt_class",)),
    "facet": Term("subtopic of a query", ("facet_id",)),
    "question": Term("text of an item that is a question", ("question_text",)),
    "nugget": Term("text of an item that is a nugget", ("nugget_text",)),
    "answers": Term("gold answers of an item", ("gold_answers",)),
    "length": Term("words of an answer", ("response_length", "words")),
}
"""The columns that have other spellings, and those that the user can choose.

From RAGElo, ragas, DeepEval, promptfoo, RAGChecker, Giskard, BEIR, MS MARCO, Pyserini and TREC. Case, spaces, ``_`` and
``-`` are ignored, so ``retrievalContext`` equals ``retrieval_context``.
"""
SHOWN_SWAPPED: Final = {"ab": False, "ba": True, "1": False, "2": True, "first": False, "second": True}
"""Words of the column ``order``: whether agent_b's answer was shown first."""
OF_DATA: Final = (
    *("qid", "query", "messages", "conversation", "turn", "agent", "answer", "passages", "reference"),
    *("did", "document", "rank", "score"),
)
"""Columns of queries, answers and documents, which a configuration can map."""


def spellings(column: str) -> Sequence[str]:
    """The other spellings of a column; none if the vocabulary lacks it."""
    return VOCABULARY[column].spellings if column in VOCABULARY else ()


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """The name in lower case without spaces, ``_`` and ``-``, for comparison."""
    return re.sub(r"[\s_-]", "", name).casefold()


def how_to_name(column: str, theirs: str = "NAME") -> str:
    """How the user chooses the column for a name of ours: in the YAML file, or on the command line."""
    return f"columns: {{{column}: {theirs}}}, or --column {column}={theirs.replace('null', '')}"
