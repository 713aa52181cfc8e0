"""What the reference device sends: lines of its standard input, each over the link that its wishes
make the best, with a word about every decision."""

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
from lasthop.errors import Conflict, LasthopError
from lasthop.runtime.failure import Failure

AHEAD = 16
"""Lines that are read before the first of them is durable."""

PATIENCE = 2.0
"""Seconds between two attempts to open a link, and to see that it is still there."""

LOOK_EVERY = 0.5
"""Seconds between two looks at what waits: for people who read along."""

Write = Callable[[dict[str, object]], None]


class LineOutlet(msgspec.Struct):
    """Where lines go."""

    target: str
    queue: str | None = None
    expires_in: float | None = None

    def options(self) -> Options:
        """What is said of every message."""
        options: Options = {}
        if self.queue is not None:
            options["queue"] = self.queue
        if self.expires_in is not None:
            options["expires_in"] = self.expires_in
        return options


def read_preferences(path: Path) -> Preferences:
    """Preferences from a file, as the REST interface takes them."""
    try:
        return decode_preferences(path.read_bytes())
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    except LasthopError as error:
        raise Failure(f"{path}: {error}") from None


def parse_joins(joins: list[str]) -> list[tuple[str, str]]:
    """Further links from `LABEL=URL`."""
    found = []
    for join in joins:
        label, equals, url = join.partition("=")
        if not (label and equals and url):
            raise Failure(f"--join takes LABEL=URL, not {join!r}", exit_code=2)
        found.append((label, url))
    return found


async def keep_joined(device: Device, label: str, url: str) -> None:
    """Have one more link whenever there is contact, unless it has reached a limit."""
    while True:
        await device.contact()
        wait = PATIENCE
        if label not in device.links:
            try:
                await device.join(url, link=label)
            except LinkClosed as closed:
                wait = max(PATIENCE, closed.retry_after or 0)
            except Conflict:
                pass  # Nobody is there, or there was no contact after all.
        await asyncio.sleep(wait)


async def send_lines(device: Device, outlet: LineOutlet, write: Write) -> None:
    """Send every line of the standard input; return at its end, when all of it is settled."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(AHEAD)
    Thread(
        target=_read, args=(sys.stdin.buffer, lines, asyncio.get_running_loop()), daemon=True
    ).start()
    watching = asyncio.create_task(_watch(device, write))
    result_notifier: set[asyncio.Task[None]] = set()
    try:
        while (line := await lines.get()) is not None:
            handle = await device.send(outlet.target, line, **outlet.options())
            task = asyncio.create_task(_tell(device, handle, write))
            result_notifier.add(task)
            task.add_done_callback(result_notifier.discard)
        if result_notifier:
            await asyncio.wait(result_notifier)
    finally:
        for task in (watching, *result_notifier):
            task.cancel()


async def _watch(device: Device, write: Write) -> None:
    """Say why messages wait, whenever there is another reason."""
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
    """In a thread of its own, which nobody waits for: a terminal may never end."""
    with suppress(RuntimeError):  # The loop is closed: nobody wants any more.
        for line in source:
            asyncio.run_coroutine_threadsafe(lines.put(line.rstrip(b"\r\n")), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()


async def _tell(device: Device, handle: MessageHandle, write: Write) -> None:
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
