"""A tournament calibrated: its methods against each other, its judges against people, what judges cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from arena.calibration.comparison import Comparison
from arena.calibration.estimates import Wish
from arena.calibration.judge_people import Settings
from arena.calibration.methods import MethodComparison, compare_methods
from arena.calibration.opinions import Level, Opinion
from arena.calibration.orders import OrderHealth
from arena.calibration.style import StyleEffect, family_effects
from arena.dataset import Dataset
from arena.games.table import GameTable
from arena.kept import Cache, kept_games
from arena.opinions.kept import judges_alone, with_kept_scores
from arena.opinions.methods import people_methods, stored_methods
from arena.opinions.people import opinions_in, peoples_opinions, said_of_texts_now
from arena.opinions.stored import Spending, judges_opinions, labels_with_data, verdict_opinions
from arena.opinions.tables import Opinions, compare_opinions, dataset_texts
from arena.store import Store
from arena.store.annotations import Annotations, Kind


@dataclass(frozen=True, slots=True)
class TournamentCalibration:
    """What a tournament shows about itself.

    Attributes:
        methods: against each other.
        comparisons: judges against people, nothing where there are no people.
        spent: by answer judge.
        orders: by answer judge.
        texts: of queries under ``(query_id, "")``, of answers and documents under their query and name; for
            disagreements, if there are any comparisons.
        outdated: people's annotations of texts that have changed since, which are left out.
        styles: what answer judges make of qualities of style, and of agents of their own family.
        apart: levels on which people said something on the pages or with the data, of nothing that a judge judged.
    """

    methods: MethodComparison
    comparisons: tuple[Comparison, ...]
    spent: Mapping[str, Spending]
    orders: Mapping[str, OrderHealth]
    texts: Mapping[tuple[str, str], str]
    outdated: int
    styles: tuple[StyleEffect, ...]
    apart: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    """Everything said of a tournament, by judges and by people; ``outdated`` and ``apart`` as above."""

    judges: Opinions
    people: Opinions
    outdated: int
    apart: tuple[Level, ...]


def calibrate_tournament(
    store: Store,
    tournament: str,
    people: Opinions,
    settings: Settings,
    *,
    method_samples: int = 200,
    most: int = 0,
    wish: Wish | None = None,
) -> TournamentCalibration:
    """Calibrate what a store holds.

    Args:
        store: where the judgments are.
        tournament: its name.
        people: what people said in files; what they said on the pages, and their labels among the data, come on top.
        settings: of comparisons with people.
        method_samples: bootstrap samples of the methods' correlations.
        most: disagreements listed of each judge.
        wish: what is asked of corrected estimates, ``None`` for none.

    Raises:
        InputError: no such tournament, or people speak of nothing that a judge judged.
    """
    kept, data = Cache(store, tournament), cache(partial(store.dataset, tournament))
    games = kept_games(store, tournament)
    said = _said(store, tournament, people, games, data)
    alone = judges_alone(store, tournament, kept, games, data)
    methods = [*stored_methods(store, tournament, games, data), *people_methods(said.people)]
    comparisons = compare_opinions(said.judges, said.people, settings, most=most, wish=wish)
    return TournamentCalibration(
        compare_methods([with_kept_scores(own, kept) for own in methods], method_samples, settings.seed),
        comparisons,
        alone.spent,
        alone.orders,
        dataset_texts(data()) if most and comparisons else {},
        said.outdated,
        (*alone.styles, *_families(store, tournament, games, said.people.get(("verdicts", ""), ()))),
        said.apart,
    )


def resampling_of(settings: Mapping[str, Any]) -> Settings:
    """How intervals are drawn, from a tournament's stored settings: as its ratings' are."""
    ratings = settings["ratings"]
    return Settings(samples=ratings["bootstrap"]["samples"], seed=ratings["seed"])


def games_with_people(store: Store, tournament: str) -> tuple[Comparison, ...]:
    """A tournament's answer judges with people alone, which decides whether its games may name a leader."""
    annotated, _ = said_of_texts_now(store, tournament, Kind.VERDICT)
    said = [opinion for one in annotated for _, opinion in opinions_in(one)]
    judges = judges_opinions(store, tournament, kept_games(store, tournament), {"verdicts"}) if said else {}
    games = {(one.query_id, one.item) for one in judges.get(("verdicts", ""), ())}
    if not any((one.query_id, one.item) in games for one in said):
        return ()
    return compare_opinions(judges, {("verdicts", ""): said}, resampling_of(store.settings(tournament)))


def compare_with_people(store: Store, tournament: str) -> tuple[tuple[Comparison, ...], str]:
    """A tournament's judges with people alone, as ``calibrate_tournament`` compares them.

    Returns:
        The comparisons, and ``not_compared`` of what people judged apart from the judges.
    """
    if not (store.is_labelled(tournament) or Annotations(store, tournament).counts()):
        return (), ""
    said = _said(store, tournament, {}, kept_games(store, tournament), partial(store.dataset, tournament))
    settings = resampling_of(store.settings(tournament))
    return compare_opinions(said.judges, said.people, settings), not_compared(said.apart)


def not_compared(apart: Sequence[Level]) -> str:
    """Why people's judgments on these levels are held against no judge's; empty where there are none."""
    return f"judges and people have no {', '.join(apart)} of the same things to compare" if apart else ""


def _said(store: Store, tournament: str, people: Opinions, games: GameTable, data: Callable[[], Dataset]) -> _Said:
    """What people said: in files, on the pages, and with the data where a judge judged the same; and judges beside."""
    on_pages = peoples_opinions(store, tournament)
    own = dict(on_pages.opinions)
    if store.is_labelled(tournament):
        own["labels", ""] = own.get(("labels", ""), []) + labels_with_data(data())
    judges = judges_opinions(store, tournament, games, {level for level, _ in (*people, *own)})
    human = {key: list(said) for key, said in people.items()}
    apart = []
    for key, said in own.items():
        judged = {(one.query_id, one.item) for one in judges.get(key, ())}
        if key in people or any((one.query_id, one.item) in judged for one in said):
            human.setdefault(key, []).extend(said)
        else:
            apart.append(key[0])
    return _Said(judges, human, on_pages.outdated, tuple(apart))


def _families(store: Store, tournament: str, games: GameTable, people: Sequence[Opinion]) -> tuple[StyleEffect, ...]:
    """What judges with a family make of their kin, where any have one."""
    families = store.settings(tournament).get("families") or {"judges": {}}
    played = {games.judges[number] for number in set(games.judge[games.played].tolist())}
    judges = {judge: own for judge, own in families["judges"].items() if judge in played}
    return family_effects([*verdict_opinions(games), *people], judges, families["agents"]) if judges else ()
