"""What was computed of a tournament, kept in its store until something is judged or begun anew."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from arena.results.games import GameTable
from arena.results.ratings import Group, Leaderboard, leaderboard, leaderboard_of, rating_settings, verified
from arena.store import Store
from arena.store.cache import FigureCache
from judges.errors import StoreError

if TYPE_CHECKING:
    from retrieval_eval.stats.estimate import Drawn

Value = TypeVar("Value")

FIGURES: Final = 11
"""The version of the figures. Whoever changes how one is computed raises it, and the stores compute theirs anew; the
tests of this module fail until that is done."""

WORTH_KEEPING: Final = 20_000
"""Games; what a page shows of fewer is made in about a second, and not at the end of a run."""
DRAWN: Final = "compare: ratings {}"
"""The kind of ratings on draws of all queries or of a group."""
_BOARD, _GAMES = "leaderboard", "games"


class Cache:
    """The kept values of one tournament; open it before reading what they are made of.

    Rows of the store hold them. Whatever changes what they are made of takes them away in the same transaction, and
    nothing is put there that was made before such a change. Of a part of a store nothing is kept.
    """

    def __init__(self, store: Store, tournament: str) -> None:
        self._figures = FigureCache(store, tournament, f"figures {FIGURES}")
        self._seen, _ = store.judged(tournament)
        self._whole = store.only is None

    def get(self, kind: str) -> Any | None:
        """The value of this kind; ``None`` where none is kept, or not as it is written now."""
        content = self._figures.get(kind) if self._whole else None
        with suppress(ValueError):
            return None if content is None else read(content)
        return None

    def keep(self, values: Mapping[str, Any]) -> None:
        """Keep values by kind, where the store can be written and is as it was."""
        with suppress(StoreError):
            if self._whole:
                self._figures.keep({kind: written(own) for kind, own in values.items()}, seen=self._seen)

    def made(self, kind: str, make: Callable[[], Value], made_of: bytes = b"") -> Value:
        """The value of this kind if it was made of the same; else it is made, and kept."""
        digest, value = hashlib.sha256(made_of).hexdigest(), self.get(kind)
        if not isinstance(value, tuple) or value[0] != digest:
            value = digest, make()
            self.keep({kind: value})
        made: Value = value[1]
        return made


def cached_leaderboard(
    store: Store, tournament: str, group: Group | None = None, *, below_coverage: bool = False
) -> Leaderboard:
    """The same as ``leaderboard``, from what is kept in the store if that is fresh; else it is made and kept.

    A store that cannot be written keeps nothing, and each reader makes its own. Nor are ratings kept that are made of
    too little: only whoever asks for them with ``below_coverage`` is shown them.
    """
    board = _as_rated(store, tournament, group)
    if board.withheld and below_coverage:
        return leaderboard(store, tournament, below_coverage=True, group=group)
    return board


def _as_rated(store: Store, tournament: str, group: Group | None) -> Leaderboard:
    cache = Cache(store, tournament)
    if group is not None:
        return cache.made(f"{_BOARD} of {'='.join(group)}", lambda: leaderboard(store, tournament, group=group))
    board = cache.get(_BOARD)
    if not isinstance(board, Leaderboard):
        board, games = verified(
            store, tournament, lambda data, wanted: (leaderboard_of(store, tournament, data, wanted), wanted.table)
        )
        cache.keep({_BOARD: board, _GAMES: games})
    return board


def cached_games(store: Store, tournament: str) -> GameTable:
    """All games of a tournament, from what is kept with its leaderboard if that is fresh."""
    games = Cache(store, tournament).get(_GAMES)
    return games if isinstance(games, GameTable) else verified(store, tournament, lambda _, wanted: wanted.table)


def rating_draws(store: Store, tournament: str) -> Drawn | None:
    """The ratings on draws of the queries; the same draws at any time, as long as the queries and the seed are."""

    def made() -> Drawn | None:
        from arena.calibration.methods import draw
        from arena.results.scores import RATING, played_methods

        settings, queries = store.settings(tournament), sorted(store.queries(tournament))
        how, games = rating_settings(settings), cached_games(store, tournament)
        ways = (own for own in played_methods(games, settings) if own.name == RATING)
        return next((draw(own, queries, how.bootstrap, how.seed, games.clusters) for own in ways), None)

    return Cache(store, tournament).made(DRAWN.format(None), made)


_PLAIN: Final = (type(None), bool, int, float, str)
_SERIES: Final[Mapping[str, type]] = {"tuple": tuple, "list": list, "set": frozenset}
_NUMBERS: Final = "biufU"
"""Kinds of arrays: truth values, whole and real numbers, texts."""
_MODULE: Final = re.compile(r"(arena|judges|retrieval_eval)(\.[a-z][a-z_]*)+")


def written(value: Any) -> bytes:
    """The value as bytes.

    Raises:
        TypeError: it holds something that is not frozen.
    """
    writer = _Writer()
    content = writer.value(value)
    types = [[*place, names] for place, names in writer.types.items()]
    return zlib.compress(json.dumps([types, content], separators=(",", ":")).encode(), 1)


_SMALL = 32_000_000
"""Bytes that a value may unpack to, and 50 times its size: beyond them is none that we wrote."""


def read(content: bytes) -> Any:
    """The value that ``written`` wrote.

    Raises:
        ValueError: these are no such bytes, or of types that are not so defined now.
    """
    try:
        types, value = json.loads(zlib.decompressobj().decompress(content, max(_SMALL, 50 * len(content))))
        return _Reader([_type(*named) for named in types]).value(value)
    except (zlib.error, ImportError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"no frozen value: {error}") from error


class _Writer:
    """Writes a value inside out; ``types`` are its types with the names of their fields, in the order of their use."""

    def __init__(self) -> None:
        self.types: dict[tuple[str, str], list[str]] = {}
        self._numbers: dict[type, int] = {}
        self._places: dict[int, int] = {}

    def value(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        if (place := self._places.get(id(value))) is not None:
            return ["again", place]
        found = self._new(value)
        self._places[id(value)] = len(self._places)
        return found

    def _new(self, value: Any) -> list[Any]:
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _NUMBERS:
            data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            return ["array", value.dtype.str, list(value.shape), isinstance(value, np.generic), data]
        if isinstance(value, Enum):
            return [self._number(type(value), []), value.value]
        if isinstance(value, Struct):
            own = asdict(value)
            return [self._number(type(value), list(own)), *map(self.value, own.values())]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [self._number(type(value), list(value._fields)), *map(self.value, value)]
        if isinstance(value, Mapping):
            return ["map", *([self.value(key), self.value(one)] for key, one in value.items())]
        kind = next((name for name, each in _SERIES.items() if isinstance(value, each)), None)
        if kind is None:
            raise TypeError(f"{type(value).__qualname__} cannot be written")
        return [kind, *map(self.value, value)]

    def _number(self, kind: type, names: list[str]) -> int:
        if kind not in self._numbers:
            _type(kind.__module__, kind.__qualname__, names)
            self._numbers[kind] = len(self._numbers)
            self.types[kind.__module__, kind.__qualname__] = names
        return self._numbers[kind]


def _type(module: str, name: str, names: list[str]) -> Any:
    """A type by its name and the names of its fields.

    Raises:
        TypeError: it is not frozen, not of this project, or has other fields.
    """
    found: Any = getattr(import_module(module), name) if _MODULE.fullmatch(module) else None
    frozen = isinstance(found, type) and issubclass(found, Struct) and found.__struct_config__.frozen
    if not isinstance(found, type) or not (frozen or issubclass(found, tuple | Enum)):
        raise TypeError(f"{module}.{name} is no frozen type")
    if found.__module__ != module or names != _names(found):
        raise TypeError(f"{module}.{name} has other fields")
    return found


def _names(kind: type) -> list[str]:
    return list(getattr(kind, "__struct_fields__", ()) or getattr(kind, "_fields", ()))


class _Reader:
    def __init__(self, types: list[Any]) -> None:
        self._types = types
        self._known: list[Any] = []

    def value(self, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        kind, *parts = given
        if kind == "again":
            return self._known[parts[0]]
        found = self._new(kind, parts)
        self._known.append(found)
        return found

    def _new(self, kind: Any, parts: list[Any]) -> Any:
        if isinstance(kind, int):
            return self._types[kind](*map(self.value, parts))
        if kind == "array":
            dtype, shape, single, data = parts
            array = np.frombuffer(base64.b64decode(data), _numeric(dtype)).reshape(shape)
            return array[()] if single else array
        if kind == "map":
            return {self.value(key): self.value(one) for key, one in parts}
        return _SERIES[kind](map(self.value, parts))


def _numeric(name: str) -> np.dtype[Any]:
    if (found := np.dtype(name)).kind not in _NUMBERS:
        raise ValueError(f"no frozen value: an array of {name}")
    return found
