"""What one judge decides: conclusions without each judge, intervals for other judges, and kin of judge and agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from arena.present.numbers import P_VALUE, PERCENT, SIGNED, SIGNED_2, capital, counted, listed, with_interval
from arena.present.picture import Line, Look, Mark, Whiskers
from arena.present.table import Column, Table
from arena.ratings.results import OtherJudges, PairDifference, Ratings
from retrieval_eval.stats.components import ANSWERS, JUDGES, QUERIES, ROUGH
from retrieval_eval.stats.estimate import Estimate

FAMILIES: Final = (
    *("claude", "command", "deepseek", "exaone", "falcon", "gemini", "gemma", "glm", "gpt", "granite", "grok", "jamba"),
    *("kimi", "llama", "mistral", "mixtral", "nova", "olmo", "palm", "phi", "qwen", "solar", "vicuna", "yi"),
)
"""First words of models' names by which two are taken for kin, where the configuration declares no families."""
FIXED: Final = "Intervals hold the judge fixed: they are for other queries, not for other judges."
ADD_JUDGES: Final = "more queries will not help, since judges differ more than queries do: add judges or people"
_MAJORITY: Final = 0.5
_NAMED: Final = 2
_FEWER: Final = 4
"""A judge is named if without it this times fewer queries would tell two neighbours apart."""


class WithoutJudge(Struct, frozen=True):
    """What changes without one judge.

    Attributes:
        leads: the conclusion without it, in words, if it is another; else empty.
        refuted: whether an agent at the top with all judges is not at the top without this one.
        pairs: neighbours that change places, or are told apart now or no longer, in words.
    """

    judge: str
    leads: str
    refuted: bool
    pairs: tuple[str, ...]


Top: TypeAlias = tuple[str, Sequence[str]]
"""Headline of a conclusion, and the agents at the top."""


def without_judges(ratings: Ratings, conclude: Callable[[Ratings], Top]) -> list[WithoutJudge]:
    """What changes without each judge; ``conclude`` draws the conclusion from ratings."""
    _, top = conclude(ratings) if ratings.without_judge else ("", ())
    found = []
    for judge, rest in ratings.without_judge.items():
        headline, others = conclude(rest)
        same = set(others) == set(top) or (len(others) > 1 and set(others) < set(top))
        leads = ""
        if not same and others:
            leads = f"{listed(others, 5)} are tied for first" if len(others) > 1 else f"{others[0]} leads"
        elif not same:
            leads = f"the conclusion is: {headline[0].lower()}{headline[1:]}"
        refuted = bool(top and others) and not set(top) & set(others)
        found.append(WithoutJudge(judge, leads, refuted, tuple(_changed(ratings, rest))))
    return found


def _changed(ratings: Ratings, rest: Ratings) -> Iterator[str]:
    by_agents = {frozenset((pair.better, pair.worse)): pair for pair in rest.pairs}
    for pair in ratings.neighbours:
        other = by_agents.get(frozenset((pair.better, pair.worse)))
        if other is None:
            continue
        who = f"{pair.better} and {pair.worse}"
        if other.better != pair.better and (pair.separable or other.separable):
            yield f"{who} change places"
        elif other.separable != pair.separable:
            yield f"{who} are {'told apart' if other.separable else 'no longer told apart'}"
        elif (fewer := other.queries_needed) and _FEWER * fewer <= (pair.queries_needed or 0):
            yield f"{fewer:,} more {ratings.noun[1]}, and not {pair.queries_needed:,}, would tell {who} apart"


def top_sentence(changes: Sequence[WithoutJudge]) -> str:
    """The changes at the top, as "Without x (1 of 6 judges) b leads; without ..."; empty if there is none."""
    words = [
        f"without {change.judge}{f' (1 of {len(changes)} judges)' if not number else ''}, {change.leads}"
        for number, change in enumerate(change for change in changes if change.leads)
    ]
    more = f"; and {counted(len(words) - _NAMED, 'other judge')} likewise" if len(words) > _NAMED else ""
    return f"W{'; '.join(words[:_NAMED])[1:]}{more}." if words else ""


