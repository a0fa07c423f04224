"""Web servers on loopback that say exactly what a test has them say, certificates for them,
and addresses of every kind.
"""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import strategies as st

V4 = st.one_of(
    st.ip_addresses(v=4),
    st.builds(lambda low: IPv4Address(0x7F000000 + low), st.integers(0, 0xFFFFFF)),
)
V6 = st.one_of(
    st.ip_addresses(v=6),
    st.builds(  # near the beginning of each /16, where the special ranges are
        lambda top, rest: IPv6Address(top << 112 | rest),
        st.sampled_from([0, 0x64, 0x100, 0x2001, 0x2002, 0x3FFF, 0x5F00, 0xFC00, 0xFE80, 0xFFFF]),
        st.integers(0, (1 << 112) - 1),
    ),
)

Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


class Site:
    """What came in: the head of each request. `connections` counts those without one too."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.connections = 0
        self.server_names: list[str | None] = []
        self.port = 0

    @property
    def paths(self) -> list[str]:
        return [head.split(" ", 2)[1] for head in self.heads]


def says(content: bytes = b"hello", status: str = "200 OK", **headers: str) -> Answer:
    """The same answer to everybody; the connection ends with it."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = [f"HTTP/1.1 {status}", *lines, f"Content-Length: {len(content)}", "Connection: close"]

    async def answer(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join([*head, "", ""]).encode() + content)

    return answer


def leads_to(address: str) -> Answer:
    return says(b"", "302 Found", Location=address)


def never_ends(head: str, first: bytes, again: bytes) -> Answer:
    """A body that goes on until the other side has had enough."""

    async def answer(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode() + first)
        while True:
            writer.write(again)
            await writer.drain()

    return answer


@asynccontextmanager
async def site(
    answer: Answer, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    seen = Site()
    if tls is not None:
        tls.sni_callback = lambda _tls, name, _context: seen.server_names.append(name)

    served: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served[task] = writer
        seen.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                seen.heads.append(head)
                await answer(head, writer)
                await writer.drain()
                if "keep" not in head.split(" ", 2)[1]:
                    break
        writer.close()

    server = await asyncio.start_server(serve, host, port, ssl=tls)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task, writer in served.items():
            task.cancel()
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()
        await asyncio.gather(*served, return_exceptions=True)


class Names:
    """A resolver of names that answers what it is told: each list once, the last one again."""

    def __init__(self, **answers: Iterable[Iterable[str]]) -> None:
        self._answers: Mapping[str, list[list[str]]] = {
            name.replace("_", "."): [list(each) for each in lists]
            for name, lists in answers.items()
        }
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        lists = self._answers[host]
        return lists.pop(0) if len(lists) > 1 else lists[0]


def certificate_for(name: str, directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server of this name needs, and a client that trusts its issuer and nobody else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = directory / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    asking = ssl.create_default_context(
        cadata=made.public_bytes(serialization.Encoding.PEM).decode()
    )
    return serving, asking
