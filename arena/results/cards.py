"""Checks whether judges have the cards that a tournament requires; computes the hash that binds card and judge."""

from __future__ import annotations

import hashlib
import json
from datetime import date
from typing import Final

from arena.config.settings import StoredCard, StoredSettings
from arena.data.kinds import JudgedKind

NO_CARD: Final = "a card is required, and no judge can have one for this score"


def bound_to(settings: StoredSettings, judge: str, kind: JudgedKind) -> str:
    """Hash of a judge's model, parameters, prompts and request settings; empty if the tournament has no such judge."""
    stored = settings.raw
    if settings.section(kind.section) is None or judge not in settings.judges:
        return ""
    prompts = (kind.task.value, *kind.further_prompts)
    inputs = {
        "level": kind.level,
        "judge": stored["judges"][judge],
        "asked": {key: value for key, value in stored[kind.section].items() if key not in {*kind.not_asked, "review"}},
        "prompts": {name: settings.prompts[name] for name in prompts if name in settings.prompts},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def lacking_cards(settings: StoredSettings, kind: JudgedKind | None, today: date) -> list[str]:
    """Reasons why judges lack a valid card with the verdict yes, one per judge; empty if no required card is lacking.

    Args:
        kind: what the judges judged; ``None`` for a score that people never judge, so that no card can exist.
    """
    if settings.card is None or settings.card.cards is None:
        return []
    judges = settings.judges_of(kind.section) if kind is not None else []
    if kind is None or not judges:
        return [NO_CARD]
    return [reason for judge in judges if (reason := _lacking(settings, settings.card, judge, kind, today))]


def _lacking(settings: StoredSettings, required: StoredCard, judge: str, kind: JudgedKind, today: date) -> str:
    level = kind.level
    cards = [card for card in required.cards or () if (card["judge"], card["level"]) == (judge, level)]
    card = next((card for card in cards if card["bound_to"] == bound_to(settings, judge, kind)), None)
    if not cards:
        return f"{judge} has no card for {level}"
    if card is None:
        return f"the card of {judge} for {level} was made with another model, prompt or parameters"
    if date.fromisoformat(card["expires"]) < today:
        return f"the card of {judge} for {level} expired on {card['expires']}"
    if float(card["epsilon"]) > required.epsilon:
        return f"the card of {judge} for {level} allows an epsilon of {card['epsilon']}, more than {required.epsilon:g}"
    return "" if card["verdict"] == "yes" else f"the card of {judge} for {level} says {card['verdict']}"
