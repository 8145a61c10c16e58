"""Cache of computed figures in a tournament's store; new judgments invalidate it."""

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

from arena.config.stages import further_stages, require_stages
from arena.results.games import GameTable
from arena.results.ratings import Group, Leaderboard, leaderboard, leaderboard_of, rating_settings, verified
from arena.store import Store
from arena.store.cache import FigureCache
from judges.errors import StoreError
from retrieval_eval.stats.scores import Scores

if TYPE_CHECKING:
    from retrieval_eval.stats.estimate import Drawn

Value = TypeVar("Value")

FIGURES: Final = 12
"""Version of the figures. Raise it when the computation of a figure changes, so that stores recompute theirs; the tests
of this module fail until you do.
"""

WORTH_KEEPING: Final = 20_000
"""Number of games from which pages are precomputed at the end of a run; with fewer, they open in about a second."""
DRAWN: Final = "compare: ratings {}"
"""Kind of the ratings on draws of all queries or of a group."""
_BOARD, _GAMES = "leaderboard", "games"


class Cache:
    """Cached values of one tournament; open it before you read the data they are computed from.

    The values are rows of the store. A transaction that changes their inputs also deletes them, and a value computed
    before such a change is not stored. Nothing is cached for a part of a store.
    """

    def __init__(self, store: Store, tournament: str) -> None:
        self._figures = FigureCache(store, tournament, f"figures {FIGURES}")
        self._seen, _ = store.judged(tournament)
        self._whole = store.only is None

    def get(self, kind: str) -> Any | None:
        """The value of this kind; ``None`` if none is cached, or if it was written in another format."""
        content = self._figures.get(kind) if self._whole else None
        with suppress(ValueError):
            return None if content is None else read(content)
        return None

    def keep(self, values: Mapping[str, Any]) -> None:
        """Cache values by kind; does nothing if the store is read-only or has changed since."""
        with suppress(StoreError):
            if self._whole:
                self._figures.keep({kind: written(value) for kind, value in values.items()}, seen=self._seen)

    def made(self, kind: str, make: Callable[[], Value], inputs: bytes = b"") -> Value:
        """The cached value of this kind if its inputs are the same; else compute and cache it."""
        digest, value = hashlib.sha256(inputs).hexdigest(), self.get(kind)
        if not isinstance(value, tuple) or value[0] != digest:
            value = digest, make()
            self.keep({kind: value})
        figure: Value = value[1]
        return figure


def cached_leaderboard(
    store: Store, tournament: str, group: Group | None = None, *, below_coverage: bool = False
) -> Leaderboard:
    """The leaderboard from the cache of the store; if it is missing, compute and cache it as ``leaderboard`` does.

    A read-only store caches nothing, so each reader computes its own. Ratings below ``ratings.min_coverage`` are never
    cached and are returned only with ``below_coverage``.
    """
    require_stages(store.settings(tournament).raw.get("stages", {}))
    board = _cached_board(store, tournament, group)
    if board.withheld and below_coverage:
        return leaderboard(store, tournament, below_coverage=True, group=group)
    return board


def _cached_board(store: Store, tournament: str, group: Group | None) -> Leaderboard:
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
    """All games of a tournament, cached with its leaderboard."""
    games = Cache(store, tournament).get(_GAMES)
    return games if isinstance(games, GameTable) else verified(store, tournament, lambda _, wanted: wanted.table)


def rating_draws(store: Store, tournament: str) -> Drawn | None:
    """Ratings on bootstrap draws of the queries; the draws are the same as long as the queries and the seed are."""

    def compute() -> Drawn | None:
        from arena.calibration.methods import draw
        from arena.results.scores import RATING, played_methods

        settings, queries = store.settings(tournament), sorted(store.queries(tournament))
        options, games = rating_settings(settings), cached_games(store, tournament)
        methods = (method for method in played_methods(games, settings) if method.name == RATING)
        return next(
            (draw(method, queries, options.bootstrap, options.seed, games.clusters) for method in methods), None
        )

    return Cache(store, tournament).made(DRAWN.format(None), compute)


_PLAIN: Final = (type(None), bool, int, float, str)
_SERIES: Final[Mapping[str, type]] = {"tuple": tuple, "list": list, "set": frozenset}
_NUMBERS: Final = "biufU"
"""Kinds of NumPy arrays that can be written: booleans, integers, floats and strings."""
_MODULE: Final = re.compile(r"(arena|judges|retrieval_eval)(\.[a-z][a-z_]*)+")


