"""The same calls through a real gateway, a device that has the service, and a caller.

The gateway and the device are processes with the code that users run, durable on both ends. One
call follows the other; the octets are counted on the link of the device that has the service.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from bench.exchange.callers import CALLERS, Call
from bench.exchange.dissection import BODY, CONTROL, FRAME, dissect
from bench.exchange.host import Host, Over
from bench.exchange.service import binding
from bench.exchange.tap import tapped
from bench.exchange.tcp import HEADERS as TCP_HEADERS
from bench.hop.conversation import Ready
from bench.hop.gateway import Gateway, gateway
from bench.hop.processes import Child, Failed, heed_termination
from lasthop.device.exchange.xml import SOAP_XML, WEFT, XEBU


class Coding(NamedTuple):
    """A form in which messages are sent."""

    kind: str
    """The content type of the coding."""
    profiled: bool = False
    """Whether both ends have learned from samples beforehand."""


CODINGS: Final = {
    "XML": Coding(SOAP_XML),
    "Xebu": Coding(XEBU),
    "Weft": Coding(WEFT),
    "Weft, profile": Coding(WEFT, profiled=True),
}
WARM: Final = 3
"""The number of calls that are not counted: in the first calls devices announce once which codings
they read, and keys have no predecessor."""
SETTLED: Final = 0.5
"""Seconds after which delayed acknowledgements have been sent."""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """Octets a call on the link of the device that has the service."""

    coding: str
    caller: str
    calls: int
    to_device: Mapping[str, float]
    """Octets to the device, by purpose, as `dissection` names it."""
    from_device: Mapping[str, float]
    segments: float
    """TCP segments a call, both ways."""
    opening: int
    """Octets of the connection before the first call (handshake and offer), which no call
    includes."""

    def of(self, part: str) -> float:
        """Return the octets a call of one purpose, in both directions."""
        return self.to_device.get(part, 0.0) + self.from_device.get(part, 0.0)

    @property
    def total(self) -> float:
        """Return all octets a call that were given to TCP."""
        return sum(self.to_device.values()) + sum(self.from_device.values())

    @property
    def headers(self) -> float:
        """Return the octets of the headers of a call and its answer."""
        return self.total - self.of(BODY) - self.of(FRAME) - self.of(CONTROL)

    @property
    def transport(self) -> float:
        """Return the octets that TCP and IP add to a call."""
        return self.segments * TCP_HEADERS


def run(
    *,
    calls: int,
    codings: Iterable[str] = CODINGS,
    callers: Iterable[str] = CALLERS,
    directory: Path | None = None,
    as_json: bool = False,
) -> int:
    """Measure every coding with every caller and print; return the exit status."""
    heed_termination()
    with tempfile.TemporaryDirectory(prefix="lasthop-bench-", dir=directory) as place:
        pairs = [(coding, caller) for caller in callers for coding in codings]
        try:
            rows = [
                measure(coding, caller, calls, Path(place, str(number)))
                for number, (coding, caller) in enumerate(pairs)
            ]
        except Failed as error:
            Console(stderr=True, highlight=False).print(f"lasthop bench: {error}")
            return 1
    if as_json:
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
    else:
        show(rows, Console(width=124, highlight=False))
    return 0


def measure(coding: str, caller: str, calls: int, folder: Path) -> Live:
    """Measure one coding and caller, with a gateway and a device of their own."""
    with gateway(folder) as running:
        return asyncio.run(_measure(coding, caller, calls, running, folder))


async def _measure(coding: str, caller: str, calls: int, running: Gateway, folder: Path) -> Live:
    kind, profiled = CODINGS[coding]
    async with tapped(running.broker.port) as tap:
        inbox = str(folder / "server.db")
        job = Host(port=tap.port, coding=kind, profiled=profiled, inbox=inbox)
        host = Child("bench.exchange.host", job, log=folder / "server.log")
        try:
            await asyncio.to_thread(host.hear, Ready)
            opening = len(tap.to_device) + len(tap.from_device)
            ours = binding(kind, profiled=profiled, accept=[kind])
            async with CALLERS[caller](running, ours, folder) as call:
                await _call(call, range(WARM))
                down, up, segments = len(tap.to_device), len(tap.from_device), tap.segments()
                await _call(call, range(WARM, WARM + calls))
                return Live(
                    coding=coding,
                    caller=caller,
                    calls=calls,
                    to_device=_for_a_call(dissect(bytes(tap.to_device), down), calls),
                    from_device=_for_a_call(dissect(bytes(tap.from_device), up), calls),
                    segments=(tap.segments() - segments) / calls,
                    opening=opening,
                )
        finally:
            host.tell(Over())
            await asyncio.to_thread(host.end)


async def _call(call: Call, serials: Sequence[int]) -> None:
    for serial in serials:
        answered = await call(serial)
        if answered != serial:
            raise Failed(f"answer {answered} came where {serial} was due")
    await asyncio.sleep(SETTLED)


def _for_a_call(octets: Counter[str], calls: int) -> dict[str, float]:
    return {part: count / calls for part, count in octets.items()}


def show(rows: Sequence[Live], console: Console) -> None:
    """Print the octets of a call, and the share of each header."""
    title = f"Octets a call on the link of the service's device, {rows[0].calls} calls"
    table = Table(title=title, title_justify="left")
    table.add_column("caller")
    table.add_column("coding")
    for heading in ("bodies", "headers", "frames", "acks", "together", "TCP/IP"):
        table.add_column(heading, justify="right")
    for row in rows:
        parts = (row.of(BODY), row.headers, row.of(FRAME), row.of(CONTROL), row.total)
        shown = (f"{part:,.0f}" for part in (*parts, row.transport))
        table.add_row(row.caller, row.coding, *shown)
    console.print(table)
    headers = Table(title="Headers of the call + of its answer", title_justify="left")
    headers.add_column("header", no_wrap=True)
    for row in rows:
        headers.add_column(f"{row.caller}\n{row.coding}", justify="right")
    names = sorted({part for row in rows for part in (*row.to_device, *row.from_device)})
    for name in names:
        if name not in {BODY, FRAME, CONTROL}:
            headers.add_row(name, *(_both_ways(row, name) for row in rows))
    console.print(headers)


def _both_ways(row: Live, part: str) -> str:
    return f"{row.to_device.get(part, 0):.0f} + {row.from_device.get(part, 0):.0f}"
