"""Counts the calls of a run before it starts: goes through its stages, with placeholders for unknown results."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from arena.run.assigned import Assigned
from arena.stages.base import Stage
from arena.store import IDENTICAL, Result, Store, Wanted
from arena.store.batches import waiting as in_batches
from judges.errors import InputError, to_be_asked
from judges.identity import cache_key, judgment_id
from judges.providers import Provider, open_provider
from judges.spec import FREE, JudgeSpec, batch_share, cost_usd, list_checked, price_of
from judges.types import Prompt, Task, Usage
from judges.writing import estimated_tokens
from retrieval_eval.data.trec import read_recordings

SECONDS_PER_CALL = 2.0
"""Assumed latency of one call in seconds, for estimates of a run's duration."""

_CHUNK = 256


class PlannedCalls(Struct):
    """The planned calls of one judge in one stage.

    Attributes:
        known: number of judgments that are in the store already, or identical to another planned judgment.
        waiting: number of judgments requested in open batches, which are paid for already.
        identical: number of games between equal answers, which are ties without a call.
        calls: number of calls, without retries.
        input_tokens: number of tokens in the rendered prompts, see ``estimated_tokens``.
        output_tokens: number of tokens in typical replies to these prompts.
        cached_tokens: of the input tokens, those that the server is expected to read from its cache: the beginning that
            prompts share, except in the first of them.
        written_tokens: of the input tokens, those whose writing to the cache the vendor charges.
        cost_usd: cost at the judge's price; ``None`` if the price is unknown.
        seconds: duration at ``SECONDS_PER_CALL`` and the judge's concurrency; ``None`` for local models and batches.
    """

    task: Task
    judge: str
    wanted: int = 0
    known: int = 0
    identical: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float | None = 0.0
    waiting: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0


