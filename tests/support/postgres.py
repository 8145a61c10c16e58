"""A real PostgreSQL server on this machine, and a database of its own for each test."""

from __future__ import annotations

import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import URL, make_url


class PostgresServer:
    """A server that listens on a socket in a folder; it lasts as long as the ``with`` that made it."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.uri: str = server.get_uri()

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return _address(make_url(self.uri).set(database=name))

    @contextmanager
    def away(self) -> Iterator[None]:
        """The server breaks off everything, is away as long as the ``with`` lasts, and starts again."""
        self.break_off()
        try:
            yield
        finally:
            self._server.ensure_postgres_running()

    def break_off(self) -> None:
        """Stop at once: a server that writes all its databases down before takes long, on a busy disk minutes."""
        import pgserver

        user = self._server.system_user
        pgserver.pg_ctl(["-m", "immediate", "-w", "stop"], pgdata=self._server.pgdata, user=user)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server that keeps nothing safe: its data are gone with it, so it need not wait for the disk."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of where its lock file lies
        import pgserver

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            server = pgserver.get_server(Path(folder) / "data", cleanup_mode=None)
            started = PostgresServer(server)
            try:
                for unneeded in ("fsync", "full_page_writes", "autovacuum"):
                    server.psql(f"ALTER SYSTEM SET {unneeded} = off; ")
                server.psql("SELECT pg_reload_conf();")
                yield started
            finally:
                started.break_off()
                server.cleanup()


def _address(url: URL) -> str:
    return url.render_as_string(hide_password=False)
