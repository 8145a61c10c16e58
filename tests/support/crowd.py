"""Recorded queries, documents and answers of CrowdRAG-25 as a tournament, and judges for them."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Collection
from pathlib import Path

from judges.prompts import fenced
from tests.support.llm_server import Call, Reply, Script
from tests.support.nugget_judge import labels, shown_nuggets, task_of, user_of

_LABELS = ("not_support", "partial_support", "support")


def write_crowd_data(data: Path, folder: Path, queries: int) -> None:
    """The first recorded queries with their documents and answers, as the three tables of a tournament."""
    asked = [line.split("\t") for line in (data / "queries.tsv").read_text(encoding="utf-8").splitlines()][:queries]
    chosen = {query_id for query_id, _ in asked}
    with gzip.open(data / "documents.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = {row["docid"]: row["text"] for row in map(json.loads, file)}
    with gzip.open(data / "answers.jsonl.gz", "rt", encoding="utf-8") as file:
        answers = [[row["qid"], row["agent"], row["answer"]] for row in map(json.loads, file) if row["qid"] in chosen]
    ranked = [line.split() for line in (data / "retrieved.run").read_text().splitlines()]
    documents = [[row[0], row[2], texts[row[2]], row[3]] for row in ranked if row[0] in chosen]
    tables = {
        "queries.csv": [["qid", "query"], *asked],
        "answers.csv": [["qid", "agent", "answer"], *answers],
        "documents.csv": [["qid", "did", "document", "rank"], *documents],
    }
    for name, rows in tables.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)


def stated(nugget: str, answer: str) -> str:
    """How far an answer states a nugget, by shared words."""
    words = nugget.casefold().split()
    return _LABELS[int(sum(word in answer.casefold() for word in words) / len(words) * 2)]


def crowd_judge(call: Call) -> Reply:
    """Makes a nugget of each document's first words, and says what the words of an answer support."""
    task, user = task_of(call), user_of(call)
    if task == "relevance":
        return Reply(json.dumps({"reason": "r", "label": "somewhat relevant"}))
    if task == "nuggets":
        documents = re.findall(r"<<<document \w+>>>\n(.*?)\n<<<end", user, re.DOTALL)
        new = [" ".join(text.split()[:6]) for text in documents]
        different = {re.sub(r"[\W_]", "", text).casefold(): text for text in [*shown_nuggets(call), *new]}
        return Reply(json.dumps({"nuggets": list(different.values())[:30]}))
    if task == "importance":
        return labels("vital" if len(text) % 2 else "okay" for text in shown_nuggets(call))
    answer = re.findall(r"<<<answer \w+>>>\n(.*?)\n<<<end", user, re.DOTALL)[0]
    return labels(stated(text, answer) for text in shown_nuggets(call))


def sloppy_crowd_judge(short_of: Collection[str]) -> Script:
    """The same judge, who spells lists in every way, and some only after being asked again.

    Args:
        short_of: answers for which it gives a label less than there are nuggets, however often it is asked.
    """

    def judge(call: Call) -> Reply:
        reply = crowd_judge(call)
        if task_of(call) not in {"importance", "assignment"}:
            return reply
        words = json.loads(reply.text or "")["labels"]
        if any(fenced(answer, "answer") in user_of(call) for answer in short_of):
            return labels(words[:-1])
        first = len(call.body["messages"]) == 2
        match int(call.sha256, 16) % 6:
            case 0:
                return Reply(json.dumps([word.upper() for word in words]))
            case 1:
                return Reply(f"```python\n{words}\n```")
            case 2:
                return labels(f" {word.title()} " for word in words)
            case 3 if first:
                return labels([*words[:-1], "somewhat"])
            case 4 if first:
                return labels([*words, words[-1]])
            case _:
                return reply

    return judge
