"""Base classes for the sections of YAML files: strict keys, errors on one line, paths relative to the file."""

from __future__ import annotations

import datetime
import difflib
import itertools
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from judges.errors import InputError, reason, regular_file
from judges.masking import looks_like_key, one_line


def matching(pattern: str, problem: str) -> AfterValidator:
    """A validator for texts that begin with a match of ``pattern``; for others, the error begins with ``problem``."""
    form = re.compile(pattern)

    def check(text: str) -> str:
        if not form.match(text):
            raise ValueError(f"{problem}, not {shortened([text])!r}")
        return text

    return AfterValidator(check)


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Draws = Annotated[int, Field(ge=1, le=100_000)]
"""Number of random draws. It is limited, since all draws are held in memory at once."""
Seed = Annotated[int, Field(ge=0)]
"""Seed of random draws; the generators accept no negative seed."""
TournamentName = Annotated[
    str,
    matching(
        r"^[\w][\w .-]{0,79}$", "must be 1 to 80 letters, digits, blanks, '_', '.' or '-', with a letter or digit first"
    ),
]


class Section(BaseModel):
    """A mapping of known keys. An unknown key is refused, and the error suggests the most similar known key."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                if key == "api_key":
                    problem = "keys do not belong in a file; name an environment variable with 'api_key_env'"
                    raise mistake(problem, key)
                if key not in cls.model_fields:
                    raise mistake(f"unknown key {key!r}{nearest(key, cls.model_fields)}", str(key))
                if isinstance(values[key], bool) and _is_number(cls.model_fields[key].annotation):
                    raise mistake(f"{key}: must be a number, not {str(values[key]).lower()}", key)
        return values


def _is_number(annotation: Any) -> bool:
    """Whether a field takes numbers but no booleans, which pydantic would convert (``yes`` to 1)."""
    kinds = list(_kinds(annotation))
    return any(kind in (int, float) for kind in kinds) and not any(isinstance(kind, bool) for kind in kinds)


def _kinds(annotation: Any) -> Iterator[Any]:
    inner = get_args(annotation)
    if not inner:
        yield False if annotation is bool else annotation
    for each in inner:
        yield from _kinds(each)


def expand_home(path: str | Path) -> Path:
    """The path with ``~`` replaced by the user's home folder; raises ``ValueError`` if it is invalid or unknown."""
    if "\0" in str(path):
        raise ValueError("a file's name holds no NUL character; remove it")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"no user's folder is known for {str(path).partition('/')[0]!r}; write the path") from None


def beside_file(path: Path, info: ValidationInfo) -> Path:
    """Resolve a path against the folder of the configuration file that names it."""
    folder = (info.context or {}).get("folder")
    return path if folder is None else (folder / expand_home(path))


RelativePath = Annotated[Path, AfterValidator(beside_file)]
"""A path in a configuration file, relative to the file's folder."""


def prompt_beside_file(name: str, info: ValidationInfo) -> str:
    """Resolve a prompt file's path against the configuration file's folder; leave a packaged prompt's name as is."""
    return str(beside_file(Path(name), info)) if name.endswith((".yaml", ".yml")) else name


def as_list(names: object) -> object:
    """Wrap a single text in a list; return anything else unchanged."""
    return [names] if isinstance(names, str) else names


def each_once(names: list[str]) -> list[str]:
    """Return the names unchanged; raises ``ValueError`` if one is empty or repeated."""
    for name in names:
        if not name.strip():
            raise ValueError("a name is empty")
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is named twice; name it once")
    return names


Paths = Annotated[list[RelativePath], BeforeValidator(as_list)]
PromptName = Annotated[str, AfterValidator(prompt_beside_file)]
"""The name of a packaged prompt, or the path of a prompt file."""
UNLESS_EMPTY: Final[Any] = Field(exclude_if=lambda value: not value)
"""Settings of a field that is left out of the stored configuration while it is empty."""
ForPeople = Annotated[str, UNLESS_EMPTY]
"""A text that annotators see and judges do not."""
JudgeNames = Annotated[list[str], BeforeValidator(as_list), Field(min_length=1), AfterValidator(each_once)]
"""One or more of the names declared under ``judges``."""

Model = TypeVar("Model", bound=BaseModel)


def load_section(path: Path, model: type[Model], error: type[InputError]) -> Model:
    """Read a YAML file into ``model``.

    Raises:
        InputError: of type ``error``; its message is one line with the file, the key and the problem.
    """
    try:
        text = regular_file(path).read_text(encoding="utf-8")
    except FileNotFoundError as problem:
        raise error(f"{path}: no such file; check its name and folder") from problem
    except OSError as problem:
        raise error(f"{path}: cannot be read: {reason(problem)}") from problem
    except UnicodeDecodeError as problem:
        line = path.read_bytes().count(b"\n", 0, problem.start) + 1
        raise error(f"{path}:{line}: is not UTF-8; save the file as UTF-8") from problem
    return parse_section(text, str(path), model, error, folder=path.resolve().parent)


