"""Column names: our canonical names, their spellings in other tools, and the matching of a table's columns to them.

Every reader takes its spellings from here, so that a name means the same in every command.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Final, TypeAlias

from judges.errors import DataError

Spellings: TypeAlias = Mapping[str, Sequence[str]]
"""Other accepted spellings of each canonical column, best first."""
Columns: TypeAlias = Mapping[str, str | None]
"""The user's column for a canonical name; ``None`` if no column is to be used for it."""


def _joined(first: str, second: str) -> tuple[str, ...]:
    """``model_answer``, ``model_output``, ...: every first word joined with every second word."""
    return tuple(f"{left}_{right}" for left, right in product(first.split(), second.split()))


def _once(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


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
NAMES: Final[Spellings] = {
    "qid": ("query_id", "topic_id", "question_id", "prompt_id", "_id", "id", "number"),
    "query": ("question", "user_input", "input", "inputs", "prompt", "query_text", "user_query", "instruction"),
    "messages": ("conversation_history", "chat_history", "message_history", "dialogue_history", "dialog_history"),
    "conversation": (),
    "turn": (),
    "agent": ("system", "run_id", "model", "agent_name", "system_name", "generator"),
    "answer": _once(
        *("response", "output", "actual_output", "prediction", "answer_text", "completion", "generation", "hypothesis"),
        *("generated_text", "generated", "outputs", "predictions"),
        *_joined(*JOINED["answer"]),
    ),
    "passages": (
        *("contexts", "retrieved_contexts", "retrieved_context", "retrieval_context", "retrieval_contexts"),
        *("retrieved_documents", "retrieved_passages", "retrieved_docs", "retrieved_chunks", "source_documents"),
    ),
    "reference": _once(
        *("reference_answer", "expected_output", "expected_answer", "ground_truth", "ground_truths", "gold_answer"),
        *("gt", "gold", "golden", "expected", "targets"),
        *_joined(*JOINED["reference"]),
    ),
    "did": ("_id", "pid", "docid", "doc_id", "document_id", "corpus_id", "passage_id", "paragraph_id", "id"),
    "document": ("segment", "passage", "contents", "text", "body", "document_text", "content", "page_content", "chunk"),
}
"""Other spellings of each canonical column, best first; used if a table lacks the canonical name itself.

From RAGElo, ragas, DeepEval, promptfoo, RAGChecker, Giskard, BEIR, MS MARCO, Pyserini and TREC. Case, spaces, ``_`` and
``-`` are ignored, so ``retrievalContext`` equals ``retrieval_context``.
"""
RATERS: Final = ("judge", "annotator", "worker", "rater", "judge_name", "annotator_id", "worker_id", "rater_id")
"""Names of the column with the judge or annotator."""


def names_of(*columns: str) -> dict[str, Sequence[str]]:
    """The spellings of some columns, from ``NAMES``."""
    return {column: NAMES[column] for column in columns}


TOPIC_NAMES: Final[Spellings] = {
    "qid": NAMES["qid"],
    "query": ("text", "title", "question", "topic", "query_text", "narrative", *NAMES["query"][1:]),
    **names_of("reference", "messages", "conversation", "turn"),
}
"""Spellings in a table of queries, where a title or a text can only be the query's."""

VERDICT_NAMES: Final[Spellings] = {
    # A query's text identifies it better than a column 'id', which may only number the rows.
    "qid": (*(name for name in NAMES["qid"] if "_" in name[1:]), "prompt", "iid", "_id", "id", "number"),
    "agent_a": (*(f"{name}_a" for name in NAMES["agent"]), "left", "baseline", "generator_1", "model_1", "system_1"),
    "agent_b": (
        *(f"{name}_b" for name in NAMES["agent"]),
        *("right", "model", "generator_2", "model_2", "system_2"),
    ),
    "verdict": ("winner", "vote", "preference", "preferred", "choice", "answer"),  # RAGElo writes 'answer'
    "judge": RATERS[1:],
    "order": ("baseline_shown",),
    "reason": ("raw_answer",),
    "p_a": (),
    "p_b": (),
    "p_tie": (),
}
"""Spellings in a table of games."""

OPINION_NAMES: Final[Spellings] = {
    **names_of("qid", "did"),
    "agent": ("run", *NAMES["agent"]),
    "annotator": tuple(name for name in RATERS if name != "annotator"),
    "label": ("relevance", "rel"),
    "score": ("grade",),
}
"""Spellings in tables of labels, grades and nuggets."""

RUN_NAMES: Final[Spellings] = {
    **names_of("qid", "did"),
    "score": ("sim", "similarity"),
    "tag": ("run", "agent", *NAMES["agent"]),
}
"""Spellings in a run as a table."""

GRADE_NAMES: Final[Spellings] = {
    "item": ("item_id", "question_id", "nugget_id"),
    "qid": NAMES["qid"],
    "did": (*NAMES["did"], "passage"),
    "grade": ("rating", "self_rating"),
    "llm": ("model", "grader"),
    "prompt": ("prompt_class",),
}
"""Spellings in a table of exam grades."""

QRELS_NAMES: Final[Spellings] = {**names_of("qid", "did"), "label": ("relevance", "rel", "grade", "score")}
"""Spellings in qrels as a table; BEIR writes ``query-id``, ``corpus-id`` and ``score``."""

_SINGLE: Final[Mapping[str, str]] = {
    "answer": "the answer",
    "reference": "the gold answer",
    "passages": "the passages",
    "verdict": "the verdict",
}
"""Columns that must not be ambiguous: a wrong choice would silently change what is judged."""
_UNAMBIGUOUS: Final = {"verdict": {"verdict", "winner"}}
"""Spellings that are never ambiguous. ``answer`` is not among them: data sets use it for the gold answer."""


def canonical_names(
    spellings: Iterable[str], aliases: Spellings, columns: Columns | None = None, objects: Collection[str] = ()
) -> dict[str, str]:
    """Map each column of a table to its canonical name, ``""`` if the column is ignored.

    Args:
        spellings: the table's columns.
        aliases: other spellings of the canonical names; the first that the table has is used.
        columns: the user's choice; ``aliases`` decide about names not in it, and about columns that the table lacks.
        objects: columns that hold objects; such a column is the answer only if no other column is.
    """
    names = {name: name if name.strip() else "" for name in spellings}
    chosen = {ours: theirs for ours, theirs in (columns or {}).items() if theirs is None or theirs in names}
    names |= dict.fromkeys(chosen.keys() & names.keys(), "")
    names |= {theirs: ours for ours, theirs in chosen.items() if theirs is not None}
    for ours in chosen.keys() & _SINGLE.keys() & aliases.keys():
        rivals = [theirs for theirs in _spelt(names, ours, aliases) if names[theirs] == theirs != chosen[ours]]
        names |= dict.fromkeys(rivals, "")
    by_folded = {folded(name): name for name in reversed(names)}
    for canonical, others in aliases.items():
        if canonical in chosen or canonical in names.values():
            continue
        # With messages the last one may be the question; then a title is something else.
        has_messages = canonical == "query" and "messages" in names.values()
        for spelling in (canonical, *(NAMES["query"] if has_messages else others)):
            name = spelling if spelling in names else by_folded.get(folded(spelling))
            if name is not None and names[name] == name and not (canonical == "answer" and name in objects):
                names[name] = canonical
                break
        else:
            object_columns = (
                [name for name in _spelt(names, "answer", aliases) if name in objects] if canonical == "answer" else ()
            )
            names |= dict.fromkeys(object_columns[:1], "answer")
    return names


def clash(
    names: Mapping[str, str],
    ours: Collection[str],
    aliases: Spellings,
    columns: Columns | None,
    objects: Collection[str] = (),
) -> str | None:
    """Why the columns of a table are ambiguous; ``None`` if they are not.

    Either two columns differ only in spaces, or in case if one of them is in ``ours``; or several columns are spellings
    of the answer (likewise gold answer, passages, verdict), and ``columns`` does not choose one.

    Args:
        names: the table's columns and their canonical names, from ``canonical_names``.
        ours: canonical names of the columns in use.
        aliases: see ``canonical_names``.
        columns: see ``canonical_names``; ``None`` if the command has no option for it.
        objects: see ``canonical_names``.
    """
    from judges.sections import shortened

    seen: dict[str, str] = {}
    for name in filter(names.get, names):
        other = seen.setdefault(name.strip().casefold(), name)
        if other != name and (other.strip() == name.strip() or not {names[name], names[other]}.isdisjoint(ours)):
            return f"columns {other!r} and {name!r} differ in case or spaces only; rename one, or leave it out"
    for column, meaning in _SINGLE.items():
        if column not in aliases or column in (columns or {}):
            continue
        candidates = [name for name in _spelt(names, column, aliases) if names[name] in {name, column}]
        candidates = [name for name in candidates if column != "answer" or name not in objects]
        if len({folded(name).removesuffix("s") for name in candidates}) > 1 and _UNAMBIGUOUS.get(
            column, set()
        ).isdisjoint(candidates):
            which = (
                f"{_NUMBERS.get(len(candidates), len(candidates))} columns may be {meaning}: {shortened(candidates)}"
            )
            if columns is None:
                return f"{which}; rename one, or leave it out"
            how = "" if column == "verdict" else f", or columns: {{{column}: NAME}}"
            gold = "; the gold answer is 'reference'" if column == "answer" else ""
            return f"{which}; say --column {column}=NAME{how}{gold}"
    return None


_NUMBERS: Final = {2: "two", 3: "three"}


def _spelt(names: Iterable[str], column: str, aliases: Spellings) -> list[str]:
    """The columns of a table that are spellings of a canonical column."""
    looks = {folded(spelling) for spelling in (column, *aliases[column])}
    return [name for name in names if folded(name) in looks]


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """The name in lower case without spaces, ``_`` and ``-``, for comparison."""
    return re.sub(r"[\s_-]", "", name).casefold()


def lacks(column: str, names: Collection[str]) -> bool:
    """Whether a required column is missing; ``messages`` can stand in for ``query``."""
    return column not in names and not (column == "query" and "messages" in names)


def missing_column(
    path: Path,
    column: str,
    spellings: Iterable[str],
    line: int | None = None,
    *,
    also: Sequence[str] = (),
    mapped: bool = False,
    option: bool = False,
) -> DataError:
    """An error that names the missing column and the likely one among ``spellings``, for the caller to raise.

    Args:
        path: the table.
        column: the missing column.
        spellings: the table's columns.
        line: line of the header, if it has one.
        also: other names that would have been accepted.
        mapped: whether the user can choose the column in the YAML file or by an option.
        option: whether the user can choose it by an option only.
    """
    from judges.sections import shortened

    names = [name for name in spellings if name]
    similar = difflib.get_close_matches(column, [name for name in names if name not in NAMES], n=1)
    suggestion = similar[0] if similar else "NAME"
    advice = f"; or: {how_to_name(column, suggestion)}" if mapped else f"; is it {similar[0]!r}?" if similar else ""
    advice = f"; or say --column {column}={suggestion}" if option else advice
    room = _ROOM - len(os.path.relpath(path)) - len(column) - len(advice)
    accepted = f"; may be called {shortened(also, max(room // 2, 20))}" if also else ""
    found_names = shortened(names, max(room - len(accepted), 20)) or "none"
    return DataError(path, f"no column {column!r}; found {found_names}{accepted}{advice}", line=line)


_ROOM: Final = 108
"""Characters for column names in an error message of two lines of 80."""


def how_to_name(column: str, theirs: str = "NAME") -> str:
    """How the user chooses the column for a canonical name: in the YAML file, or on the command line."""
    return f"columns: {{{column}: {theirs}}}, or --column {column}={theirs.replace('null', '')}"
