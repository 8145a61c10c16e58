"""Who may open the pages and do what: roles, sign-ins, addresses that are safe, and the return from a sign-in."""

from __future__ import annotations

import re
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from arena.store.annotations import annotator_name
from judges.errors import ConfigError, InputError
from ui.access import Access, Person, SignIns, ViewerRole, load_access, person_of, providers
from ui.sign_in import server_access, sign_in_secrets

ACCESS = Access.model_validate(
    {"default": "viewer", "voter": "@example.org", "editor": [" Ann@Example.org ", "@lead.example.org"]}
)


def claims(**changed: Any) -> dict[str, Any]:
    now = {"is_logged_in": True, "iat": time.time(), "email": "Ann@Example.org", "email_verified": True}
    return now | {"iss": "https://login.example.org", "sub": "17"} | changed


@pytest.mark.parametrize(
    ("role", "view", "vote", "edit"),
    [("none", 0, 0, 0), ("viewer", 1, 0, 0), ("voter", 1, 1, 0), ("editor", 1, 1, 1)],
)
def test_each_role_includes_the_one_before(role: str, view: int, vote: int, edit: int) -> None:
    assert [ViewerRole(role).may("view"), ViewerRole(role).may("vote"), ViewerRole(role).may("edit")] == [
        view,
        vote,
        edit,
    ]


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
        assert person is not None
        assert (person.name, person.email) == ("sub:17 (https://login.example.org)", None)
        assert person.shown == "sub:17"
        assert ACCESS.role_of(person) == "viewer"
    person = person_of(claims(), ACCESS)
    assert person is not None
    assert (person.name, person.email) == ("ann@example.org", "ann@example.org")


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("boss@example.com", "boß@example.com"),
        ("@strasse.example", "ann@straße.example"),
        ("kim@example.com", "\u212aim@example.com"),
        ("i@example.com", "\u0130@example.com"),
        ("i@example.com", "\u0131@example.com"),
        ("jos\u00e9@example.com", "jose\u0301@example.com"),
        ("ann@example.com", "ann@example.com "),
        ("ann@example.com", "ann@example.com\n"),
        ("ann@example.com", "ann\u200b@example.com"),
        ("ann@example.com", "\uff41nn@example.com"),
        ("@example.com", "eve@evil.example@example.com"),
        ("@example.com", '"eve@evil.example"@example.com'),
        ("@example.com", "Eve <eve@evil.example>,x@example.com"),
        ("@example.com", "@example.com"),
        ("@example.com", "eve@example.com."),
        ("@example.com", "eve@example.com@"),
        ("@example.com", "eve@evil-example.com"),
        ("@example.com", ["eve@example.com"]),
    ],
)
def test_an_address_that_only_looks_like_one_of_the_file_has_none_of_its_roles(listed: str, said: Any) -> None:
    access = Access.model_validate({"default": "none", "editor": [listed]})
    person = person_of(claims(email=said), access)
    assert person is not None
    assert access.role_of(person) == "none"
    assert person.name != listed


@pytest.mark.parametrize("said", ["boß@example.com", "jose\u0301@example.com", "o'hara+votes@\u4f8b\u3048.example"])
def test_an_address_is_what_the_provider_says_but_for_the_case_of_ascii_letters(said: str) -> None:
    access = Access.model_validate({"default": "none", "voter": [said.upper() if said.isascii() else said]})
    person = person_of(claims(email=said), access)
    assert person is not None
    assert (person.name, person.email, access.role_of(person)) == (said, said, "voter")


def test_a_subject_is_one_person_only_together_with_its_issuer() -> None:
    here, there = "https://login.example.org", "https://login.example.com"
    names = {
        person.name
        for issuer in (here, there)
        for subject in ("17", "17 ", " 17", "1\u00a07", "17\u200b", "x" * 255, "x" * 254 + "y")
        if (person := person_of(claims(iss=issuer, sub=subject, email=None), ACCESS))
    }
    assert len(names) == 14
    assert {annotator_name(name) for name in names} == names, "votes can be kept under each"


def test_a_verified_address_of_several_providers_says_whose_it_is() -> None:
    one, other = (
        person_of(claims(iss=issuer, sub="17"), ACCESS, several=True)
        for issuer in ("https://a.example", "https://b.example")
    )
    assert one is not None
    assert other is not None
    assert (one.name, other.name) == ("ann@example.org (https://a.example)", "ann@example.org (https://b.example)")
    assert one.shown == other.shown == "ann@example.org"
    assert ACCESS.role_of(one) == ACCESS.role_of(other) == "editor"
    sign_ins = SignIns(time.time() - 60)
    sign_ins.end(one)
    assert not sign_ins.is_valid(one)
    assert sign_ins.is_valid(other)


