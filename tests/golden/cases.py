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
            *forms("matrix", f"leaderboard {BOARD} --matrix"),
            *both("queries", f"queries {BOARD}"),
            Case("queries-labels.txt", f"queries {BOARD} --labels --most 5"),
            Case("queries-agent.txt", f"queries {BOARD} --agent rag-dense --most 5"),
            *both("failures", f"failures {BOARD}"),
            *both("batches", f"batches {BOARD}"),
            *both("votes-none", f"votes {BOARD}"),
            *(
                Case("", f"export {what} {BOARD} {what}.csv", {f"{what}.csv": f"export-{what}.csv"})
                for what in ("verdicts", "labels", "query-labels", "criteria")
            ),
            Case("qrels-export.txt", f"export qrels {BOARD} labels.qrels", {"labels.qrels": "labels.qrels"}),
            *forms("rate", "rate verdicts.csv --samples 100 --set tournaments=50"),
            *both(
                "rate-sandwich",
                "rate verdicts.csv --set intervals=sandwich --set tournaments=50 --set ties=rao-kupper "
                "--set position=true",
            ),
            Case("store-copy.json", f"store copy {BOARD} moved.db --format json"),
            *both("store-check", f"store check {BOARD}"),
            Case("imported.txt", "import verdicts verdicts.csv --store recorded.db --tournament recorded"),
            Case("imported-leaderboard.csv", "leaderboard recorded.db --format csv"),
        ],
        prepare=write_demo,
    ),
    World(
        "whole",
        [
            Case("plan.txt", "plan whole.yaml"),
            Case("", "run whole.yaml"),
            Case("run-again.txt", "run whole.yaml"),
            *forms("leaderboard", "leaderboard whole.yaml"),
            Case("leaderboard-details.txt", "leaderboard whole.yaml --details"),
            *both("queries", "queries whole.yaml --by kind"),
            Case("queries-agent.txt", "queries whole.yaml --agent rag-dense"),
            Case("queries-labels.txt", "queries whole.yaml --labels"),
            Case("votes-import.json", "import votes people.csv --store whole.yaml --format json"),
            Case("votes-import.txt", "import votes graded.csv --store whole.yaml"),
            *both("votes-list", "votes whole.yaml"),
            Case(
                "votes-export.json",
                "export votes whole.yaml votes.csv --kind verdict --format json",
                {"votes.csv": "votes.csv"},
            ),
            *forms("calibrate", "calibrate whole.yaml --method-samples 20 --samples 50"),
            Case(
                "calibrate-disagreements.txt",
                "calibrate whole.yaml --disagreements 5 --method-samples 0 --samples 50",
            ),
            Case(
                "calibrate-estimates.json",
                "calibrate whole.yaml --estimates --next 3 --method-samples 0 --samples 50 --format json",
            ),
            Case("exam-grade.txt", "make grades whole.yaml --out graded.csv --secret"),
            Case("exam-grade-2.txt", "exam score graded.csv --bank bank.csv"),
            Case(
                "nuggets-assign.json",
                "make assignments whole.yaml --out assignments.jsonl --format json",
                {"assignments.jsonl": "assignments.jsonl"},
            ),
            Case("nuggets-score.txt", "nuggets score assignments.jsonl"),
            Case("doctor.txt", "doctor whole.yaml"),
            Case("doctor.json", "doctor whole.yaml --format json"),
            Case("report.txt", "report whole.yaml --out report.html"),
        ],
        prepare=write_whole,
    ),
    World(
        "sample",
        [
            *forms("leaderboard", "leaderboard sample.db --below-coverage"),
            Case("queries.txt", "queries sample.db"),
            *both("failures", "failures sample.db"),
            Case("calibrate.txt", "calibrate sample.db --method-samples 20 --samples 50"),
            *both("calibrate-estimates", "calibrate sample.db --estimates --width 0.3 --method-samples 0 --samples 50"),
            *both("votes-list", "votes sample.db"),
            Case("votes-export.txt", "export votes sample.db votes.csv --kind verdict", {"votes.csv": "votes.csv"}),
            Case("", "export labels sample.db labels.csv", {"labels.csv": "labels.csv"}),
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
            Case("", "export labels quality.yaml labels.csv", {"labels.csv": "labels.csv"}),
            Case("", "export query-labels quality.yaml query-labels.csv", {"query-labels.csv": "query-labels.csv"}),
            Case("", "export data quality.yaml data", {"data/documents.csv": "documents.csv"}),
        ],
        "quality",
    ),
    World(
        "exam",
        [
            *both("bank-show", "bank show bank.csv"),
            *both("bank-show-secret", "bank show bank.csv --secret"),
            *both("bank-diff", "bank diff bank2.csv bank3.csv --grades grades.csv --run systems.run"),
            Case("bank-convert.txt", "convert bank bank.csv bank.jsonl", {"bank.jsonl": "bank.jsonl"}),
            *both("grade", "make grades tournament.yaml --out graded.jsonl.gz"),
            Case("", "make grades tournament.yaml --out graded.csv", {"graded.csv": "graded.csv"}),
            *both("grade-documents", "make grades retrieved.yaml --secret --out retrieved.csv"),
            *both("score", f"exam score {GRADES} --run systems.run --out scores.csv"),
            Case(
                "",
                f"exam score {GRADES} --run systems.run --compat workbench --out scores.csv",
                {"scores.csv": "scores.csv"},
            ),
            Case("qrels.txt", f"exam labels {GRADES} --out exam.qrels", {"exam.qrels": "exam.qrels"}),
            *forms("agreement", f"exam agreement {GRADES} --qrels human.qrels", "latex"),
            *both("agreement-with", "exam compare grades.csv grades.csv --bank bank2.csv"),
            *both("oversight-summary", f"exam summary {GRADES} --qrels human.qrels --run systems.run"),
            *both("oversight-answers", f"exam answers {GRADES}"),
            *both("oversight-uncovered", f"exam uncovered {GRADES} --qrels human.qrels"),
            *both("oversight-spurious", f"exam spurious {GRADES} --qrels human.qrels"),
            *both("oversight-influence", f"exam influence {GRADES} --run systems.run"),
            *both("oversight-grid", f"exam grid {GRADES} --query skin"),
            Case(
                "",
                f"exam influence {GRADES} --run systems.run --out influence.csv",
                {"influence.csv": "influence.csv"},
            ),
            Case(
                "export.txt",
                "convert workbench graded.jsonl.gz exported.jsonl.gz --bank bank.csv",
                {"exported.jsonl.gz": "exported.jsonl"},
            ),
            Case("import.txt", "convert tables exported.jsonl.gz imported"),
            Case("leaderboard.txt", "leaderboard tournament.yaml"),
        ],
        "exam",
    ),
    World(
        "nuggets",
        [
            Case(
                "edit.json",
                "nuggets edit bank.jsonl edited.jsonl --out nuggets.jsonl --editor ann --format json",
                {"nuggets.jsonl": "nuggets.jsonl"},
            ),
            Case("edit.txt", "nuggets edit bank.jsonl edited.jsonl --out nuggets.jsonl --editor ann --force"),
            Case("run.txt", "run cats.yaml"),
            *both("plan", "plan cats.yaml"),
            Case("assign.txt", "make assignments cats.yaml --nuggets nuggets.jsonl --answers answers.csv"),
            Case("assigned-score.txt", "nuggets score assignments.jsonl"),
            *forms("score", "nuggets score automatic.jsonl", "jsonl"),
            *forms(
                "score-citing",
                "nuggets score automatic.jsonl --answers runs.jsonl --qrels labels.qrels",
            ),
            *both("correlate", "nuggets correlate automatic.jsonl manual.jsonl --score v --samples 100"),
            Case("leaderboard.txt", "leaderboard cats.yaml"),
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
            *forms("agreement", "agreement llm.qrels --people human.qrels"),
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
            *forms("pool", "pool --run bm25.run --run dense.run --depth 2"),
            *forms("pool-judged", "pool --run bm25.run --run dense.run --depth 2 --qrels human.qrels --skip-faulty"),
            Case(
                "pool-out.txt",
                "pool --run bm25.run --run dense.run --depth 2 --out pairs.tsv",
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
            Case(
                "qdrant.txt",
                f"import verdicts {DATA}/ragelo_qdrant/pairwise_verdicts.csv --store qdrant.db --tournament q",
            ),
            Case("qdrant-apart.md", "gate qdrant.db --new agent_5 --old agent_1 --format md"),
            Case("qdrant-close.md", "gate qdrant.db --new agent_4 --old agent_5 --format md"),
            Case("llmfao.txt", f"import verdicts {DATA}/llmfao/gpt4_verdicts.csv --store llmfao.db --tournament l"),
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
                f"agreement {DATA}/llmjudge24/llm_qrels/llama3-8b-baseline0123.qrels "
                f"--people {DATA}/llmjudge24/human.qrels",
            ),
            *forms("nuggets", f"nuggets score {DATA}/trec_rag24_nuggets/nugget_assignment.jsonl.gz"),
        ],
        recorded=True,
    ),
)
"""Each is a test of its own, so that they can run side by side."""
