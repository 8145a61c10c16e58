"""What writes an agent's answer from passages: a model, or nothing but the passages' own sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from judges.account import Request
from judges.errors import ProviderError
from judges.identity import judgment_id
from judges.judge import Judge
from judges.prompts import PromptTemplate
from judges.types import AnnotatedDocument, Document, Inputs, Judgment, ListRule, Outcome, Prompt, Query
from retrieval_eval.agents.meter import Meter

_CITED = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, and which of the passages it cites, from 1; numbers that no passage has are left out."""

    text: str
    cited: tuple[int, ...] = ()


class Generator(Protocol):
    """Writes answers."""

    async def answer(self, query: Query, passages: Sequence[Document], meter: Meter) -> Written:
        """An answer from passages, best first; what it took goes on the meter.

        Raises:
            ProviderError: there is no answer.
        """
        ...


class Picker(Protocol):
    """Writes an answer at once, without asking anybody."""

    def generate(self, question: str, passages: Sequence[Document]) -> Written:
        """An answer from passages that are given best first; empty if they hold none."""
        ...


@dataclass(frozen=True, slots=True)
class OfflineGenerator:
    """A picker as a generator."""

    picker: Picker

    async def answer(self, query: Query, passages: Sequence[Document], meter: Meter) -> Written:
        """An answer from passages."""
        with meter.timed():
            return self.picker.generate(query.text, passages)


@dataclass(frozen=True, slots=True)
class ModelGenerator:
    """A judge's model with an answering prompt; it keeps the judge's limits, attempts and budget."""

    judge: Judge
    template: PromptTemplate

    async def answer(self, query: Query, passages: Sequence[Document], meter: Meter) -> Written:
        """Ask once, again where the call was in vain."""
        shown = tuple(AnnotatedDocument(passage) for passage in passages)
        text = str(await ask(self.judge, self.template.render(Inputs(query, shown)), meter))
        return Written(text, cited_numbers(text, len(passages)))


async def ask(judge: Judge, prompt: Prompt, meter: Meter) -> Outcome:
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


@dataclass(frozen=True, slots=True)
class ModelRewriter:
    """A judge's model with a rewriting prompt, for ``number`` further queries (Rackauckas et al. 2024, section 3)."""

    judge: Judge
    template: PromptTemplate
    number: int

    async def queries(self, query: Query, meter: Meter) -> list[str]:
        """The further queries.

        Raises:
            ProviderError: as ``ask``.
        """
        contract = self.template.reply.contract()
        assert contract.listed is not None  # of every rewriting prompt
        rule = ListRule(contract.listed.name, self.number, self.number)
        outcome = await ask(
            self.judge, self.template.render(Inputs(query), contract=replace(contract, listed=rule)), meter
        )
        assert isinstance(outcome, tuple)  # of every list
        return list(outcome)


def cited_numbers(text: str, passages: int) -> tuple[int, ...]:
    """The passages that an answer cites as ``[1]`` or ``[1, 3]``, each once, by first mention.

    Args:
        text: the answer.
        passages: how many there are; a higher number cites nothing.
    """
    numbers = (int(number) for group in _CITED.findall(text) for number in re.split(r"\s*[,;]\s*", group))
    return tuple(dict.fromkeys(number for number in numbers if 1 <= number <= passages))
