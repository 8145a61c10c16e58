"""Judge cards that a tournament requires: what a card is bound to, and whether it is still valid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from arena.calibration import EPSILON
from arena.config.settings import StoredSettings
from judges.errors import InputError
from judges.sections import RelativePath, Section
from retrieval_eval.data.files import read_json

if TYPE_CHECKING:
    from arena.calibration.votes import Level

_LEVELS: Final[Mapping[Level, tuple[str, Collection[str], Collection[str]]]] = {
    "verdicts": ("pairwise", ("judges", "schedule"), ("pairwise",)),
    "labels": ("retrieval", ("judge", "depth", "combine", "measures"), ("relevance",)),
    "criteria": ("criteria", ("judge",), ("criteria",)),
    "nuggets": ("nuggets", ("judge", "bank", "create", "keep"), ("assignment", "passage_assignment")),
    "support": ("support", ("judge", "citations"), ("support",)),
}
"""By level: the section, its keys that do not affect how a judge is asked, and the prompts."""


_SEALED_FIELDS: Final = ("judge", "level", "verdict", "bound_to", "expires", "epsilon")
"""The fields of a card that a gate reads; its seal covers them."""

NO_CARD: Final = "a card is required, and no judge can have one for this score"
"""Message for a score that people never judge, or that no judge judges."""


class CardSection(Section):
    """[Whether judges may stand in for people](judge-card.md)."""

    epsilon: Annotated[float, Field(ge=0, lt=1)] = EPSILON
    """By how much a judge may be worse than a person: 0.2 for experts, 0.15 for trained people, 0.1 for a crowd."""
    required: RelativePath | None = None
    """The JSON file of `calibrate --card`. A gate decides only by judges with a valid card that says yes."""

    def settings(self) -> dict[str, Any]:
        """The settings to store, with the cards themselves; the list is empty while the file does not exist."""
        settings: dict[str, Any] = {"epsilon": self.epsilon}
        if self.required is not None:
            settings["required"] = read_cards(self.required) if self.required.is_file() else []
        return settings


def read_cards(path: Path) -> list[dict[str, str]]:
    """Read the cards in a file, each with its judge, level, verdict, binding, epsilon and expiry date.

    Raises:
        InputError: the file does not hold valid judge cards, or a card was edited.
    """
    try:
        cards = [{name: str(card[name]) for name in (*_SEALED_FIELDS, "seal")} for card in read_json(path)["cards"]]
        for card in cards:
            date.fromisoformat(card["expires"])
            float(card["epsilon"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not a file of judge cards; write one with 'ragleague calibrate CONFIG --card FILE.json'"
        ) from error
    for card in cards:
        if card.pop("seal") != seal(card):
            problem = f"the card of {card['judge']} for {card['level']} was edited after it was written"
            raise InputError(f"{path}: {problem}; write it again with 'ragleague calibrate CONFIG --card FILE.json'")
    return cards


def seal(card: Mapping[str, Any]) -> str:
    """A checksum of the card's deciding fields that reveals manual edits. It is neither a secret nor a signature."""
    return hashlib.sha256(json.dumps([str(card[name]) for name in _SEALED_FIELDS]).encode()).hexdigest()[:16]


def bound_to(settings: StoredSettings, judge: str, level: Level) -> str:
    """A hash of the judge's model and parameters, its prompt, and how it is asked; empty if they are not known."""
    section, ignored, prompts = _LEVELS[level]
    options, declaration = settings.raw.get(section), (settings.raw.get("judges") or {}).get(judge)
    if not options or not declaration:
        return ""
    digests = settings.raw.get("prompts", {})
    inputs = {
        "level": level,
        "judge": declaration,
        "asked": {key: value for key, value in options.items() if key not in ignored},
        "prompts": {name: digests[name] for name in prompts if name in digests},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def lacking_cards(settings: StoredSettings, level: Level | None, today: date) -> list[str]:
    """The reason why each judge lacks a valid card that says yes; empty if all have one, or if none is required.

    Args:
        settings: stored settings of the tournament.
        level: what was judged; ``None`` for what people never judge, so that no card can exist.
        today: the date on which the cards must be valid.
    """
    required = (settings.raw.get("card") or {}).get("required")
    if required is None:
        return []
    section = settings.raw.get(_LEVELS[level][0]) if level is not None else None
    if level is None or not section:
        return [NO_CARD]
    names = section.get("judges", section.get("judge"))
    judges = [names] if isinstance(names, str) else names
    return [reason for judge in judges if (reason := _lacking(settings, judge, level, today, required))]


def _lacking(
    settings: StoredSettings, judge: str, level: Level, today: date, required: Sequence[Mapping[str, str]]
) -> str:
    cards = [card for card in required if (card["judge"], card["level"]) == (judge, level)]
    binding = bound_to(settings, judge, level)
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
