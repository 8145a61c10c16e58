"""YAML files that people write: strict keys, one-line errors, paths relative to the file."""

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

from judges.errors import InputError, a_file, reason
from judges.masking import looks_like_key, one_line


def matching(pattern: str, words: str) -> AfterValidator:
    """A text of a certain form; ``words`` say which."""
    form = re.compile(pattern)

    def check(given: str) -> str:
        if not form.match(given):
            raise ValueError(f"{words}, not {shortened([given])!r}")
        return given

    return AfterValidator(check)


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Draws = Annotated[int, Field(ge=1, le=100_000)]
"""Random draws, each of which stays in memory."""
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

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

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
                if isinstance(given[key], bool) and _is_number(cls.model_fields[key].annotation):
                    raise mistake(f"{key}: must be a number, not {str(given[key]).lower()}", key)
        return given


def _is_number(annotation: Any) -> bool:
    """Whether a number is asked for: the library would take ``yes`` for 1."""
    kinds = list(_kinds(annotation))
    return any(kind in (int, float) for kind in kinds) and not any(isinstance(kind, bool) for kind in kinds)


def _kinds(annotation: Any) -> Iterator[Any]:
    inner = get_args(annotation)
    if not inner:
        yield False if annotation is bool else annotation
    for each in inner:
        yield from _kinds(each)


def at_home(path: str | Path) -> Path:
    """A path with the user's folder in place of ``~``.

    Raises:
        ValueError: it cannot be one.
    """
    if "\0" in str(path):
        raise ValueError("a file's name holds no NUL character; remove it")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"no user's folder is known for {str(path).partition('/')[0]!r}; write the path") from None


def beside_file(path: Path, info: ValidationInfo) -> Path:
    """A path as the folder of the file that names it has it."""
    folder = (info.context or {}).get("folder")
    return path if folder is None else (folder / at_home(path))


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
            raise ValueError(f"{name!r} is named twice; name it once")
    return names


Paths = Annotated[list[RelativePath], BeforeValidator(as_list)]
PromptName = Annotated[str, AfterValidator(prompt_beside_file)]
"""A packaged prompt, or a file of one's own."""
UNLESS_EMPTY: Final[Any] = Field(exclude_if=lambda value: not value)
"""A field that is left out of what is stored if it is empty."""
JudgeNames = Annotated[list[str], BeforeValidator(as_list), Field(min_length=1), AfterValidator(each_once)]
"""One or more of the names declared under ``judges``."""

Model = TypeVar("Model", bound=BaseModel)


def load_section(path: Path, model: type[Model], error: type[InputError]) -> Model:
    """Read a YAML file into ``model``.

    Raises:
        InputError: of type ``error``; one line with the file, the key and the problem.
    """
    try:
        text = a_file(path).read_text(encoding="utf-8")
    except FileNotFoundError as problem:
        raise error(f"{path}: no such file; check its name and folder") from problem
    except OSError as problem:
        raise error(f"{path}: cannot be read: {reason(problem)}") from problem
    except UnicodeDecodeError as problem:
        line = path.read_bytes().count(b"\n", 0, problem.start) + 1
        raise error(f"{path}:{line}: is not UTF-8; save the file as UTF-8") from problem
    return parse_section(text, str(path), model, error, folder=path.resolve().parent)


def argument(name: str, kind: Any, value: Any) -> Any:
    """A value that a call from Python gives, as the kind that is asked for.

    Raises:
        InputError: it is of another kind.
    """
    try:
        return TypeAdapter(dict[str, kind]).validate_python({name: value})[name]
    except ValidationError as problem:
        raise InputError(describe(problem)) from problem


def parse_section(
    text: str | Mapping[str, Any], source: str, model: type[Model], error: type[InputError], *, folder: Path | None
) -> Model:
    """Like ``load_section`` for a text, or what it would say, already at hand; ``source`` names it in errors."""
    try:
        content = _content(text) if isinstance(text, str) else text
        return model.model_validate(content, context={"folder": folder})
    except ValidationError as problem:
        said = describe(problem, line_in(text if isinstance(text, str) else ""))
        raise error(f"{source}{'' if said.startswith(':') else ': '}{said}") from problem
    except yaml.MarkedYAMLError as problem:
        line = f":{problem.problem_mark.line + 1}" if problem.problem_mark else ""
        raise error(f"{source}{line}: {_plain(problem)}") from problem
    except yaml.YAMLError as problem:
        before = str(text)[: getattr(problem, "position", 0)]
        raise error(
            f"{source}:{before.count(chr(10)) + 1}: holds a character that YAML does not allow; remove it"
        ) from problem
    except RecursionError as problem:
        raise error(f"{source}: nested too deeply; check its brackets") from problem


