"""The store keeps the data of tournaments, judges' judgments and agents' replies. No other package uses SQL."""

from arena.store.bulk import chunks
from arena.store.engine import missing, shown, sqlite_path
from arena.store.rows import IDENTICAL, Result, Wanted
from arena.store.store import Store

__all__ = ["IDENTICAL", "Result", "Store", "Wanted", "chunks", "missing", "shown", "sqlite_path"]
