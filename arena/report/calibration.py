"""Judges against people, figures corrected by people's labels, and ways of scoring against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.boards.calibration_pictures import all_differences, all_methods
from arena.calibration.comparison import Comparison
from arena.calibration.estimates import Estimates
from arena.calibration.methods import MethodComparison
from arena.calibration.words import THINGS
from arena.opinions.tournament import TournamentCalibration
from arena.present.blocks import Block, Remarks, Section
from arena.present.numbers import counted
from arena.present.table import Table
from arena.report.blocks import text_table
from arena.report.figures import NONE, number, percent, with_interval
from retrieval_eval.stats.estimate import Estimate

_METHODS = {
    "elo": "Elo",
    "bradley_terry": "Bradley-Terry",
    "cover": "EXAM-Cover",
    "v_strict": "Vital strict",
    "people": "People's votes",
    "criteria, people": "People's grades",
}
_MOST_GAPS = 5


def people_section(found: TournamentCalibration) -> Section | None:
    """Judges against people; ``None`` where no person said anything of what a judge judged."""
    if not found.comparisons:
        return None
    blocks: list[Block] = [_among_people(found.comparisons), _against_people(found.comparisons)]
    blocks += all_differences(found.comparisons)
    for one in found.comparisons:
        for judge, report in one.judges.items():
            if report.estimates is not None:
                blocks += _corrected(one, judge, report.estimates)
    if found.outdated:
        blocks.append(Remarks([f"{found.outdated:,} annotations are of texts that changed since, and are left out."]))
    lead = "Whether the judge sees what people see, and what the figures are once its bias is taken out."
    return Section("people", "People and the judge", lead, blocks)


def method_section(found: TournamentCalibration) -> Section | None:
    """Ways of scoring against each other; ``None`` where no two score three agents or more."""
    if not found.methods.pairs:
        return None
    own = found.methods
    ranked = _ranked(own)
    blocks: list[Block] = [_places(own, ranked), _correlations(own), *all_methods(own, _METHODS)]
    if gaps := [gap for gap in own.places if gap.worst > gap.best][:_MOST_GAPS]:
        blocks.append(
            Remarks(
                [
                    f"{gap.agent}: place {gap.best} by {_listed(gap.best_by)}; place {gap.worst} by "
                    f"{_listed(gap.worst_by)}."
                    for gap in gaps
                ]
            )
        )
    lead = "An order that several ways of looking share is more than one judge's habit."
    return Section("methods", "Ways of scoring against each other", lead, blocks)


def _among_people(comparisons: Sequence[Comparison]) -> Table:
    rows = []
    for one in comparisons:
        own = one.people
        row = [own.level, f"{len(own.annotators):,}", f"{len(own.opinions):,}", f"{own.things:,}", f"{own.repeated:,}"]
        alpha = Estimate(None) if own.alpha is None else own.alpha.alpha
        rows.append([*row, _share(own.within.share), with_interval(alpha, 2)])
    columns = ["Of", "People", "Votes", "Things judged", "By several", "Two people agree", "Krippendorff's alpha"]
    notes = ["How far people agree with each other is what can be asked of a judge."]
    return text_table("People among themselves", columns, rows, notes)


def _against_people(comparisons: Sequence[Comparison]) -> Table:
    rows = []
    for one in comparisons:
        for judge, report in one.judges.items():
            own, labels = report.against, report.against.labels
            row = [f"{judge}, {one.people.level}", f"{own.n:,} of {own.n + own.people_only:,}", _share(own.votes.share)]
            if labels is None:
                row += [NONE] * 3
            else:
                row += [
                    _share(labels.agreement),
                    with_interval(labels.kappa, 2),
                    with_interval(labels.alpha_ordinal, 2),
                ]
            bias = own.differences.bias if own.differences is not None else Estimate(None)
            rows.append([*row, with_interval(bias, 2)])
    columns = ["Judge", "Of people's", "Agrees with a vote", "Same as the consensus", "Kappa", "Alpha, ordinal", "Bias"]
    notes = [
        "With 95% intervals, clustered by query. Kappa and alpha: agreement beyond chance, 1 is full. Bias: how much "
        "higher the judge's values are than people's; the sides of a game are arbitrary, so verdicts have none."
    ]
    return text_table("Judges against people", columns, rows, notes)


def _corrected(one: Comparison, judge: str, own: Estimates) -> Iterator[Block]:
    things = THINGS[one.people.level]
    if own.ratings is not None:
        found = own.ratings
        alone = found.people or [Estimate(None)] * len(found.agents)
        ranked = sorted(
            zip(found.agents, found.corrected, alone, found.judge, strict=True), key=lambda row: -(row[1].value or 0)
        )
        yield text_table(
            f"Bradley-Terry ratings corrected by people's verdicts, judge {judge}",
            ["Agent", "Corrected", "People alone", "Judge alone"],
            [[agent, *(with_interval(figure, 0) for figure in figures)] for agent, *figures in ranked],
            [
                f"Prediction-powered, with 95% intervals: the judge on {found.games:,} games and people on "
                f"{found.labelled:,} of them, on {counted(found.queries, 'query', 'queries')}. Ties count a half. "
                "These hold whatever the judge's bias, if what people judged is a random sample."
                + ("" if found.converged else " The fit has not converged.")
            ],
        )
    elif own.no_ratings:
        yield Remarks([f"No corrected ratings of judge {judge}: {own.no_ratings}."])
    if own.figures:
        rates = one.people.level == "verdicts"
        yield text_table(
            f"{'Win rates' if rates else f'Means of {things}'} corrected by people's labels, judge {judge}",
            ["Figure", things.capitalize(), "Labelled", "Corrected", "People alone", "Judge alone", "Weight"],
            [
                [
                    figure.name,
                    f"{figure.corrected.n:,}",
                    f"{figure.corrected.labelled:,}",
                    with_interval(figure.corrected.corrected, 3),
                    with_interval(figure.corrected.people, 3),
                    number(figure.corrected.judge.value, 3),
                    number(figure.corrected.weight, 2),
                ]
                for figure in own.figures
            ],
            ["Weight: how far the judge is listened to, tuned to the data; 0 leaves people's labels alone."],
        )


def _ranked(found: MethodComparison) -> list[str]:
    """Agents by their places by each method, the first method first."""
    agents = {agent for own in found.methods for agent in own.scores}
    return sorted(agents, key=lambda agent: ([own.ranks.get(agent, len(agents)) for own in found.methods], agent))


def _places(found: MethodComparison, ranked: Sequence[str]) -> Table:
    rows = [
        [
            agent,
            *(
                f"{own.ranks[agent]} ({own.scores[agent]:.4g})" if agent in own.scores else NONE
                for own in found.methods
            ),
        ]
        for agent in ranked
    ]
    return text_table(
        "Places by each way of scoring",
        ["Agent", *(_name(own.method) for own in found.methods)],
        rows,
        ["Scores in brackets."],
    )


def _correlations(found: MethodComparison) -> Table:
    taus = {frozenset((pair.first, pair.second)): pair.kendall for pair in found.pairs}
    names = [own.method for own in found.methods]
    rows = []
    for row in names:
        cells = []
        for column in names:
            tau = taus.get(frozenset((row, column)))
            estimate = Estimate(None) if tau is None else Estimate(tau.value, tau.low, tau.high)
            cells.append("" if row == column else with_interval(estimate, 2))
        rows.append([_name(row), *cells])
    notes = [
        "1 is the same order, -1 the reverse, 0 no relation; in brackets 95% intervals over queries. With few agents "
        "even 1 may be chance."
    ]
    return text_table("Kendall's tau between ways of scoring", ["Way of scoring", *map(_name, names)], rows, notes)


def _name(method: str) -> str:
    return _METHODS.get(method, method)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, ("; ".join(map(_name, names[:-1])), _name(names[-1]))))


def _share(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} ({100 * estimate.low:.0f} to {estimate.high:.0%})"
