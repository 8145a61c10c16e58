"""A tournament calibrated: its methods against each other, its judges against people, what judges cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.calibration.comparison import Comparison
from arena.calibration.estimates import Wish
from arena.calibration.judge_people import Settings
from arena.calibration.methods import MethodComparison, compare_methods
from arena.calibration.opinions import Level, Opinion
from arena.calibration.orders import OrderHealth, order_health
from arena.calibration.style import StyleEffect, family_effects, style_effects
from arena.opinions.methods import people_methods, stored_methods
from arena.opinions.people import peoples_opinions
from arena.opinions.stored import Spending, judges_opinions, peoples_labels, spending
from arena.opinions.tables import Opinions, by_name, compare_opinions, dataset_texts
from arena.store import Store
from arena.store.annotations import Annotations


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
    said = _said(store, tournament, people)
    verdicts = said.people.get(("verdicts", ""), ())
    games: Mapping[str, list[Opinion]] = by_name(said.judges.get(("verdicts", ""), ()))
    methods = [*stored_methods(store, tournament), *people_methods(said.people)]
    return TournamentCalibration(
        compare_methods(methods, method_samples, settings.seed),
        compare_opinions(said.judges, said.people, settings, most=most, wish=wish),
        spending(store, tournament),
        {judge: own for judge, said_by in games.items() if (own := order_health(said_by)) is not None},
        dataset_texts(store.dataset(tournament)) if most else {},
        said.outdated,
        _styles(store, tournament, games, list(verdicts)),
        said.apart,
    )


def compare_with_people(store: Store, tournament: str, settings: Settings) -> tuple[tuple[Comparison, ...], str]:
    """A tournament's judges with people alone, as ``calibrate_tournament`` compares them.

    Returns:
        The comparisons, and ``not_compared`` of what people judged apart from the judges.
    """
    if not (store.is_labelled(tournament) or Annotations(store, tournament).counts()):
        return (), ""
    said = _said(store, tournament, {})
    return compare_opinions(said.judges, said.people, settings), not_compared(said.apart)


def not_compared(apart: Sequence[Level]) -> str:
    """Why people's judgments on these levels are held against no judge's; empty where there are none."""
    return f"judges and people have no {', '.join(apart)} of the same things to compare" if apart else ""


def _said(store: Store, tournament: str, people: Opinions) -> _Said:
    """What judges said, and people: in files, on the pages, and with the data where a judge judged the same."""
    judges, on_pages = judges_opinions(store, tournament), peoples_opinions(store, tournament)
    own = dict(on_pages.opinions)
    if labels := peoples_labels(store, tournament):
        own["labels", ""] = own.get(("labels", ""), []) + labels
    human = {key: list(said) for key, said in people.items()}
    apart = []
    for key, said in own.items():
        judged = {(one.query_id, one.item) for one in judges.get(key, ())}
        if key in people or any((one.query_id, one.item) in judged for one in said):
            human.setdefault(key, []).extend(said)
        else:
            apart.append(key[0])
    return _Said(judges, human, on_pages.outdated, tuple(apart))


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
