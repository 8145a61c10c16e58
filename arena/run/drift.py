"""Freezes what people labelled with the prompts that judges got, and asks the judges again on a later date."""

from __future__ import annotations

import base64
import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration import Opinion
from arena.calibration.comparison import regrouped
from arena.calibration.drift import Drift, TwoDates, drift, mean_of, means_by_agent, two_dates
from arena.calibration.votes import Level
from arena.config.schema import Config
from arena.config.settings import StoredSettings
from arena.data.kinds import CRITERIA, NUGGETS, SUPPORT, Annotation, JudgedKind, kind_of
from arena.results.criteria import grades
from arena.results.nuggets import nugget_results
from arena.results.table_agreement import Calibration
from arena.run.agents import open_judges
from arena.run.batches import ask_in_batches
from arena.run.interrupts import run_to_end, stopping_early
from arena.run.planner import Planner
from arena.stages.together import TournamentStages
from arena.store import IDENTICAL, Result, Store, Wanted
from arena.store.outcomes import combined
from arena.store.rows import AssignmentSubject
from judges.errors import InputError
from judges.identity import judgment_id
from judges.judge import Judge, Request, RequestSource, Stop
from judges.types import Judgment, Prompt, Task, conversations
from retrieval_eval.nuggets.types import Support
from retrieval_eval.stats.estimate import Estimate

FROZEN: Final = Task("frozen")
"""Task of stored judgments whose reply is the prompt of the judgment that their id names."""
MOST: Final = 1_000
"""Number of judgments of each judge and level that are frozen at most."""
DRIFT: Final = Task("drift")
"""Task of stored judgments that say what an asking again found, for the trust check."""


class Anchor(Struct, frozen=True):
    """A judgment of something that people labelled; ``nuggets`` has the ids of those that it is on."""

    want: Wanted
    judgment_id: str
    nuggets: tuple[str, ...] = ()


class Frozen(Struct, frozen=True):
    """What a card holds, so that its judge can be asked again.

    Attributes:
        people: people's settled labels of these items; in conversations, these are named in place of queries.
        means: the mean score of each agent (or pair of agents), by all judgments of this judge.
        judged: by agent (or pair), the first six digits of the ids of these judgments.
        left_out: number of judgments whose prompt can no longer be made, since data or prompts have changed.
    """

    anchors: tuple[Anchor, ...]
    people: tuple[Opinion, ...]
    clusters: Mapping[str, str]
    means: Mapping[str, Estimate]
    judged: Mapping[str, list[str]]
    left_out: int


class AskedAgain(Struct, frozen=True):
    """What a judge says now of the items on its card.

    Attributes:
        made: date of the card.
        models: the models that replied then, and now.
        failed: number of judgments that have no result now.
        cost_usd: cost of the judgments now; ``None`` if a price is not known.
    """

    judge: str
    level: Level
    made: str
    drift: Drift
    models: tuple[list[str], list[str]]
    asked: int
    failed: int
    cost_usd: float | None
    agents: tuple[TwoDates, ...] = ()


def freeze(store: Store, config: Config, calibration: Calibration) -> dict[tuple[str, Level], Frozen]:
    """Store the prompts of judgments on what people labelled; returns what goes on the card of each judge."""
    data, settings = store.dataset(config.name), store.settings(config.name)
    clusters, stages = conversations(data.queries.values()), TournamentStages(config, data)
    stages.resume(store, config.name)
    planner, judges = Planner(stages, config.judges, store), open_judges(config, Stop(), None)
    kept, replayed = {}, set[tuple[str, str]]()
    for comparison in calibration.comparisons:
        kind, people = kind_of(comparison.people.level), comparison.people.opinions
        if calibration.settings.games == "ordered" and kind.task is Task.PAIRWISE:
            continue
        labelled = {(opinion.query_id, opinion.item) for opinion in people}
        for name, judged in _by_judge(store, config.name, kind).items():
            each = [(anchor, _opinions(kind, [(anchor, result)], settings, clusters)) for anchor, result in judged]
            anchors = [
                anchor
                for anchor, opinions in each
                if anchor.judgment_id != IDENTICAL and any(opinion[:2] in labelled for opinion in opinions)
            ]
            queries = _drawn([anchor.want.query_id for anchor in anchors])
            anchors = [anchor for anchor in anchors if anchor.want.query_id in queries]
            for stage in stages.stages:  # labels of documents, and nuggets, are parts of further prompts
                if {Task.RELEVANCE, *([kind.task] if kind is NUGGETS else [])} & {*stage.tasks}:
                    new = [query_id for query_id in queries if (stage.key, query_id) not in replayed]
                    replayed |= {(stage.key, query_id) for query_id in new}
                    planner.walk(want for query_id in new for want in stage.ready(stages.begin(stage, query_id)))
            prompts = {anchor: stages.prompt(anchor.want) for anchor in anchors}
            same = {
                anchor: prompt
                for anchor, prompt in prompts.items()
                if prompt is not None and _id(judges[name], prompt) == anchor.judgment_id
            }
            store.save([(FROZEN, "", _copy(anchor, prompt)) for anchor, prompt in same.items()])
            items = {opinion[:2] for anchor, opinions in each if anchor in same for opinion in opinions}
            kept[name, comparison.people.level] = Frozen(
                tuple(same),
                tuple(opinion for opinion in people if opinion[:2] in items),
                {query_id: clusters[query_id] for query_id in queries if query_id in clusters},
                means_by_agent(kind.level, _opinions(kind, judged, settings, clusters), kind.means),
                _known_by(kind, each),
                len(anchors) - len(same),
            )
    return kept


