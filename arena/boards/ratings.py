"""Tables and charts of ratings: leaderboard, conclusion, robustness, ratings by judge, and controlled ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict, replace

from arena.boards.conclusion import BY_PLACE, Conclusion, conclude, expectation, judge_changes, to_tell_apart
from arena.boards.left_out_judges import finding, judge_tables, more_needed
from arena.boards.quantities import quantity
from arena.boards.trust import judge_section, rating_checks
from arena.present.blocks import Block, Board, Remarks, Section, judge_first
from arena.present.numbers import COUNT, P_VALUE, POINTS, SIGNED, counted, listed
from arena.present.table import Column, Table, fields, flat, plain, records
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.boards.rated_tables import RatedTable
    from arena.calibration.comparison import Comparison
    from arena.calibration.methods import PeopleScores
    from arena.present.picture import Whiskers
    from arena.ratings.covariates import Controlled
    from arena.ratings.results import Fragility, Ratings

FLAGS: Final[Mapping[str, str]] = {
    "undefeated": "never lost or tied",
    "winless": "never won or tied",
    "separated": "won or lost everything against part of the field",
    "disconnected": "never met part of the field",
    "ties": "ties alone hold the field together",
    "position": "order shown and strength cannot be told apart",
    "covariates": "a covariate runs away with the ratings",
    "single_game": "rated on a single game",
}

_MOST_QUERIES: Final = 12
_NAMED: Final = 8
_MOST_ALIKE: Final = 3
_JSON: Final = (
    *("judges", "fragility", "pairs", "position_effect", "position_low", "position_high", "tie_parameter"),
    *("convergence", "notes", "settings", "other_judges"),
)
"""Fields of ``Ratings`` that are written to JSON unchanged."""
_ROWS: Final = {
    "skipped": "without a verdict left out",
    "self_play": "of an agent against itself left out",
    "duplicates": "repeat another in every column",
    "conflicts": "contradicted by another row of the same game",
    "order_unknown": "with an empty order, taken as agent_a first",
    "weighted": "counted as often as 'weight' says",
    "strong": "that call an answer much better counted like the others",
    "both_bad": "tied because both are bad",
    "both_good": "tied because both are good",
}


class RatedBoard(Board, frozen=True):
    rated: RatedTable

    def sections(self) -> list[Section]:
        rated, ratings = self.rated, self.rated.ratings
        conclusion = _weighed_conclusion(ratings)
        sections = [
            conclusion_section(conclusion, ratings),
            ratings_section(
                ratings,
                conclusion,
                controlled=rated.controlled,
                remarks=self._remarks(conclusion),
                title="Leaderboard of all judges together" if rated.by_judge else "Leaderboard",
            ),
            *judge_section(ratings, rated.by_judge),
        ]
        for number, (judge, judge_ratings) in enumerate(rated.by_judge.items(), start=1):
            judge_conclusion = _weighed_conclusion(judge_ratings)
            sentence = Remarks([f"Judge {judge} alone: {judge_conclusion.sentence}"])
            section = ratings_section(
                judge_ratings, judge_conclusion, name=f"judge-{number}", title=f"Judge {judge} alone"
            )
            sections.append(replace(section, blocks=[sentence, *section.blocks]))
        return sections

    def tables(self) -> list[Table]:
        """A table of the ratings, with each judge's own ratings if requested; then the tables of the sections."""
        ratings, by_judge = self.rated.ratings, self.rated.by_judge
        table = rating_table(ratings)
        columns, rows = [*table.columns], [dict(row) for row in table.rows]
        if self.rated.controlled is not None:
            controlled = {row.agent: row.rating for row in self.rated.controlled.agents}
            columns.append(Column("bt_controlled", ""))
            rows = [{**row, "bt_controlled": controlled[row["agent"]]} for row in rows]
        if by_judge:
            columns.insert(0, Column("judge", ""))
            rows += [
                {"judge": judge, **row}
                for judge, judge_ratings in by_judge.items()
                for row in rating_table(judge_ratings).rows
            ]
        return [replace(table, columns=columns, rows=rows), *Board.tables(self)]

    def json(self) -> dict[str, Any]:
        rated = self.rated
        return {
            **ratings_json(rated.ratings),
            "by_judge": {judge: ratings_json(judge_ratings) for judge, judge_ratings in rated.by_judge.items()},
            "rows": rated.rows,
            "cluster_column": rated.cluster_column,
            "controlled": None if rated.controlled is None else controlled_json(rated.controlled),
            **({"plackett_luce": rated.plackett_luce} if rated.plackett_luce else {}),
        }

    def _remarks(self, conclusion: Conclusion) -> Iterator[str]:
        rows = self.rated.rows
        if self.rated.cluster_column is not None and self.rated.ratings.unit == "query":
            yield f"Resampled by {self.rated.cluster_column}: what is said of queries is about its values."
        if conclusion.headline == BY_PLACE and rows.get("order_assumed"):
            yield (
                "Places: without a column 'order' agent_a counts as the one shown first; if not, add the column, empty "
                "where nobody knows."
            )
        if rated_as_wholes := sorted(self.rated.plackett_luce.items(), key=lambda entry: -entry[1]):
            points = ", ".join(f"{agent} {POINTS.write(value)}" for agent, value in rated_as_wholes)
            yield f"Whole rankings by Plackett-Luce, in points: {points}."
        if noticed := [f"{rows[name]:,} {phrase}" for name, phrase in _ROWS.items() if rows.get(name)]:
            yield f"Rows: {rows['rows']:,}; {'; '.join(noticed)}."


