"""A key is taken out of a text however a server spells it, and nothing else is."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import time
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges import masking
from judges.masking import keep_secret, key_in, looks_like_key, masked
from tests.conftest import ROOT

KEY = "sk-proj-Plant3dMaskedKey/With+Signs_0123456789"


@pytest.fixture(autouse=True, scope="module")
def kept() -> Iterator[None]:
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
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64 of a header": base64.b64encode(f"Bearer {KEY}, yes".encode()).decode(),
    "base64 of a user's": base64.b64encode(f":{KEY}".encode()).decode(),
    "base64 for an address": base64.urlsafe_b64encode(f"me:{KEY}".encode()).decode(),
    "base64 in lines": base64.encodebytes(KEY.encode() * 2).decode(),
    "hexadecimal": KEY.encode().hex(" "),
    "upper case": KEY.upper(),
    "lower case": KEY.lower(),
    "in lines": in_parts("\n"),
    "in escaped lines": in_parts("\\n"),
    "in blanks": " ".join(KEY),
    "with characters of no width": "\u200b".join(KEY),
    "with soft hyphens and joiners": in_parts("\u00ad\u2060"),
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


SHORT = ("hunter2p", 'a/b"c+d=7', "tok-2026-abcdef", "Sw0rdfish!")
LONG = (KEY, "0123456789abcdef0123456789abcdef", "agk_Plant3dAgentKey-zyxwvut-5647382910", "Zq8vN1xT4mB7cW2k")
SPELL: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "JSON": lambda part: json.dumps(part).strip('"').replace("/", "\\/"),
    "JSON, each letter": lambda part: "".join(f"\\u{ord(letter):04x}" for letter in part),
    "address": lambda part: quote(part, safe=""),
    "address, each letter": lambda part: "".join(f"%{ord(letter):02X}" for letter in part),
    "base64": lambda part: base64.b64encode(part.encode()).decode(),
    "base64 behind one": lambda part: base64.b64encode(f".{part},".encode()).decode(),
    "base64 behind two": lambda part: base64.urlsafe_b64encode(f":;{part}??".encode()).decode(),
    "hexadecimal": lambda part: part.encode().hex(),
    "hexadecimal, upper case": lambda part: part.encode().hex().upper(),
}
SPELLED = pytest.mark.parametrize("spell", SPELL.values(), ids=SPELL)


@SPELLED
@pytest.mark.parametrize("key", SHORT)
def test_a_short_key_is_masked_in_each_spelling(
    monkeypatch: pytest.MonkeyPatch, key: str, spell: Callable[[str], str]
) -> None:
    monkeypatch.setattr(masking, "_keys", {})
    keep_secret(key)
    assert re.fullmatch(r"<.{0,4}\*\*\*.{0,6}>", masked(f"<{spell(key)}>"))


@SPELLED
@pytest.mark.parametrize("key", LONG)
def test_every_part_of_twelve_characters_is_masked_in_each_spelling(
    monkeypatch: pytest.MonkeyPatch, key: str, spell: Callable[[str], str]
) -> None:
    monkeypatch.setattr(masking, "_keys", {})
    keep_secret(key)
    for size in (12, 16, 26):
        for at in range(len(key) - size + 1):
            part = key[at : at + size]
            if sum(map(str.isalnum, part)) >= 9:
                assert re.fullmatch(r"<.{0,6}\*\*\*.{0,6}>", masked(f"<{spell(part)}>")), part


def test_what_a_server_stars_out_is_no_part_of_a_key() -> None:
    text = f"Incorrect key {KEY[:9]}******{KEY[-4:]}, or {KEY[:8]}...{KEY[-3:]}."
    assert masked(text) == text


@pytest.mark.parametrize(
    "name", ["team-production-key-2026-xyz9", "anna.kowalska.1984", "correct-horse-battery-staple"]
)
def test_a_key_made_of_words_masks_no_sentence(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(masking, "_keys", {})
    keep_secret(name)
    text = "The team production key of Anna Kowalska: correct horse, battery staple; 19 843 of 2026."
    assert masked(text) == text
    assert masked(f"{text} {name}.") == f"{text} ***."


def test_the_handbook_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand keys of each length against ordinary text, tables of numbers and hashes."""
    monkeypatch.setattr(masking, "_keys", {})
    draws = random.Random(4)
    letters = string.ascii_letters + string.digits
    keep_secret(*("".join(draws.choices(letters, k=8 + number % 40)) for number in range(1000)))
    numbers = "\n".join(f"{draws.random()},{draws.randrange(10**12)},{draws.randbytes(16).hex()}" for _ in range(500))
    for text in (*(page.read_text() for page in (ROOT / "arena/demo/handbook").glob("*.md")), numbers, "0" * 1000):
        assert masked(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-Plant3dKey0123456789",
        "sk-planted-0123456789",
        "hf_abcdefghijklmnop123456",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "Bearer abcdefgh12",
        "token=xai-0123456789abcdef",
        "-----BEGIN PRIVATE KEY-----",
        "http://me:planted@proxy:3128",
        "https://host/v1?api_key=planted",
        "gLq7Wd2Zk9XbT4mVnR8sJ1cYp6HaE3uF",
    ],
)
def test_what_looks_like_a_key(text: str) -> None:
    assert looks_like_key(text)


@pytest.mark.parametrize(
    "text",
    [
        "/models/Llama-3.3-70B-Instruct-AWQ",
        "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8",
        "http://127.0.0.1:8000/v1",
        "https://gateway.example.com/v1/0123456789abcdef0123456789abcdef/openai?api-version=2026-01-01",
        "hf_transfer==0.1.9",
        "sk-video==1.1.10",
        "docker.io/team/judge@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "asst_4kzJQ2mN8vXcB1yLw7RtEe0P",
        "Write one sentence about password managers; the key is to be brief.",
        "OPENAI_API_KEY",
    ],
)
def test_what_does_not_look_like_a_key(text: str) -> None:
    assert not looks_like_key(text)


def test_where_a_key_is() -> None:
    assert key_in({"n": 1, "a": ["none", {"b": "gsk_0123456789abcdef"}]}) == ("a", "1", "b")
    assert key_in({"sk-0123456789abcdef": "a name", "none": None, "share": 0.5, "list": []}) is None


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
