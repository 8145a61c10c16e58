"""The reference systems of Rackauckas et al. (2024), naive RAG and RAG-Fusion, and a baseline without retrieval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from judges.errors import ProviderError
from judges.identity import judgment_id
from judges.judge import Judge, Request
from judges.prompts import PromptTemplate
from judges.types import AnnotatedDocument, Document, Inputs, Judgment, ListRule, Outcome, Prompt, Query
from retrieval_eval.agents.ranking import (
    FUSED_DEPTH,
    RRF_K,
    Bm25Index,
    Hit,
    InverseDocumentFrequency,
    reciprocal_rank_fusion,
    terms,
)
from retrieval_eval.agents.retrieval import Retriever, searched
from retrieval_eval.agents.types import Meter, ReplyOrFailure, RetrievedText, cited_numbers
from retrieval_eval.documents.passages import sentences


class WrittenAnswer(Struct, frozen=True):
    """The text of an answer, and the numbers (from 1) of the passages that it cites."""

    text: str
    cited: tuple[int, ...] = ()


Generator: TypeAlias = Callable[[Query, Sequence[Document], Meter], Awaitable[WrittenAnswer]]
"""Function that writes an answer to a query from passages (best first) and adds its costs to the meter. Raises
``ProviderError``."""
Rewriter: TypeAlias = Callable[[Query, Meter], Awaitable[list[str]]]
"""Function that writes further search queries for a query, not including the query itself. Raises ``ProviderError``."""


class RagAgent(Struct, frozen=True):
    """Naive RAG: retrieves once, then generates an answer from the best passages. With a rewriter, RAG-Fusion.

    Rackauckas et al. (2024) describe naive RAG in section 6.2 and RAG-Fusion in section 3. RAG-Fusion retrieves for the
    question and for each further query, and merges the rankings. Without a retriever the agent is a baseline: a model
    writes an article, a page or an answer, like the generated systems of the Rubric-Grading Workbench (Farzi and Dietz
    2024, section 5). The generator sees the first ``passages`` of the ``depth`` retrieved documents.
    """

    name: str
    retriever: Retriever | None
    generate: Generator
    depth: int = 0
    passages: int = 0
    rewrite: Rewriter | None = None
    rrf_k: int = RRF_K
    identity: str = ""
    notes: tuple[str, ...] = ()

    async def reply(self, query: Query) -> ReplyOrFailure:
        meter = Meter()
        try:
            hits = [] if self.retriever is None else await self._hits(self.retriever, query, meter)
            shown = [hit.document for hit in hits[: self.passages]]
            written = await self.generate(query, shown, meter)
        except ProviderError as error:
            return meter.failure(error)
        documents = [
            RetrievedText(hit.document.doc_id, hit.document.text, rank, hit.score, hit.document.metadata)
            for rank, hit in enumerate(hits, start=1)
        ]
        return meter.reply(written.text, documents, [shown[number - 1].doc_id for number in written.cited])

    async def _hits(self, retriever: Retriever, query: Query, meter: Meter) -> list[Hit]:
        if self.rewrite is None:
            (hits,) = await retriever.retrieve([searched(query)], self.depth, meter)
            return hits
        questions = [searched(query), *await self.rewrite(query, meter)]
        rankings = await retriever.retrieve(questions, max(self.depth, FUSED_DEPTH), meter)
        with meter.timed():
            return reciprocal_rank_fusion(rankings, self.rrf_k)[: self.depth]

    async def close(self) -> None:
        """Close the retriever, which other agents may share; the caller closes the judge."""
        if self.retriever is not None:
            await self.retriever.close()


def by_model(judge: Judge, template: PromptTemplate) -> Generator:
    """A generator that uses a judge's model and an answering prompt, within the judge's limits, retries and budget."""

    async def generate(query: Query, passages: Sequence[Document], meter: Meter) -> WrittenAnswer:
        shown = tuple(AnnotatedDocument(passage) for passage in passages)
        text = str(await _ask(judge, template.render(Inputs(query, shown)), meter))
        return WrittenAnswer(text, cited_numbers(text, len(passages)))

    return generate


def offline(pick: Callable[[str, Sequence[Document]], WrittenAnswer]) -> Generator:

    async def generate(query: Query, passages: Sequence[Document], meter: Meter) -> WrittenAnswer:
        with meter.timed():
            return pick(searched(query), passages)

    return generate


def rewritten_by_model(judge: Judge, template: PromptTemplate, number: int) -> Rewriter:
    """A rewriter that asks a judge's model for ``number`` search queries (Rackauckas et al. 2024, section 3)."""
    contract = template.reply.contract
    assert contract.listed is not None  # every rewriting prompt has one
    exactly = replace(contract, listed=ListRule(contract.listed.name, number, number))

    async def rewrite(query: Query, meter: Meter) -> list[str]:
        outcome = await _ask(judge, template.render(Inputs(query), contract=exactly), meter)
        assert isinstance(outcome, tuple)  # the outcome of a list contract
        return list(outcome)

    return rewrite