def _weighed_conclusion(
    ratings: Ratings,
    comparisons: Sequence[Comparison] = (),
    of_words: Sequence[str] = (),
    scores: Sequence[PeopleScores] = (),
) -> Conclusion:
    """Conclude which agent is best, and weaken the conclusion if a check of the ratings or of people fails."""
    conclusion = conclude(ratings, comparisons=comparisons, of_words=of_words)
    checks = [*rating_checks(ratings, conclusion)]
    if comparisons or scores:
        from arena.boards.people import evidence_checks  # late: most ratings have no labels of people

        checks += evidence_checks(ratings, conclusion, comparisons, scores)
    return conclusion.weighed(checks, to_tell_apart(ratings, conclusion))


def conclusion_section(conclusion: Conclusion, ratings: Ratings | None, trust: str = "") -> Section:
    predictions = [] if ratings is None else expectation(ratings, conclusion)
    reasons = [f"Why: {reason}" for reason in conclusion.why]
    steps = [f"Next: {step}" for step in conclusion.next]
    sentences = [conclusion.line, *reasons, *predictions, *steps, *([trust] if trust else [])]
    return Section("conclusion", conclusion.headline, "", [Remarks(sentences)])


def ratings_section(
    ratings: Ratings,
    conclusion: Conclusion,
    *,
    table: Table | None = None,
    controlled: Controlled | None = None,
    queries: Mapping[str, str] | None = None,
    remarks: Iterator[str] | Sequence[str] = (),
    name: str = "leaderboard",
    title: str = "Leaderboard",
) -> Section:
    """Section with the ratings, the queries or games that decide their order, and notes.

    ``queries`` has the queries' texts by id; ``table`` replaces the usual table of ratings.
    """
    shown = table or rating_table(ratings, name=name)
    blocks: list[Block] = [_whiskers(ratings, conclusion.top, name), replace(shown, title=title)]
    if controlled is not None:
        blocks.append(_controlled(controlled, name))
    sentences = few_alike(ratings.notes)
    if conclusion.ordered:
        flips = [flip for flip in ratings.flips if flip.change == "leader" and flip.count]
        judges = [said] if name == "leaderboard" and (said := finding(ratings, judge_changes(ratings))) else []
        blocks += [*_neighbours(ratings, name), *judge_tables(ratings, name), *_carriers(flips, queries or {}, name)]
        sentences = [*(flip.sentence for flip in flips), *judges, *sentences]
    if sentences := [*sentences, *remarks]:
        blocks.append(Remarks(sentences))
    lead = "How strong each agent is, by all its games against the others at once, and how far that may be off."
    return Section(name, title, lead, blocks)


