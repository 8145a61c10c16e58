"""Plans a run: counts its calls, tokens and cost without sending a request; placeholders replace texts to come."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.schema import Config
from arena.data.corpus import CorpusReading
from arena.data.dataset import Dataset, notes_of
from arena.data.files import load_files
from arena.run.agents import OpenedAgents, open_agents, runs_on_workers, with_all_workers
from arena.run.answers import needs_call
from arena.run.assigned import Assigned, made_from
from arena.run.decidable import Decides, decides, planned_repeats, repeats_note
from arena.run.judging import load_data, stored_settings
from arena.run.planner import SECONDS_PER_CALL, PlannedCalls, Planner
from arena.stages.queries import QueriesStage, group_of, read_reviewed
from arena.stages.queries_config import SynthConfig, of_tournament
from arena.stages.together import TournamentStages
from arena.store import Store, Wanted, missing
from arena.store.agents import AgentQuery, AgentReplies
from judges.providers.http_answers import shown
from judges.spec import JudgeSpec, price_of
from judges.types import CITATIONS, Answer, Document, Query, Retrieved, Task, repeat_name, repeat_of
from judges.writing import CHARACTERS_PER_TOKEN, estimated_tokens
from retrieval_eval.agents.build import require_messages
from retrieval_eval.agents.spec import EXTRACTIVE, AgentSpec, judges_of_agents

ANSWER: Final = 4_000
"""Assumed length in characters of an answer whose agent declares no limit on it."""
DOCUMENTS: Final = 10
"""Assumed number of retrieved documents per query of an agent that declares no depth."""
_QUERY: Final = "a query of as many words as people need to ask for what they want to know, and some more"
_SENTENCE: Final = 200
_ASSUMED = (
    "tokens are estimated at 4 characters of English each, 2 of Russian, 1 of Chinese; "
    f"time at {SECONDS_PER_CALL:g} s per call",
    "unusable replies and failed attempts are requested again; these calls come on top",
)
_BOUND = (
    "then plan again for closer figures: 'at most' counts them with answers as long as max_tokens allows, or of "
    f"{ANSWER:,} characters, each with documents of its own and a citation in each sentence"
)
_QUERIES_FIRST = (
    f"up to {{number:,}} queries are still to come, and their answers: 'ragleague run CONFIG --stage synth', {_BOUND}"
)
_OF_ANSWERS = frozenset({Task.PAIRWISE, Task.CRITERIA})


class Plan(Struct, frozen=True):
    """The planned calls of judges and agents, from the queries and answers that exist now.

    Attributes:
        notes: sentences about what the figures assume.
        most: a plan with the maximum number of calls once all queries and answers exist; ``None`` if all exist.
        decides: the smallest differences between two agents that the run can find by games; ``None`` if it has none,
            or if no earlier games show how much queries differ. Then one of ``notes`` says so.
    """

    rows: list[PlannedCalls]
    notes: list[str]
    agents: list[PlannedAgent] = field(default_factory=list)
    most: Plan | None = None
    decides: Decides | None = None

    @property
    def calls(self) -> int:
        """Total number of calls; agents whose number of calls is unknown are left out."""
        return sum(row.calls for row in self.rows) + sum(row.calls or 0 for row in self.agents)

    @property
    def cost_usd(self) -> float | None:
        """Total cost in dollars; ``None`` if any price is unknown."""
        costs = [row.cost_usd for row in self.rows if row.calls]
        costs += [row.cost_usd for row in self.agents if row.calls != 0]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


def plan(config: Config, opened: OpenedAgents | None = None, stages: TournamentStages | None = None) -> Plan:
    """Render every prompt that a run would send, and count calls, tokens and cost.

    Pass the agents as ``opened`` if they are open already, since opening them may mean reading a corpus; and the
    ``stages`` if a preflight has set them up, which saves reading the data again.
    """
    if config.synth is None:
        return _plan_tournament(config, opened, stages)
    synth = plan_synth(of_tournament(config))
    made, most = synth.rows, synth.most or synth.rows
    if config.lacks_queries:
        bound = _at_most(config, opened, queries_to_come(synth.queries))
        notes = [*_ASSUMED, *synth.notes, _QUERIES_FIRST.format(number=synth.queries), *bound.notes]
        return Plan(made, list(dict.fromkeys(notes)), most=Plan([*most, *bound.rows], [], bound.agents))
    rest = _plan_tournament(config, opened, stages)
    notes = [*_ASSUMED, *synth.notes, *rest.notes]
    further = rest.most
    if any(row.calls for row in made):
        notes.append(f"agents and judges: of the queries in {config.synth.out}, which the calls above may change")
        further = _at_most(config, opened, queries_to_come(synth.queries))
    whole = None if further is None else Plan([*most, *further.rows], [], further.agents)
    return Plan([*made, *rest.rows], list(dict.fromkeys(notes)), rest.agents, whole, rest.decides)


def plan_queries(config: SynthConfig) -> Plan:
    synth = plan_synth(config)
    most = None if synth.most is None else Plan(synth.most, [])
    return Plan(synth.rows, [*_ASSUMED, *synth.notes], most=most)


def _at_most(config: Config, opened: OpenedAgents | None, queries: Mapping[str, Query] | None = None) -> Plan:
    """Plan the maximum number of calls: as if each missing answer of an agent had maximum length.

    ``queries`` replace the queries in the dataset.
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
    with _stored(config.store) as store:
        planner = Planner(stages, _specs(config), store)
        for stage in stages.stages:
            planner.walk(want for query_id in data.queries for want in stage.ready(stages.begin(stage, query_id)))
    return Plan(planner.rows(), [*stages.assumptions(), *agent_notes(config, agents), *_addresses(config)], agents)


