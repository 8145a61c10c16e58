"""Who may do what on the pages: roles, the file that gives them to people, and the present viewer.

A role is asked for at every action, not only when a page is drawn.
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
from urllib.parse import urlsplit

import streamlit as st
from msgspec import Struct
from pydantic import AfterValidator, BeforeValidator, Field

from arena.present.numbers import printable
from arena.store.annotations import annotator_name
from judges.errors import ConfigError, InputError
from judges.sections import Section, as_list, load_section

Action: TypeAlias = Literal["view", "vote", "edit"]

_LONGEST: Final = 50
"""Characters of a name that is cut."""
_SKEW: Final = 60
"""Seconds by which the provider's clock may be behind ours."""


class ViewerRole(StrEnum):
    """What somebody may do; each includes the one before."""

    NONE = "none"
    VIEWER = "viewer"
    VOTER = "voter"
    EDITOR = "editor"

    def may(self, action: Action) -> bool:
        """Whether the role includes an action: viewers read, voters also judge, editors also edit files and run."""
        order = list(ViewerRole)
        return order.index(self) >= order.index(_NEEDED[action])


_NEEDED: Final[Mapping[Action, ViewerRole]] = {
    "view": ViewerRole.VIEWER,
    "vote": ViewerRole.VOTER,
    "edit": ViewerRole.EDITOR,
}


_IN_LOWER_CASE: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_NEVER_IN_ADDRESS: Final = frozenset('"(),:;<>[]\\')
"""Characters that an address holds at most within quotation marks, where a mail server may read another address."""


def _address(said: object) -> str | None:
    """An e-mail address, or a domain as ``@example.com``, with ASCII letters in lower case; ``None`` if it is neither.

    All other characters stay what they are: folding case (``ß`` to ``ss``, the Kelvin sign to ``k``) or normalising
    would make one address of two, and somebody may own the other.
    """
    if not isinstance(said, str) or not said.isprintable() or " " in said or _NEVER_IN_ADDRESS.intersection(said):
        return None
    name, _, domain = said.translate(_IN_LOWER_CASE).partition("@")
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
    """The roles file. Whoever is named under several roles has the highest."""

    default: ViewerRole
    """Of whoever signs in and is not named below."""
    viewer: Addresses = Field(default_factory=list)
    """E-mail addresses, or whole domains as ``@example.com``."""
    voter: Addresses = Field(default_factory=list)
    editor: Addresses = Field(default_factory=list)
    trusted: Annotated[list[Annotated[str, AfterValidator(_is_issuer)]], BeforeValidator(as_list)] = Field(
        default_factory=list
    )
    """Providers, by the ``iss`` of their tokens, whose addresses count where no claim says if they are verified."""
    hours: Annotated[float, Field(gt=0)] = 12
    """How long a sign-in lasts."""

    def role_of(self, person: Person) -> ViewerRole:
        """A person's role; without a verified address it is the default."""
        if person.email is None:
            return self.default
        named = {person.email, "@" + person.email.rpartition("@")[2]}
        lists = {ViewerRole.EDITOR: self.editor, ViewerRole.VOTER: self.voter, ViewerRole.VIEWER: self.viewer}
        return next((role for role, people in lists.items() if named.intersection(people)), self.default)


class Person(Struct, frozen=True):
    """Somebody who has signed in.

    Attributes:
        name: as their votes are kept: the verified address, else the provider's own identifier of them with the
            provider, so that nobody can vote in another's name.
        email: as ``_address`` writes it; ``None`` where the provider does not vouch for it.
        issued: when the provider said so, in seconds since 1970.
        identity: issuer and subject, which nobody else ever has (OpenID Connect Core 1.0, section 5.7).
    """

    name: str
    email: str | None
    issued: float
    identity: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The name in short."""
        return self.email or f"sub:{self.identity[-1]}"


def person_of(claims: Mapping[str, Any], access: Access, *, several: bool = False) -> Person | None:
    """Who an identity token speaks of; ``None`` where nobody signed in, or too long ago.

    Args:
        claims: of the token (OpenID Connect Core 1.0, sections 2 and 5.1), and ``is_logged_in``.
        access: how long a sign-in counts, and whose addresses do.
        several: whether people sign in with several providers: then names say which.
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
    if email is not None and not email.startswith("@") and _vouched_for(claims, access):
        return Person(_name(f"{email} ({issuer})" if several else email), email, issued, (issuer, subject))
    return Person(_name(f"sub:{subject} ({issuer})"), None, issued, (issuer, subject))


