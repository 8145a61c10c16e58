"""Compares judges with people from tables of their opinions; the comparison from a store uses the same functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from arena.calibration import Opinion
from arena.calibration.comparison import Comparison, Settings, compare
from arena.calibration.consensus import OrderHealth
from arena.calibration.methods import MethodComparison, PeopleScores
from arena.calibration.style import StyleEffect
from arena.calibration.two_judges import compare_judges
from arena.calibration.votes import GradeTest, Level, Opinions, grade_tests
from arena.data.kinds import kind_of
from arena.present.numbers import counted, listed
from arena.results.opinion_tables import OpinionTable, TableReading, read_opinions
from judges.errors import InputError
from judges.types import conversations
from retrieval_eval.data.conversations import require_one_spelling
from retrieval_eval.stats.bootstrap import ALONE, Clusters

if TYPE_CHECKING:
    from arena.data.dataset import Dataset


_NAMED: Final = 4


class Spending(Struct, frozen=True):
    """Number of games of one judge, and their cost.

    Attributes:
        games: number of pairs of answers with a verdict in at least one order.
        cost_usd: cost of all the judge's verdicts in dollars; ``None`` if a price is not known.
    """

    games: int
    wanted: int
    failed: int
    cost_usd: float | None

    @property
    def per_thousand(self) -> float | None:
        """Dollars per 1000 games; ``None`` if the cost is not known or no game was judged."""
        return None if self.cost_usd is None or not self.games else 1000 * self.cost_usd / self.games


class Calibration(Struct, frozen=True):
    """Judges compared with people, from tables of opinions or from a tournament's store.

    Attributes:
        comparisons: comparisons of judges with people; empty if there are no opinions of people.
        notes: sentences for the user about oddities in the input and opinions that were left out.
        texts: texts to show with disagreements: queries by ``(query_id, "")``; answers, documents and nuggets by
            ``(query_id, name)``.
        tournament: the tournament's name. This and the attributes below are empty for tables of opinions.
        spent, orders: cost and position bias of each judge of answers, by the judge's name.
        scores: the agents' scores by people's labels.
    """

    comparisons: tuple[Comparison, ...] = ()
    settings: Settings = field(default_factory=Settings)
    notes: tuple[str, ...] = ()
    texts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    tournament: str = ""
    methods: MethodComparison | None = None
    spent: Mapping[str, Spending] = field(default_factory=dict)
    orders: Mapping[str, OrderHealth] = field(default_factory=dict)
    styles: tuple[StyleEffect, ...] = ()
    apart: tuple[Level, ...] = ()
    grade_tests: tuple[GradeTest, ...] = ()
    scores: tuple[PeopleScores, ...] = ()


class OpinionFiles(Struct, frozen=True):
    paths: Sequence[Path] = ()
    reading: TableReading = field(default_factory=TableReading)


def calibrate_tables(
    judges: OpinionFiles,
    people: OpinionFiles,
    settings: Settings,
    *,
    data: Dataset | None = None,
    most: int = 0,
    label_next: int | None = None,
) -> Calibration:
    """Read tables and compare the opinions of judges and people on the same items.

    Args:
        judges: files of judges' opinions; without any, agents are compared by people's grades only.
        people: files of people's opinions.
        data: dataset with the texts to show with disagreements and the conversations of the queries.
        most: maximum number of disagreements to list for each judge.
        label_next: number of items to suggest to people for labelling, per judge; ``None`` to skip the suggestions and
            the corrected estimates.

    Raises:
        InputError: a file cannot be read, or judges and people have no item in common.
    """
    of_judges, of_people = (
        [(path, read_opinions(path, files.reading)) for path in files.paths] for files in (judges, people)
    )
    _require_told_apart(of_judges, of_people)
    of_judges, twice = _by_file(of_judges)
    judge_opinions, judge_notes, judge_clusters = _gathered(of_judges)
    people_opinions, people_notes, people_clusters = _gathered(of_people)
    if judges.paths and not any(key in judge_opinions for key in people_opinions):
        kinds = f"{_kinds(judges.paths, judge_opinions)}; {_kinds(people.paths, people_opinions)}"
        raise InputError(f"{kinds}: judges and people gave different kinds of opinions; name files of the same kind")
    clusters = {**judge_clusters, **people_clusters, **({} if data is None else conversations(data.queries.values()))}
    require_one_spelling(clusters.values())
    comparisons = compare_opinions(
        judge_opinions, people_opinions, settings, most=most, label_next=label_next, clusters=clusters
    )
    tests = tests_of(people_opinions, settings, clusters)
    if not judges.paths:
        if not tests:
            raise InputError(
                f"{_kinds(people.paths, people_opinions)}: people gave no grades of two agents to compare; "
                "to compare judges with people, name the files of judges' results too"
            )
        return Calibration(settings=settings, notes=tuple(people_notes), grade_tests=tests)
    sides = [key for key in judge_opinions if key not in people_opinions] + [
        key for key in people_opinions if key not in judge_opinions
    ]
    unmatched = [f"{' '.join(filter(None, key))}: only judges or only people have these; left out" for key in sides]
    texts = {} if data is None else dataset_texts(data)
    return Calibration(
        comparisons, settings, (*twice, *judge_notes, *people_notes, *unmatched), texts, grade_tests=tests
    )


def tests_of(people: Opinions, settings: Settings, clusters: Clusters) -> tuple[GradeTest, ...]:
    graded = [(group, opinions) for (level, group), opinions in people.items() if level == "criteria"]
    return grade_tests(graded, seed=settings.seed, clusters=clusters)


def compare_opinions(
    judges: Opinions,
    people: Opinions,
    settings: Settings,
    *,
    most: int = 0,
    label_next: int | None = None,
    boards: bool = True,
    clusters: Clusters = ALONE,
) -> tuple[Comparison, ...]:
    """Compare opinions of each kind and group that both have; arguments as in ``calibrate_tables`` and ``compare``.

    Raises:
        InputError: judges and people have no item in common.
    """
    further: dict[str, Any] = {"most": most, "label_next": label_next, "boards": boards, "clusters": clusters}
    comparisons = tuple(
        compare(
            level,
            by_name(judges[level, group]),
            people_opinions,
            settings,
            means=kind_of(level).means,
            group=group,
            **further,
        )
        for (level, group), people_opinions in people.items()
        if (level, group) in judges
    )
    for comparison in comparisons:
        if not any(judge.n for judge in comparison.judges.values()):
            group_label = f"{comparison.group}: " if comparison.group else ""
            problem = f"{group_label}judges and people have no {comparison.people.level} of the same things to compare"
            sides = [
                opinions
                for source in (judges, people)
                for opinions in [source[comparison.people.level, comparison.group]]
            ]
            raise InputError(f"{problem}: {_apart(comparison.people.level, *sides)}")
    as_named = dict.fromkeys(opinion.rater for opinions in judges.values() for opinion in opinions)
    return compare_judges(comparisons, settings, [*as_named])


def _apart(level: Level, judges: Sequence[Opinion], people: Sequence[Opinion]) -> str:
    """Say for an error message why the opinions of judges and people have no item in common."""
    names_by_kind: dict[str, list[set[str]]] = {
        "queries": [{opinion.query_id for opinion in side} for side in (judges, people)],
        "agents": [{opinion.item[-2] for opinion in side} for side in (judges, people)] if level == "criteria" else [],
        "criteria": [{opinion.item[-1] for opinion in side} for side in (judges, people)]
        if level == "criteria"
        else [],
    }
    apart = next((name for name, sides in names_by_kind.items() if sides and sides[0].isdisjoint(sides[1])), "")
    if not apart:
        return f"judges have {counted(len(judges), 'opinion')} and people {len(people):,}, but of different pairs"
    of_judges, of_people = ([f"{name!r}" for name in sorted(side)] for side in names_by_kind[apart])
    sides = f"the judges' {apart} are {listed(of_judges, _NAMED)}, people's {listed(of_people, _NAMED)}"
    if apart != "criteria":
        return sides
    mine, theirs = sorted({opinion.item[-1] for opinion in judges}), sorted({opinion.item[-1] for opinion in people})
    each = " ".join(f"--column people:score={name}" for name in theirs[:_NAMED])
    return f"{sides}; if these are people who gave {mine[0]!r}, say --column score={mine[0]} {each}"


def by_name(opinions: Iterable[Opinion]) -> dict[str, list[Opinion]]:
    by_rater: defaultdict[str, list[Opinion]] = defaultdict(list)
    for opinion in opinions:
        by_rater[opinion.rater].append(opinion)
    return dict(sorted(by_rater.items()))


def data_of(queries: Path | None, documents: Sequence[Path], answers: Sequence[Path]) -> Dataset | None:
    """Read the queries, documents and answers to show with disagreements; ``None`` if no file is named.

    Raises:
        InputError: a file cannot be read, or answers or documents are named without the queries.
    """
    if queries is None:
        if documents or answers:
            raise InputError("--answers and --documents need the table of queries; name it with --queries")
        return None
    from arena.data.files import load_dataset

    return load_dataset(queries, documents, answers)


def dataset_texts(data: Dataset) -> dict[tuple[str, str], str]:
    """Texts by ``(query_id, name)``; the name is an agent's, a document's, or ``""`` for the query itself."""
    texts = {(query_id, ""): query.text for query_id, query in data.queries.items()}
    texts |= {key: answer.text for key, answer in data.answers.items()}
    for query_id, entries in data.retrieved.items():
        texts |= {(query_id, entry.doc_id): data.documents[entry.doc_id].text for entry in entries}
    return texts


def read_tables(tables: OpinionFiles) -> tuple[dict[tuple[Level, str], list[Opinion]], list[str], dict[str, str]]:
    """Read files of opinions: the opinions by kind and group, notes on oddities, and the conversations of queries."""
    return _gathered([(path, read_opinions(path, tables.reading)) for path in tables.paths])


def _gathered(
    tables: Iterable[tuple[Path, OpinionTable]],
) -> tuple[dict[tuple[Level, str], list[Opinion]], list[str], dict[str, str]]:
    opinions: defaultdict[tuple[Level, str], list[Opinion]] = defaultdict(list)
    notes: list[str] = []
    clusters: dict[str, str] = {}
    for path, table in tables:
        clusters.update(table.clusters)
        for group, group_opinions in table.groups.items():
            opinions[table.level, group] += group_opinions
        notes += [f"{path}: {note}" for note in table.notes]
        if table.apart:
            notes.append(f"{path}: rows of one item differ in {listed(sorted(table.apart))}, and count as one")
    return dict(opinions), notes, clusters


def _by_file(tables: list[tuple[Path, OpinionTable]]) -> tuple[list[tuple[Path, OpinionTable]], list[str]]:
    """Tell apart by file a judge that judged the same items in several files, such as with two prompts or on two dates.

    Returns:
        The tables, with the file added to the names of such judges; and a note on each of them.
    """
    files: defaultdict[str, set[Path]] = defaultdict(set)
    for path, table in tables:
        for opinions in table.groups.values():
            for rater in {opinion.rater for opinion in opinions}:
                files[rater].add(path)
    several = {rater for rater, paths in files.items() if len(paths) > 1}
    first: dict[object, Path] = {}
    again = set[str]()
    for path, table in tables if several else ():
        for group, opinions in table.groups.items():
            for own in opinions:
                item = own.rater, table.level, group, own.query_id, own.item, own.swapped
                if own.rater in several and first.setdefault(item, path) != path:
                    again.add(own.rater)
    if not again:
        return tables, []
    stems = len({path.stem for path, _ in tables}) == len(tables)

    def named(opinion: Opinion, path: Path) -> Opinion:
        suffix = path.stem if stems else path
        return opinion._replace(rater=f"{opinion.rater} ({suffix})") if opinion.rater in again else opinion

    told_apart = [
        (
            path,
            replace(table, groups={name: [named(own, path) for own in group] for name, group in table.groups.items()}),
        )
        for path, table in tables
    ]
    return told_apart, [
        f"{rater}: judged the same things in {listed(sorted(map(str, files[rater])))}; "
        "each counts as a judge of its own"
        for rater in sorted(again)
    ]


def _require_told_apart(
    of_judges: Iterable[tuple[Path, OpinionTable]], of_people: Iterable[tuple[Path, OpinionTable]]
) -> None:
    """Raise an error if rows counted as the same item differ in a column that both tables have."""
    for judge_path, judge_table in of_judges:
        for people_path, people_table in of_people:
            shared = (judge_table.apart | people_table.apart) & judge_table.further & people_table.further
            if shared and judge_table.level == people_table.level:
                column = min(shared)
                raise InputError(
                    f"{judge_path}, {people_path}: rows of one item differ in column {column!r}; use --item "
                    f"{column} to tell them apart, or --by {column} to compare its values separately"
                )


def _kinds(paths: Sequence[Path], opinions: Opinions) -> str:
    kinds = sorted({" ".join(filter(None, key)) for key in opinions})
    return f"{', '.join(map(str, paths))}: {', '.join(kinds)}"
