"""Documentation as tests: what a page shows is run, and what it lists is held against the code.

In README.md and docs/*.md

- ```` ```console ```` blocks are run, each page in a folder of its own. A line that begins with ``$ `` is a
  command, the lines below it must occur in its output in that order, ``...`` stands for anything left out, and a last
  line ``# exit status 3`` names a status other than 0. A plain ``ragleague ...`` runs in this process, which saves its
  start; whatever needs a shell runs in one;
- a block with a file name behind its language (```` ```yaml tournament.yaml ````) is written to that file beforehand;
- ```` ```python ```` blocks are run; ```` ```yaml ```` blocks with ``data:`` and ``store:`` are whole configurations;
- a page that names ``demo/`` or ``verdicts.csv`` finds them: what ``ragleague demo`` writes, and its verdicts;
- ```` ```sh ```` blocks are for setting up (git, make) and for what does not end by itself; they are not run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml
from msgspec import Struct

from arena.cli.main import main
from arena.config.schema import load_config
from docs.make_reference import PARTS, made
from judges.errors import CAUSES, RETRIED_NEXT_RUN

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, *sorted((ROOT / "arena/demo/handbook").glob("*.md"))]
LINKING += [
    ROOT / name for name in ("benchmarks/README.md", "benchmarks/studies.md", "configs/README.md", "CONTRIBUTING.md")
]
SETUP_COMMANDS = ("make ", "git ", "pip ", "export ", "docker ", "ray ", "sqlite3 ", "ragleague ui ")
KEYS_OF_WHOLE_CONFIGURATIONS = {"name", "store", "data"}

_BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<file>[\w.-]+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PLAIN = re.compile(r"(ragleague (?!ui )[^|<>;&$`*?~\\]*?)(?: 2> ([\w.]+))?")
"""A command that asks little of a shell, to be split at blanks and to keep its errors, and starts no process itself."""
_MAKES_THE_DEMO = re.compile(r"\$ ragleague (demo|init demo)")
_STATUS = re.compile(r"# exit status (\d+)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


class Block(Struct, frozen=True):
    language: str
    file: str | None
    text: str


class Shown(Struct, frozen=True):
    """A command as a page shows it."""

    command: str
    output: tuple[str, ...]
    status: int


def blocks(page: Path) -> list[Block]:
    matches = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(block["language"], block["file"], block["text"]) for block in matches]


def shown(text: str) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *output = part.rstrip("\n").split("\n")
        ending = _STATUS.fullmatch(output[-1]) if output else None
        yield Shown(command, tuple(output[:-1] if ending else output), int(ending[1]) if ending else 0)


def offline_environment(home: Path) -> dict[str, str]:
    """This project's commands first, and nothing that opens a way out: no key, no proxy."""
    language = {name: value for name, value in os.environ.items() if name in {"LANG", "LC_ALL", "SYSTEMROOT"}}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**language, "PATH": path, "HOME": str(home)}


def ids(page: Path) -> str:
    return page.name


