"""What ``calibrate`` says of judges and people, held against a recount and against how the votes were made."""

# ruff: noqa: E501 - a pattern stands on one line, as its sentence does

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import combinations
from statistics import StatisticsError, correlation, fmean

from msgspec import Struct, field

from benchmarks.false_sentences.sentences import (
    BRACKET,
    END,
    NUMBER,
    Said,
    Sentences,
    is_figure,
    near,
    rounds_to,
    share,
    status_follows,
    whole,
)
from benchmarks.false_sentences.voters import MARGIN, PANEL, Recount, Thing, World

FEW = 10
"""With fewer queries ``calibrate`` claims nothing about a judge."""


class Seen(Struct):
    """One table of judges and people, and what was read of it so far.

    Attributes:
        trusted: by judge what is said of it: ``less``, ``as people``, ``not known``, ``above chance`` or ``chance``.
        table: the judge whose confusion is being read.
        rows: of that.
    """

    world: World
    count: Recount
    trusted: dict[str, str] = field(default_factory=dict)
    table: str = ""
    rows: list[str] = field(default_factory=list)

    @property
    def things(self) -> str:
        return "games" if self.count.verdicts else "documents"


CALIBRATED: Sentences[Seen] = Sentences()
claim, always = CALIBRATED.claim, CALIBRATED.always

JUDGE = r"(?P<j>[jkl]|panel \(majority\))"
_UNIT = r"(?P<n>\d+) (?P<what>games?|documents?) of (?P<q>\d+) quer(?:y|ies)"

_SAYS: Mapping[str, str] = {
    "few": r"\. That is too little to trust or distrust it\.",
    "chance": r"\. It is not shown to agree with people more than chance would\.",
    "above chance": r"\. That is more than chance\. How often two people agree is not known: let several judge the same things\.",
}
_BESIDE: Mapping[str, str] = {
    "less": "It agrees with people less than they do among themselves.",
    "as people": "It agrees with people as they do among themselves, or less by 0.05 at most.",
    "not known": "These votes do not show whether it agrees less than people do, by more than 0.05.",
}
_KAPPA = rf"(?: Kappa is (?P<kappa>{NUMBER})(?: \((?P<kl>{NUMBER})(?: to (?P<kh>{NUMBER}))?\))?(?P<bar>; the bar is 0\.4)?\.)?"
_OPENING = rf"check (?P<status>\w+): Agreement of people with the judge {JUDGE} on (?P<level>\w+): (?P<again>[jkl]|panel \(majority\)) says what a person says in (?P<v>{END})%(?:{BRACKET})? of cases, on {_UNIT}"


def _figures(seen: Seen, said: Said) -> bool | str:
    count, judge = seen.count, said["j"]
    if said["again"] != judge or said["level"] != seen.world.level or not seen.things.startswith(said["what"]):
        return "of another"
    if (int(said["n"]), int(said["q"])) != (len(count.both(judge)), count.queries(judge)):
        return f"rather {len(count.both(judge))} on {count.queries(judge)}"
    if not rounds_to(said["v"].split()[-1], count.with_a_person(judge), 100):
        return f"rather {count.with_a_person(judge):.3f}"
    kappa = count.kappa(judge)
    if (said["kappa"] is None) != (kappa is None) or (kappa is not None and not near(said["kappa"], kappa, 0.0051)):
        return f"kappa is {kappa}"
    return True


def _kappa_status(said: Said) -> bool | str:
    if said["kappa"] is not None and float(said["kappa"]) == 1 and said["kl"] is None:
        return bool(said["status"] == "passed")
    return status_follows({"status": said["status"], "l": said["kl"], "h": said["kh"]}, 0.4, math.inf)


@claim("calibrate: few", _OPENING + _SAYS["few"] + _KAPPA)
def _few(seen: Seen, said: Said) -> bool | str:
    return _figures(seen, said) if said["status"] == "unknown" and int(said["q"]) < FEW else "another status"


