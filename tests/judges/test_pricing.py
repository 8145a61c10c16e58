"""What calls cost, and when that is not known."""

from __future__ import annotations

import pytest

from judges.spec import FREE, JudgeSpec, Price, cost_usd, price_of
from judges.types import Usage

PRICE = Price(input=2, output=10, cached_input=0.5)


def price(model: str, **options: object) -> Price | None:
    return price_of(JudgeSpec.model_validate({"provider": "openai", "model": model, **options}))


def test_listed_models_have_a_price_with_and_without_a_date() -> None:
    listed = price("gpt-4o-mini")
    assert listed is not None
    assert price("gpt-4o-mini-2024-07-18") == listed != price("gpt-4o")
    assert price("claude-3-5-haiku-latest", provider="anthropic") == price("claude-3-5-haiku-20241022")


@pytest.mark.parametrize("model", ["gpt-4", "gpt-4o-audio-preview", "claude-opus-4-9", "gpt-4o-2024", "my-gpt-4o"])
def test_a_model_that_only_begins_like_a_listed_one_has_no_known_price(model: str) -> None:
    assert price(model) is None


def test_the_list_does_not_speak_for_other_servers() -> None:
    assert price("gpt-4o", base_url="http://127.0.0.1:8000/v1") is None


def test_a_declared_price_comes_first() -> None:
    assert price("gpt-4o", price={"input": 1, "output": 2}) == Price(input=1, output=2)


def test_what_runs_here_is_free() -> None:
    assert price_of(JudgeSpec(provider="lexical")) == FREE
    assert cost_usd(Usage(), FREE) == 0
    assert cost_usd(Usage(), Price(input=0, output=0)) == 0, "declared so, by a server that counts no tokens"


def test_cached_input_is_priced_as_such() -> None:
    usage = Usage(input_tokens=1_000_000, cached_input_tokens=400_000, output_tokens=100_000)
    assert cost_usd(usage, PRICE) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)
    assert cost_usd(usage, Price(input=2, output=10)) == pytest.approx(2 + 1)
    assert cost_usd(Usage(1_000_000, None, 0), PRICE) == pytest.approx(2)


def test_what_a_cache_takes_in_costs_a_quarter_more() -> None:
    usage = Usage(1_000_000, 400_000, 100_000, cache_write_tokens=200_000)
    assert cost_usd(usage, PRICE) == pytest.approx(0.4 * 2 + 0.2 * 2 * 1.25 + 0.4 * 0.5 + 0.1 * 10)
    assert (usage + usage).cache_write_tokens == 400_000


def test_an_unknown_cost_is_not_zero() -> None:
    assert cost_usd(Usage(1, 0, 1), None) is None
    assert cost_usd(Usage(1, 0, None), PRICE) is None
    assert cost_usd(Usage(), PRICE) is None
