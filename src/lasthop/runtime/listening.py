"""Opens the sockets to listen on before anything else starts, so that a port in use is reported in
one line and nothing is half started."""

from __future__ import annotations

import errno
import socket
import ssl

from lasthop.runtime.failure import Failure
from lasthop.runtime.settings import Tls
from lasthop.runtime.units import ListenAddress

BACKLOG = 4096
"""The length of the queue of new connections. After a restart all devices connect at once; the
kernel may reduce this length to its own limit."""


def listen(address: ListenAddress) -> socket.socket:
    """Return a socket bound to this address; raise `Failure` if that is not possible."""
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
    """Return the address on which a socket listens, with the port that the system chose."""
    host, port = listener.getsockname()[:2]
    return ListenAddress.of(host, port)


def tls_context(tls: Tls, *, unattended: bool = False) -> ssl.SSLContext | None:
    """Return the TLS context of the server, or None if connections are not encrypted.

    OpenSSL asks the terminal for the password of a key that has one, except `unattended`.
    """
    if not tls.cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.cert, tls.key, password=_no_password if unattended else None)
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"cannot use the TLS certificate {tls.cert}: {error}") from None
    return context


def _no_password() -> str:
    raise Failure("cannot use the TLS key: it has a password, and nobody is there to give it")
