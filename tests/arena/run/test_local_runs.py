"""A run whose judge is a model in its own process."""

from __future__ import annotations

import csv
import signal
import time
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from arena.store import Store
from judges.types import Judgment, Task
from tests.conftest import CLI
from tests.support.children import begin
from tests.support.tiny_models import save_random_chat_model
from tests.support.tournaments import configured, write_data

LABELS = 8
STUCK_AFTER_TWO = """
import time
from judges.providers.transformers import _Scorer
real, passes = _Scorer.batch, []
def batch(self, prompts):
    time.sleep(600 if len(passes) == 2 else 0)
    passes.append(prompts)
    return real(self, prompts)
_Scorer.batch = batch
"""


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """Labels by a model that takes longer for all of them than ``timeout_s``."""
    model = save_random_chat_model(tmp_path / "model", width=64, layers=1, context=8192)
    write_data(tmp_path, ["q1", "q2"])
    declared = {"provider": "transformers", "path": model, "labels": "likeliest", "device": "cpu", "max_tokens": 32}
    judge = {**declared, "concurrency": 256, "batch_size": 2, "timeout_s": 0.01, "max_attempts": 3}
    config = configured(tmp_path, judge=judge, pairwise=None, criteria=None)
    path = tmp_path / "local.yaml"
    path.write_text(config.model_dump_json(exclude_defaults=True), encoding="utf-8")
    return path


def kept(folder: Path) -> int:
    store = Store.open(str(folder / "store.db"))
    known = store.outcomes("small", Task.RELEVANCE) if "small" in store.tournaments() else []
    store.close()
    return sum(isinstance(result, Judgment) for _, result in known)


def test_each_batch_is_kept_when_it_ends_and_no_deadline_throws_one_away(
    config_file: Path, tmp_path: Path, cli: CLI
) -> None:
    """The run is killed without a word while two of its four batches are done and the third is under way."""
    Store.create(str(tmp_path / "store.db")).close()
    child = begin("run", config_file, folder=tmp_path, before=STUCK_AFTER_TWO)
    end = time.monotonic() + 90
    while kept(tmp_path) < 4 and time.monotonic() < end and child.poll() is None:
        time.sleep(0.3)
    child.send_signal(signal.SIGKILL)
    _, said = child.communicate()
    assert kept(tmp_path) == 4
    assert "loading model model on cpu ... (timeout_s is ignored: a call to a model" in said

    again = cli("run", config_file)
    assert again.status == 0
    assert "relevance: 4 judged, 4 needed no call, 0 failed, 0 left of 8; 4 calls" in again.err
    assert "judge 'judge': timeout_s is ignored" in cli("plan", config_file).out

    assert cli("export", "labels", config_file, tmp_path / "labels.csv").status == 0
    with (tmp_path / "labels.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shares = [{name: float(row[name]) for name in row if name.startswith("p_")} for row in rows]
    assert len(shares) == LABELS
    assert all(sum(each.values()) == pytest.approx(1, abs=1e-5) for each in shares)
    assert [f"p_{row['label']}" for row in rows] == [max(each, key=each.__getitem__) for each in shares]


def test_a_device_that_fails_in_large_batches_and_on_one_text_costs_that_texts_judgments(
    tmp_path: Path, cli: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    real = transformers.LlamaForCausalLM.forward

    @wraps(real)
    def sick(self: Any, input_ids: Any = None, *arguments: Any, **options: Any) -> Any:
        if len(input_ids) > 5:
            raise RuntimeError("cuDNN Frontend error: mha_graph.execute(...).is_good()")
        if (input_ids == tilde).any():
            raise RuntimeError("device-side assert triggered")
        return real(self, input_ids, *arguments, **options)

    model = save_random_chat_model(tmp_path / "model", width=64, layers=1, context=8192)
    write_data(tmp_path, ["q1", "q2"])
    with (tmp_path / "documents.csv").open("a", encoding="utf-8") as file:
        file.write("q1,odd,A text with a ~ in it.,x\n")
    declared = {"provider": "transformers", "path": model, "labels": "likeliest", "device": "cpu", "max_tokens": 32}
    config = configured(tmp_path, judge={**declared, "concurrency": 16}, pairwise=None, criteria=None)
    path = tmp_path / "local.yaml"
    path.write_text(config.model_dump_json(exclude_defaults=True), encoding="utf-8")
    tilde = transformers.AutoTokenizer.from_pretrained(model)("~")["input_ids"][0]
    with monkeypatch.context() as patch:
        patch.setattr(transformers.LlamaForCausalLM, "forward", sick)
        done = cli("run", path)
    said = done.err
    assert done.status == 3, said
    assert kept(tmp_path) == LABELS, said
    assert f"relevance: {LABELS} judged, 0 needed no call, 1 failed, 0 left of {LABELS + 1}" in said
    assert "Traceback" not in said
    failures = cli("failures", path, "--format", "json").out
    assert "device-side assert triggered" in failures
    assert cli("run", path).status == 0, "asked again by the next run, where the device is well"
