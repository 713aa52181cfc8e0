"""The `enc` feature: a device only speaks over encrypted links, to a gateway whose certificate was
checked."""

from __future__ import annotations

import ssl

from lasthop.errors import InvalidRequest
from lasthop.transport.address import GatewayAddress
from lasthop.transport.schemes import secure_schemes


def insist(address: GatewayAddress, tls: ssl.SSLContext | None) -> None:
    """Raise InvalidRequest unless the address is encrypted and the TLS context checks certificates.

    Without a TLS context the default one is used, which checks everything.
    """
    if not address.secure:
        raise InvalidRequest(
            f"the device speaks over encrypted links only: {secure_schemes()}",
            address=address.url,
        )
    if tls is not None and not (tls.verify_mode is ssl.CERT_REQUIRED and tls.check_hostname):
        raise InvalidRequest("the TLS context does not check the gateway's certificate and name")
