"""What each sentence about ratings claims, and whether the verdicts bear it out.

Names of agents are single letters, so that a pattern can tell them.
"""

# ruff: noqa: E501 - a pattern stands on one line, as its sentence does

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from arena.boards.conclusion import STANDINGS
from benchmarks.false_sentences.sentences import NAMES, NUMBER, Finding, Said, Sentences, names, near, whole
from benchmarks.false_sentences.worlds import Recount, World

PRIOR = 50.0
"""Agents of equal record may differ by this many points, because of the prior of flagged agents."""

NOUN = r"(?P<unit>query|queries|games?)"


class Seen(Struct):
    """One table: its world and recount, and what was read so far.

    Attributes:
        leader: the agent that is said to lead.
        undecided: whether agents are said to be tied for first, or not to be told apart.
    """

    world: World
    count: Recount
    leader: str = ""
    undecided: bool = False

    @property
    def fewest(self) -> int:
        """Least number of queries for a leader: ten, and ten more each time the number of agents doubles from three."""
        return math.ceil(10 * (1 + math.log2(max(len(self.count.agents), 3) / 3)))

    @property
    def queries(self) -> int:
        return len(self.count.units) if self.count.named else len(self.count.games)


RATINGS: Sentences[Seen] = Sentences()
claim, always = RATINGS.claim, RATINGS.always


def read(seen: Seen, lines: Iterable[str]) -> Iterator[Finding]:
    """Check each line, without the words on how firmly a conclusion stands."""
    opening = rf"^(?:(?:{'|'.join(STANDINGS.values())}): [^.?]+[.?] |Judge \w+ alone: )"
    return RATINGS.read(seen, (re.sub(opening, "", line) for line in lines))


# --- what may be concluded


_ABSENT = r"(?: (?P<absent>[v-z]) has games on (?P<on>\d+) (?:queries|query|games?) only(?:, (?P<more>\d+) more agents? on fewer than others too)?: what it did not meet may be harder\.)?"


def _absent(seen: Seen, said: Said) -> bool | str:
    """Whether the sentence names the agent with games on the fewest queries, if that is under 90 % of the most."""
    present = seen.count.present if seen.count.named else {}
    few = {agent: times for agent, times in present.items() if times < 0.9 * max(present.values())}
    if not few or said["absent"] is None:
        return (not few and said["absent"] is None) or f"{few} are absent"
    first = min(few, key=lambda agent: (few[agent], agent))
    told = said["absent"], int(said["on"] or 0), int(said["more"] or 0)
    return told == (first, few[first], len(few) - 1) or f"rather {few}"


@claim(
    "leads",
    rf"(?P<a>[v-z]) leads(?:, (?P<points>{NUMBER}) points above (?P<next>{NAMES}),)? (?P<basis>at .*?)(?P<far>; how far ahead it is, these games cannot say)?\.{_ABSENT}",
)
def _leads(seen: Seen, said: Said) -> bool | str:
    seen.leader = said["a"]
    count = seen.count
    if said["a"] not in count.fit.highest() or len(count.fit.highest()) > 1:
        return "not the only one rated highest"
    if said["points"] and count.fit.exists:
        second = max(rating for agent, rating in count.fit.ratings.items() if agent != said["a"])
        if not near(said["points"], count.fit.ratings[said["a"]] - second, 1.5):
            return "other points"
        if any(abs(count.fit.ratings[agent] - second) > 0.02 for agent in names(said["next"])):
            return "not the next"
    if said["points"] and any(count.record(said["a"])[0] == sum(count.record(said["a"])) for _ in "1"):
        return "points of an agent that never lost"
    may = _may_lead(seen)
    present = _absent(seen, said) if may is True else may
    return _basis(seen, said["basis"]) if present is True else present


def _may_lead(seen: Seen) -> bool | str:
    count = seen.count
    if seen.queries < seen.fewest:
        return "on too few queries"
    both = count.in_both_orders
    if both and 2 * sum(a + b == 1 and a != b for a, b in both) >= len(both):
        return "although orders contradict each other"
    if seen.world.placed and not count.place_known:
        return "although place cannot be told from strength"
    return True if count.linked else "although not all met"


def _basis(seen: Seen, said: str) -> bool | str:
    match = re.fullmatch(
        rf"at 95% confidence over (?P<games>{NUMBER}) games?(?: on (?P<queries>{NUMBER}) quer(?:y|ies))?", said
    )
    if match is None:
        return "no basis"
    if whole(match["games"]) != len(seen.count.games):
        return "other games"
    return not match["queries"] or whole(match["queries"]) == len(seen.count.units) or "other queries"


