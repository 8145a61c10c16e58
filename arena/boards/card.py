"""A judge's card: one verdict whether it may stand in for people on a task, and all that is known of it beside that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from arena.boards.calibration.people import alternative_json, alternative_table, in_words, people_checks, slug
from arena.boards.further import further_boards
from arena.boards.judge_sentences import THINGS
from arena.boards.trust import LENGTH, NOT_FOOLED, PEOPLE, PLACE, TIES, habit_checks, orders_asked, retest_check
from arena.calibration.comparison import PANEL, Comparison, JudgeAgainstPeople, judge_against_people, people
from arena.calibration.votes import Level
from arena.config.card import bound_to, seal
from arena.present.blocks import (
    Block,
    Board,
    Check,
    Checks,
    Figure,
    Figures,
    Section,
    Status,
    VerdictCard,
    estimated,
    passed,
)
from arena.present.numbers import FIGURE, MONEY, PERCENT, POINTS, SIGNED, with_interval
from arena.present.table import plain
from arena.ratings.games import Unit
from arena.ratings.results import UNITS, JudgeHealth, Ratings
from arena.results.calibration import Calibration, Spending
from arena.results.ratings import Leaderboard
from arena.store.outcomes import Consistency
from judges.types import Task
from retrieval_eval.stats.alternative import HALF, AlternativeTest
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.estimate import Estimate

May: TypeAlias = Literal["yes", "no", "not known"]

FEWEST_PEOPLE: Final = 3
"""As the authors of the test advise."""
_GOOD_FOR: Final = timedelta(days=90)
MOST_FAILED: Final = 0.05
"""Share of what a judge was asked that it may fail."""
_TASKS: Final[Mapping[Level, Task]] = {
    "verdicts": Task.PAIRWISE,
    "labels": Task.RELEVANCE,
    "criteria": Task.CRITERIA,
    "nuggets": Task.ASSIGNMENT,
    "support": Task("support"),
}
_STAND_IN: Final = "Fitness to stand in for people"
_IN_ORDERS: Final = "Agreement of both orders"
_FAILURES: Final = "Few failures"
_BOUND: Final = "Record of what was asked"
_NEEDED: Final = (_STAND_IN, PEOPLE, _IN_ORDERS, _FAILURES, _BOUND)
"""Beginnings of the names of checks that must pass; what else is not known is named, and stays so."""
_TASTES: Final = (PLACE, LENGTH, TIES)
"""Checks that a judge may fail: people may like longer answers too, and the test has held it against people."""
_LONGER: Final = "In rating points, for being longer by however little; Style tells what many more words are worth."
_SAID: Final[Mapping[May, tuple[str, str]]] = {
    "yes": ("decided", "Yes"),
    "no": ("care", "No"),
    "not known": ("none", "Not known"),
}


class JudgeCard(Struct, frozen=True):
    """One judge on one task.

    Attributes:
        judge, level: who judged what.
        verdict: ``no`` if a check failed that is no matter of taste; ``not known`` if one that is needed is not known.
        checks: all of them.
        against: the judge held against people.
        figures: what the checks rest on, by key.
        bound_to: hash of model, prompt and parameters.
        expires: the last day on which it counts.
    """

    judge: str
    level: Level
    verdict: May
    checks: tuple[Check, ...]
    against: JudgeAgainstPeople
    figures: Mapping[str, Figure]
    bound_to: str
    expires: date

    @property
    def question(self) -> str:
        """What is asked."""
        return f"May {self.judge} stand in for people on {THINGS[self.level]}?"

    @property
    def headline(self) -> str:
        """The verdict in words."""
        return f"{self.question} {_SAID[self.verdict][1]}."

    def decides(self) -> dict[str, Any]:
        """What a gate reads of it."""
        named = {name: getattr(self, name) for name in ("judge", "level", "verdict", "bound_to")}
        return {**named, "expires": self.expires.isoformat(), "epsilon": self.against.alternative.epsilon}

    def section(self) -> Section:
        """The verdict first."""
        standing, label = _SAID[self.verdict]
        facts = [f"epsilon {self.against.alternative.epsilon:g}", f"good until {self.expires:%-d %B %Y}"]
        facts += [f"bound to {self.bound_to}"] if self.bound_to else []
        order: Sequence[Status] = ("failed", "unknown", "passed")
        blocks: list[Block] = [
            VerdictCard(standing, label, self.headline, self._why(), facts),
            Checks(sorted(self.checks, key=lambda check: order.index(check.status))),
            Figures([own for own in self.figures.values() if own.value is not None]),
        ]
        blocks += alternative_table([self.against], slug("alternative-test", self.against.named))
        lead = "One verdict, from people's judgments and from the judge's own."
        return Section(slug("card", self.judge, self.level), self.question, lead, blocks)

    def _why(self) -> str:
        """What decides, in a sentence."""
        named = {status: [own.name for own in self.checks if own.status == status] for status in ("failed", "unknown")}
        failed, unknown = ([name[0].lower() + name[1:] for name in names] for names in named.values())
        said = []
        if failed:
            said.append(f"{'With care' if self.verdict == 'yes' else 'Failed'}: {'; '.join(failed)}.")
        if unknown:
            said.append(f"Not known: {'; '.join(unknown)}.")
        return " ".join(said) or "Every check passed."


class JudgeCards(Board, frozen=True):
    """The cards of a tournament's judges: one for each of them and each task on which people said something too."""

    tournament: str
    made: date
    cards: tuple[JudgeCard, ...]

    def sections(self) -> Sequence[Section]:
        return [card.section() for card in self.cards]

    def json(self) -> Any:
        cards = [
            {
                **(decides := card.decides()),
                "seal": seal(decides),
                "made": self.made.isoformat(),
                "alternative_test": alternative_json(card.against.alternative),
                "figures": {
                    key: {"value": own.value, "low": own.low, "high": own.high} for key, own in card.figures.items()
                },
                "checks": card.checks,
            }
            for card in self.cards
        ]
        return plain({"tournament": self.tournament, "cards": cards})


