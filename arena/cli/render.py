"""Leaderboards, ratings and plans for people, as tables that fit 80 columns, with all a reader must know below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arena.agents.plan import PlannedAgent
from arena.cli.citation_output import print_citation_board
from arena.cli.console import dollars, errors, output, print_json, printable
from arena.cli.cost_output import print_costs
from arena.cli.exam_tables import print_scores
from arena.cli.markup import print_csv, print_html, print_markdown
from arena.cli.nugget_output import print_nugget_board
from arena.cli.retrieval_output import print_retrieval
from arena.cli.shapes import board_json, covers, flat_rated, flat_rows, rated_json, standard_errors
from arena.cli.tables import print_table
from arena.leaderboard import CriterionMean, Leaderboard
from arena.plan import Plan
from arena.rated_tables import RatedTable
from arena.ratings.covariates import Controlled
from arena.ratings.health import JudgeHealth
from arena.ratings.judges import Coefficient
from arena.ratings.panel import PanelRatings
from arena.ratings.rate import Ratings
from arena.ratings.results import AgentRating, Fragility
from arena.wording import adaptive_line
from judges.types import Task

_MOST_PAIRS = 15
"""Pairs of judges that a person can take in; those with the most games in common come first."""

_FEWEST_GAMES = 10
"""Below so many games in common a kappa is noise."""

_MOST_ALIKE = 3
"""Notes on the same matter, such as one per agent, that are printed."""


def print_leaderboard(board: Leaderboard, form: str) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``."""
    if form == "json":
        print_json(board_json(board))
    elif form == "table":
        _print_board(board)
    else:
        if board.withheld:
            errors.print(_refusal(board))
        {"csv": print_csv, "md": print_markdown, "html": print_html}[form](flat_rows(board))


def print_rated(rated: RatedTable, form: str) -> None:
    """Write the ratings of a table to standard output, as a table, JSON or CSV."""
    if form == "json":
        print_json(rated_json(rated))
    elif form == "csv":
        print_csv(flat_rated(rated))
    else:
        _print_rating_table(rated.ratings.agents)
        if rated.cluster_column is not None:
            column = printable(rated.cluster_column)
            output.print(f"\nresampled by {column}: what is said of queries below is about its values")
        _print_health(rated.ratings)
        for judge, own in rated.by_judge.items():
            output.print(f"\njudge {printable(judge)}:")
            _print_rating_table(own.agents)
            _print_health(own)
        if rated.controlled is not None:
            _print_controlled(rated.controlled)
        _print_rows(rated.rows)


def print_plan(plan: Plan) -> None:
    """Write a plan as tables with its assumptions below."""
    if plan.agents:
        _print_planned_agents(plan.agents)
        output.print()
    headings = ["wanted", "known", "identical", "calls", "tokens\nin", "tokens\nout", "cost", "time"]
    rows = []
    for row in plan.rows:
        numbers = (row.wanted, row.known, row.identical, row.calls, row.input_tokens, row.output_tokens)
        cells = [f"{number:,}" for number in numbers] + [dollars(row.cost_usd), _duration(row.seconds)]
        rows.append([row.task.value, row.judge, *cells])
    if rows:
        print_table(["stage", "judge"], headings, rows)
    output.print(f"total {dollars(plan.cost_usd)}")
    for note in plan.notes:
        output.print(f"- {printable(note)}")


