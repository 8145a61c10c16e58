"""Compares judges with people, and ways of scoring with each other, from a tournament's store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration import EPSILON, Opinion
from arena.calibration.comparison import PANEL, Against, Comparison, Settings, regrouped
from arena.calibration.consensus import table_health
from arena.calibration.methods import Method, PeopleScores, compare_methods, draw
from arena.calibration.style import StyleEffect, answer_qualities, family_effects, style_effects
from arena.calibration.votes import Level, Opinions
from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.ratings.health import of_judge
from arena.results.cache import WORTH_KEEPING, Cache, cached_games
from arena.results.games import GameTable
from arena.results.opinions import (
    judges_opinions,
    labels_with_data,
    nugget_texts,
    peoples_opinions,
    verdict_opinions,
)
from arena.results.ratings import rating_settings
from arena.results.scores import PEOPLE, enough, people_methods, people_scores, stored_methods
from arena.results.table_agreement import (
    Calibration,
    OpinionFiles,
    Spending,
    compare_opinions,
    dataset_texts,
    read_tables,
    tests_of,
)
from arena.store import Store
from arena.store.annotations import Annotations
from arena.store.wants import spent_by_judge
from retrieval_eval.stats.bootstrap import Clusters
from retrieval_eval.stats.estimate import Drawn
from retrieval_eval.stats.scores import Scores

_VERDICTS: Final = ("verdicts", "")


TellDoing: TypeAlias = Callable[[float, str], None]
"""A function that is called with the progress, from 0 to 1, and a description of the next step."""


class _TournamentOpinions(Struct, frozen=True):
    """The judgments and labels of a tournament, by judges and by people.

    ``grades`` are people's grades of answers, including those that no judge graded. ``outdated`` is the number of
    annotations that are left out because their texts have changed. ``apart`` has the levels at which people labelled
    only items that no judge judged. ``games`` has all games if ``judges`` has verdicts on only some of them; otherwise
    it is ``None``. ``clusters`` gives the conversation of each query. ``scores`` has the agents' scores by all
    labels of people, also on levels that no judge judged.
    """

    judges: Opinions
    people: Opinions
    grades: Opinions
    outdated: int
    apart: tuple[Level, ...]
    games: GameTable | None
    clusters: Clusters
    scores: tuple[PeopleScores, ...]

    def comparisons(
        self, settings: Settings, *, most: int = 0, label_next: int | None = None, boards: bool = True
    ) -> tuple[Comparison, ...]:
        """Compare judges with people; ``settings`` and the other arguments are those of ``compare_opinions``."""
        options: dict[str, Any] = {"most": most, "label_next": label_next, "boards": boards, "clusters": self.clusters}
        comparisons = compare_opinions(self.judges, self.people, settings, **options)
        if self.games is None:
            return comparisons
        against = settings.against
        return tuple(
            _with_all_games(comparison, self.games, against) if comparison.people.level == "verdicts" else comparison
            for comparison in comparisons
        )


def _with_all_games(comparison: Comparison, games: GameTable, against: Against) -> Comparison:
    verdicts = games.verdicts()
    judges = {}
    for name, judge in comparison.judges.items():
        of_panel = name == PANEL
        played = np.unique(games.pair[games.played]).size if of_panel else (games.played & games.of_judge(name)).sum()
        orders = None if of_panel else table_health(of_judge(verdicts, name))
        judge_only, labels = int(played) - judge.n, judge.labels
        if labels is not None and against == "consensus":
            labels = replace(labels, second_only=judge_only)
        judges[name] = replace(judge, judge_only=judge_only, orders=orders, labels=labels)
    return replace(comparison, judges=judges)


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
    """Compare a tournament's judges with people, and its methods of scoring agents with each other.

    Args:
        people: files of people's labels, in addition to annotations made on the pages and labels in the dataset.
        method_samples: number of bootstrap samples for the correlations between methods of scoring.
        most: maximum number of disagreements to list for each judge.
        label_next: number of items to suggest for labelling, per judge; ``None`` computes no corrected estimates.

    Raises:
        InputError: there is no such tournament, a file cannot be read, or judges and people have no item in common.
    """
    figures, data = Cache(store, tournament), cache(partial(store.dataset, tournament))
    file_opinions, notes, _ = read_tables(people or OpinionFiles())
    latest = Annotations(store, tournament).latest()
    inputs = repr((settings, method_samples, most, label_next, file_opinions, notes, latest)).encode()

    def cached_draw(method: Method, queries: Sequence[str], samples: int, seed: int, clusters: Clusters) -> Drawn:
        make = partial(draw, method, queries, samples, seed, clusters)
        if isinstance(method, Scores) or method.name == PEOPLE:
            return make()
        return figures.made(f"calibration: {method.name}", make, repr((queries, samples, seed)).encode())

    def calibrate() -> Calibration:
        games = cached_games(store, tournament)
        all_games = label_next is not None or settings.games == "ordered"
        opinions = _tournament_opinions(store, tournament, file_opinions, games, data, all_games=all_games)
        judge_figures = judges_alone(store, tournament, figures, games, data)
        methods = [*stored_methods(store, tournament, games, data), *people_methods(enough(opinions.people))]
        if opinions.outdated:
            notes.append(f"{opinions.outdated:,} annotations left out: their texts have changed since")
        notes.extend(f"{level}: people labelled only items that no judge judged; left out" for level in opinions.apart)
        return replace(
            judge_figures,
            comparisons=opinions.comparisons(settings, most=most, label_next=label_next),
            settings=settings,
            notes=tuple(notes),
            methods=compare_methods(methods, method_samples, settings.seed, games.clusters, drawn=cached_draw),
            styles=(
                *judge_figures.styles,
                *_family_effects_of(store, tournament, games, opinions.people.get(("verdicts", ""), ())),
            ),
            apart=opinions.apart,
            grade_tests=tests_of(opinions.grades, settings, opinions.clusters),
            scores=opinions.scores,
        )

    calibration = figures.made("calibration", calibrate, inputs)
    with_texts = most and calibration.comparisons
    return (
        replace(calibration, texts=dataset_texts(data()) | nugget_texts(store, tournament))
        if with_texts
        else calibration
    )


def resampling_of(settings: StoredSettings) -> Settings:
    epsilon = EPSILON if settings.card is None else settings.card.epsilon
    return Settings(samples=settings.ratings.bootstrap.samples, seed=settings.ratings.seed, epsilon=epsilon)


def compare_with_people(
    store: Store,
    tournament: str,
    *,
    most: int = 0,
    boards: bool = False,
    label_next: int | None = None,
    tell: TellDoing = lambda _share, _doing: None,
) -> tuple[tuple[Comparison, ...], tuple[Level, ...], tuple[PeopleScores, ...]]:
    """Compare a tournament's judges with people, as ``calibrate_tournament`` does, and compute nothing else.

    ``boards`` also compares the leaderboards of judges and people. ``tell`` is called with the progress and the next
    step. The other arguments are those of ``calibrate_tournament``. Without ``label_next``, a large tournament's judges
    are corrected on the games that people judged, which is quicker than on all.

    Returns:
        The comparisons; the levels at which people annotated only items that no judge judged; and the agents' scores by
        people's labels. All are empty if no person labelled anything.
    """
    if not (store.is_labelled(tournament) or Annotations(store, tournament).counts()):
        return (), (), ()
    # Labels in the data need the whole dataset; otherwise the annotated queries are enough.
    data = cache(partial(store.dataset, tournament)) if store.is_labelled(tournament) else None
    tell(0.0, "Reading the opinions of judges and people")
    games = cached_games(store, tournament)
    all_games = label_next is not None or len(games) < WORTH_KEEPING
    opinions = _tournament_opinions(store, tournament, {}, games, data, all_games=all_games)
    settings = resampling_of(store.settings(tournament))
    tell(0.3, "Comparing judges with people")
    comparisons = opinions.comparisons(settings, most=most, boards=boards, label_next=label_next or 0)
    return comparisons, opinions.apart, opinions.scores


def keep_judges_alone(store: Store, tournament: str) -> None:
    """Precompute per-judge figures at the end of a run, so that the Trust page opens at once."""
    games = cached_games(store, tournament)
    judges_alone(store, tournament, Cache(store, tournament), games, partial(store.dataset, tournament))


def styles_of(store: Store, tournament: str, tell: TellDoing) -> tuple[StyleEffect, ...]:
    """Effects of answer style and model family on the judges' verdicts; ``tell`` is called with the progress."""
    games, data = cached_games(store, tournament), cache(partial(store.dataset, tournament))
    judge_figures = judges_alone(store, tournament, Cache(store, tournament), games, data, tell=tell)
    people, _ = peoples_opinions(store, tournament, data)
    return (*judge_figures.styles, *_family_effects_of(store, tournament, games, people.get(_VERDICTS, ())))


