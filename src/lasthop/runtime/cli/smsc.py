"""`lasthop smsc`: a small SMSC on this machine."""

from __future__ import annotations

import asyncio
import signal
from typing import Annotated

import typer

from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.failure import Failure
from lasthop.runtime.smsc.center import LocalSmsc, SmscFaults, SmscTerms
from lasthop.runtime.smsc.phones import Shown
from lasthop.runtime.units import ListenAddress

commands = new_commands()


@commands.command(
    help=described(
        "Run a small SMSC: gateways bind to it by SMPP 3.4, every number has a phone, and what the"
        " phones get is printed. It is for trying the gateway without an operator, and for tests;"
        " nothing leaves this machine, and nothing is kept when it ends.",
        "lasthop smsc",
        "lasthop smsc --listen 127.0.0.1:2776 --system-id shop --password secret",
        "lasthop smsc --unreachable +1555000 --busy 0.1 --json",
    )
)
def smsc(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where gateways connect.")
    ] = "127.0.0.1:2775",
    system_id: Annotated[
        str, typer.Option(metavar="NAME", help="The account that may bind; any if none is given.")
    ] = "",
    password: Annotated[str, typer.Option(help="The account's password.")] = "",
    receipt_after: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Until a message is at its phone.")
    ] = 0.2,
    unreachable: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER", help="A phone that is off; or all that begin so."),
    ] = None,
    drop: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Submissions that are lost.")
    ] = 0,
    mute: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Those that get no answer.")
    ] = 0,
    busy: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Those refused as too many.")
    ] = 0,
    double: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Receipts that come twice.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="From which these faults are drawn.")] = 1,
    as_json: Json = False,
) -> None:
    try:
        address = ListenAddress.parse(listen)
    except ValueError as error:
        raise Failure(f"--listen: {error}", exit_code=2) from None
    terms = SmscTerms(
        system_id=system_id,
        password=password,
        receipt_after=receipt_after,
        unreachable=tuple(unreachable or ()),
        faults=SmscFaults(seed=seed, drop=drop, mute=mute, busy=busy, double=double),
    )
    asyncio.run(_serve(terms, address, as_json=as_json))


async def _serve(terms: SmscTerms, address: ListenAddress, *, as_json: bool) -> None:
    def shown(what: Shown) -> None:
        if as_json:
            say_json(what)
        else:
            kind = what.content_type or ("text" if not what.octets else "octets")
            say(f"{what.source or '?'} -> {what.to} {kind}: {what.text or what.content}")

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    center = LocalSmsc(terms, clock=SystemClock(), shown=shown)
    try:
        port = await center.start(address.host, address.port)
    except OSError as error:
        raise Failure(f"cannot listen on {address}: {error.strerror}") from None
    place = ListenAddress.of(address.host, port)
    if as_json:
        say_json({"listening": place})
    else:
        say(f"SMSC at {place}, press Ctrl-C to stop")
    await stop.wait()
    await center.stop()
