"""The ``reply`` section of a prompt file: what a reply must consist of, and how that is said to a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import Field, PlainValidator

from judges.labelled import labels_rule
from judges.listed import list_rule
from judges.sections import Section, nearest
from judges.self_rating import HIGHEST_RATING
from judges.types import LABEL, Form, ListRule, ReplyContract, Task, Verdict, word_per_value

Words: TypeAlias = Mapping[str | int, int | str]
"""The words or whole numbers of a choice, and what each stands for."""

_LISTING = frozenset({Task.QUESTIONS, Task.NUGGETS, Task.REWRITING, Task.QUERIES})
"""Tasks whose replies are lists of texts."""

_SPEAKING = (Task.EXTRACTION, Task.ANSWERING)
"""Tasks whose replies are texts in the judge's own words."""

_LABELLING: Mapping[Task, tuple[set[str], set[str]]] = {
    Task.IMPORTANCE: ({"vital", "okay"}, set()),
    Task.ASSIGNMENT: ({"support", "not_support"}, {"partial_support"}),
    Task.PASSAGE_ASSIGNMENT: ({"support", "not_support"}, {"partial_support"}),
}
"""Tasks whose replies are lists of labels: those that a prompt must have, and those that it may have."""

_HIGHEST_GRADE = {Task.GRADING: HIGHEST_RATING, Task.ANSWER_CHECK: 1, Task.ANSWERABLE: 1}
"""Of the tasks whose replies are one grade from 0."""

_COLUMNS_OF_LABELS = {"qid", "did", "judge", LABEL, "reason"}


class Scale(Section):
    """Whole numbers from ``min`` to ``max``."""

    min: int
    max: int


def whole_numbers(low: int, high: int) -> Words:
    """The choices of a scale from ``low`` to ``high``, both included."""
    return {number: number for number in range(low, high + 1)}


RATINGS = whole_numbers(0, HIGHEST_RATING)
"""The scale of self-ratings (EXAM++, 4.2.2)."""


def _words(given: object) -> Words:
    """A scale or a mapping, as a file may have it."""
    if not isinstance(given, dict) or not given:
        raise ValueError("must name its words with a value each, or 'min' and 'max' of a scale")
    for word in (*given, *given.values()):
        if isinstance(word, bool):
            raise ValueError("put quotes around yes, no, on, off, true and false: YAML reads them as booleans")
        if not isinstance(word, str | int):
            raise ValueError(f"words and values are text or whole numbers, not {word!r}")
    if given.keys() != {"min", "max"}:
        return given
    low, high = given["min"], given["max"]
    if isinstance(low, str) or isinstance(high, str) or low >= high:
        raise ValueError("a scale goes from a lower 'min' to a higher 'max'")
    return whole_numbers(low, high)