def _print_planned_agents(agents: Sequence[PlannedAgent]) -> None:
    headings = ["queries", "known", "calls", "tokens\nin", "tokens\nout", "cost", "time"]
    rows = []
    for row in agents:
        counts = [_count(number) for number in (row.wanted, row.known, row.calls, row.input_tokens, row.output_tokens)]
        rows.append([row.agent, *counts, dollars(row.cost_usd), _duration(row.seconds)])
    print_table(["agent"], headings, rows)


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _print_board(board: Leaderboard) -> None:
    if board.ratings is not None:
        unit = board.exam.study.unit if board.exam is not None else ""
        _print_rating_table(board.ratings.agents, covers(board), unit)
        _print_health(board.ratings)
        for judge, own in board.by_judge.items():
            order = ", ".join(f"{row.rank}. {row.agent} {row.bt:.0f}" for row in own.agents)
            output.print(printable(f"judge {judge} alone: {order}"))
        if board.panel is not None:
            _print_panel(board.panel)
        output.print()
    elif board.withheld:
        output.print(f"{_refusal(board)}\n")
    elif Task.PAIRWISE in board.coverage:
        output.print("no game has a verdict yet\n")
    if board.criteria:
        _print_criteria(board)
        output.print()
    _print_beside_ratings(board, [row.agent for row in board.ratings.agents] if board.ratings else [])
    _print_coverage(board)


def _print_beside_ratings(board: Leaderboard, order: Sequence[str]) -> None:
    if board.exam is not None:
        print_scores(board.exam.report, board.exam.study, board.exam.workbench)
        output.print()
    if board.nuggets is not None:
        print_nugget_board(board.nuggets, order)
        output.print()
    if board.citations is not None:
        print_citation_board(board.citations, order)
        output.print()
    if board.retrieval is not None:
        print_retrieval(board.retrieval, order)
    print_costs(board.costs)


def _refusal(board: Leaderboard) -> str:
    """In place of the ratings, why there are none."""
    assert board.shortfall is not None
    return printable(f"no ratings: {board.shortfall.message}; {board.shortfall.remedy}")


def _print_panel(panel: PanelRatings) -> None:
    """What the order is once each judge counts as much as it tells agents apart."""
    rated = sorted(zip(panel.agents, panel.ratings, strict=True), key=lambda entry: -entry[1])
    output.print(printable("panel, judges weighed: " + ", ".join(f"{agent} {points:.0f}" for agent, points in rated)))
    weights = (f"{judge.judge} {judge.discrimination:.2f}" for judge in panel.judges)
    output.print(printable("discrimination (1 average, 0 a coin, below 0 the wrong way): " + ", ".join(weights)))


def _print_coverage(board: Leaderboard) -> None:
    if board.adaptive is not None:
        output.print(printable(adaptive_line(board.adaptive)))
    for task, stage in board.coverage.items():
        line = f"{task.value}: {stage.judged} of {stage.wanted} judged ({stage.share:.1%})"
        line += f", {stage.failed} failed" if stage.failed else ""
        line += f", {stage.left} left" if stage.left else ""
        line += f", {stage.identical} ties between equal answers without a call" if stage.identical else ""
        output.print(line)
    for task, judges in board.consistency.items():
        for judge, found in judges.items():
            agreed = f"{_percent(found.agreement)} of two samples agree, {found.repeated} things judged several times"
            output.print(printable(f"{task.value}: self-consistency of {judge}: {agreed}"))
    if board.causes:
        causes = ", ".join(f"{cause} {count}" for cause, count in board.causes.items())
        output.print(f"failed because of: {causes} ('ragarena failures' lists them)")
    if board.shortfall is not None and not board.withheld:
        output.print(printable(f"note: below ratings.min_coverage: {board.shortfall.message}"))
    for name, judge in board.settings.get("judges", {}).items():
        if judge["provider"] == "lexical":
            output.print(printable(f"note: judge {name} is a lexical baseline, not a language model"))
    for note in dict.fromkeys(note for agent in board.settings.get("agents", ()) for note in agent["notes"]):
        output.print(printable(f"note: {note}"))


