"""Judges and agents that are functions, in several processes with one store: who is asked again, and who not."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.conftest import ROOT

Python: TypeAlias = Callable[..., list[str]]
PLAY = '''
import sys, threading
import ragleague as rl

CALLS, STORE = "calls.txt", "ragleague.db"
DATA = {name: [{"question": f"Why {n}?", "answer": f"{name} says {n}"} for n in range(2)] for name in ("x", "y")}

def called(what):
    with open(CALLS, "a") as file:
        file.write(f"{what}\\n")

def play(judge, agents=None):
    """What a judge says of four games, and what had to be called for it."""
    open(CALLS, "w").close()
    board = rl.run(rl.load(DATA), judge=judge, agents=agents, store=STORE, progress=False)
    print(sorted(set(board.games()["verdict"])), len(open(CALLS).readlines()))

'''


FORKS = """
import gc, os, runpy, sys
# All that takes long to start, except the module that tells one process from another.
import cloudpickle, jinja2, jmespath, pandas, scipy.optimize, sqlalchemy.dialects.sqlite
import arena.boards.exports, arena.boards.leaderboard, arena.results.cache, arena.run.answers, arena.run.preflight
import arena.stages.pairwise, ragleague.board, ragleague.play
assert "judges.function_identity" not in sys.modules
gc.freeze()  # otherwise each copy looks through all of it when it ends

