"""Connectionless pushes: one datagram each, over real sockets too."""

from __future__ import annotations

import asyncio
import socket

import pytest

from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import NeedsMore, NotReached, Outcome, Parcel, Sent, Spent, Unfit
from lasthop.delivery.ota.datagrams import Datagrams, Endpoint, bound
from lasthop.delivery.ota.unit import UnitCarrier
from lasthop.wire.wsp.pdus import Push, decode_unit

pytestmark = pytest.mark.anyio

W1 = bytes.fromhex(
    "010603aeaf8203056a0045c60d0378797a008503656d61696c2f3132332f6162632e776d6c000ac3071999062515"
    "231510c304199906300103596f7520686176652034206e657720656d61696c73000101"
)
SI = b"""<?xml version="1.0"?>
<!DOCTYPE si PUBLIC "-//WAPFORUM//DTD SI 1.0//EN" "http://www.wapforum.org/DTD/si.dtd">
<si><indication href="http://www.xyz.com/email/123/abc.wml" created="1999-06-25T15:23:15Z"
 si-expires="1999-06-30T00:00:00Z">You have 4 new emails</indication></si>"""


class StoppedClock:
    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        return self._now


class Air:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, Endpoint]] = []

    def send(self, data: bytes, to: Endpoint) -> None:
        self.sent.append((data, to))


def parcel(body: bytes = SI, media: str = "text/vnd.wap.si", **fields: object) -> Parcel:
    route = fields.pop("route", Route(Variant.WSP, "127.0.0.1"))
    headers = fields.pop("headers", ())
    return Parcel(route=route, content_type=media, headers=headers, body=body, **fields)  # type: ignore[arg-type]


def carried(carrier: UnitCarrier, what: Parcel) -> Outcome:
    outcomes: list[Outcome] = []
    carrier.carry(what, outcomes.append)
    (outcome,) = outcomes
    return outcome


def test_nothing_leaves_that_needs_more_than_was_reserved() -> None:
    air = Air()
    carrier = UnitCarrier(by_ipv4=air, by_ipv6=None, clock=StoppedClock())
    assert carried(carrier, parcel(most=Spent(80, 1))) == NeedsMore(Spent(81, 1))
    assert carried(carrier, parcel(most=Spent(81, 0))) == NeedsMore(Spent(81, 1))
    assert carried(carrier, parcel(most=Spent(81, 1))) == Sent(spent=Spent(81, 1))


@pytest.mark.conformance("PPG-GEN-S-011", "PPG-GEN-S-018", "PPG-GEN-S-021", "PPG-GEN-S-022")
def test_a_service_indication_leaves_as_the_worked_example_has_it() -> None:
    air = Air()
    carrier = UnitCarrier(by_ipv4=air, by_ipv6=None, clock=StoppedClock())
    assert carried(carrier, parcel()) == Sent(spent=Spent(81, 1))
    assert air.sent == [(W1, ("127.0.0.1", 2948))]


def test_transaction_numbers_go_round() -> None:
    air = Air()
    carrier = UnitCarrier(by_ipv4=air, by_ipv6=None, clock=StoppedClock())
    for _ in range(600):
        carried(carrier, parcel(b"x", "text/plain"))
    assert [data[0] for data, _ in air.sent] == [n % 256 for n in range(1, 601)]


@pytest.mark.parametrize(
    "what, code",
    [
        (parcel(b"<si>"), 3006),
        (parcel(b"x", "nonsense"), 3006),
        (parcel(b"x" * 65_600, "text/plain"), 3006),
        (parcel(b"x", "text/plain", headers=(("A\0", "b"),)), 3006),
    ],
)
def test_what_has_no_form_on_the_air_never_leaves(what: Parcel, code: int) -> None:
    air = Air()
    outcome = carried(UnitCarrier(by_ipv4=air, by_ipv6=None, clock=StoppedClock()), what)
    assert isinstance(outcome, Unfit)
    assert outcome.code == code
    assert air.sent == []


def test_nothing_leaves_after_its_time_or_without_a_network() -> None:
    air = Air()
    carrier = UnitCarrier(by_ipv4=air, by_ipv6=None, clock=StoppedClock(5))
    assert isinstance(carried(carrier, parcel(deliver_before=5)), NotReached)
    six = Route(Variant.WSP, "2001:db8::1")
    assert carried(carrier, parcel(route=six)) == NotReached(
        "the gateway has no network of this address family"
    )
    assert air.sent == []


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_real_socket_gets_it(host: str) -> None:
    if host == "::1" and not socket.has_ipv6:
        pytest.skip("no IPv6")
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    sink = await Datagrams.open(bound(host, 0), lambda data, _: arrived.put_nowait(data))
    assert sink._transport is not None
    port = sink._transport.get_extra_info("sockname")[1]
    source = await Datagrams.open(bound(host, 0))
    carrier = UnitCarrier(by_ipv4=source, by_ipv6=source, clock=StoppedClock())
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    assert isinstance(carried(carrier, parcel(route=Route(Variant.WSP, address))), Sent)
    async with asyncio.timeout(5):
        transaction, pdu = decode_unit(await arrived.get())
    assert transaction == 1
    assert isinstance(pdu, Push)
    assert pdu.content_type == "application/vnd.wap.sic"
    source.close()
    sink.close()
    await asyncio.sleep(0)


async def test_what_the_kernel_does_not_take_waits_in_order() -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    sink = await Datagrams.open(bound("127.0.0.1", 0), lambda data, _: arrived.put_nowait(data))
    assert sink._transport is not None
    to = sink._transport.get_extra_info("sockname")
    source = await Datagrams.open(bound("127.0.0.1", 0))
    source.pause_writing()
    source.send(b"one", to)
    source.send(b"two", to)
    source.resume_writing()
    source.send(b"three", to)
    async with asyncio.timeout(5):
        assert [await arrived.get() for _ in range(3)] == [b"one", b"two", b"three"]
    source.close()
    sink.close()
    await asyncio.sleep(0)
