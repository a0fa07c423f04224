"""What users name is called only where it is public or allowed, on every hop, whatever a name says
the next time; and no answer is longer than what was asked for.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import httpcore2
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.net.addresses import Address, closed_because
from headway.net.outbound import (
    Allowed,
    BodyTooLong,
    Refused,
    _GuardedNetwork,
    check_url,
    guarded_client,
    read_limited,
)
from tests.net.kit import V4, V6, Names, Site, certificate_for, leads_to, never_ends, says, site

T = TypeVar("T")
NOTHING = Allowed()
LONG_S = 20.0  # for what comes at once, unless something is broken


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def in_time() -> T:
        async with asyncio.timeout(LONG_S):
            return await work()

    return asyncio.run(in_time())


async def get(client: httpx2.AsyncClient, url: str, limit_bytes: int = 1_000_000) -> bytes:
    async with client.stream("GET", url) as response:
        return await read_limited(response, limit_bytes)


# --- what is refused at once


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/x", "file:/etc/passwd", "ws://a.example/", "gopher://a.example/",
        "//a.example/x", "a.example", "", "http://", "http:///x", "http://a.example:0/",
        "http://a.example:65536/", "http://a.example:x/", "http://[::1/", "http://a\n.example/",
        "http://127.0.0.1/", "http://[::1]:80/", "http://169.254.169.254/latest/meta-data",
    ],
)  # fmt: skip
def test_an_address_that_can_never_be_called_is_refused_when_it_is_entered(url: str) -> None:
    with pytest.raises(Refused):
        check_url(url, NOTHING)


def test_an_address_that_may_be_called_is_taken() -> None:
    check_url("https://hooks.example/a?b=c", NOTHING)
    check_url("http://8.8.8.8:8080/", NOTHING)
    check_url("http://10.1.2.3/", Allowed(["10.0.0.0/8"]))


@pytest.mark.parametrize(
    "url", ["http://ann:Canary7f3kQz91@a.example/", "http://Canary7f3kQz91@a/"]
)
def test_a_password_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    async def ask() -> None:
        async with guarded_client(NOTHING, resolve=Names()) as client:
            await client.get(url)

    for refuse in (lambda: check_url(url, NOTHING), lambda: run(ask)):
        with pytest.raises(Refused, match="user name or password") as refused:
            refuse()
        assert "Canary" not in repr(refused.value)


# --- the guard


class Recorder(httpcore2.AsyncNetworkBackend):
    """No network at all, but a record of where one would have gone."""

    def __init__(self, dead: Iterable[str] = ()) -> None:
        self.called: list[tuple[str, float | None]] = []
        self._dead = set(dead)

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any
    ) -> httpcore2.AsyncNetworkStream:
        self.called.append((host, timeout))
        if host in self._dead:
            raise httpcore2.ConnectTimeout("it does not answer")
        return httpcore2.AsyncMockStream([])


def guarded(allowed: Allowed, names: Names, recorder: Recorder) -> _GuardedNetwork:
    network = _GuardedNetwork(allowed, names)
    network._network = recorder  # type: ignore[assignment]
    return network


@given(st.lists(st.lists(st.one_of(V4, V6), min_size=1, max_size=4), min_size=1, max_size=4))
def test_whatever_a_name_says_each_time_only_what_was_judged_is_called(
    answers: list[list[Address]],
) -> None:
    names = Names(a_example=[list(map(str, each)) for each in answers])

    async def connect_each_time() -> None:
        for number, each in enumerate(answers, start=1):
            recorder = Recorder()
            public = [str(address) for address in each if closed_because(address) is None]
            network = guarded(NOTHING, names, recorder)
            if public:
                await network.connect_tcp("a.example", 80)
            else:
                with pytest.raises(Refused, match=r"can allow a\.example:80"):
                    await network.connect_tcp("a.example", 80)
            assert [host for host, _ in recorder.called] == public[:1]
            assert len(names.asked) == number  # never a second look

    run(connect_each_time)


def test_the_next_address_is_tried_within_the_same_time_and_never_a_closed_one() -> None:
    recorder = Recorder(dead=["8.8.8.8", "8.8.4.4"])
    names = Names(a_example=[["8.8.8.8", "10.0.0.1", "8.8.4.4", "1.1.1.1"]])
    run(lambda: guarded(NOTHING, names, recorder).connect_tcp("a.example", 80, timeout=9.0))
    assert [host for host, _ in recorder.called] == ["8.8.8.8", "8.8.4.4", "1.1.1.1"]
    first, second, third = (share or 0.0 for _, share in recorder.called)
    assert first == pytest.approx(3.0, abs=0.5)
    assert first <= second <= third <= 9.0


def test_if_none_of_its_addresses_answers_the_last_error_is_raised() -> None:
    recorder = Recorder(dead=["8.8.8.8", "8.8.4.4"])
    network = guarded(NOTHING, Names(a_example=[["8.8.8.8", "8.8.4.4"]]), recorder)
    with pytest.raises(httpcore2.ConnectTimeout):
        run(lambda: network.connect_tcp("a.example", 80, timeout=5.0))


def test_a_refusal_does_not_say_which_address_a_name_has_inside() -> None:
    network = guarded(NOTHING, Names(db_lan=[["10.20.30.40"]]), Recorder())
    with pytest.raises(Refused) as refused:
        run(lambda: network.connect_tcp("db.lan", 80))
    assert "10.20.30.40" not in str(refused.value)
    assert "private network" in str(refused.value)


def test_sockets_of_this_machine_are_refused() -> None:
    with pytest.raises(Refused):
        run(lambda: guarded(NOTHING, Names(), Recorder()).connect_unix_socket("a.sock"))


@pytest.mark.parametrize("answer", [[], OSError("no such name"), ValueError("label too long")])
def test_a_name_that_leads_nowhere_is_a_connection_error(answer: Any) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        if isinstance(answer, Exception):
            raise answer
        return []

    async def ask() -> None:
        async with guarded_client(NOTHING, resolve=resolve) as client:
            await client.get("http://nowhere.example/")

    with pytest.raises(httpx2.ConnectError):
        run(ask)


def test_a_name_that_is_not_looked_up_in_time_is_a_time_out() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    async def ask() -> None:
        async with guarded_client(NOTHING, timeout_s=0.05, resolve=resolve) as client:
            await client.get("http://slow.example/")

    with pytest.raises(httpx2.ConnectTimeout):
        run(ask)


# --- real servers


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "0",
     "[::ffff:127.0.0.1]", "[::127.0.0.1]"],
)  # fmt: skip
def test_loopback_is_not_reached_however_it_is_written(host: str) -> None:
    async def ask() -> Site:
        async with site(says()) as inside, guarded_client(NOTHING) as client:
            with pytest.raises((Refused, httpx2.InvalidURL)):
                await client.get(f"http://{host}:{inside.port}/")
            return inside

    assert run(ask).connections == 0


@pytest.mark.parametrize(
    "entry", ["127.0.0.0/8", "127.0.0.1:{port}", "localhost", "localhost:{port}"]
)
def test_what_is_allowed_is_reached(entry: str) -> None:
    async def ask() -> bytes:
        async with site(says(b"welcome")) as inside:
            allowed = Allowed([entry.format(port=inside.port)])
            host = "localhost" if "localhost" in entry else "127.0.0.1"
            async with guarded_client(allowed) as client:
                return await get(client, f"http://{host}:{inside.port}/")

    assert run(ask) == b"welcome"


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_address_is_reached() -> None:
    async def ask() -> tuple[bytes, str]:
        async with site(says(b"welcome"), host="::1") as inside:
            async with guarded_client(Allowed([f"[::1]:{inside.port}"])) as client:
                said = await get(client, f"http://[::1]:{inside.port}/")
            return said, inside.heads[0]

    said, head = run(ask)
    assert said == b"welcome"
    assert "host: [::1]:" in head.lower()


def test_a_name_that_moves_to_a_closed_address_is_not_followed_there() -> None:
    """Rebinding: harmless when it is judged, something else when it is called."""
    names = Names(hooks_example=[["127.0.0.1"], ["127.0.0.2"]])

    async def ask() -> tuple[Site, Site]:
        async with site(says()) as open_one, site(says(), "127.0.0.2", open_one.port) as inside:
            url = f"http://hooks.example:{open_one.port}/"
            async with guarded_client(Allowed(["127.0.0.1"]), resolve=names) as client:
                assert await get(client, url) == b"hello"
                with pytest.raises(Refused):
                    await client.get(url)
            return open_one, inside

    open_one, inside = run(ask)
    assert (open_one.connections, inside.connections) == (1, 0)
    assert names.asked == ["hooks.example"] * 2  # once for each connection


def test_nothing_below_the_guard_looks_the_name_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[Any] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *rest: Any, **more: Any) -> Any:
        looked_up.append(host)
        return real(host, *rest, **more)

    async def ask() -> bytes:
        names = Names(hooks_example=[["127.0.0.1"]])
        async with site(says()) as inside:
            monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
            async with guarded_client(Allowed(["127.0.0.1"]), resolve=names) as client:
                return await get(client, f"http://hooks.example:{inside.port}/")

    assert run(ask) == b"hello"
    assert "hooks.example" not in looked_up


def test_a_dead_address_of_a_name_is_passed_over() -> None:
    async def ask() -> bytes:
        names = Names(hooks_example=[["127.0.0.9", "127.0.0.1"]])
        async with (
            site(says()) as inside,
            guarded_client(Allowed(["hooks.example"]), resolve=names) as client,
        ):
            return await get(client, f"http://hooks.example:{inside.port}/")

    assert run(ask) == b"hello"


def test_a_connection_is_used_again_without_another_look() -> None:
    names = Names(hooks_example=[["127.0.0.1"], ["10.0.0.1"]])

    async def answer(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def ask() -> int:
        async with site(answer) as inside:
            async with guarded_client(Allowed(["127.0.0.1"]), resolve=names) as client:
                for _ in range(3):
                    assert await get(client, f"http://hooks.example:{inside.port}/keep") == b"ok"
            return inside.connections

    assert run(ask) == 1
    assert len(names.asked) == 1


# --- redirects


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.2:{port}/x", "//127.0.0.2:{port}/x", "http://inside.example:{port}/x",
     "file:/etc/passwd", "ftp://127.0.0.1:{port}/x", "http://a:b@127.0.0.1:{port}/x"],
)  # fmt: skip
def test_a_redirect_to_what_is_closed_is_refused(address: str) -> None:
    async def ask() -> tuple[Site, Site]:
        names = Names(inside_example=[["127.0.0.2"]])
        async with site(says(b"private")) as first:
            port = first.port  # taken again below, by one that leads on
        async with (
            site(leads_to(address.format(port=port)), port=port) as first,
            site(says(b"private"), "127.0.0.2", port) as inside,
            guarded_client(
                Allowed([f"127.0.0.1:{port}"]), max_redirects=5, resolve=names
            ) as client,
        ):
            with pytest.raises(Refused):
                await client.get(f"http://127.0.0.1:{port}/start")
            return first, inside

    first, inside = run(ask)
    assert first.paths == ["/start"]
    assert inside.connections == 0


def test_redirects_are_followed_only_if_asked_for_and_only_so_often() -> None:
    async def answer(head: str, writer: asyncio.StreamWriter) -> None:
        await leads_to("/again")(head, writer)

    async def ask(max_redirects: int) -> tuple[int | str, list[str]]:
        async with site(answer) as first:
            url = f"http://127.0.0.1:{first.port}/"
            async with guarded_client(
                Allowed(["127.0.0.1"]), max_redirects=max_redirects
            ) as client:
                try:
                    return (await client.get(url)).status_code, first.paths
                except httpx2.TooManyRedirects:
                    return "too many", first.paths

    assert run(lambda: ask(0)) == (302, ["/"])
    assert run(lambda: ask(2)) == ("too many", ["/", "/again", "/again"])


def test_the_body_of_a_redirect_is_not_read_however_long_it_is() -> None:
    async def answer(head: str, writer: asyncio.StreamWriter) -> None:
        if "/start" in head:
            endless = never_ends("302 Found\r\nLocation: /end", b"", b"x" * 65_536)
            await endless(head, writer)
        await says(b"here")(head, writer)

    async def ask() -> bytes:
        async with (
            site(answer) as first,
            guarded_client(Allowed(["127.0.0.1"]), max_redirects=1) as client,
        ):
            return await get(client, f"http://127.0.0.1:{first.port}/start")

    assert run(ask) == b"here"


# --- what is not taken from the environment or kept


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> tuple[bytes, Site]:
        async with site(says(b"proxied")) as proxy, site(says(b"direct")) as inside:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            async with guarded_client(Allowed(["127.0.0.1"])) as client:
                return await get(client, f"http://127.0.0.1:{inside.port}/"), proxy

    said, proxy = run(ask)
    assert said == b"direct"
    assert proxy.connections == 0


def test_no_cookie_is_kept() -> None:
    async def ask() -> list[str]:
        async with site(says(Set_Cookie="sid=1; Path=/")) as inside:
            async with guarded_client(Allowed(["127.0.0.1"])) as client:
                for _ in range(2):
                    await client.get(f"http://127.0.0.1:{inside.port}/")
                assert not client.cookies
            return inside.heads

    heads = run(ask)
    assert len(heads) == 2
    assert "cookie" not in "".join(heads).lower()


# --- TLS


def test_tls_asks_for_the_name_and_checks_it_though_an_address_is_called(tmp_path: Path) -> None:
    serving, asking = certificate_for("hooks.example", tmp_path)
    names = Names(hooks_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])

    async def ask() -> Site:
        async with site(says(), tls=serving) as inside:
            allowed = Allowed(["127.0.0.1"])
            async with guarded_client(allowed, verify=asking, resolve=names) as client:
                assert await get(client, f"https://hooks.example:{inside.port}/") == b"hello"
                with pytest.raises(httpx2.ConnectError, match=r"(?i)hostname mismatch"):
                    await client.get(f"https://other.example:{inside.port}/")
            async with guarded_client(allowed, resolve=names) as client:
                with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate verify failed"):
                    await client.get(f"https://hooks.example:{inside.port}/")
            async with guarded_client(allowed, verify=False, resolve=names) as client:
                assert await get(client, f"https://other.example:{inside.port}/") == b"hello"
            return inside

    inside = run(ask)
    assert inside.server_names == [
        f"{name}.example" for name in ("hooks", "other", "hooks", "other")
    ]
    assert len(inside.heads) == 2  # nothing was sent to one that was not trusted


# --- errors are those of httpx2


def test_what_goes_wrong_on_the_way_is_raised_as_by_any_other_client() -> None:
    async def hangs_up(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")

    async def stays_silent(_head: str, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def ask(answer: Any, timeout_s: float = LONG_S) -> None:
        async with (
            site(answer) as inside,
            guarded_client(Allowed(["127.0.0.1"]), timeout_s=timeout_s) as client,
        ):
            await get(client, f"http://127.0.0.1:{inside.port}/")

    async def nobody_there() -> None:
        async with site(says()) as inside:
            port = inside.port
        async with guarded_client(Allowed(["127.0.0.1"])) as client:
            await client.get(f"http://127.0.0.1:{port}/")

    with pytest.raises(httpx2.RemoteProtocolError):
        run(lambda: ask(hangs_up))
    with pytest.raises(httpx2.ReadTimeout):
        run(lambda: ask(stays_silent, timeout_s=0.1))
    with pytest.raises(httpx2.ConnectError):
        run(nobody_there)


# --- how long an answer may be


async def read_from(answer: Any, limit_bytes: int) -> bytes:
    async with site(answer) as inside, guarded_client(Allowed(["127.0.0.1"])) as client:
        return await get(client, f"http://127.0.0.1:{inside.port}/", limit_bytes)


@pytest.mark.parametrize("coding", ["identity", "gzip", "deflate"])
def test_a_body_as_long_as_the_limit_is_read_and_one_byte_more_is_not(coding: str) -> None:
    code = {"identity": bytes, "gzip": gzip.compress, "deflate": zlib.compress}[coding]
    exact, longer = (says(code(b"x" * n), Content_Encoding=coding) for n in (10_000, 10_001))
    assert run(lambda: read_from(exact, 10_000)) == b"x" * 10_000
    with pytest.raises(BodyTooLong, match="10000 bytes"):
        run(lambda: read_from(longer, 10_000))


def test_what_cannot_be_compressed_still_fits_its_limit() -> None:
    noise = Random(0).randbytes(200_000)
    answer = says(gzip.compress(noise, 0), Content_Encoding="gzip")
    assert run(lambda: read_from(answer, len(noise))) == noise


@pytest.mark.parametrize("times", [1, 2])
def test_a_bomb_is_stopped_before_it_fills_the_memory(times: int) -> None:
    bomb, codings = bytes(300_000_000), ["gzip"] * times
    for _ in codings:
        bomb = gzip.compress(bomb, 9)
    answer = says(bomb, Content_Encoding=", ".join(codings))
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLong):
            run(lambda: read_from(answer, 1_000_000))
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()


ENDLESS = {
    "it never ends": ("identity", b"", b"x" * 65_536),
    "it gives nothing": ("deflate", zlib.compress(b"")[:2], b"\0\0\0\xff\xff" * 10_000),
    "its end has passed": ("gzip", gzip.compress(b"all"), b"x" * 65_536),
}


@pytest.mark.parametrize("why", ENDLESS)
def test_an_endless_body_is_stopped_also_if_nothing_comes_out_of_it(why: str) -> None:
    coding, first, again = ENDLESS[why]
    answer = never_ends(f"200 OK\r\nContent-Encoding: {coding}", first, again)
    with pytest.raises(BodyTooLong):
        run(lambda: read_from(answer, 100_000))