def _print_rating_table(agents: Sequence[AgentRating], exam: Mapping[str, float] | None = None, unit: str = "") -> None:
    headings = ["Bradley-\nTerry", "95 %\ninterval", "group", "Elo", "order\nsd", "games", "W/T/L"]
    headings += [f"EXAM-Cover\n{unit}"] if exam else []
    rows = []
    for row in agents:
        cells = [
            f"{row.bt:.1f}",
            "-" if row.bt_low is None or row.bt_high is None else f"{row.bt_low:.0f}..{row.bt_high:.0f}",
            row.group,
            "-" if row.elo is None else f"{row.elo:.1f}",
            "-" if row.elo_order_sd is None else f"{row.elo_order_sd:.1f}",
            f"{row.games:g}",
            f"{row.wins:g}/{row.ties:g}/{row.losses:g}",
        ]
        if exam:
            cells.append(f"{exam[row.agent]:.3f}" if row.agent in exam else "-")
        rows.append([_rank(row), row.agent, *cells])
    flags = [row.flags for row in agents]
    print_table(["rank", "agent"], headings, rows, flags=flags if any(flags) else ())


def _print_criteria(board: Leaderboard) -> None:
    names = list(dict.fromkeys(name for grades in board.criteria.values() for name in grades))
    ranked = [row.agent for row in board.ratings.agents] if board.ratings else []
    agents = [*ranked, *(agent for agent in board.criteria if agent not in ranked)]
    rows = [[agent, *(_mean(board.criteria.get(agent, {}), name) for name in names)] for agent in agents]
    print_table(["criteria"], [printable(name) for name in names], rows)


def _mean(grades: Mapping[str, CriterionMean], name: str) -> str:
    """The mean grade, and of how many answers where not all are graded."""
    if name not in grades:
        return "-"
    grade = grades[name]
    return f"{grade.mean:.2f}" + (f" of {grade.graded}" if grade.graded < grade.wanted else "")


def _rank(row: AgentRating) -> str:
    if row.rank_low is None or row.rank_low == row.rank_high:
        return str(row.rank)
    return f"{row.rank} ({row.rank_low}-{row.rank_high})"


def _print_health(ratings: Ratings) -> None:
    output.print()
    if ratings.judge_health is not None:
        output.print("judge: " + ", ".join(_health_words(ratings.judge_health)))
    _print_doubts(ratings)
    for note in _few_alike(ratings.notes):
        output.print(printable(f"note: {note}"))


def _few_alike(notes: Sequence[str]) -> list[str]:
    """Notes of which no matter, what stands before the colon, fills the screen; agents they name have flags above."""
    matter = [note.partition(": ")[0] for note in notes]
    told = []
    for place, note in enumerate(notes):
        before, alike = matter[:place].count(matter[place]), matter.count(matter[place])
        if before < _MOST_ALIKE:
            told.append(note)
        elif before == _MOST_ALIKE:
            told.append(f"{matter[place]}: {alike - before} more, all in --json; flags mark their agents.")
    return told


def _print_controlled(controlled: Controlled) -> None:
    """Controlled ratings beside the raw ones of the same games, and what each covariate is worth."""
    output.print("\nevery verdict one game, controlled for " + printable(", ".join(e.name for e in controlled.effects)))
    order = sorted(range(len(controlled.ratings)), key=lambda place: -controlled.ratings[place])
    agents, raw = controlled.raw.agents, controlled.raw.ratings
    errors = standard_errors(controlled)
    rows = [
        [
            agents[place],
            f"{controlled.ratings[place]:.1f}",
            "-" if errors is None else f"{errors[agents[place]]:.1f}",
            f"{raw[place]:.1f}",
        ]
        for place in order
    ]
    print_table(["agent"], ["controlled", "standard\nerror", "raw"], rows)
    for effect in controlled.effects:
        spread = "" if effect.sd is None else f" (standard error {effect.sd:.1f})"
        output.print(printable(f"{effect.name}: {effect.points:+.1f} points per standard deviation{spread}"))
    if controlled.position_effect is not None:
        output.print(f"being shown first: {controlled.position_effect:+.1f} points")
    for note in _few_alike([f"No maximum of the likelihood: {problem.message}." for problem in controlled.problems]):
        output.print(printable(f"note: {note}"))
    if not controlled.converged:
        output.print("note: The controlled ratings did not converge: do not use them.")


