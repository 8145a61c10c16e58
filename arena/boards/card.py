"""A judge's card: the verdict whether a judge may replace people on a task, with its checks and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from arena.boards.people import alternative_json, alternative_table, in_words, people_checks, slug, too_few
from arena.boards.scores import further_boards
from arena.boards.trust import (
    CHEATS,
    LENGTH,
    PEOPLE,
    PLACE,
    TIES,
    habit_checks,
    names_of,
    orders_asked,
    retest_check,
)
from arena.boards.two_judges import pair_row, two_judges
from arena.calibration.comparison import PANEL, Comparison, JudgeAgainstPeople, TwoJudges, judge_against_people, people
from arena.calibration.votes import Level
from arena.config.settings import seal
from arena.data.kinds import JudgedKind, kind_of
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
from arena.present.numbers import FIGURE, MONEY, PERCENT, POINTS, SIGNED, capital, with_interval
from arena.present.table import fields, plain
from arena.ratings.games import Unit
from arena.ratings.results import UNITS, JudgeHealth, Ratings
from arena.results.cards import bound_to
from arena.results.ratings import Leaderboard
from arena.results.table_agreement import Calibration, Spending
from arena.store.outcomes import Consistency
from retrieval_eval.stats.alternative import HALF, AlternativeTest
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.run.drift import Frozen

May: TypeAlias = Literal["yes", "no", "not known"]

FEWEST_PEOPLE: Final = 3
"""Smallest number of annotators for the alternative annotator test, as its authors advise."""
_GOOD_FOR: Final = timedelta(days=90)
MOST_FAILED: Final = 0.05
_STAND_IN: Final = "Fitness to stand in for people"
_IN_ORDERS: Final = "Agreement of both orders"
_FAILURES: Final = "Share of failures"
_BOUND: Final = "Record of what was asked"
_NEEDED: Final = (_STAND_IN, PEOPLE, _IN_ORDERS, _FAILURES, _BOUND)
"""A card's verdict is "yes" only if all checks whose names begin like these have a result."""
_TASTES: Final = (PLACE, LENGTH, TIES)
"""Checks whose failure does not make the verdict "no": people may have the same preferences."""
_AGREEMENTS: Final = ("vote_agreement", "kappa", "alpha", "advantage_probability")
"""Figures that are not shown if too few things are behind them."""
_LONGER: Final = "In rating points, for any greater length; Style shows the effect of many more words."
_VERDICT_LABELS: Final[Mapping[May, tuple[str, str]]] = {
    "yes": ("decided", "Yes"),
    "no": ("care", "No"),
    "not known": ("none", "Not known"),
}


class JudgeCard(Struct, frozen=True):
    """Whether one judge may replace people on one task, with checks and figures.

    Attributes:
        verdict: ``no`` if a check outside ``_TASTES`` failed; else ``not known`` if a needed check has no
            result; else ``yes``.
        bound_to: hash of model, prompt and parameters; empty if the model or prompt is not known.
        expires: the last day on which the card is valid.
    """

    judge: str
    level: Level
    verdict: May
    checks: tuple[Check, ...]
    against: JudgeAgainstPeople
    comparison: Comparison
    figures: Mapping[str, Figure]
    bound_to: str
    expires: date

    @property
    def pairs(self) -> list[TwoJudges]:
        """Comparisons with other judges."""
        return [pair for pair in self.comparison.pairs if self.judge in (pair.first, pair.second)]

    @property
    def question(self) -> str:
        return f"May {self.judge} stand in for people on {kind_of(self.level).things}?"

    @property
    def headline(self) -> str:
        return f"{self.question} {_VERDICT_LABELS[self.verdict][1]}."

    def decides(self) -> dict[str, Any]:
        """The fields of a card that the gate reads; the card's seal, a checksum, reveals edits of them."""
        named = fields(self, "judge", "level", "verdict", "bound_to")
        return {**named, "expires": self.expires.isoformat(), "epsilon": self.against.alternative.epsilon}

    def section(self) -> Section:
        standing, label = _VERDICT_LABELS[self.verdict]
        facts = [f"epsilon {self.against.alternative.epsilon:g}", f"good until {self.expires:%-d %B %Y}"]
        facts += [f"bound to {self.bound_to}"] if self.bound_to else []
        order: Sequence[Status] = ("failed", "unknown", "passed")
        few = _AGREEMENTS if too_few(self.against) else ()
        blocks: list[Block] = [
            VerdictCard(standing, label, self.headline, self._why(), facts),
            Checks(sorted(self.checks, key=lambda check: order.index(check.status))),
            Figures([figure for key, figure in self.figures.items() if figure.value is not None and key not in few]),
        ]
        blocks += alternative_table([self.against], slug("alternative-test", self.against.named))
        blocks += two_judges([self.comparison], self.judge, slug("two-judges", self.against.named))
        lead = "One verdict, from people's judgments and from the judge's own."
        return Section(slug("card", self.judge, self.level), self.question, lead, blocks)

    def _why(self) -> str:
        failed = "With care" if self.verdict == "yes" else "Failed"
        named = {failed: names_of(self.checks, "failed"), "Not known": names_of(self.checks, "unknown")}
        return " ".join(f"{how}: {names}." for how, names in named.items() if names) or "Every check passed."


