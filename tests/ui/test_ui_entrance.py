"""Who can reach the pages: this machine, people who sign in, or everybody where somebody says so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from judges.errors import InputError
from ui.access import Role, load_access
from ui.sign_in import providers, server_access, sign_in_secrets

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "team-server.md").read_text(encoding="utf-8")
SECRET = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"


def block(heading: str) -> str:
    found = re.search(rf"^```{heading}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def auth() -> dict[str, Any]:
    return {**tomllib.loads(block("toml"))["auth"], "cookie_secret": SECRET, "client_secret": SECRET}


@pytest.fixture
def roles(tmp_path: Path) -> Path:
    (tmp_path / "roles.yaml").write_text(block("yaml roles.yaml"), encoding="utf-8")
    return tmp_path / "roles.yaml"


def secrets(home: Path, auth: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is made of such secrets in a home folder."""
    (home / ".streamlit").mkdir(exist_ok=True)
    lines = [f"{name} = {value!r}" for name, value in auth.items() if not isinstance(value, dict)]
    for name, section in auth.items():
        if isinstance(section, dict):
            lines += [f"[auth.{name}]", *(f"{key} = {value!r}" for key, value in section.items())]
    (home / ".streamlit" / "secrets.toml").write_text("\n".join(["[auth]", *lines]), encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return sign_in_secrets()


def test_the_files_of_the_page_open_the_address_that_browsers_call(auth: dict[str, Any], roles: Path) -> None:
    access = server_access(auth, address="0.0.0.0", roles=roles)
    assert access.url == "https://arena.example.com"
    assert "arena.example.com" in access.hosts
    assert "evil.example" not in access.hosts
    assert access.variables == {"RAGLEAGUE_UI_ROLES": str(roles), "RAGLEAGUE_UI_EVERYBODY": None}
    assert load_access(roles).default is Role.NONE


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_on_this_machine_everybody_edits(address: str) -> None:
    assert server_access(None, address=address).variables["RAGLEAGUE_UI_EVERYBODY"] == "editor"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7", "arena.example.com"])
def test_another_address_is_refused_until_a_role_for_everybody_is_said(address: str) -> None:
    with pytest.raises(InputError, match="can be reached from other machines"):
        server_access(None, address=address)
    access = server_access(None, address=address, everybody=Role.VIEWER)
    assert access.variables["RAGLEAGUE_UI_EVERYBODY"] == "viewer"


def test_what_does_not_fit_is_refused(auth: dict[str, Any], roles: Path) -> None:
    with pytest.raises(InputError, match="say with --roles FILE"):
        server_access(auth)
    with pytest.raises(InputError, match="--roles needs people to sign in"):
        server_access(None, roles=roles)
    with pytest.raises(InputError, match="--without-sign-in"):
        server_access(auth, roles=roles, everybody=Role.VIEWER)
    with pytest.raises(InputError, match=r"none\.yaml"):
        server_access(auth, roles=roles.with_name("none.yaml"))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("cookie_secret", "short", "cookie_secret"),
        ("cookie_secret", None, "needs cookie_secret"),
        ("client_secret", "", "needs client_secret"),
        ("redirect_uri", "https://arena.example.com/", "/oauth2callback"),
        ("redirect_uri", "http://arena.example.com/oauth2callback", "https://"),
    ],
)
def test_secrets_that_are_not_whole_are_said_without_a_secret(
    tmp_path: Path, auth: dict[str, Any], monkeypatch: pytest.MonkeyPatch, key: str, value: str | None, said: str
) -> None:
    changed = {name: own for name, own in {**auth, key: value}.items() if own is not None}
    with pytest.raises(InputError, match=r"^secrets\.toml: [^\n]*$") as refused:
        secrets(tmp_path, changed, monkeypatch)
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


def test_providers_are_the_named_ones_or_the_only_one(
    tmp_path: Path, auth: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert providers(auth) == [None]
    shared = {key: auth.pop(key) for key in ("redirect_uri", "cookie_secret")}
    two = {**shared, "google": auth, "okta": auth}
    assert providers(secrets(tmp_path, two, monkeypatch)) == ["google", "okta"]
    with pytest.raises(InputError, match=r"\[auth\.okta\] needs client_id"):
        secrets(tmp_path, {**shared, "google": auth, "okta": {**auth, "client_id": ""}}, monkeypatch)


def test_secrets_that_are_no_toml_are_said_with_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".streamlit").mkdir(exist_ok=True)
    (tmp_path / ".streamlit" / "secrets.toml").write_text(f"[auth\ncookie_secret = {SECRET}", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"secrets\.toml: cannot be read") as refused:
        sign_in_secrets()
    assert SECRET not in str(refused.value)
