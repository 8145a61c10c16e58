"""Tables from columns of names: the same as from single verdicts, and as strict."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.ratings.columns import Column, table_of_columns
from arena.ratings.games import GameVerdict, tabulate
from judges.errors import InputError
from judges.types import Verdict

KINDS = {"list": list, "array": np.array, "pandas": lambda names: pd.Series(names, dtype="str")}
ROWS = st.lists(
    st.tuples(st.sampled_from("qrs"), st.sampled_from("zyx"), st.sampled_from("abc"), st.sampled_from(list(Verdict))),
    min_size=1,
    max_size=20,
)


@pytest.mark.parametrize("kind", KINDS)
@given(rows=ROWS)
def test_columns_make_the_table_that_single_verdicts_make(kind: str, rows: list[tuple[str, str, str, Verdict]]) -> None:
    query, a, b, verdict = (KINDS[kind]([str(row[i]) for row in rows]) for i in range(4))
    made = table_of_columns(a, b, verdict, query, judge=query)
    same = tabulate(GameVerdict(q, first, second, v, judge=q) for q, first, second, v in rows)
    assert (made.agents, made.queries, made.judges) == (same.agents, same.queries, same.judges)
    for name in ("a", "b", "outcome", "query"):
        np.testing.assert_array_equal(getattr(made, name), getattr(same, name))


def test_queries_and_judges_may_be_absent() -> None:
    made = table_of_columns(["x"], ["y"], ["TIE"])
    assert (made.queries, made.query, made.judges, made.judge.tolist()) == (None, None, ("",), [0])


@pytest.mark.parametrize(
    ("a", "b", "verdict", "says"),
    [
        ([], [], [], "no verdicts"),
        (["x", None], ["y", "y"], ["A", "B"], "verdict 2: agent_a is empty or missing"),
        (["x", "x"], ["y", " "], ["A", "B"], "verdict 2: agent_b is empty or missing"),
        (["x", "x"], ["y", "x"], ["A", "B"], "verdict 2: agent 'x' plays itself"),
        (["x", "x"], ["y", "y"], ["A", "model_a"], "verdict 2: 'model_a' is not A, B or TIE"),
        (["x", "x"], ["y", "y"], ["A", None], "verdict 2: .* is not A, B or TIE"),
        (["x", "x"], ["y"], ["A", "B"], "differ in length"),
    ],
)
@pytest.mark.parametrize("kind", ["list", "pandas"])
def test_rows_that_are_no_game_are_refused_by_number(
    kind: str, a: Column, b: Column, verdict: Column, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        table_of_columns(*(KINDS[kind](column) for column in (a, b, verdict)))
