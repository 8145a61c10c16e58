"""Judges against people, as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from arena.calibration.comparison import Comparison, JudgeReport
from arena.calibration.judge_people import Against
from arena.calibration.words import OUTCOMES, THINGS, gain_from_ties, outside_scale
from arena.cli.console import output
from arena.cli.figures import FEW_QUERIES, interval, say, value
from arena.cli.tables import print_table
from retrieval_eval.stats.agreement import RaterAgreement
from retrieval_eval.stats.estimate import Coefficient, Estimate

_MOST_NAMED = 8


class Titles:
    """The first columns of a table, which tell several comparisons apart: by group, by level, or not at all."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        several = {
            "group": any(one.group for one in comparisons),
            "level": len({one.people.level for one in comparisons}) > 1,
        }
        self.columns = [name for name, needed in several.items() if needed]

    def cells(self, one: Comparison) -> list[str]:
        """What stands in them."""
        return [one.group if name == "group" else one.people.level for name in self.columns]


def print_comparisons(comparisons: Sequence[Comparison], against: Against = "consensus") -> None:
    """Write people among themselves, judges against them, places, and the people that stand out.

    Args:
        comparisons: what is written.
        against: what labels were held against.
    """
    titles = Titles(comparisons)
    _print_people(comparisons)
    _print_agreement(comparisons, titles, against)
    _print_correlations(comparisons, titles, against)
    _print_boards(comparisons, titles)
    _print_orders(comparisons, titles)
    _print_confusions(comparisons, titles, against)
    output.print()
    for one in comparisons:
        _print_notes(one)


def _print_people(comparisons: Sequence[Comparison]) -> None:
    rows, grouped = [], any(one.group for one in comparisons)
    for one in comparisons:
        own = one.people
        counts = (len(own.annotators), len(own.opinions), own.things, own.repeated)
        rows.append(
            [
                *([one.group] if grouped else []),
                own.level,
                *(f"{count:,}" for count in counts),
                _share(own.within.share),
                interval(own.within.share, 3),
                "-" if own.within_decided is None else _share(own.within_decided.share),
                *(["-"] * 3 if own.alpha is None else _alphas(own.alpha)),
                f"{sum(person.above_chance is False for person in own.annotators):,}",
            ]
        )
    headings = ["people", "votes", "things", "by\nseveral", "two\nagree", "95 %\ninterval", "without\nties"]
    headings += ["alpha", "95 %\ninterval", "ordinal", "not above\nchance"]
    print_table([*(["group"] if grouped else []), "level"], headings, rows)


def _alphas(own: RaterAgreement) -> list[str]:
    return [value(own.alpha), interval(own.alpha), value(own.alpha_ordinal)]


def _print_agreement(comparisons: Sequence[Comparison], titles: Titles, against: Against) -> None:
    rows = []
    for one, report in _reports(comparisons):
        own, labels = report.against, report.against.labels
        free = own.votes_decided
        cells = [
            f"{own.n:,}",
            f"{own.n / (own.n + own.people_only or 1):.1%}",
            _share(own.votes.share),
            interval(own.votes.share, 3),
        ]
        cells.append("-" if free is None else _share(free.share))
        if labels is None:
            cells += ["-"] * 6
        else:
            cells += [_share(labels.agreement), value(labels.kappa), interval(labels.kappa)]
            cells += [value(labels.kappa_linear), value(labels.kappa_quadratic), value(labels.alpha_ordinal)]
        rows.append([*titles.cells(one), own.judge, *cells])
    if rows:
        output.print("\njudges against people")
        headings = [
            "things",
            "coverage",
            "agrees with\na vote",
            "95 %\ninterval",
            "without\nties",
            "same as\nconsensus" if against == "consensus" else "same, all\nvotes",
        ]
        headings += ["kappa", "95 %\ninterval", "linear", "quadratic", "alpha\nordinal"]
        print_table([*titles.columns, "judge"], headings, rows)


def _print_correlations(comparisons: Sequence[Comparison], titles: Titles, against: Against) -> None:
    rows = []
    for one, report in _reports(comparisons):
        own = report.against
        cells: list[str] = []
        for found in (own.correlations.pearson, own.correlations.spearman, own.correlations.kendall):
            cells += [_coefficient(found), _between(found), "-" if found.p_value is None else f"{found.p_value:.2g}"]
        if own.differences is None:
            cells += ["-"] * 3
        else:
            bias = own.differences.bias
            limits = own.differences.lower.value, own.differences.upper.value
            cells += [_signed(bias), interval(bias), "-" if None in limits else f"{limits[0]:+.2f} .. {limits[1]:+.2f}"]
        rows.append([*titles.cells(one), own.judge, *cells])
    if rows:
        whom = "the consensus" if against == "consensus" else "each vote"
        output.print(f"\ncorrelation with {whom}, and judge less people")
        headings = [part for name in ("Pearson", "Spearman", "tau-b") for part in (name, "95 %\ninterval", "p")]
        headings += ["bias", "95 %\ninterval", "limits of\nagreement"]
        print_table([*titles.columns, "judge"], headings, rows)


