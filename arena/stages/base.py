"""What all stages share: planning judgments, rendering prompts, following results; and the relevance labels."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from arena.config.judging import GameDocumentsSection, ReferencesSection
from arena.data.dataset import SHARED, Dataset
from arena.store import Result, Store, Wanted
from arena.store.outcomes import LabelResults, document_labels
from judges.errors import ConfigError, to_be_asked
from judges.prompts import PromptTemplate, load_prompt
from judges.prompts.tasks import best_references
from judges.types import AnnotatedDocument, Judgment, Prompt, Retrieved, Task, label_of

if TYPE_CHECKING:
    from arena.config.schema import Config


def answering(data: Dataset) -> dict[str, list[str]]:
    present: dict[str, list[str]] = {query_id: [] for query_id in data.queries}
    for query_id, agent in sorted(data.answers):
        present[query_id].append(agent)
    return present


class Stage:
    """One way of judging. Runs and plans call a stage's methods; a stage itself never uses the store or a judge.

    Attributes:
        templates: the stage's prompts, by task, or by a more specific name if a task has several prompts.
        waits_for_labels: whether a query's judgments are made only after its documents have relevance labels.
        leading: the tasks whose results may lead to further judgments, and are passed to ``after``.
        written_once: tasks that write texts; they are done once even if the judge takes several samples.
        in_turn: tasks whose judgments on a query are all planned by ``first``, but made one after another: ``after``
            returns the next one.
    """

    templates: Mapping[str, PromptTemplate]
    waits_for_labels: bool = False
    leading: Collection[Task] = ()
    written_once: Collection[Task] = ()
    in_turn: Collection[Task] = ()

    @property
    def tasks(self) -> Sequence[Task]:
        return [Task(name) for name in self.templates]

    def leads_on(self, task: Task) -> bool:
        return task in self.leading

    def first(self, query_id: str) -> Sequence[Wanted]:
        """The judgments on a query that are planned from the start.

        Empty if they depend on relevance labels that are missing; a run calls again once the labels exist.
        """
        raise NotImplementedError

    def ready(self, first: Sequence[Wanted]) -> Sequence[Wanted]:
        """Those of a query's first judgments that can be made at once."""
        return first[:1] if first and first[0].task in self.in_turn else first

    def after(self, want: Wanted, result: Result) -> Sequence[Wanted]:  # noqa: ARG002 - for stages that lead on
        """The judgments that can be made because of this result, which may be a failure."""
        return ()

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt for a planned judgment; ``None`` as long as results that it shows are missing."""
        raise NotImplementedError

    def shares(self, want: Wanted) -> bool:  # noqa: ARG002
        """Whether other prompts begin like this judgment's, up to what is judged, so that servers may cache it."""
        return True

    def free(self, want: Wanted) -> str | None:  # noqa: ARG002
        """The id of this judgment if its result is fixed and needs no call; ``None`` if a judge must be asked."""
        return None

    def free_judgments(self) -> Iterable[tuple[Task, str, Judgment]]:
        """The judgments with the ids that ``free`` returns, each with its task and a label instead of a prompt name."""
        return ()

    def prompt_names(self) -> dict[str, str]:
        """The label ``name@version`` of each prompt, by its key in ``templates``."""
        return {name: f"{template.name}@{template.version}" for name, template in self.templates.items()}

    def most(self) -> Mapping[Task, int]:
        """Maximum number of judgments by task, samples included; only for tasks whose number depends on results."""
        return {}

    def typical_tokens(self, want: Wanted) -> int:
        """Number of tokens of a typical reply, for plans."""
        return self.templates[want.task].reply.typical_tokens

    def stand_in(self, want: Wanted, prompt: Prompt) -> Result | None:  # noqa: ARG002
        """A typical result, so that plans can count the judgments that it leads to; ``None`` if it leads to none."""
        return None


