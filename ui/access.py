"""Access to the pages: roles, the file that assigns them to people, and the current viewer.

The role is checked when a page is drawn, and again by every action on it.
"""

from __future__ import annotations

import hashlib
import os
import string
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import streamlit as st
from msgspec import Struct
from pydantic import AfterValidator, BeforeValidator, Field

from arena.present.numbers import printable
from arena.store.annotations import annotator_name
from judges.errors import ConfigError, InputError
from judges.sections import Section, as_list, load_section

Action: TypeAlias = Literal["view", "vote", "edit"]

_LONGEST: Final = 50
"""Number of characters kept of an annotator's name that is too long to store."""
_LONGEST_NAME: Final = 80
_SKEW: Final = 60
"""Seconds by which the identity provider's clock may be behind the server's."""


class ViewerRole(StrEnum):
    """What a viewer may do; each role includes the ones before it."""

    NONE = "none"
    VIEWER = "viewer"
    VOTER = "voter"
    EDITOR = "editor"

    def may(self, action: Action) -> bool:
        """Whether the role allows an action: viewers read, voters also judge, editors also edit and start runs."""
        roles = list(ViewerRole)
        return roles.index(self) >= roles.index(_REQUIRED_ROLE[action])


_REQUIRED_ROLE: Final[Mapping[Action, ViewerRole]] = {
    "view": ViewerRole.VIEWER,
    "vote": ViewerRole.VOTER,
    "edit": ViewerRole.EDITOR,
}


_IN_LOWER_CASE: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_NEVER_IN_ADDRESS: Final = frozenset('"(),:;<>[]\\')
"""Characters that an e-mail address may have only in quotation marks; an address with one of them is refused."""


def _address(entry: object) -> str | None:
    """Put an e-mail address, or a domain such as ``@example.com``, in lower case (ASCII letters); ``None`` if invalid.

    All other characters stay unchanged: case folding (``ß`` to ``ss``, the Kelvin sign to ``k``) or normalisation would
    map two addresses to one, and they may belong to different people.
    """
    if not isinstance(entry, str) or not entry.isprintable() or " " in entry or _NEVER_IN_ADDRESS.intersection(entry):
        return None
    name, _, domain = entry.translate(_IN_LOWER_CASE).partition("@")
    return f"{name}@{domain}" if domain and "@" not in domain else None


def _is_address(entry: str) -> str:
    if (address := _address(entry.strip())) is None:
        raise ValueError(f"{entry!r} is neither an e-mail address nor a domain such as '@example.com'")
    return address


def _is_issuer(entry: str) -> str:
    url = urlsplit(entry.strip())
    if url.scheme not in ("https", "http") or not url.hostname:
        raise ValueError(f"{entry!r} is no issuer such as 'https://login.example.com/v2.0'")
    if {"common", "organizations", "consumers", "{tenantid}"}.intersection(url.path.split("/")):
        raise ValueError(
            f"{entry!r} names no tenant: tokens hold its ID in that place, and others are not to be trusted"
        )
    return entry.strip()


Addresses: TypeAlias = Annotated[list[Annotated[str, AfterValidator(_is_address)]], BeforeValidator(as_list)]


class Access(Section):
    """The roles file: who has which role. A person who is listed under several roles has the highest."""

    default: ViewerRole
    """Role of people who sign in and whom the file does not list under another role."""
    viewer: Addresses = Field(default_factory=list)
    """E-mail addresses of people with this role, or whole domains as ``@example.com``."""
    voter: Addresses = Field(default_factory=list)
    editor: Addresses = Field(default_factory=list)
    trusted: Annotated[list[Annotated[str, AfterValidator(_is_issuer)]], BeforeValidator(as_list)] = Field(
        default_factory=list
    )
    """Issuers (``iss`` of the token) whose e-mail addresses are trusted even if no claim says they are verified."""
    hours: Annotated[float, Field(gt=0)] = 12
    """Number of hours after which people have to sign in again."""

    def role_of(self, person: Person) -> ViewerRole:
        """The role that the file gives the person; the default role if the provider does not verify their address."""
        if person.email is None:
            return self.default
        entries = {person.email, "@" + person.email.rpartition("@")[2]}
        entries_by_role = {ViewerRole.EDITOR: self.editor, ViewerRole.VOTER: self.voter, ViewerRole.VIEWER: self.viewer}
        return next((role for role, people in entries_by_role.items() if entries.intersection(people)), self.default)


