"""Sockets to listen on, opened before anything else happens, so that a port that is taken is said
in one line and nothing is half started."""

from __future__ import annotations

import errno
import socket
import ssl

from lasthop.runtime.failure import Failure
from lasthop.runtime.settings import Tls
from lasthop.runtime.units import ListenAddress

BACKLOG = 4096
"""Devices come back all at once after a restart; the kernel caps this at its own limit."""


def listen(address: ListenAddress) -> socket.socket:
    """A socket bound to this address."""
    try:
        family, _, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise Failure(f"cannot listen on {address}: {error.strerror}") from None
    try:
        return socket.create_server((str(place[0]), address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = "the port is in use; choose another, or 0 to let the system choose"
        else:
            why = error.strerror or str(error)
        raise Failure(f"cannot listen on {address}: {why}") from None


def address_of(listener: socket.socket) -> ListenAddress:
    """Where a socket listens, with the port that the system chose."""
    host, port = listener.getsockname()[:2]
    return ListenAddress.of(host, port)


def tls_context(tls: Tls) -> ssl.SSLContext | None:
    """What encrypts connections; `None` when they are plain."""
    if not tls.cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.cert, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"cannot use the TLS certificate {tls.cert}: {error}") from None
    return context
