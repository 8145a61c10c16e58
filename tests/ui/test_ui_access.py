"""Roles: what each may do, what the roles file says, and what a sign-in is worth."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from judges.errors import ConfigError
from ui.access import Access, Person, Role, SignIns, load_access, person_of

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
    assert ACCESS.role_of(Person(email, email, 0)) == role


def test_an_address_that_the_provider_does_not_vouch_for_gives_no_role_and_no_name() -> None:
    for unsure in (False, None, "false", "true", 1):
        person = person_of(claims(email_verified=unsure), ACCESS)
        assert person == Person("sub:17", None, 0)
        assert ACCESS.role_of(person) == "viewer"
    assert person_of(claims(), ACCESS) == Person("ann@example.org", "ann@example.org", 0)


TENANT = "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0"
TRUSTING = ACCESS.model_copy(update={"trusted": [TENANT]})


@pytest.mark.parametrize(
    ("access", "vouched_for", "said"),
    [
        (ACCESS, True, {"xms_edov": True}),
        (ACCESS, True, {"xms_edov": "1"}),
        (ACCESS, False, {"xms_edov": False}),
        (ACCESS, False, {"xms_edov": "0"}),
        (ACCESS, False, {"xms_edov": True, "email_verified": False}),
        (ACCESS, False, {"iss": TENANT}),
        (TRUSTING, True, {"iss": TENANT}),
        (TRUSTING, False, {"iss": TENANT, "xms_edov": False}),
        (TRUSTING, False, {"iss": TENANT, "email_verified": False}),
        (TRUSTING, False, {"iss": TENANT.replace("7", "8")}),
        (TRUSTING, False, {}),
    ],
)
def test_a_token_of_entra_gives_a_role_by_its_own_claim_or_where_the_tenant_is_trusted(
    access: Access, vouched_for: bool, said: dict[str, Any]
) -> None:
    token = {name: value for name, value in claims().items() if name != "email_verified"}
    person = person_of(token | said, access)
    assert person is not None
    assert (person.email is not None) is vouched_for
    assert access.role_of(person) == ("editor" if vouched_for else "viewer")


@pytest.mark.parametrize("issuer", ["login.example.com", "https://login.microsoftonline.com/common/v2.0", "https://"])
def test_an_issuer_that_names_nobody_is_refused(tmp_path: Path, issuer: str) -> None:
    (tmp_path / "roles.yaml").write_text(f"default: none\ntrusted: ['{issuer}']\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"roles\.yaml: trusted"):
        load_access(tmp_path / "roles.yaml")


def test_signing_out_ends_all_sign_ins_of_that_person_and_nobody_else_s() -> None:
    now = time.time()
    sign_ins = SignIns(now - 3600)
    phone, desk, other = (
        Person("ann", "ann", now - 500),
        Person("ann", "ann", now + 20),
        Person("bob", "bob", now - 500),
    )
    assert all(map(sign_ins.counts, (phone, desk, other)))
    sign_ins.end(phone)
    assert not sign_ins.counts(phone)
    assert not sign_ins.counts(desk), "signed in elsewhere later, by a provider whose clock is ahead"
    assert not sign_ins.counts(Person("ann", "ann", now - 400)), "a cookie that was not seen before"
    assert sign_ins.counts(other)
    assert sign_ins.counts(Person("ann", "ann", now + 21)), "signed in again"


def test_no_sign_in_from_before_the_server_s_start_counts() -> None:
    sign_ins = SignIns(time.time())
    assert not sign_ins.counts(Person("ann", "ann", time.time() - 120))
    assert sign_ins.counts(Person("ann", "ann", time.time()))


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
    assert person_of(claims(**changed), ACCESS) is None


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
