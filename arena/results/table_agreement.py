"""Judges held against people by tables of what both said, and the comparison that a tournament's store shares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from arena.calibration.comparison import Comparison, Settings, compare
from arena.calibration.people_tests import GradeTest, grade_tests
from arena.calibration.votes import Level, Opinion, Opinions
from arena.present.numbers import counted, listed
from arena.results.calibration import Calibration
from arena.results.opinion_tables import OpinionTable, TableReading, read_opinions
from judges.errors import InputError
from judges.types import conversations
from retrieval_eval.data.conversations import require_one_spelling
from retrieval_eval.stats.bootstrap import ALONE, Clusters

if TYPE_CHECKING:
    from arena.data.dataset import Dataset


_NAMED: Final = 4
"""Queries, agents or criteria of a side that a message names."""


class OpinionFiles(Struct, frozen=True):
    """Files, and how they are read."""

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
    """Read tables and compare everything that judges and people both speak of.

    Args:
        judges: what judges said; without them agents are compared by people's grades alone.
        people: what people said.
        settings: of the comparison.
        data: texts for disagreements, and the conversations that queries are turns of.
        most: disagreements listed of each judge.
        label_next: things to label next, of each judge corrected by people; ``None`` corrects none.

    Raises:
        InputError: a file cannot be read, or judges and people speak of different things.
    """
    of_judges, of_people = (
        [(path, read_opinions(path, own.reading)) for path in own.paths] for own in (judges, people)
    )
    _require_told_apart(of_judges, of_people)
    (said, notes, named), (human, more, theirs) = _gathered(of_judges), _gathered(of_people)
    if judges.paths and not any(key in said for key in human):
        raise InputError(f"{_kinds(judges.paths, said)}; {_kinds(people.paths, human)}: nothing in common to compare")
    clusters = {**named, **theirs, **({} if data is None else conversations(data.queries.values()))}
    require_one_spelling(clusters.values())
    found = compare_opinions(said, human, settings, most=most, label_next=label_next, clusters=clusters)
    tests = tests_of(human, settings, clusters)
    if not judges.paths:
        if not tests:
            raise InputError(
                f"{_kinds(people.paths, human)}: no grades of two agents to compare; name what judges said"
            )
        return Calibration(settings=settings, notes=tuple(more), grade_tests=tests)
    sides = [key for key in said if key not in human] + [key for key in human if key not in said]
    lonely = [f"{' '.join(filter(None, key))}: on one side only, left out" for key in sides]
    texts = {} if data is None else dataset_texts(data)
    return Calibration(found, settings, (*notes, *more, *lonely), texts, grade_tests=tests)


def tests_of(people: Opinions, settings: Settings, clusters: Clusters) -> tuple[GradeTest, ...]:
    """Agents held against each other by people's grades."""
    graded = [(group, said) for (level, group), said in people.items() if level == "criteria"]
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
    """Compare whatever both speak of; arguments as for ``calibrate_tables`` and ``compare``.

    Raises:
        InputError: they do not speak of the same things.
    """
    further: dict[str, Any] = {"most": most, "label_next": label_next, "boards": boards, "clusters": clusters}
    found = tuple(
        compare(level, by_name(judges[level, group]), human, settings, group=group, **further)
        for (level, group), human in people.items()
        if (level, group) in judges
    )
    for one in found:
        if not any(judge.n for judge in one.judges.values()):
            what = f"{one.group}: " if one.group else ""
            problem = f"{what}judges and people have no {one.people.level} of the same things to compare"
            said = [each for own in (judges, people) for each in [own[one.people.level, one.group]]]
            raise InputError(f"{problem}: {_apart(one.people.level, *said)}")
    return found


