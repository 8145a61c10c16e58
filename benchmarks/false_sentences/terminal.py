"""Notes below ratings, held against a recount."""

# ruff: noqa: E501 - a pattern stands on one line, as its sentence does

from __future__ import annotations

import re

from msgspec.structs import replace

from benchmarks.false_sentences.claims import Seen, always, claim
from benchmarks.false_sentences.sentences import NAMES, NUMBER, Said, names, whole


@claim("rows read", rf"Rows: (?P<n>{NUMBER}); (?P<what>.*)\.")
def _rows(seen: Seen, said: Said) -> bool | str:
    rows = seen.count.rows
    if whole(said["n"]) != len(rows):
        return "other rows"
    for part in said["what"].split("; "):
        number = whole(part.split()[0])
        distinct = {row if seen.count.named else replace(row, query="") for row in rows}
        if "repeat another" in part and number != len(rows) - len(distinct):
            return f"{len(rows) - len(distinct)} repeat"
        if "empty order" in part and number != sum(not row.placed for row in rows):
            return "other places"
    return True


@claim(
    "note: no maximum, way",
    rf"No maximum of the likelihood: (?P<who>{NAMES}): (?P<what>not one loss or tie against the other agents, so no upper limit to the rating|not one win or tie against the other agents, so no lower limit to the rating|every game against another agent is a win over weaker or a loss to stronger ones)\.",
)
def _way(seen: Seen, said: Said) -> bool | str:
    who, won, lost, tied = set(names(said["who"])), 0.0, 0.0, 0.0
    for agent in who:
        for other in set(seen.count.agents) - who:
            a, b, c = seen.count.met(agent, other)
            won, lost, tied = won + a, lost + b, tied + c
    if "upper" in said["what"]:
        return won > 0 and lost == tied == 0
    return (lost > 0 and won == tied == 0) if "lower" in said["what"] else (tied == 0 and won > 0 and lost > 0)


@claim(
    "note: never met",
    r"No maximum of the likelihood: no games link these sets of agents, so ratings compare within a set only: .*\.",
)
def _sets(seen: Seen, _said: Said) -> bool | str:
    return not seen.count.linked


@claim(
    "note: all ties",
    r"No maximum of the likelihood: every game is a tie, so nothing sets the agents apart\.",
)
def _ties(seen: Seen, _said: Said) -> bool | str:
    return all(game.score == 0.5 for game in seen.count.games)


@claim(
    "note: ties hold",
    r"No maximum of the likelihood: wins go one way and only ties hold the agents together: the likelihood grows without end as ratings spread\.",
)
def _hold(seen: Seen, _said: Said) -> bool | str:
    return not seen.count.fit.exists and any(game.score == 0.5 for game in seen.count.games)


always(
    "explanation",
    r"Flagged ratings rest on a weak prior, 1 virtual draw\(s\) against an average agent; where they are flagged for ties or position it holds the tie parameter and order effect instead\.",
    r"\d+ of \d+ bootstrap samples have no maximum of the likelihood \(an agent without a loss, a win or a game in them\) and use the weak prior\.",
    r"Resampling cannot show all uncertainty here, so intervals are widened to those of a normal approximation to the fitted model\.",
    r"No maximum of the likelihood: \d+ more, all in JSON\.",
)


@claim("note: single game", rf"Rated on a single game: (?P<who>{NAMES})\.")
def _single(seen: Seen, said: Said) -> bool | str:
    once = [agent for agent in seen.count.agents if sum(seen.count.record(agent)) == 1]
    return once == names(said["who"])


@claim(
    "note: few",
    r"Too few (?P<unit>queries|games) \((?P<n>\d+)\): intervals miss too often, so no agent is told from another; (?P<agents>\d+) agents need at least (?P<least>\d+)\.",
)
def _few(seen: Seen, said: Said) -> bool | str:
    told = tuple(int(said[name]) for name in ("n", "agents", "least"))
    right = told == (seen.queries, len(seen.count.agents), seen.fewest) and seen.queries < seen.fewest
    return right and (said["unit"][0] == "q") == seen.count.named


