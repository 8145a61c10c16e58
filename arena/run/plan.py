"""Plans a run: its calls, tokens and cost, without sending a request."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.data.warnings import notes_of
from arena.run.agents import OpenedAgents, open_agents
from arena.run.answers_plan import PlannedAgent, agent_notes, plan_agents
from arena.run.assigned import Assigned, made_from
from arena.run.executors import runs_on_workers, with_all_workers
from arena.run.judging import load_data, stored_settings
from arena.run.planner import SECONDS_PER_CALL, PlannedCalls, Planner
from arena.run.queries_plan import plan_synth
from arena.run.to_come import ANSWER, queries_to_come, with_all_answers
from arena.stages.queries_config import SynthConfig, of_tournament
from arena.stages.together import TournamentStages
from arena.store import Store, missing
from judges.providers.http_answers import shown
from judges.spec import JudgeSpec
from judges.types import Answer, Query, Task
from retrieval_eval.agents.spec import judges_of_agents

_ASSUMED = (
    "tokens are estimated at 4 characters of English each, 2 of Russian, 1 of Chinese; "
    f"time at {SECONDS_PER_CALL:g} s per call",
    "replies outside their contract are asked again, and attempts repeated, on top of this",
)
_BOUND = (
    "then plan again for closer figures: at most counts them with answers as long as max_tokens allows, or of "
    f"{ANSWER:,} characters, each with documents of its own and a citation in each sentence"
)
_QUERIES_FIRST = (
    f"up to {{number:,}} queries are still to come, and their answers: 'ragleague run CONFIG --stage synth', {_BOUND}"
)
_OF_ANSWERS = frozenset({Task.PAIRWISE, Task.CRITERIA})


class Plan(Struct, frozen=True):
    """The planned calls of all stages and agents.

    Attributes:
        rows: the judges' calls on the present data.
        notes: assumptions behind the figures.
        agents: the agents' calls on the present queries.
        most: upper bound on the calls once all queries and answers exist; ``None`` if nothing is missing.
    """

    rows: list[PlannedCalls]
    notes: list[str]
    agents: list[PlannedAgent] = field(default_factory=list)
    most: Plan | None = None

    @property
    def calls(self) -> int:
        """Number of calls, without agents whose number of calls is unknown."""
        return sum(row.calls for row in self.rows) + sum(row.calls or 0 for row in self.agents)

    @property
    def cost_usd(self) -> float | None:
        """Total cost; ``None`` if any price is unknown."""
        costs = [row.cost_usd for row in self.rows if row.calls]
        costs += [row.cost_usd for row in self.agents if row.calls != 0]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


def plan(config: Config, opened: OpenedAgents | None = None) -> Plan:
    """Render every prompt that a run would send, and count calls, tokens and cost.

    Args:
        config: the tournament.
        opened: the tournament's agents, if they are open already: opening them may mean reading a corpus.

    Raises:
        InputError: documents, data or prompts cannot be used.
    """
    if config.synth is None:
        return _plan_tournament(config, opened)
    synth = plan_synth(of_tournament(config))
    made, most = synth.rows, synth.most or synth.rows
    if config.lacks_queries:
        bound = _at_most(config, opened, queries_to_come(synth.queries))
        notes = [*_ASSUMED, *synth.notes, _QUERIES_FIRST.format(number=synth.queries), *bound.notes]
        return Plan(made, list(dict.fromkeys(notes)), most=Plan([*most, *bound.rows], [], bound.agents))
    rest = _plan_tournament(config, opened)
    notes = [*_ASSUMED, *synth.notes, *rest.notes]
    further = rest.most
    if any(row.calls for row in made):
        notes.append(f"agents and judges: of the queries in {config.synth.out}, which the calls above may change")
        further = _at_most(config, opened, queries_to_come(synth.queries))
    whole = None if further is None else Plan([*most, *further.rows], [], further.agents)
    return Plan([*made, *rest.rows], list(dict.fromkeys(notes)), rest.agents, whole)


def plan_queries(config: SynthConfig) -> Plan:
    """Plan a configuration file that only makes queries.

    Raises:
        InputError: documents, examples or prompts cannot be used, or no document has text.
    """
    synth = plan_synth(config)
    most = None if synth.most is None else Plan(synth.most, [])
    return Plan(synth.rows, [*_ASSUMED, *synth.notes], most=most)


def _at_most(config: Config, opened: OpenedAgents | None, queries: Mapping[str, Query] | None = None) -> Plan:
    """Upper bound: the calls of a run after all agents have given answers of maximum length.

    Args:
        config: the tournament.
        opened: the tournament's opened agents.
        queries: queries to plan with, by id, instead of the queries in the data.
    """
    if opened is None and config.agents:
        opened = open_agents(config)
    present = Dataset(queries or {})
    agents: list[PlannedAgent] = []
    if queries is None:
        present = load_data(config, None if opened is None else opened.declared)
    if config.agents:
        agents, opened = plan_agents(config, opened, present, longest=True)
    data = with_all_answers(config, present, opened)
    if not data.answers and not data.retrieved:
        return Plan([], [], agents)
    stages = TournamentStages(config, data, assume=True)
    store = None if missing(config.store) else Store.open(config.store)
    try:
        planner = Planner(stages, _specs(config), store)
        for stage in stages.stages:
            planner.walk(want for query_id in data.queries for want in stages.begin(stage, query_id).ready)
    finally:
        if store is not None:
            store.close()
    return Plan(planner.rows(), [*stages.assumptions(), *agent_notes(config, agents), *_addresses(config)], agents)


def _plan_tournament(config: Config, opened: OpenedAgents | None) -> Plan:
    agents, opened = plan_agents(config, opened) if config.agents else ([], None)
    data = load_data(config, None if opened is None else opened.declared)
    stages = TournamentStages(config, data, assume=True)
    stages.check(complete=not config.agents)
    store = None if missing(config.store) else Store.open(config.store)
    try:
        if store is not None:
            stages.resume(store, config.name)
        settings = stored_settings(stages, () if opened is None else opened.declared)
        planner = Planner(stages, _specs(config), store)
        if store is not None and config.name in store.tournaments() and (providers := planner.opened()) is not None:
            made = made_from(config, settings.raw, data.digest(), providers)
            planner.assigned = Assigned(store, config.name, made, stages.leads_on)
        for stage in stages.stages:
            planner.walk(want for query_id in data.queries for want in stages.begin(stage, query_id).ready)
    finally:
        if store is not None:
            store.close()
    rows = planner.rows()
    notes = [
        *notes_of(data, config.agents),
        *_ASSUMED,
        *stages.assumptions(),
        *planner.notes,
        *_spread(config),
        *agent_notes(config, agents),
        *_addresses(config),
    ]
    if to_come := _to_come(config, data):
        notes.append(
            f"{to_come[0]} answers are still to come: {to_come[1]:,} more games and grades, and the documents that "
            f"agents will have retrieved. 'ragleague run CONFIG --stage agents', {_BOUND}"
        )
    return Plan(rows, notes, agents, _at_most(config, opened) if to_come else None)


def _to_come(config: Config, data: Dataset) -> tuple[int, int] | None:
    """Number of missing answers, and of judgments that they will need; ``None`` if no answer is missing."""
    owed = {
        (query_id, agent): Answer(query_id, agent, "")
        for query_id in data.queries
        for agent in config.agents
        if (query_id, agent) not in data.answers
    }
    if not owed:
        return None
    whole, now = (
        sum(want.task in _OF_ANSWERS for want in TournamentStages(config, dataset, assume=True).wants())
        for dataset in (replace(data, answers={**data.answers, **owed}), data)
    )
    return len(owed), whole - now


def _addresses(config: Config) -> list[str]:
    """A note that lists the addresses of judges, each with its source unless that is ``base_url``."""
    asked = [*config.judges_in_use(), *judges_of_agents(config.agents.values())]
    specs = {name: config.judges[name] for name in asked if config.judges[name].address}
    addresses = [
        f"{name} {shown(spec.address)}" + (f" ({spec.address_from})" if spec.address_from != "'base_url'" else "")
        for name, spec in specs.items()
    ]
    return [f"calls go to: {', '.join(addresses)}"] if addresses else []


def _spread(config: Config) -> list[str]:
    """A note on the number of concurrent calls by Ray workers; empty if no workers are configured."""
    executor = config.executor
    calls = [f"{name} {spec.concurrency}" for name, spec in _specs(config).items() if runs_on_workers(executor, spec)]
    if not calls:
        return []
    return [f"on Ray each judge has {executor.workers} workers; calls at once of all together: {', '.join(calls)}"]


def _specs(config: Config) -> dict[str, JudgeSpec]:
    """The judges in use, each with the total concurrency of all its workers."""
    return {name: with_all_workers(config.executor, config.judges[name]) for name in config.judges_in_use()}
