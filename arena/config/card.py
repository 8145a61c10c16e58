"""The configuration section for judge cards that a tournament requires, and the reader of their file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from arena.calibration import EPSILON
from judges.errors import InputError
from judges.sections import RelativePath, Section
from retrieval_eval.data.files import read_json

_SEALED_FIELDS: Final = ("judge", "level", "verdict", "bound_to", "expires", "epsilon")
"""The fields of a card that a gate reads; its seal covers them."""


class CardSection(Section):
    """[Whether judges may stand in for people](judge-card.md)."""

    epsilon: Annotated[float, Field(ge=0, lt=1)] = EPSILON
    """By how much a judge may be worse than a person: 0.2 for experts, 0.15 for trained people, 0.1 for a crowd."""
    required: RelativePath | None = None
    """The JSON file of `calibrate --card`. A gate decides only by judges with a valid card that says yes."""

    def stored(self) -> dict[str, Any]:
        """The section as JSON, with the content of the cards."""
        settings: dict[str, Any] = {"epsilon": self.epsilon}
        if self.required is not None:
            settings["cards"] = read_cards(self.required) if self.required.is_file() else []
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
    """A checksum of the fields that a gate reads; it reveals manual edits, but is neither a secret nor a signature."""
    return hashlib.sha256(json.dumps([str(card[name]) for name in _SEALED_FIELDS]).encode()).hexdigest()[:16]