class JudgeCards(Board, frozen=True):
    tournament: str
    made: date
    cards: tuple[JudgeCard, ...]
    frozen: Mapping[tuple[str, Level], Frozen] = {}

    def sections(self) -> Sequence[Section]:
        return [card.section() for card in self.cards]

    def json(self) -> Any:
        cards = [
            {
                **(decides := card.decides()),
                "seal": seal(decides),
                "made": self.made.isoformat(),
                "alternative_test": alternative_json(card.against.alternative),
                "pairs": [pair_row(pair) for pair in card.pairs],
                "figures": {key: fields(figure, "value", "low", "high") for key, figure in card.figures.items()},
                "checks": card.checks,
                "frozen": msgspec.to_builtins(self.frozen.get((card.judge, card.level))),
            }
            for card in self.cards
        ]
        return plain({"tournament": self.tournament, "cards": cards})


def judge_cards(board: Leaderboard, calibration: Calibration, made: date, expires: date | None = None) -> JudgeCards:
    """Make a card for each judge and task from existing results; by default valid for 90 days after ``made``."""
    last_day = made + _GOOD_FOR if expires is None else expires
    family_effects = {effect.judge: effect.points for effect in calibration.styles if effect.name == "own family"}
    comparisons = list(calibration.comparisons)
    if not any(comparison.people.level == "verdicts" for comparison in comparisons):
        no_people, settings = people("verdicts", ()), calibration.settings
        judges = {
            name: judge_against_people(name, {}, (), no_people, settings)
            for name in board.settings.game_judges or calibration.spent
        }
        comparisons.append(Comparison("", no_people, None, judges, None))
    cards = [
        _Evidence(board, comparison, judge, calibration.spent.get(name), family_effects.get(name, Estimate(None))).card(
            last_day
        )
        for comparison in comparisons
        for name, judge in comparison.judges.items()
        if name != PANEL
    ]
    return JudgeCards(board.tournament, made, tuple(cards))