_OWN = r"[v-z] \(\d+\)"


@claim(
    "note: few of their own",
    rf"Too few (?P<unit>queries|games) of their own: (?P<who>{_OWN}(?:(?:, | and ){_OWN})*)\. (?P<agents>\d+) agents need at least (?P<least>\d+) each, so these are told from no other\.",
)
def _few_of_their_own(seen: Seen, said: Said) -> bool | str:
    agents, present = seen.count.agents, seen.count.present
    told = {agent: int(times) for agent, times in re.findall(r"([v-z]) \((\d+)\)", said["who"])}
    right = (int(said["agents"]), int(said["least"])) == (len(agents), seen.fewest)
    return right and told == {agent: times for agent, times in present.items() if times < seen.fewest}


_PRESENT = r"[v-z] has games on \d+ of \d+ queries"


@claim(
    "note: absent",
    rf"(?P<who>{_PRESENT}(?:, {_PRESENT})*|Each agent has games on \d+ of \d+ queries|Agents have games on \d+ to \d+ of \d+ queries): ratings compare agents that met on different queries, which may be easier for one than for another\.",
)
def _absent(seen: Seen, said: Said) -> bool | str:
    agents, present = seen.count.agents, seen.count.present
    number = len({seen.count.unit(game.query) for game in seen.count.games})
    few = {agent for agent, times in present.items() if times < 0.9 * number}
    if said["who"].startswith(("Each", "Agents")):
        ends = sorted({min(present.values()), max(present.values())})
        return few == set(agents) and [int(own) for own in re.findall(r"\d+", said["who"])] == [*ends, number]
    told = {agent: (int(a), int(b)) for agent, a, b in re.findall(r"([v-z]) has games on (\d+) of (\d+)", said["who"])}
    return told == {agent: (present[agent], number) for agent in few}


@claim(
    "note: no queries",
    r"Verdicts name no query: intervals treat games as independent and are too narrow if queries repeat\.",
)
def _unnamed(seen: Seen, _said: Said) -> bool | str:
    return not seen.count.named


@claim(
    "note: one query",
    r"There are no intervals: (?P<why>all games are on one query|there is a single game), which says nothing about variation\.",
)
def _one_query(seen: Seen, said: Said) -> bool | str:
    if said["why"].startswith("there"):
        return not seen.count.named and len(seen.count.games) == 1
    return seen.count.named and len(seen.count.queries) == 1


@claim(
    "note: one order",
    r"(?P<a>\d+) of (?P<b>\d+) games were judged in one order only; that verdict stands\.",
)
def _single_order(seen: Seen, said: Said) -> bool | str:
    alone = sum(len(orders) == 1 for *_, orders in seen.count.folded)
    return (int(said["a"]), int(said["b"])) == (alone, len(seen.count.games))


@claim(
    "note: contradictions",
    r"(?P<a>\d+) of (?P<b>\d+) games judged in both orders contradict themselves: ties\.",
)
def _against(seen: Seen, said: Said) -> bool | str:
    both = [tuple(orders.values()) for *_, orders in seen.count.folded if len(orders) == 2]
    return (int(said["a"]), int(said["b"])) == (sum({*own} == {0.0, 1.0} for own in both), len(both))


@claim(
    "note: repeated",
    r"(?P<a>\d+) verdicts? repeats? a query, judge and order(?:; the majority of each order counts|, and counts? as games? of their own)\.",
)
def _repeated(seen: Seen, said: Said) -> bool | str:
    rows = seen.count.rows
    return int(said["a"]) == len(rows) - len({(r.query, r.judge, r.first, r.second) for r in rows})


@claim(
    "note: place",
    r"Not every game was judged in both orders: ranks, groups and intervals hold only if being shown first counts for nothing\.",
)
def _only_if(seen: Seen, _said: Said) -> bool | str:
    return len(seen.count.in_both_orders) < len(seen.count.games)