def _apart(level: Level, judges: Sequence[Opinion], people: Sequence[Opinion]) -> str:
    """What two sides speak of that have nothing in common."""
    told: dict[str, list[set[str]]] = {
        "queries": [{one.query_id for one in side} for side in (judges, people)],
        "agents": [{one.item[-2] for one in side} for side in (judges, people)] if level == "criteria" else [],
        "criteria": [{one.item[-1] for one in side} for side in (judges, people)] if level == "criteria" else [],
    }
    apart = next((name for name, sides in told.items() if sides and sides[0].isdisjoint(sides[1])), "")
    if not apart:
        return f"judges have {counted(len(judges), 'opinion')} and people {len(people):,}, of other pairs"
    of_judges, of_people = ([f"{name!r}" for name in sorted(side)] for side in told[apart])
    sides = f"the judges' {apart} are {listed(of_judges, _NAMED)}, people's {listed(of_people, _NAMED)}"
    if apart != "criteria":
        return sides
    return f"{sides}; if these are people, write a row for each of them, with columns annotator, criterion and score"


def by_name(said: Iterable[Opinion]) -> dict[str, list[Opinion]]:
    """What each rater said."""
    found: defaultdict[str, list[Opinion]] = defaultdict(list)
    for one in said:
        found[one.rater].append(one)
    return dict(sorted(found.items()))


def data_of(queries: Path | None, documents: Sequence[Path], answers: Sequence[Path]) -> Dataset | None:
    """What files hold that texts of disagreements come from.

    Raises:
        InputError: a file cannot be read, or there are answers or documents without queries.
    """
    if queries is None:
        if documents or answers:
            raise InputError("--answers and --documents need --queries")
        return None
    from arena.data.files import load_dataset

    return load_dataset(queries, documents, answers)


def dataset_texts(data: Dataset) -> dict[tuple[str, str], str]:
    """Texts of queries under ``(query_id, "")``, of answers and documents under their query and name."""
    texts = {(query_id, ""): query.text for query_id, query in data.queries.items()}
    texts |= {key: answer.text for key, answer in data.answers.items()}
    for query_id, entries in data.retrieved.items():
        texts |= {(query_id, entry.doc_id): data.documents[entry.doc_id].text for entry in entries}
    return texts


def read_tables(tables: OpinionFiles) -> tuple[dict[tuple[Level, str], list[Opinion]], list[str], dict[str, str]]:
    """What files say, what is odd about them, and the conversations that they name.

    Raises:
        InputError: a file cannot be read.
    """
    return _gathered([(path, read_opinions(path, tables.reading)) for path in tables.paths])


def _gathered(
    tables: Iterable[tuple[Path, OpinionTable]],
) -> tuple[dict[tuple[Level, str], list[Opinion]], list[str], dict[str, str]]:
    found: defaultdict[tuple[Level, str], list[Opinion]] = defaultdict(list)
    notes: list[str] = []
    clusters: dict[str, str] = {}
    for path, read in tables:
        clusters.update(read.clusters)
        for group, said in read.groups.items():
            found[read.level, group] += said
        notes += [f"{path}: {note}" for note in read.notes]
        if read.apart:
            notes.append(f"{path}: rows of one thing differ in {listed(sorted(read.apart))}, and count as one")
    return dict(found), notes, clusters


def _require_told_apart(
    of_judges: Iterable[tuple[Path, OpinionTable]], of_people: Iterable[tuple[Path, OpinionTable]]
) -> None:
    """See that no column which judges and people both have tells things apart that would be taken for one.

    Raises:
        InputError: one does.
    """
    for judged, of_judge in of_judges:
        for voted, human in of_people:
            shared = (of_judge.apart | human.apart) & of_judge.further & human.further
            if shared and of_judge.level == human.level:
                column = min(shared)
                raise InputError(
                    f"{judged}, {voted}: rows of one thing differ in column {column!r}; say --item {column} to tell "
                    f"them apart, or --by {column} to compare each of its values by itself"
                )


def _kinds(paths: Sequence[Path], said: Opinions) -> str:
    kinds = sorted({" ".join(filter(None, key)) for key in said})
    return f"{', '.join(map(str, paths))}: {', '.join(kinds)}"
