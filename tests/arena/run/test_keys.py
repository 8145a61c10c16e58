"""Keys are planted, everything is run against servers that give them away, and every byte left behind is searched."""

from __future__ import annotations

import base64
import html
import json
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

import judges.batches
from arena.store import Store
from judges import masking
from judges.types import Judgment, Task
from tests.conftest import CLI, Ended
from tests.support.agents import http_agent
from tests.support.agents import write_config as write_agents
from tests.support.children import begin, ended
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.pages import page as opened
from tests.support.pages import sent as page_sent
from tests.support.scripted_judges import steady_text
from tests.support.tournaments import write_data
from ui.access import EVERYBODY_VARIABLE
from ui.data import LOCATION_VARIABLE

KEYS = {
    "OPENAI_API_KEY": "sk-proj-Plant3dOpenAIKey/With+Signs_0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-Plant3dAnthropicKey-abcdefghijklmnop",
    "GATEWAY_TOKEN": "gwtok.Plant3dGatewayKey==9876543210",
    "AGENT_TOKEN": "agk_Plant3dAgentKey-zyxwvut-5647382910",
    "AZURE_KEY": "Plant3dAzureKey0f7c2a9e84b6d1358842",
}

FILE = """
name: keys
store: keys.db
data: {{queries: queries.csv, documents: documents.csv, answers: answers.csv}}
judges:
  first: {{provider: openai, model: telling, base_url: '{openai}', max_attempts: 2}}
  second: {{provider: anthropic, model: telling, base_url: '{anthropic}', max_attempts: 2}}
  third: {{provider: openai, model: telling, base_url: '{openai}', api_key_env: GATEWAY_TOKEN, max_attempts: 2}}
  shut: {{provider: openai, model: shut, base_url: '{openai}', api_key_env: GATEWAY_TOKEN, max_attempts: 1}}
  moved: {{provider: anthropic, model: moved, base_url: '{anthropic}', max_attempts: 1}}
  away: {{provider: openai, model: away, base_url: '{openai}', max_attempts: 1}}
  header: {{provider: openai, model: header, base_url: '{openai}', max_attempts: 2, headers_env: {{k: AZURE_KEY}}}}
  sent: {{provider: openai, model: sent, base_url: '{openai}', mode: batch, max_attempts: 1}}
  posted: {{provider: anthropic, model: posted, base_url: '{anthropic}', mode: batch, max_attempts: 1}}
pairwise: {{judges: [first, second, third, shut, moved, away, header, sent, posted], documents: {{include: false}}}}
criteria: {{judge: third, names: [clear]}}
ratings: {{min_coverage: 0, bootstrap: {{samples: 20}}}}
"""


SPELLED: tuple[Callable[[str], str], ...] = (
    str,
    lambda key: key.replace("/", "\\/"),
    lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    lambda key: json.dumps(json.dumps("".join(f"\\u{ord(letter):04x}" for letter in key))),
    lambda key: quote(quote(key, ""), ""),
    lambda key: "".join(f"&amp;#x{ord(letter):x};" for letter in key),
    lambda key: base64.b64encode(f"Bearer {key}.".encode()).decode(),
    str.upper,
    lambda key: "\n".join(re.findall(".{1,5}", key)),
    " \u200b".join,
    lambda key: key[9:26],
    lambda key: key[12:30].encode().hex(),
)


def traces(key: str) -> list[bytes]:
    """What gives a key away: twelve characters of it anywhere, and the usual encodings."""
    encoded = [base64.b64encode(key.encode()), base64.b64encode(f":{key}".encode()), key.encode().hex().encode()]
    parts = [key[at : at + 12].encode() for at in range(len(key) - 11)]
    return [*parts, *(code.rstrip(b"=") for code in encoded), encoded[-1][24:48]]


def letters(content: bytes) -> str:
    """All letters and digits of a content in lower case, its escapes decoded: what somebody can make of it by hand."""
    text = unicodedata.normalize("NFKC", content.decode("utf-8", "replace"))
    for _ in range(4):
        text = re.sub(r"\\+[nrt]", " ", text)
        hexadecimal = r"\\+u00([0-9a-f]{2})|%(?:25)*([0-9a-f]{2})"
        text = re.sub(hexadecimal, lambda found: chr(int(found[1] or found[2], 16)), text, flags=re.IGNORECASE)
        text = html.unescape(text)
    return re.sub("[^a-z0-9]+", "", text.lower())


