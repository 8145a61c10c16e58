"""People's verdicts, labels and grades as tables, as judges' are: out of a store and into it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from arena.calibration.opinions import Opinion
from arena.data.dataset import Dataset
from arena.data.verdicts import write_verdicts
from arena.opinions.files import OUTCOME, read_opinions
from arena.opinions.people import texts_now
from arena.ratings.games import GameVerdict
from arena.store.annotations import Annotation, Kind, annotator_name
from judges.errors import DataError
from judges.types import Verdict
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import is_qrels, write_qrels

TableKind: TypeAlias = Literal[Kind.VERDICT, Kind.RELEVANCE, Kind.CRITERIA]

_VERDICT = {value: verdict for verdict, value in OUTCOME.items()}
_LEVEL = {Kind.VERDICT: "verdicts", Kind.RELEVANCE: "labels", Kind.CRITERIA: "criteria"}


@dataclass(frozen=True, slots=True)
class Taken:
    """What of a table is about a tournament's texts.

    Attributes:
        annotations: to be kept.
        unknown: how many more are about answers or documents that the tournament does not have.
    """

    annotations: Sequence[Annotation]
    unknown: int


def write_said(out: Path, kind: TableKind, said: Sequence[Annotation]) -> None:
    """Write what people said; for labels of one person also as qrels, where the name ends in ``.qrels``.

    Verdicts are written as their people saw the game, the answer shown first as agent_a.

    Raises:
        DataError: the file cannot be written.
    """
    if kind is Kind.VERDICT:
        write_verdicts(
            out, [GameVerdict(one.query_id, one.item, one.other, Verdict(one.value), one.annotator) for one in said]
        )
    elif kind is Kind.CRITERIA:
        grades = (
            {"qid": one.query_id, "agent": one.item, "criterion": name, "score": grade, "annotator": one.annotator}
            for one in said
            for name, grade in one.value.items()
        )
        write_rows(out, ("qid", "agent", "criterion", "score", "annotator"), grades)
    elif is_qrels(out):
        labels: dict[str, dict[str, int]] = {}
        for one in said:
            labels.setdefault(one.query_id, {})[one.item] = one.value
        write_qrels(out, labels)
    else:
        rows = ({"qid": o.query_id, "did": o.item, "label": o.value, "annotator": o.annotator} for o in said)
        write_rows(out, ("qid", "did", "label", "annotator"), rows)


def read_said(file: Path, kind: TableKind, data: Dataset, annotator: str | None = None) -> Taken:
    """A table, or qrels, as what people said of a tournament's texts as they are now.

    Args:
        file: see ``read_opinions``.
        kind: what it must hold.
        data: the tournament's.
        annotator: whose word all of it is; without, the table names them, or else its own name does.

    Raises:
        DataError: the file cannot be read or holds something else, or several people where one is named.
        InputError: a name is empty or very long.
    """
    table = read_opinions(file)
    if table.level != _LEVEL[kind]:
        raise DataError(file, f"holds {table.level}, not {_LEVEL[kind]}")
    opinions = table.groups.get("", ())
    raters = sorted({one.rater for one in opinions})
    if annotator is not None and len(raters) > 1:
        raise DataError(file, f"names {len(raters)} people, so that --annotator cannot be one of them", value=raters[0])
    names = {rater: annotator_name(annotator or rater) for rater in raters}
    if kind is Kind.CRITERIA:
        given = list(_grades(opinions, names))
    else:
        given = [_annotation(one, kind, names[one.rater]) for one in opinions]
    known = list(_of_known_texts(given, data))
    return Taken(known, len(given) - len(known))


def _grades(opinions: Sequence[Opinion], names: Mapping[str, str]) -> Iterator[Annotation]:
    """What each person said of each answer by all criteria."""
    found: defaultdict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for one in opinions:
        agent, criterion = one.item
        found[one.rater, one.query_id, agent][criterion] = int(one.value) if one.value.is_integer() else one.value
    for (rater, query_id, agent), grades in found.items():
        yield Annotation(Kind.CRITERIA, names[rater], query_id, agent, "", "", grades)


def _annotation(one: Opinion, kind: TableKind, annotator: str) -> Annotation:
    if kind is Kind.RELEVANCE:
        return Annotation(kind, annotator, one.query_id, one.item[0], "", "", int(one.value))
    first, second = one.item[::-1] if one.swapped else one.item
    return Annotation(
        kind, annotator, one.query_id, first, second, "", _VERDICT[-one.value if one.swapped else one.value]
    )


def _of_known_texts(said: Iterable[Annotation], data: Dataset) -> Iterable[Annotation]:
    for one in said:
        if (texts := texts_now(one, data, {})) is not None:
            yield replace(one, texts=texts)