@claim(
    "tied for first",
    rf"(?P<who>{NAMES}) are tied for first: no two of them can be told apart, (?P<basis>at .*?)\.{_ABSENT}",
)
def _tied(seen: Seen, said: Said) -> bool | str:
    seen.undecided = True
    who = names(said["who"])
    if not seen.count.fit.highest() & set(who) or not 1 < len(who) < len(seen.count.agents):
        return "not those on top"
    may = _may_lead(seen)
    present = _absent(seen, said) if may is True else may
    return _basis(seen, said["basis"]) if present is True else present


@claim(
    "beaten",
    rf"(?P<who>{NAMES}) won or tied no game: these games do not say how far behind (?:it is|they are)\. "
    r"No leader is named, (?P<basis>at .*)\.",
)
def _beaten(seen: Seen, said: Said) -> bool | str:
    seen.undecided = True
    if any(wins or ties for wins, ties, _ in map(seen.count.record, names(said["who"]))):
        return "one that won or tied"
    return _basis(seen, said["basis"])


@claim(
    "none told apart",
    rf"(?:No two of the (?P<n>\d+) agents can|(?P<who>{NAMES}) cannot) be told apart, (?P<basis>at .*)\.",
)
def _none(seen: Seen, said: Said) -> bool | str:
    seen.undecided = True
    agents = seen.count.agents
    if (sorted(names(said["who"])) != sorted(agents)) if said["who"] else (int(said["n"]) != len(agents)):
        return "other agents"
    return _basis(seen, said["basis"])


@claim(
    "too few", rf"Only (?P<n>\d+) {NOUN}: with fewer than (?P<least>\d+), intervals miss too often to name a leader\."
)
def _few(seen: Seen, said: Said) -> bool | str:
    right = int(said["n"]) == seen.queries < seen.fewest == int(said["least"])
    return right and (said["unit"][0] == "q") == seen.count.named


@claim(
    "one order",
    rf"No two agents were shown in both orders, and the answer shown first won (?P<a>{NUMBER}) of (?P<b>{NUMBER}) verdicts? with a winner\. Strength and place cannot be told apart, so none can be said to lead\. Judge both orders\.",
)
def _one_order(seen: Seen, said: Said) -> bool | str:
    rows = [row for row in seen.count.rows if row.placed]
    pairs = {(row.first, row.second) for row in rows}
    if any(pair[::-1] in pairs for pair in pairs) or seen.count.place_known:
        return "some were"
    decided = [row for row in rows if row.winner]
    return (whole(said["a"]), whole(said["b"])) == (sum(r.winner == r.first for r in decided), len(decided))


@claim(
    "orders contradict",
    rf"In (?P<a>{NUMBER}) of the (?P<b>{NUMBER}) games? judged in both orders, each order preferred another agent: the place shown may decide, not the answer\. No agent can be said to lead\.",
)
def _contradict(seen: Seen, said: Said) -> bool | str:
    both = seen.count.in_both_orders
    against = sum(a + b == 1 and a != b for a, b in both)
    return (whole(said["a"]), whole(said["b"])) == (against, len(both)) and 2 * against >= len(both)


@claim(
    "no one order",
    rf"One rating for each agent cannot describe these games: (?P<who>{NAMES}) beat each other in a circle, or lose to agents rated below them, by more than chance\. Compare them pair by pair\.",
)
def _circle(seen: Seen, said: Said) -> bool | str:
    return seen.count.on_a_circle(names(said["who"]))


@claim(
    "all equal",
    r"(?P<why>Every game is a tie|Wins and losses balance): all (?P<n>\d+) agents have the same rating, and none leads\.",
)
def _equal(seen: Seen, said: Said) -> bool | str:
    ties = all(game.score == 0.5 for game in seen.count.games)
    same = len(seen.count.fit.highest()) == len(seen.count.agents) == int(said["n"])
    return same and ties == said["why"].startswith("Every")


@claim(
    "not all met",
    r"Some agents never met the others, not even through third ones, so their ratings cannot be compared\.",
)
def _never_met(seen: Seen, _said: Said) -> bool | str:
    return not seen.count.linked


