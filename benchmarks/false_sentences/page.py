"""The report: its lines, and what they claim."""

# ruff: noqa: E501 - a pattern stands on one line, as its sentence does

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import Any

from arena.present.blocks import Checks, Remarks, Section, VerdictCard
from arena.present.files import Report
from arena.present.picture import Matrix, Whiskers
from arena.present.table import Table
from benchmarks.false_sentences.claims import (
    FOUND,
    NOUN,
    PAIRS,
    Seen,
    always,
    between_judges,
    changes_places,
    claim,
    krippendorff,
    of_single_judges,
    without_judge,
)
from benchmarks.false_sentences.sentences import (
    BRACKET,
    END,
    NAMES,
    NUMBER,
    Said,
    first_wrong,
    near,
    share,
    status_follows,
    whole,
)
from benchmarks.false_sentences.worlds import Recount

READ = ("leaderboard", "trust", "matrix", "judges", "coverage")
"""Sections that speak of verdicts; the others hold settings and commands."""


def lines(report: Report) -> Iterator[str]:
    for block in report.opening:
        if isinstance(block, VerdictCard):
            yield f"headline: {block.headline}"
            yield block.sentence
    for section in (*report.sections, *report.appendix):
        if section.ident in READ:
            yield from section_lines(section)


def section_lines(section: Section) -> Iterator[str]:
    for block in section.blocks:
        yield from _block(block)


def _block(block: object) -> Iterator[str]:
    if isinstance(block, Whiskers):
        yield from (f"whisker: {own.name} {own.tag}" for own in block.lines if own.tag)
        yield f"explained: {block.caption}"
    elif isinstance(block, Table) and block.name == "habits":
        judge = block.columns[1]  # all of them, where there are several
        yield from (f"habit {row['habit']}: {judge.form.write(judge.value(row))}" for row in block.rows)
    elif isinstance(block, Table):
        yield f"table: {block.title}"
        yield from (f"row of {block.title.split(':')[0]}: {' | '.join(_cells(block, row))}" for row in block.rows)
        yield from (f"explained: {note}" for note in block.notes)
    elif isinstance(block, Remarks):
        yield from block.items
    elif isinstance(block, Checks):
        yield from (f"check {own.status}: {own.name}: {own.finding}" for own in block.items)
    elif isinstance(block, Matrix):
        for name in block.rows:
            for other in block.columns:
                if other != name:
                    cell = block.cells.get((name, other))
                    yield f"cell {name} {other}: " + (f"{cell.figure} of {cell.below}" if cell else " of never met")


def _cells(table: Table, row: Mapping[str, Any]) -> Iterator[str]:
    """All cells of a row, also in columns that the page leaves out because no row has a value."""
    for column in table.columns:
        if column.heading:
            yield column.form.write(column.value(row))
            if column.interval:
                yield column.form.between(*column.ends(row))


always(
    "headline",
    r"headline: (?:Clear leader|Tie at the top|Not enough signal|Too few queries|Too few games|Place or strength\?|The orders contradict each other|No one order fits|All rated equal|Not all agents met|Not enough verdicts to rate|Too little is judged|The judge is not shown to agree with people)",
)
always(
    "explanation",
    r"explained: .*",
    r"table: (?:Leaderboard(?: of all judges together)?|Judge \w+ alone|Can neighbours be told apart\?|Each judge by itself|What each judge alone would say|Do the judges agree with each other\?|By stage)",
    r"row of By stage: .*",
)


@claim("whisker", r"whisker: (?P<a>[v-z]) (?P<what>leads|tied for first)")
def _whisker(seen: Seen, said: Said) -> bool | str:
    return (
        seen.queries >= seen.fewest
        and (said["what"] == "leads") == bool(seen.leader)
        and (not seen.leader or seen.leader == said["a"])
    )


@claim(
    "in short",
    r"in short: (?:Read with care: )?(?P<n>\d+) of (?P<all>\d+) trust checks passed(?:, (?P<failed>\d+) failed)?(?:, (?P<open>\d+) not known)?\..*",
)
def _short(_seen: Seen, said: Said) -> bool | str:
    return sum(int(said[name] or 0) for name in ("n", "failed", "open")) == int(said["all"])


