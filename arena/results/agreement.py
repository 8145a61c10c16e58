"""Judges held against people, and ways of scoring against each other, from a tournament's store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration import EPSILON
from arena.calibration.comparison import PANEL, Against, Comparison, Settings, regrouped
from arena.calibration.consensus import table_health
from arena.calibration.methods import Means, Method, compare_methods, draw
from arena.calibration.style import StyleEffect, answer_qualities, family_effects, style_effects
from arena.calibration.votes import Level, Opinion, Opinions
from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.ratings.judges import of_judge
from arena.results.cache import Cache, cached_games
from arena.results.calibration import Calibration
from arena.results.games import GameTable
from arena.results.opinions import (
    judges_opinions,
    labels_with_data,
    nugget_texts,
    peoples_opinions,
    spending,
    verdict_opinions,
)
from arena.results.ratings import Group, of_group
from arena.results.scores import PEOPLE, people_methods, stored_methods
from arena.results.table_agreement import OpinionFiles, compare_opinions, dataset_texts, read_tables, tests_of
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.stats.bootstrap import Clusters
from retrieval_eval.stats.estimate import Drawn

_VERDICTS: Final = ("verdicts", "")
"""Level and group of a tournament's games."""


TellDoing: TypeAlias = Callable[[float, str], None]
"""Told how far something is, from 0 to 1, and what is done next."""


class _Said(Struct, frozen=True):
    """Everything said of a tournament, by judges and by people.

    ``grades`` are people's of answers, whoever else judged them; ``outdated`` counts annotations of texts that have
    changed since, which are left out; ``apart`` is as of ``Calibration``; ``games`` are all, where the judges' verdicts
    are of some; ``clusters`` are the conversations.
    """

    judges: Opinions
    people: Opinions
    grades: Opinions
    outdated: int
    apart: tuple[Level, ...]
    games: GameTable | None
    clusters: Clusters

    def compared(
        self, settings: Settings, *, most: int = 0, label_next: int | None = None, boards: bool = True
    ) -> tuple[Comparison, ...]:
        """Judges held against people; arguments as for ``compare``."""
        how: dict[str, Any] = {"most": most, "label_next": label_next, "boards": boards, "clusters": self.clusters}
        found = compare_opinions(self.judges, self.people, settings, **how)
        if self.games is None:
            return found
        against = settings.against
        return tuple(
            _counting_all(one, self.games, against) if one.people.level == "verdicts" else one for one in found
        )


def _counting_all(found: Comparison, games: GameTable, against: Against) -> Comparison:
    verdicts = games.verdicts()
    whole = {}
    for name, judge in found.judges.items():
        of_panel = name == PANEL
        played = np.unique(games.pair[games.played]).size if of_panel else (games.played & games.of_judge(name)).sum()
        orders = None if of_panel else table_health(of_judge(verdicts, name))
        alone, labels = int(played) - judge.n, judge.labels
        if labels is not None and against == "consensus":
            labels = replace(labels, second_only=alone)
        whole[name] = replace(judge, judge_only=alone, orders=orders, labels=labels)
    return replace(found, judges=whole)