def _tournament_opinions(
    store: Store,
    tournament: str,
    file_opinions: Opinions,
    games: GameTable,
    data: Callable[[], Dataset] | None,
    *,
    all_games: bool,
) -> _TournamentOpinions:
    """Collect the judges' judgments, and people's labels from files, annotation pages and the dataset.

    People's labels from pages and dataset are used only for a level (such as verdicts or grades) at which a judge
    judged some of the same items, or at which the files have labels too. Judges' verdicts are read only for games that
    people judged, unless ``all_games`` is set or some judge judged none of them: a tournament may have hundreds of
    thousands of other games.
    """
    store_opinions, outdated = peoples_opinions(store, tournament, data)
    if data is not None and store.is_labelled(tournament):
        store_opinions["labels", ""] = store_opinions.get(("labels", ""), []) + labels_with_data(data())
    human_verdicts = [*file_opinions.get(_VERDICTS, ()), *store_opinions.get(_VERDICTS, ())]
    shared = (
        None if all_games else games.of_pairs({(opinion.query_id, *opinion.item[-2:]) for opinion in human_verdicts})
    )
    if shared is not None and set(games.judge[games.played & shared]) != set(games.judge[games.played]):
        shared = None  # a judge that played none of these games is compared too
    judges = judges_opinions(
        store, tournament, games, {level for level, _ in (*file_opinions, *store_opinions)}, shared
    )
    human = {key: list(opinions) for key, opinions in file_opinions.items()}
    apart = []
    for key, opinions in store_opinions.items():
        judged = {(opinion.query_id, opinion.item) for opinion in judges.get(key, ())}
        if key in file_opinions or any((opinion.query_id, opinion.item) in judged for opinion in opinions):
            human.setdefault(key, []).extend(opinions)
        else:
            apart.append(key[0])
    graded = [key for key in {**file_opinions, **store_opinions} if key[0] == "criteria"]
    grades = {key: [*file_opinions.get(key, ()), *store_opinions.get(key, ())] for key in graded}
    everything = {
        key: [*file_opinions.get(key, ()), *store_opinions.get(key, ())] for key in {**file_opinions, **store_opinions}
    }
    options = rating_settings(store.settings(tournament))
    scores = people_scores(
        everything, sorted(store.queries(tournament)), (options.bootstrap, options.seed), games.clusters
    )
    played = None if shared is None else games
    return _TournamentOpinions(judges, human, grades, outdated, tuple(apart), played, games.clusters, scores)


