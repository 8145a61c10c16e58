"""Judges held against people, and ways of scoring against each other: from files, or from a tournament's store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from arena.boards.cache import Cache, cached_games
from arena.boards.calibration.board import Calibration
from arena.boards.results import Group, of_group
from arena.calibration.comparison import PANEL, Against, Comparison, Settings, compare
from arena.calibration.consensus import table_health
from arena.calibration.methods import Method, Played, compare_methods
from arena.calibration.style import StyleEffect, answer_qualities, family_effects, style_effects
from arena.calibration.votes import Level, Opinion
from arena.config.stored import StoredSettings
from arena.data.dataset import Dataset
from arena.data.files import load_dataset
from arena.data.games import GameTable
from arena.people.files import Reading, read_opinions
from arena.people.methods import Opinions, people_methods, stored_methods
from arena.people.opinions import (
    judges_opinions,
    labels_with_data,
    nugget_texts,
    peoples_opinions,
    spending,
    verdict_opinions,
)
from arena.ratings.games import Floats
from arena.ratings.judges import of_judge
from arena.store import Store
from arena.store.annotations import Annotations
from judges.errors import InputError

_VERDICTS: Final = ("verdicts", "")
"""Level and group of a tournament's games."""
WORTH_KEEPING: Final = 20_000
"""Games; figures of fewer are made in about a second."""


Progress: TypeAlias = Callable[[float, str], None]
"""Told how far something is, from 0 to 1, and what is done next."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Files, and how they are read."""

    paths: Sequence[Path] = ()
    reading: Reading = field(default_factory=Reading)


def calibrate_tables(
    judges: Tables,
    people: Tables,
    settings: Settings,
    *,
    texts: Mapping[tuple[str, str], str] | None = None,
    most: int = 0,
    label_next: int | None = None,
) -> Calibration:
    """Read tables and compare everything that judges and people both speak of.

    Args:
        judges: what judges said.
        people: what people said.
        settings: of the comparison.
        texts: for disagreements, see ``texts_of``.
        most: disagreements listed of each judge.
        label_next: things to label next, of each judge corrected by people; ``None`` corrects none.

    Raises:
        InputError: a file cannot be read, or judges and people speak of different things.
    """
    said, notes = read_tables(judges)
    human, more = read_tables(people)
    if not any(key in said for key in human):
        raise InputError(f"{_kinds(judges.paths, said)}; {_kinds(people.paths, human)}: nothing in common to compare")
    found = compare_opinions(said, human, settings, most=most, label_next=label_next)
    sides = [key for key in said if key not in human] + [key for key in human if key not in said]
    lonely = [f"{' '.join(filter(None, key))}: on one side only, left out" for key in sides]
    return Calibration(found, settings, (*notes, *more, *lonely), texts or {})


def compare_opinions(
    judges: Opinions,
    people: Opinions,
    settings: Settings,
    *,
    most: int = 0,
    label_next: int | None = None,
    boards: bool = True,
) -> tuple[Comparison, ...]:
    """Compare whatever both speak of; arguments as for ``calibrate_tables`` and ``compare``.

    Raises:
        InputError: they do not speak of the same things.
    """
    further: dict[str, Any] = {"most": most, "label_next": label_next, "boards": boards}
    found = tuple(
        compare(level, by_name(judges[level, group]), human, settings, group=group, **further)
        for (level, group), human in people.items()
        if (level, group) in judges
    )
    for one in found:
        if not any(judge.n for judge in one.judges.values()):
            what = f"{one.group}: " if one.group else ""
            raise InputError(f"{what}judges and people have no {one.people.level} of the same things to compare")
    return found


def by_name(said: Iterable[Opinion]) -> dict[str, list[Opinion]]:
    """What each rater said."""
    found: defaultdict[str, list[Opinion]] = defaultdict(list)
    for one in said:
        found[one.rater].append(one)
    return dict(sorted(found.items()))


def texts_of(queries: Path | None, documents: Sequence[Path], answers: Sequence[Path]) -> dict[tuple[str, str], str]:
    """Texts of queries under ``(query_id, "")``, of answers and documents under their query and name.

    Raises:
        InputError: a file cannot be read, or there are answers or documents without queries.
    """
    if queries is None:
        if documents or answers:
            raise InputError("--answers and --documents need --queries")
        return {}
    return dataset_texts(load_dataset(queries, documents, answers))