class _Evidence(Struct, frozen=True):
    board: Leaderboard
    comparison: Comparison
    judge: JudgeAgainstPeople
    spent: Spending | None
    family_effect: Estimate

    def card(self, expires: date) -> JudgeCard:
        judge, level = self.judge.judge, self.judge.level
        binding = bound_to(self.board.settings, judge, self.kind)
        checks = (*self._checks_against_people(), *self._checks_of_judge(), _is_bound(binding))
        verdict: May = (
            "not known"
            if any(check.status == "unknown" and check.name.startswith(_NEEDED) for check in checks)
            else "yes"
        )
        if any(check.status == "failed" and check.name not in _TASTES for check in checks):
            verdict = "no"
        return JudgeCard(
            judge, level, verdict, checks, self.judge, self.comparison, dict(self._figures()), binding, expires
        )

    @property
    def kind(self) -> JudgedKind:
        return kind_of(self.judge.level)

    @property
    def health(self) -> tuple[Ratings, JudgeHealth] | None:
        """Ratings from the judge's games, and its habits in them (such as position bias); ``None`` for other tasks."""
        ratings = self.board.by_judge.get(self.judge.judge, self.board.ratings)
        if self.judge.level != "verdicts" or ratings is None or ratings.judge_health is None:
            return None
        return ratings, ratings.judge_health

    @property
    def consistency(self) -> Consistency | None:
        return self.board.consistency.get(self.kind.task, {}).get(self.judge.judge)

    @property
    def failed(self) -> tuple[int, int]:
        """Numbers of failed and requested judgments: this judge's for games, the whole stage's for other tasks."""
        if self.judge.level == "verdicts" and self.spent is not None:
            return self.spent.failed, self.spent.wanted
        stage = self.board.coverage.get(self.kind.task)
        return (0, 0) if stage is None else (stage.failed, stage.wanted)

    def _checks_against_people(self) -> Iterator[Check]:
        yield _alternative(self.judge.alternative, self.judge.unit)
        name = f"{PEOPLE} {self.judge.judge} on {self.judge.level}"
        unknown = Check(name, "unknown", "Nothing was judged by both.", "Let people judge.")
        yield next((check for check in people_checks([self.comparison]) if check.name == name), unknown)

    def _checks_of_judge(self) -> Iterator[Check]:
        if self.health is not None:
            yield from habit_checks(self.health[1], self.health[0], both_orders=orders_asked(self.board.settings))
            finding = "No agent is known to be of its family."
            if self.family_effect.value is not None:
                points = with_interval(self.family_effect, SIGNED)
                finding = f"It gives its own family {points} points more than other raters do."
            yield Check(
                "Effect of its own family",
                "unknown" if self.family_effect.low is None else passed(self.family_effect.low <= 0),
                finding,
                "Judge with a run whose configuration declares 'family' of judges and 'families' of agents."
                if self.board.settings.imported
                else "Declare 'family' of judges and 'families' of agents, and take a judge of another family.",
            )
        yield retest_check(self.judge.judge, self.kind.task, self.consistency)
        if self.judge.level == "verdicts":
            audits = (check for board in further_boards(self.board.further).values() for check in board.checks())
            yield from (check for check in audits if check.name == f"{CHEATS} {self.judge.judge}")
        failed, wanted = self.failed
        yield Check(
            _FAILURES,
            passed(failed <= MOST_FAILED * wanted) if wanted else "unknown",
            f"{failed:,} of {wanted:,} judgments failed; the bar is {PERCENT.write(MOST_FAILED)}.",
            "See 'ragleague failures': it lists what to do for each cause.",
        )

    def _figures(self) -> Iterator[tuple[str, Figure]]:
        test, labels, (failed, wanted) = self.judge.alternative, self.judge.labels, self.failed
        half = "Share of people that it replaces; the bar is half."
        yield "winning_rate_clustered", Figure("Winning rate", test.winning_rate_clustered, FIGURE, half)
        yield "winning_rate", Figure("The same, published", test.winning_rate, FIGURE, "Things taken for independent.")
        better = "Share of things on which it agrees with the others at least as well as a person."
        yield "advantage_probability", Figure("Advantage probability", test.advantage, FIGURE, better)
        yield "vote_agreement", estimated("Agrees with a vote", self.judge.votes.share, PERCENT, "")
        if labels is not None:
            yield "kappa", estimated("Kappa", labels.kappa, FIGURE, "")
            yield "alpha", estimated("Alpha", labels.alpha, FIGURE, "")
        if self.health is not None:
            health = self.health[1]
            yield "order_agreement", estimated("Orders agree", health.order_agreement, PERCENT, "")
            yield "first_effect", estimated("First is worth", health.first_effect, POINTS, "In rating points.")
            yield "longer_effect", estimated("Longer is worth", health.longer_effect, POINTS, _LONGER)
            yield "own_family", estimated("Own family is worth", self.family_effect, POINTS, "In rating points.")
        yield "retest", Figure("Says the same again", self.consistency and self.consistency.agreement, PERCENT, "")
        yield "failures", Figure("Failed", failed / wanted if wanted else None, PERCENT, "")
        if self.spent is not None and self.judge.level == "verdicts":
            yield "cost_per_1000_games", Figure("Cost of 1000 games", self.spent.per_thousand, MONEY, "")


def _is_bound(binding: str) -> Check:
    finding = (
        f"Model, prompt and parameters have the hash {binding}." if binding else "Its model or prompt is not known."
    )
    return Check(
        _BOUND, "passed" if binding else "unknown", finding, "Judge with a run: imported verdicts name no model."
    )


def _alternative(test: AlternativeTest, unit: Unit) -> Check:
    """Check that the judge passes the clustered alternative annotator test; unknown with too few people or queries."""
    sentence = in_words(test, unit)
    status: Status = "unknown"
    if len(test.raters) < FEWEST_PEOPLE:
        sentence += f" At least {FEWEST_PEOPLE} people are needed."
    elif min(rater.clusters for rater in test.raters) < FEW_QUERIES:
        sentence += f" At least {FEW_QUERIES} {UNITS[unit][1]} of each person are needed."
    elif test.passed_clustered:
        status = "passed"
    elif test.losing_rate is not None and test.losing_rate > HALF:
        status = "failed"
        sentence += " It is shown to be worse than most people by more than that."
    else:
        sentence += " Nor is it shown to be worse than most people by more than that."
    remedy = "Let at least three people judge the same random sample of things, on more queries."
    if status == "failed":
        remedy = "Read where they differ ('ragleague calibrate --disagreements 20'), change the prompt or the judge."
    return Check(_STAND_IN, status, capital(sentence), remedy)
