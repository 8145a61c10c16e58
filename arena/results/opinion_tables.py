"""Tables of what judges or people said: verdicts, relevance labels, grades by criterion, nuggets in answers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct, field

from arena.calibration.votes import ItemKey, Level, Opinion
from arena.data.verdict_words import BOTH_ORDERS
from arena.data.verdicts import CONVERSATION, ImportedVerdicts, read_verdicts
from arena.present.numbers import counted
from judges.types import Verdict
from retrieval_eval.data.column_report import say_read
from retrieval_eval.data.rows import Row
from retrieval_eval.data.tables import read_columns, read_rows
from retrieval_eval.data.trec import is_qrels, read_qrels
from retrieval_eval.data.vocabulary import (
    NAMES,
    OPINION_NAMES,
    VERDICT_NAMES,
    Spellings,
    canonical_names,
    folded,
    missing_column,
)
from retrieval_eval.nuggets.types import Support, make_nuggets
from retrieval_eval.stats.bootstrap import Clusters

PROBABILITY: Final = "probability"
"""Column of the chance with which a thing was drawn to be labelled."""
_MOST_APART: Final = 50
"""Values of a column that tells things apart, such as turns or dimensions."""

OUTCOME = {Verdict.A: 1.0, Verdict.TIE: 0.0, Verdict.B: -1.0}
SUPPORT = {Support.NONE: 0.0, Support.PARTIAL: 1.0, Support.FULL: 2.0}
_THINGS: Final[Mapping[Level, tuple[str, ...]]] = {
    "criteria": ("agent", "criterion"),
    "nuggets": ("agent", "nugget"),
    "support": ("agent", "sentence", "did"),
    "labels": ("did",),
}
"""What is judged, by the columns that name it; the first kind whose columns a table has is meant."""
_SHOWN: Final = ("query", "answer", "reference", "passages")
_TEXTS: Final = {folded(name) for column in _SHOWN for name in (column, *NAMES[column])}
"""Columns of texts that people were shown."""
_SAID: Final[Mapping[Level, str]] = {"criteria": "grade", "nuggets": "nugget label", "support": "support label"}
_VALUE: Final[Mapping[Level, str]] = {
    "labels": "label",
    "criteria": "score",
    "nuggets": "assignment",
    "support": "support",
}


class TableReading(Struct, frozen=True):
    """How a table is read.

    Attributes:
        item: further columns that tell things of one query apart, such as the turn of a conversation.
        by: a column whose values are compared one by one, such as the dimension that was judged.
        columns: the file's name for one of ours.
        values: what words or numbers of verdicts mean, see ``read_verdicts``.
        skip_empty: leave out and count rows without a value.
    """

    item: tuple[str, ...] = ()
    by: str | None = None
    columns: Mapping[str, str] | None = None
    values: Mapping[str, str] | None = None
    skip_empty: bool = False

    def names(self, *columns: str) -> Spellings:
        """The spellings of columns of labels, grades and nuggets."""
        return {name: OPINION_NAMES.get(name, ()) for name in columns}


class OpinionTable(Struct, frozen=True):
    """What a file says.

    Attributes:
        groups: opinions by the value of ``Reading.by``; under ``""`` without one.
        notes: what is odd about it, for people to read.
        clusters: the conversations of queries, by a column of that name.
        further: columns that nothing is read of.
        apart: those of them in which rows differ that are taken for one thing, such as the turn of a conversation.
    """

    level: Level
    groups: Mapping[str, Sequence[Opinion]]
    notes: tuple[str, ...]
    clusters: Clusters = field(default_factory=dict)
    further: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()


def read_opinions(path: Path, reading: TableReading | None = None) -> OpinionTable:
    """Read a table; its columns say what was judged.

    - ``agent_a, agent_b, verdict`` with their aliases: verdicts, see ``read_verdicts``;
    - ``did, label``: relevance labels, whole numbers;
    - ``agent, criterion, score``: grades; or ``agent`` and a column for each criterion, as ``export`` writes them;
    - ``agent, nugget, assignment``: ``support``, ``partial_support`` or ``not_support``, which become 2, 1 and 0;
    - ``agent, sentence, did, support``: 2, 1 or 0, of the sentence at a place from 0 and a document that it cites.

    With ``probability`` labels say with which chance their things were drawn, for corrected estimates.

    Raters are named in ``judge`` or ``annotator`` (``worker``); where nobody is named, the file's name stands. Qrels
    (``.qrels``) are labels too.

    Raises:
        DataError: the file cannot be read, is none of these, lacks a column, or holds a value that is none.
    """
    how = reading or TableReading()
    if is_qrels(path):
        return _qrels(path)
    columns = read_columns(path)
    for theirs in (how.columns or {}).values():
        if theirs not in columns:
            raise missing_column(path, theirs, columns)
    names = set(canonical_names(columns, OPINION_NAMES, how.columns).values())
    for level, things in _THINGS.items():
        if names >= {*things, _VALUE[level]}:
            return _graded(path, level, how)
    of_games = {"agent_a", "agent_b"} & set(canonical_names(columns, VERDICT_NAMES, how.columns).values())
    if "agent" in names and "agent_a" not in of_games and not names & {"criterion", "nugget"}:
        return _wide(path, how)
    return _verdicts(path, how)


def rater_of_file(path: Path) -> str:
    """The name of a rater that only its file names."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def _qrels(path: Path) -> OpinionTable:
    rater, read = rater_of_file(path), read_qrels(path)
    said = [
        Opinion(query_id, (doc_id,), rater, float(label))
        for query_id, labels in read.labels.items()
        for doc_id, label in labels.items()
    ]
    return OpinionTable("labels", {"": said}, tuple(_below_zero(said)))


