"""Options of the commands that read grades by a test bank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

GradesFile = Annotated[
    Path, typer.Argument(metavar="GRADES", help="the workbench's graded jsonl.gz, or a table qid, did, item, grade")
]
Runs = Annotated[
    list[Path] | None, typer.Option("--run", help="passages in order, as a run of trec_eval; may be repeated")
]
Llm = Annotated[str | None, typer.Option("--llm", help="the grader's model, where there are several graders")]
PromptName = Annotated[str | None, typer.Option("--prompt", help="the grader's prompt, likewise")]
MinGrade = Annotated[
    int | None, typer.Option("--min-grade", min=1, help="grade that counts as covered; 4, or 1 of 0/1")
]
K = Annotated[int, typer.Option("--k", min=1, help="passages of a response that count")]
