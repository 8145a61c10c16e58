"""Refusals stage: judges say whether each answer answers, refuses or asks back, without knowing what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from arena.calibration import ItemMeans
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.data.kinds import Choice, JudgedKind, TaskForm, as_number
from arena.stages.base import RelevanceLabels, TournamentStage, answering
from arena.store import Wanted
from judges import sections
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.refusals import REFUSALS
from judges.types import ANSWERABILITY, Inputs, Prompt
from retrieval_eval.data.rows import Row

WORDS: Final[Mapping[float, str]] = {0.0: "answers", 1.0: "asks back", 2.0: "refuses"}
"""What an answer does, by the value of the judgment: the higher, the less it answers."""


class RefusalsSection(sections.Section):
    """Says which answers [refuse or ask back](refusals.md), and whether they were right to."""

    judge: str
    """The judge that tells whether an answer answers, refuses or asks back."""
    prompt: sections.PromptName = "refusals"
    """The judge's [prompt](prompts.md); its ``choice`` has the values 0 (answers), 1 (asks back) and 2 (refuses)."""
    review: sections.ForPeople = ""
    """Instructions for people on the page [Review](web.md#people-vote-and-label): a line above each task."""


SECTION: Final = RefusalsSection


class _Reactions(JudgedKind, frozen=True):
    """What answers do; files may have the words or their numbers."""

    def parse(self, row: Row, column: str) -> float:
        text = " ".join(row.text(column).replace("_", " ").split()).casefold()
        for value, word in WORDS.items():
            if text == word or as_number(text) == value:
                return value
        words = ", ".join(f"{word} ({value:g})" for value, word in WORDS.items())
        raise row.error(f"{column!r} must be one of {words}", row.text(column).strip())


KIND: Final = _Reactions(
    name="refusals",
    level="refusals",
    things="answers",
    section="refusals",
    task=REFUSALS,
    columns=("agent",),
    column="refusals",
    noun="reaction",
    words=WORDS,
    means=ItemMeans((-1,), (0.0, 2.0)),
    form=TaskForm(
        "refusals",
        "What does the answer do?",
        "Look at what it does with the question, not whether it is right: a wrong, short or partial one answers.",
        *("answer", "answers", "labelled"),
        "No answer is judged yet.",
        lambda _: [
            Choice(0, "It answers", "1", "in part or wrongly, too"),
            Choice(1, "It asks back", "2", "it wants to know what is meant"),
            Choice(2, "It refuses", "3", "it cannot, does not know, or finds nothing"),
        ],
        unsure="If it answers one part and refuses another, it answers.",
    ),
)


class RefusalsStage(TournamentStage):
    """Makes one judgment for each answer."""

    key = "refusals"

    def __init__(self, section: RefusalsSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._judge = section.judge
        self.templates = {REFUSALS: load_prompt(section.prompt, REFUSALS)}
        self._answering = answering(data)

    def first(self, query_id: str) -> Sequence[Wanted]:
        agents = (agent for agent in self._answering[query_id] if self.data.answers[query_id, agent].has_text)
        return [Wanted(REFUSALS, self._judge, query_id, agent) for agent in agents]

    def prompt(self, want: Wanted) -> Prompt:
        """The prompt for one answer. The judge is not told whether the query can be answered."""
        answer, query = self.data.answers[want.query_id, want.item], self.data.queries[want.query_id].as_asked()
        return self.templates[REFUSALS].render(Inputs(query, answers=(answer,)))

    def check(self) -> None:
        ((_, words),) = self.templates[REFUSALS].reply.choices.items()
        if {*words.values()} != {*map(int, WORDS)}:
            raise ConfigError(
                "refusals.prompt: the prompt's 'choice' must map words to 0 (answers), 1 (asks back) and 2 (refuses)"
            )
        for query in self.data.queries.values():
            if query.answerability is None and (cell := query.answerability_cell):
                raise ConfigError(
                    f"refusals: query {self.data.called(query.query_id)} has {cell!r} in the column "
                    f"{' or '.join(map(repr, ANSWERABILITY[::-1]))}; write true or false, or answerable, partial, "
                    "unanswerable or underspecified"
                )
        super().check()
