"""A leaderboard that is rated once and then kept in its store, until something is judged or begun anew."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, get_type_hints

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from arena.exam.stored import stored_scores
from arena.games.table import GameTable
from arena.leaderboard import Leaderboard, leaderboard, nuggets_of, read_verified
from arena.ratings.panel import panel_ratings
from arena.store import Figures, Store
from judges.errors import StoreError
from retrieval_eval.run_rankings import RankingAgreement

_BOARD, _GAMES = "leaderboard", "games"
_MADE_ANEW: Final = frozenset({"panel", "exam", "nuggets"})
"""Parts of a leaderboard that hold large arrays and are quickly made of what else is there."""


def kept_leaderboard(store: Store, tournament: str) -> Leaderboard:
    """The same as ``leaderboard``, from what is kept in the store if that is fresh; else it is made and kept.

    A store that cannot be written keeps nothing, and each reader makes its own.
    """
    figures = kept_figures(store, tournament)
    (seen, _), found = store.judged(tournament), figures.get(_BOARD)
    board = None if found is None else _read_board(store, tournament, found)
    if board is None:
        read = read_verified(store, tournament)
        board = leaderboard(store, tournament, read=read)
        with suppress(StoreError):
            figures.keep({_BOARD: _written_board(board), _GAMES: _written_games(read[1].table)}, seen=seen)
    return board


def kept_games(store: Store, tournament: str) -> GameTable:
    """All games of a tournament, from what is kept with its leaderboard if that is fresh."""
    found = kept_figures(store, tournament).get(_GAMES)
    if found is None:
        return read_verified(store, tournament)[1].table
    with np.load(io.BytesIO(found), allow_pickle=False) as columns:
        read = {name: columns[name] for name in columns.files}
    values: dict[str, Any] = {name: tuple(own.tolist()) if own.dtype.kind == "U" else own for name, own in read.items()}
    return GameTable(**values)


def kept_figures(store: Store, tournament: str) -> Figures:
    """The figures of one tournament that this very program has kept."""
    return Figures(store, tournament, _program())


@cache
def _program() -> str:
    """The program that makes the figures: whoever changes how they are made does not see those made before."""
    digest = hashlib.sha256()
    packages = Path(__file__).resolve().parents[1]
    for name in ("arena", "judges", "retrieval_eval"):
        for source in sorted((packages / name).rglob("*.py")):
            digest.update(source.read_bytes())
    return f"ragarena {version('ragarena')} {digest.hexdigest()[:16]}"


def _written_games(games: GameTable) -> bytes:
    columns = {own.name: getattr(games, own.name) for own in fields(games)}
    out = io.BytesIO()
    np.savez_compressed(
        out,
        allow_pickle=False,
        **{name: np.array(own, np.str_) if isinstance(own, tuple) else own for name, own in columns.items()},
    )
    return out.getvalue()


def _written_board(board: Leaderboard) -> bytes:
    kept = _kept()
    return kept(**{name: getattr(board, name) for name in kept.model_fields}).model_dump_json().encode()


def _read_board(store: Store, tournament: str, content: bytes) -> Leaderboard | None:
    """The leaderboard; ``None`` where it is not what this version writes."""
    try:
        found = _kept().model_validate_json(content)
    except ValidationError:
        return None
    parts = {name: getattr(found, name) for name in type(found).model_fields}
    if parts["settings"].get("exam") or parts["settings"].get("nuggets"):
        store.verify(tournament)  # these are made of what is stored, not of what is kept
    return Leaderboard(
        **parts,
        panel=panel_ratings(kept_games(store, tournament).verdicts()) if parts["by_judge"] else None,
        exam=stored_scores(store, tournament),
        nuggets=nuggets_of(store, tournament, parts["settings"]),
    )


@cache
def _kept() -> type[BaseModel]:
    """The parts of a leaderboard that are kept, as a model that writes them as JSON and reads them again."""
    hints = get_type_hints(Leaderboard)
    parts: dict[str, Any] = {
        own.name: (hints[own.name], ...) for own in fields(Leaderboard) if own.name not in _MADE_ANEW
    }
    model: type[BaseModel] = create_model("Kept", __config__=ConfigDict(ser_json_inf_nan="constants"), **parts)
    model.model_rebuild(_types_namespace={"RankingAgreement": RankingAgreement})  # imported late where it is used
    return model
