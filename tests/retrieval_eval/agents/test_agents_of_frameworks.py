"""The agents that docs/agents.md shows, with the frameworks' own packages ('make frameworks' installs them)."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from arena.config.schema import load_config
from arena.run.answers import run_agents
from arena.run.judging import load_data
from tests.support.tournaments import Quiet

PAGE = Path(__file__).resolve().parents[3] / "docs" / "agents.md"

LANGCHAIN = """
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("The town runs the library.", id="d1"), Document("The library opened in 1912.")]

answer = ChatPromptTemplate.from_template("{documents} {question}") | FakeListChatModel(responses=["The town."])
found = RunnablePassthrough.assign(documents=(lambda given: given["question"]) | Shelf())
chain = found.assign(answer=answer | StrOutputParser())
"""

LLAMAINDEX = """
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM

texts = [Document(text="The town runs the library."), Document(text="The library opened in 1912.")]
index = VectorStoreIndex.from_documents(texts, embed_model=MockEmbedding(embed_dim=4))
engine = index.as_query_engine(llm=MockLLM(max_tokens=12), similarity_top_k=2)
"""

HAYSTACK = """
from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

@component
class Model:
    @component.output_types(replies=list[str])
    def run(self, prompt: str):
        return {"replies": ["The town."]}

store = InMemoryDocumentStore()
store.write_documents([Document(content="The town runs the library."), Document(content="The library opened in 1912.")])
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store))
pipeline.add_component("prompt", PromptBuilder("{{documents}} {{question}}", required_variables="*"))
pipeline.add_component("llm", Model())
pipeline.connect("retriever.documents", "prompt.documents")
pipeline.connect("prompt", "llm")
"""


@pytest.mark.parametrize(
    ("package", "module", "name", "mine"),
    [
        ("langchain-core", "langchain_core", "langchain", LANGCHAIN),
        ("llama-index-core", "llama_index.core", "llamaindex", LLAMAINDEX),
        ("haystack-ai", "haystack", "haystack", HAYSTACK),
    ],
)
def test_a_pipeline_is_an_agent_as_the_page_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, module: str, name: str, mine: str
) -> None:
    pytest.importorskip(module, reason=f"{package} is not installed: 'make frameworks'")
    print(package, version(package))  # noqa: T201 - which one this was, for the reader of 'make frameworks'
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    found = re.search(rf"^```python {name}_agent\.py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / f"{name}_agent.py").write_text(found[1])
    (tmp_path / "mine.py").write_text(mine)
    (tmp_path / "queries.csv").write_text("qid,query\nq1,Who runs the library?\nq2,When did the library open?\n")
    (tmp_path / "config.yaml").write_text(
        "name: frameworks\nstore: frameworks.db\ndata: {queries: queries.csv}\n"
        f'agents: {{mine: {{kind: python, function: "{name}_agent.py:agent"}}}}\n'
    )
    config = load_config(tmp_path / "config.yaml")
    assert run_agents(config, Quiet()).complete
    data = load_data(config)
    assert len(data.answers) == 2
    assert data.answers["q1", "mine"].text.strip()
    texts = {data.documents[entry.doc_id].text for entry in data.retrieved["q1"]}
    assert texts == {"The town runs the library.", "The library opened in 1912."}
