"""The judge of exam questions and nuggets: writes them, grades passages by them, checks answers (EXAM++, workbench)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from judges.prompts import PromptTemplate
from judges.prompts.reply import RATINGS
from judges.types import AnnotatedDocument, Answer, Document, Inputs, ListRule, Outcome, Prompt, Query, ReplyContract

_ITEM = "item_{}"


def questions_prompt(template: PromptTemplate, query: Query, number: int, subtopic: str = "") -> Prompt:
    """Ask for ``number`` questions or nuggets on a query, or on one subtopic of it (EXAM++, 4.1.1; workbench, 4.1).

    The outcome is the tuple of their texts.
    """
    contract = template.reply.contract()
    assert contract.listed is not None
    rule = ListRule(contract.listed.name, number, number, leeway="fewer")
    return template.render(Inputs(query), contract=replace(contract, listed=rule), subtopic=subtopic)


def grading_prompt(template: PromptTemplate, query: Query, passage: Document, items: Sequence[str]) -> Prompt:
    """Ask how well a passage answers questions or covers nuggets, 0 to 5 each (EXAM++, 4.2.2).

    For one item the reply is the template's own. For several it is one JSON object with a rating each, which costs
    fewer tokens and lets the items colour each other.
    """
    inputs = Inputs(query, (AnnotatedDocument(passage),), items=tuple(items))
    if len(inputs.items) == 1:
        return template.render(inputs)
    ratings = {_ITEM.format(number): RATINGS for number in range(1, len(inputs.items) + 1)}
    reason = template.reply.reason if template.reply.form == "json" else ""
    return template.render(inputs, contract=ReplyContract(reason, ratings))


def grades_of(outcome: Outcome, number: int) -> tuple[int, ...]:
    """The grades of a grading judgment, in the order of its items.

    Raises:
        TypeError: the outcome is of another task.
    """
    if isinstance(outcome, int) and number == 1:
        return (outcome,)
    given = (
        [outcome.get(_ITEM.format(place + 1)) for place in range(number)] if isinstance(outcome, Mapping) else [outcome]
    )
    grades = [_whole(grade) for grade in given if isinstance(grade, int | float)]
    if len(grades) < number:
        raise TypeError(f"{outcome!r} does not hold {number} grades")
    return tuple(grades)


def answer_check_prompt(template: PromptTemplate, question: Query, gold: Sequence[str], answer: str) -> Prompt:
    """Ask whether ``answer`` is as right as one of the ``gold`` ones (EXAM++, 4.2.1); the outcome is 1 or 0."""
    return template.render(Inputs(question, answers=(Answer(question.query_id, "", answer),), items=tuple(gold)))


def _whole(grade: float) -> int:
    """The nearest whole number, a half downwards: the mean of several samples may be a fraction."""
    return math.ceil(grade - 0.5)
