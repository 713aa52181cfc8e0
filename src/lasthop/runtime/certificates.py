"""Passes the subjects of TLS client certificates on to the doors, which uvicorn does not do.

The subjects are put where ASGI's TLS extension tells applications to look for them.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL = re.compile(r'([,+"\\<>;=]|^[ #]| $)')


class CertifiedProtocol(HttpToolsProtocol):
    """HTTP with the subject of the client's certificate in the scope of every request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember the subject of the client's certificate: TLS has checked it before the first
        request."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if tls is not None else None
        self._subject = subject_of(certificate) if certificate else None

    def on_message_begin(self) -> None:
        """Put the subject of the client's certificate into the scope of the request that begins."""
        super().on_message_begin()
        if self._subject is not None:
            self.scope["extensions"] = {"tls": {"client_cert_name": self._subject}}


def subject_of(certificate: dict[str, Any]) -> str:
    """Return the certificate's subject as RFC 4514 writes it: `CN=initiator,O=Example,C=SE`."""
    names = []
    for rdn in reversed(certificate.get("subject", ())):
        pairs = (f"{_SHORT.get(key, key)}={_SPECIAL.sub(_escaped, value)}" for key, value in rdn)
        names.append("+".join(pairs))
    return ",".join(names)


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]
