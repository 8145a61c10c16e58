"""The configuration file: what is understood, and how it says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.config.schema import Config, load_config
from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.data.kinds import CRITERIA, FormRow
from arena.demo import copy_demo
from arena.run.judging import stored_settings
from arena.stages.together import TournamentStages
from judges.errors import ConfigError
from judges.prompts.tasks import ANCHORED_CRITERIA, Criterion

MINIMAL = """
name: docs
store: docs.db
data: {queries: queries.csv}
"""
FULL = """
name: product docs
store: stores/docs.db
data:
  queries: queries.csv
  documents: [one.csv, more/two.jsonl]
  answers: /elsewhere/answers.parquet
judges:
  strong: {provider: openai, model: gpt-x, temperature: 0, concurrency: 64, max_cost_usd: 20}
  second: {provider: anthropic, model: claude-x}
  kept: {provider: replay, path: recorded.jsonl}
retrieval: {judge: strong, prompt: prompts/mine.yaml, depth: 20}
pairwise:
  judges: [strong, second, kept]
  schedule: {kind: random, games_per_query: 15, seed: 7}
  documents: {threshold: 1, annotations: false}
  factors: only the tone
criteria: {judge: second, scale: [1, 5], names: [tone, depth]}
ratings: {elo: {k: 16}, bradley_terry: {ties: half}, bootstrap: {by: game, samples: 10}, seed: 7}
"""


def put(folder: Path, text: str | bytes) -> Path:
    path = folder / "tournament.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def test_every_stage_is_optional_but_data(tmp_path: Path) -> None:
    config = load_config(put(tmp_path, MINIMAL))
    assert (config.retrieval, config.pairwise, config.criteria, config.judges_in_use()) == (None, None, None, [])


def test_a_tournament_is_stored_and_read_back_in_the_sections_of_its_file(tmp_path: Path) -> None:
    config = load_config(put(tmp_path, FULL.replace("prompts/mine.yaml", "reasoner")))
    stored = stored_settings(TournamentStages(config, Dataset({})))
    text = json.dumps(stored.raw)
    read = StoredSettings.model_validate_json(text)
    assert read == stored
    assert read.raw == json.loads(text)
    assert (read.ratings, read.card) == (config.ratings, None)
    for key in ("pairwise", "criteria"):
        declared, section = getattr(config, key), getattr(read, key)
        assert section == declared.model_copy(
            update={"prompt": f"{declared.prompt}@{section.prompt.partition('@')[2]}"}
        )
    assert [judge.model for judge in read.judges.values()] == ["gpt-x", "claude-x", ""]
    assert str(tmp_path) not in text
    assert "concurrency" not in text


def test_criteria_may_say_what_each_grade_means(tmp_path: Path) -> None:
    criteria = "criteria: {judge: second, scale: [0, 1], names: {tone: {levels: {1: friendly, 0: rude}}, depth: deep}}"
    own = load_config(
        put(tmp_path, FULL.replace(FULL[FULL.index("criteria:") : FULL.index("ratings:")], f"{criteria}\n"))
    )
    assert own.criteria is not None
    assert own.criteria.listed() == [Criterion("tone", "", ((0, "rude"), (1, "friendly"))), Criterion("depth", "deep")]
    kept = own.criteria.model_dump(mode="json")
    form = CRITERIA.form
    assert form is not None
    assert form.rows is not None
    rows = form.rows(StoredSettings.model_validate({"criteria": kept}))
    assert rows == {"tone": FormRow("tone", {0: "rude", 1: "friendly"}), "depth": FormRow("depth: deep")}
    packaged = load_config(put(tmp_path, FULL.replace("scale: [1, 5], names: [tone, depth]", "names: anchored")))
    assert packaged.criteria is not None
    assert tuple(packaged.criteria.listed()) == ANCHORED_CRITERIA


def test_paths_start_at_the_files_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, FULL)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    config = load_config(Path("../tournament.yaml"))
    assert config.data.queries == [tmp_path / "queries.csv"]
    assert config.data.documents == [tmp_path / "one.csv", tmp_path / "more/two.jsonl"]
    assert config.data.answers == [Path("/elsewhere/answers.parquet")]
    assert config.store == str(tmp_path / "stores/docs.db")
    assert config.retrieval is not None
    assert config.retrieval.prompt == str(tmp_path / "prompts/mine.yaml")
    assert config.judges["kept"].path == tmp_path / "recorded.jsonl"


def test_names_of_packaged_prompts_and_store_addresses_stay(tmp_path: Path) -> None:
    text = MINIMAL.replace("docs.db", "postgresql://server/docs") + "judges: {j: {provider: lexical}}\n"
    config = load_config(put(tmp_path, f"{text}pairwise: {{judges: j}}\n"))
    assert config.store == "postgresql://server/docs"
    assert config.pairwise is not None
    assert (config.pairwise.prompt, config.pairwise.judges) == ("pairwise", ["j"])


def test_judges_in_use_come_in_the_order_of_the_stages(tmp_path: Path) -> None:
    assert load_config(put(tmp_path, FULL)).judges_in_use() == ["strong", "second", "kept"]
    spare = FULL.replace("retrieval:", "  spare: {provider: lexical}\nretrieval:")
    assert "spare" not in load_config(put(tmp_path, spare)).judges_in_use()


def test_settings_may_be_shared_by_anchor(tmp_path: Path) -> None:
    """YAML's merge keys, with a key of the merged mapping given anew."""
    judges = "{one: &base {provider: openai, model: a, seed: 1}, two: {<<: *base, model: b}}"
    config = load_config(put(tmp_path, f"{MINIMAL}judges: {judges}\n"))
    assert (config.judges["two"].model, config.judges["two"].seed) == ("b", 1)


