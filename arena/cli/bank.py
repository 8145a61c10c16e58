"""``bank``: look at a test bank, convert it, and see what an edit changes before anything is graded anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from retrieval_eval.exam.influence import EditEffect
    from retrieval_eval.exam.items import BankDiff, Item

bank = typer.Typer(no_args_is_help=True, help="Test banks: questions and nuggets, their versions and edits.")

BankPath = Annotated[
    Path, typer.Argument(metavar="BANK", help="the workbench's bank .jsonl.gz, .yaml, or a table qid, question")
]
Secret = Annotated[bool, typer.Option("--secret", help="also the texts of secret items")]
Json = Annotated[bool, typer.Option("--json", help="machine-readable output")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(bank, name="bank")


@bank.command("show")
def show(
    file: BankPath,
    query: Annotated[str | None, typer.Option(help="only this query")] = None,
    secret: Secret = False,
    as_json: Json = False,
) -> None:
    """The items of a bank and its version."""
    from arena.cli.console import output, print_json
    from arena.cli.tables import print_table
    from judges.errors import InputError
    from retrieval_eval.exam.bank_files import read_bank

    found = read_bank(file)
    if query is not None and query not in found.query_ids:
        raise InputError(f"{file}: no query {query!r}")
    items = [item for item in found.items if query in (None, item.query_id)]
    if as_json:
        print_json({"version": found.version, "items": [_item_json(item, secret) for item in items]})
        return
    rows = [
        [
            item.query_id,
            item.item_type,
            item.kind.replace("_", " "),
            _text(item, secret),
            _marks(item),
            f"{item.weight:g}",
        ]
        for item in items
    ]
    print_table(("query", "type", "kind", "text", "marks"), ("weight",), rows)
    active = sum(not item.retired for item in items)
    output.print(f"\nversion {found.version}: {active} items count, {len(items) - active} are retired")


@bank.command("diff")
def diff(
    before: Annotated[Path, typer.Argument(metavar="OLD", help="a bank")],
    after: Annotated[Path, typer.Argument(metavar="NEW", help="its next version")],
    grades: Annotated[
        Path | None, typer.Option(help="grades of the old version: also shows the labels and places that change")
    ] = None,
    run: Annotated[list[Path] | None, typer.Option("--run", help="the responses, as runs of trec_eval")] = None,
    min_grade: Annotated[int | None, typer.Option(min=1, help="grade that counts as covered")] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="passages of a response that count")] = 20,
    llm: Annotated[str | None, typer.Option(help="the grader's model, where there are several")] = None,
    prompt: Annotated[str | None, typer.Option(help="the grader's prompt, likewise")] = None,
    secret: Secret = False,
    as_json: Json = False,
) -> None:
    """What changed between two versions of a bank; with grades also what that changes, before it is graded anew."""
    from arena.cli.console import print_json
    from arena.exam.study import load_study
    from retrieval_eval.exam.bank_files import read_bank
    from retrieval_eval.exam.influence import edit_effect
    from retrieval_eval.exam.items import diff as compare

    old, new = read_bank(before), read_bank(after)
    effect = None
    if grades is not None:
        study = load_study(grades, bank=before, runs=run or (), llm=llm, prompt=prompt)
        level = min_grade or study.usual_level
        effect = edit_effect(old, new, study.grades, study.rankings, level=level, k=k)
    changes = compare(old, new)
    if as_json:
        print_json(
            {
                "before": old.version,
                "after": new.version,
                **_diff_json(changes, secret),
                **({} if effect is None else _effect_json(effect)),
            }
        )
        return
    _print_diff(changes, old.version, new.version, secret)
    if effect is not None:
        _print_effect(effect)


@bank.command("convert")
def convert(
    file: BankPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help=".jsonl.gz for the workbench, .yaml, .csv, .parquet ...")],
    secret: Annotated[bool, typer.Option("--secret", help="also write the secret items")] = False,
) -> None:
    """Write a bank in another form. Secret items stay out unless asked for."""
    from arena.cli.console import output
    from retrieval_eval.exam.bank_files import read_bank, write_bank

    found = read_bank(file)
    left_out = write_bank(out, found, secret=secret)
    output.print(f"{len(found.items) - left_out} items written to {out}")
    if left_out:
        output.print(f"{left_out} secret items left out; --secret writes them")


def _print_diff(changes: BankDiff, before: str, after: str, secret: bool) -> None:
    from arena.cli.console import output, printable

    output.print(f"version {before} -> {after}")
    if not changes:
        output.print("nothing that grades or scores depend on has changed")
    for sign, items in (("+ added", changes.added), ("- retired", changes.retired)):
        for item in items:
            output.print(printable(f"{sign}  {item.query_id}: {_text(item, secret)}"))
    for old, new in changes.edited:
        output.print(printable(f"~ edited  {new.query_id}: {_text(old, secret)} -> {_text(new, secret)}"))
    for old, new in changes.reweighted:
        output.print(printable(f"~ weight  {new.query_id}: {_text(new, secret)}: {old.weight:g} -> {new.weight:g}"))
    for _, new in changes.disclosed:
        output.print(printable(f"~ {'secret' if new.secret else 'open'} now  {new.query_id}: {_text(new, secret)}"))


def _print_effect(effect: EditEffect) -> None:
    from arena.cli.console import output, printable
    from arena.cli.tables import print_table

    output.print(f"\nlabels that change: {len(effect.labels)}")
    for change in effect.labels[:10]:
        sides = ["none" if label is None else str(label) for label in (change.before, change.after)]
        output.print(printable(f"  {change.query_id} {change.passage_id}: {sides[0]} -> {sides[1]}"))
    if effect.places:
        output.print("\nplaces on the leaderboard of the cover:")
        rows = [
            [move.agent, f"{move.place_before:g}", f"{move.place_after:g}", f"{move.before:.3f}", f"{move.after:.3f}"]
            for move in effect.places
        ]
        print_table(("agent",), ("place before", "after", "cover before", "after"), rows)
    if effect.to_grade:
        output.print(
            f"\n{effect.to_grade} pairs of passage and item have no grade; until they are graded, "
            "the cover above is the least that they allow"
        )


def _diff_json(changes: BankDiff, secret: bool) -> dict[str, Any]:
    pairs = {"edited": changes.edited, "reweighted": changes.reweighted, "disclosed": changes.disclosed}
    return {
        "added": [_item_json(item, secret) for item in changes.added],
        "retired": [_item_json(item, secret) for item in changes.retired],
        **{name: [[_item_json(item, secret) for item in pair] for pair in some] for name, some in pairs.items()},
    }


def _effect_json(effect: EditEffect) -> dict[str, Any]:
    from dataclasses import asdict

    from arena.cli.console import rounded

    return {
        "labels": [asdict(change) for change in effect.labels],
        "places": [rounded(asdict(move)) for move in effect.places],
        "kendall": rounded(effect.kendall),
        "to_grade": effect.to_grade,
    }


def _item_json(item: Item, secret: bool) -> dict[str, Any]:
    hidden = item.secret and not secret
    return {
        "qid": item.query_id,
        "facet": item.facet_id,
        "item": None if hidden else item.item_id,
        "type": item.item_type,
        "kind": item.kind,
        "text": None if hidden else item.text,
        "answers": None if hidden else list(item.answers),
        "weight": item.weight,
        "secret": item.secret,
        "retired": item.retired,
    }


def _text(item: Item, secret: bool) -> str:
    return item.text if secret else item.open_text


def _marks(item: Item) -> str:
    marks = {"gold": bool(item.answers), "secret": item.secret, "retired": item.retired}
    return ", ".join(mark for mark, holds in marks.items() if holds)
