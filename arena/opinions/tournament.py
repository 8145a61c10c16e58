"""A tournament calibrated: its methods against each other, its judges against people, what judges cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arena.calibration.comparison import Comparison
from arena.calibration.estimates import Wish
from arena.calibration.judge_people import Settings
from arena.calibration.methods import MethodComparison, compare_methods
from arena.calibration.opinions import Opinion
from arena.calibration.orders import OrderHealth, order_health, settled
from arena.calibration.style import StyleEffect, family_effects, style_effects
from arena.opinions.methods import people_method, stored_methods
from arena.opinions.people import peoples_opinions
from arena.opinions.stored import Spending, judges_opinions, peoples_labels, spending
from arena.opinions.tables import Opinions, by_name, compare_opinions, dataset_texts
from arena.store import Store


@dataclass(frozen=True, slots=True)
class TournamentCalibration:
    """What a tournament shows about itself.

    Attributes:
        methods: against each other.
        comparisons: judges against people, nothing where there are no people.
        spent: by answer judge.
        orders: by answer judge.
        texts: of queries under ``(query_id, "")``, of answers and documents under their query and name.
        outdated: people's annotations of texts that have changed since, which are left out.
        styles: what answer judges make of qualities of style, and of agents of their own family.
    """

    methods: MethodComparison
    comparisons: tuple[Comparison, ...]
    spent: Mapping[str, Spending]
    orders: Mapping[str, OrderHealth]
    texts: Mapping[tuple[str, str], str]
    outdated: int
    styles: tuple[StyleEffect, ...]


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
    judges = judges_opinions(store, tournament)
    on_pages = peoples_opinions(store, tournament)
    human = {key: list(said) for key, said in people.items()}
    for key, said in on_pages.opinions.items():
        human.setdefault(key, []).extend(said)
    if labels := peoples_labels(store, tournament):
        human.setdefault(("labels", ""), []).extend(labels)
    methods = stored_methods(store, tournament)
    if (of_people := people_method(settled(human.get(("verdicts", ""), []), verdicts=True))) is not None:
        methods.append(of_people)
    games: Mapping[str, list[Opinion]] = by_name(judges.get(("verdicts", ""), ()))
    return TournamentCalibration(
        compare_methods(methods, method_samples, settings.seed),
        compare_opinions(judges, human, settings, most=most, wish=wish),
        spending(store, tournament),
        {judge: order_health(said) for judge, said in games.items()},
        dataset_texts(store.dataset(tournament)) if most else {},
        on_pages.outdated,
        _styles(store, tournament, games, human.get(("verdicts", ""), [])),
    )


def _styles(
    store: Store, tournament: str, games: Mapping[str, list[Opinion]], people: list[Opinion]
) -> tuple[StyleEffect, ...]:
    texts = {key: answer.text for key, answer in store.dataset(tournament).answers.items()}
    found = [effect for judge, said in games.items() for effect in style_effects(judge, said, texts)]
    families = store.settings(tournament).get("families") or {}
    if families and games:
        judges = {judge: own for judge, own in families["judges"].items() if judge in games}
        said = [one for own in games.values() for one in own] + people
        found += family_effects(said, judges, families["agents"])
    return tuple(found)