@claim(
    "calibrate: other scale",
    rf"check unknown: Agreement of people with the judge {JUDGE} on labels: The scales differ: (?P<again>[jkl]|panel \(majority\)) gave (?P<jl>{NUMBER}) to (?P<jh>{NUMBER}), and people (?P<pl>{NUMBER}) to (?P<ph>{NUMBER}), on (?P<n>\d+) documents\. Agreement, kappa and bias mean nothing before both are on one scale; rank correlation does: Spearman's is .*",
)
def _other_scale(seen: Seen, said: Said) -> bool | str:
    both, labels = seen.count.both(said["j"]), seen.count.of(said["j"])
    values = [labels[thing] for thing in both]
    votes = [vote for thing in both for vote in seen.count.human[thing].values()]
    if [float(said[end]) for end in ("jl", "jh", "pl", "ph")] != [f(v) for v in (values, votes) for f in (min, max)]:
        return "other ranges"
    if int(said["n"]) != len(both) or said["again"] != said["j"]:
        return f"rather {len(both)} documents"
    outside = sum(not min(votes) <= value <= max(votes) for value in values)
    if 2 * outside <= len(values):
        return "most labels are within people's range"
    return len(both) >= FEW or max(abs(value) for value in values) > 2 * max(votes) or "on too few documents"


@claim("calibrate: chance", _OPENING + _SAYS["chance"] + _KAPPA)
def _chance(seen: Seen, said: Said) -> bool | str:
    seen.trusted[said["j"]] = "chance"
    if said["kl"] is not None and float(said["kl"]) > 0.005:
        return "its interval says otherwise"
    right = _kappa_status(said)
    return _figures(seen, said) if right is True else right


@claim("calibrate: above chance", _OPENING + _SAYS["above chance"] + _KAPPA)
def _above(seen: Seen, said: Said) -> bool | str:
    seen.trusted[said["j"]] = "above chance"
    if seen.count.of_two is not None:
        return "two people agree"
    if said["kl"] is not None and float(said["kl"]) < -0.005:
        return "its interval says otherwise"
    right = _kappa_status(said)
    return _figures(seen, said) if right is True else right


@claim(
    "calibrate: beside people",
    rf"{_OPENING}; two people agree in (?P<two>{END})%?(?: \([^)]*\))?; (?:nobody repeated a vote on what it judged|on (?P<same>\w+) with votes of two people the difference is (?P<gap>[+]?{NUMBER})(?: \((?P<gl>{END})(?: to (?P<gh>{END}))?\))?)\. (?P<beside>{'|'.join(map(re.escape, _BESIDE.values()))}){_KAPPA}",
)
def _beside(seen: Seen, said: Said) -> bool | str:  # noqa: PLR0911 - a return for each thing that is wrong
    count, judge = seen.count, said["j"]
    trust = next(name for name, sentence in _BESIDE.items() if sentence == said["beside"])
    seen.trusted[judge] = trust
    if said["status"] != {"less": "failed", "as people": "passed", "not known": "unknown"}[trust]:
        return "another status"
    if count.of_two is None or not rounds_to(said["two"].split()[-1], count.of_two, 100):
        return f"two people agree in {count.of_two}"
    gap = count.less_people(judge)
    if (gap is None) != (said["gap"] is None):
        return "a difference of nothing"
    if gap is None:
        return _figures(seen, said) if trust == "not known" else "without a difference"
    if not rounds_to(said["gap"], gap[0]) or said["same"] != seen.things:
        return f"the difference is {gap[0]:.3f}"
    if said["gl"] is None and gap[1] >= FEW and count.all_agree(judge):
        return _figures(seen, said) if trust == "not known" else "all agree"
    if (wrong := _trusts(trust, gap[1], said["gl"], said["gh"] or said["gl"])) is not True:
        return wrong
    return _figures(seen, said)


def _trusts(trust: str, queries: int, *ends: str | None) -> bool | str:
    low, high = (None if end is None else float(end.split()[-1]) for end in ends)
    if low is None or high is None or queries < FEW:
        return trust == "not known" or "on too few queries"
    allowed = {"less": high <= 0.005, "as people": low >= -MARGIN - 0.005}
    allowed["not known"] = high >= -0.005 and low <= -MARGIN + 0.005
    return allowed[trust] or "its interval says otherwise"


