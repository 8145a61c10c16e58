"""Many rows in one statement, which is what a database server is quick at: each statement is a journey to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

from retrieval_eval.data.columns import Texts

CHUNK: Final = 500
"""Rows that one statement takes."""
_WORKING_MEMORY: Final = "64MB"
"""What each of a server's processes may use for one step of a large statement; hash tables get twice as much."""
_CACHE_KB: Final = 1_000_000
"""Pages of a file that SQLite keeps: a join of millions looks up each row by itself, anywhere in the file."""

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of at most ``size``."""
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def insert_rows(connection: Connection, kind: Table, rows: Sequence[Mapping[str, Any]], if_there: str = "") -> int:
    """Insert rows; no two of them may have the same key.

    Args:
        connection: in a transaction that writes.
        kind: of which table.
        rows: each with a value for every column.
        if_there: what to do with a row whose key is there, as SQL after ``ON CONFLICT``.

    Returns:
        How many rows were inserted or put in the place of others.
    """
    if not rows:
        return 0
    if connection.dialect.name == "sqlite":
        return execute_each(connection, _insert(kind, if_there, in_columns=False), rows)
    return connection.execute(text(_insert(kind, if_there, in_columns=True)), by_column(kind, rows)).rowcount


def execute_each(connection: Connection, statement: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Run a statement for each row on SQLite, whose driver knows parameters by name; returns how many rows changed.

    SQLAlchemy would look through the values of every row before that.
    """
    return connection.exec_driver_sql(statement, list(rows)).rowcount


def delete_rows(connection: Connection, column: Any, values: Sequence[str], **others: str) -> int:
    """Delete the rows in which a column is one of these values, and other columns this one; returns how many."""
    if not values:
        return 0
    if connection.dialect.name == "sqlite":
        # As ``wants.assign`` does: a list of values would be a statement of its own for each length.
        where = " AND ".join(f"{name} = :{name}" for name in (column.name, *others))
        statement = f"DELETE FROM {column.table.name} WHERE {where}"  # noqa: S608 - names of our tables
        return execute_each(connection, statement, [{column.name: each, **others} for each in values])
    chosen = delete(column.table).where(among(connection, column, values)).filter_by(**others)
    return connection.execute(chosen).rowcount


def load(connection: Connection, into: Table, rows: Iterable[Sequence[Any]]) -> None:
    """Put rows into a table that has none of them, as fast as the database can; values come in the columns' order."""
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


def stream(connection: Connection, chosen: Select[Any], size: int) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a statement over millions of rows, in lists of ``size``, as they come.

    A server works on it with all its processors, which it would not for a cursor. Either kind of database may use more
    memory than it takes for transactions of every day.
    """
    written = chosen.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA cache_size = -{_CACHE_KB}")
        file: Any = connection.connection.driver_connection
        try:
            with closing(file.execute(str(written))) as found:
                while rows := found.fetchmany(size):
                    yield rows
        except connection.dialect.loaded_dbapi.Error as error:
            raise DatabaseError("SELECT", None, error) from error
        return
    kinds = [column.type.compile(connection.dialect).lower() for column in chosen.selected_columns]
    kinds = ["float8" if kind == "float" else kind for kind in kinds]  # a name that the driver knows
    server: Any = connection.connection.driver_connection
    with server.cursor() as cursor:
        cursor.execute(f"SET LOCAL work_mem = '{_WORKING_MEMORY}'")
        with cursor.copy(f"COPY ({written}) TO STDOUT") as copy:
            copy.set_types(kinds)
            yield from chunks(copy.rows(), size)


class RowColumns(NamedTuple):
    """Rows as columns: texts, and whole numbers, by name."""

    texts: Mapping[str, Texts]
    numbers: Mapping[str, NDArray[np.int32]]

    def in_order_of(self, name: str) -> RowColumns:
        """The same rows, ordered by one of the numbers."""
        numbers = self.numbers[name]
        return self if (numbers[1:] >= numbers[:-1]).all() else self.of(np.argsort(numbers, kind="stable"))

    def of(self, rows: NDArray[Any]) -> RowColumns:
        """Some of the rows."""
        return RowColumns(
            {key: column.of(rows) for key, column in self.texts.items()},
            {key: column[rows] for key, column in self.numbers.items()},
        )

    def among(self, name: str, values: Collection[str]) -> RowColumns:
        """The rows whose text in one of the columns is one of these."""
        column = self.texts[name]
        return self.of(np.array([each in values for each in column.names], np.bool_)[column.codes])


def among(connection: Connection, column: Any, values: Sequence[str]) -> ColumnElement[bool]:
    """Whether a column is one of these values.

    A server gets them as one array, and takes it as a table: its plans for any array compare each value with each row.
    """
    if connection.dialect.name == "sqlite":
        chosen: ColumnElement[bool] = column.in_(values)
    else:
        from sqlalchemy.dialects import postgresql

        chosen = column.in_(select(func.unnest(literal(list(values), postgresql.ARRAY(Text)))))
    return chosen


def replacing(kind: Table, key: str, *, where: str) -> str:
    """What to do with a row that is there: put the new one in its place, if it is ``where``."""
    changed = ", ".join(f'"{name}" = excluded."{name}"' for name in _names(kind) if name != key)
    return f"({key}) DO UPDATE SET {changed} WHERE {where}"


def by_column(kind: Table, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The rows' values by column, each column's of one type: arrays for a statement with ``arrays``."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name, values in columns.items():
        if isinstance(kind.columns[name].type, Float):  # some may be whole, and an array is of one type
            columns[name] = [None if value is None else float(value) for value in values]
    return columns


def arrays(kind: Table, names: Sequence[str]) -> str:
    """SQL of PostgreSQL for a table of some columns, each an array that is given under the column's name."""
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