def calibrate_tournament(
    store: Store,
    tournament: str,
    settings: Settings,
    people: OpinionFiles | None = None,
    *,
    method_samples: int = 200,
    most: int = 0,
    label_next: int | None = None,
) -> Calibration:
    """Calibrate what a store holds.

    Args:
        store: where the judgments are.
        tournament: its name.
        settings: of comparisons with people.
        people: files of what people said; what they said on the pages, and their labels among the data, come on top.
        method_samples: bootstrap samples of the methods' correlations.
        most: disagreements listed of each judge.
        label_next: things to label next, of each judge corrected by people; ``None`` corrects none.

    Raises:
        InputError: no such tournament, a file cannot be read, or people speak of nothing that a judge judged.
    """
    kept, data = Cache(store, tournament), cache(partial(store.dataset, tournament))
    in_files, notes, _ = read_tables(people or OpinionFiles())
    latest = Annotations(store, tournament).latest()
    made_of = repr((settings, method_samples, most, label_next, in_files, notes, latest)).encode()

    def drawn(method: Method, queries: Sequence[str], samples: int, seed: int, clusters: Clusters) -> Drawn:
        make = partial(draw, method, queries, samples, seed, clusters)
        if isinstance(method, Means) or method.name == PEOPLE:
            return make()
        return kept.made(f"calibration: {method.name}", make, repr((queries, samples, seed)).encode())

    def made() -> Calibration:
        games = cached_games(store, tournament)
        whole = label_next is not None or settings.games == "ordered"
        said = _said(store, tournament, in_files, games, data, whole=whole)
        alone = judges_alone(store, tournament, kept, games, data)
        methods = [*stored_methods(store, tournament, games, data), *people_methods(said.people)]
        if said.outdated:
            notes.append(f"{said.outdated:,} annotations are of texts that have changed since: left out")
        notes.extend(f"{level}: people spoke of nothing that a judge judged: left out" for level in said.apart)
        return replace(
            alone,
            comparisons=said.compared(settings, most=most, label_next=label_next),
            settings=settings,
            notes=tuple(notes),
            methods=compare_methods(methods, method_samples, settings.seed, games.clusters, drawn=drawn),
            styles=(*alone.styles, *_families(store, tournament, games, said.people.get(("verdicts", ""), ()))),
            apart=said.apart,
            grade_tests=tests_of(said.grades, settings, said.clusters),
        )

    found = kept.made("calibration", made, made_of)
    listed = most and found.comparisons
    return replace(found, texts=dataset_texts(data()) | nugget_texts(store, tournament)) if listed else found


def resampling_of(settings: StoredSettings) -> Settings:
    """How intervals are drawn, from a tournament's stored settings: as its ratings' are."""
    epsilon = (settings.raw.get("card") or {}).get("epsilon", EPSILON)
    return Settings(samples=settings.ratings.bootstrap.samples, seed=settings.ratings.seed, epsilon=epsilon)


def compare_with_people(
    store: Store,
    tournament: str,
    *,
    group: Group | None = None,
    most: int = 0,
    boards: bool = False,
    label_next: int | None = None,
    tell: TellDoing = lambda _share, _doing: None,
) -> tuple[tuple[Comparison, ...], tuple[Level, ...]]:
    """A tournament's judges with people alone, as ``calibrate_tournament`` compares them.

    Arguments are as for ``calibrate_tournament``; ``boards`` says whether leaderboards of judges and people are
    compared too, and ``tell`` is called with how far it is, and what is done next.

    Returns:
        The comparisons, and ``apart`` as of ``Calibration``.
    """
    if not (store.is_labelled(tournament) or Annotations(store, tournament).counts()):
        return (), ()
    if group is not None:
        store = of_group(store, tournament, group)
    # Without labels that came with the data, those on which somebody said something are enough.
    data = cache(partial(store.dataset, tournament)) if store.is_labelled(tournament) else None
    tell(0.0, "Reading what judges and people said")
    said = _said(store, tournament, {}, cached_games(store, tournament), data, whole=label_next is not None)
    settings = resampling_of(store.settings(tournament))
    tell(0.3, "Holding judges against people")
    return said.compared(settings, most=most, boards=boards, label_next=label_next), said.apart


def keep_judges_alone(store: Store, tournament: str) -> None:
    """Make, at the end of a run, what a page of a large tournament would have to wait for."""
    games = cached_games(store, tournament)
    judges_alone(store, tournament, Cache(store, tournament), games, partial(store.dataset, tournament))


