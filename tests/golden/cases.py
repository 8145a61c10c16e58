"""The table of cases: every command that writes JSON, CSV or tables, on small tournaments and on recorded judgments.

A golden file's ending says whether programs rely on it (``.json``, ``.csv``) or people read it (``.txt``, ``.md``).
"""

from __future__ import annotations

from tests.golden.check import Case, World
from tests.golden.worlds import write_demo, write_sample, write_whole

DATA = "$SHARED/data"
MTBENCH = (
    f"{DATA}/mtbench_human/gpt4_verdicts.csv --people {DATA}/mtbench_human/human_votes.csv --item turn --samples 50"
)
CROWD = (
    f"{DATA}/crowdrag25/llm_verdicts.csv.gz --column judge=mode --people {DATA}/crowdrag25/human_votes.csv.gz "
    "--by dimension --skip-faulty --samples 50"
)
BOARD = "tournament.yaml"
GRADES = "grades.csv --bank bank2.csv"


def both(name: str, command: str) -> tuple[Case, Case]:
    """As text and as JSON."""
    return Case(f"{name}.txt", command), Case(f"{name}.json", f"{command} --format json")


def forms(name: str, command: str, *more: str) -> list[Case]:
    """In each ``--format``: text, JSON, CSV and any further."""
    endings = {"table": "txt", "latex": "tex"}
    return [
        Case(f"{name}.{endings.get(form, form)}", f"{command} --format {form}")
        for form in ("table", "json", "csv", *more)
    ]


