"""`lasthop device run`: be a device."""

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
from lasthop.runtime.cli.device_sending import LineOutlet, parse_joins, read_preferences
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
        "Be a device: print every message as a line of JSON, until Ctrl-C or SIGTERM. With --output"
        " each line is written to a file exactly once, in order, also across kill -9.",
        "lasthop device run --name phone --topic news",
        "lasthop device run --name phone --token TOKEN --output phone.jsonl",
        "lasthop device run --url wss://push.example.org/hop --name phone --token TOKEN",
        "lasthop device run --url https://push.example.org/hop --enc --name phone --token TOKEN",
        "lasthop device run --name phone --topic news --max 8 --threshold 3 --read-every 60",
        "lasthop device run --name printer --queue jobs --group crew --claim",
        "lasthop device run --name phone --link wifi --join mno=ws://HOST:8080/hop"
        " --preferences wishes.json --send topic:readings --send-queue bulk",
    ),
)
def run(
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The device's name.")],
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
        str | None, typer.Option(help="The device's own; none if it has none.")
    ] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Subscribe to it; repeatable.")] = None,
    group: Annotated[list[str] | None, typer.Option(help="Join it; repeatable.")] = None,
    queue: Annotated[list[str] | None, typer.Option(help="Take from it; repeatable.")] = None,
    claim: Annotated[
        bool, typer.Option("--claim", help="Claim what can be claimed, and say who may act on it.")
    ] = False,
    most: Annotated[
        int | None, typer.Option("--max", help="Of each topic the best N at a time.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Only messages that rank at least so high.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="on-demand: kept until they are read; on-line: shown.")
    ] = None,
    interrupt: Annotated[
        float | None, typer.Option(help="What ranks so high is shown at once.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help=f"What is sent ahead of a read: {', '.join(POLICIES)}.")
    ] = None,
    storage: Annotated[
        int | None, typer.Option(help="Unread messages of a topic that fit here.")
    ] = None,
    read: Annotated[
        int | None,
        typer.Option(metavar="N", help="Read the best N of each topic, print them, and end."),
    ] = None,
    read_every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Read each topic so often.")
    ] = None,
    inbox: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Durable memory; with --output it is FILE.inbox."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write messages here instead.")
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Let the output survive a loss of power; slow.")
    ] = False,
    streams: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep every stream as a file in here.")
    ] = None,
    enc: Annotated[
        bool, typer.Option("--enc", help="Speak over encrypted links only, or not at all.")
    ] = False,
    ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Trust the authorities in this PEM file instead."),
    ] = None,
    link: Annotated[
        str | None, typer.Option(metavar="LABEL", help="What it is connected by: wifi, mno ...")
    ] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL=URL", help="One more link beside the first; repeatable."),
    ] = None,
    preferences: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Links, prices, limits and queues as JSON, for both directions.",
        ),
    ] = None,
    send: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="Send each line of standard input there, say which link it took and why, and end.",
        ),
    ] = None,
    send_queue: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="Whose terms hold for what is sent.")
    ] = None,
    send_expires: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="After which nobody shall get it any more."),
    ] = None,
    as_json: Json = False,
) -> None:
    logs.configure("info" if sys.stderr.isatty() and not as_json else "warning")
    if claim and output is not None:
        raise Failure(
            "--claim says who may act on a message, and does not go with --output", exit_code=2
        )
    if send is None and (send_queue is not None or send_expires is not None):
        raise Failure("--send-queue and --send-expires say more about --send", exit_code=2)
    if send is not None and read is not None:
        raise Failure("--read ends the device, and does not go with --send", exit_code=2)
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
        outlet=None if send is None else LineOutlet(send, send_queue, send_expires),
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(reference_device.run(plan))


def _options(**given: object) -> SubscriptionOptions:
    """What was asked of the topics."""
    options: SubscriptionOptions = {}
    options.update({name: value for name, value in given.items() if value is not None})  # type: ignore[typeddict-item]
    return options