def shown_key(call: Call) -> str:
    if not call.head:
        return KEYS["OPENAI_API_KEY" if "chat" in call.path else "ANTHROPIC_API_KEY"]
    others = (call.headers.get(name) for name in ("k", "x-agent-key", "x-api-key"))
    given = next(filter(None, others), None) or call.headers["authorization"]
    return given.removeprefix("Bearer ")


def escaped(body: Mapping[str, Any]) -> bytes:
    """Valid JSON in which a plain search does not find the key."""
    return json.dumps(body).replace("/", "\\/").replace("-", "\\u002d").encode()


class Telltale:
    """A server that answers in many ways and puts the caller's key into all of them."""

    def __init__(self, elsewhere: str) -> None:
        self.elsewhere = elsewhere

    def __call__(self, call: Call) -> Reply:
        reply = self.scripted(call)
        return replace(reply, raw=escaped) if zlib.crc32(call.content) % 2 else reply

    def scripted(self, call: Call) -> Reply:
        key = shown_key(call)
        told = f"{'you know, ' * 20}your key is {key}, also {' and '.join(spell(key) for spell in SPELLED)}"
        if "question" in call.body:
            return self.answered(call, told)
        model = call.body["model"]
        if model == "shut":
            return Reply(status=401, text=f"Incorrect API key provided: {key[:10]}*****{key[-8:]}, Bearer {key}.")
        if model in {"moved", "away"}:
            return Reply(status=307, headers={"Location": f"{self.elsewhere}{call.path}"}, text=f"not here, {key}")
        asked = next(message for message in call.body["messages"] if message["role"] == "user")
        kind = zlib.crc32(str(asked).encode()) % 8  # the same when asked again
        return {
            0: Reply(status=500, text=told, headers={"x-echo": key, "retry-after-ms": "1"}),
            1: Reply(status=400, text=told),
            2: Reply(body={"error": {"message": told, "code": key}}),
            3: Reply(text=f"The key {told} is no verdict."),
            4: Reply(body={"key": key, "choices": key, "content": key}),
            5: Reply(fault="garbage"),
        }.get(kind, Reply(text=self.argued(call, told)))

    def argued(self, call: Call, told: str) -> str:
        reply = json.loads(steady_text(call.body))
        said = {
            name: f"{value} {told}" if name in {"reason", "explanation"} else value for name, value in reply.items()
        }
        assert said != reply
        return json.dumps(said)

    def answered(self, call: Call, told: str) -> Reply:
        number = int(call.body["question"].removeprefix("What is q").removesuffix("?"))
        if number < 2:
            return Reply(status=(500, 400)[number], text=told)
        pages = [{"id": f"{told} {page}", "text": told, "title": told} for page in range(2)]
        return Reply(body={"answer": f"As {told}", "found": pages, "tokens": 3})


class Everything:
    """Every byte that a program printed, stored or sent."""

    def __init__(self) -> None:
        self.said: dict[str, bytes] = {}

    def __call__(self, name: str, *texts: str) -> None:
        self.said[name] = self.said.get(name, b"") + "".join(texts).encode()

    def givers(self) -> list[str]:
        plain = {place: letters(content) for place, content in self.said.items()}
        return [
            f"{place}: {variable}"
            for place, content in self.said.items()
            for variable, key in KEYS.items()
            if any(trace in content for trace in traces(key)) or letters(key.encode()) in plain[place]
        ]


@pytest.fixture
def elsewhere() -> Iterator[LLMServer]:
    with LLMServer(steady_judge) as other:
        yield other


