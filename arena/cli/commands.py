"""The table of commands: name, group, module and summary.

``ragleague --help`` is written from this table alone, so it imports nothing else.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ABOUT: Final = "Decide which of your RAG systems is better, and whether the judge that says so can be trusted."


class CommandEntry(Struct, frozen=True):
    """A command as ``--help`` lists it.

    Attributes:
        group: heading in the list.
        module: submodule of ``arena.cli`` that defines it.
        summary: first sentence of its help.
        function: its function's name in the module; "" if that is the command's name.
        many_values: whether an option takes several values at once.
    """

    group: str
    module: str
    summary: str
    function: str = ""
    many_values: bool = False


_EVALUATE, _LOOK, _DATA, _SERVICE = "Evaluate", "Look", "Data and banks", "Service"

COMMANDS: Final = {
    "demo": CommandEntry(_EVALUATE, "tournament", "Run a tournament offline on the bundled data."),
    "init": CommandEntry(_EVALUATE, "tournament", "Write a starter configuration and data to edit."),
    "plan": CommandEntry(_EVALUATE, "tournament", "Count the calls, tokens and cost of a run."),
    "run": CommandEntry(_EVALUATE, "tournament", "Judge what is missing and print the leaderboard."),
    "make": CommandEntry(_EVALUATE, "make", "Have models make one thing, and write it to a file."),
    "gate": CommandEntry(_EVALUATE, "gate", "Pass if a new agent is not worse than an old one."),
    "rate": CommandEntry(_EVALUATE, "board", "Rate agents from a table of verdicts alone."),
    "leaderboard": CommandEntry(_LOOK, "board", "Print the leaderboard of a tournament."),
    "compare": CommandEntry(_LOOK, "gate", "Compare two agents: better, not worse, worse or undecided."),
    "queries": CommandEntry(_LOOK, "queries", "Which queries tell the agents apart, and where each agent fails."),
    "calibrate": CommandEntry(
        _LOOK, "calibrate", "Compare judges with people, to see whether they can be trusted.", many_values=True
    ),
    "failures": CommandEntry(_LOOK, "failures", "List what failed and why."),
    "report": CommandEntry(_LOOK, "report", "Write a report as one HTML file."),
    "publish": CommandEntry(_LOOK, "report", "Write a tournament as pages for any web server."),
    "ui": CommandEntry(_LOOK, "page", "Open the web leaderboard of a store."),
    "import": CommandEntry(_DATA, "data", "Import recorded verdicts or people's labels into a store.", "import_file"),
    "export": CommandEntry(_DATA, "data", "Write a tournament's data and results as tables."),
    "convert": CommandEntry(_DATA, "convert", "Write a bank or grades in another form."),
    "documents": CommandEntry(_DATA, "documents", "Cut documents into passages for retrieval."),
    "retrieve": CommandEntry(_DATA, "retrieve", "Search a corpus with every query."),
    "metrics": CommandEntry(_DATA, "metrics", "Score runs by relevance labels.", many_values=True),
    "exam": CommandEntry(_DATA, "exam", "Score, check and compare grades by a test bank.", many_values=True),
    "nuggets": CommandEntry(_DATA, "nuggets", "Score runs by their nuggets, or compare two conditions."),
    "bank": CommandEntry(_DATA, "bank", "Show a test bank, or what changed from one version to the next."),
    "doctor": CommandEntry(_SERVICE, "doctor", "Check what is installed and set."),
    "store": CommandEntry(_SERVICE, "stores", "Check a store, or copy it to another place.", "group"),
}
"""Commands by name, in the order of ``--help``."""

_OPTIONS: Final = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for this shell.",
    "--show-completion": "Print that completion, to copy or change it.",
    "--help": "Print this and exit.",
}


def overview() -> str:
    """The text of ``ragleague --help``."""
    width = max(map(len, COMMANDS))
    option_width = max(map(len, _OPTIONS))
    parts = ["Usage: ragleague COMMAND [ARGUMENTS]...\n", ABOUT.replace(", and ", ",\nand ") + "\n"]
    for group in (_EVALUATE, _LOOK, _DATA, _SERVICE):
        parts.append(f"{group}:")
        parts += [f"  {name:<{width}}  {entry.summary}" for name, entry in COMMANDS.items() if entry.group == group]
        parts[-1] += "\n"
    parts += ["Options:", *(f"  {name:<{option_width}}  {summary}" for name, summary in _OPTIONS.items()), ""]
    parts.append("'ragleague COMMAND --help' lists the options of a command.")
    return "\n".join(parts) + "\n"
