"""Building blocks of results: sections with tables, figures, checks, remarks and pictures. All texts are plain text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct

from arena.present.numbers import MISSING, NumberForm, counted, deserved
from arena.present.table import Table, plain
from judges.errors import RETRIED_NEXT_RUN
from judges.types import Message
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.present.picture import Picture

Status: TypeAlias = Literal["passed", "failed", "unknown"]

_SIGNS: Final[dict[Status, str]] = {"passed": "passed", "failed": "FAILED", "unknown": "not known"}


class Figure(Struct, frozen=True):
    """A single number with its name, shown outside a table.

    Attributes:
        low, high: ends of the value's confidence interval; ``None`` without an interval.
    """

    name: str
    value: Any
    form: NumberForm
    meaning: str
    low: float | None = None
    high: float | None = None

    @property
    def written(self) -> str:
        return self._form.write(self.value)

    @property
    def interval(self) -> str:
        text = self._form.between(self.low, self.high)
        return "" if text == MISSING else text

    @property
    def _form(self) -> NumberForm:
        return deserved(self.form, [(self.low, self.high)])


def estimated(name: str, estimate: Estimate, form: NumberForm, meaning: str) -> Figure:
    return Figure(name, estimate.value, form, meaning, estimate.low, estimate.high)


class Figures(Struct, frozen=True):
    items: Sequence[Figure]


class Check(Struct, frozen=True):
    """A condition that must hold for a conclusion to be trusted."""

    name: str
    status: Status
    finding: str
    remedy: str

    @property
    def sentence(self) -> str:
        finding = f"{_SIGNS[self.status]}: {self.name}. {self.finding}"
        return finding if self.status == "passed" else f"{finding} What to do: {self.remedy}"


def passed(ok: bool) -> Status:
    return "passed" if ok else "failed"


def settled(figure: Estimate, least: float, most: float = math.inf) -> Status:
    """Status of a check that an estimate is from ``least`` to ``most``; unknown if its interval crosses a limit."""
    if figure.low is None or figure.high is None:
        return "unknown"
    if least <= figure.low and figure.high <= most:
        return "passed"
    return "failed" if figure.high < least or figure.low > most else "unknown"


class Checks(Struct, frozen=True):
    """Checks in a list.

    Attributes:
        folded: whether all stand in one line and a click shows more.
        link: address that has more on all checks.
        brief: whether each has one line, without what to do.
    """

    items: Sequence[Check]
    folded: bool = False
    link: str = ""
    brief: bool = False


class VerdictCard(Struct, frozen=True):
    """A card that states the conclusion of a leaderboard.

    Attributes:
        standing: how certain the conclusion is, which sets the colour: ``decided``, ``care`` or ``none``.
        title: what the conclusion is about, such as the tournament's name.
        why: why the conclusion is no firmer.
        next: what to do next.
    """

    standing: str
    label: str
    headline: str
    sentence: str
    facts: Sequence[str]
    title: str = ""
    why: Sequence[str] = ()
    next: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """The card as sentences for text outputs."""
        facts = ", ".join(f"{fact[:1].lower()}{fact[1:]}" for fact in self.facts)
        about = ": ".join(filter(None, (self.title, facts)))
        ending = "" if self.headline.endswith("?") else "."
        return [
            f"{self.label}: {self.headline}{ending} {self.sentence}",
            *(f"Why: {reason}" for reason in self.why),
            *(f"Next: {step}" for step in self.next),
            *([about] if about else []),
        ]


class Remarks(Struct, frozen=True):
    """Sentences, each shown as a separate paragraph or list item."""

    items: Sequence[str]


class Commands(Struct, frozen=True):
    lines: Sequence[str]


class Thread(Struct, frozen=True):
    """Messages of a conversation for HTML; all but the last ``open`` messages are collapsed under a title."""

    messages: Sequence[Message]
    title: str = "Said before it"
    open: int = 0


Block: TypeAlias = "Table | Figures | Checks | VerdictCard | Remarks | Commands | Thread | Picture"


class Section(Struct, frozen=True):
    """A part of a result, with a title and blocks such as tables.

    Attributes:
        ident: HTML anchor, unique among the sections on a page.
        lead: the question that the section answers, in one sentence.
    """

    ident: str
    title: str
    lead: str
    blocks: Sequence[Block]


class Board(Struct, frozen=True):
    """Base class of results that can be shown as text or HTML, or written to files."""

    def sections(self) -> Sequence[Section]:
        raise NotImplementedError

    def tables(self) -> list[Table]:
        """All tables in the board's sections; exports to CSV, Markdown, HTML and LaTeX use the first one."""
        return [block for section in self.sections() for block in section.blocks if isinstance(block, Table)]

    def pictures(self) -> list[Picture]:
        from arena.present.picture import Picture

        return [block for section in self.sections() for block in section.blocks if isinstance(block, Picture)]

    def checks(self) -> Sequence[Check]:
        """Checks of whether the board's leaderboard can be trusted; empty unless a subclass has such checks."""
        return ()

    def json(self) -> Any:
        return plain(self)


def to_judge_the_rest(causes: Mapping[str, int], left: int, *, imported: bool) -> str:
    """Advice, as a phrase, on how to get the missing judgments; says "run again" only if a run would request some.

    ``causes`` has the number of failed judgments by cause, ``left`` is the number of judgments not requested yet.
    """
    if imported:
        return "judge the rest with the tool that made these judgments, and import all of them again"
    why = "'ragleague failures' says what helps where a reply was unusable"
    if not causes.keys() - RETRIED_NEXT_RUN:
        return "run again to judge the rest"
    return (
        f"run again to judge the rest; {why}"
        if left or causes.keys() & RETRIED_NEXT_RUN
        else f"{why}: asking again alone may not"
    )


def judge_first(unjudged: int) -> str:
    """Advice to judge the unjudged queries before writing new queries, in one sentence; empty if all are judged."""
    if not unjudged:
        return ""
    are, them = ("is", "it") if unjudged == 1 else ("are", "them")
    return f"{counted(unjudged, 'query', 'queries')} of the data {are} not judged yet: judge {them} first."