def argument(name: str, kind: Any, value: Any) -> Any:
    """Convert the argument of a Python call to the type ``kind``; raises ``InputError`` if that is impossible."""
    try:
        return TypeAdapter(dict[str, kind]).validate_python({name: value})[name]
    except ValidationError as problem:
        raise InputError(describe(problem)) from problem


def parse_section(
    text: str | Mapping[str, Any], source: str, model: type[Model], error: type[InputError], *, folder: Path | None
) -> Model:
    """Like ``load_section``, for a YAML text or its parsed values; error messages call it ``source``."""
    try:
        content = _content(text) if isinstance(text, str) else text
        return model.model_validate(content, context={"folder": folder})
    except ValidationError as problem:
        description = describe(problem, line_in(text if isinstance(text, str) else ""))
        raise error(f"{source}{'' if description.startswith(':') else ': '}{description}") from problem
    except yaml.MarkedYAMLError as problem:
        line = f":{problem.problem_mark.line + 1}" if problem.problem_mark else ""
        raise error(f"{source}{line}: {yaml_problem(problem)}") from problem
    except yaml.YAMLError as problem:
        at = str(text).count("\n", 0, getattr(problem, "position", 0)) + 1
        raise error(f"{source}:{at}: holds a character that YAML does not allow; remove it") from problem
    except RecursionError as problem:
        raise error(f"{source}: nested too deeply; check its brackets") from problem


def _content(text: str) -> Any:
    """Parse a YAML text by libyaml, in a tenth of the time; after an error, by PyYAML, whose errors are better."""
    try:
        if len(text) <= _QUICK_LIMIT:
            return yaml.load(text, Loader=QuickKeys)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        pass
    return yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a safe loader


def yaml_problem(problem: yaml.MarkedYAMLError) -> str:
    """Say in plain words what is wrong with a YAML text."""
    words = str(problem.problem or problem.context)
    if isinstance(problem, _KeyProblem):
        return words
    if "'\\t'" in words:
        return "a tab stands where spaces are needed; indent with spaces"
    if "another document" in words:
        return "a second document begins with '---'; leave one of them"
    if "constructor for the tag" in words:
        return f"the tag {words.rpartition('tag ')[2]} is not read; remove it, or put quotes around the text"
    return f"is not YAML: {words}; check quotes, brackets, colons and indentation"


class _KeyProblem(yaml.MarkedYAMLError):
    """An error about a key or value that this module refuses, as opposed to an error found by PyYAML."""


class _Keys(yaml.constructor.SafeConstructor):
    """Refuses keys that occur twice in a mapping; YAML libraries silently use the last value."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as problem:
            words = f"{shortened([str(node.value)])} is no date and no number; put quotes around it"
            raise _KeyProblem(None, None, words, node.start_mark) from problem

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # the keys of ``<<: *other`` may be repeated
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                words = "a list or a section stands in place of a key; a key is a single word"
                raise _KeyProblem(None, None, words, key_node.start_mark)
            if key in seen:
                raise _KeyProblem(None, None, f"key {key!r} stands twice; leave one out", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


class UniqueKeys(_Keys, yaml.SafeLoader):
    """Loads YAML in Python, and refuses repeated keys."""


QuickLoader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader if PyYAML was built with libyaml, as its wheels are; otherwise the Python loader."""
_QUICK_LIMIT: Final = 10_000
"""Longest YAML text that libyaml parses, in characters; it crashes on tens of thousands of nested lists."""


class QuickKeys(_Keys, QuickLoader):  # type: ignore[misc]
    """Loads YAML by libyaml, and refuses repeated keys; its errors are less detailed."""


KeyPath: TypeAlias = tuple[int | str, ...]
"""Path to a value in a YAML file: keys of mappings, and positions in lists."""

_SHOWN: Final = 60
"""Longest value shown in a message, in characters."""
_LISTED: Final = 70
"""Longest list of names in a message, in characters."""
_NAME: Final = 24
"""Longest name in a list of names in a message, in characters; longer names are cut."""
_LEAST_RATIO: Final = 0.7
"""Least similarity, from 0 to 1, at which a name may be a misspelling of another."""

_SECTION_FORM: Final = "a section, such as {key: value}"
_EXPECTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("string_type", "callable_type"), "a text in quotes"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list, such as [a, b]"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _SECTION_FORM),
    "finite_number": "a finite number",
    "path_type": "the path of a file",
}
"""The value that a message asks for, by the type of pydantic's error."""
_BOUNDS: Final = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def mistake(words: str, *at: int | str) -> PydanticCustomError:
    """An error for a pydantic validator to raise; ``at`` is the path from the checked section to the wrong value."""
    return PydanticCustomError("mistake", "{words}", {"words": words, "at": at})


