"""Reads files with opinions of judges or people: verdicts, relevance labels, grades by criterion, or nugget labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from arena.calibration import ItemKey, Opinion
from arena.calibration.votes import Level
from arena.data.kinds import CRITERIA, NO_VALUE, RELEVANCE, VERDICT, JudgedKind, as_number, kind_of_columns
from arena.data.rankings import is_ranked
from arena.data.verdict_words import BOTH_ORDERS, VERDICTS
from arena.data.verdicts import CONVERSATION, ImportedVerdicts, read_verdicts
from arena.present.numbers import counted
from retrieval_eval.data.rows import Row, finite
from retrieval_eval.data.table_spec import VOCABULARY, Columns, TableSpec, folded, names_of, say_read
from retrieval_eval.data.tables import read_columns
from retrieval_eval.data.trec import QRELS, is_qrels, read_qrels
from retrieval_eval.stats.bootstrap import Clusters

PROBABILITY: Final = "probability"
_MAX_DISTINCT: Final = 50
"""Maximum number of different values in a column that may tell items apart, such as turns; see ``telling_apart``."""

OPINIONS: Final = TableSpec(
    ("qid", "did", "agent", "annotator", "criterion", "score", "label", "nugget"),
    words={"agent": ("run",), "score": ("grade", "value", "metric_value"), **QRELS.words},
    option=True,
    named_by=dict.fromkeys(("score", "label", "grade", "assignment"), "annotator"),
)
WIDE: Final = replace(OPINIONS, columns=("qid", "agent", "annotator"), needed=("qid", "agent"))
_SHOWN: Final = ("query", "answer", "reference", "passages")
_TEXTS: Final = {folded(name) for column in _SHOWN for name in (column, *VOCABULARY[column].spellings)}


class TableReading(Struct, frozen=True):
    """Options for reading a table of opinions.

    Attributes:
        item: columns that tell apart items of the same query, besides the usual columns; such as the conversation turn.
        by: a column whose values are compared separately, such as the quality dimension that was judged.
        columns: the file's own column names, by the standard column name.
        values: the meaning of words or numbers in the verdict column, see ``read_verdicts``.
        skip_empty: whether to skip and count rows without an opinion, instead of raising an error.
    """

    item: tuple[str, ...] = ()
    by: str | None = None
    columns: Columns | None = None
    values: Mapping[str, str] | None = None
    skip_empty: bool = False


class OpinionTable(Struct, frozen=True):
    """The opinions in one file.

    Attributes:
        groups: opinions by the value of the column ``TableReading.by``; without that column, all are under ``""``.
        notes: remarks for the user on oddities in the file, such as repeated rows.
        clusters: the conversation of each query, from the column ``conversation``.
        further: columns of the file that are not used.
        apart: unused columns with different values in rows of the same item and rater.
    """

    level: Level
    groups: Mapping[str, Sequence[Opinion]]
    notes: tuple[str, ...]
    clusters: Clusters = field(default_factory=dict)
    further: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()


def read_opinions(path: Path, reading: TableReading | None = None) -> OpinionTable:
    """Read a table of opinions; its columns determine the kind of opinion.

    - ``agent_a, agent_b, verdict`` with their aliases: verdicts, see ``read_verdicts``;
    - ``did, label``: relevance labels, whole numbers;
    - ``agent, criterion, score``: grades; or ``agent`` and a column for each criterion, as ``export`` writes them;
    - ``agent, nugget, assignment``: ``support``, ``partial_support`` or ``not_support``, which become 2, 1 and 0;
    - the columns of a kind of annotation that a stage defines, see ``JudgedKind``.

    A column ``probability`` holds the probability with which each item was sampled; corrected estimates need it.

    Column ``judge`` or ``annotator`` (``worker``) names the rater; if it is empty, the rater gets the file's name.
    Qrels (``.qrels``) are read as labels.

    Raises:
        DataError: the file cannot be read, is not a table of opinions, lacks a column, or holds an invalid value.
    """
    options = reading or TableReading()
    if is_qrels(path):
        return _qrels(path)
    columns = read_columns(path)
    for column in (name for theirs in (options.columns or {}).values() for name in names_of(theirs)):
        if column not in columns:
            raise OPINIONS.missing(path, column, columns)
    is_game = "agent_a" in VERDICTS.named(columns, options.columns).values()
    if not is_game and (wide := OPINIONS.wide(options.columns)) is not None:
        columns = wide.header(columns)
    names = set(OPINIONS.named(columns, options.columns).values())
    if (kind := kind_of_columns(names)) is not None:
        return _graded(path, kind, options)
    if is_ranked(columns, options.columns or {}):
        return _verdicts(path, options)
    if "agent" not in names and QRELS.has_all(columns, options.columns):  # BEIR's qrels: 'score' is the label
        return _graded(path, RELEVANCE, options)
    if "agent" in names and not is_game and not names & {"criterion", "nugget"}:
        return _wide(path, options)
    return _verdicts(path, options)


def rater_of_file(path: Path) -> str:
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def _qrels(path: Path) -> OpinionTable:
    rater, qrels = rater_of_file(path), read_qrels(path)
    opinions = [
        Opinion(query_id, (doc_id,), rater, float(label))
        for query_id, labels in qrels.labels.items()
        for doc_id, label in labels.items()
    ]
    return OpinionTable(RELEVANCE.level, {"": opinions}, tuple(_below_zero(opinions)))


def _below_zero(opinions: Sequence[Opinion]) -> Iterator[str]:
    """Yield a note on negative labels, if there are any; some qrels use them for unjudged or junk documents."""
    counts = Counter(opinion.value for opinion in opinions if opinion.value < 0)
    if counts:
        labels = ", ".join(f"{value:g} ({count:,})" for value, count in sorted(counts.items()))
        yield f"{counted(counts.total(), 'label')} below 0: {labels}; each counts as a label of its own"


def _verdicts(path: Path, options: TableReading) -> OpinionTable:
    imported = read_verdicts(path, columns=options.columns, values=options.values, skip_empty=options.skip_empty)
    imported.say({PROBABILITY, *_further(options)})
    for column in _further(options):
        if column not in imported.extras:
            raise VERDICTS.missing(path, column, imported.extras)
    table = imported.table
    if table.query is None and len(table):
        raise VERDICTS.missing(path, "qid", read_columns(path))
    placed, swapped = _places_known(imported), table.a > table.b
    sides = (map(table.agents.__getitem__, side(table.a, table.b).tolist()) for side in (np.minimum, np.maximum))
    items: Iterator[ItemKey] = zip(*sides, strict=True)
    if options.item:
        further = zip(*(imported.extras[column] for column in options.item), strict=True)
        items = (prefix + pair for prefix, pair in zip(further, items, strict=True))
    raters = [judge.strip() or rater_of_file(path) for judge in table.judges]
    groups: defaultdict[str, list[Opinion]] = defaultdict(list)
    rows = zip(
        imported.extras[options.by] if options.by else [""] * len(table),
        map((table.queries or ()).__getitem__, [] if table.query is None else table.query.tolist()),
        items,
        map(raters.__getitem__, table.judge.tolist()),
        np.where(swapped, -table.outcome, table.outcome).astype(np.float64).tolist(),
        swapped.tolist(),
        (imported.order_known & placed).tolist(),
        _chances(imported),
        strict=True,
    )
    for place, (group, *fields) in enumerate(rows):
        if options.by and not group.strip():
            raise imported.error(place, f"{options.by!r} is empty")
        groups[group].append(Opinion._make(fields))
    notes = {
        "without a verdict left out": imported.skipped,
        "repeated": imported.duplicates,
        "games with different verdicts in repeated rows": imported.conflicts,
    }
    remarks = [f"{count:,} {problem}" for problem, count in notes.items() if count]
    if not placed:
        remarks.append("no column 'order' says which answer was shown first, so nothing is said of places")
    has_conversations = CONVERSATION in imported.further and CONVERSATION not in _further(options)
    clusters = imported.of_queries(CONVERSATION) if has_conversations else {}
    spare = {
        name: texts
        for name, texts in imported.extras.items()
        if name not in {"reason", CONVERSATION, PROBABILITY, *_further(options)}
    }
    rows_of_one = zip(
        imported.extras[options.by] if options.by else [""] * len(table),
        [] if table.query is None else table.query.tolist(),
        zip(*(imported.extras[column] for column in options.item), strict=True) if options.item else [()] * len(table),
        table.a.tolist(),
        table.b.tolist(),
        table.judge.tolist(),
        strict=True,
    )
    apart = telling_apart(list(rows_of_one), spare)
    return OpinionTable(VERDICT.level, dict(groups), tuple(remarks), clusters, frozenset(spare), apart)


def telling_apart(items: Sequence[Hashable], further: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Columns that differ between rows of the same item and rater, so that the rows may be about different items.

    Columns with a different value in nearly every row, such as reasons, times and row numbers, are ignored: they do not
    describe what was judged.
    """
    if len(set(items)) == len(items):
        return frozenset()
    few = {name: texts for name, texts in further.items() if len(set(texts)) <= min(_MAX_DISTINCT, len(items) // 4)}
    return frozenset(name for name, texts in few.items() if len(set(zip(items, texts, strict=True))) > len(set(items)))


def _chances(imported: ImportedVerdicts) -> Sequence[float | None]:
    if PROBABILITY not in imported.extras:
        return [None] * len(imported.table)
    texts = imported.extras[PROBABILITY]
    chances = [_as_chance(text) for text in texts]
    if None in chances:
        place = chances.index(None)
        raise imported.error(place, f"{PROBABILITY!r} must be above 0 and at most 1", texts[place])
    return chances


def _as_chance(text: str) -> float | None:
    value = finite(text)
    return value if value is not None and 0 < value <= 1 else None


def _places_known(imported: ImportedVerdicts) -> bool:
    """Whether a table of verdicts says which answer was shown first.

    It does if it has a column ``order``, names its columns after left and right, or has some game in both orders.
    """
    column_of = {name: column for column, name in imported.called.items()}
    if "order" in column_of or column_of.keys() >= set(BOTH_ORDERS):
        return True
    if [folded(column_of.get(name, "")) for name in ("agent_a", "agent_b")] == ["left", "right"]:
        return True
    table, size = imported.table, len(imported.table.agents)
    if table.query is None:
        return False
    query = table.query.astype(np.int64) * size
    shown, other = ((query + first) * size + second for first, second in ((table.a, table.b), (table.b, table.a)))
    return bool(np.isin(other, shown).any())


def _graded(path: Path, kind: JudgedKind, options: TableReading) -> OpinionTable:
    needed = ("qid", *kind.columns, kind.column)
    spec = replace(OPINIONS, columns=(*needed, "annotator"), needed=(*needed, *_further(options)))
    rows = spec.rows(path, options.columns)
    return _collected(path, rows, [kind.column], lambda row, _: kind.item_in(row), kind=kind, options=options)


def _wide(path: Path, options: TableReading) -> OpinionTable:
    """Read grades from a table with a column for each criterion; any column without a known meaning is a criterion."""
    rows = list(replace(WIDE, needed=(*WIDE.needed, *_further(options))).rows(path, options.columns))
    columns = list(rows[0].called)
    canonical = rows[0].called
    known = {folded(name) for column in WIDE.columns for name in (column, *WIDE.spellings(column)) if name != "number"}
    reserved = {"reason", CONVERSATION, PROBABILITY, *_further(options)}
    criteria = [
        canonical[name]
        for name in columns
        if canonical[name] in {name, "score"}
        and name not in reserved
        and folded(name) not in known
        and not _is_text(rows, name)
    ]
    if not criteria:
        raise OPINIONS.missing(path, "criterion", columns)
    return _collected(
        path, rows, criteria, lambda row, column: (row.identifier("agent"), column), kind=CRITERIA, options=options
    )


def _is_text(rows: Iterable[Row], column: str) -> bool:
    """Whether a column has the name of a text, such as a query or an answer, and a value that is not a number."""
    texts = (row.text(column).strip() for row in rows) if folded(column) in _TEXTS else iter(())
    return any(text and as_number(text) is None for text in texts)


def _further(options: TableReading) -> list[str]:
    return [*options.item, *([options.by] if options.by else [])]


def _collected(
    path: Path,
    rows: Iterable[Row],
    columns: Sequence[str],
    item_of: Callable[[Row, str], ItemKey],
    *,
    kind: JudgedKind,
    options: TableReading,
) -> OpinionTable:
    groups: dict[str, list[Opinion]] = {}
    clusters: dict[str, str] = {}
    skipped = 0
    rows_of_one: list[Hashable] = []
    chosen = {name for theirs in (options.columns or {}).values() for name in names_of(theirs)}
    further: dict[str, list[str]] = {name: [] for name in read_columns(path) if name not in chosen}
    spellings: dict[str, str] = {}
    form = ""
    for row in rows:
        form = row.form
        spellings |= row.called
        query_id = row.identifier("qid")
        name = "" if CONVERSATION in _further(options) else row.text(CONVERSATION).strip()
        if name and (earlier := clusters.setdefault(query_id, name)) != name:
            raise row.error(
                f"query {query_id!r} belongs to the conversation {earlier!r} in a row above, and to another one here",
                name,
            )
        chance = _as_chance(row.text(PROBABILITY)) if PROBABILITY in row.values else None
        if chance is None and PROBABILITY in row.values:
            raise row.error(f"{PROBABILITY!r} must be above 0 and at most 1", row.text(PROBABILITY))
        for column in columns:
            if options.skip_empty and row.text(column).strip().casefold() in NO_VALUE:
                skipped += 1
                continue
            item = (*map(row.identifier, options.item), *item_of(row, column))
            rater = row.text("annotator").strip() or rater_of_file(path)
            group = row.identifier(options.by) if options.by else ""
            opinion = Opinion(query_id, item, rater, kind.parse(row, column), chance=chance)
            groups.setdefault(group, []).append(opinion)
            rows_of_one.append((group, query_id, item, rater))
            for name, texts in further.items():
                texts.append(row.text(name))
    used_columns = {
        "qid",
        "annotator",
        "reason",
        CONVERSATION,
        PROBABILITY,
        *kind.columns,
        *columns,
        *_further(options),
    }
    raters = {opinion.rater for opinions in groups.values() for opinion in opinions}
    count = f"{counted(len(rows_of_one), kind.noun)} by {counted(len(raters), 'rater')}"
    say_read(path, spellings, used_columns, count, form)
    spare = {name: texts for name, texts in further.items() if spellings.get(name, name) not in used_columns}
    remarks = [f"{skipped:,} without a value left out"] if skipped else []
    if kind is RELEVANCE:
        remarks += _below_zero([opinion for opinions in groups.values() for opinion in opinions])
    return OpinionTable(
        kind.level, groups, tuple(remarks), clusters, frozenset(spare), telling_apart(rows_of_one, spare)
    )
