"""The reference device behind `lasthop device run`: it writes what it receives as JSON lines."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import ssl
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog

from lasthop.clock import SECOND
from lasthop.decision.preferences import Preferences
from lasthop.device.client import Device
from lasthop.device.compose import SubscriptionOptions
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message
from lasthop.device.retry import Backoff
from lasthop.device.runner import HandlerTransaction, Transactional
from lasthop.device.streams import IncomingStream
from lasthop.device.terms import DeviceTerms
from lasthop.device.way import GatewayWay, NoWay, WayDown, WayEvent, WaySuspect, WayUp
from lasthop.errors import Conflict
from lasthop.runtime.cli.device_sending import LineOutlet, keep_joined, send_lines
from lasthop.runtime.cli.output_file import OutputFile
from lasthop.runtime.failure import Failure

READ_PATIENCE = 30.0
"""Seconds in which the device must reach the gateway if it only reads once."""

LONGEST_RETRY = 5.0
"""The longest pause in seconds between two attempts to reach a gateway: short, because a reference
device is mostly used beside a gateway that is being restarted."""

log = structlog.get_logger()


class OutputLine(msgspec.Struct, omit_defaults=True):
    """A message as a line of the output."""

    id: str
    published_at: datetime
    body: str | None = None
    body_base64: str | None = None
    """The body in Base64, when it is not text; None otherwise."""
    content_type: str | None = None
    topic: str | None = None
    title: str | None = None
    priority: int = 4
    rank: float | None = None
    source: str | None = None
    in_reply_to: str | None = None
    redelivered: bool = False
    headers: dict[str, str] = {}
    group: str | None = None
    queue: str | None = None


class DevicePlan(msgspec.Struct, kw_only=True):
    """What the reference device does: its name, address, subscriptions and output."""

    url: str
    app: str
    name: str
    token: str | None
    topics: Sequence[str]
    groups: Sequence[str] = ()
    queues: Sequence[str] = ()
    claim: bool = False
    """Whether to claim messages that can be claimed."""
    options: SubscriptionOptions = {}
    """The terms of the subscriptions; if any are given, the topics are ranked topics."""
    storage: int | None = None
    read: int | None = None
    """The number of messages to read from each topic before the device ends; None to run on."""
    read_every: float | None = None
    """Seconds between two reads of each topic; None for no regular reads."""
    link: str | None
    enc: bool = False
    ca: Path | None = None
    inbox: Path | None
    output: Path | None
    sync: bool
    streams: Path | None = None
    """The directory in which every stream is saved as a file; None to save none."""
    preferences: Preferences | None = None
    """The preferences: which links to use, and what may be spent."""
    joins: Sequence[tuple[str, str]] = ()
    """The labels and addresses of further links."""
    ways: Sequence[GatewayWay] = ()
    """Other ways to the gateway, in order."""
    outlet: LineOutlet | None = None
    """The target of the lines of standard input; None to send nothing."""


def line_of(message: Message) -> bytes:
    """Encode a message as one line of JSON."""
    try:
        text, encoded = message.text, None
    except UnicodeDecodeError:
        text, encoded = None, b64encode(message.body).decode()
    plain = message.content_type.startswith("text/plain")
    answered = message.in_reply_to
    line = OutputLine(
        message.id,
        datetime.fromtimestamp(message.published_at / SECOND, UTC),
        text,
        encoded,
        None if plain else message.content_type,
        message.topic,
        message.title,
        message.priority,
        message.rank or None,
        message.source,
        None if answered is None else f"{answered:016x}",
        message.redelivered,
        message.extra,
        message.group,
        message.queue,
    )
    return msgspec.json.encode(line) + b"\n"


async def run(plan: DevicePlan) -> None:
    """Run the device until a signal ends it or the gateway refuses it."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        inbox = SqliteInbox(plan.inbox) if plan.inbox is not None else None
        output: OutputFile | None = None
        if plan.output is not None and inbox is not None:
            with inbox.transaction() as notes:
                output = OutputFile(plan.output, notes, sync=plan.sync)
            stack.callback(output.close)
        device = await stack.enter_async_context(
            Device(
                plan.url,
                app=plan.app,
                name=plan.name,
                token=plan.token,
                inbox=inbox,
                link=plan.link,
                ways=plan.ways,
                enc=plan.enc,
                tls=_trusting(plan.ca) if plan.ca is not None else None,
                backoff=Backoff(longest=LONGEST_RETRY, random=random.random),
                terms=DeviceTerms(app=plan.app, name=plan.name, storage=plan.storage),
            )
        )
        device.on_way(_log_way)
        device.on_retracted(_print_retracted)
        device.on_withdrawn(_print_withdrawn)
        if output is not None:
            device.transactional(_into(output))
        else:
            device.on_message(_claiming(device) if plan.claim else _print)
        if plan.streams is not None:
            plan.streams.mkdir(parents=True, exist_ok=True)
            device.on_stream(_stream_saver(plan.streams))
        if plan.preferences is not None:
            await device.prefer(plan.preferences)
        for label, url in plan.joins:
            device.background(keep_joined(device, label, url))
        for topic in plan.topics:
            await device.subscribe(topic, **plan.options)
        for group in plan.groups:
            await device.join_group(group)
        for queue in plan.queues:
            await device.consume(queue)
        if plan.read is not None:
            await device.contact(timeout=READ_PATIENCE)
            await _read(device, plan, plan.read)
            return
        await _until_over(device, stop, plan)


