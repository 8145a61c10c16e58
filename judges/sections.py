"""YAML files that people write: strict keys, one-line errors, paths relative to the file."""

from __future__ import annotations

import difflib
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from judges.errors import InputError

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A mapping of known keys. An unknown one is refused with the nearest known name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        if isinstance(given, dict):
            for key in given:
                if key == "api_key":
                    raise ValueError("keys do not belong in a file; name an environment variable with 'api_key_env'")
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key {key!r}{nearest(key, cls.model_fields)}")
        return given


def nearest(given: object, known: Any) -> str:
    """``; did you mean 'x'?`` for the known name most like ``given``, else the list of what is known."""
    names = [str(name) for name in known]
    close = difflib.get_close_matches(str(given), names, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(names))}"


def beside_file(path: Path, info: ValidationInfo) -> Path:
    """A path as the folder of the file that names it has it."""
    folder = (info.context or {}).get("folder")
    return path if folder is None else (folder / path.expanduser())


RelativePath = Annotated[Path, AfterValidator(beside_file)]
"""A path that a file names; relative ones start at the file's own folder."""


def prompt_beside_file(name: str, info: ValidationInfo) -> str:
    """The name of a packaged prompt as it is, the path of a prompt file as ``beside_file`` has it."""
    return str(beside_file(Path(name), info)) if name.endswith((".yaml", ".yml")) else name


def as_list(given: object) -> object:
    """One text in place of a list of one."""
    return [given] if isinstance(given, str) else given


def each_once(names: list[str]) -> list[str]:
    """Names that are neither empty nor repeated.

    Raises:
        ValueError: one is.
    """
    for name in names:
        if not name.strip():
            raise ValueError("a name is empty")
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is named twice")
    return names


Paths = Annotated[list[RelativePath], BeforeValidator(as_list)]
PromptName = Annotated[str, AfterValidator(prompt_beside_file)]
"""A packaged prompt, or a file of one's own."""
JudgeNames = Annotated[list[str], BeforeValidator(as_list), Field(min_length=1), AfterValidator(each_once)]
"""One or more of the names declared under ``judges``."""

Model = TypeVar("Model", bound=BaseModel)


def load_section(path: Path, model: type[Model], error: type[InputError]) -> Model:
    """Read a YAML file into ``model``.

    Raises:
        InputError: of type ``error``; one line with the file, the key and the problem.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise error(f"{path}: is not UTF-8 text (byte {problem.start})") from problem
    return parse_section(text, str(path), model, error, folder=path.resolve().parent)


def parse_section(text: str, source: str, model: type[Model], error: type[InputError], *, folder: Path | None) -> Model:
    """Like ``load_section`` for a text already at hand; ``source`` names it in errors."""
    try:
        content = yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a SafeLoader
        return model.model_validate(content, context={"folder": folder})
    except ValidationError as problem:
        raise error(f"{source}: {describe(problem)}") from problem
    except yaml.MarkedYAMLError as problem:
        line = f":{problem.problem_mark.line + 1}" if problem.problem_mark else ""
        raise error(f"{source}{line}: {problem.problem or problem.context}") from problem
    except (yaml.YAMLError, ValueError) as problem:  # a date such as 2024-13-45 is a ValueError
        raise error(f"{source}: {' '.join(str(problem).split())}") from problem
    except RecursionError as problem:
        raise error(f"{source}: nested too deeply") from problem


def describe(problem: ValidationError) -> str:
    """The first thing wrong, as ``key.key: what is wrong``."""
    first = problem.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    more = len(problem.errors()) - 1
    return f"{where + ': ' if where else ''}{message}{f' (and {more} more)' if more else ''}"


class UniqueKeys(yaml.SafeLoader):
    """Refuses a key that stands twice, where YAML libraries quietly keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of a node."""
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # ``<<: *other``, whose keys may be given again
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.MarkedYAMLError(None, None, "a key is a single word", key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
