"""What columns are called: our names, their spellings in other tools, and which column of a table is which.

Every reader takes its spellings from here, so that a name means the same to every command.
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
"""For each of our columns the other names that it may have, best first."""
Columns: TypeAlias = Mapping[str, str | None]
"""For a name of ours the column of the user's tables; ``None`` where no column is it."""


def _joined(first: str, second: str) -> tuple[str, ...]:
    """``model_answer``, ``model_output``, ...: each of the first words with each of the second."""
    return tuple(f"{one}_{two}" for one, two in product(first.split(), second.split()))


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
"""Spellings of two words: each of the first with each of the second."""
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
"""For each of our columns the other spellings, best first, accepted where the column itself is absent.

RAGElo, ragas, DeepEval, promptfoo, RAGChecker, Giskard, BEIR, MS MARCO, Pyserini, TREC. A name counts without regard to
case, spaces, ``_`` and ``-``, so that ``retrievalContext`` is ``retrieval_context``.
"""
RATERS: Final = ("judge", "annotator", "worker", "rater", "judge_name", "annotator_id", "worker_id", "rater_id")
"""Who said it, a model or a person."""


def names_of(*columns: str) -> dict[str, Sequence[str]]:
    """The spellings of some columns."""
    return {column: NAMES[column] for column in columns}


TOPIC_NAMES: Final[Spellings] = {
    "qid": NAMES["qid"],
    "query": ("text", "title", "question", "topic", "query_text", "narrative", *NAMES["query"][1:]),
    **names_of("reference", "messages", "conversation", "turn"),
}
"""Those of a table of queries, where a title or a text can only be the query's."""

VERDICT_NAMES: Final[Spellings] = {
    # A text of the query tells queries apart where no better column does; an id may count rows.
    "qid": (*(name for name in NAMES["qid"] if "_" in name[1:]), "prompt", "iid", "_id", "id", "number"),
    "agent_a": (*(f"{name}_a" for name in NAMES["agent"]), "left", "baseline", "generator_1", "model_1", "system_1"),
    "agent_b": (
        *(f"{name}_b" for name in NAMES["agent"]),
        *("right", "model", "generator_2", "model_2", "system_2"),
    ),
    "verdict": ("winner", "vote", "preference", "preferred", "choice", "answer"),  # the last is RAGElo's
    "judge": RATERS[1:],
    "order": ("baseline_shown",),
    "reason": ("raw_answer",),
    "p_a": (),
    "p_b": (),
    "p_tie": (),
}
"""Those of a table of games."""

OPINION_NAMES: Final[Spellings] = {
    **names_of("qid", "did"),
    "agent": ("run", *NAMES["agent"]),
    "annotator": tuple(name for name in RATERS if name != "annotator"),
    "label": ("relevance", "rel"),
    "score": ("grade",),
}
"""Those of labels, grades and nuggets."""

RUN_NAMES: Final[Spellings] = {
    **names_of("qid", "did"),
    "score": ("sim", "similarity"),
    "tag": ("run", "agent", *NAMES["agent"]),
}
"""Those of a run as a table."""

GRADE_NAMES: Final[Spellings] = {
    "item": ("item_id", "question_id", "nugget_id"),
    "qid": NAMES["qid"],
    "did": (*NAMES["did"], "passage"),
    "grade": ("rating", "self_rating"),
    "llm": ("model", "grader"),
    "prompt": ("prompt_class",),
}
"""Those of grades of an exam, whose questions are its items."""

QRELS_NAMES: Final[Spellings] = {**names_of("qid", "did"), "label": ("relevance", "rel", "grade", "score")}
"""Those of qrels as a table; ``query-id``, ``corpus-id`` and ``score`` are BEIR's."""

_ONE: Final[Mapping[str, str]] = {
    "answer": "the answer",
    "reference": "the gold answer",
    "passages": "the passages",
    "verdict": "the verdict",
}
"""Of which a table has one column: a wrong choice among several changes what is judged, and nobody would see it."""
_SURE: Final = {"verdict": {"verdict", "winner"}}
"""Names that leave no doubt. ``answer`` does, since data sets call the gold answer so."""