def _name(whole: str) -> str:
    """A name that votes can be kept under; of what is long, or not all seen, a part and a digest of all of it."""
    with suppress(InputError):
        if whole.isprintable() and annotator_name(whole) == whole:
            return whole
    begun = " ".join(printable(whole).split())[:_LONGEST]
    return f"{begun} #{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _vouched_for(claims: Mapping[str, Any], access: Access) -> bool:
    """Whether the address is the person's: by the standard claim, by Entra's ``xms_edov``, or by trust in the issuer.

    Entra ID sends no ``email_verified``. ``xms_edov``, an optional claim, says that the owner of the address's domain
    has been verified.
    """
    if claims.get("email_verified") is not None:
        return claims["email_verified"] is True
    if claims.get("xms_edov") is not None:
        return claims["xms_edov"] in (True, "1", "true")
    return claims.get("iss") in access.trusted


class SignIns:
    """Which sign-ins still count. Signing out ends all of a person's, in whatever browser, tab or kept cookie.

    What is remembered ends with the server, so nothing from before its start counts: after a restart people sign in
    again. Tokens are compared by the provider's clock where one of a person's was seen.

    Args:
        started: when the server was, in seconds since 1970.
    """

    def __init__(self, started: float) -> None:
        self._since = started - _SKEW
        self._seen: dict[tuple[str, ...], float] = {}
        self._ended: dict[tuple[str, ...], float] = {}

    def counts(self, person: Person) -> bool:
        """Whether a person's sign-in holds."""
        who = person.identity or (person.name,)
        self._seen[who] = max(person.issued, self._seen.get(who, 0))
        return person.issued > max(self._since, self._ended.get(who, 0))

    def end(self, person: Person) -> None:
        """End every sign-in that the person has now."""
        who = person.identity or (person.name,)
        self._ended[who] = max(self._seen.get(who, 0), person.issued, time.time() - _SKEW)


def providers(auth: Mapping[str, Any]) -> list[str | None]:
    """Whom people can sign in with: the names of ``[auth.NAME]``, or ``None`` alone where ``[auth]`` has the only."""
    named = [name for name, section in auth.items() if isinstance(section, Mapping) and name != "client_kwargs"]
    return [None] if auth.get("client_id") or not named else list(named)


def load_access(path: Path) -> Access:
    """Read a roles file.

    Raises:
        ConfigError: one line that names the file, the key and the problem.
    """
    return load_section(path, Access, ConfigError)


ROLES_VARIABLE: Final = "RAGLEAGUE_UI_ROLES"
"""Environment variable through which ``ui.serve`` says that people sign in, and which file gives them their roles."""
EVERYBODY_VARIABLE: Final = "RAGLEAGUE_UI_EVERYBODY"
"""Environment variable through which ``ui.serve`` says which role everybody has where nobody signs in."""

_SIGN_INS: Final = SignIns(time.time())


def allowed(action: Action) -> bool:
    """Whether the present viewer may do this now.

    Raises:
        InputError: nobody said who may do what, or the roles file cannot be used. Then nobody may do anything.
    """
    return role().may(action)


def viewer() -> Person | None:
    """Who has signed in; ``None`` where nobody has, or nobody needs to.

    Raises:
        InputError: the roles file cannot be used.
    """
    access = _access()
    return None if access is None else _person(access)


def signing_in() -> bool:
    """Whether people have to sign in."""
    return ROLES_VARIABLE in os.environ


def role() -> ViewerRole:
    """The present viewer's role; nobody's is ``none``.

    Raises:
        InputError: see ``allowed``.
    """
    access = _access()
    if access is not None:
        person = _person(access)
        return ViewerRole.NONE if person is None else access.role_of(person)
    if EVERYBODY_VARIABLE not in os.environ:
        raise InputError(f"{EVERYBODY_VARIABLE} gives nobody a role: start the pages with 'ragleague ui'")
    return ViewerRole(os.environ[EVERYBODY_VARIABLE])


def sign_out() -> None:
    """End all sign-ins of the present viewer, in other tabs and browsers too.

    Raises:
        InputError: the roles file cannot be used.
    """
    if (person := viewer()) is not None:
        _SIGN_INS.end(person)
    st.logout()


def _person(access: Access) -> Person | None:
    person = person_of(st.user.to_dict(), access, several=len(providers(st.secrets["auth"])) > 1)
    return person if person is not None and _SIGN_INS.counts(person) else None


def _access() -> Access | None:
    return load_access(Path(os.environ[ROLES_VARIABLE])) if signing_in() else None
