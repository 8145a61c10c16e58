"""Arguments of ``plan`` and ``run``: a tournament's YAML file, or files of answers with a default tournament."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import Struct

from arena.cli.console import errors, say
from arena.config.schema import Config, load_config
from arena.present.numbers import counted, listed
from judges.errors import InputError
from retrieval_eval.data.files import open_replacing
from retrieval_eval.data.rows import known_format

if TYPE_CHECKING:
    from arena.data.dataset import Dataset

_YAML: Final = (".yaml", ".yml")
_AGENTS_IN_GAME: Final = 2
"""Number of agents in a game."""
Sources = Annotated[
    list[str],
    typer.Argument(metavar="CONFIG|ANSWERS...", help="the tournament's YAML file, or files of answers with --judge"),
]
JudgeNamed = Annotated[
    str | None,
    typer.Option("--judge", metavar="PROVIDER/MODEL", help="for files of answers: openai/gpt-4.1-mini, lexical ..."),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="only the first N queries")]
ColumnsNamed = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="for files of answers: read NAME from the column COLUMN, as in answer=text",
    ),
]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="for files of answers: write the assumed configuration as a YAML file"),
]


class TournamentInput(Struct, frozen=True):
    """A tournament's configuration and its source.

    Attributes:
        data: the data that was read from files of answers; ``None`` for a YAML file.
        source: the YAML file or the store, in the form in which a command line names it.
    """

    config: Config
    data: Dataset | None
    source: str


def read_inputs(
    sources: Sequence[str],
    judge: str | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    save: Path | None = None,
) -> TournamentInput:
    """The tournament that a command line names; prints on standard error what it assumes about files of answers.

    Raises:
        InputError: the files or the judge cannot be used, or an option is given that a YAML file does not allow.
    """
    if not are_answers(sources, judge):
        given = {"--judge": judge, "--column": columns, "--save": save}
        if misplaced := [option for option, value in given.items() if value]:
            raise InputError(f"{', '.join(misplaced)}: does not go with {sources[0]}: a YAML file says it itself")
        config = load_config(Path(sources[0]))
        return TournamentInput(config if limit is None else config.limited(limit), None, sources[0])
    if judge is None:
        raise InputError(f"{sources[0]}: answers need a judge, such as --judge openai/gpt-4.1-mini")
    return _assumed(sources, judge, limit, columns or (), save)


def are_answers(sources: Sequence[str], judge: str | None = None) -> bool:
    """Whether the sources are tables of answers and not a YAML file.

    Raises:
        InputError: a source is a folder or an empty name, or there are several sources and one is a YAML file.
    """
    for source in sources:
        if not source:
            raise InputError("an empty name is given for a file; name a YAML file, or files of answers")
        if Path(source).is_dir():
            raise InputError(f"{source}: a folder; name the YAML file in it, or files of answers: '{source}/*.jsonl'")
        if len(sources) > 1 and source.endswith(_YAML):
            raise InputError(f"{source}: name one YAML file alone, or files of answers")
    if sources[0].endswith(_YAML):
        return False
    return len(sources) > 1 or judge is not None or known_format(sources[0]) is not None


def _assumed(
    sources: Sequence[str], judge: str, limit: int | None, columns: Sequence[str], save: Path | None
) -> TournamentInput:
    # Late: plans and runs of YAML files need none of these.
    from arena.config.from_answers import STORE, assumed, assumed_content, assumed_yaml, judge_named
    from arena.data.files import load_dataset
    from arena.run.preflight import require_writable

    judge_fields = judge_named(judge)
    column_map = _columns(columns)
    if save is not None:
        if save.suffix not in _YAML:
            raise InputError(f"--save {save}: name a file that ends in .yaml")
        if save.exists():
            raise InputError(f"{save}: is there already; name another file with --save")
        require_writable(save)
    data = load_dataset(answers=sources, columns=column_map, limit=limit)
    folder = None if save is None else save.resolve().parent
    content = assumed_content(sources, data.agents, judge, columns=column_map, limit=limit, folder=folder)
    if len(data.agents) < _AGENTS_IN_GAME:  # nothing can be judged; the caller reports that
        return TournamentInput(assumed(content), data, STORE)
    if save is None:
        config = assumed(content)
    else:
        with open_replacing(save) as raw:
            raw.write(assumed_yaml(content).encode())
        config = load_config(save)
    store = config.store if save is not None else STORE
    documents = f", {counted(len(data.documents), 'document')}" if data.documents else ""
    say(f"assumed: {counted(len(data.queries), 'query', 'queries')}{documents}; agents {listed(data.agents)}", errors)
    say(
        f"assumed: every pair meets on every query in both orders; judge {' '.join(judge_fields.values())}; "
        f"store {store}, tournament {config.name!r}",
        errors,
    )
    say(f"written to {save}" if save is not None else "--save FILE writes this as a YAML file to change", errors)
    return TournamentInput(config, data, str(save) if save is not None else STORE)


def _columns(entries: Sequence[str]) -> dict[str, str | None]:
    """Column names from ``NAME=COLUMN`` entries; ``NAME=`` means that the files have no such column."""
    from arena.boards.rated_tables import column_names

    absent = {entry[:-1]: None for entry in entries if entry.endswith("=") and len(entry) > 1}
    return {**column_names([entry for entry in entries if not entry.endswith("=") or entry == "="]), **absent}