def _drawn(query_ids: Sequence[str]) -> dict[str, None]:
    """Queries in a random order, as many as have ``MOST`` of the judgments on these."""
    ranked = sorted(query_ids, key=lambda query_id: hashlib.sha256(query_id.encode("utf-8", "replace")).digest())
    return dict.fromkeys(ranked[:MOST])


def ask_again(store: Store, config: Config, card: Mapping[str, Any], today: date | None = None) -> AskedAgain:
    """Ask the judge of a card again on its frozen items; once a day, so that an interrupted asking goes on.

    Raises:
        InputError: the card has no frozen items, or the judge is another model or has other parameters now.
    """
    judge_name, level, made = card["judge"], card["level"], card["made"]
    try:
        held = msgspec.convert(card["frozen"], Frozen)
    except msgspec.ValidationError as error:
        raise InputError(
            f"the card of {judge_name} for {level}: 'frozen' was edited ({error}); write it again"
        ) from error
    if judge_name not in config.judges:
        raise InputError(f"judges: {judge_name!r}, the judge of the card, is missing; declare it as it was")
    stop, kind, settings = Stop(), kind_of(level), store.settings(config.name)
    judges = open_judges(config, stop, None, [judge_name])
    judge, prompts = judges[judge_name], _prompts(store, held.anchors)
    anchors = [anchor for anchor in held.anchors if anchor in prompts]
    if not anchors:
        raise InputError(f"the card of {judge_name} for {level}: none of its labelled items is frozen in this store")
    if _id(judge, prompts[anchors[0]]) != anchors[0].judgment_id:
        raise InputError(
            f"the card of {judge_name} for {level} was made with another model or other parameters: to compare two "
            "judges, name their tables ('ragleague calibrate A.csv B.csv --people P.csv')"
        )
    day = (today or datetime.now(UTC).date()).toordinal() * 100
    requests = {
        anchor: Request(_id(judge, again), again)
        for anchor in anchors
        for again in [replace(prompts[anchor], sample=day + prompts[anchor].sample)]
    }
    before = store.results([request.judgment_id for request in requests.values()])
    ask_in_batches(judges, store, stop, wait=True)
    missing = [each for each in requests.values() if not isinstance(before.get(each.judgment_id), Judgment)]
    run_to_end(_ask(judge, missing, store, stop))
    then = store.results([anchor.judgment_id for anchor in anchors])
    now = store.results([request.judgment_id for request in requests.values()])
    pairs = [(anchor, then.get(anchor.judgment_id), now.get(each.judgment_id)) for anchor, each in requests.items()]
    earlier = [(anchor, old) for anchor, old, new in pairs if isinstance(old, Judgment) and isinstance(new, Judgment)]
    later = [(anchor, new) for anchor, old, new in pairs if isinstance(old, Judgment) and isinstance(new, Judgment)]
    first, second = (_opinions(kind, judged, settings, held.clusters) for judged in (earlier, later))
    measured = drift(level, first, second, held.people)
    costs = [result.cost_usd for result in now.values()]
    asked = AskedAgain(
        judge_name,
        level,
        made,
        measured,
        (_models(earlier), _models(later)),
        len(requests),
        len(requests) - len(earlier),
        None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )
    if measured.verdict == "drifted":
        of_judge = means_by_agent(level, second, kind.means, first)
        asked = replace(asked, agents=tuple(_two_dates(store, config, held, (judge_name, kind), of_judge)))
    outcome = {"judge": judge_name, "level": level, "made": made, "day": day, "verdict": measured.verdict}
    outcome |= {"labels": measured.n, "moved": len(measured.labels), "tournament": config.name}
    ident = f"{DRIFT.value}-{config.name}-{judge_name}-{level}-{day}-{measured.n}"
    store.save([(DRIFT, "", Judgment(ident, outcome, "", "", "", calls=0, cost_usd=0.0))])
    return asked


