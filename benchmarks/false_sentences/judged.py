"""What is said of whole tournaments: gates, queries, audits, trust checks, and scores of which judgments are missing."""

# ruff: noqa: E501 - a pattern stands on one line, as its sentence does

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean, pstdev

from msgspec import Struct, field

from benchmarks.false_sentences import calibrated, claims, voters, worlds
from benchmarks.false_sentences.sentences import (
    BRACKET,
    END,
    NUMBER,
    Finding,
    Said,
    Sentences,
    is_figure,
    near,
    rounds_to,
    status_follows,
    whole,
)
from benchmarks.false_sentences.tournaments import ITEMS, SCORES, World
from benchmarks.false_sentences.worlds import Recount

MARGIN = 0.05
TITLES: Mapping[str, str] = {
    "pairwise": "Win rate",
    "criteria": "Mean grade",
    "exam": "EXAM-Cover",
    "nuggets": "Nuggets V strict",
    "retrieval": f"P@{ITEMS}",
}
NAMED: Mapping[str, str] = {
    "pairwise": "games",
    "retrieval": "labels of documents",
    "criteria": "criteria",
    "exam": "exam",
    "nuggets": "nuggets",
}
"""Names of the scores in trust checks."""
TITLE = r"(?P<title>Win rate|Mean grade|EXAM-Cover|Nuggets V strict|P@\d)"
CHEATS = ("constant", "padded")


class Scores:
    """Every score of a tournament, recounted from the judge's script."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.games = Recount(world.rows())

    def of(self, score: str, agent: str) -> dict[str, float]:
        found = {}
        for query in self.world.names:
            parts = self.world.parts(score, query, agent)
            known = [part for part in parts if part is not None]
            if score == "retrieval" and len(known) < len(parts):
                continue  # nobody knows a measure of a ranking that lacks a label
            if known:
                found[query] = fmean(known) * (2 if score == "criteria" else 1)
        return found

    def between(self, score: str, new: str, old: str) -> dict[str, list[tuple[float, float]]]:
        """Both agents' scores on each query that both have, by independent unit; for games, the points of each game."""
        found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        if score == "pairwise":
            for game in self.games.games:
                if {game.one, game.other} == {new, old}:
                    points = game.score if game.one == new else 1 - game.score
                    found[self.world.conversation(game.query)].append((points, 1 - points))
            return dict(found)
        one, other = self.of(score, new), self.of(score, old)
        for query in self.world.names:
            if query in one and query in other:
                found[self.world.conversation(query)].append((one[query], other[query]))
        return dict(found)

    def ends(self, score: str, new: str, old: str) -> tuple[float, float]:
        """Lowest and highest possible difference of new and old, whatever the missing judgments are."""
        units: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for query in self.world.names:
            units[self.world.conversation(query)].append(self._ends(score, query, new, old))
        least, most = (fmean(fmean(two[at] for two in own) for own in units.values()) for at in (0, 1))
        return least, most

    def _ends(self, score: str, query: str, new: str, old: str) -> tuple[float, float]:
        if score != "pairwise":
            (low, high), (old_low, old_high) = (
                [
                    fmean(default if part is None else part for part in self.world.parts(score, query, agent))
                    for default in (0, 1)
                ]
                for agent in (new, old)
            )
            scale = 2 if score == "criteria" else 1
            return scale * (low - old_high), scale * (high - old_low)
        there = sum(row.query == query and {row.first, row.second} == {new, old} for row in self.games.rows)
        share = there / (2 * len(self.world.judges))
        points = [
            game.score if game.one == new else 1 - game.score
            for game in self.games.games
            if game.query == query and {game.one, game.other} == {new, old}
        ]
        won = share * fmean(points) if points else 0.0
        return won - 0.5, won + 1 - share - 0.5

    def missing(self, score: str, agent: str) -> tuple[int, int]:
        if score == "pairwise":
            others, orders = len(self.world.agents) - 1, 2 * len(self.world.judges)
            wanted = others * orders * len(self.world.names)
            return wanted - sum(agent in (row.first, row.second) for row in self.games.rows), wanted
        parts = [part for query in self.world.names for part in self.world.parts(score, query, agent)]
        return sum(part is None for part in parts), len(parts)

    def wanted(self) -> tuple[int, int]:
        world = self.world
        games = len(world.judges) * 2 * len(list(combinations(world.agents, 2))) * len(world.names)
        missing, wanted = games - len(self.games.rows), games
        for score in world.scores:
            for agent in world.agents:
                own = self.missing(score, agent)
                at_once = ITEMS if score == "nuggets" else 1
                missing, wanted = missing + own[0] // at_once, wanted + own[1] // at_once
        wanted += 2 * len(world.names) * ("nuggets" in world.scores)  # the lists, and how important their nuggets are
        wanted += 2 * len(CHEATS) * len(world.names) * world.audited
        return wanted - missing, wanted

    def cheat(self, cheat: str) -> list[float]:
        agents = self.world.agents
        met = [(query, agents[at % len(agents)]) for at, query in enumerate(self.world.names)]
        return [0.0 if self.world.is_seen(cheat, query, agent) else 0.5 for query, agent in met]


