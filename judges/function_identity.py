"""What decides a function's replies, as far as it can be read: its compiled code, and the values and code that it uses.

Code of the user's own is followed through global names, variables around a function, defaults, attributes and classes;
what comes with Python or an installed package is known by its name and version. Layout, comments and the place of a
file do not count, nor does the order of dictionaries and sets.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import hashlib
import importlib
import re
import types
import typing
import uuid
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.util import resolve_name
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias

from msgspec import Struct

from judges.libraries import library_of, library_to_import, named_in_library

_MOST_VALUES: Final = 100_000
"""Values that one attribute, variable or argument may hold; reading them takes a few tenths of a second."""
_MOST_BYTES: Final = 32_000_000
_LISTED_OBJECT: Final = 10
"""How many values an object in a list counts for."""
_DEEPEST: Final = 60
"""Lists in lists, and so on."""
_NAMED: Final = 3
_TO_KEEP: Final = "say version= beside the function to keep them"
_WRITTEN: Final[Mapping[str, Callable[[Any], str | bytes]]] = {
    "builtins.NoneType": repr,
    "builtins.bool": repr,
    "builtins.str": str,
    "builtins.int": hex,
    "builtins.float": float.hex,
    "builtins.bytes": bytes,
    "builtins.bytearray": bytes,
    "datetime.date": repr,
    "datetime.datetime": repr,
    "datetime.time": repr,
    "datetime.timedelta": repr,
    "datetime.timezone": repr,
    "decimal.Decimal": repr,
    "fractions.Fraction": repr,
    "uuid.UUID": repr,
    "zoneinfo.ZoneInfo": str,
    "builtins.range": repr,
    "builtins.slice": repr,
    "builtins.ellipsis": repr,
    "builtins.NotImplementedType": repr,
    "builtins.complex": repr,
    "typing.TypeVar": repr,
}
"""Values that are what they say in words."""
_DECIDES_NOTHING: Final = frozenset(
    {"logging.Logger", "_thread.lock", "_thread.RLock", "_contextvars.ContextVar"}
    | {f"threading.{name}" for name in ("Semaphore", "BoundedSemaphore", "Event", "Condition", "Barrier")}
    | {f"asyncio.locks.{name}" for name in ("Lock", "Semaphore", "BoundedSemaphore", "Event", "Condition")}
)
_OF_TUPLES: Final = frozenset({"collections._tuplegetter", "_collections._tuplegetter"})
_HEAP_TYPE: Final = 1 << 9
_DEFINITIONS: Final = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
_PLAIN: Final = (str, bytes, bytearray, int, float, tuple, list, dict, set, frozenset, deque)

PROCESS: Final = uuid.uuid4().hex
"""No other process has it."""

_Path: TypeAlias = tuple[str, str] | None
"""What kind of name leads to a value, and the name; ``None`` for the function itself."""


class FunctionReading(Struct, frozen=True):
    """What was read of a function.

    Attributes:
        digest: of all that could be read; the same in every process.
        unreadable: the other parts in words, such as ``attribute 'client' (httpx.Client)``.
        objects: which objects of this process those parts are; empty where everything could be read.
    """

    digest: str
    unreadable: tuple[str, ...] = ()
    objects: str = ""

    @property
    def lacking(self) -> str:
        """What could not be read, and what follows from it."""
        if not self.unreadable:
            return ""
        more = len(self.unreadable) - _NAMED
        named = ", ".join([*self.unreadable[:_NAMED], *([f"{more} more"] if more > 0 else [])])
        return f"{named} cannot be read, so replies are not kept across processes; {_TO_KEEP}"


def read_function(function: Callable[..., Any]) -> FunctionReading:
    """Read what decides a function's replies."""
    return _Reader().read(function)


class _TooLargeError(Exception):
    """A value holds more than is read of one."""


