"""How far the relevance judges agree with people, and whether both rank the agents alike."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from arena.boards.calibration_pictures import confusion
from arena.retrieval import RetrievalBoard
from retrieval_eval.stats.agreement import LabelAgreement
from retrieval_eval.stats.estimate import Estimate
from ui.retrieval import span
from ui.show import show_picture
from ui.tables import show_table


def show_agreement(board: RetrievalBoard) -> None:
    """Draw the section."""
    st.subheader("Do people agree with the judge?", anchor=False)
    own = board.agreement
    if own is None:
        st.caption("Not known: name people's labels under `data: {qrels: FILE}` in the YAML file and run again.")
    elif not own.n:
        st.caption("Not known: no document has both a label of people and one of the judge.")
    else:
        _show_figures(own)
        _show_confusion(own)
        _show_judges(board)
        _show_rankings(board)


def figure(estimate: Estimate) -> str:
    """The figure to two digits."""
    return "unknown" if estimate.value is None else f"{estimate.value:.2f}"


def _show_figures(own: LabelAgreement) -> None:
    figures = [
        ("Same label", own.agreement, "Share of the documents with both labels where the two are equal."),
        ("Kappa", own.kappa, "Cohen's: agreement beyond chance, all disagreements alike. 1 is full agreement."),
        ("Kappa, linear", own.kappa_linear, "The same, a disagreement counting by its distance."),
        ("Kappa, quadratic", own.kappa_quadratic, "The same, by the square of the distance."),
        ("Alpha", own.alpha, "Krippendorff's, labels as names."),
    ]
    with st.container(horizontal=True, gap="small"):
        for name, estimate, meaning in figures:
            said = f"{meaning} 95 % interval: {span(estimate, 2)}."
            st.metric(name, figure(estimate), help=said, border=True, width=168)


def _show_confusion(own: LabelAgreement) -> None:
    known = own.n + own.first_only
    st.caption(f"Documents by both labels: {own.n:,} of the {known:,} that people labelled ({own.n / known:.0%}).")
    show_picture(confusion(own.scale, own.confusion))


def _show_judges(board: RetrievalBoard) -> None:
    """Each judge alone, where there are several."""
    if len(board.judges) < 2:
        return
    rows = [
        {"Judge": judge, "Documents": one.n, "Kappa": one.kappa.value, "Interval": span(one.kappa, 2)}
        for judge, one in ((judge, own.agreement) for judge, own in board.judges.items())
        if one is not None
    ]
    config = {"Kappa": st.column_config.NumberColumn(format="%.2f")}
    show_table(pd.DataFrame(rows), "Agreement by judge", columns=config)


def _show_rankings(board: RetrievalBoard) -> None:
    if not board.rankings:
        return
    rows = [
        {
            "Measure": measure,
            "Kendall's tau": one.kendall_tau.value,
            "Interval": span(one.kendall_tau, 2),
            "Spearman's rho": one.spearman.value,
            "Queries": one.topics,
        }
        for measure, one in board.rankings.items()
    ]
    number = st.column_config.NumberColumn(format="%.2f")
    config = {"Kendall's tau": number, "Spearman's rho": number}
    show_table(pd.DataFrame(rows), "Rankings", columns=config)
    st.caption(
        "Whether both labels put the agents in the same order: 1 the same, -1 the reverse. Labels that agree poorly on "
        "single documents may still rank agents well."
    )
