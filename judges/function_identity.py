"""Hashes a user's function: its compiled code, and the values and code that it uses, as far as they can be read.

The user's code is followed through global names, closures, defaults, attributes and classes. For code of Python or
an installed package, the library's name and version are hashed. Layout, comments, the file's location, and the order of
dictionaries and sets do not change the hash.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import hashlib
import importlib
import re
import sys
import sysconfig
import types
import typing
import uuid
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import metadata, util
from importlib.util import resolve_name
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, Final

from msgspec import Struct

_MOST_VALUES: Final = 100_000
"""Largest number of values that are read of one attribute, variable or argument, which takes a few tenths of a
second."""
_MOST_BYTES: Final = 32_000_000
_OBJECT: Final = 10
"""How many values of ``_MOST_VALUES`` each object uses up, since reading an object takes longer."""
_LONGEST_NAME: Final = 60
_MAX_DEPTH: Final = 60
"""Deepest nesting of lists, dictionaries and other containers that is read."""
_SHOWN_NAMES: Final = 3
_BY_REPR: Final = frozenset(
    {f"builtins.{name}" for name in ("NoneType", "bool", "float", "complex", "range", "slice", "ellipsis")}
    | {f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta", "timezone")}
    | {"builtins.NotImplementedType", "decimal.Decimal", "fractions.Fraction", "uuid.UUID", "zoneinfo.ZoneInfo"}
    | {"typing.TypeVar"}
)
"""Types whose values ``repr`` describes completely."""
_WITHOUT_EFFECT: Final = frozenset(
    {"logging.Logger", "_thread.lock", "_thread.RLock", "_contextvars.ContextVar"}
    | {f"threading.{name}" for name in ("Semaphore", "BoundedSemaphore", "Event", "Condition", "Barrier")}
    | {f"asyncio.locks.{name}" for name in ("Lock", "Semaphore", "BoundedSemaphore", "Event", "Condition")}
)
_TUPLE_GETTERS: Final = frozenset({"collections._tuplegetter", "_collections._tuplegetter"})
_HEAP_TYPE: Final = 1 << 9
_DEFINITIONS: Final = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
_UNASSIGNED: Final = types.CellType()
_PLAIN: Final = (str, bytes, bytearray, int, float, tuple, list, dict, set, frozenset, deque)

PROCESS: Final = uuid.uuid4().hex
"""An identifier of this process that no other process has."""


class FunctionReading(Struct, frozen=True):
    """The hash of a function, and the parts that could not be read.

    Attributes:
        digest: hash of the code and values that could be read; the same in every process.
        unreadable: the unreadable parts, such as ``attribute 'client' (httpx.Client)``.
        objects: hash of the unreadable objects' identities in this process; empty if everything could be read.
    """

    digest: str
    unreadable: tuple[str, ...] = ()
    objects: str = ""

    @property
    def lacking(self) -> str:
        """A message on the unreadable parts, which says that replies are not kept after this process; else empty."""
        if not self.unreadable:
            return ""
        more = len(self.unreadable) - _SHOWN_NAMES
        named = ", ".join([*self.unreadable[:_SHOWN_NAMES], *([f"{more} more"] if more > 0 else [])])
        return (
            f"{named} cannot be read, so replies are not kept across processes; "
            "say version= beside the function to keep them"
        )


def read_function(function: Callable[..., Any]) -> FunctionReading:
    """Hash the code and values on which a function's replies depend."""
    reader = _Reader(function)
    digest = reader.digest_of(function)
    tokens = sorted(set[str]().union(*reader.unreadable.values()))
    objects = hashlib.sha256(" ".join(tokens).encode()).hexdigest()[:16] if tokens else ""
    return FunctionReading(digest.hex()[:16], tuple(reader.unreadable), objects)


class _Budget(Struct):
    values: int = _MOST_VALUES
    size: int = _MOST_BYTES


class _Named(Struct, frozen=True):
    """The attribute, variable or argument that is being read now; ``kind`` and ``name`` are empty for the function."""

    kind: str
    name: str
    value: Any
    left: _Budget