@claim(
    "calibrate: none in common",
    r"check unknown: Agreement of people with the judge: No person judged anything that the judge did\.",
)
def _none(seen: Seen, _said: Said) -> bool | str:
    return not any(seen.count.both(judge) for judge in seen.world.judges)


always(
    "explanation",
    r"explained: (?:How often a judge says what a person says, beside how often two people agree|The interval of a correlation of two orders) ?.*",
    r"table: (?:Judges against people|People among themselves|Agreement with the consensus|Correlation with the consensus|Orders of the agents by judge and by people, on the things that both judged|Places|Two judges|Judge minus people|May the judge take a person's place\?)",
    r"explained: (?:Not worse: by 0\.1 at most \(--epsilon\)\.|Each interval is at the level at which Holm's procedure tests its pair\.)",
    r"explained: Both orders are of the things that both judged, a tie half a win\..*",
    r"row of (?:Correlation with the consensus|Orders of the agents by judge and by people, on the things that both judged): .*",
)

_INTERVAL = r"[^|]*"


@claim(
    "row of two judges",
    rf"row of Two judges: (?P<j>[jkl]) \| (?P<k>[jkl]) \| (?P<level>\w+) \| (?P<n>\d+) \| (?P<a>\S+)% \| (?P<b>\S+)% \| (?P<gap>\S+) \| (?P<ends>{_INTERVAL}) \| (?P<p>{_INTERVAL}) \| (?P<holm>{_INTERVAL}) \| (?P<is>[^|]*) \| .*",
)
def _two_judges(seen: Seen, said: Said) -> bool | str:
    first, second = (seen.count.said(said[name]) for name in ("j", "k"))
    things = [thing for thing in sorted(first.keys() & second.keys()) if seen.count.human.get(thing)]

    def share(values: Mapping[Thing, list[int]]) -> float:
        agree = [
            [own == other for own in values[thing] for other in seen.count.human[thing].values()] for thing in things
        ]
        return sum(sum(votes) / len(votes) for votes in agree) / len(agree)

    if int(said["n"]) != len(things):
        return f"rather {len(things)} things"
    a, b = share(first), share(second)
    if not (near(said["a"], 100 * a, 0.51) and near(said["b"], 100 * b, 0.51) and near(said["gap"], a - b, 0.0051)):
        return f"rather {a:.3f}, {b:.3f}"
    if said["is"].startswith("too few"):
        return seen.count.units(things) < FEW
    low, high = (float(end.split()[-1]) for end in said["ends"].split(" to "))
    allowed = {"better": low >= -0.005, "worse": high <= 0.005, "not worse": low >= -0.105, "undecided": low <= 0.005}
    return allowed[said["is"]] or "its interval says otherwise"


@claim(
    "row of a judge",
    rf"row of Judges against people: {JUDGE} \| (?P<level>\w+) \| (?P<n>\d+) \| (?P<cover>\d+)% \| (?P<v>\S+)% \| (?P<vi>{_INTERVAL}) \| (?P<decided>\S+?)%? \| (?P<two>\S+?)%? \| (?P<gap>\S+) \| {_INTERVAL} \| (?P<kappa>\S+) \| {_INTERVAL} \| (?P<bias>\S+) \| {_INTERVAL}?(?: \| -)?",
)
def _judge(seen: Seen, said: Said) -> bool | str:
    count, judge = seen.count, said["j"]
    both, gap, kappa = len(count.both(judge)), count.less_people(judge), count.kappa(judge)
    values = count.of(judge)
    bias = None if count.verdicts else sum(values[t] - count.number(t) for t in count.both(judge)) / both
    return (
        int(said["n"]) == both
        and share(said["cover"], both, len(count.consensus))
        and rounds_to(said["v"], count.with_a_person(judge), 100)
        and is_figure(said["two"], count.of_two, 100)
        and is_figure(said["gap"], None if gap is None else gap[0])
        and is_figure(said["kappa"], kappa)
        and (count.verdicts or is_figure(said["bias"], bias))
    )