def pair_sentence(changes: Sequence[WithoutJudge]) -> str:
    words = [f"without {change.judge}, {listed(change.pairs, _NAMED)}" for change in changes if change.pairs]
    more = f"; and without {counted(len(words) - _NAMED, 'other')}, other pairs" if len(words) > _NAMED else ""
    return f" Of neighbours: {'; '.join(words[:_NAMED])}{more}." if words else ""


def kin_sentence(judges: Iterable[str], agents: Sequence[str], families: Mapping[str, Mapping[str, str]]) -> str:
    """Names judges that share a model family with an agent, by the declared families, else by the models' names."""
    of_judges, of_agents = families.get("judges", {}), families.get("agents", {})
    kin = []
    for judge in judges:
        family = of_judges.get(judge) or family_of(judge)
        if own := [agent for agent in agents if family and family == (of_agents.get(agent) or family_of(agent))]:
            kin.append(f"{judge} and {listed(own, _NAMED)}")
    return f" Of one model family: {'; '.join(kin)}." if kin else ""


def is_fixed(ratings: Ratings) -> bool:
    """Whether all games are of one judge, so that nothing shows what others would say."""
    return ratings.judges is None and ratings.judge_health is not None and ratings.unit != "game"


def finding(
    ratings: Ratings, changes: Sequence[WithoutJudge], families: Mapping[str, Mapping[str, str]] | None = None
) -> str:
    """What the order owes to single judges; empty for one judge, or for more than are left out one by one."""
    if not changes:
        return ""
    stays = f"The conclusion stays without any 1 of {len(changes)} judges."
    agents = [row.agent for row in ratings.agents]
    kin = kin_sentence(ratings.without_judge, agents, families or {})
    return f"{top_sentence(changes) or stays}{pair_sentence(changes)}{kin}"


def family_of(name: str) -> str:
    """The first word of a model's name that names a family of models; empty if none does."""
    words = re.findall(r"[a-z]+", name.lower())
    return next((word for word in words if word in FAMILIES), "")


def judge_tables(ratings: Ratings, name: str) -> Iterator[Table]:
    """Tables of neighbours with their intervals for other judges, and without the judge that changes them most."""
    if any(row.parts for row in ratings.other_judges):
        yield other_judges_table(ratings.other_judges, name)
    rows = [row for pair in ratings.neighbours if (row := _most_changed(pair, ratings))]
    if rows:
        columns = [
            Column("better", "Rated higher"),
            Column("worse", "Neighbour"),
            Column("judge", "Without", meaning="The judge without which the difference changes most."),
            Column("difference", "Points then", SIGNED, interval="Interval"),
            Column("p_holm", "p, corrected", P_VALUE),
            Column("separable", "Told apart"),
            Column("needed", f"More {ratings.noun[1]} needed"),
        ]
        title = f"Without one of {counted(len(ratings.without_judge), 'judge')}"
        yield Table(f"{name}-without-judge", title, columns, rows)


