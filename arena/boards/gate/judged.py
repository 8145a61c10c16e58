"""A gate that judges what it needs: only the scores it is on, and of an adaptive schedule only the games it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from arena.boards.gate.board import GateBoard
from arena.boards.gate.compare import check_agents, check_margin, compare
from arena.boards.gate.score import MARGIN, PAIRWISE
from arena.config.stages import STAGES
from arena.data.dataset import SHARED, Dataset
from arena.data.files import load_files
from arena.present.numbers import listed
from arena.results.cards import lacking_cards
from arena.run.interrupts import interruptible
from arena.run.judging import load_data, run
from arena.run.pipeline import RunPart, play
from arena.stages.adaptive import AdaptiveGames, adaptive_settings
from arena.store import Store
from arena.store.runs import Runs
from judges.errors import InputError
from judges.sections import nearest
from judges.types import CallTrace
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
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
) -> GateBoard:
    """Judge what is missing of some scores, and compare two agents by them.

    With an adaptive schedule the two meet batch by batch until the games decide, in a tournament of their own, which
    is named after both; what is in the store already costs nothing. Each batch is a look, and all looks together err as
    one would (``level_of_look``); the tournament's runs in the store say which there were.

    Args:
        config: the tournament.
        new: the agent that may replace the other.
        old: the other.
        progress: as for ``play``.
        say: as for ``play``; of games it is told after each batch.
        on: scores, as for ``compare``.
        margin: how much worse still passes.
        retry_failed: as for ``play``.
        trace: as for ``play``.

    Raises:
        InputError: no such agent or score, or the configuration cannot be used. Nothing is sent for an unknown name.
        StoreError: the store cannot be written.
    """
    check_margin(margin, on)
    stages = list(dict.fromkeys(stage for name in on for stage in _stages(config, name)))
    before = [stage for stage in ("synth", "agents") if getattr(config, stage)]
    known: Sequence[str] = ()
    if not config.lacks_queries:
        asked_alone = config.agents and not config.data.runs  # whose corpus need not be read to know their names
        known = (load_files(config) if asked_alone else load_data(config)).agents
    check_agents(new, old, sorted({*known, *config.agents}))
    by_batch = PAIRWISE in on and config.pairwise is not None and config.pairwise.schedule.kind == "adaptive"
    rest = [stage for stage in stages if not (by_batch and stage == PAIRWISE)]
    others = [name for name in on if not (by_batch and name == PAIRWISE)]
    if before:
        play(config, progress, say, stages=before, retry_failed=retry_failed, trace=trace)
        _require_answers(config, new, old)
    if others:
        play(config, progress, say, stages=rest, retry_failed=retry_failed, trace=trace)
    found = None
    if by_batch:
        found = _by_batch(config, new, old, progress, say, margin=margin, retry_failed=retry_failed, trace=trace)
    if not others:
        assert found is not None
        return found
    with closing(Store.open(config.store)) as store:
        judged = compare(store, config.name, new, old, on=others, margin=margin)
    if found is None:
        return judged
    return replace(found, scores=(*found.scores, *judged.scores))


def _require_answers(config: Config, new: str, old: str) -> None:
    """See that two agents can meet, before a judge is asked.

    Raises:
        InputError: one has answered nothing.
    """
    there = load_data(config).agents
    if silent := [name for name in (new, old) if name not in there]:
        raise InputError(
            f"{listed(silent)} answered nothing, so nothing was judged; 'ragleague failures CONFIG' says why"
        )


def _stages(config: Config, name: str) -> Sequence[str]:
    """The stages that a score takes, in their order."""
    scores = {"exam", "nuggets", PAIRWISE, "criteria", *(config.criteria.names if config.criteria is not None else ())}
    further = {score: stage.key for stage in STAGES for score in stage.scores}
    scores |= further.keys()
    if name not in scores:
        try:
            parse_measures([name])
        except InputError as error:
            raise InputError(f"--on {name}: no score is called so{nearest(name, scores)}") from error
    section = name if name in ("exam", "nuggets", PAIRWISE, "criteria") else further.get(name, "retrieval")
    if config.criteria is not None and name in config.criteria.names:
        section = "criteria"
    labels = ["relevance"] if config.retrieval is not None else []
    if section == "retrieval":
        if labels or config.data.qrels:
            return labels
    elif config.section(section) is not None:
        return [*labels, section]
    raise InputError(
        f"--on {name}: the configuration has no section {section!r}, and no criterion of that name; add one"
    )


def _by_batch(
    config: Config,
    new: str,
    old: str,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[RunPart], None],
    *,
    margin: float,
    retry_failed: bool,
    trace: Callable[[CallTrace], None] | None,
) -> GateBoard:
    """Games of the two agents alone, as many as decide."""
    section = config.pairwise
    assert section is not None
    data = _of_two(load_data(config), new, old)
    check_agents(new, old, data.agents)
    batch, most = adaptive_settings(section).batch, len(AdaptiveGames(section, data).at_most())
    most //= 2 if section.both_orders else 1
    if not most:
        raise InputError(f"{new} and {old} answered no query in common, so they cannot meet")
    left_out: dict[str, Any] = {**dict.fromkeys(("criteria", "exam", "nuggets", "synth")), "agents": {}, "further": {}}
    games = 0
    while True:
        games = min(games + batch, most)
        schedule = section.schedule.model_copy(update={"max_games": games})
        now = config.model_copy(
            update={
                **left_out,
                "name": f"{config.name}: {new} against {old}",
                "pairwise": section.model_copy(update={"schedule": schedule}),
            }
        )
        with progress() as told:
            summary = run(now, told, data=data, retry_failed=retry_failed, trace=trace)
        say(summary)
        with closing(Store.open(now.store)) as store:
            looks = [own / most for own in sorted({*_looked_after(store, now.name, most), games}) if own <= games]
            found = compare(store, now.name, new, old, on=PAIRWISE, margin=margin, looks=looks)
            without_card = bool(lacking_cards(store.settings(now.name), "verdicts", datetime.now(UTC).date()))
        left = any(stage.left for stage in summary.stages.values())
        if found.verdict != "undecided" or games >= most or left or without_card:
            return found


def _looked_after(store: Store, tournament: str, most: int) -> Iterator[int]:
    """After how many games earlier runs of this pair were looked at."""
    for earlier in Runs(store, tournament).all():
        schedule = earlier.subject.get("settings", {}).get("pairwise", {}).get("schedule", {})
        games = schedule.get("max_games")
        if isinstance(games, int) and 0 < games <= most:
            yield games


def _of_two(data: Dataset, new: str, old: str) -> Dataset:
    """What two agents answered and retrieved."""
    return replace(
        data,
        answers={key: own for key, own in data.answers.items() if key[1] in (new, old)},
        retrieved={
            query_id: [entry for entry in entries if entry.agent in (new, old, SHARED)]
            for query_id, entries in data.retrieved.items()
        },
    )