def _plan_tournament(config: Config, opened: OpenedAgents | None, stages: TournamentStages | None) -> Plan:
    agents, opened = (
        plan_agents(config, opened, None if stages is None else stages.data) if config.agents else ([], None)
    )
    if stages is None:
        data = load_data(config, None if opened is None else opened.declared)
        stages = TournamentStages(config, data, assume=True)
        stages.check(complete=not config.agents)
    data = stages.data
    with _stored(config.store) as store:
        if store is not None:
            stages.resume(store, config.name)
        settings = stored_settings(stages, () if opened is None else opened.declared)
        planner = Planner(stages, _specs(config), store)
        if store is not None and config.name in store.tournaments() and (providers := planner.opened()) is not None:
            made = made_from(config, settings.raw, data.digest(), providers)
            planner.assigned = Assigned(store, config.name, made, stages.leads_on)
        for stage in stages.stages:
            planner.walk(want for query_id in data.queries for want in stage.ready(stages.begin(stage, query_id)))
        rows = planner.rows()
        to_come = _to_come(config, data)
        most = _at_most(config, opened) if to_come else None
        decidable = decides(config, data, (most or Plan(rows, [])).rows, store) if config.pairwise is not None else None
    notes = [
        *notes_of(data, config.agents),
        *_ASSUMED,
        *stages.assumptions(),
        *planner.notes,
        *_spread(config),
        *agent_notes(config, agents),
        *_addresses(config),
    ]
    if (repeats := planned_repeats(config, data)) > 1:
        notes.append(repeats_note(repeats, decidable.components if isinstance(decidable, Decides) else None))
    if isinstance(decidable, str):
        notes.append(decidable)
    if to_come:
        notes.append(
            f"{to_come[0]} answers are still to come: {to_come[1]:,} more games and grades, and the documents that "
            f"agents will have retrieved. 'ragleague run CONFIG --stage agents', {_BOUND}"
        )
    return Plan(rows, notes, agents, most, None if isinstance(decidable, str) else decidable)


@contextmanager
def _stored(location: str) -> Iterator[Store | None]:
    """Open the store for the block; yields ``None`` if the store does not exist yet."""
    with nullcontext() if missing(location) else closing(Store.open(location)) as store:
        yield store


def _to_come(config: Config, data: Dataset) -> tuple[int, int] | None:
    """Number of missing answers, and of games and grades that need them; ``None`` if no answer is missing."""
    owed = {
        (query_id, agent): Answer(query_id, agent, "")
        for query_id in data.queries
        for agent in answerers(config)
        if (query_id, agent) not in data.answers
    }
    if not owed:
        return None
    whole, now = (
        sum(want.task in _OF_ANSWERS for want in TournamentStages(config, dataset, assume=True).wants())
        for dataset in (replace(data, answers={**data.answers, **owed}), data)
    )
    return len(owed), whole - now


