"""Ratings: who leads and how sure that is, what would change the order, and what another judge or control would say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict, replace

from arena.boards.conclusion import BY_PLACE, Conclusion, conclude, expectation, more_needed
from arena.boards.trust import judge_section, rating_checks
from arena.present.advice import judge_first
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, P_VALUE, POINTS, SIGNED, counted, listed
from arena.present.table import Column, Table, flat, plain, records
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.boards.rated_tables import RatedTable
    from arena.calibration.comparison import Comparison
    from arena.present.picture import Whiskers
    from arena.ratings.covariates import Controlled
    from arena.ratings.panel import PanelRatings
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
"""Why a rating is to be read with care, in words."""

_MOST_QUERIES: Final = 12
"""Queries that carry the lead which are shown with their texts."""
_NAMED: Final = 8
"""Agents named in a note; the others are counted."""
_MOST_ALIKE: Final = 3
"""Notes on the same matter, such as one per agent, that are shown."""
_ROWS: Final = {
    "skipped": "without a verdict left out",
    "self_play": "of an agent against itself left out",
    "duplicates": "repeat another in every column",
    "conflicts": "contradicted by another row of the same game",
    "order_unknown": "with an empty order, taken as agent_a first",
    "both_bad": "tied because both are bad",
    "both_good": "tied because both are good",
}
"""What may be noticed about the rows of a table of verdicts."""


class RatedBoard(Board, frozen=True):
    """Ratings of a table of verdicts."""

    rated: RatedTable

    def sections(self) -> list[Section]:
        """The conclusion, the ratings, the judges, each judge's own ratings, and what was noticed about the rows."""
        rated, ratings = self.rated, self.rated.ratings
        conclusion = _concluded(ratings)
        found = [
            conclusion_section(conclusion, ratings),
            ratings_section(
                ratings,
                conclusion,
                controlled=rated.controlled,
                remarks=self._remarks(conclusion),
                title="Leaderboard of all judges together" if rated.by_judge else "Leaderboard",
            ),
            *judge_section(ratings, rated.by_judge, rated.panel),
        ]
        for at, (judge, own) in enumerate(rated.by_judge.items(), start=1):
            said = _concluded(own)
            sentence = Remarks([f"Judge {judge} alone: {said.sentence}"])
            section = ratings_section(own, said, name=f"judge-{at}", title=f"Judge {judge} alone")
            found.append(replace(section, blocks=[sentence, *section.blocks]))
        return found

    def tables(self) -> list[Table]:
        """The ratings of all verdicts and, where they are asked for, each judge's below them, in one; then the rest."""
        ratings, by_judge = self.rated.ratings, self.rated.by_judge
        table = rating_table(ratings)
        columns, rows = [*table.columns], [dict(row) for row in table.rows]
        if self.rated.controlled is not None:
            controlled = {row.agent: row.rating for row in self.rated.controlled.agents}
            columns.append(Column("bt_controlled", ""))
            rows = [{**row, "bt_controlled": controlled[row["agent"]]} for row in rows]
        if by_judge:
            columns.insert(0, Column("judge", ""))
            rows += [{"judge": judge, **row} for judge, own in by_judge.items() for row in rating_table(own).rows]
        return [replace(table, columns=columns, rows=rows), *Board.tables(self)]

    def json(self) -> dict[str, Any]:
        """The shape of ``rate --format json``."""
        rated = self.rated
        return {
            **ratings_json(rated.ratings),
            "by_judge": {judge: ratings_json(own) for judge, own in rated.by_judge.items()},
            "panel": None if rated.panel is None else panel_json(rated.panel),
            "rows": rated.rows,
            "cluster_column": rated.cluster_column,
            "controlled": None if rated.controlled is None else controlled_json(rated.controlled),
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
        if noticed := [f"{rows[name]:,} {phrase}" for name, phrase in _ROWS.items() if rows.get(name)]:
            yield f"Rows: {rows['rows']:,}; {'; '.join(noticed)}."


def _concluded(ratings: Ratings, comparisons: Sequence[Comparison] = (), of_words: Sequence[str] = ()) -> Conclusion:
    """What ratings allow to be said, standing as firmly as their own trust checks let it."""
    found = conclude(ratings, comparisons=comparisons, of_words=of_words)
    return found.weighed([*rating_checks(ratings, found)])


def conclusion_section(conclusion: Conclusion, ratings: Ratings | None, trust: str = "") -> Section:
    """What may be said, and what it comes to."""
    expected = [] if ratings is None else expectation(ratings, conclusion)
    said = [conclusion.line, *expected, *([trust] if trust else [])]
    return Section("conclusion", conclusion.headline, "", [Remarks(said)])


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
    """The ratings, what would change their order, and what to know before believing them.

    A ``table`` with further columns takes the place of the ratings' own; with texts of ``queries``, those that carry
    the lead are shown; ``remarks`` stand behind what the ratings say of themselves.
    """
    shown = table or rating_table(ratings, name=name)
    blocks: list[Block] = [_whiskers(ratings, conclusion.top, name), replace(shown, title=title)]
    if controlled is not None:
        blocks.append(_controlled(controlled, name))
    said = few_alike(ratings.notes)
    if conclusion.ordered:
        flips = [flip for flip in ratings.flips if flip.change == "leader" and flip.count]
        blocks += [*_neighbours(ratings, name), *_carriers(flips, queries or {}, name)]
        said = [*(flip.sentence for flip in flips), *said]
    if said := [*said, *remarks]:
        blocks.append(Remarks(said))
    lead = "How strong each agent is, by all its games against the others at once, and how far that may be off."
    return Section(name, title, lead, blocks)


def rating_table(ratings: Ratings, *, name: str = "leaderboard") -> Table:
    """The leaderboard: its columns are defined here, for people and programs."""
    level = f"{ratings.settings.level:.0%}"
    columns = [
        Column("agent", "Agent"),
        Column("rank", "Rank", COUNT, interval=f"Ranks ({level})"),
        Column("bt", "Bradley-Terry", POINTS, interval=f"{level} interval", programs=False),
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
    return Table(name, "", columns, [asdict(row) for row in ratings.agents], notes)


def ratings_json(
    ratings: Ratings, comparisons: Sequence[Comparison] = (), judge: str = "", *, of_words: bool = False
) -> dict[str, Any]:
    """Ratings alone, concluded on with what people say of their judge; ``of_words``: it is no language model."""
    of_judge = [replace(one, judges={judge: one.judges[judge]}) for one in comparisons if judge in one.judges]
    return {
        "agents": records(rating_table(ratings)),
        "conclusion": _concluded(ratings, of_judge, [judge] if of_words else ()),
        "judge_health": ratings.judge_health and flat(ratings.judge_health),
        "judges": ratings.judges,
        "fragility": ratings.fragility,
        "coverage": ratings.tally,
        "pairs": ratings.pairs,
        "position_effect": ratings.position_effect,
        "position_low": ratings.position_low,
        "position_high": ratings.position_high,
        "tie_parameter": ratings.tie_parameter,
        "convergence": ratings.convergence,
        "notes": ratings.notes,
        "settings": ratings.settings,
    }


def controlled_json(board: Controlled) -> dict[str, Any]:
    """By agent, as programs read it."""
    errors = {row.agent: row.standard_error for row in board.agents}
    known = {key: value for key, value in plain(board).items() if key != "clusters"}
    return {
        **known,
        "problems": [problem.message for problem in board.problems],
        "agents": {row.agent: row.rating for row in board.agents},
        "raw": {row.agent: row.raw for row in board.agents},
        "standard_errors": None if None in errors.values() else errors,
    }


def panel_json(panel: PanelRatings) -> dict[str, Any]:
    """Several judges as one panel, as programs read it."""
    return {
        "agents": dict(zip(panel.agents, panel.ratings.tolist(), strict=True)),
        "judges": panel.judges,
        "problems": [problem.message for problem in panel.problems],
        "converged": panel.converged,
    }


def few_alike(notes: Sequence[str]) -> list[str]:
    """Notes of which no matter, what stands before the colon, crowds out the others."""
    matter = [note.partition(": ")[0] for note in notes]
    told = []
    for place, note in enumerate(notes):
        before, alike = matter[:place].count(matter[place]), matter.count(matter[place])
        if before < _MOST_ALIKE:
            told.append(note)
        elif before == _MOST_ALIKE:
            told.append(f"{matter[place]}: {alike - before} more, all in JSON.")
    return told


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
    for found in ratings.flips:
        if found.change == "neighbours" and found.count:  # 0: the two are rated equal and have no places to change
            changes.setdefault(frozenset((found.ahead, found.behind)), []).append(counted(found.count, *found.noun))
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
        {
            "better": pair.better,
            "worse": pair.worse,
            "difference": Estimate(pair.difference, pair.low, pair.high),
            "p_holm": pair.p_holm,
            "separable": pair.separable,
            "needed": "" if pair.separable else more_needed(pair),
            "change": ", ".join(changes.get(frozenset((pair.better, pair.worse)), [])),
        }
        for pair in pairs
    ]
    notes = [said] if (said := judge_first(ratings.unjudged)) and any(row["needed"] for row in rows) else []
    yield Table(f"{name}-neighbours", "Can neighbours be told apart?", columns, rows, notes)


def _carriers(flips: Sequence[Fragility], texts: Mapping[str, str], name: str) -> Iterator[Table]:
    """The queries without which another agent would be rated highest, where their texts are known."""
    found = next((one for one in flips if one.unit != "game"), None)
    if found is None or not texts:
        return
    names = found.queries[:_MOST_QUERIES]
    more = f" The first {len(names)} are shown." if len(names) < len(found.queries) else ""
    yield Table(
        f"{name}-carriers",
        f"{found.count} of {counted(found.units, *found.noun)} carry the first place",
        [Column("query", found.noun[0].capitalize()), Column("text", "Text")],
        [{"query": query, "text": texts.get(query)} for query in names],
        [f"Read the games on these before deciding on {found.ahead}.{more}"],
    )
