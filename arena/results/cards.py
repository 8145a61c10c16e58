"""Whether a tournament's judges have the cards that it requires, and what a card is bound to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

from arena.config.settings import StoredSettings
from arena.data.kinds import JudgedKind

NO_CARD: Final = "a card is required, and no judge can have one for this score"
"""Message for a score that people never judge, or that no judge judges."""


def bound_to(settings: StoredSettings, judge: str, kind: JudgedKind) -> str:
    """A hash of the judge's model and parameters, its prompt, and how it is asked; empty if they are not known."""
    options, declaration = settings.raw.get(kind.section), (settings.raw.get("judges") or {}).get(judge)
    if not options or not declaration:
        return ""
    digests = settings.raw.get("prompts", {})
    inputs = {
        "level": kind.level,
        "judge": declaration,
        "asked": {key: value for key, value in options.items() if key not in kind.not_asked},
        "prompts": {name: digests[name] for name in (kind.task.value, *kind.further_prompts) if name in digests},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def lacking_cards(settings: StoredSettings, kind: JudgedKind | None, today: date) -> list[str]:
    """The reason why each judge lacks a valid card that says yes; empty if all have one, or if none is required.

    Args:
        settings: stored settings of the tournament.
        kind: what was judged; ``None`` for what people never judge, so that no card can exist.
        today: the date on which the cards must be valid.
    """
    required = (settings.raw.get("card") or {}).get("required")
    if required is None:
        return []
    section = settings.raw.get(kind.section) if kind is not None else None
    if kind is None or not section:
        return [NO_CARD]
    names = section.get("judges", section.get("judge"))
    judges = [names] if isinstance(names, str) else names
    return [reason for judge in judges if (reason := _lacking(settings, judge, kind, today, required))]


def _lacking(
    settings: StoredSettings, judge: str, kind: JudgedKind, today: date, required: Sequence[Mapping[str, str]]
) -> str:
    level = kind.level
    cards = [card for card in required if (card["judge"], card["level"]) == (judge, level)]
    binding = bound_to(settings, judge, kind)
    card = next((card for card in cards if card["bound_to"] == binding), None)
    if not cards:
        return f"{judge} has no card for {level}"
    if card is None:
        return f"the card of {judge} for {level} was made with another model, prompt or parameters"
    if date.fromisoformat(card["expires"]) < today:
        return f"the card of {judge} for {level} expired on {card['expires']}"
    allowed = settings.raw["card"]["epsilon"]
    if float(card["epsilon"]) > allowed:
        return f"the card of {judge} for {level} allows an epsilon of {card['epsilon']}, more than {allowed:g}"
    return "" if card["verdict"] == "yes" else f"the card of {judge} for {level} says {card['verdict']}"
