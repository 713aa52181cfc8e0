"""What a run may find on a machine or not: certificates, a disk that can be filled, Node.

What is missing is left out of the run, and named in its report.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import lasthop
from lasthop.runtime.failure import Failure

JAVASCRIPT_DEVICE = Path(lasthop.__file__).parents[2] / "sdk/javascript/examples/to-file.js"
"""The JavaScript device of this repository; an installed package has none."""

CERTIFICATE_REQUEST = (
    *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
    *("-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
)


def node() -> str:
    """Return the path of Node; raise `Failure` if the JavaScript device cannot run."""
    program = shutil.which("node")
    if program is None:
        raise Failure("chaos needs Node.js for the device in JavaScript: install the program node")
    if not JAVASCRIPT_DEVICE.exists():
        raise Failure("the JavaScript SDK is only in the repository")
    return program


async def make_certificate(directory: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that signs itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise Failure("there is no openssl, which makes the certificate")
    cert, key = directory / "cert.pem", directory / "key.pem"
    process = await asyncio.create_subprocess_exec(
        openssl,
        *CERTIFICATE_REQUEST,
        "-keyout",
        str(key),
        "-out",
        str(cert),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode != 0:
        raise Failure(f"openssl made no certificate: {said.decode(errors='replace').strip()}")
    return cert, key