class _Scope:
    """Objects that refer to each other by number, in the order in which they were first met."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.numbers: dict[int, int] = {}
        self.objects: list[tuple[Any, _Path]] = []
        """They are held, so that no other object gets their address."""
        self.written = 0


class _Reader:
    def __init__(self) -> None:
        self._scopes: list[_Scope] = []
        self._containers: list[int] = []
        self._left, self._left_bytes = _MOST_VALUES, _MOST_BYTES
        self._all_left, self._all_left_bytes = 4 * _MOST_VALUES, 4 * _MOST_BYTES
        self._inside = False
        self._path: _Path = None
        self._unreadable: dict[str, set[str]] = {}

    def read(self, function: Callable[..., Any]) -> FunctionReading:
        digest = self._apart(function)
        tokens = sorted(set[str]().union(*self._unreadable.values()))
        objects = hashlib.sha256(" ".join(tokens).encode()).hexdigest()[:16] if tokens else ""
        return FunctionReading(digest.hex()[:16], tuple(self._unreadable), objects)

    # The stream that is hashed

    def _put(self, kind: str, content: bytes | str = b"") -> None:
        """Write one thing so that no two sequences of things are written alike."""
        self._left_bytes -= len(content)
        if self._left_bytes < 0:
            raise _TooLargeError
        content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        self._scopes[-1].digest.update(b"%s %d " % (kind.encode(), len(content)))
        self._scopes[-1].digest.update(content)

    def _apart(self, value: Any) -> bytes:
        """The digest of a value as if it stood alone, so that values can be put in an order."""
        scope = _Scope()
        self._scopes.append(scope)
        try:
            self._value(value)
            while scope.written < len(scope.objects):
                found, path = scope.objects[scope.written]
                scope.written += 1
                before, self._path = self._path, path
                try:
                    self._content(found)
                except _TooLargeError:
                    if self._inside:
                        raise
                    self._cannot(found)
                self._path = before
        finally:
            self._scopes.pop()
        return scope.digest.digest()

    def _part(self, path: _Path, value: Any) -> None:
        """A value under a name: one that is too large cannot be read, and counts for nothing more."""
        before, self._path = self._path, path
        try:
            if self._inside:
                self._value(value)
            else:
                self._bounded(value)
        finally:
            self._path = before

    def _bounded(self, value: Any) -> None:
        scope = self._scopes[-1]
        digest, met, rest = scope.digest.copy(), len(scope.objects), (self._left, self._left_bytes)
        self._left = values = min(_MOST_VALUES, self._all_left)
        self._left_bytes = size = min(_MOST_BYTES, self._all_left_bytes)
        self._inside = True
        try:
            self._value(value)
        except _TooLargeError:
            scope.digest = digest
            for found, _ in scope.objects[met:]:
                del scope.numbers[id(found)]
            del scope.objects[met:]
            self._left_bytes = size
            self._cannot(value)
        finally:
            self._inside = False
            self._all_left -= values - max(self._left, 0)
            self._all_left_bytes -= size - max(self._left_bytes, 0)
            self._left, self._left_bytes = rest

    def _cannot(self, value: Any) -> None:
        kind, name = self._path or ("", "")
        type_ = type(value)
        shown = f"{type_.__module__}.{type_.__qualname__}".removeprefix("builtins.")
        large = ", too large" if isinstance(value, _PLAIN) or type_.__module__ == "numpy" else ""
        words = f"{kind} {name!r} ({shown}{large})" if kind else f"the object itself ({shown})"
        self._unreadable.setdefault(words, set()).add(token_of(value))
        self._put("unreadable", shown)

    # Values

    def _value(self, value: Any) -> None:
        self._left -= 1
        if self._left < 0 or len(self._containers) > _DEEPEST:
            raise _TooLargeError
        kind: Any = type(value)
        if (written := _WRITTEN.get(_called(kind))) is not None:
            self._put(_called(kind), written(value))
        elif isinstance(value, PurePath):
            self._put("path", str(value))
        elif kind in _PLAIN:
            self._container(value)
        elif kind is types.MappingProxyType:
            self._container(dict(value))
        elif isinstance(value, types.CodeType):
            self._code(value)
        else:
            self._refer(value)

    def _container(self, value: Any) -> None:
        if id(value) in self._containers:
            self._put("above", str(len(self._containers) - self._containers.index(id(value))))
            return
        if len(value) > self._left:
            raise _TooLargeError
        self._containers.append(id(value))
        try:
            if isinstance(value, dict):
                self._put("dict", str(len(value)))
                for digest, key in sorted(((self._apart(key), key) for key in value), key=itemgetter(0)):
                    self._put("key", digest)
                    self._value(value[key])
            elif isinstance(value, set | frozenset):
                self._put("set", b"".join(sorted(self._apart(each) for each in value)))
            else:
                self._put("tuple" if isinstance(value, tuple) else "list", str(len(value)))
                for each in value:
                    self._value(each)
        finally:
            self._containers.pop()

    def _refer(self, value: Any) -> None:
        """Write the number of an object; what it is follows after the value at hand."""
        self._left -= _LISTED_OBJECT if self._containers else 0
        for level, scope in enumerate(reversed(self._scopes)):
            if (number := scope.numbers.get(id(value))) is not None:
                self._put("object", f"{level} {number}")
                return
        scope = self._scopes[-1]
        scope.numbers[id(value)] = len(scope.objects)
        scope.objects.append((value, self._path))
        self._put("object", f"0 {scope.numbers[id(value)]}")

    def _content(self, value: Any) -> None:  # noqa: C901, PLR0912 - a case for each kind of object
        kind, called = type(value), _called(type(value))
        by_name = isinstance(value, _DEFINITIONS) or (callable(value) and library_of(kind.__module__))
        library = named_in_library(value) if by_name else ""
        if library:
            self._put("library", library)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._put("method")
            self._value(value.__func__)
            self._value(value.__self__)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.ModuleType):
            self._whole_module(value)
        elif kind is functools.partial:
            self._put("partial")
            self._value(value.func)
            for name, argument in [*enumerate(value.args, start=1), *sorted(value.keywords.items())]:
                self._put("argument", str(name))
                self._part(("argument", str(name)), argument)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._value(value.__wrapped__)
        elif isinstance(value, property | staticmethod | classmethod | functools.cached_property):
            self._put(called)
            for name in ("fget", "fset", "__func__", "func"):
                self._value(getattr(value, name, None))
        elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            self._put("builtin", value.__name__)
            self._part(self._path or ("attribute", "__self__"), value.__self__)
        elif isinstance(value, enum.Enum):
            self._put("enum", str(value.name))
            self._value((kind, value.value))
        elif isinstance(value, re.Pattern):
            self._put("pattern", str(value.flags))
            self._value(value.pattern)
        elif called in _DECIDES_NOTHING:
            self._put("library", called)
        elif typing.get_origin(value) is not None:
            self._put("type")
            self._value((typing.get_origin(value), typing.get_args(value)))
        elif kind.__module__ in {"operator", "_operator"} or called in _OF_TUPLES:
            self._value(value.__reduce__())
        elif kind.__module__ == "numpy" and hasattr(value, "tobytes"):
            self._array(value)
        else:
            self._instance(value)

    def _array(self, value: Any) -> None:
        if value.dtype.hasobject or value.nbytes > self._left_bytes:
            self._cannot(value)
        else:
            self._put(f"array {value.dtype.str} {value.shape}", value.tobytes())

    # Code

    def _function(self, function: types.FunctionType) -> None:
        space = function.__globals__
        library = library_of(space.get("__name__"), space.get("__file__"))
        if library:  # such as what a library's decorator made of a function
            self._put("library", f"{library}:{function.__code__.co_qualname}")
        else:
            self._put("function")
            self._code(function.__code__)
            self._names(function)
        code = function.__code__
        defaults = function.__defaults__ or ()
        with_defaults = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        named = [*zip(with_defaults, defaults, strict=True), *sorted((function.__kwdefaults__ or {}).items())]
        for name, default in named:
            self._put("default", name)
            self._part(("default of", name), default)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._put("variable", name)
            with suppress(ValueError):  # not assigned yet
                self._part(("variable", name), cell.cell_contents)
        for name, attribute in sorted(vars(function).items()):
            self._put("attribute", name)
            self._part(("attribute", name), attribute)

    def _code(self, code: types.CodeType) -> None:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._put("code", code.co_code)
        self._put("exceptions", code.co_exceptiontable)
        self._value((counts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_consts))

    def _names(self, function: types.FunctionType) -> None:
        """The global names that a function's code reads, and what it imports."""
        space = function.__globals__
        names = frozenset(name for code in _all_code(function.__code__) for name in code.co_names)
        for name in dict.fromkeys(_global_names(function.__code__)):
            if name in space:
                self._put("global", name)
                self._named(name, space[name], names)
            elif not hasattr(builtins, name):
                self._put("no global", name)
        for module, wanted in dict.fromkeys(_imports(function.__code__, space.get("__package__") or "")):
            self._put("import", module)
            library = library_to_import(module)
            if library:
                self._put("library", library)
                continue
            try:
                imported = importlib.import_module(module)
            except Exception:  # as the function will see
                self._put("not there")
                continue
            self._module(imported, names.union(wanted), set())

    def _named(self, name: str, value: Any, names: frozenset[str]) -> None:
        if isinstance(value, types.ModuleType):
            self._module(value, names, set())
        else:
            self._part(("global", name), value)

    def _module(self, module: types.ModuleType, names: frozenset[str], seen: set[int]) -> None:
        """What code that has these names may take from a module."""
        if library := library_of(module.__name__, getattr(module, "__file__", None)):
            self._put("library", library)
            self._put("module", module.__name__)
            return
        if id(module) in seen:
            return
        seen.add(id(module))
        for name in sorted(names & vars(module).keys()):
            self._put("name", name)
            value = vars(module)[name]
            if isinstance(value, types.ModuleType):
                self._module(value, names, seen)
            else:
                self._part(("global", name), value)

    def _whole_module(self, module: types.ModuleType) -> None:
        file = getattr(module, "__file__", None)
        if library := library_of(module.__name__, file):
            self._put("library", library)
            self._put("module", module.__name__)
        elif file is not None and Path(file).suffix == ".py" and Path(file).is_file():
            self._put("file", hashlib.sha256(Path(file).read_bytes()).digest())
        else:
            self._cannot(module)

    # Classes and objects

    def _class(self, class_: type) -> None:
        if library := library_of(class_.__module__):
            self._put("library", f"{library}:{class_.__module__}.{class_.__qualname__}")
            return
        self._put("class", class_.__name__)
        self._value((type(class_), class_.__bases__))
        if issubclass(class_, enum.Enum):
            self._value({name: member.value for name, member in class_.__members__.items()})
        for name, value in sorted(vars(class_).items()):
            if _decides(class_, name, value):
                self._put("attribute", name)
                self._part(("attribute", f"{class_.__name__}.{name}"), value)

    def _instance(self, value: Any) -> None:
        class_ = type(value)
        plain = next((kind for kind in _PLAIN if isinstance(value, kind)), None)
        own = not library_of(class_.__module__)
        if not (own or plain is not None or _is_record(class_) or _is_empty(value)) or _has_hidden_parts(class_):
            self._cannot(value)
            return
        self._put("instance")
        self._value(class_)
        if plain is not None:
            self._value((plain(value), getattr(value, "default_factory", None)))
        kind, within = self._path or ("attribute", "")
        for name, attribute in sorted(_attributes(value).items()):
            self._put("attribute", name)
            self._part((kind, f"{within}.{name}" if within else name), attribute)