def dataset_texts(data: Dataset) -> dict[tuple[str, str], str]:
    """The same of data that are read already."""
    texts = {(query_id, ""): query.text for query_id, query in data.queries.items()}
    texts |= {key: answer.text for key, answer in data.answers.items()}
    for query_id, entries in data.retrieved.items():
        texts |= {(query_id, entry.doc_id): data.documents[entry.doc_id].text for entry in entries}
    return texts


def read_tables(tables: Tables) -> tuple[dict[tuple[Level, str], list[Opinion]], list[str]]:
    """What files say, and what is odd about them.

    Raises:
        InputError: a file cannot be read.
    """
    found: defaultdict[tuple[Level, str], list[Opinion]] = defaultdict(list)
    notes = []
    for path in tables.paths:
        read = read_opinions(path, tables.reading)
        for group, said in read.groups.items():
            found[read.level, group] += said
        notes += [f"{path}: {note}" for note in read.notes]
    return dict(found), notes


def _kinds(paths: Sequence[Path], said: Opinions) -> str:
    kinds = sorted({" ".join(filter(None, key)) for key in said})
    return f"{', '.join(map(str, paths))}: {', '.join(kinds)}"


@dataclass(frozen=True, slots=True)
class _Said:
    """Everything said of a tournament, by judges and by people.

    ``outdated`` counts annotations of texts that have changed since, which are left out; ``apart`` is as of
    ``Calibration``; ``games`` are all, where the judges' verdicts are of some.
    """

    judges: Opinions
    people: Opinions
    outdated: int
    apart: tuple[Level, ...]
    games: GameTable | None

    def compared(
        self, settings: Settings, *, most: int = 0, label_next: int | None = None, boards: bool = True
    ) -> tuple[Comparison, ...]:
        """Judges held against people; arguments as for ``compare``."""
        found = compare_opinions(self.judges, self.people, settings, most=most, label_next=label_next, boards=boards)
        if self.games is None:
            return found
        against = settings.against
        return tuple(
            _counting_all(one, self.games, against) if one.people.level == "verdicts" else one for one in found
        )


def _counting_all(found: Comparison, games: GameTable, against: Against) -> Comparison:
    """A comparison of verdicts on some games, with what it says of all games of the judges."""
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
    people: Tables = Tables(),
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
    in_files, notes = read_tables(people)
    games = cached_games(store, tournament)
    whole = label_next is not None or settings.games == "ordered"
    said = _said(store, tournament, in_files, games, data, whole=whole)
    alone = judges_alone(store, tournament, kept, games, data)
    methods = [*stored_methods(store, tournament, games, data), *people_methods(said.people)]
    comparisons = said.compared(settings, most=most, label_next=label_next)
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


def resampling_of(settings: StoredSettings) -> Settings:
    """How intervals are drawn, from a tournament's stored settings: as its ratings' are."""
    return Settings(samples=settings.ratings.bootstrap.samples, seed=settings.ratings.seed)


def compare_with_people(
    store: Store,
    tournament: str,
    data: Callable[[], Dataset] | None = None,
    *,
    group: Group | None = None,
    most: int = 0,
    boards: bool = False,
    label_next: int | None = None,
    tell: Progress = lambda _share, _doing: None,
) -> tuple[tuple[Comparison, ...], tuple[Level, ...]]:
    """A tournament's judges with people alone, as ``calibrate_tournament`` compares them.

    Args:
        store: where the judgments are.
        tournament: its name.
        data: reads its data, where they are in memory already.
        group: of queries that all is about, ``None`` for all queries.
        most: disagreements listed of each judge.
        boards: whether leaderboards of judges and people are compared too.
        label_next: as for ``calibrate_tournament``.
        tell: called with how far it is, and what is done next.

    Returns:
        The comparisons, and ``apart`` as of ``Calibration``.
    """
    if not (store.is_labelled(tournament) or Annotations(store, tournament).counts()):
        return (), ()
    if group is not None:
        store, data = of_group(store, tournament, group), None
    read = cache(partial(store.dataset, tournament)) if data is None else data
    tell(0.0, "Reading what judges and people said")
    said = _said(store, tournament, {}, cached_games(store, tournament), read, whole=label_next is not None)
    settings = resampling_of(store.settings(tournament))
    tell(0.3, "Holding judges against people")
    return said.compared(settings, most=most, boards=boards, label_next=label_next), said.apart


