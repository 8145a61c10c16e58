"""Who leads and how sure that is: the ratings, neighbours, the win matrix, and what carries the lead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.conclusion import Conclusion, units
from arena.leaderboard import Leaderboard
from arena.present.blocks import Block, Remarks, Section
from arena.present.numbers import POINTS, counted, listed
from arena.present.picture import Line, Mark, Whiskers
from arena.present.table import Table
from arena.ratings.covariates import ControlledBoard
from arena.ratings.rate import Ratings
from arena.ratings.results import AgentRating, PairDifference
from arena.report.blocks import text_table
from arena.report.facts import Facts
from arena.report.figures import NONE, between, number
from arena.wording import CONTROLLED, FLAGS, adaptive_line, controlled_doubts, controlled_effects, more_needed

_MOST_QUERIES = 12
"""Queries that carry the lead which are shown with their texts."""


def ranking(facts: Facts, conclusion: Conclusion) -> Section | None:
    """The leaderboard, in which those lead who do by the conclusion; ``None`` without ratings."""
    ratings = facts.board.ratings
    if ratings is None:
        return None
    blocks: list[Block] = [_whiskers(ratings, conclusion.top), _table(ratings)]
    if facts.board.controlled is not None:
        blocks.append(_controlled(facts.board.controlled))
    if conclusion.ordered:
        blocks += [*_neighbours(ratings), *_carriers(facts, ratings)]
    if said := list(_remarks(facts.board, ratings, conclusion)):
        blocks.append(Remarks(said))
    lead = "How strong each agent is, by all its games against the others at once, and how far that may be off."
    return Section("leaderboard", "Leaderboard", lead, blocks)


def _remarks(board: Leaderboard, ratings: Ratings, conclusion: Conclusion) -> Iterator[str]:
    yield from ratings.notes
    if board.adaptive is not None:
        line = adaptive_line(board.adaptive, ordered=conclusion.ordered)
        yield f"{line[0].upper()}{line[1:]}."
    yield from dict.fromkeys(note for agent in board.settings.get("agents", ()) for note in agent["notes"])


def _whiskers(ratings: Ratings, top: Sequence[str]) -> Whiskers:
    worth = "100 points more is 64% of the games with a winner, 400 more is 10 to 1. "
    tag = "leads" if len(top) == 1 else "tied for first"
    return Whiskers(
        "ratings",
        "",
        "Ratings with their intervals, best first",
        f"A dot is an agent's rating, the line its {ratings.settings.level:.0%} interval: where lines overlap widely, "
        f"the agents may well be equally good. {worth if ratings.settings.ties == 'davidson' else ''}"
        "Ranks: the places that an agent may truly have.",
        [
            Line(
                row.agent,
                [Mark(row.bt, row.bt_low, row.bt_high, "blue" if row.agent in top else "quiet")],
                rank=_ranks(row),
                tag=tag if row.agent in top else "",
            )
            for row in ratings.agents
        ],
        "Bradley-Terry rating in points; further right is better",
        POINTS,
        ("Ranks", "Agent", "Rating, interval"),
    )


def _ranks(row: AgentRating) -> str:
    if row.rank_low is None or row.rank_high is None:
        return NONE
    if row.rank_low == row.rank_high:
        return str(row.rank_low)
    return f"{row.rank_low}-{row.rank_high}"


def _table(ratings: Ratings) -> Table:
    level = f"{ratings.settings.level:.0%}"
    flagged = any(row.flags for row in ratings.agents)
    columns = ["Agent", "Rank", f"Ranks ({level})", "Bradley-Terry", f"{level} interval", "Group", "Elo"]
    columns += ["Order noise", "Games", "Won", "Tied", "Lost", *(["Read with care"] if flagged else [])]
    rows = []
    for row in ratings.agents:
        cells = [row.agent, str(row.rank), _ranks(row), number(row.bt, 1)]
        cells += [between(row.bt_low, row.bt_high, 1), row.group, number(row.elo, 1), number(row.elo_order_sd, 1)]
        counts = (row.games, row.wins, row.ties, row.losses)
        cells += [f"{count:,g}" if float(count).is_integer() else f"{count:,.1f}" for count in counts]
        rows.append([*cells, *(["; ".join(FLAGS.get(flag, flag) for flag in row.flags)] if flagged else [])])
    games = "every verdict is one." if ratings.settings.position else "both orders of a pair on a query count as one."
    notes = [
        f"Ranks: all agents' true ranks lie in these at once, at {level} confidence. Group: agents that share a letter "
        f"cannot be told apart, with tests corrected for the number of pairs. Games: {games}",
        "Elo is the mean over many random orders of the games; order noise is its standard deviation over them, and no "
        "confidence interval.",
    ]
    return text_table("The same in figures", columns, rows, notes, frozenset({"Read with care"}))


def _controlled(board: ControlledBoard) -> Table:
    """Controlled ratings beside the raw ones of the same games."""
    rows = [
        [row.agent, number(row.rating, 1), number(row.standard_error, 1), number(row.raw, 1)] for row in board.agents
    ]
    notes = [
        f"{CONTROLLED} Every verdict is a game here, for the raw ratings too.",
        f"{'; '.join(controlled_effects(board))}.",
        *controlled_doubts(board),
    ]
    names = listed([effect.name for effect in board.effects])
    return text_table(f"Ratings controlled for {names}", ["Agent", "Controlled", "Standard error", "Raw"], rows, notes)


def _neighbours(ratings: Ratings) -> Iterator[Table]:
    pairs = ratings.neighbours
    if not pairs:
        return
    yield text_table(
        "Can neighbours on the leaderboard be told apart?",
        ["Rated higher", "Neighbour", "Points", "Interval", "p (Holm)", "Told apart", "To tell apart"],
        [[*_pair(pair, ratings)] for pair in pairs],
        [
            f"Intervals of all pairs of agents hold at once at {ratings.settings.level:.0%} confidence; two are told "
            "apart where theirs leaves out 0. p-values are of another test, corrected by Holm for all pairs. To tell "
            "apart: what is needed in addition, if the difference is what it seems, to see it with probability 0.8; in "
            "brackets, if it lies at the ends of its 80% interval."
        ],
        frozenset({"Neighbour", "Told apart"}),
    )


def _pair(pair: PairDifference, ratings: Ratings) -> Iterator[str]:
    yield from (pair.better, pair.worse, f"{pair.difference:+.0f}", between(pair.low, pair.high, 0))
    yield "below 0.001" if pair.p_holm < 0.001 else f"{pair.p_holm:.3f}"
    yield "yes" if pair.separable else "no"
    yield "nothing" if pair.separable else more_needed(pair, units(ratings)) or "not known"


def _carriers(facts: Facts, ratings: Ratings) -> Iterator[Table]:
    """The queries without which another agent would be rated highest."""
    found = next((one for one in ratings.flips if one.change == "leader" and one.unit == "query"), None)
    if found is None or not found.count:
        return
    names = found.queries[:_MOST_QUERIES]
    more = f" The first {len(names)} are shown." if len(names) < len(found.queries) else ""
    yield text_table(
        f"{found.count} of {counted(found.units, 'query', 'queries')} carry the first place: without "
        f"{'it' if found.count == 1 else 'them'} {found.behind} would be rated highest",
        ["Query", "Text"],
        [[name, facts.queries.get(name, NONE)] for name in names],
        [f"Read the games on these before deciding on {found.ahead}.{more}"],
        frozenset({"Text"}),
    )
