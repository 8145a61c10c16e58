"""A tournament calibrated: its methods against each other, its judges against people, what judges cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from arena.boards.cache import Cache, cached_games
from arena.calibration.calibrated import Calibrated
from arena.calibration.comparison import Comparison
from arena.calibration.judge_people import Settings
from arena.calibration.methods import compare_methods
from arena.calibration.opinions import Level, Opinion
from arena.calibration.style import StyleEffect, family_effects
from arena.data.dataset import Dataset
from arena.games.table import GameTable
from arena.opinions.kept import judges_alone, with_kept_scores
from arena.opinions.methods import people_methods, stored_methods
from arena.opinions.people import nugget_texts, peoples_opinions
from arena.opinions.stored import judges_opinions, labels_with_data, verdict_opinions
from arena.opinions.tables import Opinions, Tables, compare_opinions, dataset_texts, read_tables
from arena.store import Store
from arena.store.annotations import Annotations


@dataclass(frozen=True, slots=True)
class _Said:
    """Everything said of a tournament, by judges and by people.

    ``outdated`` counts annotations of texts that have changed since, which are left out; ``apart`` is as of
    ``Calibrated``.
    """

    judges: Opinions
    people: Opinions
    outdated: int
    apart: tuple[Level, ...]


def calibrate_tournament(
    store: Store,
    tournament: str,
    settings: Settings,
    people: Tables = Tables(),  # noqa: B008 - frozen
    *,
    method_samples: int = 200,
    most: int = 0,
    label_next: int | None = None,
) -> Calibrated:
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
    in_files, notes = read_tables(people)
    games = cached_games(store, tournament)
    said = _said(store, tournament, in_files, games, data)
    alone = judges_alone(store, tournament, kept, games, data)
    methods = [*stored_methods(store, tournament, games, data), *people_methods(said.people)]
    comparisons = compare_opinions(said.judges, said.people, settings, most=most, label_next=label_next)
    if said.outdated:
        notes.append(f"{said.outdated:,} annotations are of texts that have changed since: left out")
    notes += [f"{level}: people spoke of nothing that a judge judged: left out" for level in said.apart]
    listed = most and comparisons
    return replace(
        alone,
        comparisons=comparisons,
        settings=settings,
        notes=tuple(notes),
        texts=dataset_texts(data()) | nugget_texts(store, tournament) if listed else {},
        methods=compare_methods([with_kept_scores(own, kept) for own in methods], method_samples, settings.seed),
        styles=(*alone.styles, *_families(store, tournament, games, said.people.get(("verdicts", ""), ()))),
        apart=said.apart,
    )


def resampling_of(settings: Mapping[str, Any]) -> Settings:
    """How intervals are drawn, from a tournament's stored settings: as its ratings' are."""
    ratings = settings["ratings"]
    return Settings(samples=ratings["bootstrap"]["samples"], seed=ratings["seed"])


def compare_with_people(store: Store, tournament: str) -> tuple[tuple[Comparison, ...], tuple[Level, ...]]:
    """A tournament's judges with people alone, as ``calibrate_tournament`` compares them.

    Returns:
        The comparisons, and ``apart`` as of ``Calibrated``.
    """
    if not (store.is_labelled(tournament) or Annotations(store, tournament).counts()):
        return (), ()
    said = _said(store, tournament, {}, cached_games(store, tournament), partial(store.dataset, tournament))
    settings = resampling_of(store.settings(tournament))
    return compare_opinions(said.judges, said.people, settings), said.apart


def _said(store: Store, tournament: str, people: Opinions, games: GameTable, data: Callable[[], Dataset]) -> _Said:
    """What people said: in files, on the pages, and with the data where a judge judged the same; and judges beside."""
    own, outdated = peoples_opinions(store, tournament)
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
    return _Said(judges, human, outdated, tuple(apart))


def _families(store: Store, tournament: str, games: GameTable, people: Sequence[Opinion]) -> tuple[StyleEffect, ...]:
    """What judges with a family make of their kin, where any have one."""
    families = store.settings(tournament).get("families") or {"judges": {}}
    played = {games.judges[number] for number in set(games.judge[games.played].tolist())}
    judges = {judge: own for judge, own in families["judges"].items() if judge in played}
    return family_effects([*verdict_opinions(games), *people], judges, families["agents"]) if judges else ()