class _Scope:
    """A hash in progress, and the objects that it contains, each written into it by its number."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.numbers: dict[int, int] = {}
        self.objects: list[tuple[Any, _Named]] = []
        """The objects in the order of their numbers. These references keep them alive, so that no other object gets
        their address."""


class _Reader:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.unreadable: dict[str, set[str]] = {}
        """Tokens of the unreadable objects (see ``token_of``), by a description such as ``attribute 'client'
        (httpx.Client)``."""
        self._scopes: list[_Scope] = []
        self._containers: list[int] = []
        self._named = _Named("", "", function, _Budget())

    # The hashed stream

    def _write(self, kind: str, content: bytes | str = b"") -> None:
        """Append an entry and its length to the current hash: different sequences of entries never look alike."""
        content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        self._scopes[-1].digest.update(b"%s %d " % (kind.encode(), len(content)))
        self._scopes[-1].digest.update(content)

    def digest_of(self, value: Any) -> bytes:
        """Hash a single value separately, so that the members of a set can be sorted by their hashes."""
        scope = _Scope()
        self._scopes.append(scope)
        self._write_value(value)
        before = self._named
        for member, self._named in scope.objects:  # which grows
            self._write_object(member)
        self._named = before
        self._scopes.pop()
        return scope.digest.digest()

    def _write_named(self, kind: str, name: str, value: Any, left: _Budget | None = None) -> None:
        before, self._named = self._named, _Named(kind, name[:_LONGEST_NAME], value, left or _Budget())
        self._write_value(value)
        self._named = before

    def _mark_unreadable(self, value: Any) -> None:
        shown = _type_name(type(value)).removeprefix("builtins.")
        large = ", too large" if isinstance(value, _PLAIN) or type(value).__module__ == "numpy" else ""
        kind, name = self._named.kind, self._named.name
        words = f"{kind} {name!r} ({shown}{large})" if kind else f"the object itself ({shown})"
        self.unreadable.setdefault(words, set()).add(token_of(self._named.value))
        self._write("unreadable", shown)

    # Values

    def _write_value(self, value: Any) -> None:
        kind: Any = type(value)
        if kind is str or isinstance(value, PurePath):
            self._write_content(value, "str" if kind is str else "path", str(value))
        elif kind is int:
            self._write_content(value, "int", hex(value))
        elif kind is bytes or kind is bytearray:
            self._write_content(value, kind.__name__, bytes(value))
        elif _type_name(kind) in _BY_REPR:
            self._write(_type_name(kind), repr(value))
        elif kind in _PLAIN:
            self._write_container(value)
        elif kind is types.MappingProxyType:
            self._write_container(dict(value))
        elif isinstance(value, types.CodeType):
            self._write_code(value)
        else:
            self._write_reference(value)

    def _write_content(self, value: Any, kind: str, content: bytes | str) -> None:
        if len(content) > self._named.left.size:
            self._mark_unreadable(value)
        else:
            self._named.left.size -= len(content)
            self._write(kind, content)

    def _write_container(self, value: Any) -> None:
        if id(value) in self._containers:
            self._write("above", str(len(self._containers) - self._containers.index(id(value))))
            return
        if len(value) > self._named.left.values or len(self._containers) >= _MAX_DEPTH:
            self._mark_unreadable(value)
            return
        self._named.left.values -= len(value)
        self._containers.append(id(value))
        if isinstance(value, dict):
            self._write("dict", str(len(value)))
            for digest, key in sorted(((self.digest_of(key), key) for key in value), key=itemgetter(0)):
                self._write("key", digest)
                self._write_value(value[key])
        elif isinstance(value, set | frozenset):
            self._write("set", b"".join(sorted(self.digest_of(each) for each in value)))
        else:
            self._write("tuple" if isinstance(value, tuple) else "list", str(len(value)))
            for each in value:
                self._write_value(each)
        self._containers.pop()

    def _write_reference(self, value: Any) -> None:
        """Write the number of an object into the hash; the object's content is written after the current value."""
        for level, scope in enumerate(reversed(self._scopes)):
            if (number := scope.numbers.get(id(value))) is not None:
                self._write("object", f"{level} {number}")
                return
        if not isinstance(value, (*_DEFINITIONS, types.ModuleType)):
            if self._named.left.values < _OBJECT:
                self._mark_unreadable(value)
                return
            self._named.left.values -= _OBJECT
        scope = self._scopes[-1]
        scope.numbers[id(value)] = len(scope.objects)
        scope.objects.append((value, self._named))
        self._write("object", f"0 {scope.numbers[id(value)]}")

    def _write_object(self, value: Any) -> None:  # noqa: C901, PLR0912 - a case for each kind of object
        kind, type_name = type(value), _type_name(type(value))
        by_name = isinstance(value, _DEFINITIONS) or (callable(value) and library_of(kind.__module__))
        library = named_in_library(value) if by_name else ""
        if library:
            self._write("library", library)
        elif isinstance(value, types.FunctionType):
            self._write_function(value)
        elif isinstance(value, types.MethodType):
            self._write("method")
            self._write_value(value.__func__)
            self._write_value(value.__self__)
        elif isinstance(value, type):
            self._write_class(value)
        elif isinstance(value, types.ModuleType):
            self._write_whole_module(value)
        elif kind is functools.partial:
            self._write("partial")
            self._write_value(value.func)
            for name, argument in [*enumerate(value.args, start=1), *sorted(value.keywords.items())]:
                self._write("argument", str(name))
                self._write_named("argument", str(name), argument)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._write_value(value.__wrapped__)
        elif isinstance(value, property | staticmethod | classmethod | functools.cached_property):
            self._write(type_name)
            for name in ("fget", "fset", "__func__", "func"):
                self._write_value(getattr(value, name, None))
        elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            self._write("builtin", value.__name__)
            self._write_named("attribute", self._named.name or "__self__", value.__self__)
        elif isinstance(value, enum.Enum):
            self._write("enum", str(value.name))
            self._write_value((kind, value.value))
        elif isinstance(value, re.Pattern):
            self._write("pattern", str(value.flags))
            self._write_value(value.pattern)
        elif type_name in _WITHOUT_EFFECT:
            self._write("library", type_name)
        elif typing.get_origin(value) is not None:
            self._write("type")
            self._write_value((typing.get_origin(value), typing.get_args(value)))
        elif kind.__module__ in {"operator", "_operator"} or type_name in _TUPLE_GETTERS:
            self._write_value(value.__reduce__())
        elif kind.__module__ == "numpy" and hasattr(value, "tobytes"):
            self._write_array(value)
        else:
            self._write_instance(value)

    def _write_array(self, value: Any) -> None:
        if value.dtype.hasobject or value.nbytes > _MOST_BYTES:
            self._mark_unreadable(value)
        else:
            self._write_content(value, f"array {value.dtype.str} {value.shape}", value.tobytes())

    # Code

    def _write_function(self, function: types.FunctionType) -> None:
        space = function.__globals__
        library = library_of(space.get("__name__"), space.get("__file__"))
        if library:  # such as a wrapper that a library's decorator made
            self._write("library", f"{library}:{function.__code__.co_qualname}")
        else:
            self._write("function")
            self._write_code(function.__code__)
            self._write_names(function)
        code = function.__code__
        defaults = function.__defaults__ or ()
        with_defaults = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        named = [*zip(with_defaults, defaults, strict=True), *sorted((function.__kwdefaults__ or {}).items())]
        for name, default in named:
            self._write("default", name)
            self._write_named("default of", name, default)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._write("variable", name)
            if cell != _UNASSIGNED:
                self._write_named("variable", name, cell.cell_contents)
        for name, attribute in sorted(vars(function).items()):
            self._write("attribute", name)
            self._write_named("attribute", name, attribute)

    def _write_code(self, code: types.CodeType) -> None:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._write("code", code.co_code)
        self._write("exceptions", code.co_exceptiontable)
        self._write_value((counts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_consts))

    def _write_names(self, function: types.FunctionType) -> None:
        """Write into the hash the global variables and imported modules that a function's code uses."""
        space = function.__globals__
        names = frozenset(name for code in _all_code(function.__code__) for name in code.co_names)
        for name in dict.fromkeys(_global_names(function.__code__)):
            if name in space:
                self._write("global", name)
                self._write_global(name, space[name], names, set())
            elif not hasattr(builtins, name):
                self._write("no global", name)
        for module, wanted in dict.fromkeys(_imports(function.__code__, space.get("__package__") or "")):
            self._write("import", module)
            library = library_to_import(module)
            if library:
                self._write("library", library)
                continue
            try:
                imported = importlib.import_module(module)
            except Exception:  # the function's call will raise it again
                self._write("not there")
                continue
            self._write_module(imported, names.union(wanted), set())

    def _write_global(self, name: str, value: Any, names: frozenset[str], seen: set[int]) -> None:
        if isinstance(value, types.ModuleType):
            self._write_module(value, names, seen)
        else:
            self._write_named("global", name, value)

    def _write_module(self, module: types.ModuleType, names: frozenset[str], seen: set[int]) -> None:
        """Write into the hash those attributes of a module whose ``names`` occur in the code."""
        if library := library_of(module.__name__, getattr(module, "__file__", None)):
            self._write("library", library)
            self._write("module", module.__name__)
            return
        if id(module) in seen:
            return
        seen.add(id(module))
        for name in sorted(names & vars(module).keys()):
            self._write("name", name)
            self._write_global(name, vars(module)[name], names, seen)

    def _write_whole_module(self, module: types.ModuleType) -> None:
        file = getattr(module, "__file__", None)
        if library_of(module.__name__, file):
            self._write_module(module, frozenset(), set())
        elif file is not None and Path(file).suffix == ".py" and Path(file).is_file():
            self._write("file", hashlib.sha256(Path(file).read_bytes()).digest())
        else:
            self._mark_unreadable(module)

    # Classes and objects

    def _write_class(self, class_: type) -> None:
        if library := library_of(class_.__module__):
            self._write("library", f"{library}:{class_.__module__}.{class_.__qualname__}")
            return
        self._write("class", class_.__name__)
        self._write_value((type(class_), class_.__bases__))
        if issubclass(class_, enum.Enum):
            self._write_value({name: member.value for name, member in class_.__members__.items()})
        for name, value in sorted(vars(class_).items()):
            if _has_effect(class_, name, value):
                self._write("attribute", name)
                self._write_named("attribute", f"{class_.__name__}.{name}", value)

    def _write_instance(self, value: Any) -> None:
        class_ = type(value)
        plain = next((kind for kind in _PLAIN if isinstance(value, kind)), None)
        is_users = not library_of(class_.__module__)
        if not (is_users or plain is not None or _is_record(class_) or _is_empty(value)) or _has_hidden_parts(class_):
            self._mark_unreadable(value)
            return
        self._write("instance")
        self._write_value(class_)
        if plain is not None:
            self._write_value((plain(value), getattr(value, "default_factory", None)))
        kind, within = self._named.kind or "attribute", self._named.name
        for name, attribute in sorted(_attributes(value).items()):
            self._write("attribute", name)
            left = self._named.left if within else None
            self._write_named(kind, f"{within}.{name}" if within else name, attribute, left)


