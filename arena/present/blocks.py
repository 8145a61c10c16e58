"""What a board is shown as: sections of tables, figures, checks, remarks and pictures. All texts in them are plain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct

from arena.present.numbers import MISSING, NumberForm, deserved
from arena.present.table import Table, plain
from judges.types import Message
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.present.picture import Picture

Status: TypeAlias = Literal["passed", "failed", "unknown"]

_SIGNS: Final[dict[Status, str]] = {"passed": "passed", "failed": "FAILED", "unknown": "not known"}


class Figure(Struct, frozen=True):
    """One figure that stands for itself.

    Attributes:
        name: what it is.
        value: as it is, written in its form; or words.
        form: how it is written.
        meaning: a sentence.
        low, high: its interval.
    """

    name: str
    value: Any
    form: NumberForm
    meaning: str
    low: float | None = None
    high: float | None = None

    @property
    def written(self) -> str:
        """The figure as text."""
        return self._form.write(self.value)

    @property
    def interval(self) -> str:
        """Its interval as text, empty without one."""
        found = self._form.between(self.low, self.high)
        return "" if found == MISSING else found

    @property
    def _form(self) -> NumberForm:
        return deserved(self.form, [(self.low, self.high)])


def estimated(name: str, estimate: Estimate, form: NumberForm, meaning: str) -> Figure:
    """A figure that is an estimate."""
    return Figure(name, estimate.value, form, meaning, estimate.low, estimate.high)


class Figures(Struct, frozen=True):
    """Figures side by side."""

    items: Sequence[Figure]


class Check(Struct, frozen=True):
    """Something that must hold for a conclusion to be believed.

    Attributes:
        finding: what was found, and what the bar is.
        remedy: what to do where it did not pass.
    """

    name: str
    status: Status
    finding: str
    remedy: str

    @property
    def sentence(self) -> str:
        """All of it on one line."""
        said = f"{_SIGNS[self.status]}: {self.name}. {self.finding}"
        return said if self.status == "passed" else f"{said} What to do: {self.remedy}"


def passed(held: bool) -> Status:
    """The status of a check that could be made."""
    return "passed" if held else "failed"


def settled(figure: Estimate, least: float, most: float = math.inf) -> Status:
    """The status of a figure by its interval: inside what is tolerated, outside, or nobody knows as it allows both."""
    if figure.low is None or figure.high is None:
        return "unknown"
    if least <= figure.low and figure.high <= most:
        return "passed"
    return "failed" if figure.high < least or figure.low > most else "unknown"


class Checks(Struct, frozen=True):
    """Checks, one below the other.

    Attributes:
        folded: whether those that failed show their names alone until opened, the others their number; for HTML.
        link: address where there is more on them.
    """

    items: Sequence[Check]
    folded: bool = False
    link: str = ""


class VerdictCard(Struct, frozen=True):
    """What may be concluded, on a card.

    Attributes:
        standing: how firmly, which colours it: ``decided``, ``care`` or ``none``.
        label: the same in words.
        headline, sentence: the conclusion.
        facts: what it rests on, a few words each.
    """

    standing: str
    label: str
    headline: str
    sentence: str
    facts: Sequence[str]


class Remarks(Struct, frozen=True):
    """Sentences, each for itself."""

    items: Sequence[str]


class Commands(Struct, frozen=True):
    """Lines for a terminal."""

    lines: Sequence[str]


class Thread(Struct, frozen=True):
    """What was said before a query in its conversation, folded under a title; for HTML."""

    messages: Sequence[Message]
    title: str = "Said before it"


Block: TypeAlias = "Table | Figures | Checks | VerdictCard | Remarks | Commands | Thread | Picture"


class Section(Struct, frozen=True):
    """A part of what is shown.

    Attributes:
        ident: its anchor, unique among the sections shown together.
        title: for people.
        lead: the question that it answers, a sentence.
        blocks: in order.
    """

    ident: str
    title: str
    lead: str
    blocks: Sequence[Block]


class Board(Struct, frozen=True):
    """Base of the boards, frozen records: says what is shown of one; renderers say how."""

    def sections(self) -> Sequence[Section]:
        """All there is for people, the most important first."""
        raise NotImplementedError

    def tables(self) -> list[Table]:
        """All tables; the first is the one that is written as CSV, Markdown, HTML or LaTeX."""
        return [block for section in self.sections() for block in section.blocks if isinstance(block, Table)]

    def pictures(self) -> list[Picture]:
        """All pictures."""
        from arena.present.picture import Picture

        return [block for section in self.sections() for block in section.blocks if isinstance(block, Picture)]

    def checks(self) -> Sequence[Check]:
        """What must hold for a leaderboard that it stands on to be believed."""
        return ()

    def json(self) -> Any:
        """All there is for programs."""
        return plain(self)
