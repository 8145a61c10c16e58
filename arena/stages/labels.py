"""Collects relevance labels during a run, and selects the documents that other stages' prompts show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from msgspec.structs import replace

from arena.config.judging import ReferencesSection
from arena.config.schema import Config
from arena.data.dataset import SHARED, Dataset
from arena.store import Result, Wanted
from arena.store.outcomes import LabelResults, document_labels
from judges.errors import ConfigError, to_be_asked
from judges.prompts import load_prompt
from judges.types import AnnotatedDocument, Judgment, Retrieved, Task, label_of


class RelevanceLabels:
    """The relevance labels made so far; selects the documents that judges see by these labels.

    Args:
        config: the tournament; its section ``retrieval`` names the judges and the depth.
        data: the data with the retrieved documents.
        assume: for plans: whether to show documents without a label as relevant.

    Attributes:
        results: the combined result of all judges and samples by (query_id, doc_id): a judgment, or a failure.
        template: the prompt for labels; ``None`` if no judge labels documents.
        complete: whether this run will make no further label.
    """

    def __init__(self, config: Config, data: Dataset, *, assume: bool = False) -> None:
        self.results: LabelResults = {}
        self.assume, self.complete = assume, config.retrieval is None
        self._config, self._data, self._section = config, data, config.retrieval
        self._results: dict[tuple[str, str], list[tuple[Wanted, Result]]] = {}
        self._labelled: Counter[str] = Counter()
        judges = [] if self._section is None else [config.judges[name] for name in self._section.judge]
        self._per_document = sum(judge.samples for judge in judges)
        self.template = load_prompt(self._section.prompt, Task.RELEVANCE) if self._section is not None else None

    def take(self, want: Wanted, result: Result) -> None:
        """Add the result of one judge's sample.

        Once a document has all its results, they are combined in a fixed order, so that its label and reason do not
        depend on which reply arrived first.
        """
        assert self._section is not None
        document, place = (want.query_id, want.item), self._section.judge.index
        results = self._results.setdefault(document, [])
        results.append((want, result))
        if len(results) == self._per_document:
            results = sorted(self._results.pop(document), key=lambda entry: (place(entry[0].judge), entry[0].sample))
            how = {name: self._config.judges[name].combine for name in self._section.judge}
            for key, label in document_labels(results, how, self._section.combine).items():
                # Drop replies, which nothing reads again: a run keeps all labels in memory.
                self.results[key] = label and replace(label, reply="", rejected=())
            self._labelled[want.query_id] += 1

    def are_shown(self, section: ReferencesSection) -> bool:
        """Whether the judges of a section see documents with labels."""
        return self._section is not None and section.include

    def is_open(self, query_id: str) -> bool:
        """Whether a document of the query may still get its label in this run."""
        return not self.complete and self._labelled[query_id] < len(self.pool(query_id))

    def of(self, query_id: str) -> dict[str, int] | None:
        """The query's labels by document, without failed labels; ``None`` if this run or the next may still add one."""
        results = {doc_id: self.results.get((query_id, doc_id)) for doc_id in self.pool(query_id)}
        if self._section is None:
            return {}
        if any(map(to_be_asked, results.values())):
            return None
        return {doc_id: label_of(label.outcome) for doc_id, label in results.items() if isinstance(label, Judgment)}

    def shown(
        self, query_id: str, agents: Collection[str] | None, section: ReferencesSection
    ) -> list[AnnotatedDocument] | None:
        """The documents of these agents (all agents if ``None``) with their labels; leaves out failed labels.

        Returns ``None`` if this run or the next may still add a label.
        """
        if not section.include:
            return []
        documents = [self._data.documents[doc_id] for doc_id in self.pool(query_id, agents)]
        if self._section is None:
            return [AnnotatedDocument(document) for document in documents]
        annotated = []
        for document in documents:
            label = self.results.get((query_id, document.doc_id))
            if isinstance(label, Judgment):
                annotated.append(AnnotatedDocument(document, label_of(label.outcome), label.reason))
            elif to_be_asked(label):
                if not self.assume:
                    return None
                annotated.append(AnnotatedDocument(document, section.threshold))
        return annotated

    def ranked(self, query_id: str, agent: str | None = None) -> list[str]:
        """Ids of the query's documents down to the depth, by best rank over all agents, or by one agent's rank."""
        best: dict[str, int] = {}
        for entry in self._retrieved(query_id):
            if agent is not None and entry.agent not in (agent, SHARED):
                continue
            best[entry.doc_id] = min(entry.rank, best.get(entry.doc_id, entry.rank))
        return sorted(best, key=lambda doc_id: (best[doc_id], doc_id))

    def pool(self, query_id: str, agents: Collection[str] | None = None) -> list[str]:
        """Ids of the documents that these agents (all agents if ``None``) retrieved down to the depth, each once."""
        return sorted(
            {
                entry.doc_id
                for entry in self._retrieved(query_id)
                if agents is None or entry.agent == SHARED or entry.agent in agents
            }
        )

    def _retrieved(self, query_id: str) -> list[Retrieved]:
        """Retrieved documents down to the depth of ``retrieval``; other stages may use a greater depth."""
        depth = self._section.depth if self._section else None
        entries = self._data.retrieved.get(query_id, ())
        return [entry for entry in entries if depth is None or entry.rank <= depth]

    def check_threshold(self, key: str, section: ReferencesSection) -> None:
        """Refuse a threshold above every label: judges would silently see no documents.

        Raises:
            ConfigError: the threshold is too high.
        """
        if self.template is None or not section.include:
            return
        if section.threshold > (highest := self.template.reply.highest_label()):
            raise ConfigError(
                f"{key}.documents.threshold: {section.threshold} is above {highest}, the highest label "
                f"of the relevance prompt {self.template.name!r}"
            )
