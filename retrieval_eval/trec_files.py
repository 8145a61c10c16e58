"""Runs and qrels in files: trec_eval's lines, or a table with a header (CSV, TSV, JSONL, Parquet); plain or gzip.

What trec_eval reads without a word and what changes figures is said: as an error, or as a note on what was read.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from judges.errors import DataError
from retrieval_eval.data.files import open_replacing
from retrieval_eval.run_entries import RankOddities, RunEntries
from retrieval_eval.trec import Faulty, Note, Qrels, Ranking, Run
from retrieval_eval.trec_fields import Faults, finite, qrels_fields, run_fields

_WHOLE = re.compile(r"[+-]?[0-9]{1,9}")


def read_run(path: Path | str, *, faulty: Faulty = "refuse") -> Run:
    """Read one run: ``query Q0 document rank score tag``, or a table ``qid, did, score[, rank, tag]``.

    The rank column and the order of the lines are ignored, as by trec_eval; ``Ranking`` says what counts. The notes say
    where that gives another order than the ranks.

    Args:
        path: the file.
        faulty: ``refuse`` raises on the first line that is wrong; ``skip`` leaves such lines out and lists them. Of a
            document that stands twice the first line counts.

    Raises:
        DataError: the file cannot be read or holds no usable line; with ``refuse`` also a line with the wrong number of
            fields, a score that is no finite number, or a document that was retrieved twice for one query.
    """
    path, faults = Path(path), Faults(Path(path), faulty)
    queries: dict[str, RunEntries] = {}
    tags: dict[str, None] = {}
    for line, (query_id, doc_id, rank, given, tag) in run_fields(path, faults):
        if (score := finite(given)) is None:
            faults.add(line, "the score is not a finite number", given)
            continue
        entries = queries.get(query_id)
        if entries is None:
            entries = queries[query_id] = RunEntries()
        entries.add(line, sys.intern(doc_id), rank, score)
        tags[tag] = None
    if not queries:
        raise DataError(path, f"holds no usable line of a run{faults.example}")
    for query_id, entries in queries.items():
        for line, doc_id in entries.drop_repeated():
            faults.add(line, f"query {query_id!r} has this document twice", doc_id)
    oddities = RankOddities()
    rankings = {query_id: oddities.ranking(entries) for query_id, entries in queries.items()}
    name = next(iter(tags)) if len(tags) == 1 else ""
    return Run(name or _stem(path), rankings, (*oddities.notes(), *_tag_notes(tags)), faults.lines)


def read_runs(paths: Iterable[Path | str], *, faulty: Faulty = "refuse") -> list[Run]:
    """Read several runs and tell them apart: by their tags, or by the files' names where two have the same tag.

    Raises:
        DataError: see ``read_run``; or two runs have the same tag and the same file name.
    """
    given = [Path(path) for path in paths]
    runs = [read_run(path, faulty=faulty) for path in given]
    named = Counter(run.name for run in runs)
    runs = [
        run if named[run.name] == 1 else Run(_stem(path), run.rankings, run.notes, run.faulty)
        for path, run in zip(given, runs, strict=True)
    ]
    taken: dict[str, Path] = {}
    for path, run in zip(given, runs, strict=True):
        if (other := taken.setdefault(run.name, path)) is not path:
            problem = f"has the same tag or name as {other}; give one of the files another name"
            raise DataError(path, problem, value=run.name)
    return runs


def read_rankings(paths: Iterable[Path | str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """What systems retrieved, by (query_id, tag), in trec_eval's order.

    Unlike ``read_run`` a file may hold the runs of several systems, told apart by their tags.

    Raises:
        DataError: see ``read_run``; or an earlier file has this system's documents for the query already.
    """
    found: dict[tuple[str, str], RunEntries] = {}
    for path in map(Path, paths):
        faults, own = Faults(path, "refuse"), dict[tuple[str, str], RunEntries]()
        for line, (query_id, doc_id, rank, given, tag) in run_fields(path, faults):
            key, score = (query_id, tag or _stem(path)), finite(given)
            if score is None:
                faults.add(line, "the score is not a finite number", given)
            elif key in found:
                faults.add(
                    line, f"an earlier file has what {key[1]!r} retrieved for query {query_id!r} already", doc_id
                )
            else:
                own.setdefault(key, RunEntries()).add(line, sys.intern(doc_id), rank, score)
        if not own:
            raise DataError(path, "holds no usable line of a run")
        for (query_id, tag), entries in own.items():
            for line, doc_id in entries.drop_repeated():
                faults.add(line, f"{tag!r} has this document twice for query {query_id!r}", doc_id)
        found |= own
    return {key: Ranking.of(entries.doc_ids, entries.scores).doc_ids for key, entries in found.items()}


def is_qrels(path: Path | str) -> bool:
    """Whether a name says that the file holds trec_eval's lines of qrels."""
    return Path(path).name.lower().removesuffix(".gz").endswith(".qrels")


