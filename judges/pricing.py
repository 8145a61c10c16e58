"""What a judgment costs. An unknown price is ``None``, never zero."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

import yaml

from judges.spec import JudgeSpec, Price
from judges.types import Usage

FREE = Price(input=0, output=0, cached_input=0)
_PER_TOKEN = 1e-6
_CACHE_WRITE = 1.25
"""What Anthropic asks for tokens that its cache takes in for five minutes, in prices of plain input."""
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def price_of(spec: JudgeSpec) -> Price | None:
    """The declared price, else the packaged list's; free where nothing is called; ``None`` where not known.

    The list's prices are lower for a judge that asks in batches; a declared price is taken as what is paid.
    A server behind ``base_url`` has its own prices, so the list does not speak for it.
    """
    if spec.price is not None:
        return spec.price
    if spec.provider not in {"openai", "anthropic"}:
        return FREE
    if spec.base_url is not None:
        return None
    # Only a date is left out: gpt-4o-audio-preview or a successor such as claude-opus-4-9 has a price of its own.
    listed = _list()["models"].get(_DATE.sub("", spec.model))
    if listed is None:
        return None
    share = batch_share() if spec.in_batches else 1.0
    return Price.model_validate({kind: share * dollars for kind, dollars in listed.items()})


def batch_share() -> float:
    """What a token costs in a batch, in prices of one asked directly."""
    return float(_list()["batch"])


def list_checked() -> str:
    """The month in which the packaged list was last checked."""
    return str(_list()["checked"])


def cost_usd(usage: Usage, price: Price | None) -> float | None:
    """Dollars for ``usage``; ``None`` where the price is not known or the server named no tokens."""
    if price is None:
        return None
    if usage.input_tokens is None or usage.output_tokens is None:
        return 0.0 if price.input == price.output == 0 else None
    cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
    cached_price = price.input if price.cached_input is None else price.cached_input
    fresh = usage.input_tokens - cached - written
    sent = (fresh + _CACHE_WRITE * written) * price.input + cached * cached_price
    return (sent + usage.output_tokens * price.output) * _PER_TOKEN


@cache
def _list() -> dict[str, Any]:
    text = resources.files("judges").joinpath("prices.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded
