"""The commands ``plan`` (count the calls of a run) and ``run`` (make missing judgments, print the leaderboard)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from msgspec import Struct

from arena.boards.leaderboard import keep_boards
from arena.boards.rated_tables import column_names
from arena.cli.console import INCOMPLETE, errors, say
from arena.cli.leaderboard import print_leaderboard
from arena.cli.options import Details, Form, LogJson, RetryFailed
from arena.cli.progress import print_part, traced_to, watching
from arena.cli.show import show
from arena.cli.sources import open_tournament
from arena.config.from_answers import STORE, assumed, assumed_content, assumed_yaml, judge_named
from arena.config.schema import Config, ExecutorSection, load_config
from arena.config.stages import STAGES
from arena.data.files import load_dataset
from arena.present.numbers import counted, listed
from arena.run.pipeline import RunPart, play
from arena.run.preflight import Preflight, require_writable
from arena.stages.queries_config import SynthConfig, load_either
from judges.errors import InputError
from retrieval_eval.data.files import open_replacing
from retrieval_eval.data.rows import known_format

if TYPE_CHECKING:
    from arena.data.dataset import Dataset

_STAGES = "|".join(("synth", "agents", *(stage.name or stage.key for stage in STAGES)))
_YAML: Final = (".yaml", ".yml")
_AGENTS_IN_GAME: Final = 2
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="CONFIG|ANSWERS...", help="YAML file of a tournament, or files of answers together with --judge"
    ),
]
JudgeNamed = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="PROVIDER/MODEL",
        help="judge of the answers, if you name files of answers: such as openai/gpt-4.1-mini or lexical",
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="use only the first N queries")]
ColumnsNamed = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="if you name files of answers: read their column COLUMN as NAME, as in answer=text",
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="if you name files of answers: save the configuration that the run assumes as this YAML file",
    ),
]


def run(
    sources: Sources,
    judge: JudgeNamed = None,
    limit: Limit = None,
    column: ColumnsNamed = None,
    save: Save = None,
    stage: Annotated[
        list[str] | None, typer.Option("--stage", metavar=f"[{_STAGES}]", help="run only this stage; may be repeated")
    ] = None,
    retry_failed: RetryFailed = False,
    ask: Annotated[
        list[str] | None,
        typer.Option(metavar="AGENT", help="ask this agent every query anew; may be repeated"),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="wait until the batches of judges with 'mode: batch' are finished")
    ] = True,
    log_json: LogJson = None,
    executor: Annotated[
        Literal["local", "ray"] | None,
        typer.Option(
            "--executor", help="where judges run: in this process, or on Ray; default: the configuration's executor"
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", metavar="HOST:PORT", help="address of a Ray cluster; 'auto' finds the cluster of this machine"
        ),
    ] = None,
    details: Details = False,
    form: Form = "table",
) -> None:
    """Make the missing judgments and print the leaderboard.

    If the configuration has a section 'synth' or 'agents', queries are generated and the agents are asked for answers
    first. With files of answers instead of a configuration, every pair of agents is compared on every query.

    Ctrl-C waits for the calls in flight; batches continue on the provider's server. A second Ctrl-C stops at once. Run
    the command again to continue. Exit status 3: judgments are missing or failed; the output says which.
    """
    inputs = read_inputs(sources, judge, limit, column, save)
    loaded = _with_executor(inputs.config, executor, address)
    complete: list[bool] = []

    def print_next(part: RunPart) -> None:
        complete.append(part.complete)
        print_part(part)

    with traced_to(log_json) as trace:
        board = play(
            loaded,
            watching,
            print_next,
            stages=stage or (),
            retry_failed=retry_failed,
            ask=ask or (),
            wait=wait,
            trace=trace,
            data=inputs.data,
        )
    if board is not None:
        keep_boards(loaded.store, board)
        with open_tournament(loaded.store, loaded.name) as (store, _):
            print_leaderboard(store, board, form, source=inputs.source, details=details)
    if not all(complete):
        raise typer.Exit(INCOMPLETE)


def _with_executor(config: Config, executor: str | None, address: str | None) -> Config:
    kind = executor or config.executor.kind
    if address is not None and kind != "ray":
        raise InputError("--address: is only for --executor ray; add --executor ray, or leave --address out")
    if kind == "local":
        return config.model_copy(update={"executor": ExecutorSection()})
    executor_fields = {"kind": kind} if address is None else {"kind": kind, "address": address}
    return config.model_copy(update={"executor": config.executor.model_copy(update=executor_fields)})


class TournamentInput(Struct, frozen=True):
    """The tournament that the arguments of a command name.

    Attributes:
        config: the tournament's configuration.
        data: the dataset read from files of answers; ``None`` if the command names a YAML file.
        source: the YAML file or the store, as the first argument of further commands on this tournament.
    """

    config: Config
    data: Dataset | None
    source: str


def read_inputs(
    sources: Sequence[str],
    judge: str | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    save: Path | None = None,
) -> TournamentInput:
    """Read the tournament that a command names; for files of answers, print the assumed settings on standard error."""
    if not are_answers(sources, judge):
        given = {"--judge": judge, "--column": columns, "--save": save}
        if misplaced := [option for option, value in given.items() if value]:
            raise InputError(
                f"{', '.join(misplaced)}: is only for files of answers; "
                f"leave it out, as {sources[0]} is a configuration"
            )
        config = load_config(Path(sources[0]))
        return TournamentInput(config if limit is None else config.limited(limit), None, sources[0])
    if judge is None:
        raise InputError(f"{sources[0]}: these answers need a judge; name one, such as --judge openai/gpt-4.1-mini")
    return _assumed(sources, judge, limit, columns or (), save)


def are_answers(sources: Sequence[str], judge: str | None = None) -> bool:
    """Whether the sources are tables of answers and not a YAML file."""
    for source in sources:
        if not source:
            raise InputError("the name of a file is empty; name a YAML file of a tournament, or files of answers")
        if Path(source).is_dir():
            raise InputError(
                f"{source}: is a folder; name the YAML file in it, or files of answers: '{source}/*.jsonl'"
            )
        if len(sources) > 1 and source.endswith(_YAML):
            raise InputError(
                f"{source}: a YAML file must be the only file; name it alone, or name only files of answers"
            )
    if sources[0].endswith(_YAML):
        return False
    return len(sources) > 1 or judge is not None or known_format(sources[0]) is not None


def _assumed(
    sources: Sequence[str], judge: str, limit: int | None, columns: Sequence[str], save: Path | None
) -> TournamentInput:
    judge_fields = judge_named(judge)
    column_map = column_names(columns)
    if save is not None:
        if save.suffix not in _YAML:
            raise InputError(f"--save {save}: the name of the file must end in .yaml")
        if save.exists():
            raise InputError(f"{save}: exists already; name another file with --save")
        require_writable(save)
    data = load_dataset(answers=sources, columns=column_map, limit=limit)
    folder = None if save is None else save.resolve().parent
    content = assumed_content(sources, data.agents, judge, columns=column_map, limit=limit, folder=folder)
    if len(data.agents) < _AGENTS_IN_GAME:  # nothing can be judged; the caller reports that
        return TournamentInput(assumed(content), data, STORE)
    if save is None:
        config = assumed(content)
    else:
        with open_replacing(save) as raw:
            raw.write(assumed_yaml(content).encode())
        config = load_config(save)
    store = config.store if save is not None else STORE
    documents = f", {counted(len(data.documents), 'document')}" if data.documents else ""
    say(f"assumed: {counted(len(data.queries), 'query', 'queries')}{documents}; agents {listed(data.agents)}", errors)
    say(
        f"assumed: every pair meets on every query in both orders; judge {' '.join(judge_fields.values())}; "
        f"store {store}, tournament {config.name!r}",
        errors,
    )
    say(f"written to {save}" if save is not None else "--save FILE writes this as a YAML file to change", errors)
    return TournamentInput(config, data, str(save) if save is not None else STORE)


def plan(
    sources: Sources,
    judge: JudgeNamed = None,
    limit: Limit = None,
    column: ColumnsNamed = None,
    save: Save = None,
    form: Form = "table",
) -> None:
    """Count the calls, tokens and cost of a run; calls nothing.

    For a configuration that only generates queries, count the calls that generate them.
    """
    # Late: `run` needs none of this.
    from arena.boards.runs import PlanBoard
    from arena.run.plan import plan as make_plan
    from arena.run.plan import plan_queries

    if judge is None and limit is None and not are_answers(sources, judge):
        loaded = load_either(Path(sources[0]))
        if isinstance(loaded, SynthConfig):
            show(PlanBoard(plan_queries(loaded)), form)
            return
    inputs = read_inputs(sources, judge, limit, column, save)
    config = inputs.config
    checked = Preflight(config, inputs.data)
    if not checked.only_judges:
        checked.require()
    show(PlanBoard(make_plan(config, checked.opened, checked.stages)), form)
    checked.require()  # a missing key is reported below the cost of the run