@claim(
    "row of ratings",
    rf"row of (?:Leaderboard(?: of all judges together)?|Judge \w+ alone): (?P<a>[v-z]) \| (?P<rank>\d+) \| (?P<ranks>[^|]*) \| (?P<bt>{NUMBER}) \| (?P<interval>[^|]*) \| [A-E](?:-[A-E])? \| \S+ \| \S+ \| (?P<w>\d+) \| (?P<t>\d+) \| (?P<l>\d+)(?: \| \S+)*",
)
def _ratings(seen: Seen, said: Said) -> bool | str:
    count, agent = seen.count, said["a"]
    if (float(said["w"]), float(said["t"]), float(said["l"])) != count.record(agent):
        return f"record {count.record(agent)}"
    if wrong := _ranked(seen, said):
        return wrong
    if count.fit.exists:
        if not near(said["bt"], count.fit.ratings[agent], 0.8):
            return f"rated {count.fit.ratings[agent]:.1f}"
        better = sum(rating > count.fit.ratings[agent] + 0.05 for rating in count.fit.ratings.values())
        if int(said["rank"]) != 1 + better:
            return f"rank {1 + better}"
    return True


def _ranked(seen: Seen, said: Said) -> str:
    """Say what is wrong with an agent's range of ranks; empty if nothing is."""
    ranks = [int(own) for own in re.findall(r"\d+", said["ranks"])]
    if (said["interval"] == "-") != (not ranks):
        return "ranks without an interval"
    if ranks and not ranks[0] <= int(said["rank"]) <= ranks[-1]:
        return "a rank outside its interval"
    surely = set(ranks) == {1}
    if surely and seen.undecided:
        return "first for sure, and yet tied"
    return f"{seen.leader} is said to lead" if seen.leader and surely != (seen.leader == said["a"]) else ""


@claim(
    "row of neighbours",
    rf"row of Can neighbours be told apart\?: (?P<a>[v-z]) \| (?P<b>[v-z]) \| (?P<points>[+]?{NUMBER}) \| (?P<l>[+]?{NUMBER})(?: to (?P<h>[+]?{NUMBER}))? \| (?P<p>\S[^|]*) \| (?P<told>yes|no) \| (?P<more>[^|]*) \| (?P<change>.*)",
)
def _pair(seen: Seen, said: Said) -> bool | str:
    ratings = seen.count.fit.ratings
    if seen.count.fit.exists and not near(said["points"], ratings[said["a"]] - ratings[said["b"]], 1.5):
        return "other points"
    low, high = whole(said["l"]), whole(said["h"] or said["l"])
    if not low - 1 <= whole(said["points"]) <= high + 1:
        return "outside its interval"
    if not ((low >= 0) if said["told"] == "yes" else low <= 0):
        return "its interval says otherwise"
    p = math.nan if said["p"] == "-" else float(said["p"].removeprefix("below "))
    if (p > 0.05) if said["told"] == "yes" else p < 0.05:
        return "its p-value says otherwise"
    return said["change"] == "-" or changes_places(seen, said["a"], said["b"], said["change"])


@claim(
    "carriers",
    r"table: (?P<k>\d+) of (?P<n>\d+) quer(?:y|ies) carry the first place",
)
def _carriers(seen: Seen, said: Said) -> bool | str:
    return int(said["n"]) == len(seen.count.units) and int(said["k"]) > 0


@claim("carrier", r"row of \d+ of \d+ quer(?:y|ies) carry the first place: (?P<q>q\d\d|c\d+) \| .*")
def _carrier(seen: Seen, said: Said) -> bool | str:
    return said["q"] in seen.count.units


@claim("cell", rf"cell (?P<a>[v-z]) (?P<b>[v-z]): (?P<v>\d*) of (?P<n>never met|{NUMBER})")
def _cell(seen: Seen, said: Said) -> bool | str:
    won, lost, tied = seen.count.met(said["a"], said["b"])
    if said["n"] == "never met":
        return not won + lost + tied
    return whole(said["n"]) == won + lost + tied and share(said["v"], won + tied / 2, won + lost + tied)


