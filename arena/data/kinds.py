"""The kinds of items that judges and people judge, such as retrieved documents or pairs of answers.

Each kind is a ``JudgedKind``; the code for votes, files, web pages, judge cards, CI gates and calibration uses it. A
stage may add a kind: its module defines ``KIND``, and its entry in ``arena.config.stages`` has ``by_people``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from arena.calibration import ItemKey, ItemMeans, Opinion
from arena.config.stages import ListedStage, further_stages
from judges.types import GAME_OUTCOMES, GameOutcome, Task, Verdict, label_of
from retrieval_eval.nuggets.types import Support, make_nuggets

if TYPE_CHECKING:
    from arena.config.settings import StoredSettings
    from arena.data.dataset import Dataset
    from retrieval_eval.data.rows import Row


class Annotation(Struct, frozen=True):
    """The value, such as a label or verdict, that one person or judge gave to one item.

    Attributes:
        kind: name of the ``JudgedKind``.
        annotator: the person's or judge's name, see ``annotator_name``.
        item: the labelled document, the graded agent, or in a game the agent whose answer was shown first; verdict A
            is for this agent, B for the other.
        other: the other agent of a game, the nugget's id, or the sentence and the document that it cites.
        texts: ``texts_digest`` of the texts that the annotator saw.
        value: the verdict, label or grades, as JSON values; ``None`` if the annotator skipped the item.
        seconds: the time that the annotator spent on the item, if known.
        at: time of the annotation in ISO 8601; if empty, the time at which the store adds it.
    """

    kind: str
    annotator: str
    query_id: str
    item: str
    other: str
    texts: str
    value: Any
    seconds: float | None = None
    at: str = ""


def texts_digest(*texts: str) -> str:
    """Digest of the texts that an annotator saw, as 32 hexadecimal digits; the order of the texts matters."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]


class Choice(Struct, frozen=True):
    """A value that an annotator can choose on an annotation page, for a task or for one row of a task.

    Attributes:
        value: the value that is stored if this choice is made.
        label: the text of the choice, written by ragleague.
        key: the keyboard shortcut; ``None`` without one.
        meaning: the explanation of the choice from the user's configuration.
    """

    value: Any
    label: str
    key: str | None
    meaning: str = ""


class FormRow(Struct, frozen=True):
    """A row of an annotation page, with its text and, if they differ from other rows, the meanings of its values."""

    text: str
    meanings: Mapping[Any, str] = {}


class TaskForm(Struct, frozen=True):
    """The texts and choices on the page where people judge items of one kind; ragleague wrote all of them.

    Attributes:
        view: name of the page in its URL.
        guide, unsure: what to look at and what does not count; and what to do when unsure.
        thing, things, done: words for the judged item, for several items, and for the state of a finished task.
        missing: message if there is nothing to review yet.
        choices: function that returns the choices for a tournament, in the order of their keyboard shortcuts.
        row: word for a row, such as ``Criterion``, if the annotator chooses a value for each row of a task.
        rows: function that returns a tournament's rows by name; ``None`` if the rows are the parts of the task.
        names: headings of the texts to read, if they are of several kinds.
    """

    view: str
    question: str
    guide: str
    thing: str
    things: str
    done: str
    missing: str
    choices: Callable[[StoredSettings], Sequence[Choice]]
    row: str = ""
    rows: Callable[[StoredSettings], Mapping[str, FormRow]] | None = None
    names: Sequence[str] = ()
    unsure: str = "If you hesitate between two, take the lower."


_DECIMAL_COMMA: Final = re.compile(r"\A([-+]?\d+),(\d{1,2}|\d{4,})\Z")
"""Matches a number with a decimal comma, such as 4,5. 1,000 is ambiguous and does not match."""
NO_VALUE: Final = frozenset({"", "nan", "na", "n/a", "none", "null", "<na>"})


def as_number(text: str) -> float | None:
    """Parse a number with a decimal point or comma; ``None`` if the text is not a number."""
    try:
        return float(_DECIMAL_COMMA.sub(r"\1.\2", text))
    except ValueError:
        return None


def as_whole(value: float) -> float:
    """Convert a whole number to ``int``, so that it prints without a decimal point; other values stay unchanged."""
    return int(value) if value.is_integer() else value


def number(row: Row, column: str, kind: str = "number") -> float:
    text = row.text(column).strip()
    if text.casefold() in NO_VALUE:
        raise row.error(f"{column!r} is empty; fill it in, or leave such rows out with --skip-faulty", text or None)
    if (value := as_number(text)) is None or not abs(value) < float("inf"):
        raise row.error(f"{column!r} must be a {kind}", text)
    return value


