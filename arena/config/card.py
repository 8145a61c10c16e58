"""Judge cards as a tournament demands them: what a card is bound to, and whether one is still good."""

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

_ASKED: Final[Mapping[Level, tuple[str, Collection[str], Collection[str]]]] = {
    "verdicts": ("pairwise", ("judges", "schedule"), ("pairwise",)),
    "labels": ("retrieval", ("judge", "depth", "combine", "measures"), ("relevance",)),
    "criteria": ("criteria", ("judge",), ("criteria",)),
    "nuggets": ("nuggets", ("judge", "bank", "create", "keep"), ("assignment", "passage_assignment")),
    "support": ("support", ("judge", "citations"), ("support",)),
}
"""By what is judged: the section, what of it says nothing of how a judge is asked, and the prompts."""


_DECIDES: Final = ("judge", "level", "verdict", "bound_to", "expires", "epsilon")
"""What a gate reads of a card."""

NO_CARD: Final = "a card is required, and no judge can have one for this score"
"""Of what people judge nowhere, or no judge does."""


class CardSection(Section):
    """[Whether judges may stand in for people](judge-card.md)."""

    epsilon: Annotated[float, Field(ge=0, lt=1)] = EPSILON
    """By how much a judge may be worse than a person: 0.2 for experts, 0.15 for trained people, 0.1 for a crowd."""
    required: RelativePath | None = None
    """The JSON file of `calibrate --card`. A gate decides only by judges with a valid card that says yes."""

    def settings(self) -> dict[str, Any]:
        """What the store keeps: the cards themselves, none where the file is not there yet."""
        stored: dict[str, Any] = {"epsilon": self.epsilon}
        if self.required is not None:
            stored["required"] = read_cards(self.required) if self.required.is_file() else []
        return stored


def read_cards(path: Path) -> list[dict[str, str]]:
    """The cards in a file, each with its judge, level, verdict, what it is bound to, and when it expires.

    Raises:
        InputError: it is no file of judge cards.
    """
    try:
        cards = [{name: str(card[name]) for name in (*_DECIDES, "seal")} for card in read_json(path)["cards"]]
        for card in cards:
            date.fromisoformat(card["expires"])
            float(card["epsilon"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: no judge card; write one with 'ragleague calibrate CONFIG --card FILE.json'"
        ) from error
    for card in cards:
        if card.pop("seal") != seal(card):
            said = f"the card of {card['judge']} for {card['level']} is not as it was written"
            raise InputError(f"{path}: {said}; write it anew with 'ragleague calibrate CONFIG --card FILE.json'")
    return cards


def seal(card: Mapping[str, Any]) -> str:
    """A checksum of what decides, which shows that nobody edited it by hand. It is no secret, and no signature."""
    return hashlib.sha256(json.dumps([str(card[name]) for name in _DECIDES]).encode()).hexdigest()[:16]


def bound_to(settings: StoredSettings, judge: str, level: Level) -> str:
    """A hash of the judge's model and parameters, its prompt, and how it is asked; empty where they are not known."""
    section, aside, prompts = _ASKED[level]
    how, declared = settings.raw.get(section), (settings.raw.get("judges") or {}).get(judge)
    if not how or not declared:
        return ""
    digests = settings.raw.get("prompts", {})
    asked = {
        "level": level,
        "judge": declared,
        "asked": {key: value for key, value in how.items() if key not in aside},
        "prompts": {name: digests[name] for name in prompts if name in digests},
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def lacking_cards(settings: StoredSettings, level: Level | None, today: date) -> list[str]:
    """Why judges have no valid card that says yes, as words; nothing where all have one, or none is required.

    Args:
        settings: of the tournament.
        level: what was judged; ``None`` for what people judge nowhere, so that there can be no card.
        today: on which the cards must be good.
    """
    required = (settings.raw.get("card") or {}).get("required")
    if required is None:
        return []
    section = settings.raw.get(_ASKED[level][0]) if level is not None else None
    if level is None or not section:
        return [NO_CARD]
    named = section.get("judges", section.get("judge"))
    judges = [named] if isinstance(named, str) else named
    return [why for judge in judges if (why := _lacking(settings, judge, level, today, required))]


def _lacking(
    settings: StoredSettings, judge: str, level: Level, today: date, required: Sequence[Mapping[str, str]]
) -> str:
    known = [card for card in required if (card["judge"], card["level"]) == (judge, level)]
    now = bound_to(settings, judge, level)
    card = next((card for card in known if card["bound_to"] == now), None)
    if not known:
        return f"{judge} has no card for {level}"
    if card is None:
        return f"the card of {judge} for {level} is of another model, prompt or parameters"
    if date.fromisoformat(card["expires"]) < today:
        return f"the card of {judge} for {level} expired on {card['expires']}"
    allowed = settings.raw["card"]["epsilon"]
    if float(card["epsilon"]) > allowed:
        return f"the card of {judge} for {level} allows an epsilon of {card['epsilon']}, more than {allowed:g}"
    return "" if card["verdict"] == "yes" else f"the card of {judge} for {level} says {card['verdict']}"
