"""Where a tournament's data and its store are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from judges.sections import Paths, Section, as_list, beside_file
from retrieval_eval.data.collections import irds_name as dataset_name
from retrieval_eval.documents.passages import PassagesSection
from retrieval_eval.documents.types import Limits


def _store_beside_file(store: str, info: ValidationInfo) -> str:
    folder = (info.context or {}).get("folder")
    return store if "://" in store or folder is None else str(folder / Path(store).expanduser())


def _source_beside_file(source: Path, info: ValidationInfo) -> Path:
    return source if dataset_name(source) is not None else beside_file(source, info)


Sources = Annotated[list[Annotated[Path, AfterValidator(_source_beside_file)]], BeforeValidator(as_list)]
"""Files, or ``irds:NAME`` for datasets of ir_datasets."""
StoreName = Annotated[str, AfterValidator(_store_beside_file)]


class DataSection(Section):
    """Files of queries, documents and answers, TREC runs, the corpus of runs and agents, qrels; one or a list each."""

    queries: Sources = Field(default_factory=list)
    """Tables of queries, TREC topics, or ``irds:NAME``; when left out, the file that ``synth`` writes."""
    documents: Paths = Field(default_factory=list)
    """Tables of retrieved documents."""
    answers: Paths = Field(default_factory=list)
    """Tables of answers."""
    runs: Paths = Field(default_factory=list)
    """TREC runs, one for each agent that it is named after, read down to ``retrieval.depth``."""
    corpus: Sources = Field(default_factory=list)
    """Texts for ``runs``, and for agents to search: JSONL, TSV, CSV, Parquet or ``irds:NAME``; for agents also folders
    and files of PDF, HTML, Markdown and DOCX, and text files in folders."""
    passages: PassagesSection = PassagesSection(by="paragraph")
    """How folders and documents are cut; by paragraph when left out."""
    limits: Limits = Limits()
    """How much one document may take."""
    qrels: Sources = Field(default_factory=list)
    """People's relevance labels, to compare the judges' with, or ``irds:NAME``."""