def written(value: Any) -> bytes:
    """Serialize a frozen value.

    Raises:
        TypeError: the value holds something that is not frozen.
    """
    writer = _Writer()
    content = writer.value(value)
    types = [[*place, names] for place, names in writer.types.items()]
    return zlib.compress(json.dumps([types, content], separators=(",", ":")).encode(), 1)


_SMALL = 32_000_000
"""Limit in bytes for an unpacked value; values of more than 1/50 of this may unpack to 50 times their size."""


def read(content: bytes) -> Any:
    """Deserialize a value written by ``written``.

    Raises:
        ValueError: the content is damaged, or a type has changed its fields since.
    """
    try:
        types, value = json.loads(zlib.decompressobj().decompress(content, max(_SMALL, 50 * len(content))))
        return _Reader([_type(*type_args) for type_args in types]).value(value)
    except (zlib.error, ImportError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"no frozen value: {error}") from error


class _Writer:
    """Serializes a value depth first; ``types`` has its types and their field names, in the order of first use."""

    def __init__(self) -> None:
        self.types: dict[tuple[str, str], list[str]] = {}
        self._numbers: dict[type, int] = {}
        self._places: dict[int, int] = {}

    def value(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        if (place := self._places.get(id(value))) is not None:
            return ["again", place]
        encoded = self._new(value)
        self._places[id(value)] = len(self._places)
        return encoded

    def _new(self, value: Any) -> list[Any]:
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _NUMBERS:
            data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            return ["array", value.dtype.str, list(value.shape), isinstance(value, np.generic), data]
        if isinstance(value, Enum):
            return [self._number(type(value), []), value.value]
        if isinstance(value, Struct):
            fields = asdict(value) | {name: getattr(value, name) for name in _computed(type(value))}
            return [self._number(type(value), list(fields)), *map(self.value, fields.values())]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [self._number(type(value), list(value._fields)), *map(self.value, value)]
        if isinstance(value, Mapping):
            return ["map", *([self.value(key), self.value(entry)] for key, entry in value.items())]
        kind = next((name for name, series_type in _SERIES.items() if isinstance(value, series_type)), None)
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
    """Look up a type by its module and name, and check the names of its fields.

    Raises:
        TypeError: the type is not frozen, is not part of this project, or has other fields.
    """
    kind: Any = getattr(import_module(module), name) if _MODULE.fullmatch(module) or _is_of_a_stage(module) else None
    frozen = isinstance(kind, type) and issubclass(kind, Struct) and kind.__struct_config__.frozen
    if not isinstance(kind, type) or not (frozen or issubclass(kind, tuple | Enum)):
        raise TypeError(f"{module}.{name} is no frozen type")
    if kind.__module__ != module or names != _names(kind):
        raise TypeError(f"{module}.{name} has other fields")
    return kind


def _is_of_a_stage(module: str) -> bool:
    """Whether the module reads the results of a stage in use, which may come from another distribution."""
    return any(module == stage.results for stage in further_stages().values())


def _names(kind: type) -> list[str]:
    return [*(getattr(kind, "__struct_fields__", ()) or getattr(kind, "_fields", ())), *_computed(kind)]


def _computed(kind: type) -> tuple[str, ...]:
    """Cached properties that are written with the fields, because they are slow to compute."""
    return ("means",) if issubclass(kind, Scores) else ()


class _Reader:
    def __init__(self, types: list[Any]) -> None:
        self._types = types
        self._known: list[Any] = []

    def value(self, content: Any) -> Any:
        if not isinstance(content, list):
            return content
        kind, *parts = content
        if kind == "again":
            return self._known[parts[0]]
        decoded = self._new(kind, parts)
        self._known.append(decoded)
        return decoded

    def _new(self, kind: Any, parts: list[Any]) -> Any:
        if isinstance(kind, int):
            made, values = self._types[kind], [*map(self.value, parts)]
            computed = _computed(made)
            decoded = made(*values[: len(values) - len(computed)])
            for name in computed:
                decoded.__dict__[name] = values[-1]
            return decoded
        if kind == "array":
            dtype, shape, single, data = parts
            array = np.frombuffer(base64.b64decode(data), _numeric(dtype)).reshape(shape)
            return array[()] if single else array
        if kind == "map":
            return {self.value(key): self.value(entry) for key, entry in parts}
        return _SERIES[kind](map(self.value, parts))


def _numeric(name: str) -> np.dtype[Any]:
    if (dtype := np.dtype(name)).kind not in _NUMBERS:
        raise ValueError(f"no frozen value: an array of {name}")
    return dtype