@claim(
    "habit",
    rf"habit (?P<name>[\w ]+)(?P<even>, between equal agents)?: (?P<value>-|[+-]?{NUMBER}%?(?: points)?|\d+ of \d+)(?P<interval> \(.*\))?",
)
def _habit(seen: Seen, said: Said) -> bool | str:
    count, name = seen.count, said["name"]
    if said["even"]:  # what the fit makes of games between equals; where it can be recounted, its check is
        return said["value"] == "-" or name == "Longer wins" or (name == "First shown wins" and count.place_known)
    both = count.in_both_orders
    shares = {
        "Orders agree": (sum(a == b for a, b in both), len(both)),
        "Ties": (sum(not row.winner for row in count.rows), len(count.rows)),
    }
    if name in shares:
        part, all_of = shares[name]
        known = said["value"] != "-"
        return known == (all_of > 0) and (not known or share(said["value"][:-1], part, all_of))
    if name == "Verdicts":
        return whole(said["value"]) == len(count.rows)
    if name == "Circles of three":
        around, triples = map(int, said["value"].split(" of "))
        return (triples, around) == count.circles()
    return False


@claim("row of judges", r"row of Each judge by itself: (?P<j>\w+) \| (?P<n>\d+) \| .*")
def _judge(seen: Seen, said: Said) -> bool | str:
    return bool(int(said["n"]) == sum(row.judge == said["j"] for row in seen.count.rows))


@claim("row of judges' ratings", r"row of What each judge alone would say: (?P<a>[v-z]) \| .*")
def _alone(seen: Seen, said: Said) -> bool | str:
    return said["a"] in seen.count.agents


@claim(
    "row of agreement",
    r"row of Do the judges agree with each other\?: (?P<who>\w+ and \w+|all \(Krippendorff's alpha\)) \| (?P<n>\d+) \| (?P<share>\S+) \| (?P<value>\S+) \| .*",
)
def _agreement(seen: Seen, said: Said) -> bool | str:
    found = between_judges(seen.count)
    if int(said["n"]) != len(found):
        return "other games"
    if said["who"].startswith("all"):
        alpha = krippendorff(found)
        return (said["value"] == "-") == (alpha is None) and (alpha is None or near(said["value"], alpha, 0.006))
    return share(said["share"][:-1], sum(a == b for a, b in found), len(found))


# --- trust checks: the finding by recount, the status by the one rule on the interval that is printed


ONLY = r"(?: By judge only (?P<only>\w+(?:(?:, | and )\w+)*) fails?\.)?"


def _only(seen: Seen, said: Said, of_judge: Callable[[Recount], bool]) -> bool | str:
    """Whether the judges that are said to fail a check alone do fail it."""
    if said["only"] is None:
        return True
    names = re.split(r", | and ", said["only"])
    if said["status"] != "failed" or not set(names) < set(seen.count.judges):
        return "not some of the judges"
    failing = {name: of_judge(Recount([row for row in seen.count.rows if row.judge == name])) for name in names}
    return all(failing.values()) or f"rather {failing}"


@claim(
    "check: ties",
    rf"check (?P<status>\w+): Share of ties: (?P<v>{END})%(?:{BRACKET})? of (?P<n>{NUMBER}) verdicts? are ties; the bar is 50%\.{ONLY}",
)
def _few_ties(seen: Seen, said: Said) -> bool | str:
    rows = seen.count.rows
    right = whole(said["n"]) == len(rows) and near(
        said["v"].split()[-1], 100 * sum(not row.winner for row in rows) / len(rows), 1
    )
    alone = _only(seen, said, lambda own: 2 * sum(not row.winner for row in own.rows) > len(own.rows))
    return first_wrong(right, status_follows(said, 0, 50), alone)


