"""Relevance labels as they come in, and which queries have all of theirs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from arena.prompting import Prompting
from arena.samples import Combine, combine
from arena.store import Result, Wanted


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
        self._open_in_query: Counter[str] = Counter()
        self._open_samples: Counter[tuple[str, str]] = Counter()
        self._samples: defaultdict[tuple[str, str], dict[int, Result]] = defaultdict(dict)
        for want in wants:
            self._open_in_query[want.query_id] += 1
            self._open_samples[want.query_id, want.item] += 1

    def is_open(self, query_id: str) -> bool:
        """Whether some document of the query has no result yet."""
        return query_id in self._open_in_query

    @property
    def complete(self) -> bool:
        """Whether every document of every query has a result."""
        return not self._open_in_query

    def take(self, want: Wanted, result: Result) -> bool:
        """Take one sample's result; tells whether the query's documents now all have theirs."""
        document = want.query_id, want.item
        self._samples[document][want.sample] = result
        self._open_samples[document] -= 1
        if not self._open_samples[document]:
            del self._open_samples[document]
            # By number and not as they came: which sample speaks for all decides what answer judges read.
            samples = [sample for _, sample in sorted(self._samples.pop(document).items())]
            self._labels[document] = combine(samples, self._how.get(want.judge, "majority"))
        self._open_in_query[want.query_id] -= 1
        if self._open_in_query[want.query_id]:
            return False
        del self._open_in_query[want.query_id]
        return True
