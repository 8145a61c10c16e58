"""What a run would ask, and what that would cost. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arena.agents.plan import PlannedAgent, agent_notes, plan_agents
from arena.config import Config
from arena.dataset import Dataset
from arena.executors import runs_on_workers, with_all_workers
from arena.nuggets.lists import to_be_asked
from arena.nuggets.plan import walk_nuggets
from arena.prompting import Labels, Prompting
from arena.samples import document_labels
from arena.store import IDENTICAL, Result, Store, Wanted, chunks, missing
from arena.tournament import load_data
from judges.errors import InputError
from judges.identity import judgment_id
from judges.pricing import FREE, list_checked, price_of
from judges.providers import Provider, open_provider
from judges.types import Answer, Prompt, Task

CHARACTERS_PER_TOKEN = 4.0
"""Rule of thumb for English text and current tokenizers; other languages and code take more tokens."""
SECONDS_PER_CALL = 2.0
"""Assumed latency of one call, to turn calls into time."""

_CHUNK = 256
_OF_ANSWERS = frozenset({Task.PAIRWISE, Task.CRITERIA})


@dataclass(slots=True)
class PlannedCalls:
    """One judge's part in one stage.

    Attributes:
        wanted: judgments the tournament needs.
        known: of these, already in the store or the same as another one of the plan.
        identical: games of equal answers, ties without a call.
        calls: what a run would send, if every reply is right at once.
        input_tokens: estimate from the rendered prompts, ``CHARACTERS_PER_TOKEN``.
        output_tokens: estimate from the prompt's typical reply.
        cost_usd: for both at the judge's price without any caching; ``None`` where the price is not known.
        seconds: at ``SECONDS_PER_CALL`` and the judge's concurrency; ``None`` for a local model.
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


@dataclass(frozen=True, slots=True)
class Plan:
    """All stages, and the agents that are asked before them; ``notes`` say what the figures assume."""

    rows: list[PlannedCalls]
    notes: list[str]
    agents: list[PlannedAgent] = field(default_factory=list)

    @property
    def cost_usd(self) -> float | None:
        """The sum, ``None`` as soon as one price is not known."""
        costs = [row.cost_usd for row in self.rows if row.calls]
        costs += [row.cost_usd for row in self.agents if row.calls != 0]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


def plan(config: Config) -> Plan:
    """Render every prompt that a run would send and count.

    Raises:
        InputError: data or prompts cannot be used.
    """
    agents, opened = plan_agents(config) if config.agents else ([], None)
    data = load_data(config, None if opened is None else opened.declared)
    prompting = Prompting(config, data, assume_relevant=True)
    prompting.check()
    notes = [
        f"tokens are estimated at {CHARACTERS_PER_TOKEN:g} characters each, time at {SECONDS_PER_CALL:g} s per call",
        "replies outside their contract are asked again, and attempts repeated, on top of this",
    ]
    store = _existing(config)
    providers = {name: _provider(config, name, notes) for name in config.judges_in_use()}
    if store is not None:
        prompting.labels = _known_labels(prompting, providers, store)
        if prompting.exam is not None:
            prompting.exam.keep_groups(store, config.name)
        _take_known(prompting, providers, store)
    if _guesses_documents(config, prompting):
        notes.append("answer judges' prompts count every document not labelled yet as relevant: an upper bound")
    if prompting.exam is not None and any(map(prompting.releases, prompting.exam.tasks())):
        notes.append(
            "exam items that are not written yet count as many and as long as usual, and all answers as checked"
        )
    if prompting.adaptive_games() is not None:
        notes.append("an adaptive schedule stops as soon as its question is decided: an upper bound")
    if prompting.nuggets is not None and prompting.nuggets.reads_documents:
        notes.append("nuggets that are not made yet count as many and as long as they may be: an upper bound")
    rows = _rows(config, prompting, providers, store, notes)
    if store is not None:
        store.close()
    notes += [*_spread(config), *agent_notes(config, agents)]
    if config.synth is not None:
        notes.append("what models are asked to make queries is not counted; 'ragarena synth CONFIG' does that stage")
    if to_come := _to_come(config, data):
        notes.append(
            f"{to_come[0]} answers are still to come, and what judges will ask about them is not counted above: "
            f"{to_come[1]:,} more games and grades, and the documents that agents will have retrieved; "
            "'ragarena run CONFIG --stage agents', then plan again"
        )
    return Plan(rows, notes, agents)


def _to_come(config: Config, data: Dataset) -> tuple[int, int] | None:
    """How many answers agents owe, and how many judgments of answers that will make; ``None`` where none is owed."""
    owed = {
        (query_id, agent): Answer(query_id, agent, "")
        for query_id in data.queries
        for agent in config.agents
        if (query_id, agent) not in data.answers
    }
    if not owed:
        return None
    whole = Prompting(config, replace(data, answers={**data.answers, **owed}), assume_relevant=True)
    now = Prompting(config, data, assume_relevant=True)
    more = [sum(want.task in _OF_ANSWERS for want in each.wants()) for each in (whole, now)]
    return len(owed), more[0] - more[1]