def _called(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _all_code(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _all_code(constant)


def _global_names(code: types.CodeType) -> Iterator[str]:
    for each in _all_code(code):
        for instruction in dis.get_instructions(each):
            if instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}:
                yield str(instruction.argval)


def _imports(code: types.CodeType, package: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The modules that code imports, by their whole names, and what it takes from each."""
    for each in _all_code(code):
        before: list[Any] = [None, None]
        for instruction in dis.get_instructions(each):
            if instruction.opname == "IMPORT_NAME":
                level, wanted = before
                try:
                    name = resolve_name("." * (level or 0) + instruction.argval, package)
                except (ImportError, TypeError):
                    name = instruction.argval
                yield name, tuple(wanted or ())
            before = [before[1], instruction.argval]


def _decides(class_: type, name: str, value: Any) -> bool:
    """Whether an entry of a class says what its objects do; what is made of others does not."""
    if isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType) or name == "_abc_impl":
        return False
    if name == "__doc__":  # the one that dataclasses make shows addresses
        made = "__dataclass_fields__" in vars(class_) and str(value).startswith(f"{class_.__name__}(")
        return isinstance(value, str) and not made
    if (name.startswith("_") and name.endswith("_")) or issubclass(class_, enum.Enum):
        of_attrs = isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith("<attrs ")
        return isinstance(value, types.FunctionType | property | staticmethod | classmethod) and not of_attrs
    return True


def _is_record(class_: type) -> bool:
    """Whether objects of a class are their fields: dataclasses, attrs, Structs, models of pydantic."""
    return any(
        hasattr(class_, name)
        for name in ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "__pydantic_fields__")
    )


def _is_empty(value: Any) -> bool:
    """Whether an object has no more than its class, as ``object()`` has."""
    return type(value) is object or (
        bool(type(value).__flags__ & _HEAP_TYPE) and type(value).__basicsize__ <= _BASIC and not _attributes(value)
    )


class _Bare:
    """A class as small as they are."""


_BASIC: Final = _Bare.__basicsize__


def _has_hidden_parts(class_: type) -> bool:
    """Whether some base that is not written in Python may hold what no attribute shows."""
    known = (object, *_PLAIN, OrderedDict, defaultdict)
    hidden = (base for base in class_.__mro__ if not base.__flags__ & _HEAP_TYPE and base not in known)
    return any(not hasattr(base, "__struct_fields__") and base.__module__ != "msgspec._core" for base in hidden)


def _attributes(value: Any) -> Mapping[str, Any]:
    """What an object holds, by name."""
    found: dict[str, Any] = {}
    for class_ in type(value).__mro__:
        slots = [name for name, entry in vars(class_).items() if isinstance(entry, types.MemberDescriptorType)]
        found |= {name: getattr(value, name) for name in slots if hasattr(value, name)}
    held = getattr(value, "__dict__", None)
    return found | {str(name): each for name, each in held.items()} if isinstance(held, dict) else found


_tokens: Final[dict[int, tuple[Callable[[], Any], str]]] = {}
"""By address: an object that cannot be read, and the name that it has for as long as it lives."""


def token_of(value: Any) -> str:
    """A name for an object, which it has for as long as it lives and no other object of any process ever has."""
    address = id(value)
    alive, token = _tokens.get(address, (None, ""))
    if alive is None or alive() is not value:
        token = uuid.uuid4().hex
        try:
            _tokens[address] = weakref.ref(value), token
        except TypeError:
            _tokens[address] = functools.partial(_same, value), token
    return token


def _same(value: Any) -> Any:
    return value
