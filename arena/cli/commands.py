"""The table of commands: the name of each command, the module with its function, and a summary.

``ragleague --help`` and the help of each group are written from this table alone, so they import nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

INTERRUPTED: Final = 130
"""Exit status of a command that Ctrl-C stopped, as in shells."""
ABOUT: Final = "Decide which of your RAG systems is better, and whether the judge that says so can be trusted."


class Command(Struct, frozen=True):
    """A command of ``ragleague``.

    Attributes:
        module: submodule of ``arena.cli`` with the command's function, which is named by the command's words: ``make
            bank`` is ``make_bank``.
        summary: first line of the command's help.
        many_values: whether its repeatable options take several values at once, as in ``--run runs/*.run``.
    """

    module: str
    summary: str
    many_values: bool = False


class CommandGroup(Struct, frozen=True):
    summary: str
    commands: Mapping[str, Command]


Entry: TypeAlias = Command | CommandGroup

_MAKE: Final = CommandGroup(
    "Have models write queries, answers, a bank, grades or nuggets.",
    {
        "queries": Command("make", "Have models write queries about your documents."),
        "answers": Command("make", "Ask the agents for the answers that are missing."),
        "bank": Command("make", "Have a judge write a test bank, with its secret items."),
        "grades": Command("make", "Have a judge grade passages by a test bank."),
        "nuggets": Command("make", "Have a judge write nuggets from relevant documents."),
        "assignments": Command("make", "Have a judge decide which nuggets the answers state."),
    },
)
_IMPORT: Final = CommandGroup(
    "Read recorded verdicts, or people's labels, into a store.",
    {
        "verdicts": Command("transfer", "Import a table of verdicts as a tournament."),
        "scores": Command("transfer", "Import scores that another tool gave to answers; no judge is asked."),
        "votes": Command("transfer", "Import people's labels into a tournament."),
    },
)
_EXPORT: Final = CommandGroup(
    "Write a tournament's data and results as tables.",
    {
        "verdicts": Command("transfer", "Write the judges' verdicts as a table."),
        "labels": Command("transfer", "Write the judges' relevance labels as a table."),
        "query-labels": Command("transfer", "Write the mean relevance label of each query as a table."),
        "criteria": Command("transfer", "Write the judges' grades of answers by criterion as a table."),
        "scores": Command("transfer", "Write the agents' scores by query, and their means, as a table."),
        "qrels": Command("transfer", "Write the judges' relevance labels as qrels."),
        "data": Command("transfer", "Write the tables of queries, documents and answers into a folder."),
        "votes": Command("transfer", "Write the labels that people gave to texts as they are now."),
    },
)
_CONVERT: Final = CommandGroup(
    "Write a test bank or grades in another format.",
    {
        "bank": Command("bank", "Write a test bank in another format."),
        "tables": Command("bank", "Write a graded file of the Rubric-Grading Workbench as tables."),
        "workbench": Command("bank", "Write grades as a file of the Rubric-Grading Workbench."),
    },
)
_EXAM: Final = CommandGroup(
    "Score, check and compare grades by a test bank.",
    {
        "score": Command("exam", "Score the agents by a test bank.", many_values=True),
        "labels": Command("exam", "Turn grades into relevance labels.", many_values=True),
        "agreement": Command("exam", "Compare grades with people's labels.", many_values=True),
        "compare": Command("exam", "Compare two gradings of the same passages.", many_values=True),
        "summary": Command("exam", "Show what to check before you trust grades and bank.", many_values=True),
        "answers": Command("exam", "List grades beside the answers found in passages.", many_values=True),
        "grid": Command("exam", "Show one query's grades as passages by items.", many_values=True),
        "uncovered": Command("exam", "List relevant passages that cover no item.", many_values=True),
        "spurious": Command("exam", "List items that irrelevant passages cover.", many_values=True),
        "influence": Command("exam", "List items whose removal changes the leaderboard.", many_values=True),
    },
)
_NUGGETS: Final = CommandGroup(
    "Score runs by their nuggets, compare two conditions, edit.",
    {
        "score": Command("nuggets", "Score runs by the nuggets they state."),
        "correlate": Command("nuggets", "Compare how two conditions rank the runs."),
        "edit": Command("nuggets", "Record what a person changed in nuggets."),
    },
)
_BANK: Final = CommandGroup(
    "Show a test bank, or what changed in its next version.",
    {
        "show": Command("bank", "Show the items of a test bank, or nuggets."),
        "diff": Command("bank", "Show what changed between two versions of a bank.", many_values=True),
    },
)
_STORE: Final = CommandGroup(
    "Check a store, or copy it to another place.",
    {
        "copy": Command("stores", "Copy a store to a new SQLite file or to an empty PostgreSQL database."),
        "check": Command("stores", "Check a store for damage."),
    },
)
SECTIONS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Evaluate": {
        "demo": Command("demo", "Run a tournament offline on the bundled data."),
        "init": Command("demo", "Write a starter configuration and data to edit."),
        "plan": Command("run", "Count the calls, tokens and cost of a run; calls nothing."),
        "run": Command("run", "Make the missing judgments and print the leaderboard."),
        "make": _MAKE,
        "gate": Command("compare", "Pass if a new agent is not worse than an old one."),
        "rate": Command("rate", "Rate agents from a table of verdicts alone."),
    },
    "Look": {
        "leaderboard": Command("leaderboard", "Print the leaderboard of a tournament."),
        "compare": Command("compare", "Compare two agents: better, not worse, worse or undecided."),
        "queries": Command("queries", "Which queries tell the agents apart, and where each agent fails."),
        "calibrate": Command("calibrate", "Compare judges with people, to see whether they can be trusted.", True),
        "agreement": Command("metrics", "Compare sets of relevance labels with people's.", many_values=True),
        "failures": Command("failures", "List failed judgments and answers, with causes."),
        "batches": Command("failures", "List, cancel or give up batches that are under way."),
        "votes": Command("transfer", "Count the labels that people gave, by person and kind of label."),
        "report": Command("report", "Write the report on a tournament as one HTML file."),
        "publish": Command("report", "Write the results of a tournament as a static web site."),
        "ui": Command("report", "Open the web leaderboard of a store."),
    },
    "Data and banks": {
        "import": _IMPORT,
        "export": _EXPORT,
        "convert": _CONVERT,
        "documents": Command("documents", "Cut documents into passages for retrieval."),
        "retrieve": Command("documents", "Search a corpus with every query."),
        "metrics": Command("metrics", "Score runs by relevance labels.", many_values=True),
        "pool": Command("metrics", "Pool runs: which documents are left to judge.", many_values=True),
        "exam": _EXAM,
        "nuggets": _NUGGETS,
        "bank": _BANK,
    },
    "Service": {"doctor": Command("doctor", "Check the installation, or a configuration."), "store": _STORE},
}
COMMANDS: Final = {name: entry for commands in SECTIONS.values() for name, entry in commands.items()}
"""All commands and groups of commands by name, in the order in which ``--help`` lists them."""

_OPTIONS: Final = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for this shell.",
    "--show-completion": "Print that completion, to copy or change it.",
    "--help": "Print this and exit.",
}


def overview(name: str = "") -> str:
    """Text of ``ragleague --help``, or of the help on the group of commands with this name."""
    group = COMMANDS.get(name)
    if isinstance(group, CommandGroup):
        return _help(f"{name} ", group.summary, {"Commands": group.commands}, {"--help": _OPTIONS["--help"]})
    return _help("", ABOUT.replace(", and ", ",\nand "), SECTIONS, _OPTIONS)


def _help(before: str, about: str, sections: Mapping[str, Mapping[str, Entry]], options: Mapping[str, str]) -> str:
    parts = [f"Usage: ragleague {before}COMMAND [ARGUMENTS]...\n", f"{about}\n"]
    width = max(len(name) for commands in sections.values() for name in commands)
    for heading, commands in sections.items():
        parts += [f"{heading}:", *(f"  {name:<{width}}  {entry.summary}" for name, entry in commands.items()), ""]
    width = max(map(len, options))
    parts += ["Options:", *(f"  {name:<{width}}  {summary}" for name, summary in options.items()), ""]
    return "\n".join([*parts, f"'ragleague {before}COMMAND --help' lists the options of a command."]) + "\n"
