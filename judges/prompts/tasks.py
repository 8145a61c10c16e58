"""Builds the prompt of each task, with the texts that it shows and the contract of its reply."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from judges.errors import PromptError
from judges.prompts import RATINGS, PromptTemplate, whole_numbers
from judges.types import AnnotatedDocument, Answer, Document, Inputs, ListRule, Outcome, Prompt, Query, ReplyContract
from judges.writing import estimated_tokens

_ITEM = "item_{}"

Need: TypeAlias = Literal["documents", "reference"]
"""An input without which an answer is not graded by a criterion: retrieved documents, or the query's reference
answer."""


class ReferenceOptions(Struct, frozen=True):
    """Which documents a judge of answers sees, and how (RAGElo paper, appendix A.2).

    Attributes:
        include: whether to show documents at all.
        annotations: whether to show the relevance judge's reason with each document.
        threshold: lowest relevance label of the documents shown; documents without a label are always shown.
        ranked: whether to keep the order of the agent's ranking; by default the highest label comes first.
    """

    include: bool = True
    annotations: bool = True
    threshold: int = 2
    ranked: bool = False


DEFAULT_REFERENCES = ReferenceOptions()


class PairwiseOptions(Struct, frozen=True):
    """The options of the pairwise judge, which says which of two answers is better.

    Attributes:
        citations: whether the answers cite documents and the judge should check the citations.
        factors: the user's instructions on what to weigh; empty for the prompt's default.
    """

    references: ReferenceOptions = DEFAULT_REFERENCES
    citations: bool = False
    factors: str = ""

    @property
    def checks_citations(self) -> bool:
        """Whether the judge checks citations: this is set, and the prompt shows documents with numbers to cite."""
        return self.citations and self.references.include


class Criterion(Struct, frozen=True):
    """A criterion by which answers are graded.

    Attributes:
        description: what the criterion means, shown in the prompt.
        levels: the grades with their meanings, from the lowest on, shown in the prompt.
        needs: inputs that the criterion requires; answers without them are not graded by it.
    """

    name: str
    description: str = ""
    levels: tuple[tuple[int, str], ...] = ()
    needs: tuple[Need, ...] = ()

    def left_out(self, graded: int, answers: int) -> str:
        """A note on how many answers the criterion graded, and which input the others lack; empty if it graded all."""
        if graded >= answers or not self.needs:
            return ""
        lack = " or ".join({"documents": "documents", "reference": "a reference"}[need] for need in self.needs)
        return f"{self.name} grades {graded:,} of {answers:,} answers; the others lack {lack}"


ANCHORED_CRITERIA = tuple(
    Criterion(name, description, tuple(enumerate(levels)))
    for name, description, *levels in (
        (
            "relevance",
            "the answer addresses what was asked",
            "it speaks of something else than what was asked",
            "it speaks to a part of what was asked, or mixes that with other matters",
            "it speaks to all that was asked",
        ),
        (
            "accuracy",
            "what the answer says is true, as far as the documents show",
            "what matters in it is wrong, or the documents contradict it",
            "some of its claims hold and others do not",
            "every claim in it holds",
        ),
        (
            "completeness",
            "the answer holds all that is needed to settle the question",
            "it leaves the question open",
            "it settles some of the question and leaves the rest open",
            "it settles the whole question; nothing that is needed is missing",
        ),
        (
            "precision",
            "the answer is about exactly the product, thing or case that was asked about",
            "it is about another product, thing or case",
            "it is about one of the same kind or family, but not the very one",
            "it is about the very one that was asked about",
        ),
    )
)
"""The four criteria of the RAGElo paper (section 5.1), each 0 to 2, with an anchor for each grade as in its appendix
A.2, reworded."""

DEFAULT_CRITERIA = tuple(replace(criterion, levels=()) for criterion in ANCHORED_CRITERIA)
"""The criteria of ``ANCHORED_CRITERIA`` with their descriptions, but without the meanings of the single grades."""

CITATION_QUALITY = "citation_quality"
"""The criterion by which citations are checked. In its prompt, answers cite documents by their numbers there."""

NAMED_CRITERIA = (
    next(criterion for criterion in ANCHORED_CRITERIA if criterion.name == "completeness"),
    Criterion(
        "faithfulness",
        "what the answer claims follows from the documents shown; they alone count here, not what you know nor what a "
        "reference answer says, and an answer without any claim is faithful",
        (
            (0, "what matters in it is not in the documents, or they contradict it"),
            (1, "some of its claims follow from the documents and others do not"),
            (2, "every claim in it follows from the documents"),
        ),
        ("documents",),
    ),
    Criterion(
        "answer_relevance",
        "the answer speaks to what was asked and to nothing else; whether it is true does not count here",
        (
            (0, "it speaks of something else, or gives no answer"),
            (1, "it speaks to a part of what was asked, or adds much that nobody asked for"),
            (2, "it speaks to all that was asked and keeps to it"),
        ),
    ),
    Criterion(
        CITATION_QUALITY,
        "the answer says where its claims come from, and rightly so; [1] in it stands for Document 1, [2] for Document "
        "2 and so on",
        (
            (0, "it cites nothing, or most of the documents cited do not say what they are cited for"),
            (1, "some claims have no citation, or cite a document that does not say so"),
            (2, "every claim cites a document, and each document cited says what it is cited for"),
        ),
        ("documents",),
    ),
    Criterion(
        "correctness",
        "the answer says what the reference answer says, which counts as right; other words, another order and further "
        "detail that does not contradict it make no difference",
        (
            (0, "it contradicts the reference in what was asked, or says nothing of what the reference says"),
            (1, "it says a part of what the reference says, or contradicts it in a detail"),
            (2, "it says all that the reference says on the question, and contradicts none of it"),
        ),
        ("reference",),
    ),
)
"""Predefined criteria, selected by name, each 0 to 2. The names have the meanings of RAGAS (Es et al. 2023, arXiv
2309.15217); citations as in ALCE (Gao et al. 2023, arXiv 2305.14627)."""


def relevance_prompt(template: PromptTemplate, query: Query, document: Document) -> Prompt:
    """Ask for the relevance of ``document`` to ``query`` (RAGElo paper, appendix A.1)."""
    return template.render(Inputs(query, documents=(AnnotatedDocument(document),)))


def references(documents: Sequence[AnnotatedDocument], options: ReferenceOptions) -> tuple[AnnotatedDocument, ...]:
    """The documents to show to a judge of answers, filtered by label and sorted as ``options`` say.

    The order is fixed, so that equal inputs give equal prompts.
    """
    if not options.include:
        return ()
    shown = [entry for entry in documents if entry.label is None or entry.label >= options.threshold]
    if options.ranked:
        return tuple(shown)
    return tuple(sorted(shown, key=lambda entry: (-(entry.label or 0), entry.document.doc_id)))


def best_references(
    documents: Sequence[AnnotatedDocument], options: ReferenceOptions, ranks: Mapping[str, int], tokens: int
) -> list[AnnotatedDocument]:
    """The best of the documents to show, as many as fit into ``tokens`` as estimated, and at least one.

    Best are those with the highest label; among equal labels, those with the best of ``ranks``, by document id.
    """

    def place(entry: AnnotatedDocument) -> tuple[int, int, str]:
        return -(entry.label or 0), ranks[entry.document.doc_id], entry.document.doc_id

    best = sorted(references(documents, options), key=place)
    texts = (entry.document.text + (entry.reason if options.annotations else "") for entry in best)
    most = sum(total <= tokens for total in accumulate(map(estimated_tokens, texts)))
    return best[: max(1, most)]


def pairwise_prompt(
    template: PromptTemplate,
    query: Query,
    answers: tuple[Answer, Answer],
    documents: Sequence[AnnotatedDocument] = (),
    options: PairwiseOptions | None = None,
) -> Prompt:
    """Ask which of two answers is better; the first is shown as A, the second as B."""
    options = options or PairwiseOptions()
    return template.render(
        Inputs(query, references(documents, options.references), answers),
        annotations=options.references.annotations,
        citations=options.citations,
        factors=options.factors,
    )


def criteria_prompt(
    template: PromptTemplate,
    query: Query,
    answer: Answer,
    documents: Sequence[AnnotatedDocument] = (),
    *,
    criteria: Sequence[Criterion] = DEFAULT_CRITERIA,
    scale: tuple[int, int] = (0, 2),
    options: ReferenceOptions = DEFAULT_REFERENCES,
) -> Prompt:
    """Ask for one whole number on ``scale`` (both ends included) per criterion.

    Raises:
        PromptError: a criterion has the same name as the reply's field for the explanation, or the template fails.
    """
    reason, (lowest, highest) = template.reply.reason, scale
    if reason in (criterion.name for criterion in criteria):
        raise PromptError(
            f"criteria: the prompt uses {reason!r} for the judge's explanation; give the criterion another name"
        )
    grades = whole_numbers(lowest, highest)
    return template.render(
        Inputs(query, references(documents, options), (answer,)),
        contract=ReplyContract(reason, {criterion.name: grades for criterion in criteria}),
        annotations=options.annotations,
        criteria=criteria,
        scale={"min": lowest, "max": highest},
    )


def extraction_prompt(template: PromptTemplate, question: Query, passage: Document | Answer) -> Prompt:
    """Ask for the answer to ``question`` in ``passage`` (EXAM++ paper, section 4.2.1).

    The outcome is the answer's text; the empty text stands for "unanswerable from this passage".
    """
    return template.render(_with_passage(question, passage))


def questions_prompt(template: PromptTemplate, query: Query, number: int, subtopic: str = "") -> Prompt:
    """Ask for ``number`` questions or nuggets on a query, or on one subtopic of it (EXAM++, 4.1.1; workbench, 4.1).

    The outcome is the tuple of their texts.
    """
    contract = _list_contract(template, fewest=number, most=number, leeway="fewer")
    return template.render(Inputs(query), contract=contract, subtopic=subtopic)


def grading_prompt(template: PromptTemplate, query: Query, passage: Document, items: Sequence[str]) -> Prompt:
    """Ask how well a passage answers questions or covers nuggets (items), 0 to 5 each (EXAM++, 4.2.2).

    For one item the template's own reply contract applies. For several, the reply is one JSON object with a rating for
    each item: this costs fewer tokens, but the items may influence each other's ratings.
    """
    inputs = Inputs(query, (AnnotatedDocument(passage),), items=tuple(items))
    if len(inputs.items) == 1:
        return template.render(inputs)
    ratings = {_ITEM.format(number): RATINGS for number in range(1, len(inputs.items) + 1)}
    reason = template.reply.reason if template.reply.form == "json" else ""
    return template.render(inputs, contract=ReplyContract(reason, ratings))


def grades_of(outcome: Outcome, number: int) -> tuple[int, ...]:
    """The grades that a judge of passages gave, in the order of the test items in its prompt.

    A mean over samples is rounded to the nearest whole number, halves down.

    Raises:
        TypeError: the outcome is that of another task.
    """
    if isinstance(outcome, int) and number == 1:
        return (outcome,)
    items = range(1, number + 1)
    values = [outcome.get(_ITEM.format(item)) for item in items] if isinstance(outcome, Mapping) else [outcome]
    grades = tuple(math.ceil(value - 0.5) for value in values if isinstance(value, int | float))
    if len(grades) < number:
        raise TypeError(f"{outcome!r} does not hold {number} grades")
    return grades


def answer_check_prompt(template: PromptTemplate, question: Query, gold: Sequence[str], answer: str) -> Prompt:
    """Ask whether ``answer`` agrees with one of the ``gold`` answers (EXAM++, 4.2.1); the outcome is 1 or 0."""
    return template.render(Inputs(question, answers=(Answer(question.query_id, "", answer),), items=tuple(gold)))


def creation_prompt(
    template: PromptTemplate, query: Query, documents: Sequence[Document], so_far: Sequence[str], most: int
) -> Prompt:
    """Ask for a list of at most ``most`` nuggets, updated with these documents (AutoNuggetizer paper, figure 3).

    ``so_far`` is the list to update. If it is not empty, the reply's list must not be empty either.
    """
    contract = _list_contract(template, fewest=1 if so_far else 0, most=most, leeway="more")
    inputs = Inputs(query, documents=tuple(map(AnnotatedDocument, documents)), items=tuple(so_far))
    return template.render(inputs, contract=contract, most=most)


def importance_prompt(template: PromptTemplate, query: Query, nuggets: Sequence[str]) -> Prompt:
    """Ask how important each nugget is; the outcome is one label per nugget (AutoNuggetizer paper, figure 4)."""
    return _labels_prompt(template, Inputs(query, items=tuple(nuggets)))


def assignment_prompt(
    template: PromptTemplate, query: Query, shown: Answer | Document, nuggets: Sequence[str]
) -> Prompt:
    """Ask how far an answer or a passage states each nugget; one label per nugget (AutoNuggetizer paper, figure 5)."""
    return _labels_prompt(template, replace(_with_passage(query, shown), items=tuple(nuggets)))


def queries_prompt(template: PromptTemplate, passage: Document, most: int, examples: Sequence[str] = ()) -> Prompt:
    """Ask for at most ``most`` queries that the passage answers, possibly none (RAGElo paper, section 4).

    The outcome is the tuple of their texts. ``examples`` are experts' queries, whose style the judge should follow.
    """
    inputs = Inputs(Query(passage.doc_id, ""), (AnnotatedDocument(passage),), items=tuple(examples))
    return template.render(inputs, contract=_list_contract(template, fewest=0, most=most))


def answerable_prompt(template: PromptTemplate, query: Query, passages: Sequence[Document]) -> Prompt:
    """Ask whether the passages answer the query; the outcome is 1 or 0."""
    return template.render(Inputs(query, tuple(map(AnnotatedDocument, passages))))


def _with_passage(query: Query, passage: Document | Answer) -> Inputs:
    if isinstance(passage, Answer):
        return Inputs(query, answers=(passage,))
    return Inputs(query, documents=(AnnotatedDocument(passage),))


def _list_contract(
    template: PromptTemplate, *, fewest: int, most: int, leeway: Literal["", "fewer", "more"] = ""
) -> ReplyContract:
    contract = template.reply.contract
    assert contract.listed is not None
    return replace(contract, listed=ListRule(contract.listed.name, fewest, most, leeway))


def _labels_prompt(template: PromptTemplate, inputs: Inputs) -> Prompt:
    return template.render(inputs, contract=replace(template.reply.contract, length=len(inputs.items)))
