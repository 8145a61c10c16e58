"""The nugget judge: facts that answers are held against, how much each matters, and which of them an answer states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judges.prompts import PromptTemplate
from judges.types import AnnotatedDocument, Answer, Document, Inputs, ListRule, Prompt, Query


def creation_prompt(
    template: PromptTemplate, query: Query, documents: Sequence[Document], so_far: Sequence[str], most: int
) -> Prompt:
    """Ask for the list of nuggets as it is after these documents (AutoNuggetizer paper, figure 3).

    Args:
        template: of task ``NUGGETS``.
        query: the query.
        documents: those of one turn.
        so_far: the list after the turn before; once it holds something, so must the reply.
        most: nuggets that the list may have.
    """
    contract = template.reply.contract()
    assert contract.listed is not None
    rule = ListRule(contract.listed.name, fewest=1 if so_far else 0, most=most, leeway="more")
    inputs = Inputs(query, documents=tuple(map(AnnotatedDocument, documents)))
    return template.render(inputs, contract=replace(contract, listed=rule), items=so_far, most=most)


def importance_prompt(template: PromptTemplate, query: Query, nuggets: Sequence[str]) -> Prompt:
    """Ask for one importance per nugget, in their order (AutoNuggetizer paper, figure 4)."""
    return _labels_prompt(template, Inputs(query, items=tuple(nuggets)))


def assignment_prompt(template: PromptTemplate, query: Query, answer: Answer, nuggets: Sequence[str]) -> Prompt:
    """Ask how far the answer states each nugget, in their order (AutoNuggetizer paper, figure 5)."""
    return _labels_prompt(template, Inputs(query, answers=(answer,), items=tuple(nuggets)))


def passage_assignment_prompt(
    template: PromptTemplate, query: Query, document: Document, nuggets: Sequence[str]
) -> Prompt:
    """Ask how far a retrieved passage states each nugget, in their order (AutoNuggetizer paper, figure 5)."""
    return _labels_prompt(template, Inputs(query, documents=(AnnotatedDocument(document),), items=tuple(nuggets)))


def _labels_prompt(template: PromptTemplate, inputs: Inputs) -> Prompt:
    contract = replace(template.reply.contract(), length=len(inputs.items))
    return template.render(inputs, contract=contract, items=inputs.items)
