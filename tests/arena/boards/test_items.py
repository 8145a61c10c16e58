"""What an item does to the scores, beside the item."""

from __future__ import annotations

from arena.boards.bank import ItemEffect, items_table, nugget_effects, nugget_line
from arena.results.nuggets import NuggetResults
from retrieval_eval.nuggets.types import Assignment, Importance, NuggetBank, Support, make_nuggets

VITAL, OKAY = Importance.VITAL, Importance.OKAY
YES, NO = Support.FULL, Support.NONE


def results(*labels: tuple[str, tuple[Support | None, ...]]) -> NuggetResults:
    nuggets = make_nuggets("q", ["purrs", "sleeps", "mews"], [VITAL, VITAL, OKAY])
    assigned = [Assignment("q", run, nuggets, own, 5) for run, own in labels]
    return NuggetResults({"q": NuggetBank("q", "cats?", nuggets)}, {}, assigned, {}, [], 5)


def test_a_nugget_names_who_fails_it_and_whom_it_moves() -> None:
    found = results(("x", (YES, NO, NO)), ("y", (NO, Support.PARTIAL, YES)), ("z", (YES, YES, None)))
    effects = nugget_effects(found)
    purrs, sleeps, mews = (effects[nugget.nugget_id] for nugget in found.banks["q"].nuggets)
    assert (purrs.covering, purrs.failing) == (2, ("y",))
    assert (sleeps.covering, sleeps.failing) == (1, ("x", "y")), "one stated in part is failed, as V strict counts"
    assert (mews.covering, mews.failing) == (1, ("x",)), "what nobody knows is neither"
    # z leads with both, x has one of two. Without "purrs" x falls to y; without "sleeps" it comes up to z.
    assert (purrs.influence.moved, purrs.influence.new_leader) == (2, False)
    assert (sleeps.influence.moved, sleeps.influence.new_leader) == (2, True)
    assert mews.influence.moved == 0, "an okay nugget weighs nothing in V strict"
    lines = [nugget_line(nugget) for nugget in found.banks["q"].nuggets]
    rows = items_table(lines, effects).rows
    assert [row["failing"] for row in rows] == ["y", "x and y", "x"]
    assert [row["marks"] for row in rows] == [(), ("decides",), ()]


def test_an_item_that_nobody_is_graded_against_says_nothing() -> None:
    line = nugget_line(make_nuggets("q", ["purrs"], [VITAL])[0])
    assert "covering" not in items_table([line], {}).rows[0]
    assert items_table([line], {line["key"]: ItemEffect(0, (), None)}).rows[0]["failing"] is None
