"""Assembles the carriers of a gateway: everything that reaches devices over the air."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from ipaddress import ip_address

from lasthop.clock import Clock
from lasthop.decision.routes import VARIANTS, Variant
from lasthop.delivery.carrier import Carrier, CarrierKind
from lasthop.delivery.ota.datagrams import Datagrams, bound
from lasthop.delivery.ota.http import HttpCarrier
from lasthop.delivery.ota.sessions import SessionCarrier, invitation_unit
from lasthop.delivery.ota.unit import UnitCarrier
from lasthop.delivery.sms.sms_carrier import Receipts
from lasthop.runtime.alarm import Alarm
from lasthop.runtime.failure import Failure
from lasthop.runtime.listening import address_of, listen
from lasthop.runtime.settings import Ota, Settings
from lasthop.runtime.sms_sending import send_by_sms
from lasthop.runtime.units import ListenAddress
from lasthop.wire.ota.wsp_server import SessionServer
from lasthop.wire.wsp.addresses import Address as ContactPoint
from lasthop.wire.wsp.sir import OTA_HTTP, Sir

TIDS_PER_LIFE = 4099
SESSIONS_PER_LIFE = 1 << 16
"""How many numbers of transactions and sessions are skipped at every start of the gateway, so that
clients do not confuse new transactions and sessions with those that they still remember."""


@asynccontextmanager
async def on_air(
    everything: Settings,
    clock: Clock,
    *,
    boot: int,
    reachable: Callable[[str], None],
    receipts: Receipts,
    others: Mapping[str, CarrierKind],
) -> AsyncIterator[Mapping[str, Carrier]]:
    """Open the carriers by variant, including those of plugins, for as long as the context lasts;
    `reachable` is called with the address of every client that calls, `receipts` with what networks
    say of messages that were sent."""
    settings = everything.ota
    async with AsyncExitStack() as stack:
        out = await Datagrams.open(_bound(settings.source))
        stack.callback(out.close)
        six = ":" in settings.source.host
        sessions, calls = None, None
        if settings.sessions:
            sessions = stack.enter_context(_bound(_address("ota.sessions", settings.sessions)))
        if settings.http:
            calls = stack.enter_context(listen(_address("ota.http", settings.http)))
        invitation = _invitation(settings, sessions, calls)
        invite = partial(_invite, out, invitation) if calls is not None else None
        by_http = HttpCarrier(clock=clock, invite=invite, reachable=reachable)
        stack.callback(by_http.close)
        carriers: dict[str, Carrier] = {
            Variant.WSP: UnitCarrier(
                by_ipv4=None if six else out, by_ipv6=out if six else None, clock=clock
            ),
            Variant.HTTP: by_http,
        }
        if calls is not None:
            server = await asyncio.get_running_loop().create_server(by_http.accept, sock=calls)
            stack.callback(server.close)
        if sessions is not None:
            wsp = await stack.enter_async_context(
                _sessions(sessions, out, invitation, clock, boot=boot, reachable=reachable)
            )
            carriers[Variant.WSP_SESSION] = wsp
        for variant, kind in others.items():
            carrier = await stack.enter_async_context(kind.open(clock, reachable))
            for name in ("carry", "withdraw"):
                if not callable(getattr(carrier, name, None)):
                    raise Failure(f"plugins.carriers: {variant!r} lacks a method {name!r}")
            carriers[variant] = carrier
        if everything.smsc:
            by_sms = send_by_sms(everything.smsc, clock, boot=boot, receipts=receipts)
            carriers[Variant.SMS] = await stack.enter_async_context(by_sms)
        yield carriers


@asynccontextmanager
async def _sessions(
    sock: socket.socket,
    out: Datagrams,
    invitation: Sir,
    clock: Clock,
    *,
    boot: int,
    reachable: Callable[[str], None],
) -> AsyncIterator[SessionCarrier]:
    alarm = Alarm(clock)
    datagrams = await Datagrams.open(sock)
    server = SessionServer(
        first_tid=boot * TIDS_PER_LIFE, first_session=boot * SESSIONS_PER_LIFE % (1 << 31)
    )
    carrier = SessionCarrier(
        server,
        network=datagrams,
        push_network=out,
        invitation=invitation,
        clock=clock,
        wake_at=alarm.ring_at,
        reachable=reachable,
    )
    alarm.ring = carrier.wake
    datagrams.received = carrier.received
    try:
        yield carrier
    finally:
        alarm.stop()
        datagrams.close()


def _invitation(settings: Ota, sessions: socket.socket | None, calls: socket.socket | None) -> Sir:
    """Return the invitation for a client that has to open a session or a connection: it lists all
    contact points of the gateway, so that the client can choose (5.1.2.2.1)."""
    by_wsp = (_contact(settings, sessions),) if sessions is not None else ()
    if calls is None:
        return Sir(wsp_contacts=by_wsp)
    return Sir(
        version=1,
        wsp_contacts=by_wsp,
        other_contacts=(_contact(settings, calls),),
        protocol_options=(OTA_HTTP,),
    )


def _contact(settings: Ota, listener: socket.socket) -> ContactPoint:
    here = address_of(listener)
    try:
        address = ip_address(settings.contact or here.host)
    except ValueError:
        raise Failure(f"ota.contact must be an IP address: {settings.contact!r}") from None
    if address.is_unspecified:
        raise Failure(f"ota.contact is needed: clients cannot be told to connect to {here}")
    return ContactPoint(address.packed, here.port)


def _invite(out: Datagrams, invitation: Sir, host: str) -> None:
    out.send(invitation_unit(invitation, 1), (host, VARIANTS[Variant.WSP].port or 0))


def _address(name: str, text: str) -> ListenAddress:
    try:
        return ListenAddress.parse(text)
    except ValueError as error:
        raise Failure(f"{name}: {error}") from None


def _bound(address: ListenAddress) -> socket.socket:
    try:
        return bound(address.host, address.port)
    except OSError as error:
        why = error.strerror or str(error)
        raise Failure(f"cannot send from {address}: {why}") from None
