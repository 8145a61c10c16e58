"""A list of mappings in a YAML file, each with the line on which it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from judges.errors import DataError
from judges.sections import UniqueKeys
from retrieval_eval.data.files import read_lines


def read_yaml_records(path: Path) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The mappings of a YAML list and their lines from 1.

    Raises:
        DataError: the file cannot be read, is no YAML, or is not a list of mappings; a key stands twice.
    """
    text = "".join(line for _, line in read_lines(path))
    try:
        loader = _Texts(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise DataError(path, "is not a YAML list of items or queries")
        for entry in node.value:
            line = entry.start_mark.line + 1
            if not isinstance(entry, yaml.MappingNode):
                raise DataError(path, "the entry is not a mapping with keys such as qid and question", line=line)
            yield loader.construct_document(entry), line
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else None
        raise DataError(path, problem.problem or problem.context or "not YAML", line=line) from problem
    except (yaml.YAMLError, ValueError) as problem:
        raise DataError(path, " ".join(str(problem).split())) from problem
    except RecursionError as problem:
        raise DataError(path, "nested too deeply") from problem


class _Texts(UniqueKeys):
    """Reads dates as the text they are written in."""


_Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