def canonical_names(
    found: Iterable[str], aliases: Spellings, columns: Columns | None = None, objects: Collection[str] = ()
) -> dict[str, str]:
    """For each column found the name it goes by, ``""`` where it is passed over.

    Args:
        found: the columns of a table.
        aliases: for a canonical name its other spellings, of which the first that is there counts.
        columns: which column the user says it is; what the table has not, and what is not said, goes by ``aliases``.
        objects: columns that hold objects, and are no answer where another one is.
    """
    names = {name: name if name.strip() else "" for name in found}
    said = {ours: theirs for ours, theirs in (columns or {}).items() if theirs is None or theirs in names}
    names |= dict.fromkeys(said.keys() & names.keys(), "")
    names |= {theirs: ours for ours, theirs in said.items() if theirs is not None}
    for ours in said.keys() & _ONE.keys() & aliases.keys():
        others = [theirs for theirs in _spelt(names, ours, aliases) if names[theirs] == theirs != said[ours]]
        names |= dict.fromkeys(others, "")
    by_look = {folded(name): name for name in reversed(names)}
    for canonical, spellings in aliases.items():
        if canonical in said or canonical in names.values():
            continue
        # Where there are messages, the last may be the question, and a title something else.
        strict = canonical == "query" and "messages" in names.values()
        for spelling in (canonical, *(NAMES["query"] if strict else spellings)):
            name = spelling if spelling in names else by_look.get(folded(spelling))
            if name is not None and names[name] == name and not (canonical == "answer" and name in objects):
                names[name] = canonical
                break
        else:
            rest = (
                [name for name in _spelt(names, "answer", aliases) if name in objects] if canonical == "answer" else ()
            )
            names |= dict.fromkeys(rest[:1], "answer")
    return names


def clash(
    names: Mapping[str, str],
    ours: Collection[str],
    aliases: Spellings,
    columns: Columns | None,
    objects: Collection[str] = (),
) -> str | None:
    """Why it cannot be told which column of a table is meant, if so.

    Spaces around a name tell no columns apart; nor does case, where one of them is of our ``ours``. Two columns may be
    the answer, in the spellings of ``aliases``, and the user has not said in ``columns`` which is.

    Args:
        names: the table's columns, each with the name that it goes by, see ``canonical_names``.
        ours: our columns.
        aliases: as for ``canonical_names``.
        columns: likewise; ``None`` where the user cannot say it.
        objects: likewise.
    """
    from judges.sections import shortened

    seen: dict[str, str] = {}
    for name in filter(names.get, names):
        other = seen.setdefault(name.strip().casefold(), name)
        if other != name and (other.strip() == name.strip() or not {names[name], names[other]}.isdisjoint(ours)):
            return f"columns {other!r} and {name!r} differ in case or spaces only; rename one, or leave it out"
    for column, meaning in _ONE.items():
        if column not in aliases or column in (columns or {}):
            continue
        found = [name for name in _spelt(names, column, aliases) if names[name] in {name, column}]
        found = [name for name in found if column != "answer" or name not in objects]
        if len({folded(name).removesuffix("s") for name in found}) > 1 and _SURE.get(column, set()).isdisjoint(found):
            which = f"{_NUMBERS.get(len(found), len(found))} columns may be {meaning}: {shortened(found)}"
            if columns is None:
                return f"{which}; rename one, or leave it out"
            how = "" if column == "verdict" else f", or columns: {{{column}: NAME}}"
            gold = "; the gold answer is 'reference'" if column == "answer" else ""
            return f"{which}; say --column {column}=NAME{how}{gold}"
    return None


_NUMBERS: Final = {2: "two", 3: "three"}


def _spelt(names: Iterable[str], column: str, aliases: Spellings) -> list[str]:
    """The columns of a table that are called like one of ours."""
    looks = {folded(spelling) for spelling in (column, *aliases[column])}
    return [name for name in names if folded(name) in looks]


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """A name without what does not count in it."""
    return re.sub(r"[\s_-]", "", name).casefold()


def lacks(column: str, names: Collection[str]) -> bool:
    """Whether columns lack one that is required; a question may be the last of ``messages``."""
    return column not in names and not (column == "query" and "messages" in names)


def missing_column(
    path: Path,
    column: str,
    found: Iterable[str],
    line: int | None = None,
    *,
    also: Sequence[str] = (),
    mapped: bool = False,
    option: bool = False,
) -> DataError:
    """The error that says which column a table lacks and which one may be meant, for the caller to raise.

    Args:
        path: the table.
        column: what it lacks.
        found: its columns.
        line: of its header, where it has one.
        also: other names that would have been accepted.
        mapped: whether the user may say which column it is, in the YAML file or by an option.
        option: whether by an option alone.
    """
    from judges.sections import shortened

    names = [name for name in found if name]
    near = difflib.get_close_matches(column, [name for name in names if name not in NAMES], n=1)
    theirs = near[0] if near else "NAME"
    which = f"; or: {how_to_name(column, theirs)}" if mapped else f"; is it {near[0]!r}?" if near else ""
    which = f"; or say --column {column}={theirs}" if option else which
    room = _ROOM - len(os.path.relpath(path)) - len(column) - len(which)
    accepted = f"; may be called {shortened(also, max(room // 2, 20))}" if also else ""
    found_names = shortened(names, max(room - len(accepted), 20)) or "none"
    return DataError(path, f"no column {column!r}; found {found_names}{accepted}{which}", line=line)


_ROOM: Final = 108
"""Characters of two lines of 80 for names, without what else an error about a column says."""


def how_to_name(column: str, theirs: str = "NAME") -> str:
    """How a user says which column of the tables is one of ours: in the YAML file, or on the command line."""
    return f"columns: {{{column}: {theirs}}}, or --column {column}={theirs.replace('null', '')}"