class ReplySection(Section):
    """The ``reply`` section of a prompt file."""

    form: Form = "json"
    reason: str = "reason"
    texts: list[str] = Field(default_factory=list)
    """Text fields besides the reason; they are kept with the label."""
    choices: dict[str, Annotated[Words, PlainValidator(_words)]] = Field(default_factory=dict)
    label: str | None = None
    """Which of several choices is the relevance label."""
    listed: str | None = None
    """Of the form ``list``: the field that holds the list. How long it may be comes from the configuration."""
    typical_tokens: Annotated[int, Field(ge=1)] = 150
    """Length of a usual reply; only used to estimate cost before anything is sent."""

    def contract(self) -> ReplyContract:
        """The contract that replies are held to."""
        if self.listed is not None:
            return ReplyContract("", {}, "list", listed=ListRule(self.listed))
        if self.form == "labels":
            return ReplyContract("", self.choices, "labels")
        if self.form == "rating":
            return ReplyContract("", {"rating": RATINGS}, "rating")
        several = len(self.choices) > 1 or bool(self.texts)
        label = (self.label or next(iter(self.choices))) if several else None
        return ReplyContract(self.reason, self.choices, self.form, tuple(self.texts), label)

    def label_words(self) -> dict[int, str | int]:
        """The labels of a relevance prompt, lowest first, with the first word for each."""
        words = self.choices[self.label or next(iter(self.choices))]
        return {int(words[word]): word for word in sorted(word_per_value(words), key=lambda word: int(words[word]))}

    def highest_label(self) -> int:
        """The highest label of a relevance prompt."""
        return max(self.label_words())

    def check(self, task: Task) -> None:
        """Hold the section against the task of its prompt.

        Raises:
            ValueError: it asks for what the task has no use for, or lacks what it needs.
        """
        self._check_form(task)
        if task in _LISTING or task in _LABELLING or task is Task.ANSWERING or self.form == "rating":
            return
        if task is Task.CRITERIA:
            if self.model_fields_set - {"reason", "typical_tokens"}:
                raise ValueError(
                    "reply: criteria come from the configuration, so only 'reason' and 'typical_tokens' go here"
                )
            return
        self._check_names()
        if task is Task.PAIRWISE:
            self._check_verdict()
        elif task is Task.EXTRACTION:
            self._check_words_for_texts()
        elif task in _HIGHEST_GRADE:
            self._check_grade(task)
        else:
            self._check_label()
        if self.form != "json" and (len(self.choices) > 1 or self.texts):
            raise ValueError(f"reply: a reply of the form {self.form!r} has room for one choice only")
        if self.form == "word":
            self._check_bare_words()

    def _check_form(self, task: Task) -> None:
        if (task in _SPEAKING) is not (self.form == "text"):
            named = " and ".join(_SPEAKING)
            raise ValueError(f"reply.form: 'text' is the form of {named} prompts, and of no others")
        if (task in _LABELLING) is not (self.form == "labels"):
            named = " and ".join(_LABELLING)
            raise ValueError(f"reply.form: 'labels' is the form of {named} prompts, and of no others")
        if task is Task.ANSWERING and self.model_fields_set - {"form", "typical_tokens"}:
            raise ValueError("reply: an answering prompt asks for a text, and has no fields of its own")
        if task in _LABELLING:
            self._check_labels(*_LABELLING[task])
            return
        if self.form == "rating" and (task is not Task.GRADING or self.model_fields_set - {"form", "typical_tokens"}):
            raise ValueError("reply.form: 'rating' is a form of grading prompts, and has no fields of its own")
        if task not in _LISTING:
            if self.form == "list" or self.listed is not None:
                raise ValueError(f"reply: a {task.value} prompt does not ask for a list")
            return
        if self.form != "list" or not self.listed or self.listed != self.listed.strip():
            raise ValueError("reply: this prompt asks for a list: say 'form: list' and the field's name with 'listed'")
        if self.model_fields_set - {"form", "listed", "typical_tokens"}:
            raise ValueError("reply: a reply of the form 'list' has no other field than its list")

    def _check_labels(self, needed: set[str], possible: set[str]) -> None:
        if len(self.choices) != 1 or self.model_fields_set - {"form", "choices", "typical_tokens"}:
            raise ValueError("reply: a reply of the form 'labels' has one choice and nothing else")
        ((name, words),) = self.choices.items()
        if not name or name != name.strip() or any(not isinstance(word, str) for word in words):
            raise ValueError("reply.choices: labels and the name of their list are words")
        if not needed <= set(words.values()) <= needed | possible:
            known = ", ".join(sorted(needed | possible))
            raise ValueError(f"reply.choices: the words of this prompt stand for {known}")

    def _check_names(self) -> None:
        names = [self.reason, *self.texts, *self.choices]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"reply: two fields are called {twice!r}")
        if any(not name or name != name.strip() for name in names):
            raise ValueError("reply: the name of a field is empty or begins or ends in white space")

    def _check_verdict(self) -> None:
        if len(self.choices) != 1 or self.texts or self.label:
            raise ValueError("reply: a pairwise prompt asks for one choice besides the reason")
        (words,) = self.choices.values()
        if not {"A", "B"} <= set(words.values()) <= set(Verdict):
            raise ValueError("reply.choices: the values of verdicts are A, B and TIE")

    def _check_words_for_texts(self) -> None:
        if len(self.choices) != 1 or self.texts or self.label:
            raise ValueError("reply: an extraction prompt has one field, with the words that stand for something else")
        (words,) = self.choices.values()
        if any(not isinstance(value, str) for value in words.values()):
            raise ValueError("reply.choices: the words of an extraction prompt stand for texts")

    def _check_grade(self, task: Task) -> None:
        if len(self.choices) != 1 or self.texts or self.label:
            raise ValueError(f"reply: a {task.value} prompt asks for one choice besides the reason")
        (words,) = self.choices.values()
        highest = _HIGHEST_GRADE[task]
        if not set(words.values()) <= set(range(highest + 1)):
            raise ValueError(
                f"reply.choices: the values of a {task.value} prompt are whole numbers from 0 to {highest}"
            )

    def _check_label(self) -> None:
        if not self.choices:
            raise ValueError("reply.choices: a relevance prompt asks for at least one choice, the label")
        if self.label is None and len(self.choices) > 1:
            raise ValueError(f"reply.label: say which choice is the label: {', '.join(self.choices)}")
        if self.label is not None and self.label not in self.choices:
            raise ValueError(f"reply.label: no choice is called {self.label!r}{nearest(self.label, self.choices)}")
        label = self.label or next(iter(self.choices))
        if any(isinstance(value, str) for value in self.choices[label].values()):
            raise ValueError("reply.choices: the values of relevance labels are whole numbers")
        others = {*self.texts, *self.choices} - {label}
        if taken := others & _COLUMNS_OF_LABELS:
            raise ValueError(f"reply: every table of labels has a column {min(taken)!r}; name the field otherwise")

    def _check_bare_words(self) -> None:
        if "reason" in self.model_fields_set:
            raise ValueError("reply.reason: a reply of one word has no room for a reason")
        (words,) = self.choices.values()
        for word in words:  # a number would be found in '-1', '.1' or 'No. 1' once punctuation is dropped
            if not isinstance(word, str) or not word.replace(" ", "").isalpha():
                raise ValueError(f"reply.choices: the words of the form 'word' consist of letters, unlike {word!r}")
        if len({str(word).casefold() for word in words}) < len(words):
            raise ValueError("reply.choices: the words of the form 'word' must differ in more than case")


