"""How fast a judge is asked, and what servers' headers say is left: never beyond limits, as fast as they allow."""

from __future__ import annotations

import asyncio
import math
from itertools import pairwise

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.pace import MINUTE_S, MinuteWindow, Pace, Ticket
from judges.providers.http_answers import allowance_of, duration_s
from judges.types import Allowance


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def never() -> bool:
    return False


def fully_open(pace: Pace) -> int:
    tickets = []
    while pace._wait_s(0) == 0:
        tickets.append(asyncio.run(entered(pace)))
    for ticket in tickets:
        pace.leave(ticket)
    return len(tickets)


async def entered(pace: Pace, tokens: int = 0) -> Ticket:
    ticket = await pace.enter(tokens, never)
    assert ticket is not None
    return ticket


@given(
    limit=st.integers(1, 50),
    calls=st.lists(st.tuples(st.floats(0, 30), st.integers(1, 20)), min_size=1, max_size=60),
)
def test_no_minute_holds_more_than_its_limit_and_no_wait_is_longer_than_needed(
    limit: int, calls: list[tuple[float, int]]
) -> None:
    """Each call comes some seconds after the last one and waits as long as it is told."""
    window, now = MinuteWindow(limit), 0.0
    spent: list[tuple[float, int]] = []
    for pause_s, amount in calls:
        now += pause_s
        wait_s = window.wait_s(now, amount)
        assert wait_s >= 0
        if wait_s > 1e-6:
            just_before = now + wait_s - 1e-6
            assert sum(a for at, a in spent if at > just_before - MINUTE_S) + amount > limit
        now += wait_s
        window.spend(now, amount)
        spent.append((now, amount))
        in_minute = [a for at, a in spent if at > now - MINUTE_S + 1e-6]
        assert sum(in_minute) <= limit or len(in_minute) == 1


def test_an_estimate_is_corrected_by_what_was_spent() -> None:
    window = MinuteWindow(100)
    entry = window.spend(0, 90)
    assert window.wait_s(1, 20) == 59
    window.correct(entry, 40)
    assert window.wait_s(1, 20) == 0
    assert window.wait_s(61, 100) == 0
    window.correct(entry, 10)  # long gone
    assert window.wait_s(61, 100) == 0


def test_an_answer_429_halves_the_calls_at_once_and_good_ones_bring_them_back() -> None:
    clock = Clock()
    pace = Pace(16, clock=clock)
    assert fully_open(pace) == 16
    tickets = [asyncio.run(entered(pace)) for _ in range(16)]
    clock.now = 1
    for ticket in tickets:  # one burst of refusals is one piece of news
        pace.slow_down(ticket, None)
    for ticket in tickets:
        pace.leave(ticket)
    assert fully_open(pace) == 8
    for _ in range(8 + 1):
        pace.speed_up()
    assert fully_open(pace) == 9
    for _ in range(1000):
        pace.speed_up()
    assert fully_open(pace) == 16


def test_refusals_never_stop_a_judge_for_good() -> None:
    clock = Clock()
    pace = Pace(16, clock=clock)
    for _ in range(20):
        clock.now += 1
        ticket = asyncio.run(entered(pace))
        clock.now += 1
        pace.slow_down(ticket, None)
        pace.leave(ticket)
    assert fully_open(pace) == 1


@pytest.mark.parametrize(
    ("allowance", "tokens", "wait_s"),
    [
        (Allowance(requests=0, requests_reset_s=7), 10, 7),
        (Allowance(requests=1, requests_reset_s=7), 10, 0),
        (Allowance(tokens=9, tokens_reset_s=3), 10, 3),
        (Allowance(tokens=10, tokens_reset_s=3), 10, 0),
        (Allowance(requests=0, requests_reset_s=7, tokens=0, tokens_reset_s=9), 10, 9),
        (Allowance(requests=0), 10, 0),
        (Allowance(requests=0, requests_reset_s=101), 10, 0),
    ],
)
def test_what_a_server_says_is_left_is_heeded_up_to_the_longest_pause(
    allowance: Allowance, tokens: int, wait_s: float
) -> None:
    pace = Pace(4, longest_pause_s=100, clock=Clock())
    pace.respect_limits(allowance, tokens)
    assert pace._wait_s(tokens) == wait_s