def _type_name(kind: type) -> str:
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
    """The modules that a function's code imports, by their absolute names, each with the names imported from it."""
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


def _has_effect(class_: type, name: str, value: Any) -> bool:
    """Whether a class attribute can change how objects of the class behave; generated attributes cannot."""
    if isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType) or name == "_abc_impl":
        return False
    if name == "__doc__":  # a dataclass's generated docstring may contain addresses
        is_generated = "__dataclass_fields__" in vars(class_) and str(value).startswith(f"{class_.__name__}(")
        return isinstance(value, str) and not is_generated
    if (name.startswith("_") and name.endswith("_")) or issubclass(class_, enum.Enum):
        of_attrs = isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith("<attrs ")
        return isinstance(value, types.FunctionType | property | staticmethod | classmethod) and not of_attrs
    return True


def _is_record(class_: type) -> bool:
    """Whether a class declares all fields of its objects: a dataclass, attrs class, Struct or pydantic model."""
    return any(
        hasattr(class_, name)
        for name in ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "__pydantic_fields__")
    )


def _is_empty(value: Any) -> bool:
    """Whether an object has no state of its own, as ``object()`` has none."""
    return type(value) is object or (
        bool(type(value).__flags__ & _HEAP_TYPE) and type(value).__basicsize__ <= _EMPTY_SIZE and not _attributes(value)
    )