class Person(Struct, frozen=True):
    """A person who has signed in.

    Attributes:
        name: name under which the person annotates: the verified e-mail address, else the provider's identifier of the
            person with the provider, so that nobody can vote in another person's name.
        email: the e-mail address, normalised by ``_address``; ``None`` if the provider does not verify it.
        issued: issue time of the identity token, in seconds since 1970.
        identity: issuer and subject of the token, which together identify the person (OpenID Connect Core 1.0, section
            5.7).
    """

    name: str
    email: str | None
    issued: float
    identity: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The name that the pages show: the e-mail address, else the provider's identifier of the person."""
        return self.email or f"sub:{self.identity[-1]}"


def person_of(claims: Mapping[str, Any], access: Access, *, several: bool = False) -> Person | None:
    """The person that an identity token names; ``None`` if nobody is signed in, or the sign-in has expired.

    Args:
        claims: the token's claims (OpenID Connect Core 1.0, sections 2 and 5.1), and ``is_logged_in``.
        access: content of the roles file, which sets how long a sign-in lasts and which providers are trusted.
        several: whether several providers are configured; annotator names then include the provider.
    """
    issued, identity = claims.get("iat"), (claims.get("iss"), claims.get("sub"))
    if claims.get("is_logged_in") is not True or not isinstance(issued, int | float):
        return None
    if time.time() - issued > access.hours * 3600:
        return None
    if not all(isinstance(part, str) and part for part in identity):
        return None
    issuer, subject = map(str, identity)
    email = _address(claims.get("email"))
    if email is not None and not email.startswith("@") and _is_verified(claims, access):
        return Person(_name(f"{email} ({issuer})" if several else email), email, issued, (issuer, subject))
    return Person(_name(f"sub:{subject} ({issuer})"), None, issued, (issuer, subject))


def _name(whole: str) -> str:
    """The name stored with annotations; a long or partly invisible name is shortened and a digest is appended."""
    with suppress(InputError):
        if whole.isprintable() and annotator_name(whole) == whole:
            return whole
    prefix = " ".join(printable(whole).split())[:_LONGEST]
    return f"{prefix} #{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _is_verified(claims: Mapping[str, Any], access: Access) -> bool:
    """Whether the token says that the e-mail address is verified or, if it does not say, its issuer is trusted.

    The token says so in the standard claim ``email_verified`` or, from Entra ID, which does not send that claim, in the
    optional claim ``xms_edov``: the owner of the address's domain has been verified.
    """
    if claims.get("email_verified") is not None:
        return claims["email_verified"] is True
    if claims.get("xms_edov") is not None:
        return claims["xms_edov"] in (True, "1", "true")
    return claims.get("iss") in access.trusted


class SignIns:
    """Decides which sign-ins are valid.

    Signing out ends all sign-ins of a person, in every browser, tab and stored cookie: a token is valid only if it was
    issued later. The time of signing out is the issue time of the person's newest token or, if later, the server's time
    minus ``_SKEW``, because the provider's clock may be behind.

    The server keeps this state in memory only, so tokens from before its start are invalid: after a restart people sign
    in again.

    Args:
        started: start time of the server, in seconds since 1970.
    """

    def __init__(self, started: float) -> None:
        self._since = started - _SKEW
        self._seen: dict[tuple[str, ...], float] = {}
        self._ended: dict[tuple[str, ...], float] = {}

    def is_valid(self, person: Person) -> bool:
        identity = person.identity or (person.name,)
        self._seen[identity] = max(person.issued, self._seen.get(identity, 0))
        return person.issued > max(self._since, self._ended.get(identity, 0))

    def end(self, person: Person) -> None:
        """End all current sign-ins of the person."""
        identity = person.identity or (person.name,)
        self._ended[identity] = max(self._seen.get(identity, 0), person.issued, time.time() - _SKEW)


