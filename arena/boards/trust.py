"""Checks whether a leaderboard can be trusted, each with a remedy, and tables of the judges' biases.

The thresholds are rules of thumb; each finding states its threshold. No threshold affects a rating.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from arena.boards.conclusion import MODEL, Conclusion, judge_changes
from arena.boards.groups import groups_check
from arena.boards.left_out_judges import FIXED, family_of, finding, is_fixed
from arena.config.stages import unasked
from arena.present.blocks import Block, Check, Section, Status, judge_first, passed, settled, to_judge_the_rest
from arena.present.numbers import (
    ALIGNED,
    COUNT,
    FIGURE,
    P_VALUE,
    PERCENT,
    POINTS,
    Number,
    capital,
    counted,
    listed,
    with_interval,
)
from arena.present.table import INTERVAL, Column, Table, flat
from arena.ratings.results import UNITS, fewest_queries
from retrieval_eval.stats.bootstrap import wilson
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.scores import LEVEL as MISSING_LEVEL

if TYPE_CHECKING:
    from arena.calibration.votes import Level
    from arena.config.settings import StoredSettings
    from arena.ratings.results import JudgeAgreement, JudgeHealth, Ratings
    from arena.results.ratings import Leaderboard
    from arena.store.outcomes import Consistency
    from judges.types import Task


PEOPLE: Final = "Agreement of people with the judge"
SIMULATED: Final = "simulated"
"""Judge's name in tables of simulated verdicts, such as the second board of ``ragleague demo``."""
_CARRIED_BY: Final = 0.02
"""Share of the queries, at least two, whose removal must not change the leader; otherwise a trust check fails."""
_NAMED: Final = 5
_ORDER: Final[Sequence[Status]] = ("failed", "unknown", "passed")
_TALLY: Final[Mapping[Status, str]] = {"passed": "passed", "failed": "failed", "unknown": "not_known"}
_STATUS: Final[Mapping[Status, str]] = {"failed": "Failed", "unknown": "Not known"}
_SAME_IN_BOTH_ORDERS: Final = (0.75, math.inf)
_FIRST_PLACE: Final = (0.45, 0.55)
EVEN: Final = "Spread of gaps over agents"
SCORES: Final[Mapping[str, str]] = {
    "pairwise": "games",
    "criteria": "criteria",
    "exam": "exam",
    "nuggets": "nuggets",
    "nuggets_documents": "nuggets of documents",
    "retrieval": "labels of documents",
}
CHEATS: Final = "Cheats judged by"
LENGTH: Final = "Effect of length"
PLACE: Final = "Effect of the place shown"
TIES: Final = "Share of ties"
"""Names of the checks of a judge's preferences; people may share these preferences."""
_LONGER: Final = (0.35, 0.65)
_TIES: Final = (0.0, 0.5)
_CIRCLES: Final = (0.0, 0.1)
_SAME_AGAIN: Final = (0.8, math.inf)
_TOO_WIDE: Final = "Add queries: what was judged is too little to tell."
ALPHA: Final = 0.4
"""Lowest kappa or Krippendorff's alpha that passes a check: moderate agreement (Landis and Koch 1977)."""


def trust_checks(board: Leaderboard, conclusion: Conclusion, of_people: Sequence[Check] = ()) -> tuple[Check, ...]:
    """Run all trust checks that apply to a tournament; failed checks come first, then unknown, then passed ones.

    ``of_people`` are the checks that compare the judges with people. If it is empty, one check says that this is
    unknown.
    """
    results = [*_enough(board), *_even(board)]
    if board.ratings is not None:
        orders, families = orders_asked(board.settings), _families(board.settings)
        checks = rating_checks(board.ratings, conclusion, both_orders=orders, families=families)
        results += _by_judge(checks, board.by_judge, both_orders=orders)
    results += [
        retest_check(judge, task, consistency)
        for task, judges in board.consistency.items()
        for judge, consistency in judges.items()
        if consistency.agreement is not None
    ]
    if board.by_group is not None:
        results.append(groups_check(board.by_group, ratings_noun(board)))
    results += _cards(board)
    if board.further:
        from arena.boards.scores import further_boards  # late: 'rate' has no store, and needs none of this

        results += [
            check for further_board in further_boards(board.further).values() for check in further_board.checks()
        ]
    results += _by_servers(board)
    results += of_people or [no_people()]
    results += _language_models(board)
    return tuple(check for status in _ORDER for check in results if check.status == status)


