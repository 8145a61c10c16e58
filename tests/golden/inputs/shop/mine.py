from typing import Any


def answer(query: Any) -> dict[str, Any]:
    if "claim" in query.text:
        raise RuntimeError("the index has no such page")
    return {"answer": "Please ask our support, they will help you.", "cost_usd": 0.0004}
