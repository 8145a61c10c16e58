"""What judges like besides quality: effects that were put in are found, and those that cannot be told are not told."""

from __future__ import annotations

import numpy as np
import pytest

from arena.calibration import Opinion
from arena.calibration.comparison import regrouped
from arena.calibration.style import QUALITIES, StyleEffect, answer_qualities, family_effects, style_effects
from arena.ratings.games import GameVerdict, tabulate
from judges.types import Verdict

AGENTS = ("gpt-rag", "claude-rag", "qwen-rag", "lexical")
FAMILIES = {"gpt-rag": "openai", "claude-rag": "anthropic", "qwen-rag": "qwen"}
STRENGTH = dict(zip(AGENTS, (0.6, 0.3, 0.0, -0.6), strict=True))


def verdicts(
    judge: str, liking: float = 0.0, family: str = "", length: float = 0.0, seed: int = 0
) -> tuple[list[Opinion], dict[tuple[str, str], str]]:
    """Verdicts of a judge that likes a family, or long answers, by so much log-odds; and the answers."""
    rng, words = np.random.default_rng(seed), np.random.default_rng(99)
    texts = {
        (f"q{query}", agent): "word " * int(np.exp(words.normal(4, 0.7))) for query in range(60) for agent in AGENTS
    }
    spread = np.log([len(text.split()) for text in texts.values()]).std()
    said = []
    for query in range(60):
        for i, a in enumerate(AGENTS):
            for b in AGENTS[i + 1 :]:
                gap = STRENGTH[a] - STRENGTH[b] + liking * ((FAMILIES.get(a) == family) - (FAMILIES.get(b) == family))
                logs = [np.log(len(texts[f"q{query}", agent].split())) for agent in (a, b)]
                gap += length * (logs[0] - logs[1]) / spread
                won = rng.random() < 1 / (1 + np.exp(-gap))
                first, second = sorted((a, b))
                said.append(Opinion(f"q{query}", (first, second), judge, 1.0 if won == (first == a) else -1.0))
    return said, texts


def effects_of(said: list[Opinion], texts: dict[tuple[str, str], str]) -> dict[str, StyleEffect]:
    won = {1.0: Verdict.A, -1.0: Verdict.B}
    table = tabulate(GameVerdict(one.query_id, *one.item, won[one.value], one.rater) for one in said)
    return {one.name: one for one in style_effects("j", table, answer_qualities(texts))}


def test_a_judge_that_likes_length_is_found_out_and_one_that_does_not_is_not() -> None:
    for length, likes in ((0.8, True), (0.0, False)):
        said, texts = verdicts("j", length=length)
        effect = effects_of(said, texts)["log_words"]
        assert (effect.points.low > 0) == likes
        assert effect.points.low <= length * 400 / np.log(10) <= (effect.points.high or 0)


def test_a_judge_that_favours_its_family_is_found_out_by_the_others() -> None:
    kind, _ = verdicts("gpt", liking=1.0, family="openai", seed=1)
    fair, _ = verdicts("claude", seed=2)
    people, _ = verdicts("ann", seed=3)
    found = family_effects([*kind, *fair, *people], {"gpt": "openai", "claude": "anthropic"}, FAMILIES)
    effects = {one.judge: one.points for one in found}
    assert (effects["gpt"].low or 0) > 0
    assert effects["gpt"].low <= 400 / np.log(10) <= (effects["gpt"].high or 0)
    assert (effects["claude"].low or 0) < 0 < (effects["claude"].high or 0)


def test_effects_of_turns_that_repeat_each_other_are_no_surer_than_of_one() -> None:
    said = [*verdicts("gpt", liking=1.0, family="openai", seed=1)[0], *verdicts("claude", seed=2)[0]]
    again = [one._replace(query_id=f"{one.query_id}-{turn}") for one in said for turn in range(4)]
    clusters = {one.query_id: one.query_id.split("-")[0] for one in again}
    once, turns, whole = (
        family_effects(own, {"gpt": "openai"}, FAMILIES)[0].points for own in (said, again, regrouped(again, clusters))
    )
    assert (whole.low, whole.high) == pytest.approx((once.low, once.high), rel=1e-3)
    assert turns.low > (once.low or 0)


def test_a_single_judge_cannot_show_that_it_favours_its_family() -> None:
    kind, _ = verdicts("gpt", liking=1.0, family="openai")
    (effect,) = family_effects(kind, {"gpt": "openai"}, FAMILIES)
    assert effect.points.value is None
    assert "cannot be separated from the agents' strengths" in effect.why_not


def test_an_agent_of_no_other_family_leaves_nothing_to_tell() -> None:
    said, _ = verdicts("j")
    (effect,) = family_effects(said, {"j": "mistral"}, FAMILIES)
    assert (effect.points.value, effect.games, effect.why_not) == (None, 0, "no game of mistral against another")


def test_a_quality_in_which_no_or_few_queries_differ_has_no_effect_to_tell() -> None:
    said, texts = verdicts("j")
    assert effects_of(said, texts)["citations"].why_not == "the same in both answers of every game"
    cited = {
        key: f"{text} [1] [2]" if key[1] == "gpt-rag" and int(key[0][1:]) < 4 else text for key, text in texts.items()
    }
    effect = effects_of(said, cited)["citations"]
    assert effect.points.value is None
    assert effect.why_not == "games differ in it on 4 queries only; it takes 10"


@pytest.mark.parametrize(
    ("quality", "text", "count"),
    [
        ("list_items", "Intro\n- one\n2. two\n  * three\nnot - this", 3),
        ("citations", "As shown [1] and [2, 3], not [x].", 2),
        ("confident_words", "It is certainly, clearly and without a doubt so. Uncertainly not.", 3),
    ],
)
def test_qualities_are_counted(quality: str, text: str, count: int) -> None:
    assert QUALITIES[quality](text) == count
