"""The TLS certificate that the listeners show, and its renewal while the gateway runs.

New connections get the newest certificate that could be read; connections that are open keep
theirs. The files are read again when they have changed, and on SIGHUP.
"""

from __future__ import annotations

import asyncio
import math
import os
import ssl
import time
from collections import Counter
from typing import Any

import structlog

from lasthop.runtime.expiry import expiry
from lasthop.runtime.failure import Failure
from lasthop.runtime.listening import tls_context
from lasthop.runtime.settings import Tls

log = structlog.get_logger()

CHECK_EVERY = 10.0
"""Seconds between two looks at the files. A renewed certificate is weeks old before the one that it
replaces ends; a withdrawn authority of clients should not have to wait for minutes."""


class Certificates:
    """The certificate in use, with the authorities of client certificates."""

    def __init__(self, tls: Tls) -> None:
        """Read the files that the settings name; raise `Failure` if they cannot be used."""
        self._tls = tls
        self._seen = _state_of(tls)
        self._reading = asyncio.Lock()
        self.outcomes: Counter[str] = Counter(reloaded=0, failed=0)
        """How often the certificate was read again, by outcome."""
        self._use(*_read(tls, unattended=False))
        self.hop = tls_context(tls)
        """The context of listeners that keep one for as long as they run. Its connections pass to
        the newest certificate with their first message."""
        assert self.hop is not None
        self.hop.sni_callback = self._pass_on

    @classmethod
    def of(cls, tls: Tls) -> Certificates | None:
        """Return the certificates that the settings name, or None if nothing is encrypted."""
        return cls(tls) if tls.cert else None

    async def follow(self) -> None:
        """Read the files again whenever they have changed, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_EVERY)
            await self.reload(changed_only=True)

    async def reload(self, *, changed_only: bool = False) -> None:
        """Read the files again. If they cannot be used, the gateway goes on with what it has."""
        async with self._reading:
            # Files may be on a network, and the disk may be busy: nothing else waits for them.
            state = await asyncio.to_thread(_state_of, self._tls)
            if changed_only and state == self._seen:
                return
            self._seen = state
            try:
                self._use(*await asyncio.to_thread(_read, self._tls, unattended=True))
            except Failure as error:
                self.outcomes["failed"] += 1
                log.error("the TLS certificate stays as it was", why=str(error), ends=self._ends)
            else:
                self.outcomes["reloaded"] += 1
                log.info("the TLS certificate was reloaded", ends=self._ends)

    def _use(self, web: ssl.SSLContext, expires: float) -> None:
        # A new context, not a changed one: it accepts no tickets of sessions whose client was
        # certified by an authority that is no longer trusted.
        self.web = web
        """The context of new HTTPS connections, which are asked for a client's certificate."""
        self.expires = expires
        """When the certificate in use ends, in seconds since 1970; not a number if unknown."""

    def _pass_on(self, connection: ssl.SSLObject, name: str | None, context: object) -> None:
        # This is called for clients that name no server, too.
        connection.context = self.web

    @property
    def _ends(self) -> str:
        if math.isnan(self.expires):
            return "unknown"
        return time.strftime("%Y-%m-%d", time.gmtime(self.expires))


def _read(tls: Tls, *, unattended: bool) -> tuple[ssl.SSLContext, float]:
    context = tls_context(tls, unattended=unattended)
    assert context is not None
    try:
        expires = expiry(context, tls.cert)
    except (OSError, ValueError) as error:
        # Clients that check certificates will not like this one. It takes no other's place, but a
        # gateway that has no other starts with it; `lasthop doctor` says what is wrong.
        if unattended:
            raise Failure(f"cannot use the TLS certificate {tls.cert}: {error}") from None
        expires = math.nan
    if tls.client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(tls.client_ca)
        except OSError as error:
            raise Failure(
                f"cannot use the authorities of client certificates {tls.client_ca}: {error}"
            ) from None
    return context, expires


def _state_of(tls: Tls) -> list[Any]:
    """Return what changes when one of the files is written or replaced."""
    found: list[Any] = []
    for name in (tls.cert, tls.key, tls.client_ca):
        try:
            about = os.stat(name)
        except OSError:  # Also for a file that is not set.
            found.append(None)
        else:
            found.append((about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns))
    return found