@claim(
    "check: orders",
    rf"check (?P<status>\w+): Agreement of both orders: (?:Both orders of a game agree in (?P<v>{END})%(?:{BRACKET})? of (?P<n>{NUMBER}) games?; the bar is 75%|No game (?:is known to be|was) judged in both orders)\.{ONLY}",
)
def _both(seen: Seen, said: Said) -> bool | str:
    both = seen.count.in_both_orders
    if not both or said["v"] is None:
        return not both and said["v"] is None and said["status"] == "unknown"
    right = whole(said["n"]) == len(both) and near(
        said["v"].split()[-1], 100 * sum(a == b for a, b in both) / len(both), 1
    )
    alone = _only(seen, said, lambda own: fmean(a == b for a, b in own.in_both_orders) < 0.75)
    return first_wrong(right, status_follows(said, 75, 100), alone)


@claim(
    "check: place",
    rf"check (?P<status>\w+): Effect of the place shown: (?:Between equal agents (?P<v>{END})%(?:{BRACKET})? of verdicts with a winner would go to the answer shown first; the bar is 45 to 55%|Nothing tells place from strength: no two agents are known to be shown in both orders)\.{ONLY}",
)
def _place(seen: Seen, said: Said) -> bool | str:
    if said["v"] is None:
        return said["status"] == "unknown" and (not seen.world.placed or not seen.count.place_known)
    by_place = seen.count.by_place
    if by_place is not None and not near(said["v"].split()[-1], 100 / (1 + 10 ** (-by_place.first / 400)), 1.1):
        return "another share"
    return first_wrong(status_follows(said, 45, 55), _only(seen, said, lambda own: own.place_known))


@claim(
    "check: length",
    r"check unknown: Effect of length: No verdict with a winner is on two answers of known and different length\.",
)
def _length(_seen: Seen, _said: Said) -> bool | str:
    return True


@claim(
    "check: circles",
    r"check (?P<status>\w+): Share of circles: Of (?P<n>\d+) sets? of three agents that all met, (?P<a>\d+) surely beat each other in a circle and (?P<b>\d+) surely do not; the bar is 10% circles\.",
)
def _circles(seen: Seen, said: Said) -> bool | str:
    triples, around = seen.count.circles()
    all_of, surely, surely_not = int(said["n"]), int(said["a"]), int(said["b"])
    if surely > around or surely_not > triples - around + (all_of - triples) or all_of < triples:
        return "more than there are"
    low, high = surely / all_of, 1 - surely_not / all_of
    return bool(said["status"] == ("passed" if high <= 0.1 else "failed" if low > 0.1 else "unknown"))


@claim(
    "check: judges",
    rf"check (?P<status>\w+): Agreement among judges: (?:Krippendorff's alpha is (?P<v>{NUMBER})(?:{BRACKET})? on (?P<n>{NUMBER}) games? judged by several; the bar is 0\.4|No game was judged by several)\.",
)
def _several(seen: Seen, said: Said) -> bool | str:
    found = between_judges(seen.count)
    if said["v"] is None:
        return not found or krippendorff(found) is None
    return whole(said["n"]) == len(found) and status_follows(said, 0.4, 1.0)


@claim(
    "check: queries",
    rf"check (?P<status>\w+): Number of queries: (?:Intervals rest on (?P<n>\d+) {NOUN}; the bar for \d+ agents is (?P<bar>\d+)|There are no intervals: nothing shows how much a rating varies)\.",
)
def _queries(seen: Seen, said: Said) -> bool | str:
    if said["n"] is None:
        return seen.queries < 2 and said["status"] == "failed"
    status = "passed" if seen.queries >= seen.fewest else "failed"
    return int(said["n"]) == seen.queries and int(said["bar"]) == seen.fewest and said["status"] == status


@claim(
    "check: determined",
    rf"check (?P<status>\w+): Fit of the ratings: (?:The games do not determine the rating of (?P<who>{NAMES})|Every agent's rating has a maximum|The fit has not converged)\.",
)
def _determined(seen: Seen, said: Said) -> bool | str:
    if said["who"]:
        once = any(sum(seen.count.record(agent)) == 1 for agent in seen.count.agents)
        return said["status"] == "failed" and (once or not seen.count.fit.exists or not seen.count.linked)
    return said["status"] == "passed" and seen.count.fit.exists


