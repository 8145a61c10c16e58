"""The same run on Ray: two real nodes, one of which dies; and a worker's mailbox without Ray."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from arena.config.schema import Config
from arena.run.answers import run_agents
from arena.run.ray_worker import Worker
from judges.errors import InputError, JudgeStoppedError, ProviderError, TransientError
from judges.spec import JudgeSpec
from judges.types import Completion
from tests.conftest import CLI
from tests.support.children import begin, ended
from tests.support.llm_server import Call, LLMServer, Reply, hostile, steady_judge
from tests.support.prompts import relevance
from tests.support.ray_cluster import RayCluster, ray_cluster
from tests.support.tournaments import Quiet, configured, outcomes, run, write_data

QUERIES = [f"q{number}" for number in range(12)]
ALL = len(QUERIES) * (4 + 6 + 3)
CONCURRENCY, WORKERS = 4, 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as cluster:
        yield cluster
        import ray

        ray.shutdown()


def on_ray(folder: Path, cluster: RayCluster, url: str, workers: int = WORKERS, **judge: Any) -> Config:
    executor = {"kind": "ray", "address": cluster.address, "workers": workers}
    declared = {"api_key_env": "JUDGE_KEY", "concurrency": CONCURRENCY, **judge}
    return configured(folder, url, judge=declared, executor=executor)


def written(folder: Path, **sections: Any) -> Path:
    write_data(folder)
    content = {
        "name": "t",
        "store": "t.db",
        "data": {"queries": "queries.csv", "answers": "answers.csv"},
        "judges": {"judge": {"provider": "openai", "model": "m", "api_key_env": "SAID"}},
        "pairwise": {"judges": ["judge"], "documents": {"include": False}},
    }
    path = folder / "t.yaml"
    path.write_text(json.dumps(content | sections))  # which is YAML too
    return path


def test_no_cluster_at_an_address_is_one_line(tmp_path: Path, cli: CLI) -> None:
    config = written(tmp_path)
    ended = cli("run", config, "--address", "127.0.0.1:1")
    assert (ended.status, ended.err) == (
        2,
        "error: --address: is only for --executor ray; add --executor ray, or leave --address out\n",
    )
    ended = cli("run", config, "--executor", "ray", "--address", "nowhere")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "executor: no Ray cluster can be reached at nowhere" in ended.err


@pytest.mark.parametrize("listens", [False, True])
def test_an_address_that_nobody_answers_is_one_line_in_time(
    tmp_path: Path, cli: CLI, monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    monkeypatch.setattr("arena.run.ray_workers.ANSWER_S", 1.0)
    config = written(tmp_path)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", "never-asked:1")
        ended = cli("run", config, "--executor", "ray", "--address", address)
        said = f"error: executor: no Ray cluster can be reached at {address} (executor.address): no server answered"
        assert (ended.status, ended.err) == (2, f"{said} within 1 s; start it, or fix the address\n")
        monkeypatch.setenv("RAY_ADDRESS", address)
        ended = cli("run", config, "--executor", "ray")
        assert (ended.status, ended.err.count("\n")) == (2, 1)
        assert f"{address} (RAY_ADDRESS)" in ended.err


class OtherServer:
    """Speaks HTTP/2 as Ray does, and says nothing after its greeting."""

    def __enter__(self) -> str:
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def _serve(self) -> None:
        connections = []
        with suppress(OSError):
            while True:
                connections.append(self._listening.accept()[0])
                connections[-1].sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))

    def __exit__(self, *error: object) -> None:
        self._listening.close()


def test_another_server_at_an_address_is_one_line_in_time(
    tmp_path: Path, cli: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.run.ray_workers.ANSWER_S", 3.0)
    config = written(tmp_path)
    with OtherServer() as address:
        ended = cli("run", config, "--executor", "ray", "--address", address)
    said = (
        f"error: executor: no Ray cluster can be reached at {address} (executor.address): the server there is not Ray"
    )
    assert (ended.status, ended.err) == (2, f"{said}, or was not ready within 3 s; start it, or fix the address\n")


def test_ctrl_c_ends_a_run_that_asks_whether_a_cluster_is_there(tmp_path: Path) -> None:
    config = written(tmp_path)
    with OtherServer() as address:
        started = begin("run", config, "--executor", "ray", "--address", address, folder=tmp_path)
        while not psutil.Process(started.pid).children():  # one asks
            assert started.poll() is None, started.communicate()
            time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        run = ended(started)
    assert (run.status, run.err) == (130, "stopped; what was judged is kept, run again to go on\n")


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1", "127.0.0.1:http", "[::1", ""])
def test_what_is_no_address_is_one_line(tmp_path: Path, cli: CLI, address: str) -> None:
    executor = {"kind": "ray", "address": address}
    ended = cli("run", written(tmp_path, executor=executor))
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert f"no Ray cluster can be reached at {address} (executor.address): name HOST:PORT" in ended.err


def test_why_workers_do_not_start_is_said(tmp_path: Path, cluster: RayCluster) -> None:
    write_data(tmp_path)
    executor = {"kind": "ray", "address": cluster.address, "runtime_env": {"conda": "absent"}}
    with pytest.raises(InputError, match=r"the workers of judge 'judge' do not start: .*[Cc]onda") as caught:
        run(configured(tmp_path, executor=executor))
    assert "\n" not in str(caught.value)
    import ray

    ray.shutdown()


def test_of_a_failed_installation_the_installers_own_words_are_said() -> None:
    from ray.exceptions import RuntimeEnvSetupError

    from arena.run.ray_workers import cause_line

    told = (
        "Could not create the actor because its associated runtime env failed to be created.\n"
        'Traceback (most recent call last):\n  File "pip.py", line 252, in _install_pip_packages\n'
        "ray._private.runtime_env.utils.SubprocessCalledProcessError: Run cmd[3] failed with the following details.\n"
        "Last 50 lines of stdout:\n"
        "    ERROR: Could not find a version that satisfies the requirement absent (from versions: none)\n"
        "    ERROR: No matching distribution found for absent\n"
        "    Hint: look elsewhere.\n"
    )
    assert cause_line(RuntimeEnvSetupError(told)) == "ERROR: No matching distribution found for absent"


@pytest.mark.skipif(find_spec("grpc") is not None, reason="Ray's client is installed")
def test_a_client_that_is_not_installed_and_an_address_for_jobs_are_one_line(tmp_path: Path, cli: CLI) -> None:
    config = written(tmp_path)
    for address, told in {"ray://head:10001": "install 'ray[client]'", "http://head:8265": "'ray job submit'"}.items():
        ended = cli("run", config, "--executor", "ray", "--address", address)
        assert (ended.status, ended.err.count("\n")) == (2, 1)
        assert address in ended.err
        assert told in ended.err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"env_vars": {"OPENAI_API_KEY": "planted"}}, "OPENAI_API_KEY looks like a key"),
        ({"env_vars": {"HF_TOKEN": "planted"}}, "HF_TOKEN looks like a key"),
        ({"env_vars": {"X": "sk-planted-0123456789"}}, "env_vars.X looks like a key"),
        ({"env_vars": {"HTTPS_PROXY": "http://me:planted@proxy:3128"}}, "env_vars.HTTPS_PROXY looks like a key"),
        ({"config": {"hub": [{"login": "hf_planted0123456789ab"}]}}, "config.hub.0.login looks like a key"),
        ({"working_dir": "https://host/x.zip?token=planted"}, "working_dir looks like a key"),
        ({"env_vars": {"SAID": "planted"}}, "SAID is the key of judge 'judge'"),
        ({"env_vars": {"HF_HOME": 3}}, "put numbers in quotes"),
        ({"pip": ["--extra-index-url https://me:planted@host/simple", "x"]}, "pip.0 looks like a key"),
        ({"pips": ["x"]}, "unknown key 'pips'; did you mean 'pip'?"),
    ],
)
def test_a_runtime_env_with_a_key_is_refused_and_the_key_not_shown(
    tmp_path: Path, cli: CLI, given: dict[str, Any], told: str
) -> None:
    config = written(tmp_path, executor={"kind": "ray", "address": "127.0.0.1:1", "runtime_env": given})
    ended = cli("run", config)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert told in ended.err
    assert "planted" not in ended.err


def test_ray_address_is_heeded_and_workers_get_the_runtime_env(
    tmp_path: Path, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_data(tmp_path)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    executor = {"kind": "ray", "workers": 1, "runtime_env": {"env_vars": {"MODELS": "/models"}}}
    with caplog.at_level("INFO", "ragleague.progress"):
        assert run(configured(tmp_path, executor=executor)).complete
    assert f"executor: the Ray cluster at {cluster.address} (RAY_ADDRESS)" in caplog.messages
    import ray

    assert ray.get(ray.remote(lambda: os.environ["MODELS"]).remote(), timeout=60) == "/models"
    ray.shutdown()


def test_what_the_nodes_lack_is_said_before_anything_is_sent(
    tmp_path: Path, cluster: RayCluster, caplog: pytest.LogCaptureFixture
) -> None:
    write_data(tmp_path)
    with pytest.raises(InputError, match=r"^judges.judge, on a worker: .*ABSENT_KEY"):
        run(on_ray(tmp_path, cluster, "http://127.0.0.1:1/v1", workers=1, api_key_env="ABSENT_KEY"))
    gpus = {"kind": "ray", "address": cluster.address, "gpus": 1, "wait_s": 0.6}
    lacking = "the workers of judge 'judge' need 2 GPUs, the cluster has 0"
    with caplog.at_level("INFO", "ragleague.progress"), pytest.raises(InputError, match=f"{lacking}$"):
        run(configured(tmp_path, judge={"provider": "transformers", "path": tmp_path}, executor=gpus))
    assert f"executor: {lacking}; waiting up to 0.6 s for more (executor.wait_s)" in caplog.messages


def test_models_that_answer_for_agents_are_asked_by_the_workers(tmp_path: Path, cluster: RayCluster) -> None:
    write_data(tmp_path, QUERIES)
    with LLMServer(steady_judge) as server:
        config = configured(
            tmp_path,
            server.openai_url,
            judge={"api_key_env": "JUDGE_KEY"},
            executor={"kind": "ray", "address": cluster.address, "workers": WORKERS},
            agents={"plain": {"kind": "baseline", "ask": "answer", "generator": "judge"}},
        )
        asked = run_agents(config, Quiet()).agents["plain"]
    assert (asked.answered, asked.left) == (len(QUERIES), 0)
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {cluster.key}"}, "which only they have"


def test_a_function_that_cannot_be_read_whole_is_the_same_judge_on_all_workers(
    tmp_path: Path, cluster: RayCluster, cli: CLI
) -> None:
    (tmp_path / "judge.py").write_text(
        "import sqlite3\nCLIENT = sqlite3.connect(':memory:', check_same_thread=False)\n"
        "def judge(prompt): return CLIENT and 'A'\n"
    )
    judges = {"judge": {"provider": "python", "function": "judge.py:judge"}}
    config = written(tmp_path, judges=judges, executor={"kind": "ray", "address": cluster.address, "workers": WORKERS})
    for _ in range(2):  # of this process
        ended = cli("run", config)
        assert ended.status == 0, ended.err
        assert "judge judge: global 'CLIENT' (sqlite3.Connection) cannot be read" in " ".join(ended.err.split())
    assert "0 judged, 12 needed no call" in ended.err


def test_a_worker_killed_in_the_middle_costs_no_attempt(tmp_path: Path, cluster: RayCluster) -> None:
    write_data(tmp_path, QUERIES)
    killed: list[float] = []

    def fatal_for_a_worker(call: Call) -> Reply:
        """Ends the one that asks, before it is answered; nothing is answered meanwhile."""
        if not killed and len(server.calls) >= ALL // 2:
            killed.append(call.at)
            cluster.kill_worker(call.port)
        return replace(steady_judge(call), delay_s=0.2)

    with LLMServer(fatal_for_a_worker) as server:
        summary = run(on_ray(tmp_path, cluster, server.openai_url, max_attempts=1))
    assert (summary.complete, summary.stopped) == (True, [])
    assert ALL < len(server.calls) <= ALL + CONCURRENCY, "what was in flight there"


def test_a_node_killed_in_the_middle_of_a_hostile_run_loses_nothing(
    tmp_path: Path, cluster: RayCluster, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    write_data(tmp_path, QUERIES)
    judge = hostile(steady_judge, 0.1)
    good: Counter[str] = Counter()

    def fatal_for_a_node(call: Call) -> Reply:
        reply = judge(call)
        if reply == steady_judge(call):
            good[call.sha256] += 1
            if good.total() == ALL // 2:
                cluster.kill_second_node()  # nothing is answered meanwhile
        return replace(reply, delay_s=0.1)

    with LLMServer(fatal_for_a_node) as server:
        config = on_ray(tmp_path, cluster, server.openai_url, timeout_s=4)
        with caplog.at_level("INFO", "ragleague.progress"):
            ended = run(config)
        assert ended.complete
        keys = {call.headers["authorization"] for call in server.calls}
    assert len(cluster.nodes) == 1
    (lost,) = [line for line in caplog.messages if "died" in line]
    assert re.fullmatch(r"executor: a worker of judge 'judge' died on node 127.0.0.3; its \d judgments .*", lost)
    assert capfd.readouterr() == ("", ""), "nothing of Ray's own words"
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


async def test_a_question_that_was_given_up_takes_no_later_reply() -> None:
    worker = Worker(JudgeSpec(provider="lexical"))
    given_up = asyncio.create_task(worker.replies(1))
    await asyncio.sleep(0)
    asked = asyncio.create_task(worker.replies(2))
    await asyncio.sleep(0)
    await worker.take([(7, relevance())])
    assert await given_up == []
    [(number, reply)] = await asked
    assert number == 7
    assert isinstance(reply, Completion)


async def test_each_reply_comes_when_it_is_there_and_an_error_is_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "none")
    script = [Reply("late", delay_s=0.3), Reply(status=401, text="no such key")]
    with LLMServer(script) as server:
        spec = JudgeSpec(provider="openai", model="m", base_url=server.openai_url, api_key_env="JUDGE_KEY")
        worker = Worker(spec)
        await worker.take([(1, relevance())])
        await asyncio.sleep(0.1)
        await worker.take([(2, relevance())])
        first, second = await worker.replies(1), await worker.replies(2)
        assert worker.provider is not None
        await worker.provider.close()
    assert [type(reply) for _, reply in [*first, *second]] == [JudgeStoppedError, Completion]


async def test_a_worker_without_its_key_says_so_and_stops_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    worker = Worker(JudgeSpec(provider="openai", model="m", api_key_env="JUDGE_KEY"))
    assert "JUDGE_KEY" in ((await worker.opened()).problem or "")
    await worker.take([(1, relevance())])
    [(_, reply)] = await worker.replies(1)
    assert isinstance(reply, JudgeStoppedError)
    assert "JUDGE_KEY" in str(reply)


@pytest.mark.parametrize("kind", [TransientError, JudgeStoppedError])
def test_an_error_of_a_provider_travels_whole(kind: type[ProviderError]) -> None:
    error = kind("rate_limit", "slow down", retry_after_s=3.0)
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is kind
    assert (str(arrived), vars(arrived)) == (str(error), vars(error))
