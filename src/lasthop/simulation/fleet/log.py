"""The event log of a fleet: many gateways, each with some of the devices and a log of its own.

Devices are independent, so the log of a gateway is made by simulating its devices one after the
other and sorting their events. Every process makes whole gateways.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path

from lasthop.clock import DAY
from lasthop.eventlog.segment import day_of, directory_of
from lasthop.events import SCHEMA_VERSION
from lasthop.simulation.fleet.rehearse import FleetDevice, FleetLogLine
from lasthop.simulation.fleet.world import BEGINS, person

DEVICES_OF_A_GATEWAY = 100


def write_log(
    root: Path,
    *,
    devices: int,
    days: int,
    seed: int = 0,
    policy: str = "unified",
    processes: int = 1,
    progress: Callable[[int], None] = lambda events: None,
) -> int:
    """Write `root/<gateway>/date=.../events-....jsonl`; return the number of events."""
    work = [
        (root, seed, first, min(DEVICES_OF_A_GATEWAY, devices - first), days, policy)
        for first in range(0, devices, DEVICES_OF_A_GATEWAY)
    ]
    if processes == 1:
        return _sum(map(_write_gateway, work), progress)
    context = get_context("forkserver" if sys.platform != "win32" else "spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return _sum(pool.map(_write_gateway, work), progress)


def _sum(counts: Iterable[int], progress: Callable[[int], None]) -> int:
    total = 0
    for count in counts:
        total += count
        progress(total)
    return total


def _write_gateway(work: tuple[Path, int, int, int, int, str]) -> int:
    root, seed, first, count, days, policy = work
    lines: list[FleetLogLine] = []
    for number in range(first, first + count):
        device = FleetDevice(seed, person(seed, number), days, policy=policy, told=None)
        device.live()
        lines.extend(device.lines)
    return write_gateway(root, f"gw-{first // DEVICES_OF_A_GATEWAY:03d}", lines)


def write_gateway(root: Path, gateway: str, lines: list[FleetLogLine]) -> int:
    """Write the log of one gateway from the events of its devices, in order of time; return their
    number."""
    lines.sort(key=attrgetter("t"))  # Stable: events of one moment keep their order.
    head = f'{{"v":{SCHEMA_VERSION},"gw":"{gateway}","boot":1,"n":'
    started = f'{head}0,"t":{BEGINS},"kind":"gateway_started","count":1}}\n'
    day, out = day_of(BEGINS), [started.encode()]
    first, n = 0, 1
    counts: dict[int, int] = {}
    newest: dict[int, int] = {}
    for line in lines:
        if line.t // DAY != day:
            _write_segment(root / gateway, day, first, out)
            day, first, out = line.t // DAY, n, []
        dn = counts.get(line.device, 0)
        counts[line.device] = dn + 1
        if not line.life:
            place = f'{head}{n},"dn":{dn},'
        elif line.begins:
            newest[line.life] = n
            place = f'{head}{n},"dn":{dn},'
        else:
            place = f'{head}{n},"dn":{dn},"prev":{newest[line.life]},'
            newest[line.life] = n
        out.append(place.encode() + line.rest + b"\n")
        n += 1
    _write_segment(root / gateway, day, first, out)
    return n


def _write_segment(log: Path, day: int, first: int, lines: list[bytes]) -> None:
    if lines:
        directory = log / directory_of(day)
        directory.mkdir(parents=True, exist_ok=True)
        name = f"events-{first:020d}.jsonl"
        partial = directory / f".{name}.open"
        partial.write_bytes(b"".join(lines))
        partial.rename(directory / name)
