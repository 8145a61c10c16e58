"""Cache of computed results in a tournament's store; new judgments make its values invalid."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from msgspec import DecodeError, Struct, msgpack
from msgspec.structs import asdict, replace

from arena.config.settings import StoredSettings
from arena.config.stages import further_stages, require_stages
from arena.results.games import GameTable, read_games
from arena.results.ratings import Leaderboard, leaderboard, leaderboard_of, rating_settings
from arena.store import Store
from arena.store.cache import FigureCache
from judges.errors import StoreError
from retrieval_eval.stats.scores import Scores

if TYPE_CHECKING:
    from retrieval_eval.stats.estimate import Drawn

Value = TypeVar("Value")

FIGURES: Final = 19
"""Version of the computations of cached values.

Raise it when a computation changes, so that values in stores are computed again; the tests of this module fail until
you do.
"""

WORTH_KEEPING: Final = 20_000
"""A run with at least this many games precomputes what pages show; with fewer games, pages open in about a second."""
DRAWN: Final = "compare: ratings"
"""Cache key of ratings on bootstrap draws."""
_BOARD, _GAMES = "leaderboard", "games"


class Cache:
    """Cached values of one tournament; create the cache before you read the data from which you compute a value.

    The values are rows of the store. A transaction that changes their inputs also deletes them, and a value computed
    before such a change is not stored. Values of a group of queries are kept apart from those of all queries.
    """

    def __init__(self, store: Store, tournament: str) -> None:
        self._figures = FigureCache(store, tournament, f"figures {FIGURES}")
        self._seen, _ = store.judged(tournament)
        self._of = "" if store.group is None else f" where {'='.join(store.group)}"

    def get(self, kind: str) -> Any | None:
        content = self._figures.get(f"{kind}{self._of}")
        with suppress(ValueError):
            return None if content is None else read(content)
        return None

    def keep(self, values: Mapping[str, Any]) -> None:
        """Store values by kind in the cache; does nothing if the store is read-only or was changed in the meantime."""
        with suppress(StoreError):
            self._figures.keep({f"{kind}{self._of}": written(value) for kind, value in values.items()}, seen=self._seen)

    def made(self, kind: str, make: Callable[[], Value], inputs: bytes = b"") -> Value:
        digest, value = hashlib.sha256(inputs).hexdigest(), self.get(kind)
        if not isinstance(value, tuple) or value[0] != digest:
            value = digest, make()
            self.keep({kind: value})
        figure: Value = value[1]
        return figure


def cached_leaderboard(store: Store, tournament: str, *, by: str = "", below_coverage: bool = False) -> Leaderboard:
    """The leaderboard from the store's cache; if the cache lacks it, it is computed by ``leaderboard`` and cached.

    A read-only store caches nothing, so the leaderboard is computed in each call. If the share of judged games is below
    ``ratings.min_coverage``, ratings are never cached and are returned only with ``below_coverage``. ``by`` names the
    only column by which queries are grouped, so that fewer tests share the error probability.
    """
    require_stages(store.settings(tournament).stages)
    board = _cached_board(store, tournament)
    if board.withheld and below_coverage:
        board = leaderboard(store, tournament, below_coverage=True)
    if by:
        from arena.results.groups import leader_by_group, require_column

        queries, ratings = store.queries(tournament), board.ratings
        require_column(queries, by)
        if ratings is not None:
            of, win_and_tie = ratings.agents[0].agent, ratings.settings.win_and_tie
            groups = leader_by_group(cached_games(store, tournament), queries, of, win_and_tie, by=by)
            board = replace(board, by_group=groups)
    return board


def _cached_board(store: Store, tournament: str) -> Leaderboard:
    cache = Cache(store, tournament)
    board = cache.get(_BOARD)
    if not isinstance(board, Leaderboard):
        data = store.dataset(tournament)
        games = read_games(store, tournament, data)
        board = leaderboard_of(store, tournament, data, games)
        cache.keep({_BOARD: board, _GAMES: games})
    return board


def cached_games(store: Store, tournament: str) -> GameTable:
    games = Cache(store, tournament).get(_GAMES)
    return games if isinstance(games, GameTable) else read_games(store, tournament)


def rating_draws(store: Store, tournament: str) -> Drawn | None:
    """Ratings on bootstrap draws of the queries; the same queries and seed give the same draws."""

    def compute() -> Drawn | None:
        from arena.calibration.methods import draw
        from arena.results.scores import RATING, played_methods

        settings, queries = store.settings(tournament), sorted(store.queries(tournament))
        options, games = rating_settings(settings), cached_games(store, tournament)
        methods = (method for method in played_methods(games, settings) if method.name == RATING)
        return next(
            (draw(method, queries, options.bootstrap, options.seed, games.clusters) for method in methods), None
        )

    return Cache(store, tournament).made(DRAWN, compute)


_PLAIN: Final = (type(None), bool, int, float, str)
_SERIES: Final[Mapping[str, type]] = {"tuple": tuple, "list": list, "set": frozenset}
_NUMBERS: Final = "biufU"
_MODULE: Final = re.compile(r"(arena|judges|retrieval_eval)(\.[a-z][a-z_]*)+")
_SMALL = 32_000_000
"""Maximum size in bytes of a decompressed value; large values may also have 50 times their compressed size."""


def written(value: Any) -> bytes:
    """Serialize a value of immutable types: frozen structs, tuples, numbers, texts and the like.

    Raises:
        TypeError: the value contains an object whose type cannot be serialized or is not frozen.
    """
    return zlib.compress(msgpack.encode(_plain(value)), 1)


def read(content: bytes) -> Any:
    """Deserialize a value written by ``written``.

    Raises:
        ValueError: the content is damaged, or a type has other fields now than when the value was written.
    """
    try:
        return _frozen(msgpack.decode(zlib.decompressobj().decompress(content, max(_SMALL, 50 * len(content)))))
    except (zlib.error, DecodeError, ImportError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no frozen value: {error}") from error


def _plain(value: Any) -> Any:
    """Convert a value for MessagePack: unchanged if MessagePack supports it, otherwise a list of its type and parts."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _NUMBERS:
        return ["array", value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes()]
    entries = value.raw if isinstance(value, StoredSettings) else value
    if isinstance(entries, Mapping):
        return [
            "map" if entries is value else "settings",
            *([_plain(key), _plain(entry)] for key, entry in entries.items()),
        ]
    if isinstance(value, Enum):
        return [*_place(value, ()), value.value]
    if isinstance(value, Struct) or hasattr(value, "_fields"):
        fields = asdict(value) if isinstance(value, Struct) else value._asdict()
        fields |= {name: getattr(value, name) for name in _computed(type(value))}
        return [*_place(value, fields), {name: _plain(part) for name, part in fields.items()}]
    kind = next((name for name, series_type in _SERIES.items() if isinstance(value, series_type)), None)
    if kind is None:
        raise TypeError(f"{type(value).__qualname__} cannot be written")
    return [kind, *map(_plain, value)]


