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
    """Where absent, those that ``synth`` makes."""
    documents: Paths = Field(default_factory=list)
    answers: Paths = Field(default_factory=list)
    runs: Paths = Field(default_factory=list)
    corpus: Sources = Field(default_factory=list)
    """Tables of documents; folders, and files in formats that people read, are cut into passages."""
    passages: PassagesSection = PassagesSection(by="paragraph")
    limits: Limits = Limits()
    qrels: Sources = Field(default_factory=list)
    """Relevance labels of people, which the judges' are held against."""
