"""Assigns nuggets from files to answers from files, and reads the citations of answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from arena.config.judging import NuggetsSection
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.data.files import read_answers
from judges.errors import ConfigError, InputError
from judges.types import Answer, Query
from retrieval_eval.data.trec import read_qrels
from retrieval_eval.nuggets.files import read_banks
from retrieval_eval.nuggets.scores import ScoreTable
from retrieval_eval.nuggets.types import NuggetBank
from retrieval_eval.scores.citations import Cited, cited_documents

_NOT_IN_NAMES = re.compile(r"[^\w .-]+")


def nuggets_of(config: Config) -> NuggetsSection:
    """The section ``nuggets`` of the configuration, with the judge and its settings.

    Raises:
        ConfigError: the configuration has no section ``nuggets``.
    """
    if config.nuggets is None:
        raise ConfigError("the configuration has no section 'nuggets'; add it, with the judge")
    return config.nuggets


def assignment_of_files(config: Config, nuggets: Path, answers: Sequence[Path]) -> tuple[Config, Dataset]:
    """Set up a separate tournament with the same store and judge that assigns nuggets to answers from files.

    Args:
        config: the tournament that supplies judge, store and settings; its data and other stages are not used.
        nuggets: a file of nuggets; only its queries are judged.
        answers: tables of answers, or answers in the format of the TREC RAG track.

    Raises:
        InputError: a file cannot be read, an answer occurs twice, or no answer is to a query with nuggets.
    """
    section = nuggets_of(config)
    banks = {bank.query_id: bank for bank in read_banks(nuggets)}
    data = _dataset(banks, answers)
    if not data.answers:
        raise InputError(
            f"{', '.join(map(str, answers))}: no answer to a query of {nuggets}; check that the ids are the same"
        )
    name = _NOT_IN_NAMES.sub("-", f"{config.name} {nuggets.name}")[:80]
    to_answers = section.assign.model_copy(update={"texts": ["answers"], "depth": None, "passage_prompt": None})
    chosen = NuggetsSection(judge=section.judge, bank=nuggets, assign=to_answers)
    others = dict.fromkeys(("synth", "retrieval", "pairwise", "criteria", "exam"))
    return config.model_copy(update={**others, "agents": {}, "further": {}, "name": name, "nuggets": chosen}), data


def read_cited(
    paths: Sequence[Path], qrels: Path, table: ScoreTable
) -> tuple[dict[tuple[str, str], Cited], Mapping[str, Mapping[str, int]]]:
    """Read the citations of each topic and run, and the labels of each topic's documents.

    Args:
        paths: answers as tables or in the format of the TREC RAG track.
        qrels: labels of documents.
        table: a table of scores; only its runs and topics are read.

    Raises:
        InputError: a file cannot be read, or has no answer of these runs to these topics.
    """
    runs, topics = set(table.runs), set(table.topics)
    file_answers = (answer for path in paths for _, answer in read_answers(path))
    answers = [answer for answer in file_answers if answer.agent in runs and answer.query_id in topics]
    if not answers:
        raise InputError(
            f"{', '.join(map(str, paths))}: no answer of a scored run to a scored topic; check runs and ids"
        )
    labels = read_qrels(qrels).labels
    return cited_documents(answers, {}, labels), labels


def _dataset(banks: dict[str, NuggetBank], paths: Sequence[Path]) -> Dataset:
    answers: dict[tuple[str, str], Answer] = {}
    for path in paths:
        for _, answer in read_answers(path):
            key = answer.query_id, answer.agent
            if key in answers:
                raise InputError(
                    f"{path}: a second answer of {answer.agent!r} to query {answer.query_id!r}; keep one of them"
                )
            if answer.query_id in banks:
                answers[key] = answer
    return Dataset({query_id: Query(query_id, bank.query) for query_id, bank in banks.items()}, answers=answers)