def answerers(config: Config) -> list[str]:
    """The names of the answers to come: agents, and their repeats."""
    return [repeat_name(name, at) for name, spec in config.agents.items() for at in range(1, spec.repeats + 1)]


def _addresses(config: Config) -> list[str]:
    """A note with the server address of each judge, and which setting it comes from if not from ``base_url``."""
    asked = [*config.judges_in_use(), *judges_of_agents(config.agents.values())]
    specs = {name: config.judges[name] for name in asked if config.judges[name].address}
    addresses = [
        f"{name} {shown(spec.address)}" + (f" ({spec.address_from})" if spec.address_from != "'base_url'" else "")
        for name, spec in specs.items()
    ]
    return [f"calls go to: {', '.join(addresses)}"] if addresses else []


def _spread(config: Config) -> list[str]:
    """A note with each judge's number of concurrent calls on all Ray workers; empty if no workers are configured."""
    executor = config.executor
    calls = [f"{name} {spec.concurrency}" for name, spec in _specs(config).items() if runs_on_workers(executor, spec)]
    if not calls:
        return []
    return [f"on Ray each judge has {executor.workers} workers; concurrent calls of all workers: {', '.join(calls)}"]


def _specs(config: Config) -> dict[str, JudgeSpec]:
    """The settings of the judges in use; each one's concurrency is the sum over all its Ray workers."""
    return {name: with_all_workers(config.executor, config.judges[name]) for name in config.judges_in_use()}


def queries_to_come(number: int) -> dict[str, Query]:
    return {f"to come {at}": Query(f"to come {at}", f"{at}: {_QUERY}") for at in range(number)}


def with_all_answers(config: Config, data: Dataset, opened: OpenedAgents | None) -> Dataset:
    """Add a placeholder for each missing answer: an answer of maximum length, with retrieved documents of its own."""
    corpus = () if opened is None or opened.corpus is None else opened.corpus.documents
    most = max((_documents_of(config, spec) for spec in config.agents.values()), default=0)
    longest = sorted((document.text for document in corpus), key=len, reverse=True)[:most]
    answers, documents = dict(data.answers), dict(data.documents)
    retrieved = {query_id: list(entries) for query_id, entries in data.retrieved.items()}
    for query_id in data.queries:
        for agent in answerers(config):
            spec = config.agents[repeat_of(agent)[0]]
            if (query_id, agent) in answers:
                continue
            stand_ins = list(_documents(f"{query_id}/{agent}", longest, _documents_of(config, spec)))
            documents |= {document.doc_id: document for document in stand_ins}
            retrieved.setdefault(query_id, []).extend(
                Retrieved(query_id, document.doc_id, agent, rank) for rank, document in enumerate(stand_ins, start=1)
            )
            answers[query_id, agent] = _answer(config, spec, query_id, agent, stand_ins)
    ordered = {
        query_id: tuple(sorted(entries, key=lambda entry: (entry.agent, entry.rank)))
        for query_id, entries in retrieved.items()
    }
    return replace(data, answers=answers, documents=documents, retrieved=ordered)


def _documents_of(config: Config, spec: AgentSpec) -> int:
    if spec.kind in {"rag", "fusion"}:
        return spec.depth
    return (config.retrieval.depth if config.retrieval is not None else None) or DOCUMENTS


def _documents(name: str, longest: Sequence[str], number: int) -> Iterator[Document]:
    for at in range(number):
        text = longest[min(at, len(longest) - 1)] if longest else "x" * ANSWER
        yield Document(f"{name}/{at}", f"{name} {at}: {text}")  # all differ, so that each needs a judgment