class _Empty:
    """A class without attributes, whose objects have the size of an object without state."""


_EMPTY_SIZE: Final = _Empty.__basicsize__


def _has_hidden_parts(class_: type) -> bool:
    """Whether a class has a base, not written in Python, whose objects may hold state that no attribute shows."""
    known_classes = (object, *_PLAIN, OrderedDict, defaultdict)
    hidden = (base for base in class_.__mro__ if not base.__flags__ & _HEAP_TYPE and base not in known_classes)
    return any(not hasattr(base, "__struct_fields__") and base.__module__ != "msgspec._core" for base in hidden)


def _attributes(value: Any) -> Mapping[str, Any]:
    """The attributes and slots of an object, by name."""
    entries = [entry for class_ in type(value).__mro__ for entry in vars(class_).items()]
    slots = [name for name, entry in entries if isinstance(entry, types.MemberDescriptorType)]
    attributes = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    namespace = getattr(value, "__dict__", None)
    if isinstance(namespace, dict):
        attributes |= {str(name): each for name, each in namespace.items()}
    return attributes


_tokens: Final[dict[int, tuple[Callable[[], Any], str]]] = {}
"""Tokens of unreadable objects, with a reference to each object (weak if possible), by the object's address."""


def token_of(value: Any) -> str:
    """A unique text that stands for an object as long as it lives; no other object in any process has the same."""
    address = id(value)
    alive, token = _tokens.get(address, (None, ""))
    if alive is None or alive() is not value:
        token = uuid.uuid4().hex
        try:
            _tokens[address] = weakref.ref(value), token
        except TypeError:
            _tokens[address] = (lambda: value), token
    return token


