"""YAML files that people write: strict keys, one-line errors, paths relative to the file."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
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
from judges.mistakes import describe, line_in, mistake, nearest


def matching(pattern: str, words: str, *, shown: bool = True) -> AfterValidator:
    """A text of a certain form; ``words`` say which. The text that has another is ``shown`` unless it may be secret."""
    form = re.compile(pattern)

    def check(given: str) -> str:
        if not form.match(given):
            raise ValueError(f"{words}, not {given!r}" if shown else words)
        return given

    return AfterValidator(check)


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
"""Of random draws; the generators take no negative ones."""
TournamentName = Annotated[
    str,
    matching(
        r"^[\w][\w .-]{0,79}$", "must be 1 to 80 letters, digits, blanks, '_', '.' or '-', with a letter or digit first"
    ),
]


class Section(BaseModel):
    """A mapping of known keys. An unknown one is refused with the nearest known name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        if isinstance(given, dict):
            for key in given:
                if key == "api_key":
                    words = "keys do not belong in a file; name an environment variable with 'api_key_env'"
                    raise mistake(words, key)
                if key not in cls.model_fields:
                    raise mistake(f"unknown key {key!r}{nearest(key, cls.model_fields)}", str(key))
        return given


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


def parse_section(
    text: str | Mapping[str, Any], source: str, model: type[Model], error: type[InputError], *, folder: Path | None
) -> Model:
    """Like ``load_section`` for a text, or what it would say, already at hand; ``source`` names it in errors."""
    try:
        content = yaml.load(text, Loader=UniqueKeys) if isinstance(text, str) else text  # noqa: S506 - a SafeLoader
        return model.model_validate(content, context={"folder": folder})
    except ValidationError as problem:
        said = describe(problem, line_in(text if isinstance(text, str) else ""))
        raise error(f"{source}{'' if said.startswith(':') else ': '}{said}") from problem
    except yaml.MarkedYAMLError as problem:
        line = f":{problem.problem_mark.line + 1}" if problem.problem_mark else ""
        raise error(f"{source}{line}: {_plain(problem)}") from problem
    except yaml.YAMLError as problem:
        raise error(f"{source}: holds a character that YAML does not allow; remove it") from problem
    except ValueError as problem:
        raise error(f"{source}: holds a date that is none ({problem}); put quotes around it") from problem
    except RecursionError as problem:
        raise error(f"{source}: nested too deeply") from problem


def _plain(problem: yaml.MarkedYAMLError) -> str:
    """What is wrong with a YAML text; our own words stay as they are."""
    words = str(problem.problem or problem.context)
    if isinstance(problem, _KeyProblem):
        return words
    if "'\\t'" in words:
        return "a tab stands where blanks are asked for; indent with blanks"
    return f"is not YAML: {words}; check quotes, brackets, colons and indentation"


class _KeyProblem(yaml.MarkedYAMLError):
    """A key that cannot stand where it does, in our own words."""


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
                raise _KeyProblem(None, None, "a key is a single word", key_node.start_mark)
            if key in seen:
                raise _KeyProblem(None, None, f"key {key!r} stands twice; leave one out", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