class Planner:
    """Counts the calls that a run would make, each judgment once; without a store, all judgments count as missing.

    Attributes:
        notes: sentences on what the figures assume or leave out.
        assigned: finds stored judgments by recorded ids, which saves rendering their prompts; optional.
    """

    def __init__(self, stages: Stage, judges: Mapping[str, JudgeSpec], store: Store | None) -> None:
        self.notes: list[str] = []
        self._stages, self._judges, self._store = stages, judges, store
        self._providers = {name: self._opened(name, spec) for name, spec in judges.items()}
        self._free = {judgment.judgment_id: judgment for _, _, judgment in stages.free_judgments()}
        self._rows: dict[tuple[Task, str], PlannedCalls] = {}
        self._planned: set[str] = set()
        self._begun: set[tuple[str, str]] = set()
        self.assigned: Assigned | None = None

    def walk(self, wants: Iterable[Wanted]) -> None:
        """Count these planned judgments, and the judgments that their results lead to.

        A judgment that is not stored yet gets the stage's placeholder as its result.
        """
        queue = deque(wants)
        while queue:
            chunk = [queue.popleft() for _ in range(min(_CHUNK, len(queue)))]
            for want, prompt, known in self.count(chunk):
                if self._stages.leads_on(want.task):
                    asked = prompt if to_be_asked(known) else None
                    result = known if asked is None else self._stages.stand_in(want, asked)
                    queue.extend(self._stages.after(want, result) if result is not None else ())

    def count(self, wants: Iterable[Wanted]) -> list[tuple[Wanted, Prompt | None, Result | None]]:
        """Count these planned judgments; returns each with its prompt and its stored result, as far as they exist."""
        wants = list(wants)
        judged = {} if self.assigned is None else self.assigned.judged(wants)
        prepared = list(self._prepared(want for want in wants if want not in judged))
        idents = [ident for _, ident, _ in prepared if ident is not None]
        known: dict[str, Result] = {}
        paid: Collection[str] = ()
        if self._store is not None:
            known = self._store.results(idents)
            paid = in_batches(self._store, [ident for ident in idents if to_be_asked(known.get(ident))])
        counted: list[tuple[Wanted, Prompt | None, Result | None]] = []
        for want, (judged_as, judgment) in judged.items():
            self._count(want, judged_as, None, judgment, paid)
            counted.append((want, None, judgment))
        for want, ident, prompt in prepared:
            result = known.get(ident or "") or self._free.get(ident or "")
            self._count(want, ident, prompt, result, paid)
            counted.append((want, prompt, result))
        return counted

    def _count(
        self, want: Wanted, ident: str | None, prompt: Prompt | None, known: Result | None, paid: Collection[str]
    ) -> None:
        row = self._rows.setdefault((want.task, want.judge), PlannedCalls(want.task, want.judge))
        row.wanted += 1
        if ident == IDENTICAL:
            row.identical += 1
        elif prompt is None or ident in self._planned or not to_be_asked(known):
            row.known += 1
        elif ident in paid:
            row.waiting += 1
            self._planned.add(ident or "")
        else:
            row.calls += 1
            row.input_tokens += round(estimated_tokens(prompt.system + prompt.user))
            row.output_tokens += self._stages.typical_tokens(want)
            self._count_cached(row, prompt)
            self._planned.update([] if ident is None else [ident])

    def _count_cached(self, row: PlannedCalls, prompt: Prompt) -> None:
        spec = self._judges[row.judge]
        if not (key := cache_key(prompt, spec)):
            return
        shared = round(estimated_tokens(prompt.beginning))
        if (row.judge, key) in self._begun:
            row.cached_tokens += shared
        elif spec.provider == "anthropic":
            row.written_tokens += shared
        self._begun.add((row.judge, key))

    def opened(self) -> Mapping[str, Provider] | None:
        """The opened provider of each judge; ``None`` if any judge cannot be opened."""
        opened = {name: provider for name, provider in self._providers.items() if provider is not None}
        return opened if len(opened) == len(self._providers) else None

    def rows(self) -> list[PlannedCalls]:
        """The counts of each stage and judge, with time and cost; adds notes on unknown prices to ``notes``."""
        for row in self._rows.values():
            self._price(row)
        return list(self._rows.values())

    def _prepared(self, wants: Iterable[Wanted]) -> Iterator[tuple[Wanted, str | None, Prompt | None]]:
        for want in wants:
            if (free := self._stages.free(want)) is not None:
                yield want, free, None
                continue
            provider, prompt = self._providers[want.judge], self._stages.prompt(want)
            ident = None
            if provider is not None and prompt is not None:
                ident = judgment_id(prompt, provider.identity, by_name=provider.judges_names)
            yield want, ident, prompt

    def _opened(self, name: str, spec: JudgeSpec) -> Provider | None:
        try:
            provider = open_provider(spec, read_recordings)
        except InputError as error:
            self._note(f"judge {name!r} cannot be opened, so its stored judgments are not counted: {error}")
            return None
        if lacking := getattr(provider, "lacking", ""):
            self._note(f"judge {name!r}: {lacking}")
        return provider

    def _price(self, row: PlannedCalls) -> None:
        spec = self._judges[row.judge]
        if row.waiting:
            self._note(
                f"{row.waiting:,} {row.task.value} requests of judge {row.judge!r} wait in batches that are paid for"
            )
        if spec.ignored_setting:
            self._note(f"judge {row.judge!r}: {spec.ignored_setting}")
        if spec.in_batches:
            row.seconds = None
            self._note(f"judge {row.judge!r} asks in batches: each takes up to a day, and replies may lead to another")
        elif spec.provider in {"openai", "anthropic"}:
            row.seconds = row.calls * SECONDS_PER_CALL / spec.concurrency
        elif spec.runs_here:
            row.seconds = None
        price = price_of(spec)
        if price is None:
            row.cost_usd = None
            self._note(f"the price of judge {row.judge!r} is not known; declare 'price: {{input: ..., output: ...}}'")
            return
        if spec.price is None and price != FREE:
            self._note(f"prices are list prices as of {list_checked()}; declare 'price' where they have changed")
            if spec.in_batches:
                self._note(f"in batches a token costs {batch_share():g} of its list price")
        usage = Usage(row.input_tokens, row.cached_tokens, row.output_tokens, row.written_tokens)
        row.cost_usd = cost_usd(usage, price)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