_OUR_PACKAGES: Final = frozenset({"arena", "judges", "ragleague", "retrieval_eval", "ui"})
_ROOT: Final = Path(__file__).parents[1]
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


def library_of(module: str | None, file: str | None = None) -> str:
    """The library to which a module belongs, as name and version; empty for the user's code.

    A module that is not imported needs its ``file``.
    """
    if not module or module == "__main__":
        return ""
    loaded = sys.modules.get(module)
    return _library(module.partition(".")[0], file or getattr(loaded, "__file__", None))


def library_to_import(module: str) -> str | None:
    """The library to which an imported or importable module belongs, as by ``library_of``; ``None`` without module."""
    top = module.partition(".")[0]
    if top in sys.modules:
        return library_of(top)
    try:
        spec = util.find_spec(top)
    except (ImportError, ValueError):
        return None
    return None if spec is None else _library(top, spec.origin)


@cache
def _library(top: str, file: str | None) -> str:
    path = Path(file) if file and file not in {"built-in", "frozen"} else None
    if path is not None and _INSTALLED.intersection(path.parts):
        return _version(top)
    standard = path is None or path.is_relative_to(sysconfig.get_path("stdlib")) or ".zip" in path.parts
    if top in sys.builtin_module_names or (top in sys.stdlib_module_names and standard):
        return "python {}.{}".format(*sys.version_info)
    if top in _OUR_PACKAGES and path is not None and path.is_relative_to(_ROOT / top):
        return "ragleague"
    return ""


def _version(top: str) -> str:
    try:
        return f"{top} {metadata.version(top)}"
    except metadata.PackageNotFoundError:
        names = sorted(set(metadata.packages_distributions().get(top, ())))
        return " ".join([top, *(f"{name} {metadata.version(name)}" for name in names)])


def named_in_library(value: Any) -> str:
    """The library, module and name of a value that a library defines, as ``LIBRARY:MODULE.NAME``; otherwise empty."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        return ""
    for module in (getattr(value, "__module__", None), type(value).__module__):
        library = library_of(module) if isinstance(module, str) else ""
        if not library:
            continue
        target: Any = sys.modules.get(str(module))
        for part in name.split("."):
            target = getattr(target, part, None)
        if target is value:
            return f"{library}:{module}.{name}"
    return ""