@claim(
    "check: robust, count",
    rf"check (?P<status>\w+): Result without a few queries: Without (?P<k>\d+) of (?P<n>{NUMBER}) {NOUN} (?P<a>[v-z]) would be rated highest\. The bar is more than (?P<bar>\d+) of {NUMBER} \w+\.",
)
def _robust(seen: Seen, said: Said) -> bool | str:
    unit = "query" if said["unit"].startswith("q") else "game"
    highest, number = seen.count.fit.highest(), int(said["k"])
    if number < 1 or said["a"] in highest:
        return "it is already"
    if said["status"] != ("passed" if number > int(said["bar"]) else "failed"):
        return "another status"
    return seen.count.without(number, unit, min(highest), said["a"], highest=True)


@claim(
    "check: robust",
    rf"check (?P<status>\w+): Result without a few queries: (?P<what>.*?)[.?] The bar is more than (?P<bar>\d+) of (?P<n>{NUMBER}) \w+\.",
)
def _robust_otherwise(seen: Seen, said: Said) -> bool | str:
    match = re.fullmatch(
        rf"(?P<a>[v-z]) is rated highest also without the (?P<k>\d+) {NOUN} that weighs? most for it", said["what"]
    )
    if match is None:
        return bool(said["status"] == "unknown")
    enough = int(match["k"]) > int(said["bar"])
    # Without a maximum of the likelihood who is first hangs on the prior, which the recount has none of.
    first = not seen.count.fit.exists or match["a"] in seen.count.fit.highest()
    return first and said["status"] == ("passed" if enough else "unknown")


@claim(
    "check: single judges",
    rf"check (?P<status>\w+): Result without any one judge: (?:{FOUND}{PAIRS}|(?P<why>[^;]*)[.?])",
)
def _single_judges(seen: Seen, said: Said) -> bool | str:
    if said["why"]:
        return bool(said["status"] == "unknown")
    if said["status"] == "passed" and said["top"]:
        return "passed although the conclusion changes"
    return of_single_judges(seen, said)


@claim(
    "row without one judge",
    rf"row of Without one of \d+ judges: (?P<a>[v-z]) \| (?P<b>[v-z]) \| (?P<judge>\w+) \| (?P<points>[+]?{NUMBER}) \| (?P<ends>[^|]*) \| (?P<p>[^|]*) \| (?P<apart>yes|no) \| [^|]*",
)
def _row_without(seen: Seen, said: Said) -> bool | str:
    rest = without_judge(seen, said["judge"]).fit
    gap = rest.ratings[said["a"]] - rest.ratings[said["b"]]
    return not rest.exists or near(said["points"].replace("+", ""), gap, 1.5) or f"rather {gap:.0f}"


@claim(
    "row of other judges",
    rf"row of For other judges of this kind: (?P<a>[v-z]) \| (?P<b>[v-z]) \| (?P<points>[+]?{NUMBER}) \| (?P<ends>[^|]*) \| .*",
)
def _row_of_others(seen: Seen, said: Said) -> bool | str:
    gap = seen.count.fit.ratings[said["a"]] - seen.count.fit.ratings[said["b"]]
    return len(seen.count.judges) > 2 and near(said["points"].replace("+", ""), gap, 1.5)


always(
    "tables of judges",
    r"table: (?:Without one of \d+ judges|For other judges of this kind)",
    r"Rough: fewer than 5 judges say little of how judges differ\.",
    r"[v-z] and [v-z]: more queries will not help, since .*\.",
    rf"\d+ judges are worth {END}(?:{BRACKET})? independent votes, by how often they err together; the majority of the others is taken for the truth\.",
)


always(
    "check: not of verdicts",
    r"check passed: Share of judgments made: (?P<n>[\d,]+) of (?P=n) wanted judgments are there \(100%\); the bar is 80% of each stage\.",
    r"check unknown: Agreement of people with the judge: No person judged anything that the judge did\.",
)
