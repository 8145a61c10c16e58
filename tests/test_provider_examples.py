"""The declarations of configs/compatible-server.yaml: each is planned, and asks a scripted server what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from arena.config.schema import load_config
from arena.run.plan import plan
from judges.providers import open_provider
from judges.spec import JudgeSpec
from tests.support.llm_server import LLMServer, Reply
from tests.support.prompts import pairwise

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "configs/compatible-server.yaml").read_text(encoding="utf-8")
)["judges"]

pytestmark = pytest.mark.parametrize("name", sorted(EXAMPLES))


@pytest.fixture(autouse=True)
def keys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    declared = EXAMPLES[name]
    for variable in [declared.get("api_key_env"), *declared.get("headers_env", {}).values()]:
        if variable is not None:
            monkeypatch.setenv(variable, "sk-example")


def test_an_example_is_planned_at_a_known_cost(name: str, tmp_path: Path) -> None:
    demo = ROOT / "arena" / "demo"
    content = {
        "name": "example",
        "store": str(tmp_path / "example.db"),
        "data": {kind: str(demo / f"{kind}.csv") for kind in ("queries", "documents", "answers")},
        "judges": {name: EXAMPLES[name]},
        "pairwise": {"judges": name, "schedule": {"kind": "random", "games_per_query": 1}},
    }
    path = tmp_path / "example.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    planned = plan(load_config(path))
    assert planned.rows
    assert planned.cost_usd is not None
    assert not any("cannot be opened" in note for note in planned.notes)


async def test_an_example_asks_the_server_for_what_it_declares(name: str) -> None:
    declared = EXAMPLES[name]
    with LLMServer([Reply("{}")]) as server:
        provider = open_provider(JudgeSpec.model_validate({**declared, "base_url": server.openai_url}))
        await provider.complete(pairwise())
        await provider.close()
        (call,) = server.calls
    assert declared.get("extra_body", {}).items() <= call.body.items()
    assert call.body["model"] == declared["model"]
    assert declared.get("token_limit_field", "max_tokens") in call.body
    assert (call.body["messages"][0]["role"] == "system") is declared.get("system_role", True)
    wanted = {True: "json_schema", "object": "json_object"}[declared.get("structured_output", True)]
    assert call.body["response_format"]["type"] == wanted
    if own := declared.get("headers_env"):
        assert {call.headers[header] for header in own} == {"sk-example"}
        assert "authorization" not in call.headers
        return
    key = "sk-example" if "api_key_env" in declared else "no-key-needed"
    assert call.headers["authorization"] == f"Bearer {key}"