def other_judges_table(rows: Sequence[OtherJudges], name: str, factor: str = "judge", what: str = "") -> Table:
    """Table of neighbours with their intervals; another ``factor`` than judges is one that games are grouped by."""
    form, unit = (SIGNED, "Points") if what in ("", "games") else (SIGNED_2, "Mean label")
    level, several = "95% interval", any(JUDGES in row.parts for row in rows)
    columns = [Column("better", "Rated higher"), Column("worse", "Neighbour")]
    if several:
        others = f"For other queries, and other {factor}s of this kind."
        columns += [
            Column("interval", unit, form, others, f"For other {factor}s"),
            Column(JUDGES, f"{capital(factor)}s' part", PERCENT, "Of the difference's variance.", level),
        ]
    columns.append(Column(QUERIES, "Queries' part", PERCENT, "The rest is chance and taste on single queries.", level))
    if any(ANSWERS in row.parts for row in rows):
        columns.append(Column(ANSWERS, "Answers' part", PERCENT, "What a system asked again would change.", level))
    more = ADD_JUDGES if factor == "judge" else f"{factor}s differ more than queries do"
    notes = [f"{row.better} and {row.worse}: {more}." for row in rows if judges_decide(row.parts)]
    if several and any(row.judges < ROUGH for row in rows):
        notes.append(f"Rough: fewer than {ROUGH} {factor}s say little of how {factor}s differ.")
    cells: list[Mapping[str, Any]] = [
        {"better": row.better, "worse": row.worse, "interval": row.interval, **row.parts} for row in rows
    ]
    title = f"For other {factor}s of this kind{what and f': {what}'}" if several else "Parts of the variance"
    return Table(f"{name}-other-{factor}s", title, columns, cells, notes)


def parts_picture(rows: Sequence[OtherJudges]) -> Whiskers | None:
    """Each source's part of the variance of neighbours' differences; ``None`` if nothing tells sources apart."""
    looks: Mapping[Look, str] = {"blue": QUERIES, "orange": JUDGES, "grey": ANSWERS}
    lines = [
        Line(
            f"{row.better} - {row.worse}",
            [_mark(row.parts[source], look) for look, source in looks.items() if source in row.parts],
        )
        for row in rows
        if row.parts
    ]
    if not lines:
        return None
    legend = {look: source for look, source in looks.items() if any(source in row.parts for row in rows)}
    captions = {
        JUDGES: "Where judges make more than half of a difference's variance, more judges tell more than more queries.",
        ANSWERS: "Answers' part: what one system asked again would change. New queries lower it as well as repeats do.",
    }
    caption = " ".join(words for source, words in captions.items() if source in legend.values())
    words = "Parts of the variance of neighbours' differences, with intervals"
    return Whiskers("judge-parts", "", words, caption, lines, "Part of the variance", PERCENT, legend=legend, zero=True)


def _mark(share: Estimate, look: Look) -> Mark:
    return Mark(share.value or 0.0, share.low, share.high, look)


def judges_decide(parts: Mapping[str, Estimate]) -> bool:
    """Whether judges surely make more than half of a difference's variance, so that more queries will not help."""
    low = parts[JUDGES].low if JUDGES in parts else None
    return low is not None and low > _MAJORITY


def parts_words(parts: Mapping[str, Estimate]) -> str:
    shares = [f"{name} {with_interval(parts[name], PERCENT)}" for name in (JUDGES, ANSWERS, QUERIES) if name in parts]
    return f"of its variance, {listed(shares).replace(' ', ' make ', 1)}"


def _most_changed(pair: PairDifference, ratings: Ratings) -> dict[str, Any] | None:
    agents = frozenset((pair.better, pair.worse))
    others = {
        judge: other
        for judge, rest in ratings.without_judge.items()
        for other in rest.pairs
        if frozenset((other.better, other.worse)) == agents
    }
    if not others:
        return None

    def change(judge: str) -> float:
        other = others[judge]
        return abs((other.difference if other.better == pair.better else -other.difference) - pair.difference)

    judge = max(others, key=change)
    other = others[judge]
    return asdict(other) | {
        "judge": judge,
        "difference": Estimate(other.difference, other.low, other.high),
        "needed": "" if other.separable else more_needed(other),
    }


def more_needed(pair: PairDifference) -> str:
    """Number of further queries or games to separate two agents, as "12 (8 to 40)"; empty if it is unknown."""
    if not pair.queries_needed:
        return ""
    low, high = pair.queries_needed_low or 0, pair.queries_needed_high
    ends = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
    return f"{pair.queries_needed:,} ({ends})"
