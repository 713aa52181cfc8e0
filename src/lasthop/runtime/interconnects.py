"""The sockets at which devices connect, besides the HTTP port: they are bound before anything else
starts, and served when everything that a device needs is ready."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import stat
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from lasthop.clock import Clock
from lasthop.delivery.channel import Switchboard
from lasthop.delivery.listener import Listener
from lasthop.runtime.failure import Failure
from lasthop.runtime.listening import address_of, listen
from lasthop.runtime.places import Places
from lasthop.runtime.settings import Settings
from lasthop.transport.schemes import SCHEMES
from lasthop.transport.seqpacket import l2cap_socket

ANY_ADAPTER = "00:00:00:00:00:00"


@dataclass(frozen=True, slots=True)
class Sockets:
    """The bound sockets of a gateway; None for a socket that the settings do not name."""

    http: socket.socket
    tcp: socket.socket
    beep: socket.socket | None
    seqpacket: socket.socket | None
    l2cap: socket.socket | None


def bind(settings: Settings, stack: AsyncExitStack) -> Sockets:
    """Bind the sockets that the settings name; `stack` closes them."""
    enter = stack.enter_context
    beep = settings.beep_listen
    path, psm = settings.seqpacket.path, settings.seqpacket.psm
    return Sockets(
        http=enter(listen(settings.http.listen)),
        tcp=enter(listen(settings.tcp.listen)),
        beep=enter(listen(beep)) if beep is not None else None,
        seqpacket=enter(_unix(Path(path), stack)) if path else None,
        l2cap=enter(_bluetooth(psm)) if psm else None,
    )


async def serve(
    sockets: Sockets,
    switchboard: Switchboard,
    clock: Clock,
    tls: ssl.SSLContext | None,
    stack: AsyncExitStack,
) -> dict[str, Listener]:
    """Accept devices on all sockets except the HTTP port; return the listeners by URL scheme.
    `stack` stops the listeners."""
    listeners: dict[str, Listener] = {}
    for scheme in ("tcp", "beep", "seqpacket", "l2cap"):
        bound = getattr(sockets, scheme)
        if bound is not None:
            listener = SCHEMES[scheme].listener()(switchboard, clock=clock)
            listeners[scheme] = listener
            stack.push_async_callback(listener.stop)
            await listener.start(bound, tls=tls)
    return listeners


def places(settings: Settings, sockets: Sockets, *, first_start: bool) -> Places:
    """Return the URLs of all listeners, for `ports.json` and the greeting."""
    secure = "s" if settings.tls.cert else ""
    http = address_of(sockets.http)
    websocket, requests = settings.http.websocket, settings.http.requests
    beep = sockets.beep
    return Places(
        pid=os.getpid(),
        http=f"http{secure}://{http}",
        tcp=f"tcp{secure}://{address_of(sockets.tcp)}",
        websocket=f"ws{secure}://{http}{websocket}" if websocket else None,
        requests=f"http{secure}://{http}{requests}" if requests else None,
        beep=f"beep{secure}://{address_of(beep)}" if beep is not None else None,
        seqpacket=f"seqpacket:{settings.seqpacket.path}" if sockets.seqpacket else None,
        data=settings.data,
        first_start=first_start,
        open_house=settings.open_house,
    )


def _unix(path: Path, stack: AsyncExitStack) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        _remove_leftover(path)
        bound.bind(str(path))
        path.chmod(0o660)
    except OSError as error:
        bound.close()
        why = "another process listens there" if error.errno == errno.EADDRINUSE else error.strerror
        raise Failure(f"cannot listen on {path}: {why or error}") from None
    stack.callback(path.unlink, missing_ok=True)
    return bound


def _remove_leftover(path: Path) -> None:
    """Remove the socket file of a gateway that was killed, if no process listens on it any more."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def _bluetooth(psm: int) -> socket.socket:
    try:
        bound = l2cap_socket()
    except OSError as error:
        raise Failure(f"cannot listen on L2CAP: {error.strerror}") from None
    try:
        bound.bind((ANY_ADAPTER, psm))
    except OSError as error:
        bound.close()
        raise Failure(f"cannot listen on L2CAP, PSM {psm}: {error.strerror}") from None
    return bound