def rating_table(ratings: Ratings, *, name: str = "leaderboard") -> Table:
    level, rating = f"{ratings.settings.level:.0%}", quantity("bradley_terry")
    columns = [
        Column("agent", "Agent"),
        Column("rank", "Rank", COUNT, interval=f"Ranks ({level})"),
        replace(rating.column(), interval=f"{level} interval", programs=False),
        Column("group", "Group"),
        Column("elo", "Elo", POINTS),
        Column("elo_order_sd", "Order noise", POINTS),
        Column("bt", "", interval=f"{level} interval"),
        Column("games", "", COUNT),
        Column("wins", "Won", COUNT),
        Column("ties", "Tied", COUNT),
        Column("losses", "Lost", COUNT),
        Column("flags", ""),
    ]
    flagged: dict[str, list[str]] = {}
    for row in ratings.agents:
        for flag in row.flags:
            flagged.setdefault(FLAGS.get(flag, flag), []).append(row.agent)
    notes = [f"Read with care, {why}: {listed(agents, _NAMED)}." for why, agents in flagged.items()]
    notes.insert(0, f"{rating.title}: Bradley-Terry, in points.")
    return Table(name, "", columns, [asdict(row) for row in ratings.agents], notes)


def ratings_json(
    ratings: Ratings,
    comparisons: Sequence[Comparison] = (),
    judge: str = "",
    *,
    scores: Sequence[PeopleScores] = (),
    of_words: bool = False,
) -> dict[str, Any]:
    judge_comparisons = [
        replace(comparison, judges={judge: comparison.judges[judge]})
        for comparison in comparisons
        if judge in comparison.judges
    ]
    return {
        "agents": records(rating_table(ratings)),
        "conclusion": _weighed_conclusion(ratings, judge_comparisons, [judge] if of_words else (), scores),
        "judge_health": ratings.judge_health and flat(ratings.judge_health),
        "coverage": ratings.tally,
        "without_judge": without_judge_json(ratings),
        **fields(ratings, *_JSON),
    }


def without_judge_json(ratings: Ratings) -> dict[str, Any]:
    """By judge: the conclusion without it, what changes, and all pairs."""
    return {
        change.judge: {
            "conclusion": conclude(rest := ratings.without_judge[change.judge]),
            **fields(change, "leads", "pairs"),
            "agents": [row.agent for row in rest.by_rank],
            "differences": rest.pairs,
        }
        for change in judge_changes(ratings)
    }


def controlled_json(board: Controlled) -> dict[str, Any]:
    ratings, raw, errors = (
        {row.agent: getattr(row, name) for row in board.agents} for name in ("rating", "raw", "standard_error")
    )
    shape = {key: value for key, value in plain(board).items() if key != "clusters"}
    shape |= {"problems": [problem.message for problem in board.problems], "agents": ratings, "raw": raw}
    return shape | {"standard_errors": None if None in errors.values() else errors}


def few_alike(notes: Sequence[str]) -> list[str]:
    """Keep the first few notes of each kind and count the others; a note's kind is its text before the colon."""
    kinds = [note.partition(": ")[0] for note in notes]
    shown = []
    for position, note in enumerate(notes):
        before, alike = kinds[:position].count(kinds[position]), kinds.count(kinds[position])
        if before < _MOST_ALIKE:
            shown.append(note)
        elif before == _MOST_ALIKE:
            shown.append(f"{kinds[position]}: {alike - before} more, all in JSON.")
    return shown


def _whiskers(ratings: Ratings, top: Sequence[str], name: str) -> Whiskers:
    from arena.present.picture import Line, Mark, Whiskers

    worth = "100 points more is 64% of the games with a winner, 400 more is 10 to 1. "
    tag = "leads" if len(top) == 1 else "tied for first"
    return Whiskers(
        f"{name}-ratings",
        "",
        "Ratings with their intervals; the table has the figures.",
        f"A dot is an agent's rating, the line its {ratings.settings.level:.0%} interval: where lines overlap widely, "
        f"the agents may well be equally good. {worth if ratings.settings.ties == 'davidson' else ''}"
        "Ranks: the places that an agent may truly have. Letters: agents that share one cannot be told apart.",
        [
            Line(
                row.agent,
                [Mark(row.bt, row.bt_low, row.bt_high, "blue" if row.agent in top else "quiet", row.group)],
                rank=COUNT.between(row.rank_low, row.rank_high),
                tag=tag if row.agent in top else "",
            )
            for row in ratings.agents
        ],
        "Bradley-Terry rating in points; further right is better",
        POINTS,
        ("Ranks", "Agent", "Rating, interval"),
    )


