"""The reference systems of Rackauckas et al. (2024): naive RAG and RAG-Fusion. And a model without retrieval."""

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
from retrieval_eval.agents.json_replies import cited_numbers
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
from retrieval_eval.agents.types import Meter, ReplyOrFailure, RetrievedText
from retrieval_eval.documents.passages import sentences


class WrittenAnswer(Struct, frozen=True):
    """An answer, and which of the passages it cites, from 1; numbers that no passage has are left out."""

    text: str
    cited: tuple[int, ...] = ()


Generator: TypeAlias = Callable[[Query, Sequence[Document], Meter], Awaitable[WrittenAnswer]]
"""Writes an answer from passages, best first; what it took goes on the meter. Raises ``ProviderError``."""
Rewriter: TypeAlias = Callable[[Query, Meter], Awaitable[list[str]]]
"""Writes further search queries for a question, without the question itself. Raises ``ProviderError``."""


class RagAgent(Struct, frozen=True):
    """Naive RAG: retrieve once, then generate from the best passages (section 6.2). With a rewriter, RAG-Fusion.

    RAG-Fusion retrieves for the question and for each further query, and merges the rankings (section 3). Without a
    retriever it is a baseline, a model that is asked for an article, a page or an answer, after the generated systems
    of the Rubric-Grading Workbench (Farzi and Dietz 2024, section 5).

    Attributes:
        depth: documents that are retrieved.
        passages: of those, how many the generator sees.
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
        """Answer one query."""
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
        """Release what it searches, which other agents may share; the judge is its owner's to close."""
        if self.retriever is not None:
            await self.retriever.close()


def by_model(judge: Judge, template: PromptTemplate) -> Generator:
    """A judge's model with an answering prompt; it keeps the judge's limits, attempts and budget."""

    async def generate(query: Query, passages: Sequence[Document], meter: Meter) -> WrittenAnswer:
        shown = tuple(AnnotatedDocument(passage) for passage in passages)
        text = str(await _ask(judge, template.render(Inputs(query, shown)), meter))
        return WrittenAnswer(text, cited_numbers(text, len(passages)))

    return generate


def offline(pick: Callable[[str, Sequence[Document]], WrittenAnswer]) -> Generator:
    """A generator that asks nobody, by a function of question and passages."""

    async def generate(query: Query, passages: Sequence[Document], meter: Meter) -> WrittenAnswer:
        with meter.timed():
            return pick(searched(query), passages)

    return generate


def rewritten_by_model(judge: Judge, template: PromptTemplate, number: int) -> Rewriter:
    """A judge's model with a rewriting prompt, for ``number`` further queries (Rackauckas et al. 2024, section 3)."""
    contract = template.reply.contract
    assert contract.listed is not None  # of every rewriting prompt
    exactly = replace(contract, listed=ListRule(contract.listed.name, number, number))

    async def rewrite(query: Query, meter: Meter) -> list[str]:
        outcome = await _ask(judge, template.render(Inputs(query), contract=exactly), meter)
        assert isinstance(outcome, tuple)  # of every list
        return list(outcome)

    return rewrite


def rewritten_offline(index: Bm25Index, number: int) -> Rewriter:
    """Further queries without a model, one for each of the first passages; fewer where fewer are found."""

    async def rewrite(query: Query, meter: Meter) -> list[str]:
        with meter.timed():
            return index.expanded(searched(query), number)

    return rewrite


async def _ask(judge: Judge, prompt: Prompt, meter: Meter) -> Outcome:
    """What the judge's model replies; what it took goes on the meter.

    Raises:
        ProviderError: it failed, or it is not asked any more.
    """
    request = Request(judgment_id(prompt, judge.provider.identity, by_name=judge.provider.judges_names), prompt)
    result = await judge.judge(request)
    if result is None:
        cause = "budget" if judge.budget_spent else "stopped"
        raise ProviderError(cause, f"{judge.name} is not asked any more{f': {judge.stopped}' if judge.stopped else ''}")
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
    """A sentence, its terms, and how well it fits the question."""

    place: tuple[int, int]
    text: str
    terms: frozenset[str]
    relevance: float