def _known_labels(prompting: Prompting, providers: Mapping[str, Provider | None], store: Store) -> Labels:
    """The relevance results that a run would find: by what is judged now, not by what was wanted last time."""
    section = prompting.config.retrieval
    if section is None:
        return {}
    results: list[tuple[Wanted, Result | None]] = []
    wants = (want for want in prompting.wants() if want.task is Task.RELEVANCE)
    for chunk in chunks(wants, _CHUNK):
        prepared = list(_prepared(chunk, prompting, providers))
        known = store.results([ident for _, ident, _ in prepared if ident is not None])
        results += [(want, known.get(ident or "")) for want, ident, _ in prepared]
    how = {name: spec.combine for name, spec in prompting.config.judges.items()}
    return document_labels(results, how, section.combine)


def _take_known(prompting: Prompting, providers: Mapping[str, Provider | None], store: Store) -> None:
    """Let what the store knows release what a run would ask next."""
    for chunk in chunks((want for want in prompting.wants() if prompting.releases(want.task)), _CHUNK):
        prepared = list(_prepared(chunk, prompting, providers))
        known = store.results([ident for _, ident, _ in prepared if ident is not None])
        for want, ident, _ in prepared:
            if result := known.get(ident or ""):
                prompting.released(want, result)


def _guesses_documents(config: Config, prompting: Prompting) -> bool:
    """Whether answer prompts are rendered with documents whose labels are not known yet."""
    sections = [section for section in (config.pairwise, config.criteria) if section is not None]
    if config.retrieval is None or not any(section.documents.include for section in sections):
        return False
    documents = {(want.query_id, want.item) for want in prompting.wants() if want.task is Task.RELEVANCE}
    return any(prompting.labels.get(document) is None for document in documents)


def _existing(config: Config) -> Store | None:
    return None if missing(config.store) else Store.open(config.store)


def _rows(
    config: Config,
    prompting: Prompting,
    providers: Mapping[str, Provider | None],
    store: Store | None,
    notes: list[str],
) -> list[PlannedCalls]:
    rows: dict[tuple[Task, str], PlannedCalls] = {}
    planned: set[str] = set()

    def count(wants: Sequence[Wanted]) -> list[tuple[Wanted, str | None, Prompt | None, Result | None]]:
        """Count these wants, and return them with what is known of them."""
        prepared = list(_prepared(wants, prompting, providers))
        known = {} if store is None else store.results([ident for _, ident, _ in prepared if ident is not None])
        found = [(want, ident, prompt, known.get(ident or "")) for want, ident, prompt in prepared]
        for want, ident, prompt, result in found:
            row = rows.setdefault((want.task, want.judge), PlannedCalls(want.task, want.judge))
            row.wanted += 1
            if ident == IDENTICAL:
                row.identical += 1
            elif prompt is None or ident in planned or not to_be_asked(result):
                row.known += 1
            else:
                row.calls += 1
                row.input_tokens += round((len(prompt.system) + len(prompt.user)) / CHARACTERS_PER_TOKEN)
                row.output_tokens += prompting.typical_tokens(want)
                planned.update([] if ident is None else [ident])
        return found

    for chunk in chunks(prompting.wants(), _CHUNK):
        count(chunk)
    if prompting.nuggets is not None:
        walk_nuggets(prompting, prompting.nuggets, count)
    for row in rows.values():
        _price(row, config, notes)
    return list(rows.values())


def _prepared(
    wants: Sequence[Wanted], prompting: Prompting, providers: Mapping[str, Provider | None]
) -> Iterator[tuple[Wanted, str | None, Prompt | None]]:
    for want in wants:
        if (free := prompting.without_call(want)) is not None:
            yield want, free, None
            continue
        provider, prompt = providers[want.judge], prompting.prompt(want)
        ident = None
        if provider is not None and prompt is not None:
            ident = judgment_id(prompt, provider.identity, by_name=provider.judges_names)
        yield want, ident, prompt


def _provider(config: Config, name: str, notes: list[str]) -> Provider | None:
    try:
        return open_provider(config.judges[name])
    except InputError as error:
        notes.append(f"judge {name!r} cannot be opened, so nothing counts as known to it: {error}")
        return None


def _spread(config: Config) -> list[str]:
    """How many calls at once Ray's workers make, where there are any."""
    executor = config.executor
    specs = {name: config.judges[name] for name in config.judges_in_use()}
    calls = [
        f"{name} {with_all_workers(executor, spec).concurrency}"
        for name, spec in specs.items()
        if runs_on_workers(executor, spec)
    ]
    if not calls:
        return []
    return [f"on Ray each judge has {executor.workers} workers; calls at once of all together: {', '.join(calls)}"]


def _price(row: PlannedCalls, config: Config, notes: list[str]) -> None:
    spec = config.judges[row.judge]
    if spec.provider in {"openai", "anthropic"}:
        row.seconds = row.calls * SECONDS_PER_CALL / with_all_workers(config.executor, spec).concurrency
    elif spec.provider == "transformers":
        row.seconds = None
    price = price_of(spec)
    if price is None:
        row.cost_usd = None
        note = f"the price of judge {row.judge!r} is not known; declare 'price: {{input: ..., output: ...}}'"
        if note not in notes:
            notes.append(note)
        return
    if spec.price is None and price != FREE:
        note = f"prices are list prices as of {list_checked()}; declare 'price' where they have changed"
        if note not in notes:
            notes.append(note)
    row.cost_usd = (row.input_tokens * price.input + row.output_tokens * price.output) / 1e6