def styles_of(store: Store, tournament: str, tell: TellDoing) -> tuple[StyleEffect, ...]:
    """What answer judges make of qualities of style, and of agents of their own family; ``tell`` as above."""
    games, data = cached_games(store, tournament), cache(partial(store.dataset, tournament))
    alone = judges_alone(store, tournament, Cache(store, tournament), games, data, tell=tell)
    people, _ = peoples_opinions(store, tournament, data)
    return (*alone.styles, *_families(store, tournament, games, people.get(_VERDICTS, ())))


def _said(
    store: Store,
    tournament: str,
    people: Opinions,
    games: GameTable,
    data: Callable[[], Dataset] | None,
    *,
    whole: bool,
) -> _Said:
    """What people said: in files, on the pages, and with the data where a judge judged the same; and judges beside.

    Of the judges' verdicts those on games that people judged are enough, unless all are asked for (``whole``): there
    may be hundreds of thousands of others.
    """
    own, outdated = peoples_opinions(store, tournament, data)
    if data is not None and store.is_labelled(tournament):
        own["labels", ""] = own.get(("labels", ""), []) + labels_with_data(data())
    both = [*people.get(_VERDICTS, ()), *own.get(_VERDICTS, ())]
    shared = None if whole else games.of_pairs({(one.query_id, *one.item[-2:]) for one in both})
    if shared is not None and set(games.judge[games.played & shared]) != set(games.judge[games.played]):
        shared = None  # a judge of none of these games is compared too
    judges = judges_opinions(store, tournament, games, {level for level, _ in (*people, *own)}, shared)
    human = {key: list(said) for key, said in people.items()}
    apart = []
    for key, said in own.items():
        judged = {(one.query_id, one.item) for one in judges.get(key, ())}
        if key in people or any((one.query_id, one.item) in judged for one in said):
            human.setdefault(key, []).extend(said)
        else:
            apart.append(key[0])
    graded = [key for key in {**people, **own} if key[0] == "criteria"]
    grades = {key: [*people.get(key, ()), *own.get(key, ())] for key in graded}
    return _Said(judges, human, grades, outdated, tuple(apart), None if shared is None else games, games.clusters)


def _families(store: Store, tournament: str, games: GameTable, people: Sequence[Opinion]) -> tuple[StyleEffect, ...]:
    """What judges with a family make of their kin, where any have one."""
    of_judges, of_agents = store.settings(tournament).families
    played = {games.judges[number] for number in set(games.judge[games.played].tolist())}
    judges = {judge: own for judge, own in of_judges.items() if judge in played}
    if not judges:
        return ()
    said = regrouped([*verdict_opinions(games), *people], games.clusters)
    return family_effects(said, judges, of_agents)


def judges_alone(
    store: Store,
    tournament: str,
    cache: Cache,
    games: GameTable,
    data: Callable[[], Dataset],
    *,
    tell: TellDoing = lambda _share, _doing: None,
) -> Calibration:
    """What answer judges show in all games without people: what they cost, what places sway, and what style does.

    ``data`` reads the tournament's, where the figures are not kept; ``tell`` is as of ``compare_with_people``.
    """

    def made() -> Calibration:
        tell(0.0, "Reading the answers")
        verdicts = games.verdicts()
        by_judge = {judge: of_judge(verdicts, judge) for judge in verdicts.judges}
        texts = {key: own.text for key, own in data().answers.items() if own.has_text} if by_judge else {}
        answers = answer_qualities(texts, lambda share: tell(0.2 + 0.25 * share, "Looking at the answers"))
        styles: list[StyleEffect] = []
        for at, (judge, own) in enumerate(by_judge.items()):

            def fitted(share: float, at: int = at) -> None:
                tell(0.45 + 0.3 * (at + share) / len(by_judge), "Fitting what length, lists and citations are worth")

            styles += style_effects(judge, own, answers, fitted)
        tell(0.75, "Adding up what judges cost")
        return Calibration(
            tournament=tournament,
            spent=spending(store, tournament),
            orders={judge: table_health(own) for judge, own in by_judge.items()},
            styles=tuple(styles),
        )

    return cache.made("calibration: judges", made)