def providers(auth: Mapping[str, Any]) -> list[str | None]:
    """Names of the identity providers in ``[auth.NAME]``; ``[None]`` if ``[auth]`` itself configures the only one."""
    names = [name for name, section in auth.items() if isinstance(section, Mapping) and name != "client_kwargs"]
    return [None] if auth.get("client_id") or not names else list(names)


def load_access(path: Path) -> Access:
    """Read a roles file.

    Raises:
        ConfigError: the file cannot be used; the one-line message names the file, the key and the problem.
    """
    return load_section(path, Access, ConfigError)


ROLES_VARIABLE: Final = "RAGLEAGUE_UI_ROLES"
"""Environment variable with the path of the roles file; ``ui.serve`` sets it if people have to sign in."""
EVERYBODY_VARIABLE: Final = "RAGLEAGUE_UI_EVERYBODY"
"""Environment variable with the role that every viewer has; ``ui.serve`` sets it if people do not sign in."""

_SIGN_INS: Final = SignIns(time.time())


def allowed(action: Action) -> bool:
    """Whether the current viewer may perform this action now.

    Raises:
        InputError: no roles are configured, or the roles file cannot be used; then nobody may do anything.
    """
    return role().may(action)


def viewer() -> Person | None:
    """The person who is signed in; ``None`` if nobody is, or sign-in is off.

    Raises:
        InputError: the roles file cannot be used.
    """
    access = _access()
    return None if access is None else _person(access)


def owner() -> bytes:
    """Bytes that identify the signed-in person or, without sign-in, the browser; empty if neither is known."""
    from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

    person, cookie = viewer(), st.context.cookies.get("_streamlit_xsrf", "")
    return decode_xsrf_token_string(cookie)[0] or b"" if person is None else person.name.encode()


def annotator_field(**given: Any) -> str:
    """Draw a field for the viewer's name unless they have signed in; returns the name, empty if missing or invalid.

    ``page.js`` stores the name in a cookie. The URL does not contain it: whoever opens a link must not annotate under
    the name of the person who sent it.
    """
    if (person := viewer()) is not None:
        return person.name
    known = unquote(st.context.cookies.get("ragleague-annotator", ""))[:_LONGEST_NAME]
    name: str = st.text_input(
        "Your name or initials", known, key="annotator", max_chars=_LONGEST_NAME, persist_state="session", **given
    )
    try:
        return annotator_name(name) if name.strip() else ""
    except InputError as error:
        st.text(str(error))
        return ""


def signing_in() -> bool:
    """Whether people have to sign in."""
    return ROLES_VARIABLE in os.environ


def role() -> ViewerRole:
    """The current viewer's role; ``none`` if nobody is signed in.

    Raises:
        InputError: no roles are configured, or the roles file cannot be used.
    """
    access = _access()
    if access is not None:
        person = _person(access)
        return ViewerRole.NONE if person is None else access.role_of(person)
    if EVERYBODY_VARIABLE not in os.environ:
        raise InputError(f"{EVERYBODY_VARIABLE} is not set, so nobody has a role: start the pages with 'ragleague ui'")
    return ViewerRole(os.environ[EVERYBODY_VARIABLE])


def sign_out() -> None:
    """End all sign-ins of the current viewer, also in other tabs and browsers.

    Raises:
        InputError: the roles file cannot be used.
    """
    if (person := viewer()) is not None:
        _SIGN_INS.end(person)
    st.logout()


def _person(access: Access) -> Person | None:
    person = person_of(st.user.to_dict(), access, several=len(providers(st.secrets["auth"])) > 1)
    return person if person is not None and _SIGN_INS.is_valid(person) else None


def _access() -> Access | None:
    return load_access(Path(os.environ[ROLES_VARIABLE])) if signing_in() else None