@pytest.fixture(scope="session")
def recorded_verdicts(played_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The verdicts of the demo tournament."""
    folder = tmp_path_factory.mktemp("verdicts")
    assert in_this_process(f"ragleague export verdicts {played_demo}/tournament.yaml verdicts.csv", folder)[0] == 0
    return folder / "verdicts.csv"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_of_a_page_do_what_it_shows(
    page: Path, tmp_path: Path, recorded_verdicts: Path, played_demo: Path
) -> None:
    """Python runs in between, with the names that the blocks before it gave."""
    text, names = page.read_text(encoding="utf-8"), {"__name__": "page"}
    if "verdicts.csv" in text:
        shutil.copy(recorded_verdicts, tmp_path)
    if "demo/" in text and not _MAKES_THE_DEMO.search(text):
        shutil.copytree(played_demo, tmp_path / "demo")
    for block in blocks(page):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            with chdir(tmp_path):
                exec(compile(block.text, str(page), "exec"), names)
        if block.language == "console":
            for entry in shown(block.text):
                run = in_this_process if _PLAIN.fullmatch(entry.command) else in_a_shell
                status, output = run(entry.command, tmp_path)
                assert status == entry.status, f"$ {entry.command}\n{output}"
                assert_occur_in_order(entry, output)


def test_each_first_task_takes_one_command_of_few_options(tmp_path: Path, played_demo: Path) -> None:
    section = (
        (ROOT / "docs/commands.md").read_text(encoding="utf-8").partition("first tasks\n")[2].partition("\n## ")[0]
    )
    tasks = re.findall(r"^\| .* \| `(.*)` \|$", section, flags=re.MULTILINE)
    assert len(tasks) == 10
    shutil.copytree(played_demo, tmp_path / "demo")
    for block in blocks(ROOT / "README.md"):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    assert in_this_process("ragleague export verdicts demo/tournament.yaml verdicts.csv", tmp_path)[0] == 0
    for task in tasks:
        assert task.count(" --") <= 3
        status, output = in_this_process(task, tmp_path)
        assert status == 0, f"$ {task}\n{output}"


def in_a_shell(command: str, folder: Path) -> tuple[int, str]:
    """The status of a command and all that it writes."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=offline_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def in_this_process(command: str, folder: Path) -> tuple[int, str]:
    """As in a shell, for a plain ``ragleague ...``."""
    plain = _PLAIN.fullmatch(command)
    assert plain
    output = StringIO()
    with (
        chdir(folder),
        Path(plain[2]).open("w", encoding="utf-8") if plain[2] else nullcontext(output) as errors,
        patch.dict(os.environ, offline_environment(folder), clear=True),
        patch.object(sys, "argv", shlex.split(plain[1])),
        redirect_stdout(output),
        redirect_stderr(errors),
        pytest.raises(SystemExit) as ending,
    ):
        main()
    return int(ending.value.code or 0), output.getvalue()


def assert_occur_in_order(entry: Shown, output: str) -> None:
    real = iter(line.rstrip() for line in output.splitlines())
    for line in (line.rstrip() for line in entry.output):
        if line != "...":
            pattern = re.compile(".*".join(re.escape(part) for part in line.split("...")))
            assert any(pattern.fullmatch(written) for written in real), f"$ {entry.command}\nlacks {line!r}:\n{output}"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_configurations_of_a_page_load(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(page):
        for name in re.findall(r"version: \$\{(\w+)\}", block.text):
            monkeypatch.setenv(name, "1f0c")
        content = yaml.safe_load(block.text) if block.language == "yaml" else {}
        if content.keys() >= KEYS_OF_WHOLE_CONFIGURATIONS and page.name != "own-stage.md":  # it needs its package
            (tmp_path / "page.yaml").write_text(block.text, encoding="utf-8")
            load_config(tmp_path / "page.yaml")


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_only_setting_up_is_left_unrun(page: Path) -> None:
    known = {"console", "python", "yaml", "sh", "csv", "json", "text", "toml", "html", "sql"}
    assert {block.language for block in blocks(page)} <= known
    for block in blocks(page):
        if block.language == "sh":
            assert all(line.startswith(SETUP_COMMANDS) for line in block.text.splitlines()), block.text


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = _HEADING.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= set(_LINK.findall(index))


@pytest.mark.parametrize("page", PARTS)
def test_what_the_code_knows_stands_on_the_page_as_the_code_says_it(page: str) -> None:
    said = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert said == made(page), "'python -m docs.make_reference' writes it anew"


def test_the_page_on_judges_has_every_cause_of_failure_and_when_it_is_asked_again() -> None:
    page = (ROOT / "docs/judges.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| [^|]* \| (yes|with `--retry-failed`) \|$", page, flags=re.MULTILINE))
    assert {cause: answer == "yes" for cause, answer in rows.items()} == {
        cause: cause in RETRIED_NEXT_RUN for cause in CAUSES
    }