def _print_rows(rows: Mapping[str, int]) -> None:
    words = {
        "skipped": "without a verdict left out",
        "self_play": "of an agent against itself left out",
        "duplicates": "repeat another in every column",
        "conflicts": "contradicted by another row of the same game",
        "order_unknown": "with an empty order, taken as agent_a first",
    }
    told = [f"{rows[name]:,} {phrase}" for name, phrase in words.items() if rows.get(name)]
    if told:
        output.print(f"rows: {rows['rows']:,}; " + "; ".join(told))


def _print_doubts(ratings: Ratings) -> None:
    """How few games carry the order, what would separate neighbours, and how far the judges agree."""
    for found in ratings.fragility:
        if found.change == "leader" and found.count is not None:
            units = {"game": "games", "query": "queries"}[found.unit]
            line = f"fragility: without {found.count} of {found.units} {units} {found.behind} would lead"
            output.print(printable(line))
    if pairs := _neighbour_flips(ratings.fragility):
        output.print(printable("neighbours would change places without: " + ", ".join(pairs)))
    for pair in ratings.neighbours[:1]:
        if pair.queries_needed:
            more = f"{pair.queries_needed:,} more {'games' if ratings.convergence.resampled == 'game' else 'queries'}"
            output.print(printable(f"to tell {pair.better} from {pair.worse}: about {more} like these"))
    if ratings.judges is not None:
        agreed = ratings.judges
        output.print(
            f"judges: Krippendorff's alpha {_coefficient(agreed.alpha)} on {agreed.games} games judged by several"
        )
        common = sorted((two for two in agreed.pairs if two.games >= _FEWEST_GAMES), key=lambda two: -two.games)
        for two in common[:_MOST_PAIRS]:
            line = f"judges {two.first} and {two.second}: kappa {_coefficient(two.kappa)} on {two.games} games"
            output.print(printable(line))
        left = sum(two.games > 0 for two in agreed.pairs) - len(common[:_MOST_PAIRS])
        if left:
            output.print(f"... and {left} more {'pair' if left == 1 else 'pairs'} of judges, all in --json")


def _neighbour_flips(fragility: Sequence[Fragility]) -> list[str]:
    """For each two neighbours below the lead the fewest games and queries, as ``a over b 3 games or 2 queries``."""
    told: dict[tuple[str, str], list[str]] = {}
    for found in fragility:
        if found.change == "neighbours":
            number = f"more than {found.tried}" if found.count is None else str(found.count)
            unit = "query" if found.unit == "query" else "game"
            plural = "" if found.count == 1 else {"query": "queries", "game": "games"}[unit]
            told.setdefault((found.ahead, found.behind), []).append(f"{number} {plural or unit}")
    return [f"{ahead} over {behind} {' or '.join(numbers)}" for (ahead, behind), numbers in list(told.items())[1:]]


def _coefficient(found: Coefficient) -> str:
    if found.value is None:
        return "unknown"
    interval = "" if found.low is None or found.high is None else f" ({found.low:.2f} .. {found.high:.2f})"
    return f"{found.value:.2f}{interval}"


def _health_words(health: JudgeHealth) -> list[str]:
    words = [
        f"order agreement {_percent(health.order_agreement)} of {health.both_orders} games",
        f"first shown wins {_percent(health.first_share)}",
    ]
    if health.first_effect is not None:
        low, high = health.first_effect_low, health.first_effect_high
        interval = "" if low is None or high is None else f" ({_points(low)} .. {_points(high)})"
        words.append(f"worth {_points(health.first_effect, '+')} points{interval}")
    return [
        *words,
        f"longer wins {_percent(health.longer_share)}",
        f"ties {_percent(health.tie_rate)}",
        f"intransitive triples {health.intransitive_triples} of {health.triples}",
    ]


def _points(points: float, sign: str = "-") -> str:
    return f"{round(points):{sign}d}"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