def _print_boards(comparisons: Sequence[Comparison], titles: Titles) -> None:
    rows = []
    for one, report in _reports(comparisons):
        if (own := report.boards) is not None:
            cells = [f"{own.agents:,}"]
            for found in (own.kendall, own.spearman):
                cells += [_coefficient(found), _between(found)]
            rows.append([*titles.cells(one), report.against.judge, *cells])
    if rows:
        output.print("\nleaderboards of judge and people, by the things that both judged")
        headings = ["agents", "tau-b", "95 %\ninterval", "Spearman", "95 %\ninterval"]
        print_table([*titles.columns, "judge"], headings, rows)


def _print_orders(comparisons: Sequence[Comparison], titles: Titles) -> None:
    rows = []
    for one in comparisons:
        found = {"people": one.orders, **{name: own.orders for name, own in one.judges.items()}}
        for name, own in found.items():
            if own is not None:
                both = [f"{own.both_orders:,}", _share(own.order_agreement), interval(own.order_agreement, 3)]
                cells = [f"{own.verdicts:,}", f"{own.tie_rate:.1%}", *both]
                rows.append([*titles.cells(one), name, *cells, _share(own.first_share), interval(own.first_share, 3)])
    if rows:
        output.print("\nplaces")
        headings = ["verdicts", "ties", "both\norders", "same in\nboth", "95 %\ninterval", "first shown\nwins"]
        print_table([*titles.columns, "judge"], [*headings, "95 %\ninterval"], rows)


def _print_confusions(comparisons: Sequence[Comparison], titles: Titles, against: Against) -> None:
    """Of each judge; of many groups they would fill pages, and are in the JSON."""
    for one, report in _reports(comparisons):
        labels = report.against.labels
        if labels is not None and labels.scale and not one.group:
            title = ", ".join([*titles.cells(one), report.against.judge])
            say(f"\n{title}; rows: people's {against}, columns: the judge")
            names = [OUTCOMES[label] if one.people.level == "verdicts" else str(label) for label in labels.scale]
            rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, labels.confusion, strict=True)]
            print_table([""], names, rows)


def _print_notes(one: Comparison) -> None:
    label, own = (f"{one.group}: " if one.group else ""), one.people
    what = THINGS[own.level]
    method = "majority of people" if own.consensus.method == "majority" else "Dawid and Skene's model"
    if own.consensus.converged is False:
        say(f"{label}Dawid and Skene's model has not converged after {own.consensus.iterations} steps")
    if own.consensus.contested and own.consensus.method == "majority":
        say(f"{label}consensus: {method}; no value leads on {own.consensus.contested:,} of {own.things:,} {what}")
    suspects = [f"{person.rater} {value(person.kappa)}" for person in own.annotators if person.above_chance is False]
    if suspects and not one.group:
        more = f" and {len(suspects) - _MOST_NAMED:,} more (--json: all)" if len(suspects) > _MOST_NAMED else ""
        say(f"{label}agree with the others no better than chance (kappa): {', '.join(suspects[:_MOST_NAMED])}{more}")
    if one.gain is not None:
        gain = one.gain
        told = f"{gain.agreement:.1%} like people, its best member {gain.best} {gain.best_agreement:.1%}"
        bounds = "" if gain.gain.low is None else f" (difference {_signed(gain.gain)}, {interval(gain.gain)})"
        say(f"{label}panel: {told}{bounds}")
    if ties := gain_from_ties(one):
        say(f"{label}panel: {ties}")
    for name, report in one.judges.items():
        if beyond := outside_scale(report):
            say(f"{label}{name}: {beyond}")
        if report.against.queries < FEW_QUERIES:
            say(f"{label}{name}: {report.against.queries} queries in common, so intervals are rough")


def print_disagreements(comparisons: Sequence[Comparison], texts: Mapping[tuple[str, str], str]) -> None:
    """List what judges and people see differently.

    Args:
        comparisons: whose disagreements are listed.
        texts: of a query under ``(query_id, "")``, of an answer or document under its query and name.
    """
    titles = Titles(comparisons)
    for one, report in _reports(comparisons):
        for found in report.disagreements:
            name = ", ".join([*titles.cells(one), report.against.judge])
            of_people = _worded(one, found.people)
            votes = ", ".join(f"{rater} {_worded(one, vote)}" for rater, vote in sorted(found.votes.items()))
            say(f"\n{found.query_id}: {' / '.join(found.item)}")
            say(f"  {name}: {_worded(one, found.judge)}; people: {of_people} ({votes})")
            for part in ("", *found.item):
                if (found.query_id, part) in texts:
                    say(f"  {part or 'query'}: {texts[found.query_id, part]}")


def _worded(one: Comparison, number: float) -> str:
    return OUTCOMES[int(number)] if one.people.level == "verdicts" else f"{number:g}"


def _reports(comparisons: Iterable[Comparison]) -> list[tuple[Comparison, JudgeReport]]:
    return [(one, report) for one in comparisons for report in one.judges.values()]


def _share(own: Estimate) -> str:
    return "-" if own.value is None else f"{own.value:.1%}"


def _signed(own: Estimate) -> str:
    return "-" if own.value is None else f"{own.value:+.2f}"


def _coefficient(own: Coefficient) -> str:
    return "-" if own.value is None else f"{own.value:.2f}"


def _between(own: Coefficient) -> str:
    return "-" if own.low is None or own.high is None else f"{own.low:.2f} .. {own.high:.2f}"
