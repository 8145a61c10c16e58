"""A graded file in the workbench's form (001, Figure 4), small enough to count by hand, with fields nobody knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RATING = "QuestionSelfRatedUnanswerablePromptWithChoices"
EXTRACTION = "QuestionCompleteConciseUnanswerablePromptWithChoices"

RATINGS = {
    # Two queries, items a-d and e-f; passages and their ratings of each item.
    "skin": {
        "p1": {"a": 5, "b": 0, "c": 4, "d": 0},
        "p2": {"a": 4, "b": 3, "c": 0, "d": 0},
        "p3": dict.fromkeys("abcd", 0),
    },
    "rock": {"p4": {"e": 4, "f": 0}, "p5": {"e": 0, "f": 5}},
}
ORDERS = {("skin", "one"): ["p1", "p2"], ("skin", "two"): ["p3", "p2"], ("rock", "one"): ["p4", "p5"]}
JUDGED = {"p1": 2, "p2": 0, "p3": 1, "p4": 1}


def paragraph(query_id: str, passage_id: str) -> dict[str, Any]:
    ratings = RATINGS[query_id][passage_id]
    prompt = {"prompt_class": RATING, "prompt_style": "...", "context_first": False, "is_self_rated": True}
    rated = {
        "correctAnswered": [item for item, rating in ratings.items() if rating >= 4],
        "wrongAnswered": [item for item, rating in ratings.items() if rating < 4],
        "answers": [[item, str(rating)] for item, rating in ratings.items()],
        "llm": "google/flan-t5-large",
        "llm_options": {"prompt_template": "x", "seed": 1.50},
        "exam_ratio": 0.25,
        "prompt_info": prompt,
        "self_ratings": [{"question_id": item, "self_rating": rating} for item, rating in ratings.items()],
    }
    extracted = {
        **rated,
        "self_ratings": None,
        "answers": [[item, f"{passage_id} on {item}"] for item in ratings],
        "prompt_info": {"prompt_class": EXTRACTION},
    }
    judged = {"paragraphId": passage_id, "query": query_id, "relevance": JUDGED.get(passage_id), "titleQuery": query_id}
    return {
        "paragraph_id": passage_id,
        "text": f"Text of {passage_id}: épidermis",
        "paragraph": {"markup": [1, 2.0, None]},
        "paragraph_data": {
            "judgments": [judged] if passage_id in JUDGED else [],
            "rankings": [
                {
                    "method": agent,
                    "paragraphId": passage_id,
                    "queryId": query_id,
                    "rank": order.index(passage_id) + 1,
                    "score": 1,
                }
                for (query, agent), order in ORDERS.items()
                if query == query_id and passage_id in order
            ],
            "unknown": {"kept": True},
        },
        "exam_grades": [rated, extracted],
        "grades": [{"correctAnswered": True, "answer": "yes", "llm": "flan", "prompt_info": {"prompt_class": "Sun"}}],
    }


def write_graded(path: Path) -> Path:
    """Plain JSON lines, with number texts that Python would write in another way."""
    lines = [json.dumps([query_id, [paragraph(query_id, name) for name in own]]) for query_id, own in RATINGS.items()]
    text = "\n".join(lines).replace('"score": 1}', '"score": 17.5605280e0}').replace('"seed": 1.5', '"seed":1.50')
    path.write_text(text + "\n", encoding="utf-8")
    return path
