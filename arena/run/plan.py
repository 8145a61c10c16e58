"""What a run would ask, and what that would cost. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from arena.config.whole import Config
from arena.data.dataset import Dataset
from arena.prompting import Labels, Prompting
from arena.run.executors import runs_on_workers, with_all_workers
from arena.run.planner import CHARACTERS_PER_TOKEN, SECONDS_PER_CALL, CallCounter, PlannedCalls
from arena.run.tournament import load_data
from arena.stages.answers.plan import PlannedAgent, agent_notes, plan_agents
from arena.stages.nuggets.plan import walk_nuggets
from arena.stages.queries.config import SynthConfig, of_tournament
from arena.stages.queries.plan import plan_synth
from arena.stages.samples import document_labels
from arena.store import Result, Store, Wanted, chunks, missing
from judges.spec import JudgeSpec
from judges.types import Answer, Task

_CHUNK = 256
_ASSUMED = (
    f"tokens are estimated at {CHARACTERS_PER_TOKEN:g} characters each, time at {SECONDS_PER_CALL:g} s per call",
    "replies outside their contract are asked again, and attempts repeated, on top of this",
)
_QUERIES_FIRST = (
    "what agents and judges will be asked about these queries is not counted: 'ragleague run CONFIG --stage synth', "
    "then plan again"
)
_OF_ANSWERS = frozenset({Task.PAIRWISE, Task.CRITERIA})


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
        InputError: documents, data or prompts cannot be used.
    """
    if config.synth is None:
        return _plan_tournament(config)
    made = plan_queries(of_tournament(config))
    if config.lacks_queries:
        return replace(made, notes=[*made.notes, _QUERIES_FIRST])
    rest = _plan_tournament(config)
    notes = [*made.notes, *rest.notes]
    if any(row.calls for row in made.rows):
        notes.append(f"agents and judges: of the queries in {config.synth.out}, which the calls above may change")
    return Plan([*made.rows, *rest.rows], list(dict.fromkeys(notes)), rest.agents)


def plan_queries(config: SynthConfig) -> Plan:
    """The same for a file that only makes queries.

    Raises:
        InputError: as ``plan_synth``.
    """
    rows, notes = plan_synth(config)
    return Plan(rows, [*_ASSUMED, *notes])


def _plan_tournament(config: Config) -> Plan:
    agents, opened = plan_agents(config) if config.agents else ([], None)
    data = load_data(config, None if opened is None else opened.declared)
    prompting = Prompting(config, data, assume_relevant=True)
    prompting.check()
    store = _existing(config)
    counter = CallCounter(prompting, _specs(config), store)
    if store is not None:
        prompting.labels = _known_labels(prompting, counter)
        if prompting.exam is not None:
            prompting.exam.keep_groups(store, config.name)
        _take_known(prompting, counter)
    notes = [*_ASSUMED, *_assumed(config, prompting)]
    for chunk in chunks(prompting.wants(), _CHUNK):
        counter.count(chunk)
    if prompting.nuggets is not None:
        walk_nuggets(prompting, prompting.nuggets, counter.count)
    if store is not None:
        store.close()
    rows = counter.rows()
    notes += [*counter.notes, *_spread(config), *agent_notes(config, agents)]
    if to_come := _to_come(config, data):
        notes.append(
            f"{to_come[0]} answers are still to come, and what judges will ask about them is not counted above: "
            f"{to_come[1]:,} more games and grades, and the documents that agents will have retrieved; "
            "'ragleague run CONFIG --stage agents', then plan again"
        )
    return Plan(rows, notes, agents)


def _assumed(config: Config, prompting: Prompting) -> Iterator[str]:
    """What the figures assume of judgments that are still to come."""
    if _guesses_documents(config, prompting):
        yield "answer judges' prompts count every document not labelled yet as relevant: an upper bound"
    if prompting.exam is not None and any(map(prompting.releases, prompting.exam.tasks())):
        yield "exam items that are not written yet count as many and as long as usual, and all answers as checked"
    if prompting.adaptive_games() is not None:
        yield "an adaptive schedule stops as soon as its question is decided: an upper bound"
    if prompting.nuggets is not None and prompting.nuggets.reads_documents:
        yield "nuggets that are not made yet count as many and as long as they may be: an upper bound"


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


def _known_labels(prompting: Prompting, counter: CallCounter) -> Labels:
    """The relevance results that a run would find: by what is judged now, not by what was wanted last time."""
    section = prompting.config.retrieval
    if section is None:
        return {}
    results: list[tuple[Wanted, Result | None]] = []
    wants = (want for want in prompting.wants() if want.task is Task.RELEVANCE)
    for chunk in chunks(wants, _CHUNK):
        results += [(want, known) for want, _, _, known in counter.looked_up(chunk)]
    how = {name: spec.combine for name, spec in prompting.config.judges.items()}
    return document_labels(results, how, section.combine)


def _take_known(prompting: Prompting, counter: CallCounter) -> None:
    """Let what the store knows release what a run would ask next."""
    for chunk in chunks((want for want in prompting.wants() if prompting.releases(want.task)), _CHUNK):
        for want, _, _, known in counter.looked_up(chunk):
            if known is not None:
                prompting.released(want, known)


def _guesses_documents(config: Config, prompting: Prompting) -> bool:
    """Whether answer prompts are rendered with documents whose labels are not known yet."""
    sections = [section for section in (config.pairwise, config.criteria) if section is not None]
    if config.retrieval is None or not any(section.documents.include for section in sections):
        return False
    documents = {(want.query_id, want.item) for want in prompting.wants() if want.task is Task.RELEVANCE}
    return any(prompting.labels.get(document) is None for document in documents)


def _existing(config: Config) -> Store | None:
    return None if missing(config.store) else Store.open(config.store)


def _spread(config: Config) -> list[str]:
    """How many calls at once Ray's workers make, where there are any."""
    executor = config.executor
    calls = [f"{name} {spec.concurrency}" for name, spec in _specs(config).items() if runs_on_workers(executor, spec)]
    if not calls:
        return []
    return [f"on Ray each judge has {executor.workers} workers; calls at once of all together: {', '.join(calls)}"]


def _specs(config: Config) -> dict[str, JudgeSpec]:
    """The judges that are asked, with the calls at once of all their workers."""
    return {name: with_all_workers(config.executor, config.judges[name]) for name in config.judges_in_use()}