def test_planted_keys_are_nowhere(
    tmp_path: Path, cli: CLI, monkeypatch: pytest.MonkeyPatch, elsewhere: LLMServer
) -> None:
    found = Everything()
    write_data(tmp_path, [f"q{number}" for number in range(4)])
    config = tmp_path / "keys.yaml"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(masking, "_keys", {})
    monkeypatch.setattr(judges.batches, "_COLLECT_S", 0.1)
    monkeypatch.setattr(judges.batches, "_LEAST_S", 0.05)
    for variable, key in KEYS.items():
        monkeypatch.setenv(variable, key)

    def said(status: int, run: Ended, *arguments: object) -> str:
        found(" ".join(map(str, arguments)), run.out, run.err)
        assert run.status == status, run
        return run.out + run.err

    def ran(status: int, *arguments: object) -> str:
        return said(status, cli(*arguments), *arguments)

    with LLMServer(Telltale(elsewhere.anthropic_url)) as server:
        config.write_text(FILE.format(openai=server.openai_url, anthropic=server.anthropic_url))
        ran(0, "plan", config)
        ran(0, "doctor", config)
        summary = ran(3, "run", config, "--log-json", "trace.jsonl")
        causes = ran(0, "failures", config, "--format", "json")
        ran(3, "run", config, "--retry-failed", "--format", "json")
        ran(0, "batches", config)
        # In a process of its own, with all that an interpreter says when it ends.
        crash = "import arena.store as s; s.Store.save = lambda *_: exec('raise RuntimeError(\"planted\")')"
        again = "run", config, "--retry-failed", "--stage", "criteria"
        crashed = ended(begin(*again, folder=tmp_path, keys=KEYS, before=crash))
        assert "Traceback" in said(1, crashed, *again)
        asked = write_agents(tmp_path, agents_at(f"http://127.0.0.1:{server.port}"), store="keys.db")
        ran(3, "run", asked, "--log-json", "trace.jsonl")
        sent = b"".join(call.head for call in server.calls)
    assert all(key.encode() in sent for key in KEYS.values()), "each key was used"
    assert "judge 'shut' stopped" in summary
    for cause in ("authentication", "server_error", "bad_request", "contract"):
        assert f'"cause": "{cause}"' in causes
    for file, name in ((config, "keys"), (asked, "asked")):
        ran(0, "failures", file)
        ran(0, "export", "data", file, tmp_path / f"out-{name}.csv")
        for form in ("table", "json", "html"):
            ran(0, "leaderboard", file, "--format", form)
    for what in ("verdicts", "criteria"):
        ran(0, "export", what, config, tmp_path / f"out-{what}.csv")
    ran(0, "report", config)

    found("elsewhere", *(call.head.decode("latin-1") for call in elsewhere.calls))
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "keys.db"))
    monkeypatch.setenv(EVERYBODY_VARIABLE, "editor")
    for view in ("leaderboard", "games", "runs", "queries"):  # its environment has the keys
        found("page", page_sent(opened(view)))
    assert len(found.said["page"]) > 1000
    with closing(Store.open(str(tmp_path / "keys.db"))) as store:
        found("settings", repr(store.settings("keys")))
        kept = store.outcomes("keys", Task.PAIRWISE)
        assert any("***" in result.reason for _, result in kept if isinstance(result, Judgment)), "a reply held a key"
        assert "***" in store.dataset("asked").answers["q2", "echo"].text
        store.extend("keys", [])  # leaves a write-ahead log beside the store while it is open
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert {"keys.db", "keys.db-wal", "trace.jsonl", "report.html"} <= {file.name for file in files}
        for file in files:
            found.said[file.name] = file.read_bytes()
    assert found.givers() == []


def agents_at(url: str) -> dict[str, Any]:
    echo = http_agent(f"{url}/echo", headers_env={"X-Agent-Key": "AGENT_TOKEN"})
    chat = {"answer": "answer", "documents": "found"}
    request = {"question": "{query}"}
    bearer = {"kind": "endpoint", "base_url": url, "model": "agent", "api_key_env": "AGENT_TOKEN"}
    return {"echo": echo, "chat": {**bearer, "request": request, "mapping": chat, "max_attempts": 1}}


def test_the_search_finds_a_key_that_is_there() -> None:
    """The test above can fail: each trace of each key is found where it is planted."""
    for key in KEYS.values():
        for trace in traces(key):
            found = Everything()
            found("place", f"before {trace.decode()} after")
            assert len(found.givers()) == 1
