"""Who may do what on the pages: roles, the file that gives them to people, and what a sign-in is worth."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from judges.errors import ConfigError
from judges.sections import Section, as_list, load_section

Action: TypeAlias = Literal["view", "vote", "edit"]


class Role(StrEnum):
    """What somebody may do; each includes the one before."""

    NONE = "none"
    VIEWER = "viewer"
    VOTER = "voter"
    EDITOR = "editor"

    def may(self, action: Action) -> bool:
        """Whether the role includes an action: viewers read, voters also judge, editors also edit files and run."""
        order = list(Role)
        return order.index(self) >= order.index(_NEEDED[action])


_NEEDED: Final[Mapping[Action, Role]] = {"view": Role.VIEWER, "vote": Role.VOTER, "edit": Role.EDITOR}


def _is_address(entry: str) -> str:
    name, at, domain = entry.strip().casefold().rpartition("@")
    if not at or not domain or "@" in name or any(map(str.isspace, entry.strip())):
        raise ValueError(f"{entry!r} is neither an e-mail address nor a domain such as '@example.com'")
    return f"{name}@{domain}"


People: TypeAlias = Annotated[list[Annotated[str, AfterValidator(_is_address)]], BeforeValidator(as_list)]


class Access(Section):
    """The roles file. Whoever is named under several roles has the highest."""

    default: Role
    """Of whoever signs in and is not named below."""
    viewer: People = Field(default_factory=list)
    """E-mail addresses, or whole domains as ``@example.com``."""
    voter: People = Field(default_factory=list)
    editor: People = Field(default_factory=list)
    hours: Annotated[float, Field(gt=0)] = 12
    """How long a sign-in lasts."""

    def role_of(self, person: Person) -> Role:
        """A person's role; without a verified address it is the default."""
        if person.email is None:
            return self.default
        named = {person.email, "@" + person.email.rpartition("@")[2]}
        lists = {Role.EDITOR: self.editor, Role.VOTER: self.voter, Role.VIEWER: self.viewer}
        return next((role for role, people in lists.items() if named.intersection(people)), self.default)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has signed in.

    Attributes:
        name: as their votes are kept: the verified address, else the provider's own identifier of them, so that nobody
            can vote in another's name.
        email: in lower case; ``None`` where the provider does not vouch for it.
    """

    name: str
    email: str | None


def person_of(claims: Mapping[str, Any], hours: float) -> Person | None:
    """Who an identity token speaks of; ``None`` where nobody signed in, or too long ago.

    Args:
        claims: of the token (OpenID Connect Core 1.0, sections 2 and 5.1), and ``is_logged_in``.
        hours: how long after ``iat`` it counts.
    """
    issued = claims.get("iat")
    if claims.get("is_logged_in") is not True or not isinstance(issued, int | float):
        return None
    if time.time() - issued > hours * 3600:
        return None
    email = str(claims.get("email") or "").strip().casefold()
    if email and claims.get("email_verified") is True:
        return Person(email, email)
    subject = str(claims.get("sub") or "").strip()
    return Person(f"sub:{subject}", None) if subject else None


def load_access(path: Path) -> Access:
    """Read a roles file.

    Raises:
        ConfigError: one line that names the file, the key and the problem.
    """
    return load_section(path, Access, ConfigError)