async def test_calls_wait_their_turn_in_order() -> None:
    pace, order = Pace(2), []

    async def call(number: int) -> None:
        ticket = await entered(pace)
        order.append(number)
        await asyncio.sleep(0.001)
        pace.leave(ticket)

    await asyncio.gather(*(call(number) for number in range(20)))
    assert order == list(range(20))
    assert pace.in_flight == 0


async def test_a_call_that_is_given_up_while_it_waits_takes_nothing() -> None:
    pace, given_up = Pace(1), False
    ticket = await entered(pace)
    waiting = [asyncio.create_task(pace.enter(0, lambda: given_up)) for _ in range(3)]
    await asyncio.sleep(0.01)
    given_up = True
    pace.wake()
    assert await asyncio.gather(*waiting) == [None] * 3
    pace.leave(ticket)
    assert pace.in_flight == 0


async def test_a_limit_per_minute_holds_over_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.pace.MINUTE_S", 0.2)
    pace, times = Pace(50, requests_per_minute=10), []

    async def call() -> None:
        ticket = await entered(pace)
        times.append(ticket.entered)  # not the time of this line: a busy machine may come to it late
        pace.leave(ticket)

    await asyncio.gather(*(call() for _ in range(35)))
    assert all(later - earlier > 0.1999 for earlier, later in zip(times, times[10:], strict=False))
    assert all(later >= earlier for earlier, later in pairwise(times))


UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("2m59.56s", 179.56),
        ("0s", 0),
        ("7", 7),
        ("0.5", 0.5),
    ],
)
def test_durations_as_servers_spell_them(text: str, seconds: float) -> None:
    assert duration_s(text) == pytest.approx(seconds)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(sorted(UNITS))), min_size=1, max_size=5))
def test_a_duration_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert duration_s(text) == pytest.approx(sum(number * UNITS[unit] for number, unit in parts))


@given(st.text(alphabet="0123456789.hmsnuµ+-e ٣", max_size=20) | st.text(max_size=10))
def test_any_text_is_a_finite_duration_or_none(text: str) -> None:
    seconds = duration_s(text)
    assert seconds is None or (math.isfinite(seconds) and seconds >= 0)


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1s-", "1 s", "1e3s", "s", "1s1", "inf", "nan", "٣s", "9" * 40])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_s(text) is None


@given(st.text(max_size=12), st.text(max_size=12))
def test_nonsense_never_raises_and_counts_as_not_said(count: str, reset: str) -> None:
    names = [f"x-ratelimit-{word}-tokens" for word in ("remaining", "reset")]
    names += [f"anthropic-ratelimit-tokens-{word}" for word in ("remaining", "reset")]
    for remaining_name, reset_name in (names[:2], names[2:]):
        raw = [(remaining_name.encode(), count.encode()), (reset_name.encode(), reset.encode())]
        found = allowance_of(httpx2.Headers(raw))
        stripped = count.strip()
        assert found is None or found.tokens == int(stripped)
        assert found is not None or not (stripped.isascii() and stripped.isdigit() and len(stripped) < 16)


def test_headers_that_say_nothing_of_limits_give_nothing() -> None:
    assert allowance_of(httpx2.Headers({"date": "Sat, 21 Nov 2026 09:00:00 GMT"})) is None
    assert allowance_of(httpx2.Headers({"x-ratelimit-limit-requests": "60"})) is None


def test_a_count_without_a_time_and_names_in_any_case() -> None:
    headers = httpx2.Headers({"X-RateLimit-Remaining-Requests": " 3 ", "X-RateLimit-Reset-Requests": "whenever"})
    assert allowance_of(headers) == Allowance(requests=3)


def test_times_are_by_the_servers_clock() -> None:
    headers = {
        "date": "Sat, 21 Nov 2020 09:00:00 GMT",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2020-11-21T10:00:12+01:00",
    }
    assert allowance_of(httpx2.Headers(headers)) == Allowance(0, 12.0)
    del headers["date"]
    assert allowance_of(httpx2.Headers(headers)) == Allowance(0, 0.0), "long past by our clock"
    headers["anthropic-ratelimit-requests-reset"] = "2020-11-21T10:00:12"
    assert allowance_of(httpx2.Headers(headers)) == Allowance(0, None), "a time without its zone says nothing"


def test_of_several_token_limits_the_tightest_counts() -> None:
    headers = {"anthropic-ratelimit-tokens-remaining": "5000", "anthropic-ratelimit-input-tokens-remaining": "40"}
    assert allowance_of(httpx2.Headers(headers)) == Allowance(tokens=40)