class Seen(Struct):
    """One tournament, and what was read of it so far.

    Attributes:
        ratings, people: of which sentences on ratings, and on people, are.
        pair: the agents that a gate holds against each other.
        verdicts: of that gate by score: verdict and ends of the interval.
        excused: scores of which a remark says why nothing may be concluded.
        headline: of the gate.
        checks: status of every trust check, by name.
        decided: every gate's verdict with its score and agents.
    """

    world: World
    count: Scores
    ratings: claims.Seen
    people: calibrated.Seen
    pair: tuple[str, str] = ("", "")
    verdicts: dict[str, tuple[str, float | None, float | None]] = field(default_factory=dict)
    excused: set[str] = field(default_factory=set)
    headline: str = ""
    checks: dict[str, str] = field(default_factory=dict)
    decided: list[tuple[str, str, str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, world: World) -> Seen:
        count = Scores(world)
        return cls(world, count, _ratings(world, count.games), _people(world, count.games))


def _clusters(world: World) -> dict[str, str]:
    return {query: world.conversation(query) for query in world.names if world.turns > 1}


def _ratings(world: World, games: Recount) -> claims.Seen:
    known = worlds.World(world.kind, world.strengths, len(world.names))
    return claims.Seen(known, Recount(games.rows, clusters=_clusters(world)))


def _people(world: World, games: Recount) -> calibrated.Seen:
    said = [
        voters.Vote((row.query, *sorted((row.first, row.second))), row.judge, _value(row.winner, row.first, row.second), row.first > row.second)
        for row in games.rows
    ]  # fmt: skip
    judges = dict.fromkeys(world.judges, 0.0)
    known = voters.World(world.kind, 0.0, judges, len(world.names))
    return calibrated.Seen(known, voters.Recount(said, world.votes(), verdicts=True, clusters=_clusters(world)))


def _value(winner: str, first: str, second: str) -> int:
    return 0 if not winner else 1 if winner == min(first, second) else -1


TOURNAMENTS: Sentences[Seen] = Sentences()
claim, always = TOURNAMENTS.claim, TOURNAMENTS.always


def read(seen: Seen, lines: Iterable[str]) -> Iterator[Finding]:
    """Check each line: first as a sentence about tournaments, then about people, then about games."""
    for line in lines:
        if match := re.match(r"check (\w+): ([^:]+?):", line):
            seen.checks[match[2]] = match[1]
        by_query = line.replace("conversations", "queries").replace("conversation", "query")
        (found,) = TOURNAMENTS.read(seen, [line])
        if found.kind == "unknown":
            (found,) = calibrated.CALIBRATED.read(seen.people, [by_query])
        if found.kind == "unknown":
            yield from claims.read(seen.ratings, [by_query])
        else:
            yield found


# --- a new agent against an old one


@claim(
    "gate: headline",
    r"(?:(?P<standing>Passed|Failed): (?P<a>[v-z]) is (?P<verdict>better|not worse|worse) than (?P<b>[v-z])\.|Undecided: it is not shown whether (?P<c>[v-z]) is worse than (?P<d>[v-z])\.)",
)
def _headline(seen: Seen, said: Said) -> bool | str:
    seen.headline = said["verdict"] or "undecided"
    passed = seen.headline in ("better", "not worse")
    right = (said["a"] or said["c"], said["b"] or said["d"]) == seen.pair
    return right and (said["standing"] is None or (said["standing"] == "Passed") == passed)


_EVEN = ", 0.5 is even"
_SHARED = re.compile(r"((?:[\w@ -]+, )*[\w@ -]+ and [\w@ -]+): (.*)", re.S)


def each_score(lines: Iterable[str]) -> Iterator[str]:
    """A gate's lines, with a line for each score of those that share a sentence."""
    for line in (line.replace(f"Win rate{_EVEN}", "Win rate") for line in lines):
        shared = _SHARED.fullmatch(line)
        titles = re.split(r", | and ", shared[1]) if shared else []
        known = titles and all(re.fullmatch(TITLE, title) for title in titles)
        yield from (f"{title}: {shared[2]}" for title in titles) if shared and known else (line,)


def _units(seen: Seen, score: str) -> tuple[float, float, int] | None:
    found = seen.count.between(score, *seen.pair)
    if not found:
        return None
    new, old = (fmean(fmean(two[at] for two in own) for own in found.values()) for at in (0, 1))
    return new, old, len(found)


def _score(title: str) -> str:
    return next(score for score, name in TITLES.items() if name == title)


@claim(
    "gate: row",
    rf"row of : {TITLE} \| (?P<new>\S+) \| (?P<old>\S+) \| (?P<d>\S+) \| (?P<ends>[^|]+) \| (?P<n>\d+) \| (?P<missing>\d+) \| (?P<verdict>[\w ]+)",
)
def _row(seen: Seen, said: Said) -> bool | str:
    score, found = _score(said["title"]), _units(seen, _score(said["title"]))
    low, high = _ends(said["ends"])
    seen.verdicts[said["title"]] = (said["verdict"], low, high)
    seen.decided.append((score, *seen.pair, said["verdict"]))
    if found is None:
        return bool(said["new"] == "-" and said["verdict"] == "undecided")
    units = len({seen.world.conversation(query) for query in seen.world.names})
    right_old = said["old"] == "-" if score == "pairwise" else rounds_to(said["old"], found[1])
    if not (rounds_to(said["new"], found[0]) and right_old):
        return f"rather {found[0]:.3f} and {found[1]:.3f}"
    if not rounds_to(said["d"], found[0] - found[1] if score != "pairwise" else found[0] - 0.5):
        return "another difference"
    if (int(said["n"]), int(said["missing"])) != (found[2], units - found[2]):
        return f"on {found[2]}"
    least, most = seen.count.ends(score, *seen.pair)
    bar = 0.0 if said["verdict"] == "better" else -MARGIN
    if (said["verdict"] in ("better", "not worse") and least < bar) or (said["verdict"] == "worse" and most > 0):
        return f"what is missing could turn it: {least:.3f} to {most:.3f}"
    return _follows(said["verdict"], low, high)


def _follows(verdict: str, low: float | None, high: float | None) -> bool | str:
    if verdict == "undecided":
        return True
    if low is None or high is None:
        return "without an interval"
    if verdict == "worse":
        return high < 0.001 or "its interval allows otherwise"
    return low > (0 if verdict == "better" else -MARGIN) - 0.001 or "its interval allows otherwise"


def _ends(said: str) -> tuple[float | None, float | None]:
    found = [float(own.replace(",", "")) for own in re.findall(r"[+-]?[\d,]*\.?\d+", said)]
    return (found[0], found[-1]) if found else (None, None)


@claim(
    "gate: games",
    rf"Win rate: (?P<a>[v-z]) won (?P<v>{NUMBER}) of the points against (?P<b>[v-z]) on (?P<n>\d+) (?P<unit>quer(?:y|ies)|conversations?)(?: \((?P<level>[\d.]+)% interval (?P<ends>[^)]*)\))?, a tie counting half\. Above 0\.45 it is not worse, above 0\.5 better\.",
)
def _games(seen: Seen, said: Said) -> bool | str:
    found = _units(seen, "pairwise")
    right = (said["a"], said["b"]) == seen.pair and found is not None and found[2] == int(said["n"])
    right = right and said["unit"].startswith("conv") == (seen.world.turns > 1)
    return right and found is not None and rounds_to(said["v"], found[0])


@claim(
    "gate: score",
    rf"{TITLE}: (?P<a>[v-z]) scores (?P<new>{NUMBER}) and (?P<b>[v-z]) (?P<old>{NUMBER}) on (?P<n>\d+) (?:quer(?:y|ies)|conversations?); difference (?P<d>[+]?{NUMBER})(?:, 95% interval .*)?, margin 0\.05\.",
)
def _scored(seen: Seen, said: Said) -> bool | str:
    found = _units(seen, _score(said["title"]))
    right = (said["a"], said["b"]) == seen.pair and found is not None and found[2] == int(said["n"])
    return right and found is not None and rounds_to(said["new"], found[0]) and rounds_to(said["old"], found[1])


always(
    "gate: more needed",
    rf"{TITLE}: undecided\.(?: [^.]* judge (?:it|them) first\.)? About .* would decide it with a probability of 80%\.",
)


@claim(
    "gate: why undecided",
    rf"{TITLE}: (?:undecided(?:\.|, ).*|.* The place shown may decide.*|in [\d,]+ of the .*|[v-z] was shown (?:first|last) in .*|all verdicts on answers that differ are ties.*|every score is the same.*|nothing is known of .*|no game between .*|no (?:query|conversation) has .*)",
)
def _why(seen: Seen, said: Said) -> bool | str:
    seen.excused.add(said["title"])
    return seen.verdicts.get(said["title"], ("undecided", None, None))[0] == "undecided"


@claim("gate: missing units", rf"{TITLE}: (?P<n>[\d,]+) (?:quer(?:y|ies)|conversations?) (?:is|are) missing\.")
def _missing_units(seen: Seen, said: Said) -> bool | str:
    found = _units(seen, _score(said["title"]))
    units = len({seen.world.conversation(query) for query in seen.world.names})
    return whole(said["n"]) == units - (found[2] if found else 0)


@claim(
    "gate: missing turns",
    rf"{TITLE}: (?P<n>[\d,]+) turns? of (?P<of>[\d,]+) conversations? missing; what is there counts for the whole conversation\.",
)
def _missing_turns(seen: Seen, said: Said) -> bool | str:
    score = _score(said["title"])
    turns: dict[str, set[str]] = defaultdict(set)
    if score == "pairwise":
        for game in seen.count.games.games:
            if {game.one, game.other} == set(seen.pair):
                turns[seen.world.conversation(game.query)].add(game.query)
    else:
        new, old = (seen.count.of(score, agent) for agent in seen.pair)
        for query in new.keys() & old.keys():
            turns[seen.world.conversation(query)].add(query)
    gone = [seen.world.turns - len(own) for own in turns.values() if len(own) < seen.world.turns]
    return (whole(said["n"]), whole(said["of"])) == (sum(gone), len(gone))


@claim(
    "gate: verdicts there",
    r"Win rate: (?P<a>[\d,]+) of (?P<b>[\d,]+) verdicts? between the two are there; (?P<c>[\d,]+) failed\.",
)
def _there(seen: Seen, said: Said) -> bool | str:
    rows = sum({row.first, row.second} == set(seen.pair) for row in seen.count.games.rows)
    wanted = 2 * len(seen.world.judges) * len(seen.world.names)
    return (whole(said["a"]), whole(said["b"]), whole(said["c"])) == (rows, wanted, wanted - rows)


@claim(
    "gate: missing judgments",
    rf"{TITLE}: judgments that are missing: (?P<a>[\d,]+) of (?P<of_a>[\d,]+) of (?P<new>[v-z]) and (?P<b>[\d,]+) of (?P<of_b>[\d,]+) of (?P<old>[v-z])(?:, more of (?P<more>[v-z]) by more than chance \(p (?P<p>[^)]*)\))?\.",
)
def _lacking(seen: Seen, said: Said) -> bool | str:
    score = _score(said["title"])
    found = {agent: seen.count.missing(score, agent) for agent in seen.pair}
    told = {said["new"]: (whole(said["a"]), whole(said["of_a"])), said["old"]: (whole(said["b"]), whole(said["of_b"]))}
    if told != found:
        return f"rather {found}"
    return said["more"] is None or (_is_more(found, said["more"]) and _small(said["p"]))


def _is_more(found: Mapping[str, tuple[int, int]], agent: str) -> bool:
    shares = {name: missing / wanted for name, (missing, wanted) in found.items()}
    return all(shares[agent] > share for name, share in shares.items() if name != agent)


def _small(p: str) -> bool:
    return float(p.removeprefix("below ")) <= 0.05


@claim(
    "gate: judges",
    r"Win rate: (?:(?P<fixed>intervals hold the judge fixed: they are for other queries, not for other judges)|the verdict is the same without any 1 of (?P<same>\d+) judges|the verdict is another without 1 of (?P<other>\d+) judges: .*|no interval for other judges: (?P<few>\d+) judges do not show how judges differ|for other judges of this kind the interval is .*|of its variance, judges make .*)\.",
)
def _of_judges(seen: Seen, said: Said) -> bool | str:
    judges = {row.judge for row in seen.count.games.rows if {row.first, row.second} == set(seen.pair)}
    numbers = [int(said[name]) for name in ("same", "other", "few") if said[name]]
    if numbers:
        return numbers == [len(judges)]
    return len(judges) == 1 if said["fixed"] else len(judges) > 2


@claim("gate: answers", r"Answers of (?P<agent>[v-z](?: and [v-z])?): (?P<n>[\d,]+)(?: each)?, from a file\.")
def _of_answers(seen: Seen, said: Said) -> bool | str:
    return whole(said["n"]) == len(seen.world.names) or f"rather {len(seen.world.names)}"


always(
    "gate: looks",
    r"Win rate: look \d+ of a gate that looks after each batch; its interval is at the level left for it\.",
    r"Win rate: decided after 50% of the (?:queries|conversations)\. A difference that ends a gate early is likely smaller in truth\.",
)
always(
    "groups",
    r"check passed: Result by group of queries: [v-z] leads, and no agent beats it by more than chance on any of \d+ groups? of queries by [\w, ]+\.(?: Too few queries to tell: .*)?",
    r"check unknown: Result by group of queries: No group of queries by .* has 10 queries\..*",
)


@claim(
    "row of a group",
    r"row of The leader by group of queries: \w+=\w+ \| [v-z] \| (?P<n>\d+) \| (?P<v>\S+)% \| (?P<ends>[^|]+) \| \S+% \| \S+% \| (?P<verdict>[\w ]+)",
)
def _of_group(seen: Seen, said: Said) -> bool | str:
    low, high = _ends(said["ends"])
    if low is None or high is None:
        return said["verdict"] == "too few to tell" and int(said["n"]) < 10
    right = low <= float(said["v"]) <= high and 10 <= int(said["n"]) <= len(seen.world.names)
    verdict = "worse" if high < 50 else "better" if low > 50 else "undecided"
    return right and (verdict == said["verdict"] or 50 in (low, high))


always(
    "groups: how",
    r"All intervals hold together \(Holm, over the groups of [\w, ]+\); groups of fewer than 10 (?:queries|conversations) are not tested\.",
    r"Only queries where \w+=\w+: one of \d+ groups\. If its results made you choose it, its intervals are too narrow; '--by \w+' corrects for that\.",
    r"[v-z] against each agent on each group\. The worst of several groups looks worse than it is\.",
)
always("gate: one order", r"Win rate: judged in one order only, so a judge's favour for a place may show\.")


def finish_gate(seen: Seen) -> Iterator[Finding]:
    order = ("worse", "undecided", "not worse", "better")
    worst = min((own[0] for own in seen.verdicts.values()), key=order.index)
    yield Finding("gate: headline and rows", seen.headline, "" if worst == seen.headline else f"a score is {worst}")
    for title, (verdict, low, high) in seen.verdicts.items():
        if verdict != "undecided":
            continue
        knows = low is not None and high is not None and (low > -MARGIN + 0.001 or high < -0.001)
        wrong = "its interval decides and nothing says why not" if knows and title not in seen.excused else ""
        yield Finding("gate: undecided", title, wrong)
    seen.verdicts, seen.excused, seen.headline = {}, set(), ""


# --- queries


def _shares(seen: Seen, query: str | None, *, other: bool = False) -> list[float]:
    found = []
    for agent in seen.world.agents:
        points = [
            game.score if game.one == agent else 1 - game.score
            for game in seen.count.games.games
            if agent in (game.one, game.other) and (game.query != query if other else game.query == query)
        ]
        found.append(fmean(points) if points else float("nan"))
    return found


def _correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    both = [(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(a + b)]
    if len(both) < 3:
        return None
    x, y = zip(*both, strict=True)
    size = pstdev(x) * pstdev(y)
    return fmean((a - fmean(x)) * (b - fmean(y)) for a, b in both) / size if size > 1e-12 else None


@claim(
    "queries: row",
    r"row of : (?P<q>q\d\d) \| What is q\d\d\? \| (?P<separation>\S+) \| (?P<spread>\S+) \| (?P<agreement>\S+) \|(?: [^|]* \|)? (?P<games>\d+) \| (?P<decided>\S+?)%? \| (?P<orders>\S+?)%? \| (?P<judges>\S+?)%? \| (?P<there>\d+) of (?P<wanted>\d+)(?: \| .*)?",
)
def _query(seen: Seen, said: Said) -> bool | str:
    games = [game for game in seen.count.games.games if game.query == said["q"]]
    rows = [row for row in seen.count.games.rows if row.query == said["q"]]
    wanted = len(list(combinations(seen.world.agents, 2))) * 2 * len(seen.world.judges)
    if (int(said["games"]), int(said["there"]), int(said["wanted"])) != (len(games), len(rows), wanted):
        return "other games"
    here = _shares(seen, said["q"])
    known = [value for value in here if not math.isnan(value)]
    spread = pstdev(known) if known else None
    agreement = _correlation(here, _shares(seen, said["q"], other=True)) if known else None
    decided = sum(game.score != 0.5 for game in games) / len(games) if games else None
    both = [own for *key, own in seen.count.games.folded if key[0] == said["q"] and len(own) == 2]
    differ = sum(own[True] != own[False] for own in both) / len(both) if both else None
    separation = 0.0 if spread == 0 else None if spread is None or agreement is None else spread * agreement
    pairs: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for game in games:
        pairs[game.one, game.other].append(game.score)
    several = [len(set(scores)) > 1 for scores in pairs.values() if len(scores) > 1]
    return (
        is_figure(said["separation"], separation)
        and is_figure(said["judges"], fmean(several) if several else None, 100)
        and is_figure(said["spread"], spread)
        and is_figure(said["agreement"], agreement)
        and is_figure(said["decided"], decided, 100)
        and is_figure(said["orders"], differ, 100)
    )


@claim(
    "queries: missing",
    r"(?P<n>[\d,]+) verdicts? on (?P<q>[\d,]+) quer(?:y|ies) are missing; figures use what is there\.",
)
def _missing_verdicts(seen: Seen, said: Said) -> bool | str:
    wanted = len(list(combinations(seen.world.agents, 2))) * 2 * len(seen.world.judges)
    lacking = [wanted - sum(row.query == query for row in seen.count.games.rows) for query in seen.world.names]
    return (whole(said["n"]), whole(said["q"])) == (sum(lacking), sum(own > 0 for own in lacking))


always(
    "queries: by chance",  # which queries separate, or turn round: beyond chance alone
    r"[^.:]*(?:separates?|turns?|stands? out) [^|]*\.",
)
always("explanation", r"explained: .*", r"table: (?!What is taken for what).*")


# --- cheats


@claim(
    "row of a cheat",
    r"row of Points given away to cheats: j \| (?P<cheat>\w+) \| (?P<n>\d+) \| (?P<missing>\d+) \| (?P<points>\S+)% \| [^|]* \| (?P<fair>\d+)% \| (?P<given>\S+)% \| (?P<ends>[^|]*) \| (?P<rank>.*)",
)
def _cheat(seen: Seen, said: Said) -> bool | str:
    points, fair = fmean(seen.count.cheat(said["cheat"])), 0.5 if said["cheat"] == "padded" else 0.0
    right = (int(said["n"]), said["missing"]) == (seen.world.queries, "0")
    right = right and rounds_to(said["points"], points, 100) and near(said["fair"], 100 * fair, 0.51)
    if not (right and rounds_to(said["given"], points - fair, 100)):
        return f"rather {points}"
    match = re.fullmatch(r"(\d+) of (\d+)(?: \((\d+) to (\d+)\))?", said["rank"])
    if match is None:
        return bool(said["rank"] == "-")
    return int(match[2]) == len(seen.world.agents) + 1 and int(match[3] or match[1]) <= int(match[1]) <= int(
        match[4] or match[1]
    )


@claim(
    "check: cheats",
    rf"check (?P<status>\w+): Cheats judged by j: It gives (?P<v>{END})%(?:{BRACKET})? of points away to '(?P<worst>\w+)'(?:, and is fooled by (?P<fooled>[\w, ]+)|; not known for (?P<unknown>[\w, ]+))?; the bar is 15%\.",
)
def _fooled(seen: Seen, said: Said) -> bool | str:
    given = {name: fmean(seen.count.cheat(name)) - (0.5 if name == "padded" else 0.0) for name in CHEATS}
    if given[said["worst"]] != max(given.values()) or not rounds_to(said["v"], max(given.values()), 100):
        return f"rather {given}"
    expected = "failed" if said["fooled"] else "unknown" if said["unknown"] else "passed"
    if said["status"] != expected:
        return "another status"
    return status_follows(said, -100, 15)


# --- checks, and what is missing


@claim(
    "check: judged",
    rf"check (?P<status>\w+): Share of judgments made: (?:(?P<a>{NUMBER}) of (?P<b>{NUMBER}) wanted judgments are there \((?P<v>\S+)%\)|(?P<kind>Judge|Agent) (?P<name>\w) has (?P<c>{NUMBER}) of (?P<d>{NUMBER}) wanted verdicts \(\S+%\), and ratings need 80% of every judge's and agent's); the bar is 80% of each stage\.",
)
def _judged(seen: Seen, said: Said) -> bool | str:
    if said["a"] is None:
        return said["status"] == "failed" and _short(seen, said)
    there, wanted = seen.count.wanted()
    shares = [1 - sum(own[0] for own in found) / sum(own[1] for own in found) for found in _by_stage(seen)]
    if (whole(said["a"]), whole(said["b"])) != (there, wanted):
        return f"rather {there} of {wanted}"
    return bool(said["status"] == ("passed" if min(shares) >= 0.8 else "failed"))


def _by_stage(seen: Seen) -> Iterator[list[tuple[int, int]]]:
    for score in ("pairwise", *sorted(seen.world.scores)):
        yield [seen.count.missing(score, agent) for agent in seen.world.agents]


def _short(seen: Seen, said: Said) -> bool | str:
    if said["kind"].lower() == "judge":
        there = sum(row.judge == said["name"] for row in seen.count.games.rows)
        wanted = 2 * len(list(combinations(seen.world.agents, 2))) * len(seen.world.names)
    else:
        missing, wanted = seen.count.missing("pairwise", said["name"])
        there = wanted - missing
    return (whole(said["c"]), whole(said["d"])) == (there, wanted) and there < 0.8 * wanted


@claim(
    "conclusion: too little",
    rf"(?:Nothing to conclude yet: (?:Not enough verdicts to rate|Too little is judged)\. |Below ratings\.min_coverage: )?(?P<kind>[Jj]udge|[Aa]gent) (?P<name>\w) has (?P<c>{NUMBER}) of (?P<d>{NUMBER}) wanted verdicts \(\S+%\), and ratings need 80% of every judge's and agent's(?:: (?:run again|'ragleague failures')[^.]*, or see them with 'ragleague leaderboard --below-coverage'\.|\. (?:Run again|'ragleague failures')[^.]*\.|\.)",
)
def _too_little(seen: Seen, said: Said) -> bool | str:
    return _short(seen, said)


always("check: answered", r"check passed: Share of queries answered: All did\.")
always("check: answered", r"check passed: Share of queries with games: All have\.")

_MISSING = r"(?P<a>[\d,]+) of (?P<b>[\d,]+) of (?P<agent>[v-z]), (?P<c>[\d,]+) of (?P<d>[\d,]+) of all others \(p (?P<p>[^)]*)\)"


@claim(
    "check: even",
    r"check (?P<status>\w+): Spread of gaps over agents: (?:No agent lacks a larger share than the others by more than chance|Missing of (?P<who>.*?)(?P<few>; a few queries may be why)?)\. The bar is 5%, after Holm's correction\.",
)
def _even(seen: Seen, said: Said) -> bool | str:
    if said["who"] is None:
        return bool(said["status"] == "passed")
    if said["status"] != ("unknown" if said["few"] else "failed"):
        return "another status"
    for part in said["who"].split("; "):
        name, _, rest = part.partition(": ")
        score = next(score for score, own in NAMED.items() if own == name)
        match = re.fullmatch(_MISSING, rest)
        if match is None:
            return f"not understood: {part}"
        found = {agent: seen.count.missing(score, agent) for agent in seen.world.agents}
        own = found.pop(match["agent"])
        others = tuple(sum(each) for each in zip(*found.values(), strict=True))
        if tuple(whole(match[key]) for key in "abcd") != (*own, *others):
            return f"rather {own} beside {others}"
        if own[0] * others[1] <= others[0] * own[1] or (said["status"] == "failed" and not _small(match["p"])):
            return "not more"
    return True


@claim(
    "missing",
    rf"(?P<a>{NUMBER}) of (?P<b>{NUMBER}) judgments are missing: (?P<c>{NUMBER}) failed, 0 not made yet\. Figures use what is there\. .*",
)
def _missing(seen: Seen, said: Said) -> bool | str:
    there, wanted = seen.count.wanted()
    return (whole(said["a"]), whole(said["b"]), whole(said["c"])) == (wanted - there, wanted, wanted - there)


_IN_SHORT = r"(\d+) of (\d+) trust checks passed(?:, (\d+) failed)?(?:, (\d+) not known)?\.(?: Failed: ([^.]*)\.)?(?: Not known: ([^.]*)\.)?"
always("checks in short", _IN_SHORT)


def finish_checks(seen: Seen, lines: Iterable[str]) -> Iterator[Finding]:
    for line in lines:
        if match := re.fullmatch(_IN_SHORT, line):
            names = {
                status: sorted(name[0].lower() + name[1:] for name, own in seen.checks.items() if own == status)
                for status in ("passed", "failed", "unknown")
            }
            told = [sorted((match[at] or "").split("; ")) if match[at] else [] for at in (5, 6)]
            counts = [len(names["passed"]), len(seen.checks), len(names["failed"]), len(names["unknown"])]
            right = [int(match[at] or 0) for at in range(1, 5)] == counts
            right = right and told == [names["failed"], names["unknown"]]
            yield Finding("checks in short, counted", line, "" if right else f"rather {names}")


always("group", r"Only queries with kind=(?:odd|even)\.")
always("not trusted", r".* It is not shown to agree with people more than chance would\. So its games name no leader\.")


# --- scores beside each other


_WHO = r"[A-Za-z][\w@ ',-]*?"


@claim(
    "compare: orders",
    rf"(?:Whether (?P<open>{_WHO}) agrees? with the games is open|(?P<agrees>{_WHO}) agrees? with the games(?P<partly> where both are sure, but most is open)?|(?P<departs>{_WHO}) disagrees? with the games about (?P<about>.*)): (?:it|they) orders? (?P<alike>{NUMBER}) of (?P<pairs>{NUMBER}) pairs? of agents as the games do, proves? (?P<proven>none|{NUMBER}) and reverses? (?P<turned>none|{NUMBER})\.",
)
def _orders(seen: Seen, said: Said) -> bool | str:
    alike, pairs = whole(said["alike"]), whole(said["pairs"])
    proven, turned = (0 if said[key] == "none" else whole(said[key]) for key in ("proven", "turned"))
    words = {"Mean grades": "criteria", "EXAM-Cover": "exam", "Nuggets": "nuggets", f"P@{ITEMS}": "retrieval"}
    who = said["open"] or said["agrees"] or said["departs"]
    score = words.get(who) or words.get(who.capitalize())
    told = "departs" if turned else "agrees" if proven else "open"
    if said[told] is None or proven > alike or alike + turned > pairs:
        return f"{proven} proven and {turned} reversed"
    if told == "agrees" and (said["partly"] is not None) != (2 * proven <= pairs):
        return f"{proven} of {pairs} proven"
    if score is None:
        return True  # people's votes
    ratings = seen.ratings.count.fit.ratings
    mean = {
        agent: fmean(seen.count.of(score, agent).values()) for agent in seen.world.agents if seen.count.of(score, agent)
    }
    every = list(combinations(seen.world.agents, 2))
    if len(mean) == len(seen.world.agents) and pairs == len(every):
        right = sum((mean[one] - mean[other]) * (ratings[one] - ratings[other]) > 1e-9 for one, other in every)
        if right != alike:
            return f"rather {right}: {mean}, {ratings}"
    for agent, here, others in re.findall(
        r"\b([v-z]) \((above|below) ([^()]*), (?:above|below) in the games\)", said["about"] or ""
    ):
        for other in re.findall(r"\b[v-z]\b", others):
            sign = 1 if here == "above" else -1
            if sign * (mean[agent] - mean[other]) <= 0 or sign * (ratings[agent] - ratings[other]) >= 0:
                return f"{who}: {mean}, {ratings}"
    return True


always(
    "compare: nothing to hold against the games",
    r"Only the games score these agents\. Exam questions, nuggets, criteria or labels would show whether other scores agree\.",
    r"Too few (?:queries|conversations) to hold .* against the games\.",
)


@claim(
    "compare: no games",
    r"(?P<what>Too few games are judged to rate|No games rate) these agents, so the scores are compared with each other alone\.",
)
def _no_games(seen: Seen, said: Said) -> bool | str:
    if not seen.count.games.rows:
        return bool(said["what"] == "No games rate")
    shares = [1 - missing / of for missing, of in (seen.count.missing("pairwise", own) for own in seen.world.agents)]
    wanted = 2 * len(list(combinations(seen.world.agents, 2))) * len(seen.world.names)
    judged = [sum(row.judge == judge for row in seen.count.games.rows) / wanted for judge in seen.world.judges]
    return said["what"] != "No games rate" and min(*shares, *judged) < 0.8


@claim(
    "compare: lacking",
    r"Judgments of (?P<a>[v-z]) are missing, more than of others by more than chance: (?P<what>.*?)\. (?:Its|Their) scores? there are over what is left\. .*",
)
def _lacks(seen: Seen, said: Said) -> bool | str:
    words = {"criteria": "criteria", "EXAM-Cover": "exam", "nuggets": "nuggets", f"P@{ITEMS}": "retrieval"}
    for missing, wanted, name in re.findall(r"([\d,]+) of ([\d,]+) \(([^)]*)\)", said["what"]):
        if name in words and (whole(missing), whole(wanted)) != seen.count.missing(words[name], said["a"]):
            return f"rather {seen.count.missing(words[name], said['a'])}"
    return True


# --- tables of scores


def _mean(seen: Seen, score: str, agent: str) -> float | None:
    found = seen.count.of(score, agent)
    return fmean(found.values()) if found else None


@claim("row of criteria", r"row of Mean grades by criterion: (?P<a>[v-z]) \| (?P<v>\S+) \| (?P<n>\d+) of (?P<of>\d+)")
def _criteria(seen: Seen, said: Said) -> bool | str:
    missing, wanted = seen.count.missing("criteria", said["a"])
    right = (int(said["n"]), int(said["of"])) == (wanted - missing, wanted)
    return right and is_figure(said["v"], _mean(seen, "criteria", said["a"]))


@claim(
    "row of exam",
    r"row of EXAM-Cover: (?P<a>[v-z]) \| (?P<place>\S+) \| (?P<v>\S+) \| [^|]* \|(?: (?P<least>\S+) \| (?P<most>\S+) \|)? \S+ \| \S+ \| \d+ \| (?P<graded>\S+)%(?: \| (?P<missing>\d+))?",
)
def _exam(seen: Seen, said: Said) -> bool | str:
    means = {agent: _mean(seen, "exam", agent) for agent in seen.world.agents}
    own, (missing, wanted) = means[said["a"]], seen.count.missing("exam", said["a"])
    if (
        not is_figure(said["v"], own)
        or int(said["missing"] or 0) != missing
        or not near(said["graded"], 100 * (1 - missing / wanted), 1)
    ):
        return f"rather {own}, {missing} missing"
    covered = sum(part is True for query in seen.world.names for part in seen.world.parts("exam", query, said["a"]))
    if said["least"] is None and missing:
        return "without ends"
    if said["least"] is not None and not (
        is_figure(said["least"], covered / wanted) and is_figure(said["most"], (covered + missing) / wanted)
    ):
        return "other ends"
    if own is None:
        return bool(said["place"] == "-")
    others = [mean for mean in means.values() if mean is not None]
    place = 1 + sum(mean > own + 1e-9 for mean in others) + (sum(abs(mean - own) < 1e-9 for mean in others) - 1) / 2
    return float(said["place"]) == place or f"place {place}"


@claim(
    "row of nuggets",
    r"row of Nuggets of answers: (?P<a>[v-z]) \| (?P<v>\d\S*|-) \| (?P<ends>\d\S* to \d\S*|-) \| \d\S* \| .*",
)
def _nuggets(seen: Seen, said: Said) -> bool | str:
    return is_figure(said["v"], _mean(seen, "nuggets", said["a"])) or f"rather {_mean(seen, 'nuggets', said['a'])}"


@claim(
    "row of retrieval",
    r"row of Documents retrieved, by measure: (?P<a>[v-z]) \| (?P<v>\S+) \| [^|]* \| (?P<judged>\S+) \| 0 \| (?P<labelled>-|\d+ of \d+) \|(?: (?P<unknown>\d+) \|)? (?P<label>\S+)",
)
def _retrieval(seen: Seen, said: Said) -> bool | str:
    agent, (missing, wanted) = said["a"], seen.count.missing("retrieval", said["a"])
    if not is_figure(said["v"], _mean(seen, "retrieval", agent)):
        return f"rather {_mean(seen, 'retrieval', agent)}"
    if said["labelled"] != (f"{wanted - missing} of {wanted}" if missing else "-"):
        return f"{missing} of {wanted} are missing"
    if int(said["unknown"] or 0) != len(seen.world.names) - len(seen.count.of("retrieval", agent)):
        return "others are not known"
    parts = [part for query in seen.world.names for part in seen.world.parts("retrieval", query, agent)]
    return is_figure(said["label"], 2 * fmean(part for part in parts if part is not None)) or "another mean label"


always(
    "further row",
    r"row of (?:EXAM-Cover from each grade on|Nuggets of answers: 95% intervals|Nuggets of answers|Labels given|By stage|What was asked|Why judgments failed|): .*",
    r"row of (?:Judges of answers|What judges like besides strength|Places by each way of scoring, scores in brackets|Rank correlation of every two ways of scoring): .*",
)

assert {*TITLES} == {"pairwise", *SCORES}
