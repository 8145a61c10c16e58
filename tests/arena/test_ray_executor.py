"""The same run on Ray: two real nodes, one of which dies."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arena.config import Config
from judges.errors import InputError
from tests.conftest import CLI
from tests.support.llm_server import Call, LLMServer, Reply, hostile, steady_judge
from tests.support.ray_cluster import RayCluster, ray_cluster
from tests.support.tournaments import configured, outcomes, run, write_data

QUERIES = [f"q{number}" for number in range(12)]
ALL = len(QUERIES) * (4 + 6 + 3)
CONCURRENCY, WORKERS = 4, 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    import ray

    with ray_cluster() as cluster:
        yield cluster
        ray.shutdown()


def on_ray(folder: Path, cluster: RayCluster, url: str, workers: int = WORKERS, **judge: Any) -> Config:
    executor = {"kind": "ray", "address": cluster.address, "workers": workers}
    declared = {"api_key_env": "JUDGE_KEY", "concurrency": CONCURRENCY, **judge}
    return configured(folder, url, judge=declared, executor=executor)


def test_no_cluster_at_an_address_is_one_line(tmp_path: Path, cli: CLI) -> None:
    config = tmp_path / "t.yaml"
    write_data(tmp_path)
    config.write_text(
        "name: t\nstore: t.db\ndata: {queries: queries.csv, answers: answers.csv}\njudges: {j: {provider: lexical}}\n"
        "pairwise: {judges: [j]}\n"
    )
    ended = cli("run", config, "--address", "127.0.0.1:1")
    assert (ended.status, ended.err) == (2, "error: --address: only with --executor ray\n")
    ended = cli("run", config, "--executor", "ray", "--address", "nowhere")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "executor: no Ray cluster can be reached at nowhere" in ended.err


def test_what_the_nodes_lack_is_said_before_anything_is_sent(tmp_path: Path, cluster: RayCluster) -> None:
    write_data(tmp_path)
    with pytest.raises(InputError, match=r"^judges.judge, on a worker: .*ABSENT_KEY"):
        run(on_ray(tmp_path, cluster, "http://127.0.0.1:1/v1", workers=1, api_key_env="ABSENT_KEY"))
    gpus = {"kind": "ray", "address": cluster.address, "gpus": 1}
    with pytest.raises(InputError, match="the workers of judge 'judge' need 2 GPUs, the cluster has 0"):
        run(configured(tmp_path, judge={"provider": "transformers", "path": tmp_path}, executor=gpus))


def test_a_node_killed_in_the_middle_of_a_hostile_run_loses_nothing(tmp_path: Path, cluster: RayCluster) -> None:
    write_data(tmp_path, QUERIES)
    judge = hostile(steady_judge, 0.1)
    good: Counter[str] = Counter()

    def fatal_for_a_node(call: Call) -> Reply:
        reply = judge(call)
        if reply == steady_judge(call):
            good[call.sha256] += 1
            if good.total() == ALL // 2:
                threading.Thread(target=cluster.kill_second_node).start()
        return replace(reply, delay_s=0.1)

    with LLMServer(fatal_for_a_node) as server:
        config = on_ray(tmp_path, cluster, server.openai_url, timeout_s=2)
        assert run(config).complete
        keys = {call.headers["authorization"] for call in server.calls}
    assert len(cluster.nodes) == 1
    assert keys == {f"Bearer {cluster.key}"}, "each node's own"
    assert good.total() - len(good) <= CONCURRENCY, "what was in flight on the node that died"
    assert outcomes(config) == outcomes(judged_here(tmp_path / "here"))
    for log in cluster.folder.rglob("*"):
        assert log.is_socket() or log.is_dir() or cluster.key.encode() not in log.read_bytes(), log


def judged_here(folder: Path) -> Config:
    folder.mkdir()
    write_data(folder, QUERIES)
    with LLMServer() as server:
        config = configured(folder, server.openai_url)
        assert run(config).complete
    return config