def _content(text: str) -> Any:
    """What a text says: libyaml takes a tenth of the time, and the reader in Python tells better what is wrong."""
    try:
        if len(text) <= _SHORT:
            return yaml.load(text, Loader=QuickKeys)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        pass
    return yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a safe loader


def _plain(problem: yaml.MarkedYAMLError) -> str:
    """What is wrong with a YAML text; our own words stay as they are."""
    words = str(problem.problem or problem.context)
    if isinstance(problem, _KeyProblem):
        return words
    if "'\\t'" in words:
        return "a tab stands where blanks are asked for; indent with blanks"
    if "another document" in words:
        return "a second document begins with '---'; leave one of them"
    if "constructor for the tag" in words:
        return f"the tag {words.rpartition('tag ')[2]} is not read; remove it, or put quotes around the text"
    return f"is not YAML: {words}; check quotes, brackets, colons and indentation"


class _KeyProblem(yaml.MarkedYAMLError):
    """A key that cannot stand where it does, in our own words."""


class _Keys(yaml.constructor.SafeConstructor):
    """Refuses a key that stands twice, where YAML libraries quietly keep the last."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node."""
        try:
            return super().construct_object(node, deep)
        except ValueError as problem:
            words = f"{shortened([str(node.value)])} is no date and no number; put quotes around it"
            raise _KeyProblem(None, None, words, node.start_mark) from problem

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of a node."""
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # ``<<: *other``, whose keys may be given again
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise _KeyProblem(
                    None,
                    None,
                    "a list or a section stands in place of a key; a key is a single word",
                    key_node.start_mark,
                )
            if key in seen:
                raise _KeyProblem(None, None, f"key {key!r} stands twice; leave one out", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


class UniqueKeys(_Keys, yaml.SafeLoader):
    """Reads YAML whose keys stand once each."""


QuickLoader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Of libyaml, where PyYAML was built with it, as its wheels are."""
_SHORT: Final = 10_000
"""Characters up to which it is asked: it crashes where a text nests some ten thousand lists."""


class QuickKeys(_Keys, QuickLoader):  # type: ignore[misc]
    """The same by libyaml, which says less of what is wrong."""


KeyPath: TypeAlias = tuple[int | str, ...]
"""Keys and places in lists that lead to a value."""

_SHOWN: Final = 60
"""Characters of a value that a message repeats."""
_LISTED: Final = 70
"""Characters of a list of names in a message."""
_NAME: Final = 24
"""Characters of a name in such a list."""
_LIKE: Final = 0.7
"""How like two names are of which one may be a slip for the other, from 0 to 1."""

