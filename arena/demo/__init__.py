"""A small real tournament that comes with the package: queries, retrieved documents and answers."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from judges.errors import InputError

FILES = ("queries.csv", "documents.csv", "answers.csv", "exam.csv", "nuggets.jsonl", "tournament.yaml")


def copy_demo(folder: Path) -> Path:
    """Put the demo's files into ``folder``; those that are there already stay as they are.

    Returns:
        The configuration file.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            target = folder / name
            if not target.exists():
                target.write_bytes(resources.files("arena.demo").joinpath(name).read_bytes())
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error
    return folder / "tournament.yaml"
