"""What the answers cite whose nuggets are scored, from files of their texts and of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from arena.dataset.files import read_answers
from judges.errors import InputError
from retrieval_eval.citations import Cited, cited_documents
from retrieval_eval.nuggets.scores import ScoreTable
from retrieval_eval.trec_files import read_qrels


def read_cited(
    paths: Sequence[Path], qrels: Path, table: ScoreTable
) -> tuple[dict[tuple[str, str], Cited], Mapping[str, Mapping[str, int]]]:
    """What is cited by topic and run, and the labels by topic and document.

    Args:
        paths: answers as tables or as participants of the TREC RAG track hand them in.
        qrels: labels of documents.
        table: the runs and topics that are scored; others are left alone.

    Raises:
        InputError: a file cannot be read, or has no answer of these runs to these topics.
    """
    runs, topics = set(table.runs), set(table.topics)
    given = (answer for path in paths for _, answer in read_answers(path))
    answers = [own for own in given if own.agent in runs and own.query_id in topics]
    if not answers:
        raise InputError(f"{', '.join(map(str, paths))}: no answer of the runs that are scored to their topics")
    labels = read_qrels(qrels).labels
    return cited_documents(answers, {}, labels), labels