def reply_rule(contract: ReplyContract) -> str:
    """How to reply, in words, for models that are not held to a schema."""
    if contract.form in ("list", "labels"):
        return labels_rule(contract) if contract.listed is None else list_rule(contract.listed)
    if contract.form == "rating":
        return f"Reply with one whole number from 0 to {HIGHEST_RATING} and nothing else."
    if contract.form == "word":
        (allowed,) = contract.choices.values()
        return f"Reply with one word and nothing else: {' or '.join(map(str, word_per_value(allowed)))}."
    if contract.form == "text":
        special = " or ".join(str(word) for words in contract.choices.values() for word in words)
        return f"Reply with the answer and nothing else{f', or with {special} if there is none' if special else ''}."
    if contract.form == "brackets":
        (allowed,) = contract.choices.values()
        return f"End your reply with one of {', '.join(f'[[{word}]]' for word in allowed)} on a line of its own."
    fields = [f'"{name}", a text' for name in contract.spoken]
    fields += [f'"{name}", one of {", ".join(map(_json_word, words))}' for name, words in contract.choices.items()]
    return f"Reply with one JSON object and nothing else. Its keys, in this order: {'; '.join(fields)}."


def _json_word(word: str | int) -> str:
    return str(word) if isinstance(word, int) else f'"{word}"'
