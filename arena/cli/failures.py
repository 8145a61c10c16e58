"""``failures``: what failed and why, counted first and then one by one with the last reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from judges.errors import CAUSES, InputError
from judges.types import JudgeFailure, Task
from retrieval_eval.agents.types import AGENT_CAUSES

if TYPE_CHECKING:
    from arena.store import Store, Wanted

Entry: TypeAlias = dict[str, Any]

_ABOUT_ITEMS = frozenset({Task.GRADING, Task.EXTRACTION, Task.ANSWER_CHECK})
_SHOWN = 200
"""Characters of a reply that a person needs to see what went wrong; ``--json`` has all."""


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("failures")(failures)


def failures(
    source: Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")],
    tournament: Annotated[str | None, typer.Option(help="only this one, where a store holds several")] = None,
    cause: Annotated[list[str] | None, typer.Option(help="only this cause; may be repeated")] = None,
    judge: Annotated[list[str] | None, typer.Option(help="only this judge; may be repeated")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable output, with whole replies")] = False,
) -> None:
    """List what failed and why: counts per cause and judge, then each with its last reply; and answers agents owe.

    Of a store that holds several tournaments, all of them. 'ragarena run' asks most causes again by itself, the others
    with --retry-failed.
    """
    from arena.batches import waiting_lines
    from arena.cli.console import print_json
    from arena.cli.figures import say
    from arena.cli.sources import location_and_name, open_tournament
    from arena.store import Store

    _, named = location_and_name(source)
    if tournament or named:
        store, name = open_tournament(source, tournament)
        names = [name]
    else:
        store = Store.open(source)
        names = store.tournaments()
    _require("--cause", cause or (), AGENT_CAUSES)
    _require("--judge", judge or (), _judges(store, names) if judge else ())
    found = [
        entry
        for name in names
        for entry in [*_failed_agents(store, name), *_failed(store, name)]
        if (not cause or entry["cause"] in cause) and (not judge or entry["judge"] in judge)
    ]
    under_way = waiting_lines(store)
    store.close()
    if as_json:
        print_json(found)
    else:
        _print(found, several=len(names) > 1)
        for line in under_way:
            say(line)


def _require(option: str, given: Iterable[str], known: Iterable[str]) -> None:
    from judges.sections import nearest

    names = list(known)
    for name in given:
        if name not in names:
            raise InputError(f"{option} {name}: there is none{nearest(name, names)}")


def _judges(store: Store, names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(want.judge for name in names for want, _ in store.wanted(name)))


def _failed_agents(store: Store, tournament: str) -> list[Entry]:
    from arena.agents.replies import failures as failures_of_agents

    found = failures_of_agents(store, store.dataset(tournament), store.settings(tournament))
    return [
        {
            "tournament": tournament,
            "task": "agents",
            "judge": "",
            "qid": query_id,
            "item": agent,
            "cause": failure.cause,
            "meaning": AGENT_CAUSES.get(failure.cause, failure.cause),
            "message": failure.message,
            "reply": None,
            "calls": failure.calls,
        }
        for agent, query_id, failure in found
    ]


def _failed(store: Store, tournament: str) -> list[Entry]:
    from arena.exam.stored import open_items

    open_ids = open_items(store, tournament)
    return [
        _entry(tournament, want, result, open_ids)
        for task in Task
        for want, result in store.outcomes(tournament, task)
        if isinstance(result, JudgeFailure)
    ]


def _entry(tournament: str, want: Wanted, result: JudgeFailure, open_ids: Collection[str]) -> Entry:
    """One failure. Of a secret item neither its id is shown nor what was said about it, which may repeat it."""
    from arena.exam.wants import item_ids
    from retrieval_eval.exam.items import SECRET_TEXT

    secret = want.task in _ABOUT_ITEMS and not set(item_ids(want)) <= set(open_ids)
    other = SECRET_TEXT if secret else want.other
    return {
        "tournament": tournament,
        "task": want.task.value,
        "judge": want.judge,
        "qid": want.query_id,
        "item": " / ".join(filter(None, (want.item, other, want.order))),
        "cause": result.cause,
        "meaning": CAUSES.get(result.cause, result.cause),
        "message": SECRET_TEXT if secret else result.message,
        "reply": None if secret else result.reply,
        "calls": result.calls,
    }


def _print(found: Sequence[Entry], *, several: bool) -> None:
    from arena.cli.console import output, printable

    if found:
        _print_counts(found)
    for entry in found:
        place = " ".join(filter(None, (entry["task"], entry["judge"], entry["qid"], entry["item"])))
        whose = f"{entry['tournament']}: " if several else ""
        output.print(printable(f"{whose}{place}: {entry['cause']}: {entry['message']}"))
        if entry["reply"]:
            output.print(f"    reply: {entry['reply'][:_SHOWN]!r}")
    output.print(f"{len(found)} failed")


def _print_counts(found: Sequence[Entry]) -> None:
    """The most frequent first, so that the one thing to mend stands on top."""
    from arena.cli.console import output
    from arena.cli.tables import print_table

    counts = Counter((entry["cause"], entry["judge"], entry["meaning"]) for entry in found)
    ordered = sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))
    print_table(["cause", "judge", "meaning"], ["failed"], [[*names, str(count)] for names, count in ordered])
    output.print()
