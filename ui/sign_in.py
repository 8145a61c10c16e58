"""Who can reach the server: only this machine, people who sign in or, with ``--without-sign-in``, everybody.

Streamlit handles the sign-in (OpenID Connect): the provider and the secrets are in ``[auth]`` of its ``secrets.toml``,
and this module reads the file only to check that it is complete.
"""

from __future__ import annotations

import ipaddress
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import streamlit as st
from msgspec import Struct

from arena.present.numbers import printable
from judges.errors import ConfigError, InputError, MissingExtraError
from ui import text
from ui.access import (
    EVERYBODY_VARIABLE,
    ROLES_VARIABLE,
    ViewerRole,
    allowed,
    load_access,
    providers,
    role,
    sign_out,
    signing_in,
    viewer,
)

LOOPBACK: Final = "127.0.0.1"

_PROVIDER: Final = ("client_id", "client_secret", "server_metadata_url")
_SECRET_LENGTH: Final = 32
"""Minimum length of the cookie secret, in characters; anybody who guesses the secret can sign in as anyone."""


class ServerAccess(Struct, frozen=True):
    """Addresses and access rules that the server is started with.

    Attributes:
        address: the address that the server listens on.
        hosts: host names by which browsers may call the server; it refuses requests for other names.
        roles: path of the roles file for people who sign in; ``None`` turns sign-in off.
        everybody: role of every viewer if sign-in is off.
        url: public address of the pages, if it differs from ``address``; may contain ``{port}`` for the port.
    """

    address: str
    hosts: tuple[str, ...]
    roles: Path | None = None
    everybody: ViewerRole = ViewerRole.EDITOR
    url: str | None = None

    @property
    def variables(self) -> dict[str, str | None]:
        """Environment variables that the pages read, with their values; ``None`` for a variable that must be unset."""
        roles = None if self.roles is None else str(self.roles.absolute())
        return {ROLES_VARIABLE: roles, EVERYBODY_VARIABLE: self.everybody.value if roles is None else None}


def server_access(
    auth: Mapping[str, Any] | None,
    *,
    address: str = LOOPBACK,
    hosts: Sequence[str] = (),
    roles: Path | None = None,
    everybody: ViewerRole | None = None,
) -> ServerAccess:
    """The access rules for these options, checked for safety.

    Args:
        auth: ``[auth]`` of Streamlit's secrets; ``None`` if sign-in is not configured.
        address: the address to listen on.
        hosts: further host names by which browsers may call the server.
        roles: path of the roles file.
        everybody: role of every viewer, from ``--without-sign-in``.

    Raises:
        InputError: other machines could reach the pages without a sign-in, or the options contradict each other.
    """
    host_names = tuple(dict.fromkeys([LOOPBACK, "localhost", address, *hosts]))
    if auth is not None:
        if everybody is not None:
            raise InputError(
                "--without-sign-in: secrets.toml sets up a sign-in; remove [auth] from it, or leave out this option"
            )
        if roles is None:
            raise InputError("secrets.toml sets up a sign-in: say with --roles FILE who may do what")
        load_access(roles)
        public = str(auth["redirect_uri"]).removesuffix("/oauth2callback")
        return ServerAccess(address, (*host_names, urlsplit(public).hostname or ""), roles, url=public)
    if roles is not None:
        raise InputError("--roles works only with a sign-in: set it up in [auth] of .streamlit/secrets.toml")
    if everybody is None and not _is_loopback(address):
        raise InputError(
            f"{address} can be reached from other machines: set up a sign-in ([auth] in .streamlit/secrets.toml) and "
            "give --roles, or say '--without-sign-in viewer' to show the pages to whoever reaches them"
        )
    return ServerAccess(address, host_names, everybody=everybody or ViewerRole.EDITOR)


def sign_in_secrets() -> Mapping[str, Any] | None:
    """Read and check ``[auth]`` of Streamlit's secrets; returns ``None`` if there is none.

    Raises:
        ConfigError: something in ``[auth]`` is missing or unsafe. Messages show no value except the host of
            ``redirect_uri``.
        MissingExtraError: the package for sign-in is not installed.
    """
    from streamlit.config import get_config_files

    auth = None
    for file in filter(Path.is_file, map(Path, get_config_files("secrets.toml"))):
        try:
            auth = tomllib.loads(file.read_text(encoding="utf-8")).get("auth", auth)
        except (OSError, ValueError):
            raise ConfigError(f"{file}: cannot be read; check that it is valid TOML") from None
    if auth is None:
        return None
    if not isinstance(auth, Mapping):
        raise ConfigError("secrets.toml: 'auth' must be a table: write [auth]")
    if find_spec("authlib") is None:
        raise MissingExtraError("login", "a sign-in")
    _check(auth)
    return auth


def _check(auth: Mapping[str, Any]) -> None:
    for key in ("redirect_uri", "cookie_secret"):
        if not isinstance(auth.get(key), str):
            raise ConfigError(f"secrets.toml: [auth] needs {key}")
    if len(auth["cookie_secret"]) < _SECRET_LENGTH:
        raise ConfigError(f"secrets.toml: cookie_secret of [auth] needs {_SECRET_LENGTH} random characters or more")
    for name in providers(auth):
        section = auth if name is None else auth[name]
        for key in _PROVIDER:
            if not section.get(key):
                raise ConfigError(f"secrets.toml: [auth{'' if name is None else '.' + name}] needs {key}")
    url = urlsplit(auth["redirect_uri"].replace("{port}", "1"))
    if url.path.rpartition("/")[2] != "oauth2callback" or not url.hostname:
        raise ConfigError("secrets.toml: redirect_uri of [auth] must be the address of the pages, then /oauth2callback")
    if url.scheme != "https" and not _is_loopback(url.hostname):
        raise ConfigError(
            f"secrets.toml: redirect_uri of [auth] must begin with https://: {url.hostname} is not this machine"
        )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def let_in() -> bool:
    """Draw the sign-in, or a line with the viewer's account; returns whether the viewer may see the page."""
    if not signing_in():
        return allowed("view")
    try:
        return _let_in()
    except ConfigError as error:
        # Details go to the server's terminal only: viewers must not learn its paths.
        sys.stderr.write(printable(f"error: {error}") + "\n")
        st.error("Nobody can be let in: the roles file cannot be used as it is now.", icon=":material/error:")
        return False


def _let_in() -> bool:
    person = viewer()
    if person is None:
        _show_sign_in()
        return False
    current_role = role()
    with st.container(horizontal=True, vertical_alignment="center", key="account"):
        text.quiet(person.shown if current_role is ViewerRole.NONE else f"{person.shown}, {current_role}")
        st.button("Sign out", key="sign-out", type="tertiary", on_click=sign_out)
    if current_role is ViewerRole.NONE:
        st.info("You have signed in, and have no role here yet. Ask whoever runs these pages for one.")
    return current_role is not ViewerRole.NONE


def _show_sign_in() -> None:
    st.header("Sign in", anchor=False)
    st.caption("These pages are for people who sign in. What you may do here depends on who you are.")
    for name in providers(st.secrets["auth"]):
        label = "Sign in" if name is None else f"Sign in with {name}"
        st.button(label, key=f"sign-in-{name}", type="primary", on_click=st.login, args=(name,))
