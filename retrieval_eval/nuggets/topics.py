"""The topic set: ids of all queries that a run's score is a mean over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from judges.errors import DataError
from judges.files import read_lines
from judges.tables import read_rows

_NAMES = ("qid", "query_id", "topic_id", "narrative_id", "id", "topic")


def read_topic_ids(path: Path) -> list[str]:
    """The ids of a topic file: TREC's ``id TAB text`` (.tsv, .txt), or a CSV, JSONL or Parquet table with a ``qid``.

    Raises:
        DataError: the file cannot be read, is empty, or names a topic twice.
    """
    places: dict[str, str] = {}
    for topic, place in _entries(path):
        if topic in places:
            raise DataError(path, f"this topic stands in {places[topic]} already", value=topic)
        places[topic] = place
    if not places:
        raise DataError(path, "the file names no topic")
    return list(places)


def _entries(path: Path) -> Iterator[tuple[str, str]]:
    if not path.name.lower().removesuffix(".gz").endswith((".tsv", ".txt")):
        for row in read_rows(path, ("qid",), {"qid": _NAMES[1:]}):
            yield row.identifier("qid"), row.place
        return
    for number, line in read_lines(path):
        topic, tab, _ = line.strip().partition("\t")
        if topic and not tab:
            raise DataError(path, "a topic is its id, a tab and its text", line=number, value=line.strip())
        if topic and not (number == 1 and topic in _NAMES):
            yield topic, f"{path}:{number}"
