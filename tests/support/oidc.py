"""An OpenID Connect provider on loopback: discovery, authorisation code with PKCE, signed identity tokens, key set.

Where a real one would ask for a password, its page has a link for each person; whoever follows it is that person.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from aiohttp import BasicAuth, web
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT, SECRET = "ragleague-pages", "told to nobody"


class Provider:
    """What one provider knows. ``people`` are the claims that it makes of each, by name."""

    def __init__(self, people: Mapping[str, Mapping[str, Any]]) -> None:
        self._people = people
        self._key = RSAKey.generate_key(2048, auto_kid=True)
        self._asked: dict[str, tuple[str, Mapping[str, str]]] = {}
        self.issuer = ""

    def app(self) -> web.Application:
        """Its web application."""
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        app.router.add_get("/keys", self._keys)
        return app

    async def _discovery(self, _request: web.Request) -> web.Response:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return web.json_response(
            {
                "issuer": self.issuer,
                **{name: f"{self.issuer}/{path}" for name, path in names.items()},
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = request.query
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        links = []
        for name in self._people:
            code = secrets.token_urlsafe()
            self._asked[code] = name, dict(asked)
            back = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            links.append(f'<p><a href="{html.escape(back)}">{html.escape(name)}</a>')
        return web.Response(text="\n".join(links), content_type="text/html")

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        name, asked = self._asked.pop(str(form["code"]))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(str(form["code_verifier"]).encode()).digest()).rstrip(b"=")
        credentials = BasicAuth.decode(request.headers["Authorization"])
        if challenge.decode() != asked["code_challenge"] or (credentials.login, credentials.password) != (
            CLIENT,
            SECRET,
        ):
            return web.json_response({"error": "invalid_grant"}, status=400)
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": CLIENT, "sub": name, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        header = {"alg": "RS256", "kid": self._key.kid}
        token = jwt.encode(header, {**usual, **self._people[name]}, self._key, algorithms=["RS256"])
        return web.json_response({"access_token": "none", "token_type": "Bearer", "id_token": token})

    async def _keys(self, _request: web.Request) -> web.Response:
        return web.json_response(KeySet([self._key]).as_dict(private=False))


@contextmanager
def provider(people: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The address of a provider that runs in a thread of its own until the block ends."""
    own, loop, ready, ended = Provider(people), asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        runner = web.AppRunner(own.app())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        own.issuer = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield own.issuer
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def secrets_toml(issuer: str) -> str:
    """What Streamlit needs to sign people in there."""
    lines = {
        "redirect_uri": "http://localhost:{port}/oauth2callback",
        "cookie_secret": secrets.token_urlsafe(32),
        "client_id": CLIENT,
        "client_secret": SECRET,
        "server_metadata_url": f"{issuer}/.well-known/openid-configuration",
    }
    return "\n".join(["[auth]", *(f'{name} = "{value}"' for name, value in lines.items())]) + "\n"