@claim(
    "row of people",
    rf"row of People among themselves: (?P<level>\w+) \| (?P<people>\d+) \| (?P<votes>\d+) \| (?P<things>\d+) \| (?P<several>\d+) \| (?P<two>\S+?)%? \| {_INTERVAL} \| (?P<decided>\S+?)%? \| .*",
)
def _people(seen: Seen, said: Said) -> bool | str:
    human = seen.count.human
    told = tuple(int(said[name]) for name in ("people", "votes", "things", "several"))
    right = (
        len({name for own in human.values() for name in own}),
        sum(map(len, human.values())),
        len(human),
        sum(len(own) > 1 for own in human.values()),
    )
    return (told == right and is_figure(said["two"], seen.count.of_two, 100)) or f"rather {right}"


@claim("consensus", r"consensus: majority of people; no value leads on (?P<a>\d+) of (?P<b>\d+) (?P<what>\w+)")
def _contested(seen: Seen, said: Said) -> bool | str:
    return (int(said["a"]), int(said["b"])) == (seen.count.contested, len(seen.count.human))


@claim(
    "suspects",
    rf"not shown to agree with the others more than by chance \(kappa\): (?P<who>person-\d {NUMBER}(?:(?:, | and )person-\d {NUMBER})*)",
)
def _suspects(seen: Seen, said: Said) -> bool | str:
    for name, kappa in re.findall(r"(person-\d) (-?[\d.]+)", said["who"]):
        own = seen.count.among_people(name)
        if own is None or not near(kappa, own[0], 0.0051):
            return f"{name}: {own}"
        if own[1] < 10:
            return f"{name} shares too few"
    return True


@claim(
    "panel",
    rf"panel: (?P<p>\d+)% like people, its best member (?P<best>[jkl]) (?P<b>\d+)%(?: \(difference (?P<d>[+]?{NUMBER})(?: \((?P<l>[+]?{NUMBER})(?: to (?P<h>[+]?{NUMBER}))?\))\))?",
)
def _panel(seen: Seen, said: Said) -> bool | str:
    count, things = seen.count, seen.count.common
    shares = {name: count.like_people(name, things) for name in seen.world.judges}
    panel, best = count.like_people(PANEL, things), max(shares.values())
    right = near(said["p"], 100 * panel, 0.51) and near(said["b"], 100 * best, 0.51) and shares[said["best"]] == best
    return right and (said["d"] is None or rounds_to(said["d"], panel - best))


@claim(
    "panel: worth",
    rf"panel: (?P<n>\d+) judges are worth (?P<v>{END})(?:{BRACKET})? independent votes: they err together",
)
def _worth(seen: Seen, said: Said) -> bool | str:
    count, things = seen.count, seen.count.common
    errors = [[abs(count.of(judge)[thing] - count.consensus[thing]) for thing in things] for judge in seen.world.judges]
    known = []
    for one, other in combinations(errors, 2):
        with suppress(StatisticsError):  # a judge whose error never varies
            known.append(correlation(one, other))
    k = len(errors)
    return int(said["n"]) == k and near(said["v"].split()[-1], k / max(1.0, 1 + (k - 1) * fmean(known)), 0.051)


@claim(
    "panel: points",
    r"panel: its majority is right in (?P<a>\S+)%, (?P<j>[jkl]) alone in (?P<b>\S+)%, a tie half(?:, more than chance explains)?",
)
def _points(seen: Seen, said: Said) -> bool | str:
    count, things = seen.count, seen.count.common
    own = {judge: [count.of(judge)[thing] for thing in things] for judge in seen.world.judges}
    truth = [count.consensus[thing] for thing in things]
    side = [(total > 0) - (total < 0) for total in map(sum, zip(*own.values(), strict=True))]
    majority, best = (
        fmean(1 - abs(a - b) / 2 for a, b in zip(said_values, truth, strict=True))
        for said_values in (side, own[said["j"]])
    )
    return near(said["a"], 100 * majority, 0.51) and near(said["b"], 100 * best, 0.51)


