"""Client certificates: whom a TLS connection belongs to, as doors see it.

uvicorn does not hand them on. ASGI's TLS extension says where an application looks for them, and
that is where they are put.
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
    """HTTP, with the subject of the client's certificate in every request's scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """TLS is there, and the certificate is checked, before the first request."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if tls is not None else None
        self._subject = subject_of(certificate) if certificate else None

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        if self._subject is not None:
            self.scope["extensions"] = {"tls": {"client_cert_name": self._subject}}


def subject_of(certificate: dict[str, Any]) -> str:
    """The subject as RFC 4514 writes it: `CN=initiator,O=Example,C=SE`."""
    names = []
    for rdn in reversed(certificate.get("subject", ())):
        pairs = (f"{_SHORT.get(key, key)}={_SPECIAL.sub(_escaped, value)}" for key, value in rdn)
        names.append("+".join(pairs))
    return ",".join(names)


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]