def test_the_demos_configuration_is_one(tmp_path: Path) -> None:
    assert load_config(copy_demo(tmp_path)).judges_in_use() == ["lexical"]


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    assert "no such file; check its name and folder" in refused(tmp_path / "gone.yaml")
    assert "cannot be read: Is a directory" in refused(tmp_path)


def test_how_many_more_mistakes_there_are_is_said(tmp_path: Path) -> None:
    wrong = FULL.replace("depth: 20", "depth: 0").replace("k: 16", "k: 0")
    assert "(and 1 more)" in refused(put(tmp_path, wrong))


def test_a_configuration_cannot_be_changed(tmp_path: Path) -> None:
    config: Config = load_config(put(tmp_path, MINIMAL))
    with pytest.raises(ValueError, match="frozen"):
        config.name = "other"  # type: ignore[misc]


VERSIONED = (
    MINIMAL
    + """
judges: {j: {provider: lexical, version: "JUDGE"}}
agents:
  new: {kind: baseline, ask: answer, generator: j, version: "AGENT"}
"""
)


def versioned(folder: Path, agent: str, judge: str = "") -> Path:
    return put(folder, VERSIONED.replace("AGENT", agent).replace("JUDGE", judge))


@pytest.mark.parametrize(
    "name", ["GIT_SHA", "GITHUB_SHA", "GITHUB_REF_NAME", "CI_COMMIT_SHA", "BUILD_ID", "INDEX_VERSION", "TAG"]
)
def test_a_version_takes_a_variable_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, " 1f0c \n")
    found = load_config(versioned(tmp_path, f"build ${{{name}}}, $5", f"${{{name}}}"))
    assert found.agents["new"].version == "build 1f0c, $5"
    assert found.agents["new"].stored()["version"] == "build 1f0c, $5"
    assert found.judges["j"].stored()["version"] == "1f0c"
    outside = {"kind": "python", "function": "m:f", "version": f"${{{name}}}"}
    assert type(found.agents["new"]).model_validate(outside).version == f"${{{name}}}", "only in a YAML file"


@pytest.mark.parametrize(
    ("version", "value", "says"),
    [
        ("${GIT_SHA}", None, "the variable GIT_SHA is not set; set it, or write the version itself"),
        ("${GIT_SHA}", " ", "the variable GIT_SHA is not set"),
        ("${HOME}", "/root", "${HOME} is not filled in: only names that end in SHA, "),
        ("${DATABASE_URL}", "postgresql://me:planted@host/db", "${DATABASE_URL} is not filled in"),
        ("${OPENAI_API_KEY}", "planted", "${OPENAI_API_KEY} may be a secret"),
        ("${API_KEY_VERSION}", "planted", "${API_KEY_VERSION} may be a secret"),
        ("${GITHUB_TOKEN}", "planted", "${GITHUB_TOKEN} may be a secret"),
        ("${AWS_ACCESS_KEY_ID}", "planted", "${AWS_ACCESS_KEY_ID} may be a secret"),
        ("${DB_PASSWORD_DATE}", "planted", "${DB_PASSWORD_DATE} may be a secret"),
        ("${GIT_SHA}", "sk-planted-0123456789abcdefghijklmnop", "the variable GIT_SHA holds no version"),
        ("${GIT_SHA}", "https://me:planted@host/repository", "the variable GIT_SHA holds no version"),
        ("${GIT_SHA}", "x" * 201, "the variable GIT_SHA holds no version: give one of at most 200 characters"),
        ("${GIT_SHA}", "${HOME}", "the variable GIT_SHA holds no version"),
        ("$GIT_SHA", "1f0c", "write a variable of the environment as ${GIT_SHA}, not $GIT_SHA"),
        ("${GIT_SHA:-none}", "1f0c", "write a variable of the environment as ${GIT_SHA}, not ${GIT_SHA:-none}"),
        ("${{ github.sha }}", "1f0c", "write a variable of the environment as ${GIT_SHA}, not ${{ github.sha }"),
        ("${GIT_SHA", "1f0c", "write a variable of the environment as ${GIT_SHA}, not ${GIT_SHA"),
    ],
)
def test_a_version_takes_no_secret_and_nothing_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, value: str | None, says: str
) -> None:
    monkeypatch.delenv("GIT_SHA", raising=False)
    if value is not None:
        for name in {"GIT_SHA", version.strip("${ }")}:
            monkeypatch.setenv(name, value)
    for versions, place in (((version, ""), ":8: agents.new.version"), (("", version), ":6: judges.j.version")):
        path = versioned(tmp_path, *versions)
        message = refused(path)
        assert message.startswith(f"{path}{place}: {says}")
        assert "planted" not in message
