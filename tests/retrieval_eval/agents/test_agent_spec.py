"""Declarations of agents: what is refused, and how that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from judges.errors import ConfigError
from judges.sections import Section, parse_section
from retrieval_eval.agents.spec import AgentSpec, judges_of_agents, needs_corpus

HTTP = "kind: http, url: 'https://a/b', request: {q: '{query}'}, mapping: {answer: a}"


class File(Section):
    agents: dict[str, AgentSpec]


def load(text: str, folder: Path | None = None) -> AgentSpec:
    return parse_section(f"agents: {{mine: {{{text}}}}}", "file.yaml", File, ConfigError, folder=folder).agents["mine"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: rga", "kind: must be rag,"),
        ("kind: rag, retreiver: dense", "unknown key 'retreiver'; did you mean 'retriever'?"),
        ("kind: rag, queries: 3", "kind 'rag' has no use for 'queries', which goes with 'fusion'"),
        ("kind: rag, url: 'https://a'", "kind 'rag' has no use for 'url', which goes with 'http'"),
        ("kind: rag, embeddings: {}", "'embeddings' goes with retriever 'dense' or 'hybrid'"),
        ("kind: rag, rrf_k: 9", "'rrf_k' goes with kind 'fusion' or retriever 'hybrid'"),
        ("kind: rag, prompt: mine.yaml", "prompts go with a judge as 'generator'"),
        ("kind: rag, depth: 3", "'passages' (5) cannot be more than 'depth' (3)"),
        ("kind: rag, depth: 0", "must be at least 1, not 0"),
        ("kind: baseline, generator: strong", "kind 'baseline' needs 'ask'"),
        ("kind: baseline, ask: answer", "kind 'baseline' needs 'generator'"),
        ("kind: baseline, ask: answer, generator: extractive", "no documents to extract from"),
        ("kind: endpoint, model: m", "kind 'endpoint' needs 'base_url'"),
        ("kind: http, url: 'ftp://a', request: {}", "must be the address of a server, such as"),
        ("kind: http, url: 'https://u:p@a/'", "an address may not contain a key or password"),
        ("kind: http, url: 'https://a/?api_key=1'", "an address may not contain a key or password"),
        ("kind: http, url: 'https://a:99999/'", "must be the address of a server, such as"),
        (HTTP.replace("{query}", "question"), "no text holds {query}"),
        (HTTP.replace("{q:", "{tags: [sk-secret-0123456789], q:"), "request.tags.0 looks like a key"),
        (HTTP.replace("url: ", "headers_env: {X-Key: AKIAIOSFODNN7EXAMPLE}, url: "), "headers_env: X-Key: name an env"),
        (HTTP.replace("{q:", "{password: x, q:"), "request may not hold 'password'"),
        (HTTP.replace("answer: a", "answer: 'a['"), "answer: 'a[' is no JMESPath expression"),
        (HTTP.replace("answer: a", "answr: a"), "unknown key 'answr'; did you mean 'answer'?"),
        (f"{HTTP}, headers_env: {{'a b': KEY}}", "'a b' is not a valid header name"),
        (f"{HTTP}, headers_env: {{a: 'Bearer sk-1'}}", "name an environment variable; its value does not belong here"),
        (f"{HTTP}, api_key: sk-1", "keys do not belong in a file"),
        ("kind: python, function: ask", "is written module:function or file.py:function"),
        ("kind: file", "kind 'file' needs 'answers'"),
        ("kind: file, answers: a.csv, documents: d.csv, run: r.run", "'run' takes the place of 'documents'"),
        ("kind: rag, retriever: dense, embeddings: {provider: openai}", "provider 'openai' needs a 'model'"),
        ("kind: rag, retriever: dense, embeddings: {provider: transformers}", "needs a 'model' name or a 'path'"),
        ("kind: rag, retriever: dense, embeddings: {model: m}", "provider 'auto' has no use for 'model'"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert str(caught.value).startswith("file.yaml:1: agents.mine")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_stand_beside_the_configuration(tmp_path: Path) -> None:
    assert load("kind: rag, generator: g, prompt: p.yaml", tmp_path).prompt == str(tmp_path / "p.yaml")
    assert load("kind: rag, generator: g, prompt: rag_answer", tmp_path).prompt == "rag_answer"
    assert load("kind: python, function: 'a.py:ask'", tmp_path).function == f"{tmp_path / 'a.py'}:ask"
    assert load("kind: python, function: 'a.b:ask'", tmp_path).function == "a.b:ask"
    assert load("kind: file, answers: a.csv", tmp_path).answers == tmp_path / "a.csv"


def test_what_a_configuration_of_agents_needs() -> None:
    rag, chat = load("kind: rag, generator: g"), load("kind: endpoint, model: m, base_url: 'http://a'")
    baseline, offline = load("kind: baseline, ask: page, generator: h"), load("kind: fusion")
    assert judges_of_agents([rag, chat, baseline, offline, rag]) == ["g", "h"]
    assert needs_corpus([chat, offline])
    assert not needs_corpus([chat, baseline])
    assert needs_corpus([load("kind: file, answers: a.csv, run: r.run")])
