"""Finds when a certificate ends by a TLS handshake in memory: the standard library cannot read that
from a file that is not an authority's."""

from __future__ import annotations

import ssl

_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python has no name for: a certificate that has ended
still says when."""


def expiry(server: ssl.SSLContext, trusted: str) -> float:
    """Return when the server's certificate ends, in seconds since 1970.

    A client that trusts exactly this certificate makes a handshake in memory. An `SSLError` says
    what is wrong with the certificate.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(trusted)
    # Trust the certificate itself, whoever has signed it.
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.verify_flags &= ~ssl.VERIFY_X509_STRICT
    client.verify_flags |= _NO_CHECK_TIME
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [ours, theirs]
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
        if not waiting:
            break
    certificate = ours.getpeercert()
    if not certificate:
        raise ssl.SSLError("the TLS handshake did not show the certificate")
    return ssl.cert_time_to_seconds(str(certificate["notAfter"]))