for folder in map(str.strip, sys.stdin):
    if (child := os.fork()) == 0:
        os.chdir(folder)
        sys.path.insert(0, folder)
        for number, name in ((1, "out.txt"), (2, "err.txt")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        runpy.run_path("script.py", run_name="__main__")
        sys.exit()
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def python() -> Iterator[Python]:
    """Runs a script in a process of its own, with a given seed for hashes."""
    with ExitStack() as stack:

        @cache
        def forks(seed: str) -> subprocess.Popen[str]:
            environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
            command = [sys.executable, "-c", FORKS]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            return stack.enter_context(subprocess.Popen(command, env=environment, text=True, cwd=ROOT, **pipes))

        def run(folder: Path, source: str, seed: str = "1") -> list[str]:
            (folder / "script.py").write_text(PLAY + textwrap.dedent(source))
            process = forks(seed)
            assert process.stdin is not None
            assert process.stdout is not None
            print(folder, file=process.stdin, flush=True)
            status = process.stdout.readline()
            out, err = ((folder / name).read_text() for name in ("out.txt", "err.txt"))
            assert status == "0\n", err
            return [*out.splitlines(), *err.splitlines()]

        yield run


JUDGE = """
class J:
    def __init__(self, verdict):
        self.verdict, self.lock = verdict, threading.Lock()
    def __call__(self, prompt):
        called(self.verdict)
        return self.verdict
    def method(self, prompt):
        return self(prompt)
"""

A_ALWAYS = ["['A'] 4", "['B'] 4"]
"""Four games, none of them known, and then four more of another judge."""


JUDGES = {
    "objects": JUDGE + 'play(J("A")); play(J("B"))',
    "methods": JUDGE + 'play(J("A").method); play(J("B").method)',
    "lambdas": 'for f in [lambda p: called(1) or "A", lambda p: called(1) or "B"]: play(f)',
    "closures": """
        def make(v):
            def judge(prompt):
                called(1)
                return v[0]
            return judge
        play(make(["A"])); play(make(["B"]))
        """,
    "values of globals": """
        V = {"is": "A"}
        def judge(prompt):
            called(1)
            return V["is"]
        play(judge)
        V["is"] = "B"
        play(judge)
        """,
    "globals": """
        W = "A"
        def judge(prompt):
            called(1)
            return W
        play(judge)
        W = "B"
        play(judge)
        """,
    "partials": """
        from functools import partial
        def judge(v, prompt):
            called(1)
            return v["is"]
        play(partial(judge, {"is": "A"})); play(partial(judge, {"is": "B"}))
        """,
    "helpers": """
        def helper(): return "A"
        def judge(prompt):
            called(1)
            return helper()
        play(judge)
        def helper(): return "B"
        play(judge)
        """,
}


def test_one_judge_never_gets_the_verdicts_of_another(python: Python, tmp_path: Path) -> None:
    source = "".join(f"STORE = {name + '.db'!r}\n{textwrap.dedent(each)}\n" for name, each in JUDGES.items())
    assert python(tmp_path, source) == A_ALWAYS * len(JUDGES)
    assert python(tmp_path, source, seed="2") == ["['A'] 0", "['B'] 0"] * len(JUDGES), "unchanged, in another process"


def test_a_judge_is_known_in_another_process_while_nothing_that_it_uses_changes(python: Python, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text('WORDS = {"tie", "draw"}\ndef verdict(prompt): return "A" if WORDS else "B"\n')
    source = "import rules\ndef judge(prompt):\n    called(1)\n    return rules.verdict(prompt)\nplay(judge)"
    assert python(tmp_path, source) == ["['A'] 4"]
    assert python(tmp_path, f"\n\n# moved\n{source}", seed="2") == ["['A'] 0"]
    (tmp_path / "rules.py").write_text('WORDS = set()\ndef verdict(prompt): return "A" if WORDS else "B"\n')
    assert python(tmp_path, source) == ["['B'] 4"], "a value that its helper reads has changed"
    late = "def judge(prompt):\n    import rules\n    called(1)\n    return rules.verdict(prompt)\nplay(judge)"
    assert python(tmp_path, late) == ["['B'] 4"]
    (tmp_path / "rules.py").write_text('def verdict(prompt): return "A"\n')
    assert python(tmp_path, late) == ["['A'] 4"], "so has what it imports while it runs"


CLIENT = """
import sqlite3
class J:
    def __init__(self, verdict):
        self.verdict, self.client = verdict, sqlite3.connect(":memory:")
    def __call__(self, prompt):
        called(self.verdict)
        return self.verdict
"""


def test_what_cannot_be_read_is_named_in_one_line_and_asked_anew_in_each_process(
    python: Python, tmp_path: Path
) -> None:
    source = CLIENT + 'judge = J("A")\nplay(judge); play(judge); play(J("A"))'
    line = (
        "judge judge: attribute 'client' (sqlite3.Connection) cannot be read, so replies are not kept across "
        "processes; say version= beside the function to keep them"
    )
    expected = ["['A'] 4", "['A'] 0", "['A'] 4", *3 * [line]]
    assert python(tmp_path, source) == expected
    assert python(tmp_path, source) == expected
    said = CLIENT + 'for v in "AB": play({"provider": "python", "function": J(v), "version": "1"})'
    assert python(tmp_path, said) == A_ALWAYS, "a version stands for the client, and not for what can be read"
    assert python(tmp_path, said) == ["['A'] 0", "['B'] 0"]
    assert python(tmp_path, said.replace('"1"', '"2"')) == A_ALWAYS


AGENTS = """
class Agent:
    def __init__(self, words):
        self.words = words
    def __call__(self, query):
        called(self.words)
        return f"{self.words} {query.text}"
    def method(self, query):
        return self(query)
"""


def test_the_same_holds_for_agents(python: Python, tmp_path: Path) -> None:
    source = f"""{AGENTS}
for words in (["a"], ["b"]):
    play("lexical", {{"z": Agent(words)}})
    play("lexical", {{"z": Agent(words).method}})
"""
    first = [line.rpartition(" ")[2] for line in python(tmp_path, source)]
    again = [line.rpartition(" ")[2] for line in python(tmp_path, source, seed="2")]
    assert (first, again) == (["2"] * 4, ["0"] * 4)
    unread = AGENTS + 'import sqlite3\nAgent.client = sqlite3.connect(":memory:")\nagent = Agent(["a"])\n'
    twice = unread + 'for _ in range(2): play("lexical", {"z": agent})'
    for _ in range(2):
        *counts, line, _ = python(tmp_path, twice)
        assert [count.rpartition(" ")[2] for count in counts] == ["2", "0"]
        assert line.startswith("agent z: attribute 'Agent.client' (sqlite3.Connection) cannot be read, so replies are")
    kept = unread + 'play("lexical", {"z": {"kind": "python", "function": agent, "version": "1"}})'
    assert [python(tmp_path, kept)[0][-1] for _ in range(2)] == ["2", "0"]


YAML = """
name: own
store: own.db
data: {{answers: answers.csv}}
judges: {{own: {{provider: python, function: "judge.py:judge"{version}}}}}
pairwise: {{judges: own}}
"""


def test_a_judge_that_a_file_names_is_read_with_what_it_imports(python: Python, tmp_path: Path) -> None:
    def judged(version: str = "") -> list[str]:
        (tmp_path / "own.yaml").write_text(YAML.format(version=version))
        ran = python(tmp_path, 'board = rl.run("own.yaml", progress=False)\nprint(*set(board.games()["verdict"]))')
        calls = tmp_path / "calls.txt"
        made = len(calls.read_text().splitlines()) if calls.is_file() else 0
        calls.unlink(missing_ok=True)
        return [*ran, str(made)]

    (tmp_path / "answers.csv").write_text("question,agent,answer\nWhy?,x,X says.\nWhy?,y,Y says.\n")
    beside = 'def verdict(prompt):\n    open("calls.txt", "a").write("called\\n")\n    return "{}"\n'
    (tmp_path / "beside.py").write_text(beside.format("A"))
    (tmp_path / "judge.py").write_text("from beside import verdict\ndef judge(prompt): return verdict(prompt)\n")
    assert judged() == ["A", "2"]
    assert judged() == ["A", "0"]
    (tmp_path / "beside.py").write_text(beside.format("B"))
    assert judged() == ["B", "2"]
    client = "import sqlite3\nCLIENT = sqlite3.connect(':memory:')\nfrom beside import verdict\n"
    (tmp_path / "judge.py").write_text(f"{client}def judge(prompt): return CLIENT and verdict(prompt)\n")
    for _ in range(2):
        verdict, line, calls = judged()
        assert (verdict, calls) == ("B", "2")
        assert line.startswith("judge own: global 'CLIENT' (sqlite3.Connection) cannot be read")
    assert [judged(', version: "1"') for _ in range(2)] == [["B", "2"], ["B", "0"]]