@claim(
    "panel: from ties",
    rf"panel: of the difference (?P<a>[+]?{NUMBER}) comes from the (?P<n>\d+) games on which people tie, (?P<b>[+]?{NUMBER}) from the others: a panel ties wherever (?:its judges differ and no side|no verdict) leads",
)
def _from_ties(seen: Seen, said: Said) -> bool | str:
    count, things = seen.count, seen.count.common
    shares = {name: count.like_people(name, things) for name in seen.world.judges}
    best = max(shares, key=lambda name: (shares[name], name))
    tied = [thing for thing in things if count.consensus[thing] == 0]
    gain = count.like_people(PANEL, things) - shares[best]
    on_ties = (count.like_people(PANEL, tied) - count.like_people(best, tied)) * len(tied) / len(things)
    return int(said["n"]) == len(tied) and rounds_to(said["a"], on_ties) and rounds_to(said["b"], gain - on_ties)


@claim(
    "outside",
    rf"{JUDGE}: values (?P<values>.*) lie outside the (?P<l>\S+) to (?P<h>\S+) of people: kappa counts each as a label of its own",
)
def _outside(seen: Seen, said: Said) -> bool | str:
    count, judge = seen.count, said["j"]
    given = [value for own in count.human.values() for value in own.values()]
    values = [count.of(judge)[thing] for thing in count.both(judge)]
    beyond = sorted({value for value in values if not min(given) <= value <= max(given)})
    told = ", ".join(f"{value} ({values.count(value):,})" for value in beyond)
    return (said["values"], said["l"], said["h"]) == (told, str(min(given)), str(max(given))) or told


@claim("rough", rf"{JUDGE}: (?P<q>\d+) quer(?:y|ies) in common: intervals are rough")
def _rough(seen: Seen, said: Said) -> bool | str:
    queries, things = seen.count.queries(said["j"]), len(seen.count.both(said["j"]))
    return int(said["q"]) == queries < FEW and queries >= 3 and things >= FEW


@claim("few", rf"{JUDGE}: too few: (?P<n>\d+) things? of (?P<q>\d+) quer(?:y|ies): no agreement can be told from these")
def _few_things(seen: Seen, said: Said) -> bool | str:
    queries, things = seen.count.queries(said["j"]), len(seen.count.both(said["j"]))
    return (int(said["n"]), int(said["q"])) == (things, queries) and (things < FEW or queries < 3)


@claim(
    "row of few",
    rf"row of Judges against people: {JUDGE} \| (?P<level>\w+) \| (?P<all>\d+) \| \d+% \|(?: - \|)+ too few: (?P<n>\d+) things? of (?P<q>\d+) quer(?:y|ies)",
)
def _row_of_few(seen: Seen, said: Said) -> bool | str:
    return said["all"] == said["n"] and _few_things(seen, said)


@claim(
    "row of agreement",
    rf"row of Agreement with the consensus: {JUDGE} \| (?P<level>\w+) \| (?P<v>\S+)% \| {_INTERVAL} \| (?P<kappa>\S+) \| .*",
)
def _agreement(seen: Seen, said: Said) -> bool | str:
    both = seen.count.both(said["j"])
    right = rounds_to(said["v"], seen.count.like_people(said["j"], both), 100)
    return right and is_figure(said["kappa"], seen.count.kappa(said["j"]))


