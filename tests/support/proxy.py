"""A proxy on loopback that keeps every byte it receives, and a certificate for the servers behind it."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

HOST = "judge.invalid"
"""The server's name. No machine has it, so a request to it arrives only through the proxy."""
_ORIGIN = f" http://{HOST}".encode()
"""How a request names its server to a proxy, and to nobody else."""


class RecordingProxy:
    """Forwards whatever it is asked for to one port of this machine, in a thread of its own.

    Attributes:
        read: what each connection sent, tunnelled bytes included.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []
        self.read: list[bytearray] = []

    def __enter__(self) -> RecordingProxy:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started.set)), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def heads(self) -> list[str]:
        """The head of each connection's first request, which a proxy reads in clear text."""
        return [bytes(read).partition(b"\r\n\r\n")[0].decode("latin-1") for read in self.read]

    async def _serve(self, started: Callable[[], object]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started()
        await self._stop.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read = bytearray()
        self.read.append(read)
        self._writers.append(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            read += head
            answers, onward = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.append(onward)
            if head.startswith(b"CONNECT "):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                onward.write(head.replace(_ORIGIN, b" "))
            await asyncio.gather(_copied(reader, onward, read), _copied(answers, writer))


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, read: bytearray | None = None) -> None:
    with suppress(OSError):
        while some := await reader.read(2**16):
            if read is not None:
                read += some
            writer.write(some.replace(_ORIGIN, b" "))
            await writer.drain()
    writer.close()


def certified(folder: Path, host: str = HOST) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS as ``host``, and the file of the authority that vouches for it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def _named(host: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ip_address(host))
        except ValueError:
            return x509.DNSName(host)

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([_named(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    authority, secret = folder / "authority.pem", folder / "secret.pem"
    authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority, secret)
    return context, authority
