"""Reads, inserts and deletes many rows in one statement, because each statement costs a round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Select,
    Table,
    Text,
    delete,
    func,
    literal,
    select,
    text,
)
from sqlalchemy.exc import DatabaseError

from retrieval_eval.data.columns import Texts, in_order

CHUNK: Final = 500
"""Number of rows or values in one statement."""
_WORKING_MEMORY: Final = "64MB"
"""PostgreSQL's ``work_mem`` for large statements: memory per process and step; hash tables get twice as much."""

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def insert_rows(connection: Connection, kind: Table, rows: Sequence[Mapping[str, Any]], if_there: str = "") -> int:
    """Insert rows with different keys into a table.

    Args:
        if_there: SQL after ``ON CONFLICT``, for rows whose key exists already in the table.

    Returns:
        Number of rows inserted or replaced.
    """
    if not rows:
        return 0
    if connection.dialect.name == "sqlite":
        return execute_each(connection, _insert(kind, if_there, in_columns=False), rows)
    return connection.execute(text(_insert(kind, if_there, in_columns=True)), by_column(kind, rows)).rowcount


def execute_each(connection: Connection, statement: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Run a statement once for each row on SQLite; returns the number of changed rows.

    The row's values are named parameters. The driver is called directly, because SQLAlchemy would inspect every value.
    """
    return connection.exec_driver_sql(statement, list(rows)).rowcount


def delete_rows(connection: Connection, column: Any, values: Sequence[str], **others: str) -> int:
    """Delete rows with one of ``values`` in ``column`` and values ``others`` in other columns; returns how many."""
    if not values:
        return 0
    if connection.dialect.name == "sqlite":
        # One statement per row, as in ``wants.assign``: SQLite would compile a new IN list for each length.
        where = " AND ".join(f"{name} = :{name}" for name in (column.name, *others))
        statement = f"DELETE FROM {column.table.name} WHERE {where}"  # noqa: S608 - names of our tables
        return execute_each(connection, statement, [{column.name: each, **others} for each in values])
    matching = delete(column.table).where(among(connection, column, values)).filter_by(**others)
    return connection.execute(matching).rowcount


def load(connection: Connection, into: Table, rows: Iterable[Sequence[Any]]) -> None:
    """Insert new rows as fast as possible (``COPY`` on PostgreSQL); the values of a row are in column order."""
    columns = ", ".join(f'"{column.name}"' for column in into.columns)
    if connection.dialect.name == "sqlite":
        places = ", ".join("?" * len(into.columns))
        statement = f"INSERT INTO {into.name} ({columns}) VALUES ({places})"  # noqa: S608 - names of our tables
        for chunk in chunks(map(tuple, rows), CHUNK):
            connection.exec_driver_sql(statement, chunk)
        return
    server: Any = connection.connection.driver_connection
    try:
        with server.cursor() as cursor, cursor.copy(f"COPY {into.name} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:
        raise DatabaseError("COPY", None, error) from error


def stream(connection: Connection, statement: Select[Any], size: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a large query in lists of ``size``.

    On PostgreSQL it uses ``COPY``, which the server runs in parallel, unlike a cursor, and allows it more memory than
    ordinary statements have.
    """
    written = statement.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
    if connection.dialect.name == "sqlite":
        file: Any = connection.connection.driver_connection
        try:
            with closing(file.execute(str(written))) as cursor:
                while rows := cursor.fetchmany(size):
                    yield rows
        except connection.dialect.loaded_dbapi.Error as error:
            raise DatabaseError("SELECT", None, error) from error
        return
    kinds = [column.type.compile(connection.dialect).lower() for column in statement.selected_columns]
    kinds = ["float8" if kind == "float" else kind for kind in kinds]  # the driver does not know the name "float"
    server: Any = connection.connection.driver_connection
    with server.cursor() as cursor:
        cursor.execute(f"SET LOCAL work_mem = '{_WORKING_MEMORY}'")
        with cursor.copy(f"COPY ({written}) TO STDOUT") as copy:
            copy.set_types(kinds)
            yield from chunks(copy.rows(), size)


class RowColumns(NamedTuple):
    """Rows as columns of numbers; in a column of texts these index the distinct texts in ``names``."""

    names: Mapping[str, Sequence[str | None]]
    numbers: Mapping[str, NDArray[np.int32]]

    def mapped(self, column: str, read: Callable[[str | None], Any], dtype: Any = np.bool_) -> NDArray[Any]:
        """A function's result for each row's text, shape (rows,); the function is called once per distinct text."""
        return np.array([read(name) for name in self.names[column]], dtype)[self.numbers[column]]

    def in_order(self, *columns: str) -> tuple[tuple[str, ...], tuple[NDArray[np.int32], ...]]:
        """The sorted distinct texts of these columns together, and the index of each row's text in them, by column."""
        return in_order(*map(Texts, map(self.names.__getitem__, columns), map(self.numbers.__getitem__, columns)))

    def in_order_of(self, name: str) -> RowColumns:
        numbers = self.numbers[name]
        return self if (numbers[1:] >= numbers[:-1]).all() else self.of(np.argsort(numbers, kind="stable"))

    def of(self, rows: NDArray[Any]) -> RowColumns:
        return RowColumns(self.names, {key: column[rows] for key, column in self.numbers.items()})


def among(connection: Connection, column: Any, values: Sequence[str]) -> ColumnElement[bool]:
    """The SQL condition that a column has one of these values.

    PostgreSQL gets one array, unnested into a table: for ``= ANY(array)`` it would compare every row with every value.
    """
    if connection.dialect.name == "sqlite":
        condition: ColumnElement[bool] = column.in_(values)
    else:
        from sqlalchemy.dialects import postgresql

        condition = column.in_(select(func.unnest(literal(list(values), postgresql.ARRAY(Text)))))
    return condition


def replacing(kind: Table, key: str, *, where: str) -> str:
    """The argument ``if_there`` of ``insert_rows`` to replace existing rows that meet the condition ``where``."""
    changed = ", ".join(f'"{name}" = excluded."{name}"' for name in _names(kind) if name != key)
    return f"({key}) DO UPDATE SET {changed} WHERE {where}"


def by_column(kind: Table, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as one list per column, each of a single type: the parameters of a statement with ``arrays``."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name, values in columns.items():
        if isinstance(kind.columns[name].type, Float):  # some values may be integers, but an array has one type
            columns[name] = [None if value is None else float(value) for value in values]
    return columns


def arrays(kind: Table, names: Sequence[str]) -> str:
    """SQL ``unnest(...)`` for PostgreSQL, which makes rows of arrays; each parameter has the name of its column."""
    from sqlalchemy.dialects import postgresql

    dialect: Any = postgresql.dialect()  # type: ignore[no-untyped-call]
    columns = [kind.columns[name] for name in names]
    return f"unnest({', '.join(f'CAST(:{each.name} AS {each.type.compile(dialect)}[])' for each in columns)})"


@lru_cache
def _insert(kind: Table, if_there: str, *, in_columns: bool) -> str:
    names = _names(kind)
    source = f"VALUES ({', '.join(f':{name}' for name in names)})"
    if in_columns:
        source = f"SELECT * FROM {arrays(kind, names)}"  # noqa: S608 - names of our tables, here and below
    columns = ", ".join(f'"{name}"' for name in names)
    return f"INSERT INTO {kind.name} ({columns}) {source}{if_there and f' ON CONFLICT {if_there}'}"


def _names(kind: Table) -> list[str]:
    return [column.name for column in kind.columns]