def file_digest(path: Path) -> str:
    """Digest of a file's content, which stored settings contain instead of the file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


class RelevanceLabels:
    """The documents' relevance labels so far; by these labels, it selects the documents that judges see.

    Args:
        config: the tournament's configuration; its section ``retrieval`` names the judges and the depth.
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
        """Add a judge's result for a document; each sample is a separate result.

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
        """Whether the prompts of a configuration section show documents that were selected by their labels."""
        return self._section is not None and section.include

    def is_open(self, query_id: str) -> bool:
        """Whether this run may still add the label of a document of this query."""
        return not self.complete and self._labelled[query_id] < len(self.pool(query_id))

    def of(self, query_id: str) -> dict[str, int] | None:
        """The query's labels by document, without failed ones; ``None`` if this or the next run may still add one."""
        results = {doc_id: self.results.get((query_id, doc_id)) for doc_id in self.pool(query_id)}
        if self._section is None:
            return {}
        if any(map(to_be_asked, results.values())):
            return None
        return {doc_id: label_of(label.outcome) for doc_id, label in results.items() if isinstance(label, Judgment)}

    def shown(
        self, query_id: str, agents: Collection[str] | None, section: ReferencesSection
    ) -> list[AnnotatedDocument] | None:
        """The documents that these agents (all if ``None``) retrieved, with their labels.

        Documents whose label failed are left out. Returns ``None`` if this run or the next may still add a label.
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

    def shown_in_game(
        self, query_id: str, agents: Collection[str], section: GameDocumentsSection
    ) -> list[AnnotatedDocument] | None:
        """The documents of a game between these agents, from their own pool or the query's; ``None`` as in ``shown``.

        Of the query's pool, the best are shown, as many as fit into ``section.pool_tokens``, and at least one.
        """
        if section.pool == "pair":
            return self.shown(query_id, agents, section)
        documents = self.shown(query_id, None, section)
        if documents is None:
            return None
        ranks = {doc_id: rank for rank, doc_id in enumerate(self.ranked(query_id))}
        return best_references(documents, section.options(), ranks, section.pool_tokens)

    def ranked(self, query_id: str, agent: str | None = None) -> list[str]:
        """Ids of the query's documents down to the configured depth, by best rank over all agents or by one agent's."""
        best: dict[str, int] = {}
        for entry in self._retrieved(query_id):
            if agent is not None and entry.agent not in (agent, SHARED):
                continue
            best[entry.doc_id] = min(entry.rank, best.get(entry.doc_id, entry.rank))
        return sorted(best, key=lambda doc_id: (best[doc_id], doc_id))

    def pool(self, query_id: str, agents: Collection[str] | None = None) -> list[str]:
        """Ids of the documents that these agents (all if ``None``) retrieved down to the configured depth."""
        return sorted(
            {
                entry.doc_id
                for entry in self._retrieved(query_id)
                if agents is None or entry.agent == SHARED or entry.agent in agents
            }
        )

    def _retrieved(self, query_id: str) -> list[Retrieved]:
        """Documents retrieved for the query, down to the depth of the section ``retrieval``."""
        depth = self._section.depth if self._section else None
        entries = self._data.retrieved.get(query_id, ())
        return [entry for entry in entries if depth is None or entry.rank <= depth]

    def check_threshold(self, key: str, section: ReferencesSection) -> None:
        """Raise an error if the threshold is above every label, since judges would then see no documents."""
        if self.template is None or not section.include:
            return
        if section.threshold > (highest := self.template.reply.highest_label()):
            raise ConfigError(
                f"{key}.documents.threshold: {section.threshold} is above {highest}, the highest label "
                f"of the relevance prompt {self.template.name!r}; lower it"
            )


class TournamentStage(Stage):
    """Base class of stages that have a section in a tournament's configuration.

    Attributes:
        key: name of the stage's section in the configuration and in stored settings.
    """

    key: str

    def __init__(self, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        self.config, self.data, self.labels = config, data, labels

    def check(self) -> None:
        """Find errors in the stage's settings and prompts before any call."""
        self._try_prompt(want for query_id in self.data.queries for want in self.first(query_id))

    def _try_prompt(self, wants: Iterable[Wanted]) -> None:
        """Render the first prompt if the user wrote a template, to find errors in it; packaged templates have tests."""
        if not all(template.is_packaged for template in self.templates.values()):
            for want in islice(wants, 1):
                self.prompt(want)

    def settings(self) -> dict[str, Any]:
        """The stage's settings that determine results, as the store keeps them: no paths, no secret texts."""
        section = self.config.section(self.key)
        assert section is not None
        settings = section.model_dump(mode="json")
        if len(self.templates) == 1 and "prompt" in settings:
            settings["prompt"] = next(iter(self.prompt_names().values()))
        return settings

    def join(self, stages: Sequence[TournamentStage]) -> None:
        """Take note of the tournament's stages, once all exist."""

    def also(self, wants: Sequence[Wanted], cause: Wanted | None) -> Sequence[Wanted]:  # noqa: ARG002
        """Further judgments, to plan with these of any stage; ``cause`` is the judgment whose result led to these."""
        return ()

    def resume(self, store: Store, tournament: str) -> None:
        """Read from the store choices of an earlier run, such as which items it put into the same call."""

    def assumptions(self) -> Iterable[str]:
        """Sentences for the user on what a plan's figures assume about future judgments of this stage."""
        return ()
