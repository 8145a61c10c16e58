"""Which rows of a large table are wanted, told as early as each format allows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Only:
    """The rows whose cell in one column, as text, is one of ``values``."""

    column: str
    values: Set[str]


class LineFilter:
    """Passes over lines of JSON that are about something else, without decoding them."""

    def __init__(self, only: Only) -> None:
        self._values = only.values
        self._key: re.Pattern[str] | None = None

    def learn(self, keys: Iterable[str]) -> None:
        """The names under which the records seen so far have the column."""
        names = "|".join(re.escape(json.dumps(key)) for key in keys)
        self._key = re.compile(rf'(?:{names})\s*:\s*(?:"([^"\\]*)"|(-?[0-9]+)[\s,}}])')

    def passes_over(self, line: str) -> bool:
        """Whether the line ends as a record does and says, wherever it has the key, that it is not wanted.

        A quote within a JSON string is escaped, so that no text of a document looks like the key.
        """
        found = [text or number for text, number in self._key.findall(line)] if self._key is not None else []
        return bool(found) and self._values.isdisjoint(found) and line.rstrip().endswith("}")
