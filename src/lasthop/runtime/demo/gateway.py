"""The demo's gateway: `lasthop up` in a process of its own, with the embedded defaults."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from lasthop.runtime.cli.client import RestClient
from lasthop.runtime.defaults import DEFAULT_HTTP, DEFAULT_TCP
from lasthop.runtime.demo.children import ChildProcess
from lasthop.runtime.failure import Failure
from lasthop.runtime.places import Places

ANY_PORT = "127.0.0.1:0"

START = 60.0
"""Seconds within which the gateway must start."""


class GatewayProcess:
    """The running gateway of the demo, in a process of its own."""

    def __init__(self, child: ChildProcess, places: Places, loaded: asyncio.Event) -> None:
        self._child = child
        self.places = places
        self.policy_loaded = loaded
        """Set when the gateway has loaded a new version of the policies."""

    @classmethod
    async def start(cls, data: Path, *, http: str | None, tcp: str | None) -> GatewayProcess:
        """Start a gateway at these addresses. If none are given, it uses the default ports if they
        are free, and any free ports otherwise."""
        loaded = asyncio.Event()

        def hear(line: str) -> None:
            try:
                said = msgspec.json.decode(line)
            except msgspec.DecodeError:
                said = {}
            if isinstance(said, dict) and said.get("event") == "policy_loaded":
                loaded.set()
            elif not isinstance(said, dict) or said.get("level") in ("error", "critical"):
                print(f"gateway: {line}", file=sys.stderr)

        child = await ChildProcess.start(
            "up",
            "--json",
            "--data",
            str(data),
            "--http",
            http or _free(DEFAULT_HTTP),
            "--tcp",
            tcp or _free(DEFAULT_TCP),
            hear=hear,
        )
        try:
            async with asyncio.timeout(START):
                line = await child.line()
        except TimeoutError:
            await child.stop()
            raise Failure(f"the gateway did not start in {START:.0f} seconds") from None
        except BaseException:
            await child.stop()
            raise
        return cls(child, msgspec.json.decode(line, type=Places), loaded)

    async def stop(self) -> None:
        """Ask the gateway to end, and wait until it has."""
        await self._child.stop()

    async def ended(self) -> str:
        """Wait until the gateway ends without having been told to; return the last line that it
        wrote."""
        await self._child.ended()
        return self._child.last_word

    @property
    def for_devices(self) -> tuple[str, int]:
        """The address to which the links forward the devices' connections."""
        parts = urlsplit(self.places.tcp)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def page(self) -> str:
        """Return the URL of the page to open in a browser: the dashboard, or else the REST
        documentation."""
        with RestClient(self.places.http) as client:
            try:
                client.call("GET", "/dashboard")
            except Failure:
                return f"{self.places.http}/docs"
        return f"{self.places.http}/dashboard"


def _free(address: str) -> str:
    """Return this address if it is free, else one with any port."""
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return ANY_PORT
            raise
    return address