def test_signing_out_ends_the_sign_ins_of_one_whose_address_has_changed_since() -> None:
    before, after = (person_of(claims(email=email), ACCESS) for email in ("ann@example.org", "ann.b@example.org"))
    assert before is not None
    assert after is not None
    sign_ins = SignIns(time.time() - 60)
    sign_ins.end(after)
    assert not sign_ins.is_valid(before)


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
    with pytest.raises(ConfigError, match=r"roles\.yaml:2: trusted"):
        load_access(tmp_path / "roles.yaml")


def test_signing_out_ends_all_sign_ins_of_that_person_and_nobody_else_s() -> None:
    now = time.time()
    sign_ins = SignIns(now - 3600)
    phone, desk, other = (
        Person("ann", "ann", now - 500),
        Person("ann", "ann", now + 20),
        Person("bob", "bob", now - 500),
    )
    assert all(map(sign_ins.is_valid, (phone, desk, other)))
    sign_ins.end(phone)
    assert not sign_ins.is_valid(phone)
    assert not sign_ins.is_valid(desk), "signed in elsewhere later, by a provider whose clock is ahead"
    assert not sign_ins.is_valid(Person("ann", "ann", now - 400)), "a cookie that was not seen before"
    assert sign_ins.is_valid(other)
    assert sign_ins.is_valid(Person("ann", "ann", now + 21)), "signed in again"


def test_no_sign_in_from_before_the_server_s_start_counts() -> None:
    sign_ins = SignIns(time.time())
    assert not sign_ins.is_valid(Person("ann", "ann", time.time() - 120))
    assert sign_ins.is_valid(Person("ann", "ann", time.time()))


@pytest.mark.parametrize(
    "changed",
    [
        {"is_logged_in": False},
        {"is_logged_in": "yes"},
        {"iat": None},
        {"iat": time.time() - 12.1 * 3600},
        {"email": None, "sub": ""},
        {"sub": None},
        {"sub": 17},
        {"iss": None},
        {"iss": ""},
    ],
)
def test_nobody_is_signed_in_without_a_fresh_token_that_says_who(changed: dict[str, Any]) -> None:
    assert person_of(claims(**changed), ACCESS) is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("voter: []", "default: is missing; add it"),
        ("default: admin", "default: must be none, viewer, voter or editor, not 'admin'"),
        ("default: none\nvotter: []", "unknown key 'votter'; did you mean 'voter'?"),
        ("default: none\nvoter: [ann]", "'ann' is neither an e-mail address nor a domain such as '@example.com'"),
        ("default: none\neditor: [a@b c]", "'a@b c' is neither"),
        ("default: none\nhours: 0", "hours: must be more than 0, not 0"),
        ("default: none\ndefault: editor", "stands twice"),
    ],
)
def test_a_roles_file_that_says_something_else_is_refused_in_one_line(tmp_path: Path, written: str, said: str) -> None:
    (tmp_path / "roles.yaml").write_text(written, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^[^\n]*$") as refused:
        load_access(tmp_path / "roles.yaml")
    assert said in str(refused.value)
    assert "roles.yaml" in str(refused.value)


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
    assert load_access(roles).default is ViewerRole.NONE


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_on_this_machine_everybody_edits(address: str) -> None:
    assert server_access(None, address=address).variables["RAGLEAGUE_UI_EVERYBODY"] == "editor"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7", "arena.example.com"])
def test_another_address_is_refused_until_a_role_for_everybody_is_said(address: str) -> None:
    with pytest.raises(InputError, match="can be reached from other machines"):
        server_access(None, address=address)
    access = server_access(None, address=address, everybody=ViewerRole.VIEWER)
    assert access.variables["RAGLEAGUE_UI_EVERYBODY"] == "viewer"


def test_what_does_not_fit_is_refused(auth: dict[str, Any], roles: Path) -> None:
    with pytest.raises(InputError, match="say with --roles FILE"):
        server_access(auth)
    with pytest.raises(InputError, match="--roles works only with a sign-in"):
        server_access(None, roles=roles)
    with pytest.raises(InputError, match="--without-sign-in"):
        server_access(auth, roles=roles, everybody=ViewerRole.VIEWER)
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
