"""Judge cards that a tournament requires: what a card is bound to, and whether it is still valid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import date
from typing import Final

from arena.calibration.votes import Level
from arena.config.settings import StoredCard, StoredSettings

_LEVELS: Final[Mapping[Level, tuple[str, Collection[str], Collection[str]]]] = {
    "verdicts": ("pairwise", ("judges", "schedule"), ("pairwise",)),
    "labels": ("retrieval", ("judge", "depth", "combine", "measures"), ("relevance",)),
    "criteria": ("criteria", ("judge",), ("criteria",)),
    "nuggets": ("nuggets", ("judge", "bank", "create", "keep"), ("assignment", "passage_assignment")),
    "support": ("support", ("judge", "citations"), ("support",)),
}
"""By level: the section, its keys that do not affect how a judge is asked, and the prompts."""

NO_CARD: Final = "a card is required, and no judge can have one for this score"
"""Message for a score that people never judge, or that no judge judges."""


def bound_to(settings: StoredSettings, judge: str, level: Level) -> str:
    """A hash of the judge's model and parameters, its prompt, and how it is asked; empty if they are not known."""
    section, ignored, prompts = _LEVELS[level]
    stored = settings.raw
    if settings.section(section) is None or judge not in settings.judges:
        return ""
    inputs = {
        "level": level,
        "judge": stored["judges"][judge],
        "asked": {key: value for key, value in stored[section].items() if key not in ignored},
        "prompts": {name: settings.prompts[name] for name in prompts if name in settings.prompts},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def lacking_cards(settings: StoredSettings, level: Level | None, today: date) -> list[str]:
    """The reason why each judge lacks a valid card that says yes; empty if all have one, or if none is required.

    Args:
        settings: stored settings of the tournament.
        level: what was judged; ``None`` for what people never judge, so that no card can exist.
        today: the date on which the cards must be valid.
    """
    if settings.card is None or settings.card.cards is None:
        return []
    judges = settings.judges_of(_LEVELS[level][0]) if level is not None else []
    if level is None or not judges:
        return [NO_CARD]
    return [reason for judge in judges if (reason := _lacking(settings, settings.card, judge, level, today))]


def _lacking(settings: StoredSettings, required: StoredCard, judge: str, level: Level, today: date) -> str:
    cards = [card for card in required.cards or () if (card["judge"], card["level"]) == (judge, level)]
    card = next((card for card in cards if card["bound_to"] == bound_to(settings, judge, level)), None)
    if not cards:
        return f"{judge} has no card for {level}"
    if card is None:
        return f"the card of {judge} for {level} was made with another model, prompt or parameters"
    if date.fromisoformat(card["expires"]) < today:
        return f"the card of {judge} for {level} expired on {card['expires']}"
    if float(card["epsilon"]) > required.epsilon:
        return f"the card of {judge} for {level} allows an epsilon of {card['epsilon']}, more than {required.epsilon:g}"
    return "" if card["verdict"] == "yes" else f"the card of {judge} for {level} says {card['verdict']}"
