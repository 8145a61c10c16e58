"""A gate that first asks judges for missing judgments: only for the gate's scores, and only until the games decide."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from arena.boards.gate.board import GateBoard
from arena.boards.gate.compare import check_agents, check_margin, compare
from arena.boards.gate.figures import MARGIN, PAIRWISE, JudgesAs, score_sections, section_of
from arena.boards.groups import with_group
from arena.config.stages import unasked
from arena.data.dataset import SHARED, Dataset, Group, groupings
from arena.data.files import load_files
from arena.data.kinds import VERDICT
from arena.present.numbers import listed
from arena.results.cards import lacking_cards
from arena.results.ratings import of_group, queries_of
from arena.run.answers import require_askable
from arena.run.interrupts import interruptible
from arena.run.judging import declared_agents, load_data, run
from arena.run.pipeline import RunPart, play
from arena.stages.adaptive import AdaptiveGames, adaptive_settings
from arena.store import Store
from arena.store.runs import Runs
from judges.errors import InputError
from judges.sections import nearest
from judges.types import CallTrace, repeat_of
from retrieval_eval.scores.metrics import parse_measures

if TYPE_CHECKING:
    from arena.config.schema import Config
    from arena.run.ledger import Progress


@interruptible()
def decide(
    config: Config,
    new: str,
    old: str,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[RunPart], None],
    *,
    on: Sequence[str] = (PAIRWISE,),
    margin: float = MARGIN,
    judges: JudgesAs = "fixed",
    by: str = "",
    group: Group | None = None,
    retry_failed: bool = False,
    ask: Collection[str] = (),
    trace: Callable[[CallTrace], None] | None = None,
) -> GateBoard:
    """Ask judges for the judgments that the scores ``on`` lack, and compare two agents by these scores.

    With an adaptive schedule, the two agents play in a separate tournament, named after both, batch by batch until the
    games decide. Judgments that are already in the store are reused. Each batch ends with a test (a look at the
    games); all looks together have the error probability of a single test (``level_of_look``). Earlier looks are read
    from the tournament's runs in the store.
    Agents named in ``ask`` are first asked every query anew, see ``run_agents``.
    Unknown names are an ``InputError`` before any request is sent.
    """
    started = time.time()
    check_margin(margin, on)
    stages = list(dict.fromkeys(stage for name in on for stage in _stages(config, name)))
    before = [stage for stage in ("synth", "agents") if getattr(config, stage)]
    in_files: Sequence[str] = ()
    if not config.lacks_queries:
        only_configured = config.agents and not config.data.runs  # their names are known without reading the corpus
        in_files = (load_files(config) if only_configured else load_data(config)).answerers
    repeats = Counter(repeat_of(name)[0] for name in in_files) | Counter(
        {name: spec.repeats for name, spec in config.agents.items()}
    )
    check_agents(new, old, sorted(repeats), repeats)
    for name in ask:
        if name not in (new, old):
            raise InputError(f"--ask {name}: name {new} or {old}, which this gate compares")
    require_askable(config, ask)
    adaptive = PAIRWISE in on and config.pairwise is not None and config.pairwise.schedule.kind == "adaptive"
    other_stages = [stage for stage in stages if not (adaptive and stage == PAIRWISE)]
    other_scores = [name for name in on if not (adaptive and name == PAIRWISE)]
    judge_stages = partial(play, config, progress, say, retry_failed=retry_failed, trace=trace)
    boards = []
    if before:
        judge_stages(stages=before, ask=ask)
        answering = load_data(config).agents
        if silent := [name for name in (new, old) if name not in answering]:
            raise InputError(
                f"{listed(silent)} answered no query, so nothing was judged; 'ragleague failures CONFIG' says why"
            )
    if other_scores:
        judge_stages(stages=other_stages)
    how: dict[str, Any] = {"margin": margin, "judges": judges, "by": by, "since": started}
    if adaptive:
        how_judged: dict[str, Any] = {"group": group, "retry_failed": retry_failed, "trace": trace}
        boards = [_by_batch(config, new, old, progress, say, **how, **how_judged)]
    if other_scores:
        with closing(Store.open(config.store)) as store:
            part = of_group(store, config.name, group)
            boards.append(compare(part, config.name, new, old, on=other_scores, **how))
    return replace(
        boards[0],
        scores=tuple(score for board in boards for score in board.scores),
        groups=tuple(group for board in boards for group in board.groups),
    )


def _stages(config: Config, name: str) -> Sequence[str]:
    for key in unasked(config.further):
        if name in config.further[key].columns:
            return [key]
    criteria = config.criteria.names if config.criteria is not None else ()
    section = section_of(name, criteria)
    if section == "retrieval":
        try:
            parse_measures([name])
        except InputError as error:
            further = {score for score, key in score_sections().items() if config.section(key) is not None}
            scores = {"exam", "nuggets", PAIRWISE, "criteria", *criteria, *further}
            raise InputError(f"--on {name}: no such score{nearest(name, scores)}") from error
    labels = ["relevance"] if config.retrieval is not None else []
    if section == "retrieval":
        if labels or config.data.qrels:
            return labels
    elif config.section(section) is not None:
        return [*labels, section]
    raise InputError(
        f"--on {name}: the configuration has no section {section!r}, which makes this score; add the section, "
        "or name another score"
    )


def _by_batch(
    config: Config,
    new: str,
    old: str,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[RunPart], None],
    *,
    margin: float,
    judges: JudgesAs,
    by: str,
    since: float,
    group: Group | None,
    retry_failed: bool,
    trace: Callable[[CallTrace], None] | None,
) -> GateBoard:
    """Have games between the two agents judged in batches, until the games decide or none is left."""
    section = config.pairwise
    assert section is not None
    agents = declared_agents(config)
    whole = load_data(config, agents)
    data = _restricted(whole, new, old, group)
    agents = [agent for agent in agents if repeat_of(agent.name)[0] in (new, old)]
    check_agents(new, old, data.agents)
    batch, most = adaptive_settings(section).batch, len(AdaptiveGames(section, data).at_most())
    most //= 2 if section.both_orders else 1
    if not most:
        raise InputError(f"{new} and {old} answered no query in common, so they have no games; compare other agents")
    emptied: dict[str, Any] = {**dict.fromkeys(("criteria", "exam", "nuggets", "synth")), "agents": {}, "further": {}}
    games = 0
    while True:
        games = min(games + batch, most)
        schedule = section.schedule.model_copy(update={"max_games": games})
        batch_config = config.model_copy(
            update={
                **emptied,
                "name": with_group(f"{config.name}: {new} against {old}", group),
                "pairwise": section.model_copy(update={"schedule": schedule}),
            }
        )
        with progress() as bars:
            summary = run(batch_config, bars, data=data, agents=agents, retry_failed=retry_failed, trace=trace)
        say(summary)
        with closing(Store.open(batch_config.store)) as store:
            sizes = sorted({*_earlier_looks(store, batch_config.name, most), games})
            looks = [size / most for size in sizes if size <= games]
            options: dict[str, Any] = {"margin": margin, "looks": looks, "judges": judges, "by": by, "since": since}
            board = compare(store, batch_config.name, new, old, on=PAIRWISE, **options)
            settings = store.settings(batch_config.name)
            without_card = bool(lacking_cards(settings, VERDICT, datetime.now(UTC).date()))
        unfinished = any(stage.left for stage in summary.stages.values())
        if board.verdict != "undecided" or games >= most or unfinished or without_card:
            groups = 0 if group is None else sum(map(len, groupings(whole.queries.values()).values()))
            return replace(board, group=group, of_groups=groups)


def _earlier_looks(store: Store, tournament: str, most: int) -> Iterator[int]:
    for earlier in Runs(store, tournament).all():
        schedule = earlier.subject.get("settings", {}).get("pairwise", {}).get("schedule", {})
        games = schedule.get("max_games")
        if isinstance(games, int) and 0 < games <= most:
            yield games


def _restricted(data: Dataset, new: str, old: str, group: Group | None) -> Dataset:
    queries = queries_of(data.queries, group)
    return replace(
        data,
        queries=queries,
        answers={
            key: answer
            for key, answer in data.answers.items()
            if key[0] in queries and repeat_of(key[1])[0] in (new, old)
        },
        retrieved={
            query_id: [entry for entry in entries if repeat_of(entry.agent)[0] in (new, old, SHARED)]
            for query_id, entries in data.retrieved.items()
            if query_id in queries
        },
        qrels={query_id: labels for query_id, labels in data.qrels.items() if query_id in queries},
    )