def _family_effects_of(
    store: Store, tournament: str, games: GameTable, people: Sequence[Opinion]
) -> tuple[StyleEffect, ...]:
    """Effects of a model family that judge and agent share on verdicts; empty if no judge of the games declares one."""
    families = store.settings(tournament).families
    played = {games.judges[number] for number in set(games.judge[games.played].tolist())}
    judges = {judge: family for judge, family in families.get("judges", {}).items() if judge in played}
    if not judges:
        return ()
    opinions = regrouped([*verdict_opinions(games), *people], games.clusters)
    return family_effects(opinions, judges, families["agents"])


def judges_alone(
    store: Store,
    tournament: str,
    cache: Cache,
    games: GameTable,
    data: Callable[[], Dataset],
    *,
    tell: TellDoing = lambda _share, _doing: None,
) -> Calibration:
    """Compute the figures of judges that need no human labels: their cost, position bias and style effects.

    ``data`` reads the tournament's dataset and is called only if the figures are not cached. ``tell`` is explained in
    ``compare_with_people``.
    """

    def compute() -> Calibration:
        tell(0.0, "Reading the answers")
        verdicts = games.verdicts()
        by_judge = {judge: of_judge(verdicts, judge) for judge in verdicts.judges}
        texts = {key: answer.text for key, answer in data().answers.items() if answer.has_text} if by_judge else {}
        answers = answer_qualities(texts, lambda share: tell(0.2 + 0.25 * share, "Measuring the answers"))
        styles: list[StyleEffect] = []
        for number, (judge, judge_verdicts) in enumerate(by_judge.items()):

            def fitted(share: float, number: int = number) -> None:
                tell(0.45 + 0.3 * (number + share) / len(by_judge), "Fitting effects of length, lists and citations")

            styles += style_effects(judge, judge_verdicts, answers, fitted)
        tell(0.75, "Adding up the judges' costs")
        return Calibration(
            tournament=tournament,
            spent=spending(store, tournament),
            orders={judge: table_health(judge_verdicts) for judge, judge_verdicts in by_judge.items()},
            styles=tuple(styles),
        )

    return cache.made("calibration: judges", compute)


def spending(store: Store, tournament: str) -> dict[str, Spending]:
    return {
        judge: Spending(games, wanted, failed, None if unpriced else cost)
        for judge, games, wanted, failed, unpriced, cost in spent_by_judge(store, tournament)
    }