def ratings_noun(board: Leaderboard) -> tuple[str, str]:
    return UNITS["query"] if board.ratings is None else board.ratings.noun


def orders_asked(settings: StoredSettings) -> bool | None:
    return None if settings.imported else settings.pairwise is not None and settings.pairwise.both_orders


def _families(settings: StoredSettings) -> dict[str, Mapping[str, str]]:
    """Model families of judges and agents: as declared, a judge's else by the name of its model."""
    by_model = {name: family_of(judge.model or "") for name, judge in settings.judges.items()}
    declared = settings.families
    return {**declared, "judges": {**by_model, **declared.get("judges", {})}}


def rating_checks(
    ratings: Ratings,
    conclusion: Conclusion,
    *,
    both_orders: bool | None = None,
    families: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[Check]:
    yield from _of_ratings(ratings, conclusion)
    yield from _of_single_judges(ratings, conclusion, families)
    if ratings.judge_health is not None:
        yield from habit_checks(ratings.judge_health, ratings, both_orders=both_orders)
    yield from _between_agents_and_judges(ratings)


def _by_judge(checks: Iterable[Check], by_judge: Mapping[str, Ratings], *, both_orders: bool | None) -> Iterator[Check]:
    """Add to each failed check the names of the judges that fail it, if others pass it."""
    statuses = {
        judge: {
            check.name: check.status for check in habit_checks(ratings.judge_health, ratings, both_orders=both_orders)
        }
        for judge, ratings in by_judge.items()
        if ratings.judge_health is not None
    }
    for check in checks:
        failing = [judge for judge, by_name in statuses.items() if by_name.get(check.name) == "failed"]
        some = check.status == "failed" and 0 < len(failing) < len(statuses)
        verb = "fails" if len(failing) == 1 else "fail"
        more = f" By judge only {listed(failing, _NAMED)} {verb}." if some else ""
        yield replace(check, finding=f"{check.finding}{more}")


def no_people(apart: Sequence[Level] = ()) -> Check:
    """Unknown check, for judges that cannot be compared with people.

    ``apart`` has the levels, such as labels, that both judged, but on different items.
    """
    finding = "No person judged anything that the judge did."
    if apart:
        finding = f"Judges and people have no {', '.join(apart)} of the same things to compare."
    return Check(PEOPLE, "unknown", finding, "Let people judge a random sample of the same things on the pages.")


def in_short(checks: Sequence[Check], named: Sequence[Status] = ("failed", "unknown")) -> str:
    """How many checks passed, failed and are not known, which add up to all; then the names of the checks ``named``."""
    others = (f" {_STATUS[status]}: {names}." for status in named if (names := names_of(checks, status)))
    counts = tally(checks)
    more = [f"{counts[key]} {key.replace('_', ' ')}" for key in ("failed", "not_known") if counts[key]]
    sentence = ", ".join([f"{counts['passed']} of {counts['checks']} trust checks passed", *more])
    return f"{sentence}.{''.join(others)}"


def tally(checks: Sequence[Check]) -> dict[str, int]:
    """Numbers of checks, and of those that passed, failed and are not known."""
    counts = Counter(check.status for check in checks)
    return {"checks": len(checks), **{key: counts[status] for status, key in _TALLY.items()}}


def names_of(checks: Sequence[Check], status: Status) -> str:
    """Names of the checks with this status, in lower case and joined by semicolons."""
    return "; ".join(check.name[0].lower() + check.name[1:] for check in checks if check.status == status)


def _enough(board: Leaderboard) -> Iterator[Check]:
    stages, shortfall = board.coverage.values(), board.shortfall
    wanted, judged = sum(stage.wanted for stage in stages), sum(stage.judged for stage in stages)
    bar = board.settings.ratings.min_coverage
    if not wanted and unasked(board.settings.further):
        return  # the scores that answers bring along need no judgment
    share = PERCENT.write(judged / wanted if wanted else 1)
    finding = f"{judged:,} of {wanted:,} wanted judgments are there ({share})"
    if shortfall is not None:
        finding = capital(shortfall.message)
    yield Check(
        "Share of judgments made",
        passed(shortfall is None and all(stage.share >= bar for stage in stages) and wanted > 0),
        f"{finding}; the bar is {PERCENT.write(bar)} of each stage.",
        still_to_judge(board),
    )
    if board.costs.agents:
        gaps = [f"{gap.agent} {gap.answered:,} of {gap.queries:,}" for gap in board.costs.gaps]
        if board.settings.imported:  # imported verdicts do not show which agents answered
            yield Check(
                "Share of queries with games",
                passed(not gaps),
                f"Queries with games: {listed(gaps, _NAMED)}. The others may be easier or harder."
                if gaps
                else "All have.",
                "Bring the verdicts that are missing, or compare agents on queries where all have games.",
            )
            return
        yield Check(
            "Share of queries answered",
            passed(not gaps),
            f"Answered: {listed(gaps, _NAMED)}; games are played where both agents answered." if gaps else "All did.",
            "Add the missing answers; for agents that a run asks, 'ragleague failures' says what to do. An agent "
            "that leaves out hard queries gains by it.",
        )


def still_to_judge(board: Leaderboard) -> str:
    left = sum(stage.wanted - stage.judged - stage.failed for stage in board.coverage.values())
    return f"{capital(to_judge_the_rest(board.causes, left, imported=board.settings.imported))}."


def _even(board: Leaderboard) -> Iterator[Check]:
    if not board.uneven:
        return
    uneven, doubtful = ([share for share in board.uneven if getattr(share, how)] for how in ("uneven", "doubtful"))
    named = [
        f"{SCORES.get(share.score, share.score)}: {share.missing:,} of {share.wanted:,} of {share.agent}, "
        f"{share.others_missing:,} of {share.others_wanted:,} of all others (p {P_VALUE.write(share.p)})"
        for share in sorted(uneven or doubtful, key=lambda share: share.p)
    ]
    finding = "No agent lacks a larger share than the others by more than chance"
    if named:
        finding = f"Missing of {'; '.join(named[:_NAMED])}"
        if not uneven:
            finding += "; a few queries may be why"
    yield Check(
        EVEN,
        "failed" if uneven else "unknown" if doubtful else "passed",
        f"{finding}. The bar is {PERCENT.write(MISSING_LEVEL)}, after Holm's correction.",
        f"{still_to_judge(board)} Until then do not compare agents by these scores: an agent that lacks hard "
        "queries gains by it.",
    )


def _of_ratings(ratings: Ratings, conclusion: Conclusion) -> Iterator[Check]:
    flagged, agents = [row.agent for row in ratings.agents if row.flags], len(ratings.agents)
    finding = (
        f"The games do not determine the rating of {listed(flagged, _NAMED)}."
        if flagged
        else "Every agent's rating has a maximum."
    )
    yield Check(
        "Fit of the ratings",
        passed(ratings.convergence.converged and not flagged),
        finding if ratings.convergence.converged else "The fit has not converged.",
        "Let the agents that are flagged in the leaderboard meet others of nearly their strength, on more queries.",
    )
    bar, first = fewest_queries(agents), judge_first(ratings.unjudged)
    finding = f"Intervals rest on {counted(ratings.units, *ratings.noun)}; the bar for {agents} agents is {bar}."
    yield Check(
        f"Number of {ratings.asked}",
        passed(bool(ratings.pairs) and ratings.units >= bar),
        finding if ratings.pairs else "There are no intervals: nothing shows how much a rating varies.",
        " ".join(filter(None, (first, f"Add {ratings.asked} like those that users will ask."))),
    )
    flips = [flip for flip in ratings.flips if flip.change == "leader"]
    if not flips:
        return
    flip = next((flip for flip in flips if flip.unit != "game"), flips[0])
    units, carrier_bar = counted(flip.units, *flip.noun), max(2, round(_CARRIED_BY * flip.units))
    status: Status = "unknown"
    if not conclusion.ordered:
        finding = conclusion.headline if conclusion.headline.endswith("?") else f"{conclusion.headline}."
    elif flip.count == 0:
        finding = "No agent is surely rated above all others."
    elif flip.count is not None:
        finding, status = flip.sentence, passed(flip.count > carrier_bar)
    elif flip.tried:
        weigh = counted(flip.tried, f"{flip.noun[0]} that weighs", f"{flip.noun[1]} that weigh")
        finding = f"{flip.ahead} is rated highest also without the {weigh} most for it."
        status = "passed" if flip.tried > carrier_bar else "unknown"
    else:
        finding = f"There are too few {flip.noun[1]} to leave any out."
    yield Check(
        f"Result without a few {ratings.asked}",
        status,
        f"{finding} The bar is more than {carrier_bar} of {units}.",
        f"Read the {flip.noun[1]} that carry the first place, and add more {ratings.asked} before choosing."
        + (f" {first}" if first else ""),
    )


def _of_single_judges(
    ratings: Ratings, conclusion: Conclusion, families: Mapping[str, Mapping[str, str]] | None
) -> Iterator[Check]:
    changes = judge_changes(ratings)
    if not changes:  # the health of one judge says that it is held fixed
        return
    said = finding(ratings, changes, families)
    status: Status = "unknown"
    if not conclusion.ordered:
        said = conclusion.headline if conclusion.headline.endswith("?") else f"{conclusion.headline}."
    else:
        changed = [change for change in changes if change.leads]
        if not changed or len(changes) > 2 or any(change.refuted for change in changed):
            status = passed(not changed)
    yield Check(
        "Result without any one judge",
        status,
        said,
        "Add judges of other model families, or let people judge the same games ('ragleague calibrate').",
    )


def habit_checks(health: JudgeHealth, ratings: Ratings, *, both_orders: bool | None) -> Iterator[Check]:
    """Check a judge's position bias, preference for length, and share of ties.

    ``both_orders`` is the setting ``pairwise.both_orders``; ``None`` for imported verdicts.
    """
    tally = ratings.tally
    all_in_both = tally is not None and tally.both_orders == tally.games
    import_advice = "Bring verdicts on both orders of every game, so that"
    order_remedy = "Set pairwise.both_orders, so that contradictions are seen."
    if both_orders is None:
        order_remedy = f"{import_advice} contradictions are seen."
    if health.both_orders:
        order_remedy = "Take a stronger judge or another prompt: games that contradict themselves tell little."
    yield _share_check(
        "Agreement of both orders",
        health.order_agreement,
        _SAME_IN_BOTH_ORDERS,
        f"Both orders of a game agree in {{}} of {counted(health.both_orders, 'game')}",
        order_remedy,
        unknown="No game is known to be judged in both orders.",
    )
    remedy = (
        "Judge every game in both orders (pairwise.both_orders), so that the favour falls on both sides alike, or take "
        "it off the ratings (ratings.bradley_terry.position)."
    )
    if both_orders is None:
        remedy = f"{import_advice} the favour falls on both sides alike."
    if both_orders:
        remedy = "Run again, with --retry-failed: a game without one of its orders keeps the favour."
    if all_in_both:
        remedy = (
            "Read the ratings as they are: every game was judged in both orders, so the favour falls on both sides "
            "alike."
        )
    yield _share_check(
        PLACE,
        _between_equals(health.first_effect, ratings.settings.scale),
        _FIRST_PLACE,
        "Between equal agents {} of verdicts with a winner would go to the answer shown first",
        remedy,
        unknown="Nothing tells place from strength: no two agents are known to be shown in both orders.",
        if_wide=remedy,
    )
    yield _share_check(
        LENGTH,
        _between_equals(health.longer_effect, ratings.settings.scale),
        _LONGER,
        "Between equal agents {} of verdicts with a winner would go to the longer answer",
        f"Longer answers may be better: read some games{_CONTROLLED if both_orders is not None else '.'}",
        unknown="No verdict with a winner is on two answers of known and different length.",
    )
    yield _share_check(
        TIES,
        health.tie_rate,
        _TIES,
        f"{{}} of {counted(health.n, 'verdict')} are ties",
        "Ties do not separate agents: add queries, or tell the judge what matters to you (factors).",
    )


_CONTROLLED: Final = ", and see the ratings controlled for length (ratings.bradley_terry.covariates: [log_length])."


def _between_equals(advantage: Estimate, scale: float) -> Estimate:
    """Convert an advantage in rating points to the win rate that it gives an agent over an equally strong one."""
    points = advantage.value, advantage.low, advantage.high
    value, low, high = (None if point is None else 1 / (1 + 10 ** (-point / scale)) for point in points)
    return Estimate(value, low, high)


def _share_check(
    name: str,
    share: Estimate,
    bar: tuple[float, float],
    template: str,
    remedy: str,
    *,
    unknown: str = "",
    if_wide: str = _TOO_WIDE,
) -> Check:
    """Check that a share lies between the two bounds of ``bar``.

    The share replaces ``{}`` in ``template``, the finding; ``unknown`` is the finding if there is no share. ``if_wide``
    is the remedy if the share is within the bounds and its interval is not.
    """
    low, high = bar
    shown = PERCENT.between(low, high) if low and high <= 1 else PERCENT.write(low or high)
    finding = f"{template.format(with_interval(share, PERCENT))}; the bar is {shown}."
    status = settled(share, low, high)
    if status == "unknown" and share.value is not None and low <= share.value <= high:
        remedy = if_wide
    return Check(name, status, unknown if share.value is None else finding, remedy)


def _between_agents_and_judges(ratings: Ratings) -> Iterator[Check]:
    direct = ratings.direct
    if direct.triples:
        share = Estimate(None, direct.circles / direct.triples, 1 - direct.no_circles / direct.triples)
        status = settled(share, *_CIRCLES)
        yield Check(
            "Share of circles",
            status,
            f"Of {counted(direct.triples, 'set')} of three agents that all met, {direct.circles:,} surely beat each "
            f"other in a circle and {direct.no_circles:,} surely do not; the bar is {PERCENT.write(_CIRCLES[1])} "
            "circles.",
            _TOO_WIDE if status == "unknown" else "One rating per agent cannot describe circles: see the win matrix.",
        )
    if ratings.judges is not None:
        alpha, games = ratings.judges.alpha, counted(ratings.judges.games, "game")
        finding = f"Krippendorff's alpha is {with_interval(alpha, FIGURE)} on {games} judged by several"
        outlier = odd_judge(ratings.judges)
        yield Check(
            "Agreement among judges",
            settled(alpha, ALPHA),
            "No game was judged by several."
            if alpha.value is None
            else f"{finding}; the bar is {ALPHA}."
            + (f" {outlier} agrees less with each of the others than any two of these agree." if outlier else ""),
            f"Calibrate {outlier} against people's verdicts, or leave it out."
            if outlier
            else "See which judge stands alone, and calibrate each against people's verdicts.",
        )


def odd_judge(judges: JudgeAgreement) -> str:
    """Name of the judge that agrees with every other judge less than any two others agree; empty if there is none.

    "Less" means that the intervals of kappa do not overlap.
    """
    for judge in judges.judges:
        sides: tuple[list[float | None], list[float | None]] = [], []
        for pair in judges.pairs:
            of_judge = judge in (pair.first, pair.second)
            sides[of_judge].append(pair.kappa.high if of_judge else pair.kappa.low)
        other_bounds, judge_bounds = ([bound for bound in side if bound is not None] for side in sides)
        complete = len(other_bounds) + len(judge_bounds) == len(judges.judges) * (len(judges.judges) - 1) // 2
        if complete and other_bounds and judge_bounds and max(judge_bounds) < min(other_bounds):
            return judge
    return ""


def retest_check(judge: str, task: Task, consistency: Consistency | None) -> Check:
    share, repeats = (None, 0) if consistency is None else (consistency.agreement, consistency.repeated)
    interval = (
        wilson(share, share * (1 - share) / repeats, repeats, repeats) if share is not None and repeats > 1 else ()
    )
    return _share_check(
        f"Agreement of judge {judge} with itself",
        Estimate(share, *interval),
        _SAME_AGAIN,
        f"{{}} of two samples agree ({task.value}, {counted(repeats, 'thing')})",
        "Lower the judge's temperature, or raise its samples so that a majority decides."
        if repeats
        else "Ask for several samples of each judgment ('samples' of the judge), if its replies may vary.",
        unknown="None of its judgments was repeated.",
    )


def _cards(board: Leaderboard) -> Iterator[Check]:
    settings, today = board.settings, datetime.now(UTC).date()
    if settings.game_judges and settings.card is not None and settings.card.cards is not None:
        from arena.data.kinds import VERDICT
        from arena.results.cards import lacking_cards

        lacking = lacking_cards(settings, VERDICT, today)
        finding = f"{listed(lacking, _NAMED)}." if lacking else "Every judge's card says yes."
        yield Check(
            "Judge card",
            passed(not lacking),
            capital(finding),
            "Let people judge enough, run 'ragleague calibrate CONFIG --card FILE', then 'ragleague run CONFIG'.",
        )


def _by_servers(board: Leaderboard) -> Iterator[Check]:
    """Failed checks of the judges' servers: replies from a model that was not requested, and truncated prompts."""
    sentences = [*_by_others(board)]
    if refused := board.causes.get("other_model", 0):
        sentences.append(f"{counted(refused, 'judgment')} failed since another model replied.")
    if sentences:
        yield Check(
            "Model behind each judge",
            "failed",
            " ".join(sentences),
            "Keep the server from falling back on another model, and ask for the one that replies as 'model'; if "
            "'model' is your own name for it, declare 'replies_as'.",
        )
    yield from _same_judge(board)
    if cut := board.causes.get("prompt_cut", 0):
        yield Check(
            "Length of prompts",
            "failed",
            f"{counted(cut, 'judgment')} failed since the server cut the prompt.",
            "Raise the server's context length, then run again.",
        )


def _same_judge(board: Leaderboard) -> Iterator[Check]:
    """Whether each judge is still the same: its model has one name, and it judges the items of its card as it did."""
    for judge in dict.fromkeys([*board.models, *(str(each["judge"]) for each in board.drifts)]):
        models = _versions(board, judge)
        drifts = [each for each in board.drifts if each["judge"] == judge]
        if len(models) < 2 and not drifts:
            continue
        verdicts = {each["verdict"] for each in drifts}
        status: Status = "unknown"
        if "drifted" in verdicts or not drifts:
            status = "failed"
        elif len(models) < 2 and verdicts == {"no drift found"}:
            status = "passed"
        sentences = [f"Its judgments are of {_replied(models)}."] if len(models) > 1 else []
        sentences += [
            f"Asked again since the card of {each['made']}: {each['verdict']}; {each['moved']} of "
            f"{COUNT.write(int(each['labels']))} labels moved ({each['level']})."
            for each in drifts
        ]
        yield Check(
            f"Version of the judge {judge}",
            status,
            " ".join(sentences),
            "Ask for a dated version of the model and judge all again under another judge's name."
            if drifts
            else "Ask for a dated version of the model. Whether its judgments changed, 'ragleague calibrate CONFIG "
            "--since CARD' says.",
        )


def _versions(board: Leaderboard, judge: str) -> Mapping[str, int]:
    """Number of judgments by each model that replied under the name of the judge's model."""
    from judges.witness import is_same_model

    if (settings := board.settings.judges.get(judge)) is None:
        return {}
    asked = settings.replies_as or settings.model
    return {model: count for model, count in board.models.get(judge, {}).items() if is_same_model(asked, model)}


def _by_others(board: Leaderboard) -> Iterator[str]:
    for name, models in board.models.items():
        if models.keys() != _versions(board, name).keys():
            judge = board.settings.judges[name]
            asked = judge.replies_as or judge.model
            yield f"Judge {name} asked for {asked}, and its judgments are of {_replied(models)}."


def _replied(models: Mapping[str, int]) -> str:
    return listed([f"{model} ({COUNT.write(count)})" for model, count in models.items()], _NAMED)


def source_checks(judges: Container[str]) -> Iterator[Check]:
    if SIMULATED in judges:
        yield Check(
            "Source of the verdicts",
            "failed",
            f"The verdicts of {SIMULATED} were drawn by chance: nobody was asked.",
            "Let a judge read real answers before anything is decided.",
        )


def _language_models(board: Leaderboard) -> Iterator[Check]:
    yield from source_checks(board.judges)
    word_judges = [*filter(board.settings.of_words, board.settings.judges)]
    if word_judges:
        phrase = "compare words and are no language models: their"
        if len(word_judges) == 1:
            phrase = "compares words and is no language model: its"
        yield Check(
            MODEL,
            "failed",
            f"{listed(word_judges)} {phrase} judgments are a baseline.",
            "Name a language model under 'judges' before anything is decided.",
        )


_MOST_PAIRS: Final = 15
VOTES: Final = Number(1)
_FEWEST_GAMES: Final = 10
"""Minimum number of games that two judges must share for their kappa to be shown."""
_HABITS: Final[Sequence[tuple[str, str, Number, str]]] = (
    ("order_agreement", "Orders agree", PERCENT, "near 100%"),
    ("first_effect", "First shown wins, between equal agents", PERCENT, "50%"),
    ("longer_effect", "Longer wins, between equal agents", PERCENT, "near 50%"),
    ("tie_rate", "Ties", PERCENT, "few"),
)
"""Fields of ``JudgeHealth`` to show, each with heading, number format, and the value of an unbiased judge."""
_OF_GAMES: Final = (
    "1 is full agreement, 0 what chance gives. Each game counts in both directions, so that it changes nothing which "
    "agent is named first."
)
_AGREEMENT: Final = (
    Column("judges", "Judges"),
    Column("games", "Games judged by both", COUNT),
    Column("agreement", "Same outcome", PERCENT),
    Column("kappa", "Kappa or alpha", FIGURE, _OF_GAMES, INTERVAL),
)
_CONSISTENCY: Final = (
    Column("judge", "Judge"),
    Column("stage", "Stage"),
    Column("repeated", "Judged several times", COUNT),
    Column("agreement", "Two samples agree", PERCENT),
)


def judge_section(
    ratings: Ratings,
    by_judge: Mapping[str, Ratings],
    consistency: Mapping[Task, Mapping[str, Consistency]] | None = None,
) -> Iterator[Section]:
    if ratings.judge_health is None:
        return
    blocks: list[Block] = [habits_table(ratings, by_judge)]
    if by_judge:
        blocks.append(_alone(ratings, by_judge))
    if ratings.judges is not None:
        blocks.append(_agreement(ratings.judges))
    if consistency:
        samples = [
            {"judge": judge, "stage": task.value, **flat(record)}
            for task, judges in consistency.items()
            for judge, record in judges.items()
        ]
        blocks.append(Table("self-consistency", "Does a judge agree with itself?", _CONSISTENCY, samples))
    lead = "Whether place, length or chance decide instead of quality."
    yield Section("judges", "The judge's health", lead, blocks)


def habits_table(ratings: Ratings, by_judge: Mapping[str, Ratings]) -> Table:
    every = {"All judges" if by_judge else "The judge": ratings, **by_judge}
    known_health = {judge: own.judge_health for judge, own in every.items() if own.judge_health is not None}
    rows = [
        {
            "habit": heading,
            **{judge: with_interval(_habit(health, key, ratings), form) for judge, health in known_health.items()},
            "fair": fair,
        }
        for key, heading, form, fair in _HABITS
    ]
    circles = {
        judge: f"{COUNT.write(health.intransitive_triples)} of {COUNT.write(health.triples)}"
        for judge, health in known_health.items()
    }
    rows.append({"habit": "Circles of three", **circles, "fair": "few"})
    rows.append({"habit": "Verdicts", **{judge: COUNT.write(health.n) for judge, health in known_health.items()}})
    columns = [Column("habit", "Habit"), *(Column(judge, judge, ALIGNED) for judge in known_health)]
    notes = [FIXED] if is_fixed(ratings) else []
    return Table("habits", "", [*columns, Column("fair", "Without a habit")], rows, notes)


def _habit(health: JudgeHealth, key: str, ratings: Ratings) -> Estimate:
    """A habit as in the check of it; an advantage in points as what it makes of games between equal agents."""
    figure: Estimate = getattr(health, key)
    return _between_equals(figure, ratings.settings.scale) if key.endswith("_effect") else figure


def _alone(ratings: Ratings, by_judge: Mapping[str, Ratings]) -> Table:
    rows: dict[str, dict[str, object]] = {row.agent: {"agent": row.agent} for row in ratings.agents}
    columns = [Column("agent", "Agent")]
    judges = ((f"by {judge}", judge, own) for judge, own in by_judge.items())
    for key, heading, rated in [("all", "All judges", ratings), *judges]:
        columns.append(Column(key, heading))
        for row in rated.agents:
            rows[row.agent][key] = f"{row.rank} ({POINTS.write(row.bt)})"
    notes = ["The place of each agent by Bradley-Terry ratings, which are in brackets."]
    return Table("judges-alone", "What each judge alone would say", columns, [*rows.values()], notes)


def _agreement(agreement: JudgeAgreement) -> Table:
    several = (pair for pair in agreement.pairs if pair.games >= _FEWEST_GAMES)
    common = sorted(several, key=lambda pair: -pair.games)[:_MOST_PAIRS]
    rows: list[Mapping[str, object]] = [
        {"judges": "all (Krippendorff's alpha)", "games": agreement.games, "kappa": agreement.alpha},
        *(flat(pair) | {"judges": f"{pair.first} and {pair.second}"} for pair in common),
    ]
    notes = ["Both orders of a game are reconciled first."]
    if agreement.votes.value is not None:
        votes = with_interval(agreement.votes, VOTES)
        notes.append(
            f"{len(agreement.judges)} judges are worth {votes} independent votes, by how often they err together; the "
            "majority of the others is taken for the truth."
        )
    if left_out := len(agreement.pairs) - len(common):
        notes.append(f"{counted(left_out, 'more pair')} of judges, with few games in common: in --format json.")
    return Table("judges-agree", "Do the judges agree with each other?", _AGREEMENT, rows, notes)