class JudgedKind(Struct, frozen=True, kw_only=True):
    """A kind of item that judges and people judge. In this base class, the item is a document or an agent's answer.

    Attributes:
        name: name of the kind in the store and for ``--kind``.
        level: name of the kind in calibrations and judge cards; empty if judges do not judge it.
        things: plural noun for the judged items.
        section: section of the configuration that names the judges of this kind.
        task: kind of request to which judges reply with these judgments.
        further_prompts: names of the prompts, besides that of the task, to which a judge card is bound.
        not_asked: keys of the section that do not affect the judge's prompt or calls.
        columns: columns that identify an item in a file of annotations.
        column: column of the value in such a file.
        noun: noun for one value, such as ``label``.
        words: word for each value; empty if values are shown as they are.
        means: how the values of items are averaged.
        form: the page on which people judge this kind; ``None`` without one.
    """

    name: str
    level: str
    things: str = ""
    section: str = ""
    task: Task = Task.RELEVANCE
    further_prompts: Collection[str] = ()
    not_asked: Collection[str] = ("judge",)
    columns: Sequence[str]
    column: str
    noun: str = "label"
    words: Mapping[float, str] = {}
    means: ItemMeans = ItemMeans()
    form: TaskForm | None = None

    def texts(self, annotation: Annotation, data: Dataset) -> list[str | None]:
        """The current texts of an annotated item, the query first; ``None`` for a text that no longer exists."""
        if "agent" in self.columns:
            return [_thread(annotation, data), _answer(annotation.query_id, annotation.item, data)]
        document = data.documents.get(annotation.item)
        return [_thread(annotation, data), None if document is None else document.text]

    def item(self, item: str, other: str) -> ItemKey:
        """Convert the fields ``item`` and ``other`` of an ``Annotation`` to the field ``item`` of an ``Opinion``."""
        return (item, other) if other else (item,)

    def fields(self, item: ItemKey) -> tuple[str, str]:
        """Convert the field ``item`` of an ``Opinion`` to the fields ``item`` and ``other`` of an ``Annotation``."""
        return item[0], ""

    def item_in(self, row: Row) -> ItemKey:
        return tuple(row.identifier(name) for name in self.columns)

    def parse(self, row: Row, column: str) -> float:
        value = number(row, column, "whole number")
        if value != int(value):
            raise row.error(f"{column!r} must be a whole number", row.text(column).strip())
        return value

    def cells(self, item: ItemKey) -> Sequence[Any]:
        return item

    def number(self, value: Any) -> float:
        return float(label_of(value))

    def opinions(self, annotation: Annotation) -> Iterator[Opinion]:
        item = self.item(annotation.item, annotation.other)
        yield Opinion(annotation.query_id, item, annotation.annotator, self.number(annotation.value))

    def annotations(self, opinions: Iterable[Opinion]) -> Iterator[Annotation]:
        """Convert opinions to annotations; the field ``texts`` of the annotations is empty."""
        for opinion in opinions:
            item, other = self.fields(opinion.item)
            yield Annotation(self.name, opinion.rater, opinion.query_id, item, other, "", int(opinion.value))


class _Games(JudgedKind, frozen=True):
    def texts(self, annotation: Annotation, data: Dataset) -> list[str | None]:
        answers = (_answer(annotation.query_id, agent, data) for agent in (annotation.item, annotation.other))
        return [_thread(annotation, data), *answers]

    def opinions(self, annotation: Annotation) -> Iterator[Opinion]:
        shown = self.item(annotation.item, annotation.other)
        pair, value = tuple(sorted(shown)), float(GAME_OUTCOMES[annotation.value])
        swapped = pair != shown
        yield Opinion(annotation.query_id, pair, annotation.annotator, -value if swapped else value, swapped)

    def annotations(self, opinions: Iterable[Opinion]) -> Iterator[Annotation]:
        for opinion in opinions:
            first, second = opinion.item[::-1] if opinion.swapped else opinion.item
            verdict = GameOutcome(int(-opinion.value if opinion.swapped else opinion.value)).verdict
            yield Annotation(self.name, opinion.rater, opinion.query_id, first, second, "", verdict)


class _Flags(_Games, frozen=True):
    def texts(self, annotation: Annotation, data: Dataset) -> list[str | None]:
        return [*super().texts(annotation, data), annotation.value["judge"]]