class ExtractiveGenerator(Struct, frozen=True):
    """Picks sentences by maximal marginal relevance (Carbonell and Goldstein 1998, equation 1).

    A sentence is relevant by the question's terms that it holds, and to a lesser degree by those that its title and
    neighbours hold, each weighted by rarity; a sentence that says again what was picked before loses. The
    sentences are given in reading order: by the rank of their passage, then as in the passage.

    Attributes:
        idf: weight of each term, from the collection.
        max_sentences: length of an answer.
        relevance_share: the lambda of the equation; 1 ignores redundancy.
        context_share: how much of a sentence's relevance comes from its surroundings.
        cutoff: a sentence below this share of the best sentence's relevance is never picked.
    """

    idf: InverseDocumentFrequency
    max_sentences: int = 3
    relevance_share: float = 0.7
    context_share: float = 0.4
    cutoff: float = 0.35

    def generate(self, question: str, passages: Sequence[Document]) -> WrittenAnswer:
        """The picked sentences, separated by spaces, and the passages that they stand in; empty without passages."""
        remaining = self._candidates(frozenset(terms(question)), passages)
        least = self.cutoff * max((candidate.relevance for candidate in remaining), default=0.0)
        remaining = [candidate for candidate in remaining if candidate.relevance >= least]
        picked: list[_Candidate] = []
        while remaining and len(picked) < self.max_sentences:
            best = max(remaining, key=lambda candidate: (self._marginal(candidate, picked), _earliest(candidate)))
            remaining.remove(best)
            picked.append(best)
        picked.sort(key=lambda candidate: candidate.place)
        cited = dict.fromkeys(candidate.place[0] + 1 for candidate in picked)
        return WrittenAnswer(" ".join(candidate.text for candidate in picked), tuple(cited))

    def _candidates(self, wanted: frozenset[str], passages: Sequence[Document]) -> list[_Candidate]:
        found: list[_Candidate] = []
        for rank, passage in enumerate(passages):
            texts = sentences(passage.text)
            held = [frozenset(terms(text)) for text in texts]
            title = frozenset(terms(passage.metadata.get("title", "")))
            for position, text in enumerate(texts):
                if text.endswith(":"):  # announces a list and says nothing without it
                    continue
                around = title.union(*held[max(0, position - 1) : position + 2])
                relevance = self._relevance(wanted, held[position], around)
                found.append(_Candidate((rank, position), text, held[position], relevance))
        return found

    def _relevance(self, wanted: frozenset[str], held: frozenset[str], around: frozenset[str]) -> float:
        """Share of the question's weight in the sentence and, discounted, in its surroundings."""
        total = self.idf.total(wanted)
        if total == 0:
            return 0.0
        own, context = self.idf.total(wanted & held), self.idf.total(wanted & around)
        return _rounded(((1 - self.context_share) * own + self.context_share * context) / total)

    def _marginal(self, candidate: _Candidate, picked: Sequence[_Candidate]) -> float:
        redundancy = max((self._similarity(candidate.terms, other.terms) for other in picked), default=0.0)
        return _rounded(self.relevance_share * candidate.relevance - (1 - self.relevance_share) * redundancy)

    def _similarity(self, left: frozenset[str], right: frozenset[str]) -> float:
        union = self.idf.total(left | right)
        return self.idf.total(left & right) / union if union else 0.0


def _rounded(value: float) -> float:
    """Without the last bits, which differ between machines and would decide between equal sentences."""
    return round(value, 9)


def _earliest(candidate: _Candidate) -> tuple[int, int]:
    """A key by which the earlier of two equally good sentences is the greater."""
    return (-candidate.place[0], -candidate.place[1])
