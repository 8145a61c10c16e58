"""Models that write queries, as a scripted server plays them, and folders of documents for them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from arena.stages.queries_config import SynthConfig
from tests.support.llm_server import Call, Reply

_FENCED = re.compile(r"<<<(?P<name>[^\n>]*) (?P<mark>[0-9a-f]{12})>>>\n(?P<text>.*?)\n<<<end (?P=mark)>>>", re.DOTALL)


def texts_of(call: Call) -> dict[str, str]:
    """The texts of a prompt by the names of their marks."""
    return {match["name"]: match["text"] for match in _FENCED.finditer(call.body["messages"][-1]["content"])}


def ten_each(call: Call) -> Reply:
    """Ten queries of the model's own about each passage; a passage answers a query that ends in an even number."""
    texts, model = texts_of(call), call.body["model"]
    if "query" in texts:
        answered = int(texts["query"].rstrip("?")[-1]) % 2 == 0
        return Reply(json.dumps({"reason": f"{model} looked.", "answerable": "yes" if answered else "no"}))
    subject = texts["passage"].split()[-1]
    queries = [f"What does {model} need of {subject} in case {number}?" for number in range(10)]
    return Reply(json.dumps({"queries": queries}))


def write_documents(folder: Path, number: int) -> Path:
    """So many files of one passage each, whose last words differ."""
    documents = folder / "documents"
    documents.mkdir()
    for place in range(number):
        text = " ".join(f"{word}{place}" for word in ("alpha", "beta", "gamma", "delta"))
        (documents / f"d{place:03}.md").write_text(f"# Document {place}\n\nAll about {text} subject{place}\n")
    return documents


def synth_config(folder: Path, url: str | None, models: list[str], **section: Any) -> SynthConfig:
    """A configuration over ``folder/documents`` with an openai judge for each model, or the offline baseline."""
    declared: dict[str, Any] = {"baseline": {"provider": "lexical"}}
    for model in [*models, *section.pop("judges", ())] if url is not None else ():
        declared[model] = {"provider": "openai", "model": model, "base_url": url, "api_key_env": "KEY", "timeout_s": 20}
    content = {
        "name": "test",
        "store": str(folder / "synth.db"),
        "judges": declared,
        "synth": {
            "documents": str(folder / "documents"),
            "models": models,
            "out": str(folder / "queries.csv"),
            **section,
        },
    }
    return SynthConfig.model_validate(content)