class _Grades(JudgedKind, frozen=True):
    """The kind of grades of answers by criteria; an annotation holds an answer's grades for all criteria."""

    def parse(self, row: Row, column: str) -> float:
        return number(row, column)

    def opinions(self, annotation: Annotation) -> Iterator[Opinion]:
        for criterion, grade in annotation.value.items():
            yield Opinion(annotation.query_id, (annotation.item, criterion), annotation.annotator, float(grade))

    def annotations(self, opinions: Iterable[Opinion]) -> Iterator[Annotation]:
        by_answer: defaultdict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
        for opinion in opinions:
            agent, criterion = opinion.item
            by_answer[opinion.rater, opinion.query_id, agent][criterion] = as_whole(opinion.value)
        for (rater, query_id, agent), grades in by_answer.items():
            yield Annotation(self.name, rater, query_id, agent, "", "", grades)


class _Nuggets(JudgedKind, frozen=True):
    def texts(self, annotation: Annotation, data: Dataset) -> list[str | None]:
        query = data.queries.get(annotation.query_id)  # a bank has no conversations
        return [None if query is None else query.text, _answer(annotation.query_id, annotation.item, data)]

    def item_in(self, row: Row) -> ItemKey:
        (nugget,) = make_nuggets(row.identifier("qid"), [row.identifier("nugget")], [None])
        return row.identifier("agent"), nugget.nugget_id

    def parse(self, row: Row, column: str) -> float:
        text = row.text(column).strip()
        if text not in set(Support):
            raise row.error(f"{column!r} must be one of {', '.join(Support)}", text)
        return self.number(text)

    def number(self, value: Any) -> float:
        return SUPPORT[Support(value)]


def _thread(annotation: Annotation, data: Dataset) -> str | None:
    query = data.queries.get(annotation.query_id)
    return None if query is None else query.thread


def _answer(query_id: str, agent: str, data: Dataset) -> str | None:
    answer = data.answers.get((query_id, agent))
    return None if answer is None else answer.text


SUPPORT: Final = {Support.FULL: 2.0, Support.PARTIAL: 1.0, Support.NONE: 0.0}
SUPPORT_WORDS: Final = {2.0: "support", 1.0: "partial support", 0.0: "no support"}
_STATES: Final = {Support.FULL: "States it", Support.PARTIAL: "States a part", Support.NONE: "Does not state it"}


def _scale(settings: StoredSettings) -> Sequence[Choice]:
    scale = {} if settings.retrieval is None else {label: word for word, label in settings.retrieval.scale.items()}
    ends = {} if not scale else {min(scale): "not relevant", max(scale): "fully relevant"}
    return [
        Choice(label, str(label), _digit(label), ends.get(label, "") if word == str(label) else word)
        for label, word in sorted(scale.items())
    ]


def _grades(settings: StoredSettings) -> Sequence[Choice]:
    assert settings.criteria is not None
    low, high = settings.criteria.scale
    ends = {low: "not at all", high: "fully"}  # as the judge reads it
    return [Choice(grade, str(grade), _digit(grade), ends.get(grade, "")) for grade in range(low, high + 1)]


def _rubric(settings: StoredSettings) -> Mapping[str, FormRow]:
    """Rows of the page for grading: the tournament's criteria, with the descriptions and levels that judges read."""
    assert settings.criteria is not None
    return {
        each.name: FormRow(f"{each.name}: {each.description}" if each.description else each.name, dict(each.levels))
        for each in settings.criteria.listed()
    }


def _assignments(settings: StoredSettings) -> Sequence[Choice]:
    assert settings.nuggets is not None
    offered = [label for label in Support if settings.nuggets.assign.grades == 3 or label is not Support.PARTIAL]
    return [Choice(label, _STATES[label], str(number)) for number, label in enumerate(offered, start=1)]


def _digit(value: int) -> str | None:
    """Keyboard shortcut for choosing a number: the digit for a number from 0 to 9, else ``None``."""
    return str(value) if 0 <= value <= 9 else None