@claim(
    "row of places",
    rf"row of Places: (?P<j>people|[jkl]) \| verdicts \| (?P<n>\d+) \| (?P<ties>\S+)% \| (?P<both>\d+) \| (?P<same>\S+?)%? \| {_INTERVAL} \| (?P<first>\S+?)%? \| {_INTERVAL}",
)
def _places(seen: Seen, said: Said) -> bool | str:
    count = seen.count
    votes = count.people if said["j"] == "people" else [vote for vote in count.judges if vote.rater == said["j"]]
    decided = [vote for vote in votes if vote.value]
    first = sum((vote.value > 0) != vote.turned for vote in decided)
    every: dict[object, list[int]] = {}
    for vote in votes:
        # People together are read as one rater of each thing: of a thing shown in both orders most decide each.
        every.setdefault((vote.thing, vote.rater if said["j"] != "people" else ""), []).append(vote.value)
    right = int(said["n"]) == len(votes) and share(said["ties"], len(votes) - len(decided), len(votes))
    right = right and (share(said["first"], first, len(decided)) if decided else said["first"] == "-")
    if said["j"] == "people":
        return right
    both = [own for own in every.values() if len(own) == 2]
    same = sum(own[0] == own[1] for own in both)
    return right and int(said["both"]) == len(both) and (share(said["same"], same, len(both)) if both else True)


@claim(
    "row of limits",
    rf"row of Judge minus people: {JUDGE} \| labels \| (?P<bias>\S+) \| {_INTERVAL} \| (?P<l>\S+) \| (?P<h>\S+)",
)
def _limits(seen: Seen, said: Said) -> bool | str:
    count, values = seen.count, seen.count.of(said["j"])
    gaps = [values[thing] - count.number(thing) for thing in count.both(said["j"])]
    return is_figure(said["bias"], sum(gaps) / len(gaps))


@claim(
    "row of a person replaced",
    r"row of May the judge take a person's place\?: (?P<j>[jkl]), \w+ \| (?P<who>person-\d) \| (?P<n>\d+) \| (?P<q>\d+) \| .*",
)
def _replaced(seen: Seen, said: Said) -> bool | str:
    values = seen.count.of(said["j"])
    things = [t for t, own in seen.count.human.items() if said["who"] in own and len(own) > 1 and t in values]
    return (int(said["n"]), int(said["q"])) == (len(things), seen.count.units(things))


@claim(
    "alternative annotators",
    r"explained: (?P<j>[jkl]), \w+: (?:it replaces (?P<a>\d+) of (?P<n>\d+) pe(?:rson|ople) with epsilon 0\.1, tests by query; (?P<b>\d+) if things of one query were independent; the bar is half\. It agrees with the others at least as well as a person on \S+% of things\.|nobody judged \d+ things together with another person and the judge\.)(?: (?P<few>\d+) pe(?:rson|ople) left out, with fewer than (?P<least>\d+) things\.)?",
)
def _alternative(seen: Seen, said: Said) -> bool | str:
    everybody = {name for own in seen.count.human.values() for name in own}
    if said["a"] is None:
        return True
    return max(int(said["a"]), int(said["b"])) <= int(said["n"]) <= len(everybody)


@claim("table of confusion", r"table: What is taken for what: (?P<j>[jkl]|panel \(majority\)), \w+")
def _confusion(seen: Seen, said: Said) -> bool | str:
    seen.table, seen.rows = said["j"], []
    return True


@claim("row of confusion", r"row of What is taken for what: (?P<name>[^|]*) \| (?P<cells>.*)")
def _confused(seen: Seen, said: Said) -> bool | str:
    count, values = seen.count, seen.count.of(seen.table)
    pairs = [(count.consensus[thing], values[thing]) for thing in count.both(seen.table)]
    every = sorted({value for pair in pairs for value in pair})
    most = max(abs(value) for value in every)
    scale = range(-most, most + 1) if count.verdicts else range(every[0], every[-1] + 1)
    human = {"second wins": -1, "tie": 0, "first wins": 1}.get(said["name"]) if count.verdicts else int(said["name"])
    return [whole(cell) for cell in said["cells"].split(" | ")] == [
        sum(pair == (human, value) for pair in pairs) for value in scale
    ]


@claim(
    "note: places",
    r".*/(?P<file>judges|people)\.csv: no column 'order' says which answer was shown first, so nothing is said of places",
)
def _unplaced(seen: Seen, said: Said) -> bool | str:
    shown: dict[object, set[bool]] = {}
    for vote in getattr(seen.count, said["file"]):
        shown.setdefault(vote.thing, set()).add(vote.turned)
    return not any(len(orders) == 2 for orders in shown.values())
