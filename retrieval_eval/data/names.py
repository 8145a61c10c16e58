"""The column names that tables may have, in one place: ours, and those of other tools.

RAGElo, ragas, DeepEval, promptfoo, BEIR, MS MARCO, Pyserini, TREC. A name counts without regard to case, spaces, ``_``
and ``-``, so that ``retrievalContext`` is ``retrieval_context``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

NAMES: Final[Mapping[str, Sequence[str]]] = {
    "qid": ("query_id", "topic_id", "question_id", "_id", "id", "prompt_id", "number"),
    "query": ("question", "user_input", "input", "prompt", "query_text", "user_query"),
    "agent": ("system", "run_id", "model", "agent_name", "system_name"),
    "answer": ("response", "output", "actual_output", "prediction", "answer_text", "completion", "generated_answer"),
    "passages": ("contexts", "retrieved_contexts", "retrieval_context", "retrieved_documents"),
    "reference": (
        "reference_answer",
        "expected_output",
        "expected_answer",
        "ground_truth",
        "ground_truths",
        "gold_answer",
    ),
    "did": ("_id", "pid", "docid", "doc_id", "document_id", "id"),
    "document": ("segment", "passage", "contents", "text", "body", "document_text", "content", "page_content", "chunk"),
}
"""For each of our columns the other spellings, best first, accepted where the column itself is absent."""


def names_of(*columns: str) -> dict[str, Sequence[str]]:
    """The spellings of some columns."""
    return {column: NAMES[column] for column in columns}


TOPIC_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "qid": NAMES["qid"],
    "query": ("text", "title", "question", "topic", "query_text", "narrative", *NAMES["query"][1:]),
    "reference": NAMES["reference"],
}
"""Those of a table of queries, where a title or a text can only be the query's."""
