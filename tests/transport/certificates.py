"""A certificate authority for one test run, made with the openssl program."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


class Authority:
    """Signs one certificate for localhost, and makes contexts that trust it."""

    def __init__(self, directory: Path) -> None:
        self.certificate = directory / "ca.pem"
        self._key = directory / "server.key"
        self._chain = directory / "server.pem"
        ca_key, request = directory / "ca.key", directory / "server.csr"
        extensions = directory / "extensions"
        # From 3.13 on Python insists on what RFC 5280 asks for.
        extensions.write_text(
            "subjectAltName = DNS:localhost, IP:127.0.0.1\n"
            "subjectKeyIdentifier = hash\n"
            "authorityKeyIdentifier = keyid\n"
            "keyUsage = critical, digitalSignature\n"
        )
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        _openssl(
            "req", "-x509", *curve, "-keyout", ca_key, "-out", self.certificate,
            "-subj", "/CN=lasthop test authority", "-days", "2",
            "-addext", "keyUsage = critical, keyCertSign, cRLSign",
        )  # fmt: skip
        _openssl("req", *curve, "-keyout", self._key, "-out", request, "-subj", "/CN=localhost")
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", ca_key,
            "-CAcreateserial", "-out", self._chain, "-days", "2", "-extfile", extensions,
        )  # fmt: skip

    def server(self) -> ssl.SSLContext:
        """What the gateway shows."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._chain, self._key)
        return context

    def client(self) -> ssl.SSLContext:
        """What a device that trusts this authority checks with."""
        return ssl.create_default_context(cafile=str(self.certificate))


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
