"""A small real tournament that is packaged with the tool: queries, retrieved documents and answers."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from judges.errors import InputError, reason
from retrieval_eval.data.files import open_replacing

FILES = ("queries.csv", "documents.csv", "answers.csv", "exam.csv", "nuggets.jsonl", "tournament.yaml")


def copy_demo(folder: Path) -> Path:
    """Copy the demo's files into ``folder`` without replacing existing files.

    Returns:
        The configuration file.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {reason(error)}") from error
    for name in FILES:
        if not (folder / name).exists():
            with open_replacing(folder / name) as file:  # a partial file would never be replaced
                file.write(resources.files("arena.demo").joinpath(name).read_bytes())
    return folder / "tournament.yaml"
