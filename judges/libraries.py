"""Finds the library, as name and version, that defines a module or a value; the user's code belongs to none."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any, Final

_OUR_PACKAGES: Final = frozenset({"arena", "judges", "ragleague", "retrieval_eval", "ui"})
_ROOT: Final = Path(__file__).parents[1]
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


def library_of(module: str | None, file: str | None = None) -> str:
    """The library to which a module belongs, as name and version; empty for the user's code.

    Args:
        module: the module's name.
        file: the module's file, for modules that are not imported.
    """
    if not module or module == "__main__":
        return ""
    loaded = sys.modules.get(module)
    return _library(module.partition(".")[0], file or getattr(loaded, "__file__", None))


def library_to_import(module: str) -> str | None:
    """Like ``library_of``, for a module that may not be imported yet; ``None`` if there is no such module."""
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
    """Where a library defines a value, as ``LIBRARY:MODULE.NAME``; empty if no library defines the value by name."""
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
