"""Nuggets that people assigned, as files of assignments: out for ``nuggets score``, and in."""

from __future__ import annotations

from pathlib import Path

from arena.cli.console import tell
from arena.cli.nuggets import require_free
from arena.cli.sources import open_tournament
from arena.cli.table_votes import the_annotator
from arena.stages.nuggets.people import assignments_by, said_by, taken
from arena.stages.nuggets.results import NuggetResults, nugget_results
from arena.store import Store
from arena.store.annotations import Annotations, Kind, annotator_name
from judges.errors import InputError
from retrieval_eval.nuggets.files import read_assignments, write_assignments


def export_nuggets(
    source: str, tournament: str | None, out: Path, annotator: str | None, *, force: bool, as_json: bool
) -> None:
    """Write one person's assignments of the nuggets as they are now."""
    require_free(out, force)
    with open_tournament(source, tournament) as (store, name):
        results, data = _nuggets(store, name), store.dataset(name)
        latest = Annotations(store, name).latest(Kind.NUGGET)
    who = the_annotator(latest, annotator, name)
    assignments = assignments_by(results.banks, data.answers.values(), said_by(latest, who))
    if not assignments:
        raise InputError(f"{source}: {who!r} has assigned nothing to the answers and nuggets as they are now")
    write_assignments(out, assignments)
    labels = [label for own in assignments for label in own.labels]
    given, expected = sum(label is not None for label in labels), len(labels)
    left_out = sum(key[0] in results.banks for key in data.answers) - len(assignments)
    told = {"file": str(out), "annotator": who, "answers": len(assignments), "labels": expected, "assigned": given}
    lines = [f"wrote {out}: {given} of {expected} labels by {who}, answers: {len(assignments)}"]
    lines += [f"- answers that are not assessed yet, left out: {left_out}"] if left_out else []
    lines += ["- labels that are missing are written as failed"] if given < expected else []
    tell(told | {"not_assessed": left_out}, lines, as_json=as_json)


def import_nuggets(source: str, tournament: str | None, file: Path, annotator: str, *, as_json: bool) -> None:
    """Take a file of assignments as one person's."""
    who = annotator_name(annotator)
    assignments = read_assignments([file])
    with open_tournament(source, tournament) as (store, name):
        found = taken(assignments, _nuggets(store, name).banks, store.dataset(name).answers, who)
        if not found.annotations:
            why = "".join(f"; {words}: {number}" for words, number in found.left_out.items())
            raise InputError(f"{file}: no label of an answer and a nugget of {name!r}{why}")
        kept = Annotations(store, name).add(found.annotations)
    told = {"annotator": who, "labels": len(found.annotations), "answers": found.answers, "new": kept}
    lines = [f"{len(found.annotations)} labels by {who}, {kept} of them new, answers: {found.answers}"]
    lines += [f"- {words}, left out: {number}" for words, number in found.left_out.items()]
    tell(told | {"left_out": found.left_out}, lines, as_json=as_json)


def _nuggets(store: Store, name: str) -> NuggetResults:
    results = nugget_results(store, name)
    if results is None or not results.banks:
        raise InputError(f"the tournament {name!r} has no nuggets yet; 'ragleague run' makes or reads them")
    return results
