"""ir_datasets as a source of topics, qrels and documents, named ``irds:NAME``. It downloads what it does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judges.errors import InputError, MissingExtraError
from retrieval_eval.data.rows import Cell, Row

_PREFIX = "irds:"


def dataset_name(source: Path | str) -> str | None:
    """The dataset's name, or ``None`` where a file is named."""
    return str(source).removeprefix(_PREFIX) if str(source).startswith(_PREFIX) else None


def topic_rows(name: str, aliases: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Queries as rows; columns go by the canonical names of ``aliases``.

    Raises:
        MissingExtraError: ir_datasets is not installed.
        InputError: there is no such dataset, it has no queries, or they cannot be fetched.
    """
    return _rows(name, "queries", lambda dataset: dataset.queries_iter(), aliases)


def qrels_rows(name: str, aliases: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Labels as rows, see ``topic_rows``."""
    return _rows(name, "qrels", lambda dataset: dataset.qrels_iter(), aliases)


def document_rows(name: str, wanted: Set[str] | None, aliases: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Those documents wanted that the dataset has, from its index; all where nothing is said, see ``topic_rows``."""
    if wanted is None:
        return _rows(name, "docs", lambda dataset: dataset.docs_iter(), aliases)
    return _rows(name, "docs", lambda dataset: dataset.docs_store().get_many_iter(sorted(wanted)), aliases)


def _rows(name: str, part: str, read: Any, aliases: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    with _said(name):
        dataset = _dataset(name)
        if not dataset.has(part):
            raise InputError(f"{_PREFIX}{name}: this dataset of ir_datasets has no {part}")
        for number, record in enumerate(read(dataset), start=1):
            yield Row(Path(_PREFIX + name), number, _canonical(record._asdict(), aliases))


def _dataset(name: str) -> Any:
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtraError("ir-datasets", f"'{_PREFIX}{name}'") from error
    try:
        return ir_datasets.load(name)
    except KeyError as error:
        raise InputError(f"{_PREFIX}{name}: ir_datasets knows no such dataset") from error


@contextmanager
def _said(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:  # what its downloads raise
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{_PREFIX}{name}: ir_datasets cannot get it: {first}") from error


def _canonical(record: Mapping[str, object], aliases: Mapping[str, Sequence[str]]) -> dict[str, Cell]:
    used = {
        next((name for name in spellings if name in record), canonical): canonical
        for canonical, spellings in aliases.items()
        if canonical not in record
    }
    return {used.get(name, name): _cell(value) for name, value in record.items()}


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, str | int | float):
        return value
    return [str(part) for part in value] if isinstance(value, Iterable) else str(value)
