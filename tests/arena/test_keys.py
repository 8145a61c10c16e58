"""Keys are planted, everything is run against servers that give them away, and every byte left behind is searched."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from arena.store import Store
from tests.conftest import CLI, Ended
from tests.support.children import command, ended, start
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import write_data
from ui.data import LOCATION_VARIABLE
from ui.roles import EVERYBODY_VARIABLE

KEYS = {
    "OPENAI_API_KEY": "sk-proj-Plant3dOpenAIKey/With+Signs_0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-Plant3dAnthropicKey-abcdefghijklmnop",
    "GATEWAY_TOKEN": "gwtok.Plant3dGatewayKey==9876543210",
}
PAGE = Path(__file__).parents[2] / "ui/app.py"

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
pairwise: {{judges: [first, second, third, shut, moved, away], documents: {{include: false}}}}
criteria: {{judge: third, names: [clear]}}
ratings: {{min_coverage: 0, bootstrap: {{samples: 20}}}}
"""


def traces(key: str) -> list[bytes]:
    """What gives a key away: itself, its beginning and end as vendors mask it, and the usual encodings."""
    encoded = [base64.b64encode(key.encode()), base64.b64encode(f":{key}".encode()), key.encode().hex().encode()]
    return [key.encode(), key[:10].encode(), key[-8:].encode(), *(code.rstrip(b"=") for code in encoded)]


def shown_key(call: Call) -> str:
    return call.headers.get("x-api-key") or call.headers["authorization"].removeprefix("Bearer ")


class Telltale:
    """A server that answers in many ways and puts the caller's key into all of them."""

    def __init__(self, elsewhere: str) -> None:
        self.elsewhere = elsewhere

    def __call__(self, call: Call) -> Reply:
        key, model = shown_key(call), call.body["model"]
        masked = f"{key[:10]}************{key[-8:]}"
        if model == "shut":
            return Reply(status=401, text=f"Incorrect API key provided: {masked}, sent as Bearer {key}.")
        if model in {"moved", "away"}:
            return Reply(status=307, headers={"Location": f"{self.elsewhere}{call.path}"}, text=f"not here, {key}")
        asked = next(message for message in call.body["messages"] if message["role"] == "user")
        kind = zlib.crc32(str(asked).encode()) % 8  # the same when asked again
        told = f"{'you know, ' * 20}your key is {key}, also {masked}\nand {key}"
        return {
            0: Reply(status=500, text=told, headers={"x-echo": key, "retry-after-ms": "1"}),
            1: Reply(status=400, text=told),
            2: Reply(body={"error": {"message": told, "code": key}}),
            3: Reply(text=f"The key {key} is no verdict."),
            4: Reply(body={"key": key, "choices": key, "content": key}),
            5: Reply(fault="garbage"),
        }.get(kind, steady_judge(call))


class Everything:
    """All that anybody said or wrote; kept as bytes until the end."""

    def __init__(self) -> None:
        self.said: dict[str, bytes] = {}

    def __call__(self, name: str, *texts: str) -> None:
        self.said[name] = self.said.get(name, b"") + "".join(texts).encode()

    def givers(self) -> list[str]:
        """Where a key can be found."""
        return [
            f"{place}: {variable}"
            for place, content in self.said.items()
            for variable, key in KEYS.items()
            if any(trace in content for trace in traces(key))
        ]


@pytest.fixture
def elsewhere() -> Iterator[LLMServer]:
    """Another machine, to which the first one redirects."""
    with LLMServer(steady_judge) as other:
        yield other


def test_planted_keys_are_nowhere(
    tmp_path: Path, cli: CLI, monkeypatch: pytest.MonkeyPatch, elsewhere: LLMServer
) -> None:
    found = Everything()
    write_data(tmp_path, [f"q{number}" for number in range(8)])
    config = tmp_path / "keys.yaml"
    monkeypatch.chdir(tmp_path)
    for variable, key in KEYS.items():
        monkeypatch.setenv(variable, key)

    def said(status: int, run: Ended, *arguments: object) -> str:
        found(" ".join(map(str, arguments)), run.out, run.err)
        assert run.status == status, run
        return run.out + run.err

    def ran(status: int, *arguments: object) -> str:
        return said(status, cli(*arguments), *arguments)

    def ran_alone(status: int, *arguments: object, before: str = "") -> str:
        """In a process of its own, with all that an interpreter says when it ends."""
        return said(status, ended(start(command(*arguments, before=before), tmp_path, KEYS)), *arguments)

    with LLMServer(Telltale(elsewhere.anthropic_url)) as server:
        config.write_text(FILE.format(openai=server.openai_url, anthropic=server.anthropic_url))
        ran(0, "plan", config)
        ran(0, "doctor", config)
        summary = ran_alone(3, "run", config)
        causes = ran(0, "failures", config, "--json")
        ran(3, "run", config, "--retry-failed", "--json")
        sent = b"".join(call.head for call in server.calls)
        crash = "import arena.store as s; s.Store.save = lambda *_: exec('raise RuntimeError(\"planted\")')"
        assert "Traceback" in ran_alone(1, "run", config, "--retry-failed", before=crash)
    assert all(key.encode() in sent for key in KEYS.values()), "each key was used"
    assert "judge 'shut' stopped" in summary
    ran(0, "failures", config)
    for cause in ("authentication", "server_error", "bad_request", "contract"):
        assert f'"cause": "{cause}"' in causes
    for form in ("table", "json", "csv", "md", "html"):
        ran(0, "leaderboard", config, "--format", form)
    for what in ("verdicts", "criteria", "data"):
        ran(0, "export", config, tmp_path / f"out-{what}.csv", "--what", what)

    found("elsewhere", *(call.head.decode("latin-1") for call in elsewhere.calls))
    page(tmp_path / "keys.db", monkeypatch, found)  # its environment has the keys
    with closing(Store.open(str(tmp_path / "keys.db"))) as store:
        found("settings", repr(store.settings("keys")))
        store.extend("keys", [])  # leaves a write-ahead log beside the store while it is open
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert {"keys.db", "keys.db-wal"} <= {file.name for file in files}
        for file in files:
            found.said[file.name] = file.read_bytes()
    assert found.givers() == []


def page(store: Path, monkeypatch: pytest.MonkeyPatch, found: Everything) -> None:
    """Every element of the web page."""
    monkeypatch.setenv(LOCATION_VARIABLE, str(store))
    monkeypatch.setenv(EVERYBODY_VARIABLE, "editor")
    drawn = AppTest.from_file(str(PAGE))
    drawn.run(timeout=60)
    assert not drawn.exception
    for element in drawn.main:
        found("page", repr(element), str(getattr(element, "proto", "")), str(getattr(element, "value", "")))
    for frame in drawn.dataframe:
        found("page", frame.value.to_csv())
    assert len(found.said["page"]) > 1000


def test_the_search_finds_a_key_that_is_there() -> None:
    """The test above can fail: each trace of each key is found where it is planted."""
    for key in KEYS.values():
        for trace in traces(key):
            found = Everything()
            found("place", f"before {trace.decode()} after")
            assert len(found.givers()) == 1
