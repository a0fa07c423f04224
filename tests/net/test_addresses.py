"""The public Internet is open, what is special is closed, and allowed is only what was said."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import BadSettings
from headway.net.addresses import Address, Allowed, closed_because
from tests.net.kit import V4, V6

# --- which addresses are public


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1",
        "127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.7",
        "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8",
        "::ffff:0:7f00:1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808",
        "100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
        "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "4000::1", "5f00::1", "fc00::1",
        "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "feff::1", "ff02::1",
    ],
)  # fmt: skip
def test_what_is_not_public_is_closed(address: str) -> None:
    assert closed_because(ip_address(address)) is not None


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
        "126.255.255.255", "128.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
        "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::1",
        "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808", "2002:808:808::1",
    ],
)  # fmt: skip
def test_what_is_public_is_open(address: str) -> None:
    assert closed_because(ip_address(address)) is None


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::a00:1", "IPv4 address written as IPv6"),
        ("::ffff:10.0.0.1", "IPv4 address written as IPv6"),
        ("64:ff9b::a00:1", "private"),
        ("64:ff9b:1::1", "private"),
        ("fd00::1", "private"),
        ("fec0::1", "private"),
        ("fe80::1", "link-local"),
        ("ff02::1", "multicast"),
        ("4000::1", "reserved"),
    ],
)
def test_it_is_said_what_a_closed_address_leads_to(address: str, kind: str) -> None:
    assert kind in str(closed_because(ip_address(address)))


JUDGED_INSIDE = [IPv6Network("2002::/16"), IPv6Network("64:ff9b::/96")]


@given(st.one_of(V4, V6))
def test_nothing_is_open_that_the_standard_library_calls_special(address: Address) -> None:
    if any(address in network for network in JUDGED_INSIDE):
        return
    special = (
        not address.is_global
        or address.is_multicast
        or address.is_reserved
        or address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or getattr(address, "is_site_local", False)
    )
    if special:
        assert closed_because(address) is not None


@given(V4)
def test_an_ipv4_address_is_never_more_open_inside_of_ipv6(inner: IPv4Address) -> None:
    number = int(inner)
    written = IPv6Address(0xFFFF << 32 | number), IPv6Address(number)
    carried = (
        IPv6Address(0x64FF9B << 96 | number),
        IPv6Address(0x2002 << 112 | number << 80 | 1),
        IPv6Address(0x20010000 << 96 | 0x08080808 << 64 | (number ^ 0xFFFFFFFF)),
        IPv6Address(0x20010000 << 96 | number << 64 | (0x08080808 ^ 0xFFFFFFFF)),
    )
    assert all(closed_because(address) is not None for address in written)
    assert {closed_because(address) for address in carried} == {closed_because(inner)}


# --- the list of what is allowed


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "covered"),
    [
        ("10.1.0.0/16", "a.example", 80, "10.1.2.3", True),
        ("10.1.0.0/16", "a.example", 80, "10.2.2.3", False),
        ("10.1.0.0/16", "a.example", 80, "::ffff:10.1.2.3", False),
        ("10.1.0.0/16", "a.example", 80, "64:ff9b::a01:203", False),
        ("10.1.2.3", "10.1.2.3", 80, "10.1.2.3", True),
        ("10.1.2.3:81", "a.example", 81, "10.1.2.3", True),
        ("10.1.2.3:81", "a.example", 80, "10.1.2.3", False),
        ("fd00::/8", "a.example", 80, "fd12::1", True),
        ("::1", "localhost", 80, "::1", True),
        ("[::1]:81", "localhost", 81, "::1", True),
        ("[::1]:81", "localhost", 80, "::1", False),
        ("hooks.lan", "hooks.lan", 80, "10.1.2.3", True),
        ("Hooks.LAN.", "hooks.lan", 80, "10.1.2.3", True),
        ("hooks.lan", "HOOKS.lan.", 80, "10.1.2.3", True),
        ("hooks.lan", "evil.hooks.lan", 80, "10.1.2.3", False),
        ("hooks.lan", "hooks.lan.example", 80, "10.1.2.3", False),
        ("hooks.lan:81", "hooks.lan", 81, "10.1.2.3", True),
        ("hooks.lan:81", "hooks.lan", 80, "10.1.2.3", False),
        ("bücher.lan", "xn--bcher-kva.lan", 80, "10.1.2.3", True),
    ],
)
def test_an_entry_allows_what_it_says(
    entry: str, host: str, port: int, address: str, covered: bool
) -> None:
    assert Allowed([entry]).covers(host, port, ip_address(address)) is covered


@pytest.mark.parametrize(
    "entry",
    ["", "10.1.2.3/16", "10.0.0.0/33", "http://hooks.lan", "hooks.lan:0", "hooks.lan:65536",
     "hooks lan", "user@hooks.lan", "*.lan", "[hooks", "1:2:3", "hooks.lan/path", "-"],
)  # fmt: skip
def test_an_entry_that_cannot_be_read_is_refused_with_what_to_write(entry: str) -> None:
    with pytest.raises(BadSettings, match="cannot be allowed"):
        Allowed([entry])