@claim(
    "lead by place",
    r"(?P<a>[v-z]) is rated highest, but not every game was judged in both orders\. If being shown first has an effect, its lead may be chance\. Judge both orders\.",
)
def _by_place(seen: Seen, said: Said) -> bool | str:
    one_order = len(seen.count.in_both_orders) < len(seen.count.games)
    return one_order and said["a"] in seen.count.fit.highest()


always("no intervals", r"There are no intervals, so a higher rating may be chance\.")


@claim(
    "expectation",
    r"Of 100 games with a winner (?P<a>[v-z]) would win about (?P<n>\d+) against (?P<b>[v-z]) \(between (?P<l>\d+) and (?P<h>\d+)\)\.",
)
def _expected(seen: Seen, said: Said) -> bool | str:
    ratings = seen.count.fit.ratings
    expected = 100 / (1 + 10 ** ((ratings[said["b"]] - ratings[said["a"]]) / 400))
    if not near(said["n"], expected, 1) or not int(said["l"]) <= int(said["n"]) <= int(said["h"]):
        return f"rather {expected:.0f}"
    won, lost, _ = seen.count.met(said["a"], said["b"])
    if won + lost < 8:
        return True
    error = 100 * (0.25 / (won + lost)) ** 0.5
    return abs(100 * won / (won + lost) - expected) < 4 * error or "their own games say otherwise"


@claim(
    "met",
    rf"(?P<a>[v-z]) and (?P<b>[v-z]) met in (?P<n>{NUMBER}) games?: (?P<c>[v-z]) won (?P<won>{NUMBER}), (?P<d>[v-z]) won (?P<lost>{NUMBER}), (?P<tied>{NUMBER}) tied\.",
)
def _met(seen: Seen, said: Said) -> bool | str:
    found = seen.count.met(said["a"], said["b"])
    told = tuple(float(whole(said[name])) for name in ("won", "lost", "tied"))
    return found == told and sum(found) == whole(said["n"]) and (said["a"], said["b"]) == (said["c"], said["d"])


always("why", r"Why: .*", r"Next: .*")  # what the failed checks say, which is read there


# --- what would change the order


@claim(
    "fragility",
    rf"Without (?P<k>\d+) of (?P<n>{NUMBER}) {NOUN} (?P<a>[v-z]) would be rated highest\.",
)
def _fragile(seen: Seen, said: Said) -> bool | str:
    unit = "query" if said["unit"].startswith("q") else "game"
    number = len(seen.count.units) if unit == "query" else len(seen.count.games)
    highest = seen.count.fit.highest()
    if whole(said["n"]) != number or int(said["k"]) < 1:
        return "other games" if int(said["k"]) else "without none?"
    if said["a"] in highest:
        return "it is already"
    return seen.count.without(int(said["k"]), unit, min(highest), said["a"], highest=True) or "not without those"


def changes_places(seen: Seen, ahead: str, behind: str, numbers: str) -> bool | str:
    """Whether leaving out so many games or queries, as "3 games, 2 queries", puts one agent above the other."""
    ratings = seen.count.fit.ratings
    if ratings[ahead] <= ratings[behind] + (0.01 if seen.count.fit.exists else -PRIOR):
        return f"{ahead} is not above {behind}"
    for number in numbers.split(", "):
        k, unit = number.split()
        name = "query" if unit.startswith("q") else "game"
        if int(k) < 1 or not seen.count.without(int(k), name, ahead, behind, highest=False):
            return f"not {number}"
    return True


# --- judges


def between_judges(count: Recount) -> list[list[float]]:
    """Each judge's outcome of each game that several judged, with the two orders merged."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in {(q, j, one, other): orders for q, j, one, other, orders in count.folded}.items():
        (query, _, one, other), orders = row
        scores = set(orders.values())
        found.setdefault((query, one, other), []).append(scores.pop() if len(scores) == 1 else 0.5)
    return [said for said in found.values() if len(said) > 1]


def krippendorff(units: Sequence[Sequence[float]]) -> float | None:
    """Alpha of nominal values, sides of a game exchangeable: each unit counts half as written and half mirrored."""
    values = [value for unit in units for value in unit]
    observed = sum(sum(a != b for a in unit for b in unit) / (len(unit) - 1) for unit in units)
    mirrored = values + [1 - value for value in values]
    expected = sum(a != b for a in mirrored for b in mirrored) / 4 / (len(values) - 1) if len(values) > 1 else 0.0
    return None if not expected else 1 - observed / expected


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
def _few_in_all(seen: Seen, said: Said) -> bool | str:
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
def _absent_note(seen: Seen, said: Said) -> bool | str:
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
