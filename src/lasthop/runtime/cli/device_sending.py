"""Sends the lines of the reference device's standard input, each over the best link according to
the device's preferences, and prints the reason for every decision."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import BinaryIO

import msgspec

from lasthop.core.preferences.encoding import decode_preferences
from lasthop.decision.preferences import Preferences
from lasthop.device.client import Device
from lasthop.device.compose import Options
from lasthop.device.handle import MessageHandle, MessageRefused, Status
from lasthop.device.preferences.explanation import Explanation
from lasthop.device.retry import LinkClosed
from lasthop.device.way import GatewayWay
from lasthop.errors import Conflict, LasthopError
from lasthop.runtime.failure import Failure

AHEAD = 16
"""The number of lines that may be read ahead before the first of them is durable."""

PATIENCE = 2.0
"""The least seconds between two attempts to use a link that has reached a limit."""

LOOK_EVERY = 0.5
"""Seconds between two checks of the waiting messages; the reasons why they wait are printed for
people."""

Write = Callable[[dict[str, object]], None]


class LineOutlet(msgspec.Struct):
    """The target of the lines that the device sends, and the terms of their delivery."""

    target: str
    queue: str | None = None
    expires_in: float | None = None

    def options(self) -> Options:
        """Return the send options that apply to every line."""
        options: Options = {}
        if self.queue is not None:
            options["queue"] = self.queue
        if self.expires_in is not None:
            options["expires_in"] = self.expires_in
        return options


def read_preferences(path: Path) -> Preferences:
    """Read preferences from a JSON file, in the form that the REST interface takes."""
    try:
        return decode_preferences(path.read_bytes())
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    except LasthopError as error:
        raise Failure(f"{path}: {error}") from None


def parse_joins(joins: list[str]) -> list[tuple[str, str]]:
    """Parse the `LABEL=URL` texts of `--join` into labels and addresses of further links."""
    found = []
    for join in joins:
        label, equals, url = join.partition("=")
        if not (label and equals and url):
            raise Failure(f"--join takes LABEL=URL, not {join!r}", exit_code=2)
        found.append((label, url))
    return found


def parse_ways(ways: list[str]) -> list[GatewayWay]:
    """Parse the `URL` and `LABEL=URL` texts of `--way`."""
    found = []
    for way in ways:
        label, equals, url = way.partition("=")
        if equals and ":" not in label:
            found.append(GatewayWay(url, label or None))
        else:
            found.append(GatewayWay(way))
    return found


async def keep_joined(device: Device, label: str, url: str) -> None:
    """Keep one further link open beside the first; while it has reached a limit, wait."""
    while True:
        try:
            await device.join(url, link=label)
        except LinkClosed as closed:
            await asyncio.sleep(max(PATIENCE, closed.retry_after or 0))
            continue
        except Conflict:
            pass  # The device tries it again by itself.
        return


async def send_lines(device: Device, outlet: LineOutlet, write: Write) -> None:
    """Send every line of standard input; return after the end of the input, when the outcome of
    every line is known."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(AHEAD)
    Thread(
        target=_read, args=(sys.stdin.buffer, lines, asyncio.get_running_loop()), daemon=True
    ).start()
    watching = asyncio.create_task(_watch(device, write))
    result_notifier: set[asyncio.Task[None]] = set()
    try:
        while (line := await lines.get()) is not None:
            handle = await device.send(outlet.target, line, **outlet.options())
            task = asyncio.create_task(_report_progress(device, handle, write))
            result_notifier.add(task)
            task.add_done_callback(result_notifier.discard)
        if result_notifier:
            await asyncio.wait(result_notifier)
    finally:
        for task in (watching, *result_notifier):
            task.cancel()


async def _watch(device: Device, write: Write) -> None:
    """Print why messages wait, each time that the reason changes."""
    said: dict[str, str] = {}
    while True:
        await asyncio.sleep(LOOK_EVERY)
        waiting = {held.id: held for held in await device.held_back()}
        for message, held in waiting.items():
            if said.get(message) != str(held):
                write({"held": message, **_because(held)})
        said = {message: str(held) for message, held in waiting.items()}


def _read(
    source: BinaryIO, lines: asyncio.Queue[bytes | None], loop: asyncio.AbstractEventLoop
) -> None:
    """Read lines in a thread that is not waited for at exit: input from a terminal may never
    end."""
    with suppress(RuntimeError):  # The loop is closed: the lines are no longer needed.
        for line in source:
            asyncio.run_coroutine_threadsafe(lines.put(line.rstrip(b"\r\n")), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()


async def _report_progress(device: Device, handle: MessageHandle, write: Write) -> None:
    try:
        await handle.reached(Status.ACCEPTED)
    except MessageRefused as refused:
        write({"refused": handle.id, "reason": refused.reason, "detail": str(refused)})
        return
    explanation = await device.explain(handle)
    about = {} if explanation is None else _because(explanation)
    write({"accepted": handle.id, **about})


def _because(explanation: Explanation) -> dict[str, object]:
    about: dict[str, object] = {"why": [str(reason) for reason in explanation.reasons]}
    if explanation.link is not None:
        about["link"] = explanation.link
    return about
