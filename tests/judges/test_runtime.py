"""The runtime over real connections: what is retried, asked again, given up, paid for and left alone."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from judges.errors import CAUSES, ConfigError
from judges.judge import Judge, Request, Result, Sink, Stop
from judges.spec import JudgeSpec
from judges.types import CallTrace, Document, JudgeFailure, Judgment, Usage
from tests.support.listed import Listed
from tests.support.llm_server import Call, LLMServer, Reply, Script, steady_judge
from tests.support.prompts import relevance

GOOD = Reply('{"reason": "On the subject.", "label": "very relevant"}')
WRONG = Reply('{"reason": "On the subject.", "label": "quite relevant"}')
CUT = Reply('{"reason": "On the subj', ending="length")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.pace.FIRST_WAIT_S", 0.02)


def request(number: int) -> Request:
    return Request(str(number), relevance(Document(f"d{number}", f"Text {number}.")))


def requests(number: int) -> Iterator[Request]:
    return map(request, range(number))


def judge_at(server: LLMServer, name: str = "judge", stop: Stop | None = None, **options: object) -> Judge:
    declared = {"provider": "openai", "model": "gpt-x", "base_url": server.openai_url, "timeout_s": 5, **options}
    return Judge(name, JudgeSpec.model_validate(declared), stop=stop)


class Ran(Struct):
    judge: Judge
    results: list[Result] = field(default_factory=list)
    calls: Sequence[Call] = ()

    @property
    def failures(self) -> list[JudgeFailure]:
        return [result for result in self.results if isinstance(result, JudgeFailure)]

    @property
    def only(self) -> Result:
        (result,) = self.results
        return result


async def play(judge: Judge, pending: Iterator[Request], keep: Sink) -> None:
    await Listed(pending).serve(judge, keep)
    await judge.close()


async def ran(script: Script | Sequence[Reply], pending: Iterable[Request], **options: object) -> Ran:
    """Judge all of ``pending``, and check that every call is accounted for."""
    with LLMServer(script) as server:
        done = Ran(judge_at(server, **options))

        async def keep(_request: Request, result: Result) -> None:
            done.results.append(result)

        await play(done.judge, iter(pending), keep)
        done.calls = list(server.calls)
    assert sum(result.calls for result in done.results) == len(done.calls)
    assert all(failure.cause in CAUSES and "\n" not in failure.message for failure in done.failures)
    return done


def overlap(calls: Sequence[Call], delay_s: float) -> int:
    """Most calls that were unanswered at once, where each is answered ``delay_s`` after it came."""
    return max(sum(other.at <= call.at < other.at + delay_s for other in calls) for call in calls)


async def test_a_reply_within_the_contract_is_a_judgment() -> None:
    done = await ran([GOOD], requests(1), price={"input": 1, "output": 3})
    judgment = done.only
    assert isinstance(judgment, Judgment)
    assert (judgment.judgment_id, judgment.outcome, judgment.reason) == ("0", 2, "On the subject.")
    assert (judgment.reply, judgment.model, judgment.calls, judgment.rejected) == (GOOD.text, "gpt-x-2026-11", 1, ())
    sent, written = len(done.calls[0].content) // 4, len(GOOD.text or "") // 4
    assert judgment.usage == Usage(sent, 16, written)
    assert judgment.cost_usd == pytest.approx((sent + 3 * written) / 1e6)
    assert judgment.cost_usd == done.judge.spent_usd
    assert judgment.latency_s > 0


@pytest.mark.parametrize(
    ("broken", "least_s"),
    [
        (Reply(status=429), 0),
        (Reply(status=429, headers={"Retry-After": "0.7"}), 0.7),
        (Reply(fault="reset"), 0),
        (Reply(fault="stall"), 0.4),
        (Reply(body={"error": {"message": "overloaded"}}), 0),
    ],
)
async def test_what_may_pass_is_tried_again(broken: Reply, least_s: float) -> None:
    done = await ran([broken, GOOD], requests(1), timeout_s=0.4)
    assert isinstance(done.only, Judgment)
    assert done.only.calls == 2
    assert done.calls[0].content == done.calls[1].content
    assert done.only.latency_s >= least_s


@pytest.mark.parametrize(
    ("broken", "cause"), [(Reply("busy", status=500), "server_error"), (Reply(fault="stall"), "timeout")]
)
async def test_attempts_are_bounded_and_then_a_failure(broken: Reply, cause: str) -> None:
    done = await ran(lambda call: broken, requests(2), max_attempts=2, timeout_s=0.2)
    assert len(done.calls) == 4
    assert {failure.cause for failure in done.failures} == {cause}
    assert [failure.reply for failure in done.failures] == [None, None]
    assert all("gpt-x" in failure.message or "0.2 s" in failure.message for failure in done.failures)


async def test_a_request_that_is_refused_is_not_repeated_and_stops_nobody() -> None:
    def script(call: Call) -> Reply:
        return Reply("too long", status=400) if b"Text 1." in call.content else GOOD

    done = await ran(script, requests(5), concurrency=1)
    assert len(done.calls) == 5
    assert [(failure.judgment_id, failure.cause) for failure in done.failures] == [("1", "bad_request")]
    assert done.judge.stopped is None


async def test_a_judge_that_cannot_work_stops_and_leaves_the_rest_unasked() -> None:
    pending = requests(50)
    done = await ran(lambda call: Reply("go away", status=401, delay_s=0.05), pending, concurrency=4)
    assert len(done.calls) == 4
    assert [failure.cause for failure in done.failures] == ["authentication"] * 4
    assert "\n" not in str(done.judge.stopped)
    assert "go away" in str(done.judge.stopped)
    assert done.judge.halted.is_set()
    assert next(pending).judgment_id == "4"


async def test_a_server_whose_replies_all_fail_is_up_and_not_waited_for() -> None:
    """What it may be paid for is asked for no longer than any attempt is, unlike what may be starting."""
    done = await ran(lambda call: replace(GOOD, choice={"finish_reason": "error"}), requests(20), timeout_s=5)
    assert done.judge.stopped is not None
    assert len(done.calls) <= 6 * 20
    assert {failure.cause for failure in done.failures} <= {"server_error", "stopped"}


async def test_a_judge_whose_server_stays_away_stops_after_the_longest_time_for_one_reply() -> None:
    replies = count()

    def script(call: Call) -> Reply:
        return GOOD if next(replies) < 9 else Reply("gone", status=500)

    done = await ran(script, requests(1_000_000), concurrency=2, max_attempts=1, max_retry_s=0.3)
    assert sum(isinstance(result, Judgment) for result in done.results) == 9
    assert "nothing but failures for 0.3 s: gpt-x at " in str(done.judge.stopped)
    assert "HTTP 500: gone" in str(done.judge.stopped)


async def test_a_stopped_judge_is_not_asked_again_by_requests_that_wait() -> None:
    """One request waits to be repeated while another learns that the key is wrong."""

    def script(call: Call) -> Reply:
        return Reply(status=429, headers={"Retry-After": "0.3"}) if b"Text 0." in call.content else Reply(status=401)

    done = await ran(script, requests(9), concurrency=2)
    assert len(done.calls) == 2
    assert Counter(failure.cause for failure in done.failures) == {"authentication": 1, "stopped": 1}


async def test_other_judges_go_on_when_one_stops() -> None:
    with LLMServer(lambda call: Reply(status=401)) as closed, LLMServer() as working:
        judges = {"closed": judge_at(closed, "closed"), "working": judge_at(working, "working", model="gpt-y")}
        results: Counter[tuple[str, bool]] = Counter()

        def keeping(name: str) -> Sink:
            async def keep(_request: Request, result: Result) -> None:
                results[name, isinstance(result, Judgment)] += 1

            return keep

        await asyncio.gather(*(Listed(requests(40)).serve(judge, keeping(name)) for name, judge in judges.items()))
        assert results["working", True] == 40
        assert results["closed", True] == 0
        assert len(closed.calls) <= 16
        for judge in judges.values():
            await judge.close()


async def test_a_reply_outside_the_contract_is_asked_again_with_the_reason() -> None:
    done = await ran([WRONG, Reply("Sorry, I mean:\n2"), GOOD], requests(1), price={"input": 1, "output": 1})
    judgment = done.only
    assert isinstance(judgment, Judgment)
    assert judgment.rejected == (WRONG.text, "Sorry, I mean:\n2")
    assert judgment.calls == 3
    first, second, third = (call.body["messages"] for call in done.calls)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert second[-2] == {"role": "assistant", "content": WRONG.text}
    assert "must be one of 'not relevant', 'somewhat relevant', 'very relevant'" in second[-1]["content"]
    assert "no JSON object" in third[-1]["content"]
    assert judgment.usage.input_tokens == sum(len(call.content) // 4 for call in done.calls)
    assert judgment.cost_usd == pytest.approx(done.judge.spent_usd)


@pytest.mark.parametrize(
    ("replies", "cause", "last"),
    [
        ([WRONG] * 3, "contract", WRONG.text),
        ([CUT] * 3, "truncated", CUT.text),
        ([Reply("")] * 3, "empty", ""),
        ([Reply('{"reason": "", "label": "very relevant"}', ending="tool_call")] * 3, "empty", ""),
        ([WRONG, Reply(""), CUT], "truncated", CUT.text),
        ([CUT, CUT, WRONG], "contract", WRONG.text),
    ],
    ids=["contract", "truncated", "empty", "tool call", "ends truncated", "ends outside"],
)
async def test_after_two_more_times_it_is_a_failure_with_the_reply(
    replies: Sequence[Reply], cause: str, last: str
) -> None:
    failure = (await ran(replies, requests(1))).only
    assert isinstance(failure, JudgeFailure)
    assert (failure.cause, failure.reply, failure.calls, len(failure.rejected)) == (cause, last, 3, 2)


async def test_a_whole_object_that_was_cut_off_is_not_trusted() -> None:
    cut = replace(GOOD, ending="length")
    done = await ran([cut, GOOD], requests(1))
    assert isinstance(done.only, Judgment)
    assert done.only.rejected == (GOOD.text,)
    assert "briefly" in done.calls[1].body["messages"][-1]["content"]


async def test_an_empty_reply_is_shown_to_the_judge_as_such() -> None:
    done = await ran([Reply(""), GOOD], requests(1))
    assert [message["content"] for message in done.calls[1].body["messages"][-2:]] == [
        "(no reply)",
        "That reply cannot be used: the reply was empty. Reply again, exactly in the form asked for.",
    ]


@pytest.mark.parametrize("ending", ["content_filter", "refusal"])
async def test_a_refusal_or_a_filter_is_final(ending: str) -> None:
    failure = (await ran([replace(GOOD, ending=ending)], requests(1))).only  # type: ignore[type-var]
    assert isinstance(failure, JudgeFailure)
    assert (failure.cause, failure.reply, failure.calls) == (ending, GOOD.text, 1)


@pytest.mark.parametrize("limit", [1, 16])
async def test_the_limit_of_concurrency_is_reached_and_never_passed(limit: int) -> None:
    delay_s = 0.02 + 0.006 * limit  # opening so many connections takes a while
    done = await ran(lambda call: replace(GOOD, delay_s=delay_s), requests(2 * limit + 1), concurrency=limit)
    assert overlap(done.calls, delay_s) == limit
    assert len({call.content for call in done.calls}) == len(done.calls) == 2 * limit + 1


async def test_requests_are_drawn_only_when_a_call_can_be_made() -> None:
    """A hundred thousand pending requests must not be as many prompts in memory."""
    drawn, done = count(), 0
    ahead = 0

    def pending() -> Iterator[Request]:
        nonlocal ahead
        for number in range(200):
            ahead = max(ahead, next(drawn) + 1 - done)
            yield request(number)

    async def keep(_request: Request, _result: Result) -> None:
        nonlocal done
        await asyncio.sleep(0.001)
        done += 1

    with LLMServer() as server:
        await play(judge_at(server, concurrency=8), pending(), keep)
    assert done == 200
    assert ahead == 8


async def test_whoever_keeps_results_holds_the_judge_back() -> None:
    unkept = most = 0

    async def keep(_request: Request, _result: Result) -> None:
        nonlocal unkept, most
        unkept += 1
        most = max(most, unkept)
        await asyncio.sleep(0.02)
        unkept -= 1

    with LLMServer() as server:
        await play(judge_at(server, concurrency=4), requests(20), keep)
    assert most <= 4


async def test_a_result_that_cannot_be_kept_ends_the_work() -> None:
    async def keep(_request: Request, _result: Result) -> None:
        raise OSError("disk full")

    with LLMServer() as server:
        judge = judge_at(server, concurrency=2)
        with pytest.raises(ExceptionGroup) as caught:
            await Listed(requests(50)).serve(judge, keep)
        assert caught.group_contains(OSError, match="disk full")
        assert len(server.calls) <= 4
        await judge.close()


async def test_a_stop_finishes_what_is_in_flight_and_takes_nothing_new() -> None:
    stop, results, pending = Stop(), [], requests(100)

    async def keep(_request: Request, result: Result) -> None:
        results.append(result)
        if len(results) == 5:
            stop.request()

    with LLMServer(lambda call: replace(steady_judge(call), delay_s=0.02)) as server:
        await play(judge_at(server, stop=stop, concurrency=3), pending, keep)
        assert len(server.calls) == len(results)
    assert 5 <= len(results) <= 5 + 2
    assert all(isinstance(result, Judgment) for result in results)
    assert int(next(pending).judgment_id) - len(results) < 3, "what was taken and not sent is left as it was"


PRICED = {"price": {"input": 0, "output": 1e6}}
"""A dollar per token written; ``GOOD`` has 13."""
EACH = len(GOOD.text or "") // 4


async def test_money_is_never_passed_by_more_than_what_is_in_flight() -> None:
    pending = requests(100)
    script = lambda call: replace(GOOD, delay_s=0.02)
    done = await ran(script, pending, concurrency=4, max_cost_usd=5 * EACH, **PRICED)
    assert 5 <= len(done.calls) <= 5 + 3
    assert done.judge.spent_usd == len(done.calls) * EACH
    assert done.judge.budget_spent
    assert not done.failures
    assert next(pending).judgment_id == str(len(done.calls))


async def test_replies_that_are_refused_cost_too_and_are_asked_again_next_time() -> None:
    done = await ran(lambda call: WRONG, requests(9), concurrency=1, max_cost_usd=2 * EACH, **PRICED)
    failure = done.only
    assert isinstance(failure, JudgeFailure)
    assert len(done.calls) == 2
    assert (failure.cause, failure.reply, failure.calls) == ("budget", WRONG.text, 2)


async def test_a_limit_needs_a_server_that_counts_tokens() -> None:
    script = lambda call: replace(GOOD, usage=False)
    done = await ran(script, requests(9), concurrency=1, max_cost_usd=1000, **PRICED)
    assert isinstance(done.only, Judgment)
    assert done.only.cost_usd is None
    assert "max_cost_usd cannot be enforced" in str(done.judge.stopped)
    assert len((await ran(script, requests(9), **PRICED)).calls) == 9


def test_a_limit_needs_a_price() -> None:
    spec = {"provider": "openai", "model": "x", "base_url": "http://127.0.0.1:1/v1", "max_cost_usd": 1}
    with pytest.raises(ConfigError, match=r"judges\.mine: max_cost_usd needs a 'price'"):
        Judge("mine", JudgeSpec.model_validate(spec))


async def test_a_server_that_takes_only_so_many_at_once_is_asked_no_faster_for_long() -> None:
    open_until: list[float] = []
    refused = 0

    def script(call: Call) -> Reply:
        nonlocal refused
        now = time.monotonic()
        open_until[:] = [until for until in open_until if until > now]
        if len(open_until) >= 8:
            refused += 1
            return Reply("slower", status=429)
        open_until.append(now + 0.02)
        return replace(GOOD, delay_s=0.02)

    done = await ran(script, requests(200), concurrency=64, max_attempts=12)
    assert not done.failures
    assert refused < 200, "fewer refusals than replies, though eight times too many calls are allowed"


async def test_a_pause_that_the_server_asks_for_holds_for_all_calls() -> None:
    told: list[float] = []

    def script(call: Call) -> Reply:
        if not told:
            told.append(call.at)
            return Reply("slower", status=429, headers={"Retry-After": "0.5"})
        return replace(GOOD, delay_s=0.01)

    done = await ran(script, requests(30), concurrency=3)
    assert not done.failures
    later = [call.at - told[0] for call in done.calls if call.at > told[0] + 0.1]
    assert len(later) >= 27
    assert min(later) >= 0.5


async def test_a_spent_allowance_is_waited_for_before_the_server_has_to_refuse() -> None:
    turns = count()

    def script(call: Call) -> Reply:
        left = 4 - next(turns) % 5
        headers = {"x-ratelimit-remaining-requests": str(left), "x-ratelimit-reset-requests": "300ms"}
        return replace(GOOD, headers=headers)

    done = await ran(script, requests(12), concurrency=1)
    gaps = [later.at - call.at for call, later in pairwise(done.calls)]
    assert [gap > 0.29 for gap in gaps] == [(number + 1) % 5 == 0 for number in range(11)]


async def test_limits_per_minute_hold_over_all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.pace.MINUTE_S", 0.4)
    turns = count()
    script = lambda call: Reply(status=500) if next(turns) % 3 == 0 else GOOD
    done = await ran(script, requests(20), concurrency=8, requests_per_minute=10)
    times = [call.at for call in done.calls]
    assert not done.failures
    # A busy machine sees a call late; to the millisecond, tests/judges/test_pace.py holds the window.
    assert all(later - earlier > 0.2 for earlier, later in zip(times, times[10:], strict=False))


async def test_tokens_per_minute_count_what_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls fit a minute: once their number of tokens is known, not while the longest reply has to be feared."""
    monkeypatch.setattr("judges.pace.MINUTE_S", 0.3)
    one = await ran([GOOD], requests(1))
    used = (one.only.usage.input_tokens or 0) + (one.only.usage.output_tokens or 0)
    done = await ran(lambda call: GOOD, requests(8), concurrency=8, tokens_per_minute=int(2.8 * used), max_tokens=13)
    times = [call.at for call in done.calls]
    assert all(later - earlier > 0.25 for earlier, later in zip(times, times[3:], strict=False))
    assert times[-1] - times[0] < 8 * 0.3


