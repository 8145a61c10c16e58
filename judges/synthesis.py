"""The judges of synthetic queries: one writes them about a passage, one says whether the passage answers a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judges.prompts import PromptTemplate
from judges.types import AnnotatedDocument, Document, Inputs, ListRule, Prompt, Query


def queries_prompt(template: PromptTemplate, passage: Document, most: int, examples: Sequence[str] = ()) -> Prompt:
    """Ask for queries that the passage answers, ``most`` at most and none if it holds nothing to ask for (004, 4).

    The outcome is the tuple of their texts. ``examples`` are experts' queries, whose manner is to be met.
    """
    contract = template.reply.contract()
    assert contract.listed is not None
    inputs = Inputs(Query(passage.doc_id, ""), (AnnotatedDocument(passage),), items=tuple(examples))
    return template.render(inputs, contract=replace(contract, listed=ListRule(contract.listed.name, 0, most)))


def answerable_prompt(template: PromptTemplate, query: Query, passage: Document) -> Prompt:
    """Ask whether the passage answers the query; the outcome is 1 or 0."""
    return template.render(Inputs(query, (AnnotatedDocument(passage),)))