def _trusting(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"cannot use the authorities in {ca}: {error}") from None


async def _read(device: Device, plan: DevicePlan, n: int | None) -> None:
    """Read the best messages of every topic, and print them."""
    for topic in plan.topics:
        for message in await device.read(topic, n):
            _print(message)


async def _read_again_and_again(device: Device, plan: DevicePlan) -> None:
    while plan.read_every is not None:
        await asyncio.sleep(plan.read_every)
        await _read(device, plan, None)


async def _until_over(device: Device, stop: asyncio.Event, plan: DevicePlan) -> None:
    stopping: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
    running = asyncio.ensure_future(device.run())
    greeting = asyncio.ensure_future(_say_contact(device))
    reading = asyncio.ensure_future(_read_again_and_again(device, plan))
    tasks = [stopping, running, greeting, reading]
    ends = [stopping, running]
    if plan.outlet is not None:
        sending = asyncio.ensure_future(send_lines(device, plan.outlet, _write))
        tasks.append(sending)
        ends.append(sending)
    try:
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _say_contact(device: Device) -> None:
    await device.contact()
    log.info("in contact with the gateway")


def _claiming(device: Device) -> Callable[[Message], Awaitable[None]]:
    async def show(message: Message) -> None:
        _print(message)
        if message.claimable:
            claim = await device.claim(message)
            _write({"claim": message.id, "granted": claim.granted, "by": claim.by})

    return show


def _stream_saver(directory: Path) -> Callable[[IncomingStream], Awaitable[None]]:
    """Return a handler that saves a stream to a file. A chunk is in the file before the next is
    requested, so that each is there once, even after a crash."""

    async def keep(stream: IncomingStream) -> None:
        path = directory / stream.id
        try:
            with path.open("r+b" if path.exists() else "wb") as file:
                async for chunk in stream:
                    file.seek(stream.position)
                    file.truncate()
                    file.write(chunk)
                    file.flush()
                    os.fsync(file.fileno())
                size = file.tell()
        except Conflict as error:
            _write({"stream": stream.id, "failed": str(error)})
        else:
            _write({"stream": stream.id, "bytes": size, "file": str(path)})

    return keep


def _into(output: OutputFile) -> Transactional:
    def write(message: Message, transaction: HandlerTransaction) -> None:
        output.append(line_of(message), transaction)

    return write


def _log_way(event: WayEvent) -> None:
    match event:
        case WayUp(way):
            log.info("a way works", way=str(way))
        case WaySuspect(way):
            log.warning("the gateway does not answer over a way", way=str(way))
        case WayDown(way, problem):
            log.info("a way is down", way=str(way), problem=problem)
        case NoWay(None, _):
            pass  # No way is tried again: the error that ends the device says why.
        case NoWay(until, problem):
            log.warning("no way works", until=until, problem=problem)


def _print_retracted(message: str, had: bool) -> None:
    _write({"retracted": message, "shown": had})


def _print_withdrawn(topic: str) -> None:
    _write({"withdrawn": topic})


def _write(said: dict[str, object]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


def _print(message: Message) -> None:
    sys.stdout.buffer.write(line_of(message))
    sys.stdout.buffer.flush()