def _below_zero(said: Sequence[Opinion]) -> Iterator[str]:
    """That labels are negative, as some qrels have pairs that were pooled and not judged, or junk."""
    below = Counter(one.value for one in said if one.value < 0)
    if below:
        labels = ", ".join(f"{value:g} ({count:,})" for value, count in sorted(below.items()))
        yield f"{counted(below.total(), 'label')} below 0: {labels}; each counts as a label of its own"


def _verdicts(path: Path, how: TableReading) -> OpinionTable:
    read = read_verdicts(path, columns=how.columns, values=how.values, skip_empty=how.skip_empty)
    read.say({PROBABILITY, *_further(how)})
    for column in _further(how):
        if column not in read.extras:
            raise missing_column(path, column, read.extras)
    table = read.table
    if table.query is None and len(table):
        raise missing_column(path, "qid", read_columns(path))
    placed, swapped = _places_known(read), table.a > table.b
    sides = (map(table.agents.__getitem__, side(table.a, table.b).tolist()) for side in (np.minimum, np.maximum))
    items: Iterator[ItemKey] = zip(*sides, strict=True)
    if how.item:
        further = zip(*(read.extras[column] for column in how.item), strict=True)
        items = (own + two for own, two in zip(further, items, strict=True))
    raters = [judge.strip() or rater_of_file(path) for judge in table.judges]
    found: defaultdict[str, list[Opinion]] = defaultdict(list)
    rows = zip(
        read.extras[how.by] if how.by else [""] * len(table),
        map((table.queries or ()).__getitem__, [] if table.query is None else table.query.tolist()),
        items,
        map(raters.__getitem__, table.judge.tolist()),
        np.where(swapped, -table.outcome, table.outcome).astype(np.float64).tolist(),
        swapped.tolist(),
        (read.order_known & placed).tolist(),
        _chances(read),
        strict=True,
    )
    for place, (group, *said) in enumerate(rows):
        if how.by and not group.strip():
            raise read.error(place, f"{how.by!r} is empty")
        found[group].append(Opinion._make(said))
    notes = {
        "without a verdict left out": read.skipped,
        "repeated": read.duplicates,
        "games with different verdicts in repeated rows": read.conflicts,
    }
    told = [f"{count:,} {what}" for what, count in notes.items() if count]
    if not placed:
        told.append("no column 'order' says which answer was shown first, so nothing is said of places")
    named = CONVERSATION in read.further and CONVERSATION not in _further(how)
    clusters = read.of_queries(CONVERSATION) if named else {}
    spare = {
        name: own
        for name, own in read.extras.items()
        if name not in {"reason", CONVERSATION, PROBABILITY, *_further(how)}
    }
    rows_of_one = zip(
        read.extras[how.by] if how.by else [""] * len(table),
        [] if table.query is None else table.query.tolist(),
        zip(*(read.extras[column] for column in how.item), strict=True) if how.item else [()] * len(table),
        table.a.tolist(),
        table.b.tolist(),
        table.judge.tolist(),
        strict=True,
    )
    apart = telling_apart(list(rows_of_one), spare)
    return OpinionTable("verdicts", dict(found), tuple(told), clusters, frozenset(spare), apart)