def _answer(config: Config, spec: AgentSpec, query_id: str, agent: str, documents: Sequence[Document]) -> Answer:
    generator = config.judges.get(spec.generator or "")
    length = ANSWER
    if generator is not None:
        length = generator.max_tokens * CHARACTERS_PER_TOKEN
    elif spec.kind in {"rag", "fusion"} and spec.generator in {None, EXTRACTIVE}:
        length = max((len(document.text) for document in documents), default=ANSWER)
    shown = [document.doc_id for document in documents[: spec.passages]] or [""]
    sentence = f"{'word ' * (_SENTENCE // 5)}[{{}}]. "
    count = max(1, length // _SENTENCE)
    text = "".join(sentence.format(at % len(shown) + 1) for at in range(count))
    cited: Mapping[str, str] = {CITATIONS: json.dumps(shown)} if documents else {}
    return Answer(query_id, agent, f"{agent} on {query_id}: {text}", cited)


class PlannedAgent(Struct, frozen=True):
    """One agent's planned calls; figures that the tool cannot know are ``None``.

    Attributes:
        wanted: number of queries to the agent.
        known: number of these queries that are answered already, or that failed and are not retried.
        calls: number of calls to models or to the agent's address, without retries.
        input_tokens: number of tokens in the passages and queries that the agent's model reads.
        output_tokens: maximum number of output tokens, from the model's ``max_tokens``.
        seconds: estimated duration at ``SECONDS_PER_CALL`` and the declared concurrency.
    """

    agent: str
    wanted: int
    known: int
    calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float | None


def plan_agents(
    config: Config, opened: OpenedAgents | None = None, data: Dataset | None = None, *, longest: bool = False
) -> tuple[list[PlannedAgent], OpenedAgents]:
    """Count the calls that the agents would make in a run; returns a row for each agent, and the opened agents.

    ``data`` replaces the dataset from the configured files. With ``longest``, each passage that an agent's model reads
    counts with maximum length, else with mean length.
    """
    data = load_files(config) if data is None else data
    if data.has_messages:
        require_messages(config.agents)
    opened, queries = opened or open_agents(config), list(data.queries.values())
    wanted = {agent.name: [AgentQuery.of(agent, query) for query in queries] for agent in opened.declared}
    outcomes = _outcomes(config, [query for agent_queries in wanted.values() for query in agent_queries])
    documents = () if opened.corpus is None else opened.corpus.documents
    texts = [text for query in queries for text in (query.text, *(each.text for each in query.messages))]
    length = sum(map(estimated_tokens, texts)) / len(queries) if queries else 0.0
    passages = [estimated_tokens(document.text) for document in documents] or [0]
    passage = max(passages) if longest else sum(passages) / len(passages)
    rows = []
    for name in config.agents:
        asked = [query for declared, asks in wanted.items() if repeat_of(declared)[0] == name for query in asks]
        todo = len({query for query in asked if needs_call(outcomes.get(query), retry_failed=False)})
        rows.append(_planned(name, config, len(asked), todo, passage=passage, query=length))
    return rows, opened


def agent_notes(config: Config, rows: Sequence[PlannedAgent]) -> list[str]:
    """Notes for the user on what the planned figures of agents assume and leave out."""
    asked = [row for row in rows if row.calls != 0]
    notes = []
    if unknown := [row.agent for row in asked if row.cost_usd is None]:
        notes.append(
            f"the calls that these agents make in their own code or server are not known: {', '.join(unknown)}"
        )
    specs = {row.agent: config.agents[row.agent] for row in rows if row.wanted > row.known}
    if embedded := [
        name for name, spec in specs.items() if spec.retriever != "bm25" and spec.embeddings.provider == "openai"
    ]:
        notes.append(f"requests to a server of embeddings are not counted: {', '.join(embedded)}")
    if any(row.calls and config.agents[row.agent].generator for row in asked):
        notes.append("an agent's answer counts as long as its model's max_tokens allows: an upper bound")
    return notes


def _outcomes(config: Config, asked: Sequence[AgentQuery]) -> dict[AgentQuery, str]:
    with _stored(config.store) as store:
        return {} if store is None else AgentReplies(store).outcomes(asked)


def _planned(name: str, config: Config, wanted: int, todo: int, *, passage: float, query: float) -> PlannedAgent:
    spec = config.agents[name]
    known = wanted - todo
    calls_each = _calls_each(spec)
    if calls_each is None or not todo:
        figure = 0 if not todo else None
        return PlannedAgent(name, wanted, known, figure, figure, figure, figure, figure)
    calls = calls_each * todo
    judge = config.judges.get(spec.generator or "")
    if judge is None:
        unknown = 0 if not calls else None
        seconds = calls * SECONDS_PER_CALL / spec.concurrency
        return PlannedAgent(name, wanted, known, calls, unknown, unknown, unknown, seconds)
    shown = passage * spec.passages if spec.kind in {"rag", "fusion"} else 0.0
    sent = round(todo * (shown + calls_each * query))
    price, most = price_of(judge), calls * judge.max_tokens
    cost = None if price is None else (sent * price.input + most * price.output) / 1e6
    return PlannedAgent(name, wanted, known, calls, sent, most, cost, calls * SECONDS_PER_CALL / judge.concurrency)


def _calls_each(spec: AgentSpec) -> int | None:
    """Number of calls to a model or server for each query; ``None`` if the agent's Python code decides it."""
    if spec.kind == "python":
        return None
    if spec.kind == "file" or (spec.kind in {"rag", "fusion"} and spec.generator in {None, EXTRACTIVE}):
        return 0
    return 2 if spec.kind == "fusion" else 1


class PlannedQueries(Struct, frozen=True):
    """The planned calls for synthetic queries: models write queries, and a judge checks them.

    Attributes:
        rows: the calls if every written query is usable.
        notes: sentences about what the figures assume.
        queries: maximum number of queries written to the file.
        most: the calls if the judge must check every query to fill the quotas; ``None`` if these are the same.
    """

    rows: list[PlannedCalls]
    notes: list[str]
    queries: int = 0
    most: list[PlannedCalls] | None = None


def plan_synth(config: SynthConfig) -> PlannedQueries:
    section = config.synth
    if section.reviewed is not None:
        number = len(read_reviewed(section.reviewed).queries)
        return PlannedQueries([], [f"queries are drawn from {section.reviewed}: no model is called"], number)
    reading = CorpusReading()
    stage = QueriesStage(config, reading)
    with _stored(config.store) as store:
        planner = Planner(stage, {name: config.judges[name] for name in section.judges()}, store)
        wants: Sequence[Wanted] = stage.wants()
        while wants:
            planner.walk(wants)
            wants = stage.next_checks()
        rows = planner.rows()
    usable = Counter(group_of(each) for each in stage.candidates if not each.dropped)
    quotas = section.all_quotas
    number = sum(min(count, quotas.get(model, count)) for model, count in usable.items())
    most = _checking_all(rows, usable.total())
    return PlannedQueries(rows, [*_notes(stage, reading, rows), *planner.notes], number, most)


def _checking_all(rows: Sequence[PlannedCalls], candidates: int) -> list[PlannedCalls] | None:
    """The planned calls if the judge checks every candidate query, at the mean cost of the planned checks."""
    checks = [row for row in rows if row.task is Task.ANSWERABLE and row.calls]
    if not any(row.wanted < candidates for row in checks):
        return None
    return [_with_calls(row, candidates - row.known) if row in checks else row for row in rows]


def _with_calls(row: PlannedCalls, calls: int) -> PlannedCalls:
    factor = calls / row.calls
    return replace(
        row,
        wanted=row.known + calls,
        calls=calls,
        input_tokens=round(row.input_tokens * factor),
        output_tokens=round(row.output_tokens * factor),
        cost_usd=None if row.cost_usd is None else row.cost_usd * factor,
        seconds=None if row.seconds is None else row.seconds * factor,
    )


def _notes(stage: QueriesStage, reading: CorpusReading, rows: Sequence[PlannedCalls]) -> Iterator[str]:
    section = stage.config.synth
    wanted = ", ".join(f"{model} {quota}" for model, quota in section.quotas.items())
    quotas = f", for quotas of {wanted}" if wanted else ""
    asked = f"passages asked about: {len(stage.passages)} of {reading.passages} (documents: {reading.documents})"
    yield f"synth: {asked}; about each up to {section.per_passage} queries of each model{quotas}"
    if reading.skipped:
        yield f"synth: parts of documents that cannot be read: {len(reading.skipped)}; 'ragleague documents' lists them"
    most = Counter(group_of(each) for each in stage.candidates if not each.dropped)
    for model, quota in section.all_quotas.items():
        if most[model] < quota:
            yield (
                f"synth: {model} can write {most[model]} queries at most, fewer than its quota of {quota}; "
                "sample more passages, or lower the quota"
            )
    if any(row.calls for row in rows):
        yield (
            "synth: all queries that a model may write are counted, and all as usable; each one that is dropped, or "
            "that its passage does not answer, needs one more check"
        )