def _two_dates(
    store: Store, config: Config, held: Frozen, of: tuple[str, JudgedKind], of_judge: Mapping[str, Estimate]
) -> Iterator[TwoDates]:
    (name, kind), settings = of, store.settings(config.name)
    clusters = conversations(store.queries(config.name).values())
    judged = _by_judge(store, config.name, kind)[name]
    each = [(anchor, _opinions(kind, [(anchor, result)], settings, clusters)) for anchor, result in judged]
    means = means_by_agent(kind.level, _opinions(kind, judged, settings, clusters), kind.means)
    for agent, ids in _known_by(kind, each).items():
        if agent in held.means:
            earlier = {*held.judged[agent]}
            anew = sum(ident not in earlier for ident in ids) / len(ids)
            yield two_dates(agent, held.means[agent], means[agent], anew, of_judge.get(agent))


async def _ask(judge: Judge, requests: Sequence[Request], store: Store, stop: Stop) -> None:
    async def save(request: Request, result: Result) -> None:
        assert request.prompt is not None
        store.save([(request.prompt.task, f"{request.prompt.name}@{request.prompt.version}", result)])

    with stopping_early(stop):
        try:
            await _Requests(requests).serve(judge, save)
        finally:
            await judge.close()


class _Requests(RequestSource):
    def __init__(self, requests: Sequence[Request]) -> None:
        self._left = [*requests]

    def take(self) -> Request | None:
        return self._left.pop() if self._left else None

    async def more(self) -> bool:
        return False

    def put_back(self, request: Request) -> None:
        self._left.append(request)

    def end(self) -> None:
        self._left.clear()


def _models(judged: Sequence[tuple[Anchor, Judgment]]) -> list[str]:
    return sorted({judgment.model for _, judgment in judged})


def _id(judge: Judge, prompt: Prompt) -> str:
    return judgment_id(prompt, judge.provider.identity, by_name=judge.provider.judges_names)


def _copy(anchor: Anchor, prompt: Prompt) -> Judgment:
    packed = base64.b64encode(msgspec.msgpack.encode(prompt)).decode()
    return Judgment(f"frozen-{anchor.judgment_id}", "", "", packed, "", calls=0, cost_usd=0.0)


def _prompts(store: Store, anchors: Sequence[Anchor]) -> dict[Anchor, Prompt]:
    copies = store.results([f"frozen-{anchor.judgment_id}" for anchor in anchors])
    return {
        anchor: msgspec.msgpack.decode(base64.b64decode(copy.reply or ""), type=Prompt)
        for anchor in anchors
        if (copy := copies.get(f"frozen-{anchor.judgment_id}")) is not None
    }


def _by_judge(store: Store, tournament: str, kind: JudgedKind) -> dict[str, list[tuple[Anchor, Judgment]]]:
    """All judgments of a kind, by judge; of nuggets, only those on finished lists."""
    banks, by_judge = {}, defaultdict[str, list[tuple[Anchor, Judgment]]](list)
    if kind is NUGGETS and (results := nugget_results(store, tournament)) is not None:
        banks = {query_id: [nugget.nugget_id for nugget in bank.nuggets] for query_id, bank in results.banks.items()}
    for (want, ident), (_, result) in zip(
        store.wanted(tournament, kind.task), store.outcomes(tournament, kind.task), strict=True
    ):
        if ident is None or not isinstance(result, Judgment) or (kind is NUGGETS and want.query_id not in banks):
            continue
        places = AssignmentSubject.of(want).places if kind is NUGGETS else ()
        anchor = Anchor(want, ident, tuple(banks[want.query_id][place - 1] for place in places))
        by_judge[want.judge].append((anchor, result))
    return by_judge


def _opinions(
    kind: JudgedKind, judged: Sequence[tuple[Anchor, Judgment]], settings: StoredSettings, clusters: Mapping[str, str]
) -> list[Opinion]:
    """The opinions in judgments, whose samples are combined."""
    nuggets = {anchor.want: anchor.nuggets for anchor, _ in judged}
    opinions: list[Opinion] = []
    for want, result in combined([(anchor.want, result) for anchor, result in judged], settings.combinations):
        if not isinstance(result, Judgment):
            continue
        if kind is NUGGETS:
            assert isinstance(result.outcome, tuple)
            labels = zip(nuggets[want], result.outcome, strict=False)
            opinions += [
                Opinion(want.query_id, (want.item, nugget), want.judge, SUPPORT[Support(label)])
                for nugget, label in labels
            ]
            continue
        value = grades(want, result, settings) if kind is CRITERIA else result.outcome
        item, other = want.shown if kind.task is Task.PAIRWISE else (want.item, want.other)
        opinions += kind.opinions(Annotation(kind.name, want.judge, want.query_id, item, other, "", value))
    return [*regrouped(opinions, clusters)]


def _known_by(kind: JudgedKind, judged: Sequence[tuple[Anchor, Sequence[Opinion]]]) -> dict[str, list[str]]:
    ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for anchor, opinions in judged:
        for opinion in opinions:
            ids[mean_of(kind.level, opinion.item, kind.means)][anchor.judgment_id[:6]] = None
    return {name: [*each] for name, each in ids.items()}