WORLDS = (
    World(
        "demo",
        [
            *both("plan", f"plan {BOARD}"),
            Case("run.txt", f"run {BOARD} --log-json calls.jsonl"),
            *forms("leaderboard", f"leaderboard {BOARD}", "md", "html"),
            Case("leaderboard-details.txt", f"leaderboard {BOARD} --details"),
            Case("leaderboard-details.md", f"leaderboard {BOARD} --details --format md"),
            *forms("matrix", f"leaderboard {BOARD} --matrix", "md", "html"),
            *both("queries", f"queries {BOARD}"),
            Case("queries-labels.txt", f"queries {BOARD} --labels --most 5"),
            Case("queries-agent.txt", f"queries {BOARD} --agent rag-dense --most 5"),
            *both("failures", f"failures {BOARD}"),
            *both("batches", f"failures {BOARD} --batches"),
            *both("votes-none", f"export {BOARD} --what votes"),
            *(
                Case("", f"export {BOARD} {what}.csv --what {what}", {f"{what}.csv": f"export-{what}.csv"})
                for what in ("verdicts", "labels", "query-labels", "criteria")
            ),
            Case("qrels-export.txt", f"export {BOARD} labels.qrels --what qrels", {"labels.qrels": "labels.qrels"}),
            *forms("rate", "rate verdicts.csv --samples 100 --set tournaments=50"),
            *both(
                "rate-sandwich",
                "rate verdicts.csv --set intervals=sandwich --set tournaments=50 --set ties=rao-kupper "
                "--set position=true",
            ),
            Case("store-copy.json", f"store copy {BOARD} moved.db --format json"),
            *both("store-check", f"store check {BOARD}"),
            Case("imported.txt", "import verdicts.csv --store recorded.db --name recorded"),
            Case("imported-leaderboard.json", "leaderboard recorded.db --format json"),
        ],
        prepare=write_demo,
    ),
    World(
        "whole",
        [
            *both("plan", "plan whole.yaml"),
            Case("", "run whole.yaml"),
            Case("run-again.txt", "run whole.yaml"),
            *forms("leaderboard", "leaderboard whole.yaml", "md", "html"),
            Case("leaderboard-details.txt", "leaderboard whole.yaml --details"),
            *both("queries", "queries whole.yaml --by kind"),
            Case("queries-agent.txt", "queries whole.yaml --agent rag-dense"),
            Case("queries-labels.txt", "queries whole.yaml --labels"),
            Case("votes-import.json", "import people.csv --store whole.yaml --kind verdict --format json"),
            Case("votes-import.txt", "import graded.csv --store whole.yaml --kind criteria"),
            *both("votes-list", "export whole.yaml --what votes"),
            Case(
                "votes-export.json",
                "export whole.yaml votes.csv --what votes --kind verdict --format json",
                {"votes.csv": "votes.csv"},
            ),
            *forms("calibrate", "calibrate whole.yaml --method-samples 20 --samples 50"),
            Case(
                "calibrate-disagreements.txt",
                "calibrate whole.yaml --disagreements 5 --method-samples 0 --samples 50",
            ),
            *both("calibrate-estimates", "calibrate whole.yaml --estimates --next 3 --method-samples 0 --samples 50"),
            *both("exam-grade", "make grades whole.yaml --out graded.csv --secret"),
            Case("exam-grade-2.txt", "exam graded.csv --bank bank.csv"),
            Case(
                "nuggets-assign.json",
                "make assignments whole.yaml --out assignments.jsonl --format json",
                {"assignments.jsonl": "assignments.jsonl"},
            ),
            *forms("nuggets-score", "nuggets assignments.jsonl --samples 50"),
            Case("doctor.txt", "doctor whole.yaml"),
            Case("doctor.json", "doctor whole.yaml --format json"),
            Case("report.txt", "report whole.yaml --out report.html"),
        ],
        prepare=write_whole,
    ),
    World(
        "sample",
        [
            *forms("leaderboard", "leaderboard sample.db --below-coverage", "md", "html"),
            *both("queries", "queries sample.db"),
            *both("failures", "failures sample.db"),
            *forms("calibrate", "calibrate sample.db --method-samples 20 --samples 50"),
            *both("calibrate-estimates", "calibrate sample.db --estimates --width 0.3 --method-samples 0 --samples 50"),
            *both("votes-list", "export sample.db --what votes"),
            Case(
                "votes-export.txt", "export sample.db votes.csv --what votes --kind verdict", {"votes.csv": "votes.csv"}
            ),
            Case("", "export sample.db labels.csv --what labels", {"labels.csv": "labels.csv"}),
        ],
        prepare=write_sample,
    ),
    World(
        "shop",
        [
            Case("plan-synth.json", "plan shop.yaml --format json"),
            Case("synth-stage.json", "run shop.yaml --stage synth --format json"),
            *both("plan", "plan shop.yaml"),
            Case("agents-run.json", "make answers shop.yaml --out answers --format json"),
            Case("", "run shop.yaml"),
            *both("failures", "failures shop.yaml"),
        ],
        "shop",
    ),
    World(
        "synth",
        [
            *both("plan", "plan synth.yaml"),
            *both("synth", "make queries synth.yaml"),
            Case("", "make queries synth.yaml", {"queries.csv": "queries.csv", "review.csv": "review.csv"}),
            *both("documents", "documents sensors.md mounting.txt --out corpus.jsonl"),
            Case(
                "",
                "documents sensors.md --by sentences --size 3 --overlap 1 --out windows.csv",
                {"windows.csv": "windows.csv", "corpus.jsonl": "corpus.jsonl"},
            ),
        ],
        "synth",
    ),
    World(
        "quality",
        [
            Case("run.json", "run quality.yaml --format json"),
            Case("leaderboard.txt", "leaderboard quality.yaml"),
            *both("queries-labels", "queries quality.yaml --labels"),
            Case("", "export quality.yaml labels.csv --what labels", {"labels.csv": "labels.csv"}),
            Case(
                "", "export quality.yaml query-labels.csv --what query-labels", {"query-labels.csv": "query-labels.csv"}
            ),
            Case("", "export quality.yaml data --what data", {"data/documents.csv": "documents.csv"}),
        ],
        "quality",
    ),
    World(
        "exam",
        [
            *both("bank-show", "bank bank.csv"),
            *both("bank-show-secret", "bank bank.csv --secret"),
            *both("bank-diff", "bank bank2.csv bank3.csv --grades grades.csv --run systems.run"),
            Case("bank-convert.txt", "convert bank.csv bank.jsonl", {"bank.jsonl": "bank.jsonl"}),
            *both("grade", "make grades tournament.yaml --out graded.jsonl.gz"),
            Case("", "make grades tournament.yaml --out graded.csv", {"graded.csv": "graded.csv"}),
            *both("grade-documents", "make grades retrieved.yaml --secret --out retrieved.csv"),
            *both("score", f"exam {GRADES} --run systems.run --out scores.csv"),
            Case(
                "",
                f"exam {GRADES} --run systems.run --compat workbench --out scores.csv",
                {"scores.csv": "scores.csv"},
            ),
            Case("qrels.txt", f"exam {GRADES} --show labels --out exam.qrels", {"exam.qrels": "exam.qrels"}),
            *forms("agreement", f"exam {GRADES} --show agreement --qrels human.qrels", "latex"),
            *forms("agreement-with", f"exam {GRADES} --show agreement --with grades.csv", "latex"),
            *(
                case
                for show in ("summary", "answers", "uncovered", "spurious", "influence")
                for case in both(
                    f"oversight-{show}", f"exam {GRADES} --qrels human.qrels --run systems.run --show {show}"
                )
            ),
            *both("oversight-grid", f"exam {GRADES} --show grid --query skin"),
            Case(
                "",
                f"exam {GRADES} --qrels human.qrels --run systems.run --show influence --out influence.csv",
                {"influence.csv": "influence.csv"},
            ),
            Case(
                "export.txt",
                "convert graded.jsonl.gz exported.jsonl.gz --bank bank.csv",
                {"exported.jsonl.gz": "exported.jsonl"},
            ),
            Case("import.txt", "convert exported.jsonl.gz imported"),
            *forms("leaderboard", "leaderboard tournament.yaml"),
        ],
        "exam",
    ),
    World(
        "nuggets",
        [
            Case(
                "edit.json",
                "bank bank.jsonl edited.jsonl --out nuggets.jsonl --editor ann --format json",
                {"nuggets.jsonl": "nuggets.jsonl"},
            ),
            Case("edit.txt", "bank bank.jsonl edited.jsonl --out nuggets.jsonl --editor ann --force"),
            Case("run.txt", "run cats.yaml"),
            *both("plan", "plan cats.yaml"),
            Case("assign.txt", "make assignments cats.yaml --nuggets nuggets.jsonl --answers answers.csv"),
            *forms("assigned-score", "nuggets assignments.jsonl"),
            *forms("score", "nuggets automatic.jsonl --samples 100", "jsonl"),
            *forms(
                "score-citing",
                "nuggets automatic.jsonl --answers runs.jsonl --qrels labels.qrels --samples 100",
            ),
            *both("correlate", "nuggets automatic.jsonl --with manual.jsonl --score v --samples 100"),
            *forms("leaderboard", "leaderboard cats.yaml"),
        ],
        "nuggets",
    ),
    World(
        "metrics",
        [
            *forms("metrics", "metrics --qrels human.qrels --run bm25.run dense.run --samples 100"),
            *forms(
                "metrics-several",
                "metrics --qrels human.qrels llm.qrels --run bm25.run dense.run --measure nDCG@3 'RR(rel=2)@5' "
                "--skip-faulty --per-query --baseline bm25 --samples 100",
            ),
            *forms("agreement", "calibrate llm.qrels --people human.qrels --samples 100"),
            Case(
                "retrieved.tsv",
                "retrieve --corpus corpus.csv --queries queries.csv --retriever bm25 --out made.run",
                {"made.run": "made-run.txt"},
            ),
            Case(
                "",
                "retrieve --corpus corpus.csv --queries queries.csv --retriever hybrid --embeddings hashed "
                "--out hybrid.run",
                {"hybrid.run": "hybrid-run.txt"},
            ),
        ],
        "metrics",
    ),
    World(
        "pool",
        [
            *forms("pool", "metrics --run bm25.run --run dense.run --pool 2"),
            *forms("pool-judged", "metrics --run bm25.run --run dense.run --pool 2 --qrels human.qrels --skip-faulty"),
            Case(
                "pool-out.txt",
                "metrics --run bm25.run --run dense.run --pool 2 --out pairs.tsv",
                {"pairs.tsv": "pairs.tsv"},
            ),
        ],
        "trec",
    ),
    World(
        "rate",
        [
            *forms("matrix", "rate matrix.csv --queries 200 --set ties=half --samples 100"),
            *forms("soft", "rate sure.csv --set preferences=soft --samples 100"),
            *forms("lengths", "rate lengths.csv --covariate log:words --samples 100"),
            *forms("elo", "rate lengths.csv --method elo --cluster none --samples 100"),
            *forms(
                "judges",
                "rate judges.csv --by judge --set position=true --covariate log:words --cluster topic --samples 50",
            ),
        ],
        "rate",
    ),
    World(
        "calibration",
        [
            *forms("judge", "calibrate judge.csv --people people.csv --samples 100"),
            *forms("disagreements", "calibrate judge.csv --people people.csv --disagreements 2 --samples 100"),
            *both("consensus", "calibrate judge.csv --people people.csv --consensus dawid-skene --samples 100"),
        ],
        "calibration",
    ),
    World(
        "recorded-rate",
        [
            *forms("qdrant", f"rate {DATA}/ragelo_qdrant/pairwise_verdicts.csv --samples 100"),
        ],
        recorded=True,
    ),
    World(
        "recorded-gate",
        [
            Case("qdrant.txt", f"import {DATA}/ragelo_qdrant/pairwise_verdicts.csv --store qdrant.db --tournament q"),
            Case("qdrant-apart.md", "gate qdrant.db --new agent_5 --old agent_1 --format md"),
            Case("qdrant-close.md", "gate qdrant.db --new agent_4 --old agent_5 --format md"),
            Case("llmfao.txt", f"import {DATA}/llmfao/gpt4_verdicts.csv --store llmfao.db --tournament l"),
            Case("llmfao-gpt4.md", "gate llmfao.db --new 'GPT 4' --old 'Airoboros L2 70B' --format md"),
            Case("llmfao-unmet.md", "gate llmfao.db --new 'GPT 4' --old 'GPT 3.5 Turbo' --format md"),
        ],
        recorded=True,
    ),
    World(
        "recorded-calibrate",
        [
            Case("mtbench.txt", f"calibrate {MTBENCH}"),
            Case("mtbench.csv", f"calibrate {MTBENCH} --format csv"),
            *both("mtbench-votes", f"calibrate {MTBENCH} --against votes --as-games"),
            *both("mtbench-estimates", f"calibrate {MTBENCH} --estimates --width 0.2"),
            Case("crowd.json", f"calibrate {CROWD} --format json"),
        ],
        recorded=True,
    ),
    World(
        "recorded-measures",
        [
            *forms(
                "cranfield",
                f"metrics --qrels {DATA}/cranfield/qrels.txt --run {DATA}/cranfield/runs/bm25.run --samples 50",
            ),
            *forms(
                "labels",
                f"calibrate {DATA}/llmjudge24/llm_qrels/llama3-8b-baseline0123.qrels "
                f"--people {DATA}/llmjudge24/human.qrels --samples 20",
            ),
            *forms("nuggets", f"nuggets {DATA}/trec_rag24_nuggets/nugget_assignment.jsonl.gz --samples 20"),
        ],
        recorded=True,
    ),
)
"""Each is a test of its own, so that they can run side by side."""