def _frozen(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    kind, *parts = content
    if kind == "array":
        dtype, shape, data = parts
        if np.dtype(dtype).kind not in _NUMBERS:
            raise TypeError(f"an array of {dtype}")
        return np.frombuffer(data, dtype).reshape(shape)[()]
    if kind in ("map", "settings"):
        entries = {
            _frozen(key) if type(key) is list else key: _frozen(entry) if type(entry) is list else entry
            for key, entry in parts
        }
        return entries if kind == "map" else StoredSettings.model_validate(entries)
    if kind in _SERIES:
        return _SERIES[kind]([_frozen(part) if type(part) is list else part for part in parts])
    name, fields = parts
    if not isinstance(fields, dict):
        return _type(kind, name, ())(fields)
    made = _type(kind, name, tuple(fields))
    values = {key: _frozen(part) if type(part) is list else part for key, part in fields.items()}
    computed = {key: values.pop(key) for key in _computed(made)}
    value = made(**values)
    if computed:
        value.__dict__.update(computed)
    return value


def _place(value: Any, names: Iterable[str]) -> tuple[str, str]:
    kind = type(value)
    _type(kind.__module__, kind.__qualname__, tuple(names))
    return kind.__module__, kind.__qualname__


@cache
def _type(module: str, name: str, names: tuple[str, ...]) -> Any:
    """Look up a type by its module and name, and check the names of its fields.

    Raises:
        TypeError: the type is not frozen, is not part of this project, or has other fields.
    """
    kind: Any = getattr(import_module(module), name) if _MODULE.fullmatch(module) or _is_of_a_stage(module) else None
    frozen = isinstance(kind, type) and issubclass(kind, Struct) and kind.__struct_config__.frozen
    if not isinstance(kind, type) or not (frozen or issubclass(kind, tuple | Enum)):
        raise TypeError(f"{module}.{name} is no frozen type")
    fields = getattr(kind, "__struct_fields__", ()) or getattr(kind, "_fields", ())
    if kind.__module__ != module or names != (*fields, *_computed(kind)):
        raise TypeError(f"{module}.{name} has other fields")
    return kind


def _is_of_a_stage(module: str) -> bool:
    return any(module == stage.results for stage in further_stages().values())


def _computed(kind: type) -> tuple[str, ...]:
    """Names of cached properties that are written with a type's fields, because they are slow to compute."""
    return ("means",) if issubclass(kind, Scores) else ()
