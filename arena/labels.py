"""Relevance labels as they come in, and which queries have all of theirs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import replace
from typing import TypeVar

from arena.prompting import Prompting
from arena.stages.samples import Combine, document_labels
from arena.store import Result, Wanted

Key = TypeVar("Key", bound=Hashable)


class Labelling:
    """Takes relevance results and gives answer judges' prompts their labels.

    Args:
        prompting: whose ``labels`` are filled.
        how: by judge, how several samples become one label.
        wants: all relevance wants.
    """

    def __init__(self, prompting: Prompting, how: Mapping[str, Combine], wants: Iterable[Wanted]) -> None:
        self._labels = prompting.labels
        self._how = how
        self._section = prompting.config.retrieval
        self._open_in_query: Counter[str] = Counter()
        self._open_of_judge: Counter[str] = Counter()
        self._open: Counter[tuple[str, str]] = Counter()
        self._results: defaultdict[tuple[str, str], list[tuple[Wanted, Result]]] = defaultdict(list)
        for want in wants:
            self._open_in_query[want.query_id] += 1
            self._open_of_judge[want.judge] += 1
            self._open[want.query_id, want.item] += 1

    def is_open(self, query_id: str) -> bool:
        """Whether some document of the query has no label yet."""
        return query_id in self._open_in_query

    def over(self, ended: Set[str]) -> bool:
        """Whether no label is to come any more, since all that are missing are of judges that ended."""
        return self._open_of_judge.keys() <= ended

    def take(self, want: Wanted, result: Result) -> bool:
        """Take one judge's sample; tells whether the query's documents now all have their labels.

        A document's results are combined in the order of the plan, so that its label and reason do not depend on which
        reply was faster.
        """
        assert self._section is not None
        document = want.query_id, want.item
        self._results[document].append((want, result))
        if not _one_less(self._open, document):
            place = self._section.judge.index
            results = sorted(self._results.pop(document), key=lambda entry: (place(entry[0].judge), entry[0].sample))
            for key, whole in document_labels(results, self._how, self._section.combine).items():
                # Nobody reads a label's reply again, and a run keeps all its labels.
                self._labels[key] = whole and replace(whole, reply="", rejected=())
        _one_less(self._open_of_judge, want.judge)
        return not _one_less(self._open_in_query, want.query_id)


def _one_less(open_of: Counter[Key], key: Key) -> int:
    """Count down; what has nothing open is not among the keys."""
    open_of[key] -= 1
    left = open_of[key]
    if not left:
        del open_of[key]
    return left