def telling_apart(things: Sequence[Hashable], further: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Columns of few values in which rows of one thing and rater differ.

    Reasons, times and numbers of rows differ too, but say nothing of what was judged: these have a value for nearly
    each row.
    """
    if len(set(things)) == len(things):
        return frozenset()
    few = {name: own for name, own in further.items() if len(set(own)) <= min(_MOST_APART, len(things) // 4)}
    return frozenset(name for name, own in few.items() if len(set(zip(things, own, strict=True))) > len(set(things)))


def _chances(read: ImportedVerdicts) -> Sequence[float | None]:
    if PROBABILITY not in read.extras:
        return [None] * len(read.table)
    texts = read.extras[PROBABILITY]
    chances = [_as_chance(text) for text in texts]
    if None in chances:
        place = chances.index(None)
        raise read.error(place, f"{PROBABILITY!r} must be above 0 and at most 1", texts[place])
    return chances


def _as_chance(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value <= 1 else None


def _places_known(read: ImportedVerdicts) -> bool:
    """Whether a table says who was shown first.

    It does by a column of its own, by columns that are named after places, or by writing some game both ways round.
    """
    called = {ours: theirs for theirs, ours in read.called.items()}
    if "order" in called or called.keys() >= set(BOTH_ORDERS):
        return True
    if folded(called["agent_a"]) == "left" and folded(called["agent_b"]) == "right":
        return True
    table, size = read.table, len(read.table.agents)
    if table.query is None:
        return False
    query = table.query.astype(np.int64) * size
    shown, other = ((query + one) * size + two for one, two in ((table.a, table.b), (table.b, table.a)))
    return bool(np.isin(other, shown).any())


def _graded(path: Path, level: Level, how: TableReading) -> OpinionTable:
    needed = ["qid", *_THINGS[level], _VALUE[level]]
    names = how.names(*needed, "annotator")
    rows = read_rows(path, [*needed, *_further(how)], names, columns=how.columns)
    return _collected(path, rows, [_VALUE[level]], lambda row, _: _thing(row, level), level=level, how=how)


def _wide(path: Path, how: TableReading) -> OpinionTable:
    """Grades with a column for each criterion: every column that is none of ours."""
    names, columns = how.names("qid", "agent", "annotator"), read_columns(path)
    called = canonical_names(columns, names, how.columns)
    spelt = {folded(name) for column in names.items() for name in (column[0], *column[1]) if name != "number"}
    ours = {"reason", CONVERSATION, PROBABILITY, *_further(how)}
    rows = list(read_rows(path, ["qid", "agent", *_further(how)], names, columns=how.columns))
    criteria = [
        name
        for name in columns
        if called[name] == name and name not in ours and folded(name) not in spelt and not _is_text(rows, name)
    ]
    if not criteria:
        raise missing_column(path, "criterion", columns)
    return _collected(
        path, rows, criteria, lambda row, column: (row.identifier("agent"), column), level="criteria", how=how
    )


def _is_text(rows: Iterable[Row], column: str) -> bool:
    """Whether a column has the name of a text that people were shown, and holds texts."""
    texts = (row.text(column).strip() for row in rows) if folded(column) in _TEXTS else iter(())
    return any(text and _number(text) is None for text in texts)


def _further(how: TableReading) -> list[str]:
    return [*how.item, *([how.by] if how.by else [])]


def _collected(
    path: Path,
    rows: Iterable[Row],
    columns: Sequence[str],
    thing: Callable[[Row, str], ItemKey],
    *,
    level: Level,
    how: TableReading,
) -> OpinionTable:
    found: dict[str, list[Opinion]] = {}
    clusters: dict[str, str] = {}
    skipped = 0
    rows_of_one: list[Hashable] = []
    further: dict[str, list[str]] = {name: [] for name in read_columns(path)}
    called: dict[str, str] = {}
    for row in rows:
        called |= row.called
        query_id = row.identifier("qid")
        name = "" if CONVERSATION in _further(how) else row.text(CONVERSATION).strip()
        if name and (before := clusters.setdefault(query_id, name)) != name:
            raise row.error(f"query {query_id!r} is of the conversation {before!r} above, and of another here", name)
        chance = _as_chance(row.text(PROBABILITY)) if PROBABILITY in row.values else None
        if chance is None and PROBABILITY in row.values:
            raise row.error(f"{PROBABILITY!r} must be above 0 and at most 1", row.text(PROBABILITY))
        for column in columns:
            if how.skip_empty and row.text(column).strip().casefold() in _NO_VALUE:
                skipped += 1
                continue
            item = (*map(row.identifier, how.item), *thing(row, column))
            rater = row.text("annotator").strip() or rater_of_file(path)
            group = row.identifier(how.by) if how.by else ""
            opinion = Opinion(query_id, item, rater, _value(row, column, level), chance=chance)
            found.setdefault(group, []).append(opinion)
            rows_of_one.append((group, query_id, item, rater))
            for name, texts in further.items():
                texts.append(row.text(name))
    read = {"qid", "annotator", "reason", CONVERSATION, PROBABILITY, *_THINGS[level], *columns, *_further(how)}
    raters = {one.rater for own in found.values() for one in own}
    count = f"{counted(len(rows_of_one), _SAID.get(level, 'label'))} by {counted(len(raters), 'rater')}"
    say_read(path, called, read, count)
    spare = {name: own for name, own in further.items() if called.get(name, name) not in read}
    told = [f"{skipped:,} without a value left out"] if skipped else []
    if level == "labels":
        told += _below_zero([one for own in found.values() for one in own])
    return OpinionTable(level, found, tuple(told), clusters, frozenset(spare), telling_apart(rows_of_one, spare))


def _thing(row: Row, level: Level) -> ItemKey:
    if level == "nuggets":
        (nugget,) = make_nuggets(row.identifier("qid"), [row.identifier("nugget")], [None])
        return row.identifier("agent"), nugget.nugget_id
    return tuple(row.identifier(name) for name in _THINGS[level])


_DECIMAL_COMMA: Final = re.compile(r"\A([-+]?\d+),(\d{1,2}|\d{4,})\Z")
"""As in 4,5; what 1,000 is meant for cannot be told."""
_NO_VALUE: Final = frozenset({"", "nan", "na", "n/a", "none", "null", "<na>"})


def _value(row: Row, column: str, level: Level) -> float:
    text, whole = row.text(column).strip(), level in ("labels", "support")
    if level == "nuggets":
        if text not in set(Support):
            raise row.error(f"'assignment' must be one of {', '.join(Support)}", text)
        return SUPPORT[Support(text)]
    if text.casefold() in _NO_VALUE:
        raise row.error(f"{column!r} is empty; fill it in, or leave such rows out with --skip-faulty", text or None)
    if (value := _number(text)) is None:
        raise row.error(f"{column!r} is no number", text)
    if not abs(value) < float("inf") or (whole and value != int(value)):
        raise row.error(f"{column!r} is no {'whole ' if whole else ''}number", text)
    return value


def _number(text: str) -> float | None:
    try:
        return float(_DECIMAL_COMMA.sub(r"\1.\2", text))
    except ValueError:
        return None
