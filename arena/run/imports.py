"""Imports recorded verdicts into a store as a tournament, for the leaderboard and the web pages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from arena.config.ratings import RatingsSection
from arena.data.dataset import Dataset
from arena.data.files import load_dataset
from arena.data.scored import LOWER, read_scores
from arena.data.verdicts import CONVERSATION, ImportedVerdicts, read_verdicts
from arena.ratings.games import GameVerdict
from arena.results.opinion_tables import telling_apart
from arena.store import Store, Wanted, chunks
from judges.errors import DataError, InputError
from judges.sections import nearest
from judges.types import WITHOUT_TEXT, Answer, Judgment, Query, Task
from retrieval_eval.data.table_spec import Columns

UNNAMED_JUDGE = "recorded"
"""Name given to the judge if the table of verdicts has no judge column."""
_VERDICTS, _SCORES = "imported verdicts", "imported scores"
_PART = 10_000
"""Number of verdicts saved in one transaction."""


class ImportedTable(Struct, frozen=True):
    """Counts of verdicts after an import.

    Attributes:
        verdicts: number of different verdicts that the tournament now has.
        repeated: number of rows that repeat the verdict of an earlier row.
        replaced: number of verdicts of an earlier import that this table lacks; they are no longer shown.
    """

    verdicts: int
    repeated: int
    replaced: int


def import_table(
    file: Path,
    location: str,
    tournament: str,
    *,
    queries: Path | None = None,
    documents: Path | None = None,
    answers: Path | None = None,
    columns: Columns | None = None,
    values: Mapping[str, str] | None = None,
    item: Sequence[str] = (),
) -> ImportedTable:
    """Import a table of verdicts into a store as a tournament. Texts are optional; without them, pages show ids.

    For ``columns`` and ``values`` see ``read_verdicts``. If the table has a column ``conversation``, it decides which
    queries belong to one conversation, whatever the file ``queries`` says. Columns in ``item`` tell apart rows of one
    query, such as turns: query ``81`` becomes ``81/1`` and ``81/2``, which count as one conversation.
    """
    table = read_verdicts(file, columns=columns, values=values)
    table.say(item)
    verdicts = _of_items(file, table, item) if item else table.verdicts
    if not item:
        _require_unambiguous(file, table)
    reasons = table.extras.get("reason", [""] * len(table.verdicts))
    unique: dict[Wanted, tuple[GameVerdict, str]] = {}
    first: dict[Wanted, int] = {}
    for number, (verdict, reason) in enumerate(zip(verdicts, reasons, strict=True), start=1):
        want = _want(file, verdict)
        if unique.setdefault(want, (verdict, reason))[0].verdict != verdict.verdict:
            problem = f"verdict {number} contradicts verdict {first[want]} by the same judge"
            advice = "tell annotators apart by a column 'judge', and turns by --item COLUMN"
            raise DataError(file, f"{problem}; {advice}", value=f"{want.query_id}: {want.item}, {want.other}")
        first.setdefault(want, number)
    data = _data((verdict for verdict, _ in unique.values()), queries, documents, answers)
    if CONVERSATION in table.further and not item:
        data = _with_conversations(data, table.of_queries(CONVERSATION))
    elif item:
        named = zip(verdicts, table.verdicts, strict=True)
        data = _with_conversations(data, {turn.query_id or "": whole.query_id or "" for turn, whole in named})
    store = Store.create(location)
    _require_imported(store, tournament)
    before = {ident for _, ident in store.wanted(tournament)} if tournament in store.tournaments() else set()
    settings = {"ratings": RatingsSection().model_dump(mode="json"), "judges": {}, "source": _VERDICTS}
    store.begin(tournament, settings, data, unique)
    for part in chunks(unique.items(), _PART):
        judgments = {want: _judgment(tournament, want, verdict, reason) for want, (verdict, reason) in part}
        store.save([(Task.PAIRWISE, "imported", judgment) for judgment in judgments.values()])
        store.assign(tournament, [(want, judgment.judgment_id) for want, judgment in judgments.items()])
        before.difference_update(judgment.judgment_id for judgment in judgments.values())
    store.close()
    return ImportedTable(len(unique), len(table.verdicts) - len(unique), len(before))


def import_scores(
    files: Sequence[Path],
    location: str,
    tournament: str,
    *,
    columns: Columns | None = None,
    lower: Sequence[str] = (),
    higher: Sequence[str] = (),
) -> tuple[Dataset, dict[str, bool]]:
    """Import scores of answers into a store as a tournament; of each score, whether lower is better.

    Lower is better for those in ``lower``, and for known names such as ``hallucination`` that are not in ``higher``.
    """
    data, names = read_scores(files, columns)
    if unknown := [name for name in (*lower, *higher) if name not in names]:
        raise InputError(f"{unknown[0]}: no such score{nearest(unknown[0], names)}")
    is_lower = {name: name in lower or (name not in higher and bool(LOWER.search(name.casefold()))) for name in names}
    store = Store.create(location)
    _require_imported(store, tournament)
    section = {"columns": names, "lower": [name for name in names if is_lower[name]]}
    settings = {
        "ratings": RatingsSection().model_dump(mode="json"),
        "judges": {},
        "source": _SCORES,
        "answer_scores": section,
    }
    store.begin(tournament, settings, data, [])
    store.close()
    return data, is_lower


def _require_imported(store: Store, tournament: str) -> None:
    if tournament in store.tournaments() and not store.settings(tournament).imported:
        raise InputError(
            f"{store.location}: a run made the tournament {tournament!r}; "
            "give the imported one another name with --tournament"
        )


def _of_items(file: Path, table: ImportedVerdicts, item: Sequence[str]) -> list[GameVerdict]:
    for name in item:
        if name not in table.extras:
            raise DataError(file, f"has no column {name!r}, which --item names")
    parts = zip(*(table.extras[name] for name in item), strict=True)
    return [
        replace(verdict, query_id=verdict.query_id and "/".join([verdict.query_id, *part]))
        for verdict, part in zip(table.verdicts, parts, strict=True)
    ]


def _require_unambiguous(file: Path, table: ImportedVerdicts) -> None:
    subjects = [(verdict.query_id, verdict.agent_a, verdict.agent_b, verdict.judge) for verdict in table.verdicts]
    columns = {name: cells for name, cells in table.extras.items() if name not in {"reason", CONVERSATION}}
    if distinguishing := telling_apart(subjects, columns):
        column = min(distinguishing)
        raise DataError(file, f"rows of one query differ in column {column!r}; add --item {column} to tell them apart")


def _with_conversations(data: Dataset, named: Mapping[str, str]) -> Dataset:
    asked = {
        query_id: replace(query, metadata={**query.metadata, CONVERSATION: named[query_id]})
        if query_id in named
        else query
        for query_id, query in data.queries.items()
    }
    return replace(data, queries=asked)


def _want(file: Path, verdict: GameVerdict) -> Wanted:
    if verdict.query_id is None:
        raise DataError(
            file, "has no column 'qid', which an import needs; add it, or use 'ragleague rate', which needs none"
        )
    agents, swapped = sorted((verdict.agent_a, verdict.agent_b)), verdict.agent_b < verdict.agent_a
    return Wanted.game(verdict.judge or UNNAMED_JUDGE, verdict.query_id, *agents, swapped=swapped)


def _judgment(tournament: str, want: Wanted, verdict: GameVerdict, reason: str) -> Judgment:
    """Turn a recorded verdict into a judgment; its id is made from names and ids, since texts may be unknown."""
    content = "\x00".join(
        ("imported", tournament, *map(str, (want.judge, want.query_id, want.item, want.other, want.order)))
    )
    ident = hashlib.sha256(f"{content}\x00{verdict.verdict}\x00{reason}".encode()).hexdigest()[:32]
    return Judgment(ident, verdict.verdict.value, reason, "", want.judge, calls=0)


def _data(
    verdicts: Iterable[GameVerdict], queries: Path | None, documents: Path | None, answers: Path | None
) -> Dataset:
    played = list(verdicts)
    asked = dict.fromkeys(verdict.query_id or "" for verdict in played)
    answered = dict.fromkeys((v.query_id or "", agent) for v in played for agent in (v.agent_a, v.agent_b))
    textless = {key: Answer(*key, "", WITHOUT_TEXT) for key in answered}
    if queries is None:
        if documents is not None or answers is not None:
            raise InputError("--documents and --answers need the table of queries; name it with --queries")
        return Dataset({query_id: Query(query_id, query_id, WITHOUT_TEXT) for query_id in asked}, answers=textless)
    data = load_dataset(queries, documents or (), answers or ())
    if missing := [query_id for query_id in asked if query_id not in data.queries]:
        raise InputError(f"{queries}: lacks the query {missing[0]!r}, which has verdicts; add it")
    if answers is None:
        return Dataset(data.queries, data.documents, textless, data.retrieved)
    if unknown := [key for key in answered if key not in data.answers]:
        raise InputError(
            f"{answers}: lacks the answer of {unknown[0][1]!r} to {unknown[0][0]!r}, which has verdicts; add it"
        )
    return data
