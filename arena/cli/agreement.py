"""``agreement``: compare sets of relevance labels with labels by people."""

from __future__ import annotations

from typing import Annotated

import typer

from arena.boards.metrics import QrelsAgreement
from arena.cli.console import INCOMPLETE
from arena.cli.metrics import read_label_sets
from arena.cli.options import Form, OfQueries
from arena.cli.show import show_noted
from arena.cli.sources import clusters_in
from judges.errors import InputError
from retrieval_eval.stats.agreement import label_agreement


def agreement(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE|irds:NAME...", help="TREC qrels, or tables qid, did, label")
    ],
    people: Annotated[str, typer.Option(metavar="FILE|irds:NAME", help="the labels by people")],
    queries: OfQueries = None,
    form: Form = "table",
) -> None:
    """Compare sets of relevance labels with people's.

    Shows kappa, alpha, the confusion matrix, and agreement at each threshold. Faulty lines are skipped and listed; the
    exit status is then 3.
    """
    clusters = clusters_in(queries)
    labels = read_label_sets([people, *files], "skip")
    first, *rest = labels
    agreements = {}
    for name in rest:
        try:
            agreements[name] = label_agreement(labels[first].labels, labels[name].labels, clusters=clusters)
        except InputError as error:
            raise InputError(f"{first} and {name}: {error}") from error
    show_noted(QrelsAgreement(agreements, labels, clusters), form)
    if any(label_set.faulty for label_set in labels.values()):
        raise typer.Exit(INCOMPLETE)
