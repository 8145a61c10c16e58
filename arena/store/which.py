"""Which of a store's tournaments is meant; a module of its own, since most commands ask this and few rate anything."""

from __future__ import annotations

from arena.store import Store
from judges.errors import InputError


def rated_tournaments(store: Store) -> list[str]:
    """Names of the tournaments, oldest first, without those that synthetic queries are kept under."""
    return [name for name in store.tournaments() if "synth" not in store.settings(name)]


def only_tournament(store: Store) -> str:
    """The name of the store's one tournament.

    Raises:
        InputError: there is none, or more than one.
    """
    names = rated_tournaments(store)
    if not names:
        raise InputError("the store holds no tournament yet; 'ragleague run' fills it")
    if len(names) > 1:
        raise InputError(f"the store holds several tournaments, name one: {', '.join(names)}")
    return names[0]
