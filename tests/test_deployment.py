"""The image and the compose file: what they name exists; built and started where there is an engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from arena.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)


def copied() -> list[str]:
    lines = [shlex.split(line) for line in instructions("COPY") if not line.startswith("--from")]
    return [source for line in lines for source in line[:-1]]


def test_what_the_image_copies_exists_and_is_all_that_the_engine_is_sent() -> None:
    assert all((ROOT / source).exists() for source in copied())
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignore[1] == "*"
    assert {line[1:] for line in ignore if line.startswith("!")} == set(copied())


def test_every_requirement_of_the_image_has_a_hash_and_sign_in_and_postgresql_are_among_them() -> None:
    assert DOCKERFILE.count("--require-hashes") == 2
    lines = (ROOT / "requirements" / "server.txt").read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    assert all("--hash=sha256:" in line for line in lines if line and not line.startswith("#"))
    assert {"authlib", "psycopg-binary", "streamlit"} <= {line.partition("==")[0] for line in lines}


def test_the_image_runs_as_nobody_special_and_its_command_is_one_of_ours() -> None:
    assert instructions("USER")[-1] == "10001"
    command = yaml.safe_load(instructions("CMD")[-1])
    said = CliRunner().invoke(app, command)
    assert "tournament.yaml" in str(said.exception or said.output), "options are known; there is no such file here"
    assert "No such option" not in said.output


def test_the_compose_file_keeps_the_store_and_has_the_password_from_a_file(tmp_path: Path) -> None:
    services = COMPOSE["services"]
    assert services["pages"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["postgres"]["volumes"] == ["store:/var/lib/postgresql/data"]
    assert "store" in COMPOSE["volumes"]
    assert all(port.startswith("127.0.0.1:") for port in services["pages"]["ports"])
    assert all(service["secrets"] == ["store-password"] for service in services.values())
    assert COMPOSE["secrets"]["store-password"] == {"file": "./secrets/store-password"}
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD_FILE"] == "/run/secrets/store-password"
    assert "PASSWORD" not in json.dumps(services).replace("POSTGRES_PASSWORD_FILE", "").replace("PGPASSWORD=$$(cat", "")

    password, command = tmp_path / "store-password", tmp_path / "ragleague"
    password.write_text("it's $secret\n")
    command.write_text('#!/bin/sh\nprintf "%s|" "$PGPASSWORD" "$@"\n')
    command.chmod(0o755)
    entrypoint = [
        word.replace("$$", "$").replace("/run/secrets/store-password", str(password))
        for word in services["pages"]["entrypoint"]
    ]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run([*entrypoint, "run", "a b.yaml"], env=path, capture_output=True, text=True, check=True)
    assert said.stdout == "it's $secret|run|a b.yaml|"
    assert services["pages"]["command"] == yaml.safe_load(instructions("CMD")[-1])


def test_images_are_named_by_digest() -> None:
    """A tag may come to name another image; a digest cannot."""
    images = [line.split()[0] for line in instructions("FROM")]
    images += [service["image"] for service in COMPOSE["services"].values() if "image" in service]
    assert len(images) == 3
    assert all(re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image) for image in images)


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_container_may_do_and_take_no_more_than_it_needs(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert not service.get("user", "10001").startswith(("0", "root"))


SECRET = (
    "secrets/store-password",
    ".env",
    ".env.local",
    "team/secrets.toml",
    ".streamlit/secrets.toml",
    "store.sql.gz",
)


def test_no_secret_that_the_documentation_has_people_write_is_committed(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "team-server.md").read_text(encoding="utf-8")
    assert all(Path(name).name in page for name in ("secrets/store-password", "team/secrets.toml", "store.sql.gz"))
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    shutil.copy(ROOT / ".gitignore", tmp_path)
    asked = ["git", "-C", tmp_path, "check-ignore", "--no-index", *SECRET]
    ignored = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert ignored.stdout.split() == list(SECRET)


@pytest.fixture(scope="module")
def engine() -> str:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        pytest.skip("no container engine answers: 'docker info' fails")
    return docker


def test_the_image_is_built_and_runs_the_command_line(engine: str) -> None:
    subprocess.run([engine, "build", "--quiet", "--tag", "ragleague-test", str(ROOT)], check=True)
    command = [engine, "run", "--rm", "--network", "none", "ragleague-test", "doctor", "--format", "json"]
    findings = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert {"extra login", "extra postgres"} <= {found["check"] for found in findings if found["ok"]}
