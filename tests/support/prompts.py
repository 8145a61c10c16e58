"""Real prompts from the packaged templates, over a small case."""

from __future__ import annotations

from pathlib import Path

from judges.prompts import load_prompt
from judges.prompts.tasks import (
    assignment_prompt,
    creation_prompt,
    criteria_prompt,
    importance_prompt,
    pairwise_prompt,
    relevance_prompt,
)
from judges.types import AnnotatedDocument, Answer, Document, Inputs, Prompt, Query, ReplyContract, Task

WORD_PROMPTS = ("faggioli_b", "faggioli_b_few_shot", "helm", "sun", "sun_few_shot")
RELEVANCE_PROMPTS = ("reasoner", "search_quality", "thomas", "umbrela", *WORD_PROMPTS)
"""The packaged prompts of the relevance judge; those that are answered in one word, and the others."""

QUERY = Query("q1", "How does the vacuum optimizer remove deleted records?")
VACUUM = Document(
    "vacuum",
    "The vacuum optimizer removes deleted records. Records are first marked as deleted; once a segment holds too many "
    "of them, the optimizer rebuilds it and the deleted records are removed, which frees memory.",
)
WEATHER = Document("weather", "Tomorrow it will rain in the north, with wind from the sea.")
GOOD = Answer(
    "q1", "good", "Deleted records are only marked; the vacuum optimizer later rebuilds segments without them."
)
BAD = Answer("q1", "bad", "It will rain in the north tomorrow.")


def relevance(document: Document = VACUUM, query: Query = QUERY, name: str = "reasoner") -> Prompt:
    """A packaged relevance prompt; the usual one has labels 0, 1, 2."""
    return relevance_prompt(load_prompt(name, Task.RELEVANCE), query, document)


def pairwise(first: Answer = GOOD, second: Answer = BAD, *documents: AnnotatedDocument) -> Prompt:
    """A verdict prompt; without ``documents`` over one very relevant document."""
    shown = documents or (AnnotatedDocument(VACUUM, 2, "on the subject"),)
    return pairwise_prompt(load_prompt("pairwise", Task.PAIRWISE), QUERY, (first, second), shown)


def criteria(answer: Answer = GOOD) -> Prompt:
    """A criteria prompt with the four usual criteria from 0 to 2."""
    documents = [AnnotatedDocument(VACUUM, 2)]
    return criteria_prompt(load_prompt("criteria", Task.CRITERIA), QUERY, answer, documents)


def nugget_prompts() -> list[Prompt]:
    """The packaged prompts about nuggets: a first and a second turn, importance, and assignment in both grades."""
    create = load_prompt("nugget_create", Task.NUGGETS)
    nuggets = ("deleted records are only marked", "segments are rebuilt")
    return [
        creation_prompt(create, QUERY, [VACUUM], (), 30),
        creation_prompt(create, QUERY, [VACUUM, WEATHER], nuggets, 30),
        importance_prompt(load_prompt("nugget_importance", Task.IMPORTANCE), QUERY, nuggets),
        *(
            assignment_prompt(load_prompt(name, Task.ASSIGNMENT), QUERY, GOOD, nuggets)
            for name in ("nugget_assign", "nugget_assign_two_grades")
        ),
        *(
            assignment_prompt(load_prompt(name, Task.PASSAGE_ASSIGNMENT), QUERY, VACUUM, nuggets)
            for name in ("nugget_assign_passage", "nugget_assign_passage_two_grades")
        ),
    ]


def bracketed(first: Answer = GOOD, second: Answer = BAD) -> Prompt:
    """A verdict prompt in the form of the published pairwise prompts: free text, then the verdict in brackets."""
    contract = ReplyContract("reason", {"verdict": {"A": "A", "B": "B", "C": "TIE"}}, "brackets")
    system, user = "End with [[A]], [[B]] or [[C]] for a tie.", f"{QUERY.text}\n{first.text}\n{second.text}"
    return Prompt(Task.PAIRWISE, "bracketed", "1", system, user, contract, Inputs(QUERY, (), (first, second)))


def own_prompt(folder: Path, task: str, reply: str) -> Path:
    """A prompt file of one's own with this ``reply`` section."""
    path = folder / "mine.yaml"
    path.write_text(f'name: mine\nversion: "1"\ntask: {task}\nsystem: s\nuser: u\nreply: {reply}\n', encoding="utf-8")
    return path