async def test_a_wait_beyond_the_bound_ends_the_judge_and_says_when_to_come_back() -> None:
    script = lambda call: Reply("daily limit", status=429, headers={"Retry-After": "7200"})
    done = await ran(script, requests(20), concurrency=2, max_retry_s=30)
    assert len(done.calls) <= 2
    assert {failure.cause for failure in done.failures} == {"rate_limit"}
    assert "asks to wait 7200 s" in str(done.judge.stopped)


async def test_time_spent_on_attempts_is_bounded() -> None:
    script = lambda call: Reply("busy", status=500, headers={"Retry-After": "0.3"})
    done = await ran(script, requests(1), max_attempts=50, max_retry_s=1)
    assert 2 <= len(done.calls) <= 4
    assert done.failures[0].cause == "server_error"


async def test_time_in_line_for_a_rate_limit_is_not_time_spent_on_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.pace.MINUTE_S", 0.6)
    monkeypatch.setattr("judges.pace.FIRST_WAIT_S", 0.0)
    replies = [Reply("busy", status=500), Reply("busy", status=500), GOOD]
    done = await ran(replies, requests(1), requests_per_minute=1, max_retry_s=0.5)
    assert isinstance(done.only, Judgment)
    assert done.calls[-1].at - done.calls[0].at > 1.0