_KEYS: Final = "a section, such as {key: value}"
_ASKED_FOR: Final[Mapping[str, str]] = {
    **dict.fromkeys(("string_type", "callable_type"), "a text in quotes"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list, such as [a, b]"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _KEYS),
    "finite_number": "a finite number",
    "path_type": "the path of a file",
}
"""By the library's name of the mistake."""
_BOUNDS: Final = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def mistake(words: str, *at: int | str) -> PydanticCustomError:
    """An error for a validator to raise; ``at`` leads from the section that is checked to the value."""
    return PydanticCustomError("mistake", "{words}", {"words": words, "at": at})


def nearest(given: object, known: Any) -> str:
    """``; did you mean 'x'?`` for the known name most like ``given``, else the list of what is known."""
    names = [str(name) for name in known]
    return did_you_mean(given, names) or f"; known are {shortened(sorted(names))}"


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known name most like ``given``, if few letters differ or only their order."""
    name = str(given)
    close = [
        other
        for other in difflib.get_close_matches(name, known, n=3, cutoff=0.6)
        if difflib.SequenceMatcher(None, name, other).ratio() >= _LIKE
        or sorted(name) == sorted(other)
        or name in other
        or other in name
    ]
    return f"; did you mean {close[0]!r}?" if close else ""


def shortened(names: Iterable[str], width: int = _LISTED) -> str:
    """Names in a row, as many as fit into ``width`` characters; ``...`` stands for the others."""
    some = [name if len(name) <= _NAME else f"{name[: _NAME - 1]}…" for name in itertools.islice(names, width)]
    for kept in range(len(some), 0, -1):
        shown = ", ".join([*some[:kept], *(["..."] if kept < len(some) else [])])
        if len(shown) <= width or kept == 1:
            return shown
    return ""


def describe(problem: ValidationError, line_of: Callable[[KeyPath], int | None] = lambda _: None) -> str:
    """The first thing wrong, as ``key.key: what is asked for, not 'value'``.

    Args:
        problem: what the library found.
        line_of: the line of a value, where the values come from a file; it stands in front then, as in ``:4: key``.
    """
    mistakes = problem.errors(include_url=False)
    own = [each for each in mistakes if each["type"] == "mistake"]
    # A misspelt key is missing as well: what was written comes first. Of a value that may be of several kinds, what is
    # wrong deepest within it says most.
    first = own[0] if own else max(_of_one_value(mistakes[0], mistakes), key=lambda each: len(_keys(each)))
    where = _keys(first)
    line = line_of((*where, *first.get("ctx", {}).get("at", ())))
    more = len({_value_of(each) for each in mistakes}) - 1
    key = ".".join(map(str, where))
    said = f"{key + ': ' if key else ''}{_words(first, mistakes)}{f' (and {more} more)' if more else ''}"
    return f":{line}: {said}" if line is not None else said


def line_in(text: str) -> Callable[[KeyPath], int | None]:
    """Finds the line of a value in a YAML text: its key's, or that of the nearest section around it."""

    def line_of(place: KeyPath) -> int | None:
        try:
            node = yaml.compose(text, Loader=QuickLoader if len(text) <= _SHORT else yaml.SafeLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            return None
        line = None
        for part in place:
            found = _below(node, part)
            if found is None:
                break
            line, node = found
        return line

    return line_of


def _below(node: yaml.Node | None, part: int | str) -> tuple[int, yaml.Node] | None:
    """The line of a key, or of a member of a list, and its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if str(key.value) == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        member = node.value[part]
        return member.start_mark.line + 1, member
    return None


_KIND: Final = re.compile(r"[\[\](){}]|^(?:str|int|float|bool|dict|callable|[A-Z]\w+Section)$")
"""How the library names the kinds that a value may have, among the keys that lead to it."""


def _keys(each: ErrorDetails) -> KeyPath:
    return tuple(part for part in each["loc"] if not (isinstance(part, str) and _KIND.search(part)))


def _value_of(each: ErrorDetails) -> KeyPath:
    kinds = [number for number, part in enumerate(each["loc"]) if isinstance(part, str) and _KIND.search(part)]
    return each["loc"][: kinds[0]] if kinds else each["loc"]


def _of_one_value(first: ErrorDetails, mistakes: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """All that is said of the value that ``first`` is about, for each kind that it may have."""
    return [each for each in mistakes if _value_of(each) == _value_of(first)]


def _words(first: ErrorDetails, mistakes: Sequence[ErrorDetails]) -> str:
    kind, given, told = first["type"], first.get("input"), first.get("ctx", {})
    if kind in {"mistake", "value_error"}:
        return str(told.get("words") or told.get("error") or first["msg"])
    if kind in {"too_short", "too_long"}:
        number = told["min_length" if kind == "too_short" else "max_length"]
        return (
            f"must have {number} entries, not {told['actual_length']}" if number > 1 else "is empty; name at least one"
        )
    if given is None and not first["loc"]:
        return "the file is empty; it must have lines such as 'key: value'"
    alike = [each for each in _of_one_value(first, mistakes) if _keys(each) == _keys(first)]
    known = list(dict.fromkeys(name for each in alike for name in _asked_for(each)))
    names = f"{', '.join(known[:-1])} or {known[-1]}" if known[1:] else "".join(known)
    if kind == "missing":
        return "is missing; add it"
    return f"must be {names}, not {_shown(given)}{did_you_mean(given, known)}"


def _asked_for(each: ErrorDetails) -> list[str]:
    if each["type"] in {"literal_error", "enum"}:
        return [text or number for text, number in re.findall(r"'([^']*)'|(\d+)", str(each["ctx"]["expected"]))]
    if each["type"] in _BOUNDS:
        words, name = _BOUNDS[each["type"]]
        return [f"{words} {each['ctx'][name]:g}"]
    return [_ASKED_FOR.get(each["type"], "something else")]


def _shown(given: object) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, Mapping):
        return "keys with values" if given else "{}"
    if isinstance(given, list | tuple) and not given:
        return "[]"
    text = one_line(str(given) if isinstance(given, datetime.date) else repr(given))
    if looks_like_key(text):
        return "what looks like a key"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