def read_qrels(path: Path | str, *, faulty: Faulty = "refuse") -> Qrels:
    """Read relevance labels: ``query 0 document label``, a table ``qid, did, label``, or ``irds:NAME``.

    A line that repeats an earlier one with the same label changes nothing and is noted.

    Args:
        path: the file.
        faulty: as for ``read_run``; of two labels for one pair the first counts.

    Raises:
        DataError: the file cannot be read or holds no usable line; with ``refuse`` also a line with the wrong number of
            fields, a label that is no whole number, or a second, different label of a pair.
    """
    path, faults = Path(path), Faults(Path(path), faulty)
    labels: dict[str, dict[str, int]] = {}
    repeated = 0
    for line, (query_id, doc_id, given) in qrels_fields(path, faults):
        label = _whole(given)
        if label is None:
            faults.add(line, "the label is not a whole number", given)
            continue
        known = labels.setdefault(query_id, {})
        earlier = known.get(doc_id)
        if earlier is None:
            known[sys.intern(doc_id)] = label
        elif earlier == label:
            repeated += 1
        else:
            faults.add(line, f"query {query_id!r}, document {doc_id!r} has the label {earlier} already", given)
    if not labels:
        raise DataError(path, f"holds no usable line of qrels{faults.example}")
    return Qrels(_stem(path), labels, _repeated_note(repeated), faults.lines)


def write_run(path: Path | str, run: Run) -> None:
    """Write trec_eval's lines, ranks from 1; ``read_run`` gives the same rankings back.

    Raises:
        DataError: the file cannot be written, or a name has white space or is empty, which the form has no place for.
    """
    _write_lines(
        path,
        (
            (query_id, "Q0", doc_id, str(rank), repr(score), run.name)
            for query_id, ranking in run.rankings.items()
            for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, ranking.scores, strict=True), start=1)
        ),
    )


def write_qrels(path: Path | str, labels: Mapping[str, Mapping[str, int]]) -> None:
    """Write labels by query_id and doc_id as trec_eval's lines.

    Raises:
        DataError: as for ``write_run``.
    """
    _write_lines(
        path,
        (
            (query_id, "0", doc_id, str(label))
            for query_id, labelled in labels.items()
            for doc_id, label in labelled.items()
        ),
    )


@lru_cache(maxsize=1024)
def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _tag_notes(tags: Collection[str]) -> tuple[Note, ...]:
    if len(tags) < 2:
        return ()
    shown = ", ".join(map(repr, list(tags)[:3]))
    return (Note("tags", len(tags), f"{len(tags)} run tags in one file, read as one run: {shown}"),)


def _repeated_note(count: int) -> tuple[Note, ...]:
    text = f"lines that repeat an earlier pair with the same label: {count}"
    return (Note("repeated", count, text),) if count else ()


def _stem(path: Path) -> str:
    """The file's name without its extension and ``.gz``."""
    return Path(path.name.removesuffix(".gz")).stem or path.name


def _write_lines(path: Path | str, lines: Iterable[Sequence[str]]) -> None:
    with open_replacing(path) as file:
        for fields in lines:
            for field in fields:
                if field.encode().split() != [field.encode()]:
                    raise DataError(path, "TREC files hold no name that is empty or has white space", value=field)
            file.write((" ".join(fields) + "\n").encode())
