"""A key is taken out of a text however a server spells it, and nothing else is."""

from __future__ import annotations

import base64
import json
import string
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges import masking
from judges.masking import keep_secret, masked

KEY = "sk-proj-Plant3dMaskedKey/With+Signs_0123456789"


@pytest.fixture(autouse=True, scope="module")
def kept() -> Iterator[None]:
    """Only the keys of this module, and those of others again afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masking, "_keys", {})
        keep_secret(KEY, "hunter2pass", "ollama", "lm-studio")
        yield


def in_parts(separator: str) -> str:
    return separator.join(KEY[at : at + 7] for at in range(0, len(KEY), 7))


def entities(template: str) -> str:
    return "".join(template.format(ord(letter)) for letter in KEY)


SPELLINGS = {
    "raw": KEY,
    "slash escaped": KEY.replace("/", "\\/"),
    "dash escaped": KEY.replace("-", "\\u002d"),
    "each letter escaped": entities("\\u{0:04x}"),
    "escaped twice": entities("\\\\u{0:04X}"),
    "bytes of Python": entities("\\x{0:02x}"),
    "for an address": quote(KEY, safe=""),
    "for an address, twice": quote(quote(KEY, safe=""), safe=""),
    "each letter for an address": entities("%{0:02X}"),
    "HTML": entities("&#{0};"),
    "HTML in hexadecimal": entities("&#x{0:x};"),
    "HTML, twice": entities("&amp;#{0};"),
    "HTML by name": KEY.replace("/", "&sol;").replace("+", "&plus;"),
    "HTML within JSON": json.dumps(entities("&#{0};")).strip('"').replace("&", "\\u0026"),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64 of a header": base64.b64encode(f"Bearer {KEY}, yes".encode()).decode(),
    "base64 of a user's": base64.b64encode(f":{KEY}".encode()).decode(),
    "base64 for an address": base64.urlsafe_b64encode(f"me:{KEY}".encode()).decode(),
    "base64 in lines": base64.encodebytes(KEY.encode() * 2).decode(),
    "hexadecimal": KEY.encode().hex(" "),
    "upper case": KEY.upper(),
    "lower case": KEY.lower(),
    "full width": "".join(chr(ord(letter) + 0xFEE0) for letter in KEY),
    "in lines": in_parts("\n"),
    "in escaped lines": in_parts("\\n"),
    "in blanks": " ".join(KEY),
    "with characters of no width": "\u200b".join(KEY),
    "with soft hyphens and joiners": in_parts("\u00ad\u2060"),
    "starred out": f"{KEY[:9]}************{KEY[-4:]}",
    "dotted out": f"{KEY[:8]}...{KEY[-3:]}",
    "starred out to the end": f"{KEY[:11]}*******",
    "its beginning": KEY[:20],
    "its end": KEY[-16:],
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_of_a_key_is_masked(spelling: str) -> None:
    text = masked(f"They say: {spelling} is yours.")
    assert text.startswith("They say: ")
    assert text.endswith(" is yours.")
    assert "***" in text
    for part in (KEY[:12], KEY[-8:], spelling[len(spelling) // 3 : 2 * len(spelling) // 3]):
        assert part not in text


@pytest.mark.parametrize(
    "text",
    [
        "The key has the form sk-proj-... and stands in OPENAI_API_KEY.",
        "Run ollama, or lm-studio with 2 models.",
        'He said \\"A\\" is 40 % better & shorter,\\nthen 50%25 &amp; done \\u00e9.',
        "Hunter 2 pass",
        "",
        "0123456789",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert masked(text) == text


def test_a_short_key_is_masked_as_it_is() -> None:
    assert masked("password hunter2pass, or hunter2\\u0070ass") == "password ***, or ***"


@pytest.mark.parametrize("stand_in", ["00000000-0000-0000-0000-000000000000", "sk-test-key-000000000000", "1" * 16])
def test_a_stand_in_of_one_digit_masks_no_numbers(stand_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_keys", {})
    keep_secret(stand_in)
    numbers = '{"score": 0.8500000000000001, "share": 0.11111111111111111, "sum": 1000000000000}'
    assert masked(numbers) == numbers


def test_a_reply_stays_json() -> None:
    reply = json.dumps({"reason": f"key {KEY}, \u00e9", "verdict": "A"}).replace("-", "\\u002d")
    assert json.loads(masked(reply)) == {"reason": "key ***, \u00e9", "verdict": "A"}


@given(st.text(string.printable + "éß漢\u200b", max_size=60), st.text(string.printable, max_size=60))
def test_what_stands_around_a_key_stays(before: str, after: str) -> None:
    text = masked(f"{before} {KEY} {after}")
    assert text.startswith(f"{before} ")
    assert text.endswith(f" {after}")
    assert KEY not in text


def test_rows_of_backslashes_cost_no_more_than_other_text() -> None:
    row = "\\" * 200_000
    started = time.process_time()
    assert masked(f"{row} \\x41 {KEY}") == f"{row} \\x41 ***"
    assert time.process_time() - started < 5  # looking at each of them anew takes hours