def keep_slow_figures(store: Store, tournament: str) -> None:
    """Make, at the end of a run, what a page of a large tournament would have to wait for."""
    kept, games = Cache(store, tournament), cached_games(store, tournament)
    if len(games) >= WORTH_KEEPING:
        judges_alone(store, tournament, kept, games, partial(store.dataset, tournament))


def styles_of(store: Store, tournament: str, tell: Progress) -> tuple[StyleEffect, ...]:
    """What answer judges make of qualities of style, and of agents of their own family; ``tell`` as above."""
    games, data = cached_games(store, tournament), cache(partial(store.dataset, tournament))
    alone = judges_alone(store, tournament, Cache(store, tournament), games, data, tell=tell)
    people, _ = peoples_opinions(store, tournament, data)
    return (*alone.styles, *_families(store, tournament, games, people.get(_VERDICTS, ())))


def _said(
    store: Store, tournament: str, people: Opinions, games: GameTable, data: Callable[[], Dataset], *, whole: bool
) -> _Said:
    """What people said: in files, on the pages, and with the data where a judge judged the same; and judges beside.

    Of the judges' verdicts those on games that people judged are enough, unless all are asked for (``whole``): there
    may be hundreds of thousands of others.
    """
    own, outdated = peoples_opinions(store, tournament, data)
    if store.is_labelled(tournament):
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
    return _Said(judges, human, outdated, tuple(apart), None if shared is None else games)


def _families(store: Store, tournament: str, games: GameTable, people: Sequence[Opinion]) -> tuple[StyleEffect, ...]:
    """What judges with a family make of their kin, where any have one."""
    of_judges, of_agents = store.settings(tournament).families
    played = {games.judges[number] for number in set(games.judge[games.played].tolist())}
    judges = {judge: own for judge, own in of_judges.items() if judge in played}
    return family_effects([*verdict_opinions(games), *people], judges, of_agents) if judges else ()


@dataclass(frozen=True, slots=True, eq=False)
class _KeptRatings:
    """Ratings as a method of comparison, kept under the settings, games and weights that they are made of."""

    method: Played
    cache: Cache

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def agents(self) -> tuple[str, ...]:
        return self.method.agents

    @property
    def queries(self) -> tuple[str, ...]:
        return self.method.queries

    def points(self) -> Floats:
        return self._kept(f"calibration: {self.name}", np.empty(0), self.method.points)

    def drawn(self, weights: Floats) -> Floats:
        return self._kept(f"calibration: {self.name} of samples", weights, lambda: self.method.drawn(weights))

    def _kept(self, kind: str, weights: Floats, make: Callable[[], Floats]) -> Floats:
        games = self.method.games
        made_of = [games.a, games.b, games.score, games.cluster, weights]
        settings = repr(self.method.settings).encode()
        return self.cache.made(kind, make, settings + b"".join(np.asarray(own).tobytes() for own in made_of))


def judges_alone(
    store: Store,
    tournament: str,
    cache: Cache,
    games: GameTable,
    data: Callable[[], Dataset],
    *,
    tell: Progress = lambda _share, _doing: None,
) -> Calibration:
    """What answer judges show in all games without people: what they cost, what places sway, and what style does.

    ``data`` reads the tournament's, where the figures are not kept; ``tell`` is as of ``compare_with_people``.
    """

    def made() -> Calibration:
        tell(0.0, "Reading the answers")
        verdicts = games.verdicts()
        by_judge = {judge: of_judge(verdicts, judge) for judge in verdicts.judges}
        answers = answer_qualities({key: own.text for key, own in data().answers.items()} if by_judge else {})
        styles: list[StyleEffect] = []
        for at, (judge, own) in enumerate(by_judge.items()):
            tell(0.3 + 0.6 * at / len(by_judge), "Fitting what length, lists and citations are worth")
            styles += style_effects(judge, own, answers)
        tell(0.9, "Adding up what judges cost")
        return Calibration(
            tournament=tournament,
            spent=spending(store, tournament),
            orders={judge: table_health(own) for judge, own in by_judge.items()},
            styles=tuple(styles),
        )

    if len(games) < WORTH_KEEPING:
        return made()
    return cache.made("calibration: judges", made)


def with_kept_scores(method: Method, cache: Cache) -> Method:
    """The same method, its scores kept where they take long."""
    if isinstance(method, Played) and len(method.games) >= WORTH_KEEPING:
        return _KeptRatings(method, cache)
    return method
