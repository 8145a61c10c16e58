"""People who grade and vote read the documents that the judges' prompts showed, and no others."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.people import tasks
from arena.results.outcomes import labels_of
from arena.stages.base import RelevanceLabels
from arena.stages.criteria import CriteriaStage
from arena.stages.pairwise import PairwiseStage
from arena.store import Store
from judges.types import Task
from tests.support.tournaments import configured, run, write_data

OWN = {"judge": "judge", "names": {"faithful": {"needs": ["documents"]}}}
NONE = {"judge": "judge", "documents": {"include": False}}
LABELLED = {"judge": "judge", "documents": {"threshold": 1}}


@pytest.mark.parametrize("retrieval", [None, {"judge": "judge"}, {"judge": "judge", "depth": 1}])
@pytest.mark.parametrize("criteria", [OWN, NONE, LABELLED])
def test_people_read_the_documents_of_the_judges_prompts(
    tmp_path: Path, retrieval: dict[str, Any] | None, criteria: dict[str, Any]
) -> None:
    write_data(tmp_path)
    config = configured(tmp_path, retrieval=retrieval, criteria=criteria)
    run(config)
    assert config.criteria is not None
    assert config.pairwise is not None
    with closing(Store.open(config.store)) as store:
        data, settings, known = store.dataset("small"), store.settings("small"), labels_of(store, "small")
        labels = RelevanceLabels(config, data)
        labels.results = dict(known)
        asked = {
            Task.CRITERIA: (CriteriaStage(config.criteria, config, data, labels), tasks.answers(data.answers, data)),
            Task.PAIRWISE: (
                PairwiseStage(config.pairwise, config, data, labels),
                tasks.games(
                    {
                        (want.query_id, *sorted((want.item, want.other)))
                        for want, _ in store.wanted("small", Task.PAIRWISE)
                    },
                    data,
                ),
            ),
        }
        shown = 0
        for task, (stage, pool) in asked.items():
            wants = {
                (want.query_id, frozenset({want.item, want.other} - {""})): want
                for want, _ in store.wanted("small", task)
            }
            for each in pool.queue("ann"):
                prompt = stage.prompt(wants[each.query_id, frozenset({*each.names, *each.parts} - {""})])
                assert prompt is not None
                seen = tasks.documents_seen(each, data, known, settings)
                assert seen == [entry.document for entry in prompt.inputs.documents]
                shown += len(seen)
    assert shown, "the games show documents in every case"
