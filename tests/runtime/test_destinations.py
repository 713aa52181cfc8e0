"""To which addresses outcomes are reported, however they are written.

About `access/pap/destinations.py` and `runtime/result_notifier.py`.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Any

import pytest

from lasthop.access.pap.destinations import Destinations
from lasthop.errors import LasthopError
from lasthop.runtime.result_notifier import ResultNotifier
from lasthop.wire.pap.answers import AnswerVerdict

PRIVATE = {
    "this machine": "127.0.0.1",
    "this network": "0.0.0.0",
    "a private network": "10.1.2.3",
    "another private network": "192.168.0.1",
    "a third private network": "172.16.0.1",
    "behind a carrier's NAT": "100.64.0.1",
    "a cloud's metadata": "169.254.169.254",
    "multicast": "224.0.0.1",
    "local multicast": "239.255.255.250",
    "broadcast": "255.255.255.255",
    "reserved": "240.0.0.1",
}

FORMS = {
    "itself": "{}",
    "IPv4-mapped": "::ffff:{}",
    "IPv4-compatible": "::{}",
    "IPv4-translated": "::ffff:0:{}",
    "NAT64": "64:ff9b::{}",
    "local NAT64": "64:ff9b:1::{}",
}

ALONE = {
    "unspecified": "::",
    "loopback": "::1",
    "link-local": "fe80::1",
    "link-local with a zone": "fe80::1%lo",
    "site-local": "fec0::1",
    "unique local": "fd00::1",
    "multicast": "ff02::1",
    "6to4 of this machine": "2002:7f00:1::1",
    "6to4 of a private network": "2002:a01:203::1",
    "6to4 of a cloud's metadata": "2002:a9fe:a9fe::",
    "Teredo of this machine": "2001:0:808:808:0:0:80ff:fffe",
    "Teredo by a private server": "2001:0:a01:203:0:0:f7f7:f7f7",
    "documentation": "2001:db8::1",
    "discarded": "100::1",
    "segment routing": "5f00::1",
}

REFUSED = [
    *(form.format(private) for form in FORMS.values() for private in PRIVATE.values()),
    *ALONE.values(),
]

PUBLIC = [
    "8.8.8.8",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]

SPELLINGS = [
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "017700000001",
    "0177.0.0.1",
    "127.1",
    "0",
    "localhost",
    "LOCALHOST",
]


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses to which a connection was opened."""
    opened: list[str] = []

    async def open_connection(host: str, *_: Any, **__: Any) -> Any:
        opened.append(host)
        raise OSError("not in a test")

    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    return opened


class Resolver:
    """What a loop is asked for names."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {}

    async def getaddrinfo(self, host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        return [(0, 0, 0, "", (place, port)) for place in self.names[host]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names and where they lead."""
    resolver = Resolver()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: resolver)
    return resolver.names


def host_of(address: str) -> str:
    return f"[{address.replace('%', '%25')}]" if ":" in address else address


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_is_not_public_is_refused_however_it_is_written(address: str) -> None:
    assert not Destinations().allows(ip_address(address))
    with pytest.raises(LasthopError, match="not reported to private addresses"):
        Destinations().check(f"http://{host_of(address)}/")


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert Destinations().allows(ip_address(address))
    Destinations().check(f"http://{host_of(address)}/")


@pytest.mark.parametrize("address", REFUSED)
async def test_a_name_leads_to_no_address_that_is_refused(
    names: dict[str, list[str]], connected: list[str], address: str
) -> None:
    names["evil.example"] = [address]
    said = await ResultNotifier(Destinations())("http://evil.example/", "application/xml", b"")
    assert said.reason == "evil.example has no address that is allowed"
    assert connected == []


async def test_of_several_addresses_the_connection_goes_to_one_that_was_looked_at(
    names: dict[str, list[str]], connected: list[str]
) -> None:
    names["both.example"] = ["64:ff9b::7f00:1", "127.0.0.1", "8.8.8.8"]
    await ResultNotifier(Destinations())("http://both.example/", "application/xml", b"")
    assert connected == ["8.8.8.8"]


@pytest.mark.parametrize("host", SPELLINGS)
async def test_this_machine_is_not_reached_under_any_spelling(
    connected: list[str], host: str
) -> None:
    said = await ResultNotifier(Destinations())(f"http://{host}:9/", "application/xml", b"")
    assert said.verdict is AnswerVerdict.UNREACHABLE
    assert connected == []


@pytest.mark.parametrize("host", ["localhost.", "127.0.0.1."])
async def test_a_dot_at_the_end_changes_nothing(
    names: dict[str, list[str]], connected: list[str], host: str
) -> None:
    names[host] = ["127.0.0.1"]
    said = await ResultNotifier(Destinations())(f"http://{host}/", "application/xml", b"")
    assert said.reason == f"{host} has no address that is allowed"
    assert connected == []


@pytest.mark.parametrize("host", ["①②⑦.⓪.⓪.①", "127。0。0。1", "١٢٧.0.0.1"])
async def test_digits_of_other_scripts_are_no_host(connected: list[str], host: str) -> None:
    with pytest.raises(LasthopError, match="is too long, or has characters that no URL has"):
        Destinations().check(f"http://{host}/")
