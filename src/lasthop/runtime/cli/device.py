"""`lasthop device run`: run a device and print the messages that it receives."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from lasthop.decision.policies import POLICIES
from lasthop.device.compose import SubscriptionOptions
from lasthop.runtime import logs
from lasthop.runtime.cli import reference_device
from lasthop.runtime.cli.device_sending import LineOutlet, parse_joins, parse_ways, read_preferences
from lasthop.runtime.cli.options import (
    DEFAULT_APP,
    App,
    Json,
    described,
    new_commands,
)
from lasthop.runtime.cli.reference_device import DevicePlan
from lasthop.runtime.defaults import DEFAULT_TCP
from lasthop.runtime.failure import Failure
from lasthop.transport.schemes import all_schemes

commands = new_commands()


@commands.command(
    "run",
    help=described(
        "Run a device, and print every message that it receives as a line of JSON, until Ctrl-C"
        " or SIGTERM. With --output each line is written to a file exactly once, in order, even"
        " if the device is killed.",
        "lasthop device run --name phone --topic news",
        "lasthop device run --name phone --token TOKEN --output phone.jsonl",
        "lasthop device run --url wss://push.example.org/hop --name phone --token TOKEN",
        "lasthop device run --url https://push.example.org/hop --enc --name phone --token TOKEN",
        "lasthop device run --name phone --url tcps://push.example.org"
        " --way wss://push.example.org/hop --way mno=tcps://mobile.example.org",
        "lasthop device run --name phone --topic news --max 8 --threshold 3 --read-every 60",
        "lasthop device run --name printer --queue jobs --group crew --claim",
        "lasthop device run --name phone --link wifi --join mno=ws://HOST:8080/hop"
        " --preferences preferences.json --send topic:readings --send-queue bulk",
    ),
)
def run(
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the device.")],
    url: Annotated[
        str,
        typer.Option(
            "--url",
            metavar="URL",
            help=f"{all_schemes()}.",
        ),
    ] = f"tcp://{DEFAULT_TCP}",
    app: App = DEFAULT_APP,
    token: Annotated[
        str | None, typer.Option(help="The device's token; left out for a device without one.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(help="Subscribe to this topic; may be repeated.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="Join this group; may be repeated.")
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option(help="Take messages from this queue; may be repeated.")
    ] = None,
    claim: Annotated[
        bool,
        typer.Option(
            "--claim",
            help="Claim messages that can be claimed, and print which device may act on each.",
        ),
    ] = False,
    most: Annotated[
        int | None,
        typer.Option("--max", help="Receive the best N messages of each topic at a time."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Receive only messages of at least this rank.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="on-demand keeps messages until they are read; on-line shows them at once."
        ),
    ] = None,
    interrupt: Annotated[
        float | None, typer.Option(help="Show messages of at least this rank at once.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help=f"What is sent before it is read: {', '.join(POLICIES)}.")
    ] = None,
    storage: Annotated[
        int | None,
        typer.Option(help="The number of unread messages of a topic that the device has room for."),
    ] = None,
    read: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Read the best N messages of each topic, print them, and end."
        ),
    ] = None,
    read_every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Read each topic at this interval.")
    ] = None,
    inbox: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File in which the device remembers its messages; FILE.inbox with --output.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write messages to this file instead of standard output."
        ),
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Make the output survive a loss of power; slow.")
    ] = False,
    streams: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save every stream as a file in this directory."),
    ] = None,
    enc: Annotated[
        bool,
        typer.Option("--enc", help="Use encrypted links only; do not connect without encryption."),
    ] = False,
    ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Trust the authorities in this PEM file instead of the system's."
        ),
    ] = None,
    link: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The kind of the first link: wifi, mno ...")
    ] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=URL", help="Use a further link beside the first; may be repeated."
        ),
    ] = None,
    way: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]URL",
            help="Use this way when those before it do not work; may be repeated.",
        ),
    ] = None,
    preferences: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of preferences as JSON: links, prices, limits and queues, for both"
            " directions.",
        ),
    ] = None,
    send: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="Send each line of standard input to this target, print which link it took and"
            " why, and end.",
        ),
    ] = None,
    send_queue: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE",
            help="The preference queue whose terms apply to the lines that are sent.",
        ),
    ] = None,
    send_expires: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="How long a sent line is worth delivering."),
    ] = None,
    as_json: Json = False,
) -> None:
    logs.configure("info" if sys.stderr.isatty() and not as_json else "warning")
    if claim and output is not None:
        raise Failure(
            "--claim and --output cannot be used together: --claim prints which device may act",
            exit_code=2,
        )
    if send is None and (send_queue is not None or send_expires is not None):
        raise Failure("--send-queue and --send-expires can only be used with --send", exit_code=2)
    if send is not None and read is not None:
        raise Failure(
            "--read and --send cannot be used together: --read ends the device after reading",
            exit_code=2,
        )
    if output is not None and inbox is None:
        inbox = output.with_name(output.name + ".inbox")
    plan = DevicePlan(
        url=url,
        app=app,
        name=name,
        token=token,
        topics=topic or [],
        groups=group or [],
        queues=queue or [],
        claim=claim,
        options=_options(
            max=most, threshold=threshold, mode=mode, interrupt=interrupt, policy=policy
        ),
        storage=storage,
        read=read,
        read_every=read_every,
        link=link,
        enc=enc,
        ca=ca,
        inbox=inbox,
        output=output,
        sync=sync,
        streams=streams,
        preferences=None if preferences is None else read_preferences(preferences),
        joins=parse_joins(join or []),
        ways=parse_ways(way or []),
        outlet=None if send is None else LineOutlet(send, send_queue, send_expires),
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(reference_device.run(plan))


def _options(**given: object) -> SubscriptionOptions:
    """Return the subscription options of the topics: those that were given on the command line."""
    options: SubscriptionOptions = {}
    options.update({name: value for name, value in given.items() if value is not None})  # type: ignore[typeddict-item]
    return options
