"""Every public name of ``ragleague`` has an example, and it does what it shows."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

import ragleague
from arena.demo import copy_demo
from ragleague import testing


def public() -> Iterator[tuple[str, Any]]:
    """Public names, and those of their methods, with what they name."""
    yield "ragleague", ragleague
    yield "ragleague.testing.assert_not_worse", testing.assert_not_worse
    for name in ragleague.__all__:
        if name == "__version__":  # a text, which can have no docstring
            continue
        value = getattr(ragleague, name)
        yield name, value
        if name in {"Board", "Rated"}:
            methods = (each for each in vars(value) if not each.startswith("_") and each not in ("table", "store"))
            yield from ((f"{name}.{method}", inspect.getattr_static(value, method)) for method in methods)


PUBLIC = dict(public())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, played, with its verdicts."""
    folder = tmp_path_factory.mktemp("examples")
    config = copy_demo(folder / "demo")
    ragleague.run(config, progress=False).games().to_csv(folder / "demo-verdicts.csv", index=False)
    return folder


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example_that_runs(name: str, folder: Path) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, {"rl": ragleague}, name, None, None)
    assert example.examples, f"{name} has no example"
    report: list[str] = []
    with chdir(folder):
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append)
    assert not report, "".join(report)