async def test_a_stop_does_not_wait_for_pauses() -> None:
    """What was refused is a failure that the next run asks again; what was never sent is left."""
    stop, results = Stop(), []

    async def keep(_request: Request, result: Result) -> None:
        results.append(result)

    with LLMServer(lambda call: Reply(status=429, headers={"Retry-After": "20"})) as server:
        judge = judge_at(server, stop=stop, concurrency=3)
        work = asyncio.create_task(Listed(requests(50)).serve(judge, keep))
        while len(server.calls) < 3:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        stop.request()
        await asyncio.wait_for(work, 15)
        assert len(server.calls) == len(results) == 3
        await judge.close()
    assert {result.cause for result in results if isinstance(result, JudgeFailure)} == {"rate_limit"}


async def test_a_trace_has_every_call_and_nothing_that_was_said() -> None:
    traced: list[CallTrace] = []
    with LLMServer([Reply(status=500), WRONG, GOOD]) as server:
        price = {"input": 1, "output": 1}
        spec = {"provider": "openai", "model": "gpt-x", "base_url": server.openai_url, "price": price}
        judge = Judge("judge", JudgeSpec.model_validate(spec), trace=traced.append)
        judgment = await judge.judge(request(7))
        await judge.close()
    assert isinstance(judgment, Judgment)
    assert [(call.call, call.reask, call.cause, call.finish) for call in traced] == [
        (1, 0, "server_error", None),
        (2, 0, None, "stop"),
        (3, 1, None, "stop"),
    ]
    assert {call.judgment_id for call in traced} == {"7"}
    assert sum(call.cost_usd or 0 for call in traced) == pytest.approx(judgment.cost_usd)
    assert "Text 7" not in repr(traced)
    assert "subject" not in repr(traced)
    assert len(judge.latencies_s) == 2
