"""Roles: what each may do, what the roles file says, and what a sign-in is worth."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from judges.errors import ConfigError
from ui.access import Access, Person, Role, load_access, person_of

ACCESS = Access.model_validate(
    {"default": "viewer", "voter": "@example.org", "editor": [" Ann@Example.org ", "@lead.example.org"]}
)


def claims(**changed: Any) -> dict[str, Any]:
    now = {"is_logged_in": True, "iat": time.time(), "sub": "17", "email": "Ann@Example.org", "email_verified": True}
    return now | changed


@pytest.mark.parametrize(
    ("role", "view", "vote", "edit"),
    [("none", 0, 0, 0), ("viewer", 1, 0, 0), ("voter", 1, 1, 0), ("editor", 1, 1, 1)],
)
def test_each_role_includes_the_one_before(role: str, view: int, vote: int, edit: int) -> None:
    assert [Role(role).may("view"), Role(role).may("vote"), Role(role).may("edit")] == [view, vote, edit]


@pytest.mark.parametrize(
    ("email", "role"),
    [
        ("ann@example.org", "editor"),
        ("bob@example.org", "voter"),
        ("eve@lead.example.org", "editor"),
        ("eve@sub.example.org", "viewer"),
        ("eve@notexample.org", "viewer"),
        ("example.org@evil.example", "viewer"),
        ("ann@example.org@evil.example", "viewer"),
    ],
)
def test_the_highest_role_that_names_somebody_counts_and_unknown_people_have_the_default(email: str, role: str) -> None:
    assert ACCESS.role_of(Person(email, email)) == role


def test_an_address_that_the_provider_does_not_vouch_for_gives_no_role_and_no_name() -> None:
    for unsure in (False, None, "false", "true", 1):
        person = person_of(claims(email_verified=unsure), 12)
        assert person == Person("sub:17", None)
        assert ACCESS.role_of(person) == "viewer"
    assert person_of(claims(), 12) == Person("ann@example.org", "ann@example.org")


@pytest.mark.parametrize(
    "changed",
    [
        {"is_logged_in": False},
        {"is_logged_in": "yes"},
        {"iat": None},
        {"iat": time.time() - 12.1 * 3600},
        {"email": None, "sub": ""},
    ],
)
def test_nobody_is_signed_in_without_a_fresh_token_that_says_who(changed: dict[str, Any]) -> None:
    assert person_of(claims(**changed), 12) is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("voter: []", "default: Field required"),
        ("default: admin", "default: Input should be 'none', 'viewer', 'voter' or 'editor'"),
        ("default: none\nvotter: []", "unknown key 'votter'; did you mean 'voter'?"),
        ("default: none\nvoter: [ann]", "'ann' is neither an e-mail address nor a domain such as '@example.com'"),
        ("default: none\neditor: [a@b c]", "'a@b c' is neither"),
        ("default: none\nhours: 0", "hours: Input should be greater than 0"),
        ("default: none\ndefault: editor", "stands twice"),
    ],
)
def test_a_roles_file_that_says_something_else_is_refused_in_one_line(tmp_path: Path, written: str, said: str) -> None:
    (tmp_path / "roles.yaml").write_text(written, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^[^\n]*$") as refused:
        load_access(tmp_path / "roles.yaml")
    assert said in str(refused.value)
    assert "roles.yaml" in str(refused.value)