def judge_cards(board: Leaderboard, known: Calibration, made: date, expires: date | None = None) -> JudgeCards:
    """The cards, from what is computed already.

    Args:
        board: the tournament's leaderboard.
        known: its judges held against people, what they spent, and what they like.
        made: today.
        expires: the last day on which they count; by default 90 days on.
    """
    until = made + _GOOD_FOR if expires is None else expires
    kin = {effect.judge: effect.points for effect in known.styles if effect.name == "own family"}
    comparisons = list(known.comparisons)
    if not any(own.people.level == "verdicts" for own in comparisons):
        nobody, how = people("verdicts", ()), known.settings
        alone = {
            name: judge_against_people(name, {}, (), nobody, how) for name in board.settings.game_judges or known.spent
        }
        comparisons.append(Comparison("", nobody, None, alone, None))
    cards = [
        _Known(board, one, judge, known.spent.get(name), kin.get(name, Estimate(None))).card(until)
        for one in comparisons
        for name, judge in one.judges.items()
        if name != PANEL
    ]
    return JudgeCards(board.tournament, made, tuple(cards))


class _Known(Struct, frozen=True):
    """What is known of one judge on one task; ``kin`` is what being of its family is worth to it, in points."""

    board: Leaderboard
    comparison: Comparison
    judge: JudgeAgainstPeople
    spent: Spending | None
    kin: Estimate

    def card(self, expires: date) -> JudgeCard:
        judge, level = self.judge.judge, self.judge.level
        bound = bound_to(self.board.settings, judge, level)
        checks = (*self._of_people(), *self._of_itself(), _is_bound(bound))
        verdict: May = (
            "not known" if any(own.status == "unknown" and own.name.startswith(_NEEDED) for own in checks) else "yes"
        )
        if any(own.status == "failed" and own.name not in _TASTES for own in checks):
            verdict = "no"
        return JudgeCard(judge, level, verdict, checks, self.judge, dict(self._figures()), bound, expires)

    @property
    def health(self) -> tuple[Ratings, JudgeHealth] | None:
        """Of its games; nothing for other tasks."""
        ratings = self.board.by_judge.get(self.judge.judge, self.board.ratings)
        if self.judge.level != "verdicts" or ratings is None or ratings.judge_health is None:
            return None
        return ratings, ratings.judge_health

    @property
    def again(self) -> Consistency | None:
        """How far its samples agree."""
        return self.board.consistency.get(_TASKS[self.judge.level], {}).get(self.judge.judge)

    @property
    def failed(self) -> tuple[int, int]:
        """Judgments that failed, of those asked for; where it judged no games, those of all judges of the stage."""
        if self.judge.level == "verdicts" and self.spent is not None:
            return self.spent.failed, self.spent.wanted
        stage = self.board.coverage.get(_TASKS[self.judge.level])
        return (0, 0) if stage is None else (stage.failed, stage.wanted)

    def _of_people(self) -> Iterator[Check]:
        yield _alternative(self.judge.alternative, self.judge.unit)
        name = f"{PEOPLE} {self.judge.judge} on {self.judge.level}"
        unknown = Check(name, "unknown", "Nothing was judged by both.", "Let people judge.")
        yield next((own for own in people_checks([self.comparison]) if own.name == name), unknown)

    def _of_itself(self) -> Iterator[Check]:
        if self.health is not None:
            yield from habit_checks(self.health[1], self.health[0], both_orders=orders_asked(self.board.settings))
            finding = "No agent is known to be of its family."
            if self.kin.value is not None:
                finding = f"It gives its own family {with_interval(self.kin, SIGNED)} points more than other raters do."
            yield Check(
                "No favour for its own family",
                "unknown" if self.kin.low is None else passed(self.kin.low <= 0),
                finding,
                "Let a run judge, whose file declares 'family' of judges and 'families' of agents."
                if self.board.settings.imported
                else "Declare 'family' of judges and 'families' of agents, and take a judge of another family.",
            )
        yield retest_check(self.judge.judge, _TASKS[self.judge.level], self.again)
        if self.judge.level == "verdicts":
            audits = (check for own in further_boards(self.board.further).values() for check in own.checks())
            yield from (check for check in audits if check.name == f"{NOT_FOOLED} {self.judge.judge}")
        failed, wanted = self.failed
        yield Check(
            _FAILURES,
            passed(failed <= MOST_FAILED * wanted) if wanted else "unknown",
            f"{failed:,} of {wanted:,} judgments failed; the bar is {PERCENT.write(MOST_FAILED)}.",
            "See 'ragleague failures': it says what helps by cause.",
        )

    def _figures(self) -> Iterator[tuple[str, Figure]]:
        """Under their keys for programs."""
        found, labels, (failed, wanted) = self.judge.alternative, self.judge.labels, self.failed
        half = "Share of people that it replaces; the bar is half."
        yield "winning_rate_clustered", Figure("Winning rate", found.winning_rate_clustered, FIGURE, half)
        yield "winning_rate", Figure("The same, published", found.winning_rate, FIGURE, "Things taken for independent.")
        better = "Share of things on which it agrees with the others at least as well as a person."
        yield "advantage_probability", Figure("Advantage probability", found.advantage, FIGURE, better)
        yield "vote_agreement", estimated("Agrees with a vote", self.judge.votes.share, PERCENT, "")
        if labels is not None:
            yield "kappa", estimated("Kappa", labels.kappa, FIGURE, "")
            yield "alpha", estimated("Alpha", labels.alpha, FIGURE, "")
        if self.health is not None:
            health = self.health[1]
            yield "order_agreement", estimated("Orders agree", health.order_agreement, PERCENT, "")
            yield "first_effect", estimated("First is worth", health.first_effect, POINTS, "In rating points.")
            yield "longer_effect", estimated("Longer is worth", health.longer_effect, POINTS, _LONGER)
            yield "own_family", estimated("Own family is worth", self.kin, POINTS, "In rating points.")
        yield "retest", Figure("Says the same again", self.again and self.again.agreement, PERCENT, "")
        yield "failures", Figure("Failed", failed / wanted if wanted else None, PERCENT, "")
        if self.spent is not None and self.judge.level == "verdicts":
            yield "cost_per_1000_games", Figure("Cost of 1000 games", self.spent.per_thousand, MONEY, "")