def rewritten_offline(index: Bm25Index, number: int) -> Rewriter:
    """A rewriter without a model: expands the question with terms of each of the ``number`` best BM25 hits."""

    async def rewrite(query: Query, meter: Meter) -> list[str]:
        with meter.timed():
            return index.expanded(searched(query), number)

    return rewrite


async def _ask(judge: Judge, prompt: Prompt, meter: Meter) -> Outcome:
    request = Request(judgment_id(prompt, judge.provider.identity, by_name=judge.provider.judges_names), prompt)
    result = await judge.judge(request)
    if result is None:
        cause = "budget" if judge.budget_spent else "stopped"
        raise ProviderError(
            cause, f"no more requests are sent to judge {judge.name}{f': {judge.stopped}' if judge.stopped else ''}"
        )
    meter.count(result.usage, result.calls, result.cost_usd)
    if not isinstance(result, Judgment):
        meter.add_seconds(result.latency_s)
        raise ProviderError(result.cause, f"{judge.name}: {result.message}")
    if result.replied_s is None or result.called_s is None:
        meter.add_seconds(result.latency_s)
    else:
        meter.latency_s += result.replied_s
        meter.tried_s += result.called_s
    return result.outcome


class _Candidate(Struct, frozen=True):
    place: tuple[int, int]
    text: str
    terms: frozenset[str]
    relevance: float


class ExtractiveGenerator(Struct, frozen=True):
    """Picks sentences by maximal marginal relevance (Carbonell and Goldstein 1998, equation 1).

    A sentence is relevant if it shares terms with the question; terms in the title and neighbouring sentences have less
    weight. Terms are weighted by rarity; similarity to sentences already picked lowers a sentence's rank. The answer's
    sentences are in reading order: by rank of the passage, then by position in it.

    Attributes:
        idf: weight of each term, from the collection.
        max_sentences: most sentences of an answer.
        relevance_share: lambda of the equation; 1 ignores redundancy.
        context_share: share of a sentence's relevance that comes from its title and neighbouring sentences.
        cutoff: least relevance of a picked sentence, as a share of the best sentence's relevance.
    """

    idf: InverseDocumentFrequency
    max_sentences: int = 3
    relevance_share: float = 0.7
    context_share: float = 0.4
    cutoff: float = 0.35

    def generate(self, question: str, passages: Sequence[Document]) -> WrittenAnswer:
        """The picked sentences, joined by spaces, and their passages; an empty answer if there are no passages."""
        remaining = self._candidates(frozenset(terms(question)), passages)
        threshold = self.cutoff * max((candidate.relevance for candidate in remaining), default=0.0)
        remaining = [candidate for candidate in remaining if candidate.relevance >= threshold]
        picked: list[_Candidate] = []
        while remaining and len(picked) < self.max_sentences:
            # of equally good sentences the earlier one
            best = max(remaining, key=lambda each: (self._marginal(each, picked), -each.place[0], -each.place[1]))
            remaining.remove(best)
            picked.append(best)
        picked.sort(key=lambda candidate: candidate.place)
        cited = dict.fromkeys(candidate.place[0] + 1 for candidate in picked)
        return WrittenAnswer(" ".join(candidate.text for candidate in picked), tuple(cited))

    def _candidates(self, wanted: frozenset[str], passages: Sequence[Document]) -> list[_Candidate]:
        candidates: list[_Candidate] = []
        for rank, passage in enumerate(passages):
            texts = sentences(passage.text)
            term_sets = [frozenset(terms(text)) for text in texts]
            title = frozenset(terms(passage.metadata.get("title", "")))
            for position, text in enumerate(texts):
                if text.endswith(":"):  # introduces a list and means nothing without it
                    continue
                around = title.union(*term_sets[max(0, position - 1) : position + 2])
                relevance = self._relevance(wanted, term_sets[position], around)
                candidates.append(_Candidate((rank, position), text, term_sets[position], relevance))
        return candidates

    def _relevance(self, wanted: frozenset[str], held: frozenset[str], around: frozenset[str]) -> float:
        """Weighted share of the question's terms in the sentence, averaged with that in its title and neighbours."""
        total = self.idf.total(wanted)
        if total == 0:
            return 0.0
        in_sentence, in_context = self.idf.total(wanted & held), self.idf.total(wanted & around)
        return _rounded(((1 - self.context_share) * in_sentence + self.context_share * in_context) / total)

    def _marginal(self, candidate: _Candidate, picked: Sequence[_Candidate]) -> float:
        redundancy = max((self._similarity(candidate.terms, other.terms) for other in picked), default=0.0)
        return _rounded(self.relevance_share * candidate.relevance - (1 - self.relevance_share) * redundancy)

    def _similarity(self, left: frozenset[str], right: frozenset[str]) -> float:
        union = self.idf.total(left | right)
        return self.idf.total(left & right) / union if union else 0.0


def _rounded(value: float) -> float:
    """Round off the last bits, which differ between machines and must not decide between equally good sentences."""
    return round(value, 9)
