"""Fetches the keys of issuers beside the event loop: at the start, regularly, and when a token has
a key that is not known. Each answer is bounded in size and time, and no redirect is followed."""

from __future__ import annotations

import asyncio
import ssl
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import structlog

from lasthop.access.pap.destinations import is_public
from lasthop.clock import SECOND, Clock, Micros
from lasthop.errors import InvalidRequest, LasthopError
from lasthop.runtime.issuers.issuer_keys import MAX_BYTES, KeySet, read_keys
from lasthop.runtime.issuers.verifying import Issuer, TrustedIssuers
from lasthop.runtime.settings.issuers import IssuerSettings
from lasthop.transport.http import HttpFailure, IpAddress, get

TIMEOUT = 10.0
"""Seconds that one answer of an issuer may take."""

BETWEEN: Micros = 30 * SECOND
"""The least time between two fetches that tokens with unknown keys cause: anybody can send such
tokens."""

AGAIN = 5.0
"""Seconds after a failed fetch until the next; each further failure doubles them."""

__all__ = ["IssuerWeb", "KeyFetcher", "TrustedIssuers"]

WELL_KNOWN = "/.well-known/openid-configuration"

log = structlog.get_logger()


class Discovered(msgspec.Struct):
    """The discovery document of an issuer (OpenID Connect Discovery 1.0, 3), as far as it is
    used."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    end_session_endpoint: str = ""
    code_challenge_methods_supported: list[str] = []
    names_issuer: bool = msgspec.field(
        default=False, name="authorization_response_iss_parameter_supported"
    )
    """Whether answers that come by a browser name the issuer (RFC 9207)."""


class KeyFetcher:
    """Keeps the keys of one issuer up to date."""

    def __init__(self, issuer: Issuer, clock: Clock) -> None:
        self.issuer = issuer
        self.discovered: Discovered | None = None
        """The issuer's document, where it is used."""
        self._clock = clock
        self._poked = asyncio.Event()
        self._tried = asyncio.Event()
        self._fetching = False
        self._last: Micros | None = None
        self._failures = 0
        self.web = IssuerWeb(issuer.settings.ca)
        issuer.wanted = self._wanted

    def _wanted(self) -> bool:
        """Fetch the keys soon, unless that was done just now; whether they are on their way."""
        if self._last is not None and self._clock.now() - self._last < BETWEEN:
            return self._fetching
        self._poked.set()
        return True

    async def follow(self) -> None:
        """Fetch the keys again and again, until cancelled."""
        while True:
            self._poked.clear()
            await self.fetch()
            pause = self.issuer.settings.refresh.seconds
            if self._failures:
                pause = min(pause, AGAIN * 2 ** min(self._failures - 1, 10))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._poked.wait(), pause)

    async def fetch(self) -> None:
        """Fetch the keys once. Without an answer, those that are known stay."""
        issuer, settings = self.issuer, self.issuer.settings
        self._fetching, self._last = True, self._clock.now()
        try:
            document = await self._document()
            # A hundred keys of RSA take a while.
            keys = await asyncio.to_thread(read_keys, document, settings.algorithms)
        except (LasthopError, HttpFailure, OSError, ValueError) as error:
            self._failures += 1
            issuer.problem = str(error)
            log.warning("issuer_keys_not_fetched", issuer=settings.name, reason=issuer.problem)
        else:
            self._note(keys)
        finally:
            self._fetching = False
            self._tried.set()

    async def tried(self) -> None:
        """Wait until the keys were fetched once, or could not be."""
        await self._tried.wait()

    def _note(self, keys: KeySet) -> None:
        if self._failures or self.issuer.problem:
            log.info("issuer_keys", issuer=self.issuer.settings.name, keys=len(keys))
        self._failures = 0
        self.issuer.took(keys, self._clock.now())

    async def _document(self) -> bytes:
        settings = self.issuer.settings
        place = settings.keys
        if not place or settings.client_id:
            found = await self.web.discover(settings.url)
            _check_client(settings, found)
            self.discovered, place = found, place or found.jwks_uri
        if not place.startswith(("https://", "http://")):
            return await asyncio.to_thread(_read, Path(place))
        return await self.web.fetch(place)


class IssuerWeb:
    """Asks the servers of one issuer."""

    def __init__(self, ca: str) -> None:
        self._ca = ca
        self._tls: ssl.SSLContext | None = None
        self._public = False
        """Whether the issuer is on the internet: its documents then lead nowhere else."""

    async def discover(self, url: str) -> Discovered:
        """Return the discovery document of an issuer."""
        public: list[bool] = []

        def note(address: IpAddress) -> bool:
            public.append(is_public(address))
            return True

        document = await self.fetch(url.rstrip("/") + WELL_KNOWN, note)
        self._public = all(public)
        try:
            found = msgspec.json.decode(document, type=Discovered)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"its discovery document cannot be read: {error}") from None
        # Discovery 1.0, section 4.3: to the letter.
        if found.issuer != url:
            raise InvalidRequest(
                "its discovery document is another issuer's", issuer=found.issuer[:200]
            )
        check_leads(url, found.jwks_uri)
        return found

    async def tls(self, url: str) -> ssl.SSLContext | None:
        """Return the context of connections to a URL of the issuer; None if it has no TLS."""
        if self._tls is None and url.startswith("https:"):
            self._tls = await asyncio.to_thread(_tls, self._ca)
        return self._tls

    async def fetch(self, url: str, allowed: Callable[[IpAddress], bool] | None = None) -> bytes:
        """Return what is at a URL; raise `HttpFailure`."""
        answer = await get(
            url,
            [("Accept", "application/json"), ("User-Agent", "lasthop")],
            timeout=TIMEOUT,
            limit=MAX_BYTES,
            allowed=allowed or self.allows,
            tls=await self.tls(url),
        )
        if answer.status != 200:
            raise HttpFailure(f"{_host(url)} answers with the status {answer.status}", sent=True)
        return answer.body

    def allows(self, address: IpAddress) -> bool:
        """Whether the issuer's documents may lead to an address: nowhere inside from outside."""
        return is_public(address) or not self._public


def _check_client(settings: IssuerSettings, found: Discovered) -> None:
    """Raise `InvalidRequest` if people shall sign in at an issuer, and its document does not say
    how."""
    if not settings.client_id:
        return
    if not found.authorization_endpoint or not found.token_endpoint:
        raise InvalidRequest("its discovery document does not say where people sign in")
    for url in (found.authorization_endpoint, found.token_endpoint, found.end_session_endpoint):
        if url:
            check_leads(settings.url, url)


def check_leads(issuer: str, url: str) -> None:
    """Raise `InvalidRequest` if a document of an issuer leads to a place without TLS, while the
    issuer has TLS."""
    scheme = urlsplit(url).scheme
    if scheme != "https" and not (scheme == "http" and issuer.startswith("http://")):
        raise InvalidRequest("its discovery document leads to a place without TLS", url=url[:200])


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _tls(ca: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca or None)


def _read(path: Path) -> bytes:
    """Return the content of a file of limited size; not of a device or a pipe."""
    with path.open("rb") as file:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InvalidRequest(f"{path} is no file")
        return file.read(MAX_BYTES + 1)
