"""The commands: which there are, in which group, and what each does in one line.

``ragleague --help`` is written from this table alone, so that it imports nothing else.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ABOUT: Final = "Decide which of your RAG systems is better, and whether the judge that says so can be trusted."


class Listed(Struct, frozen=True):
    """A command as ``--help`` lists it.

    Attributes:
        group: its heading there.
        module: of ``arena.cli``, which holds it.
        says: the first sentence of its help.
        called: what it is called there; "" where that is the command's name.
        spread: whether its options take several values at once.
    """

    group: str
    module: str
    says: str
    called: str = ""
    spread: bool = False


_EVALUATE, _LOOK, _DATA, _SERVICE = "Evaluate", "Look", "Data and banks", "Service"

COMMANDS: Final = {
    "demo": Listed(_EVALUATE, "tournament", "Run a tournament offline on the bundled data."),
    "init": Listed(_EVALUATE, "tournament", "Write a starter configuration and data to edit."),
    "plan": Listed(_EVALUATE, "tournament", "Count the calls, tokens and cost of a run."),
    "run": Listed(_EVALUATE, "tournament", "Judge what is missing and print the leaderboard."),
    "make": Listed(_EVALUATE, "make", "Have models make one thing, and write it to a file."),
    "gate": Listed(_EVALUATE, "gate", "Pass if a new agent is not worse than an old one."),
    "rate": Listed(_EVALUATE, "board", "Rate agents from a table of verdicts alone."),
    "leaderboard": Listed(_LOOK, "board", "Print the leaderboard of what has been judged."),
    "compare": Listed(_LOOK, "gate", "Compare two agents: better, not worse, worse or undecided."),
    "queries": Listed(_LOOK, "queries", "Which queries tell the agents apart, and where each agent fails."),
    "calibrate": Listed(_LOOK, "calibrate", "Whether a judge can be trusted: judges held against people.", spread=True),
    "failures": Listed(_LOOK, "failures", "List what failed and why."),
    "report": Listed(_LOOK, "report", "Write a report as one HTML file."),
    "publish": Listed(_LOOK, "report", "Write a tournament as pages for any web server."),
    "ui": Listed(_LOOK, "page", "Open the web leaderboard of a store."),
    "import": Listed(_DATA, "data", "Put recorded verdicts, or what people said, into a store.", "import_file"),
    "export": Listed(_DATA, "data", "Write what a tournament holds as tables."),
    "convert": Listed(_DATA, "convert", "Write a bank or grades in another form."),
    "documents": Listed(_DATA, "documents", "Cut documents into passages for retrieval."),
    "retrieve": Listed(_DATA, "retrieve", "Search a corpus with every query."),
    "metrics": Listed(_DATA, "metrics", "Score runs by relevance labels.", spread=True),
    "exam": Listed(_DATA, "exam", "Score, check and compare grades by a test bank.", spread=True),
    "nuggets": Listed(_DATA, "nuggets", "Score runs by their nuggets, or compare two conditions."),
    "bank": Listed(_DATA, "bank", "Show a test bank, or what changed from one version to the next."),
    "doctor": Listed(_SERVICE, "doctor", "Check what is installed and set."),
    "store": Listed(_SERVICE, "stores", "Check a store, or copy it to another place.", "group"),
}
"""By name, in the order of ``--help``."""

_OPTIONS: Final = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for this shell.",
    "--show-completion": "Print that completion, to copy or change it.",
    "--help": "Print this and exit.",
}


def overview() -> str:
    """What ``ragleague --help`` prints."""
    width = max(map(len, COMMANDS))
    room = max(map(len, _OPTIONS))
    parts = ["Usage: ragleague COMMAND [ARGUMENTS]...\n", ABOUT.replace(", and ", ",\nand ") + "\n"]
    for group in (_EVALUATE, _LOOK, _DATA, _SERVICE):
        parts.append(f"{group}:")
        parts += [f"  {name:<{width}}  {each.says}" for name, each in COMMANDS.items() if each.group == group]
        parts[-1] += "\n"
    parts += ["Options:", *(f"  {name:<{room}}  {says}" for name, says in _OPTIONS.items()), ""]
    parts.append("'ragleague COMMAND --help' lists the options of a command.")
    return "\n".join(parts) + "\n"