def nearest(name: object, known: Any) -> str:
    """``; did you mean 'x'?`` with the known name that is most similar to ``name``; if none is, a list of names."""
    names = [str(name) for name in known]
    return did_you_mean(name, names) or f"; known are {shortened(sorted(names))}"


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` with the most similar known name; empty if none is similar."""
    name = str(given)
    close = [
        other
        for other in difflib.get_close_matches(name, known, n=3, cutoff=0.6)
        if difflib.SequenceMatcher(None, name, other).ratio() >= _LEAST_RATIO
        or sorted(name) == sorted(other)
        or name in other
        or other in name
    ]
    return f"; did you mean {close[0]!r}?" if close else ""


def shortened(names: Iterable[str], width: int = _LISTED) -> str:
    """A comma-separated list of the first names that fit into ``width`` characters, and ``...`` for the rest."""
    names_shown = [name if len(name) <= _NAME else f"{name[: _NAME - 1]}…" for name in itertools.islice(names, width)]
    for count in range(len(names_shown), 0, -1):
        shown = ", ".join([*names_shown[:count], *(["..."] if count < len(names_shown) else [])])
        if len(shown) <= width or count == 1:
            return shown
    return ""


def describe(problem: ValidationError, line_of: Callable[[KeyPath], int | None] = lambda _: None) -> str:
    """Describe the first error that pydantic found, as ``key.key: must be a number, not 'value'``.

    With ``line_of``, which finds the line of a value in its file, the message begins with the line: ``:4: key``.
    """
    mistakes = problem.errors(include_url=False)
    own_mistakes = [each for each in mistakes if each["type"] == "mistake"]
    # A misspelt key is also reported as missing, so our own mistakes come first. If a value may have several types, its
    # deepest error is the most specific.
    candidates = own_mistakes[:1] or _of_same_value(mistakes[0], mistakes)
    reported = max(candidates, key=lambda each: len(_keys(each)))
    where = _keys(reported)
    line = line_of((*where, *reported.get("ctx", {}).get("at", ())))
    more = len({_value_of(each) for each in mistakes}) - 1
    key = ".".join(map(str, where))
    description = f"{key + ': ' if key else ''}{_words(reported, mistakes)}{f' (and {more} more)' if more else ''}"
    return f":{line}: {description}" if line is not None else description


def line_in(text: str) -> Callable[[KeyPath], int | None]:
    """A function that finds the line of a value in a YAML text, or of the nearest section around it."""

    def line_of(place: KeyPath) -> int | None:
        try:
            node = yaml.compose(text, Loader=QuickLoader if len(text) <= _QUICK_LIMIT else yaml.SafeLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            return None
        line = None
        for part in place:
            if (child := _child(node, part)) is None:
                break
            line, node = child
        return line

    return line_of


def _child(node: yaml.Node | None, part: int | str) -> tuple[int, yaml.Node] | None:
    """Line and node of the value under ``part``, a mapping's key or a list's position; ``None`` if there is none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if str(key.value) == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        member = node.value[part]
        return member.start_mark.line + 1, member
    return None


_KIND: Final = re.compile(r"[\[\](){}]|^(?:str|int|float|bool|dict|callable|[A-Z]\w+Section)$")
"""Matches the names of types that pydantic inserts into an error's path if a value may have several types."""


def _keys(each: ErrorDetails) -> KeyPath:
    return tuple(part for part in each["loc"] if not (isinstance(part, str) and _KIND.search(part)))


def _value_of(each: ErrorDetails) -> KeyPath:
    kinds = [number for number, part in enumerate(each["loc"]) if isinstance(part, str) and _KIND.search(part)]
    return each["loc"][: kinds[0]] if kinds else each["loc"]


def _of_same_value(first: ErrorDetails, mistakes: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Those errors that are about the same value as ``first``: pydantic reports one per type it may have."""
    return [each for each in mistakes if _value_of(each) == _value_of(first)]


def _words(first: ErrorDetails, mistakes: Sequence[ErrorDetails]) -> str:
    kind, value, context = first["type"], first.get("input"), first.get("ctx", {})
    if kind in {"mistake", "value_error"}:
        return str(context.get("words") or context.get("error") or first["msg"])
    if kind in {"too_short", "too_long"}:
        number = context["min_length" if kind == "too_short" else "max_length"]
        if number <= 1:
            return "is empty; name at least one"
        return f"must have {number} entries, not {context['actual_length']}"
    if value is None and not first["loc"]:
        return "the file is empty; it must have lines such as 'key: value'"
    errors = [each for each in _of_same_value(first, mistakes) if _keys(each) == _keys(first)]
    known = list(dict.fromkeys(name for each in errors for name in _expected(each)))
    names = f"{', '.join(known[:-1])} or {known[-1]}" if known[1:] else "".join(known)
    if kind == "missing":
        return "is missing; add it"
    return f"must be {names}, not {_shown(value)}{did_you_mean(value, known)}"


def _expected(each: ErrorDetails) -> list[str]:
    if each["type"] in {"literal_error", "enum"}:
        return [text or number for text, number in re.findall(r"'([^']*)'|(\d+)", str(each["ctx"]["expected"]))]
    if each["type"] in _BOUNDS:
        words, name = _BOUNDS[each["type"]]
        return [f"{words} {each['ctx'][name]:g}"]
    return [_EXPECTED.get(each["type"], "something else")]


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "keys with values" if value else "{}"
    if isinstance(value, list | tuple) and not value:
        return "[]"
    text = one_line(str(value) if isinstance(value, datetime.date) else repr(value))
    if looks_like_key(text):
        return "what looks like a key"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
