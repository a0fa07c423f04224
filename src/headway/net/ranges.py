"""Which addresses are the public Internet, and which others an operator has opened.

The standard library only, and nothing of Headway: programs that run on their own, such as the one
that calls yt-dlp, load this file by its path and judge by the same table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


# ---------------------------------------------------------------------- which addresses are public

_PRIVATE = "a private network"
_RESERVED = "a reserved range"
_DOCUMENTATION = "a range for documentation"
_LINK_LOCAL = "a link-local network"
_MULTICAST = "a multicast group"

# Written out, since what the standard library calls global differs between its versions.
_CLOSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", _PRIVATE),
        ("100.64.0.0/10", "a carrier's own network"),
        ("127.0.0.0/8", "this machine (loopback)"),
        ("168.63.129.16/32", "a cloud host's own service"),
        ("169.254.0.0/16", _LINK_LOCAL),
        ("172.16.0.0/12", _PRIVATE),
        ("192.0.0.0/24", _RESERVED),
        ("192.0.2.0/24", _DOCUMENTATION),
        ("192.88.99.0/24", _RESERVED),
        ("192.168.0.0/16", _PRIVATE),
        ("198.18.0.0/15", _RESERVED),
        ("198.51.100.0/24", _DOCUMENTATION),
        ("203.0.113.0/24", _DOCUMENTATION),
        ("224.0.0.0/4", _MULTICAST),
        ("240.0.0.0/4", _RESERVED),
        ("::/128", "an unspecified address"),
        ("::1/128", "this machine (loopback)"),
        ("::/96", "an IPv4 address written as IPv6"),
        ("::ffff:0:0/96", "an IPv4 address written as IPv6"),
        ("64:ff9b:1::/48", _PRIVATE),
        ("2001::/23", _RESERVED),
        ("2001:db8::/32", _DOCUMENTATION),
        ("3fff::/20", _DOCUMENTATION),
        ("fc00::/7", _PRIVATE),
        ("fe80::/10", _LINK_LOCAL),
        ("fec0::/10", _PRIVATE),
        ("ff00::/8", _MULTICAST),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")  # of the rest of IPv6 nothing is in use
_NAT64 = IPv6Network("64:ff9b::/96")


def closed_because(address: Address) -> str | None:
    """What it leads to, if that is not the public Internet. None: it is."""
    if isinstance(address, IPv6Address):
        carried = _carried(address)
        if carried:  # it goes where the IPv4 address in it goes
            return next(filter(None, map(closed_because, carried)), None)
    for network, kind in _CLOSED:
        if address in network:
            return kind
    return _RESERVED if address.version == 6 and address not in _PUBLIC_V6 else None


def _carried(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses inside, where a translator or a tunnel would take them out."""
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()


# ---------------------------------------------------------------------- what is allowed beside them

_PLACE = re.compile(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::([0-9]{1,5}))?")
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")


class Allowed:
    """What may be called although it is not public: ranges of addresses ("10.1.0.0/16"), names, and
    either with a port ("hooks.lan:8080", "127.0.0.1:9000", "[::1]:9000"). A name opens whatever
    addresses it has, so allow only those whose records you trust.
    """

    error: type[ValueError] = ValueError

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries = tuple(dict.fromkeys(entry.strip() for entry in entries))
        self._networks: list[tuple[Network, int | None]] = []
        self._names: set[tuple[str, int | None]] = set()
        for entry in self._entries:
            try:
                self._open(entry)
            except ValueError as error:
                raise self.error(f"{entry!r} cannot be allowed: {error}") from None

    @property
    def entries(self) -> tuple[str, ...]:
        """As they were written."""
        return self._entries

    def _open(self, entry: str) -> None:
        host, port = _host_and_port(entry)
        network = _network(host)
        if network is not None:
            self._networks.append((network, port))
            return
        name = self.ascii_name(host).rstrip(".")
        if _NAME.fullmatch(name) is None:
            raise ValueError(
                "write a range of addresses (10.1.0.0/16), a host name, "
                "or one of them with a port (hooks.lan:8080)"
            )
        self._names.add((name, port))

    @staticmethod
    def ascii_name(host: str) -> str:
        """A name as it stands in a request; "" if it cannot stand there."""
        try:
            return host.encode("idna").decode("ascii").lower()
        except UnicodeError:
            return ""

    def covers(self, host: str, port: int, address: Address) -> bool:
        """Whether this address, under this name, is allowed at this port."""
        name = host.lower().rstrip(".")
        return not self._names.isdisjoint({(name, None), (name, port)}) or any(
            address in network and only in (None, port) for network, only in self._networks
        )

    def __repr__(self) -> str:
        return f"Allowed({list(self._entries)!r})"


def _host_and_port(entry: str) -> tuple[str, int | None]:
    found = _PLACE.fullmatch(entry)
    if found is None:
        return entry, None  # an IPv6 address without brackets, or nothing that can be read
    port = None if found[3] is None else int(found[3])
    if port is not None and not 1 <= port <= 65_535:
        raise ValueError("a port is from 1 to 65535")
    return found[1] or found[2], port


def _network(host: str) -> Network | None:
    try:
        return ip_network(host)
    except ValueError:
        if "/" not in host:
            return None
        raise