VERDICT: Final = _Games(
    name="verdict",
    level="verdicts",
    things="games",
    section="pairwise",
    task=Task.PAIRWISE,
    not_asked=("judges", "schedule"),
    columns=("agent_a", "agent_b"),
    column="verdict",
    means=ItemMeans(ends=(0.0, 1.0)),
    form=TaskForm(
        "vote",
        "Which answer is better for the person who asked?",
        "Read both answers whole. What is correct and complete counts; length, style and order do not.",
        *("answer", "queries", "voted on"),
        "No game has a verdict yet.",
        lambda _: [
            Choice(Verdict.A, "Answer 1 is better", "1"),
            Choice(Verdict.B, "Answer 2 is better", "2"),
            Choice(Verdict.TIE, "Neither is better", "3"),
        ],
        unsure="If you cannot tell, neither is better.",
    ),
)
RELEVANCE: Final = JudgedKind(
    name="relevance",
    level="labels",
    things="documents",
    section="retrieval",
    task=Task.RELEVANCE,
    not_asked=("judge", "depth", "combine", "measures"),
    columns=("did",),
    column="label",
    form=TaskForm(
        "label",
        "How relevant is the document?",
        "Look for what the document says on the query, anywhere in it; its length, style and source do not count.",
        *("document", "documents", "labelled"),
        "No document has a label yet.",
        _scale,
    ),
)
CRITERIA: Final = _Grades(
    name="criteria",
    level="criteria",
    things="grades",
    section="criteria",
    task=Task.CRITERIA,
    columns=("agent", "criterion"),
    column="score",
    noun="grade",
    means=ItemMeans((-2, -1)),
    form=TaskForm(
        "grade",
        "How well does the answer meet each criterion?",
        "Grade one criterion at a time; length and style count only where a criterion names them.",
        *("answer", "answers", "graded"),
        "No answer has a grade yet.",
        _grades,
        "Criterion",
        _rubric,
    ),
)
NUGGETS: Final = _Nuggets(
    name="nuggets",
    level="nuggets",
    things="nuggets",
    section="nuggets",
    task=Task.ASSIGNMENT,
    further_prompts=("passage_assignment",),
    not_asked=("judge", "bank", "create", "keep"),
    columns=("agent", "nugget"),
    column="assignment",
    noun="nugget label",
    words=SUPPORT_WORDS,
    means=ItemMeans((-2,), (0.0, 2.0)),
    form=TaskForm(
        "assess",
        "Does the answer state the fact?",
        "Other words for the same fact count; whether it is true, and the answer's length and style, do not.",
        *("answer", "answers", "assessed"),
        "There are no nuggets yet.",
        _assignments,
        "Nugget",
        unsure="If you cannot tell, it does not state it.",
    ),
)
FLAG: Final = _Flags(name="flag", level="", columns=("agent_a", "agent_b"), column="comment")
"""The kind of people's comments on a judge's verdict, with values ``{"judge": ..., "comment": ...}``."""

_HERE: Final[Mapping[str, JudgedKind]] = {kind.name: kind for kind in (VERDICT, RELEVANCE, CRITERIA, NUGGETS)}


def _brought() -> dict[str, ListedStage]:
    return {key: stage for key, stage in further_stages().items() if stage.by_people}


class _Kinds(Mapping[str, JudgedKind]):
    """All kinds by name. A kind that a stage adds has the name of the stage's section and is imported on first use."""

    def __getitem__(self, name: str) -> JudgedKind:
        if name in _HERE:
            return _HERE[name]
        if name == FLAG.name:
            return FLAG
        kind: JudgedKind = _brought()[name].load("KIND")
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter((*_HERE, *_brought(), FLAG.name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


KINDS: Final[Mapping[str, JudgedKind]] = _Kinds()


def kind_of(level: str) -> JudgedKind:
    """The kind with this ``level``, which is the name of the kind in calibrations and judge cards."""
    return next(kind for kind in KINDS.values() if kind.level == level)


def kind_of_columns(columns: Collection[str]) -> JudgedKind | None:
    """Recognize the kind of annotations in a table, except verdicts, by the table's columns; ``None`` if no kind fits.

    If several kinds fit, return the one with the most columns, of equal ones that of a stage. The kind of a stage has a
    column named after the stage; the stage's module is imported only if the table has that column.
    """
    known = [*(KINDS[name] for name in _brought() if name in columns), RELEVANCE, CRITERIA, NUGGETS]
    held = [kind for kind in known if {*kind.columns, kind.column} <= {*columns}]
    return max(held, key=lambda kind: len(kind.columns), default=None)


def texts_now(annotation: Annotation, data: Dataset, nuggets: Mapping[str, str]) -> str | None:
    """Digest of the current texts of an annotated item, see ``texts_digest``; ``None`` if a text no longer exists.

    ``nuggets`` has the text of each nugget by its id.
    """
    texts = KINDS[annotation.kind].texts(annotation, data)
    if annotation.kind == NUGGETS.name:
        texts.append(nuggets.get(annotation.other))
    known = [text for text in texts if text is not None]
    return texts_digest(*known) if len(known) == len(texts) else None