def _controlled(board: Controlled, name: str) -> Table:
    columns = [
        Column("agent", "Agent"),
        Column("rating", "Controlled", POINTS),
        Column("standard_error", "Standard error", POINTS),
        Column("raw", "Raw", POINTS, "Of the same games, each verdict one, without the control."),
    ]
    effects = [(effect.name, effect.points, effect.sd) for effect in board.effects]
    if board.position_effect is not None:
        effects.append(("being shown first", board.position_effect, board.position_sd))
    worth = [
        f"{what}: {points:+.1f} points{'' if what == 'being shown first' else ' per standard deviation'}"
        f"{'' if error is None else f' (standard error {error:.1f})'}"
        for what, points, error in effects
    ]
    notes = [
        "The rating that an agent would have if the answers of each game were alike in these qualities. Every verdict "
        "is a game here, for the raw ratings too.",
        f"{'; '.join(worth)}.",
        *(f"No maximum of the likelihood: {problem.message}." for problem in board.problems),
        *([] if board.converged else ["The controlled ratings did not converge: do not use them."]),
    ]
    title = f"Ratings controlled for {listed([effect.name for effect in board.effects])}"
    return Table(f"{name}-controlled", title, columns, [asdict(row) for row in board.agents], few_alike(notes))


def _neighbours(ratings: Ratings, name: str) -> Iterator[Table]:
    pairs, level, units = ratings.neighbours, f"{ratings.settings.level:.0%}", ratings.noun[1]
    if not pairs:
        return
    changes: dict[frozenset[str], list[str]] = {}
    for flip in ratings.flips:
        if flip.change == "neighbours" and flip.count:  # 0: the two are rated equal and have no places to change
            changes.setdefault(frozenset((flip.ahead, flip.behind)), []).append(counted(flip.count, *flip.noun))
    columns = [
        Column("better", "Rated higher"),
        Column("worse", "Neighbour"),
        Column("difference", "Points", SIGNED, f"Those of all pairs hold at once at {level} confidence.", "Interval"),
        Column("p_holm", "p, corrected", P_VALUE),
        Column("separable", "Told apart", meaning="Whether the interval leaves out 0."),
        Column(
            "needed",
            f"More {units} needed",
            meaning="What would tell the two apart with probability 0.8, if the difference is what it seems; in "
            "brackets, if it lies at the ends of its 80% interval.",
        ),
        Column("change", "Change places without", meaning="The fewest games, or queries, that carry their order."),
    ]
    rows = [
        asdict(pair)
        | {
            "difference": Estimate(pair.difference, pair.low, pair.high),
            "needed": "" if pair.separable else more_needed(pair),
            "change": ", ".join(changes.get(frozenset((pair.better, pair.worse)), [])),
        }
        for pair in pairs
    ]
    notes = [advice] if (advice := judge_first(ratings.unjudged)) and any(row["needed"] for row in rows) else []
    yield Table(f"{name}-neighbours", "Can neighbours be told apart?", columns, rows, notes)


def _carriers(flips: Sequence[Fragility], texts: Mapping[str, str], name: str) -> Iterator[Table]:
    """Table of the queries without which another agent would lead; nothing if ``texts``, by query id, is empty."""
    flip = next((flip for flip in flips if flip.unit != "game"), None)
    if flip is None or not texts:
        return
    names = flip.queries[:_MOST_QUERIES]
    more = f" The first {len(names)} are shown." if len(names) < len(flip.queries) else ""
    yield Table(
        f"{name}-carriers",
        f"{flip.count} of {counted(flip.units, *flip.noun)} carry the first place",
        [Column("query", flip.noun[0].capitalize()), Column("text", "Text")],
        [{"query": query, "text": texts.get(query)} for query in names],
        [f"Read the games on these before deciding on {flip.ahead}.{more}"],
    )