def _is_bound(bound: str) -> Check:
    finding = f"Model, prompt and parameters have the hash {bound}." if bound else "Its model or prompt is not known."
    return Check(
        _BOUND, "passed" if bound else "unknown", finding, "Judge with a run: imported verdicts name no model."
    )


def _alternative(found: AlternativeTest, unit: Unit) -> Check:
    """Passed and failed by the clustered form; too few people or queries show nothing."""
    said = in_words(found, unit)
    status: Status = "unknown"
    if len(found.raters) < FEWEST_PEOPLE:
        said += f" At least {FEWEST_PEOPLE} people are needed."
    elif min(own.clusters for own in found.raters) < FEW_QUERIES:
        said += f" At least {FEW_QUERIES} {UNITS[unit][1]} of each person are needed."
    elif found.passed_clustered:
        status = "passed"
    elif found.losing_rate is not None and found.losing_rate > HALF:
        status = "failed"
        said += " It is shown to be worse than most people by more than that."
    else:
        said += " Nor is it shown to be worse than most people by more than that."
    remedy = "Let at least three people judge the same random sample of things, on more queries."
    if status == "failed":
        remedy = "Read where they differ ('ragleague calibrate --disagreements 20'), change the prompt or the judge."
    return Check(_STAND_IN, status, said[0].upper() + said[1:], remedy)
