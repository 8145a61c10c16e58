"""Write the parts of the documentation that the code knows: ``python -m docs.make_reference``.

The keys of the YAML file with defaults and meanings, out of the sections and the texts below their fields; the commands
with the first line of their help; what the columns of tables mean. Each stands on its page between two marks.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from typer import Context
from typer.core import TyperGroup as Group
from typer.main import get_group

from arena.boards.quantities import QUANTITIES
from arena.cli.app import app
from arena.config.schema import Config
from arena.config.settings import TournamentSettings
from arena.config.stages import further_stages
from arena.present.table import TERMS
from judges.sections import Section
from retrieval_eval.data.table_spec import JOINED, OF_DATA, VOCABULARY, spellings

DOCS = Path(__file__).parent
QUOTE = '"'
TABLE: Final = ("key | default | meaning", "---|---|---")


def sections(model: type[Section], path: str = "") -> Iterator[tuple[str, type[Section]]]:
    """Every section of a configuration by its dotted path; ``NAME`` stands for a name that the user gives."""
    yield path, model
    for name, field in fields(model):
        for inner in sections_in(field.annotation):
            below = f"{path}.{name}".lstrip(".")
            yield from sections(inner, f"{below}.NAME" if "dict" in str(field.annotation) else below)
    for key, stage in further_stages().items() if model is Config else ():
        yield key, stage.load("SECTION")


def fields(model: type[Section]) -> list[tuple[str, Any]]:
    """The fields of a section; in the whole file, the stages and what they need come last."""
    return sorted(
        model.model_fields.items(), key=lambda entry: model is Config and entry[0] in TournamentSettings.model_fields
    )


def sections_in(annotation: Any) -> list[type[Section]]:
    """The sections that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for part in getattr(annotation, "__args__", ()) for section in sections_in(part)]


def only_sections(annotation: Any) -> bool:
    """Whether a field holds sections and nothing else: what it is for then stands above their table."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    if kinds and get_origin(annotation) is not dict:
        return all(only_sections(kind) for kind in kinds)
    return bool(sections_in(kinds[1] if kinds else annotation))


def meanings(model: type[Section]) -> dict[str, str]:
    """The text below each field.

    Raises:
        ValueError: a field has none.
    """
    trees = [ast.parse(inspect.getsource(kind)).body[0] for kind in model.__mro__ if issubclass(kind, Section)]
    lines = [line for tree in reversed(trees) if isinstance(tree, ast.ClassDef) for line in tree.body]
    texts = {}
    for field, text in pairwise(lines):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            texts[ast.unparse(field.target)] = one_line(str(text.value.value))
    if lacking := model.model_fields.keys() - texts:
        raise ValueError(f"{model.__module__}.{model.__name__}: no text below {', '.join(sorted(lacking))}")
    return texts


def one_line(text: str) -> str:
    """As Markdown has it, for a cell of a table."""
    return " ".join(text.replace("``", "`").replace("|", "\\|").split())


def default(field: Any) -> str:
    """As the YAML file would say it."""
    if field.is_required():
        return "required"
    if sections_in(field.annotation):
        return "see right"
    value = field.get_default(call_default_factory=True)
    written = json.dumps(value)
    return f"`{written if value == '' else written.replace(QUOTE, '')}`"


def keys() -> str:
    """A table for each section below what it is for; sections of one kind share theirs."""
    places: dict[type[Section], list[str]] = {}
    purposes: dict[str, str] = {}
    for path, model in sections(Config):
        places.setdefault(model, []).append(path)
        for name, field in model.model_fields.items():
            if only_sections(field.annotation):
                purposes[f"{path}.{name}".lstrip(".")] = meanings(model)[name]
    purposes |= {key: one_line(stage.load("SECTION").__doc__) for key, stage in further_stages().items()}
    parts = []
    for model, paths in places.items():
        texts = meanings(model)
        rows = [
            f"`{name}` | {default(field)} | {texts[name]}"
            for name, field in fields(model)
            if not (only_sections(field.annotation) or field.exclude)
        ]
        heading = ", ".join(f"`{path}`" for path in paths) if paths != [""] else "The whole file"
        parts.append("\n".join([f"## {heading}", "", *above(paths, purposes), *TABLE, *rows]))
    return "\n\n".join(parts)


def above(paths: list[str], purposes: dict[str, str]) -> list[str]:
    """What sections of one kind are for, as lines that end with an empty one; none where nothing says so."""
    said = {path: purposes[path.removesuffix(".NAME")] for path in paths if path.removesuffix(".NAME") in purposes}
    each = [f"`{path}`: {purpose}" for path, purpose in said.items()]
    text = " ".join(each if len({*said.values()}) > 1 else dict.fromkeys(said.values()))
    return [*textwrap.wrap(text, 120, break_on_hyphens=False), ""] if text else []


def commands() -> str:
    """A row for each command."""
    rows = [f"`{name}` | {one_line(said)}" for name, said in commands_of(get_group(app))]
    return "\n".join(["command | does", "---|---", *rows])


def commands_of(group: Group) -> Iterator[tuple[str, str]]:
    """Each command by its words, with the first sentence of its help."""
    for name, command in _leaves(group):
        yield name, re.split(r"(?<=[.?]) |\n\n", " ".join((command.help or "").split()))[0]


def _leaves(group: Group, before: str = "") -> Iterator[tuple[str, Any]]:
    context = Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, Group):
            yield from _leaves(command, f"{before}{name} ")
        elif command is not None:
            yield before + name, command


def columns() -> str:
    """A row for each heading."""
    meanings = {own.title: own.meaning for own in QUANTITIES.values() if own.meaning}
    terms = dict(sorted(({**TERMS, **meanings}).items(), key=lambda entry: entry[0].casefold()))
    return "\n".join(["column | means", "---|---", *(f"{term} | {said}" for term, said in terms.items())])


def names() -> str:
    """A row for each of our columns."""
    rows = [f"`{column}` | {VOCABULARY[column].holds} | {_other_names(column)}" for column in OF_DATA]
    return "\n".join(["column | holds | other names", "---|---|---", *rows])


def _other_names(column: str) -> str:
    """The spellings of a column; of those that are made of two words, the words."""
    first, second = (words.split() for words in JOINED.get(column, ("", "")))
    joined = {f"{one}_{two}" for one in first for two in second}
    names = [f"`{name}`" for name in spellings(column) if name not in joined]
    if joined:
        names.append(f"each of {', '.join(first)} with each of {', '.join(second)}, as in `{first[0]}_{second[0]}`")
    return ", ".join(names)


PARTS = {"configuration.md": keys, "commands.md": commands, "reading-the-output.md": columns, "your-data.md": names}
_PART = re.compile(r"(<!-- made by 'python -m docs.make_reference' -->\n).*?(<!-- end -->)", re.DOTALL)


def made(page: str) -> str:
    """The page as the code would have it."""
    text, number = _PART.subn(
        lambda part: f"{part[1]}{PARTS[page]()}\n{part[2]}", (DOCS / page).read_text(encoding="utf-8")
    )
    assert number == 1, f"{page} has no marks"
    return text


def main() -> None:
    """Write all of them."""
    for page in PARTS:
        (DOCS / page).write_text(made(page), encoding="utf-8")


if __name__ == "__main__":
    main()
