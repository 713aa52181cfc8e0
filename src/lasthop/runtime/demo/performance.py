"""Runs the whole demo, from an empty directory to the removal of everything it made."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import aclosing

from lasthop.runtime.demo.beside import beside
from lasthop.runtime.demo.report import DemoReport
from lasthop.runtime.demo.show import StandingShow
from lasthop.runtime.demo.stage import DemoPlan, Stage, staged
from lasthop.runtime.failure import Failure

STOPPED = 130
"""The exit code that shells use for a command that Ctrl-C ended."""


async def perform(
    plan: DemoPlan,
    show: StandingShow,
    *,
    opened: Callable[[Stage, str], None],
    report: Callable[[DemoReport], None],
) -> None:
    """Run the demo and print its report; if no duration is set, continue until a signal comes.

    `opened` is called when everything has started, with the URL of a page to open.
    """
    loop = asyncio.get_running_loop()
    playing = asyncio.ensure_future(_perform(plan, show, opened, report))
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        show.say("stopping")
        playing.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        reported = await playing
    except asyncio.CancelledError:
        if not stopped:
            raise
        raise Failure("the demo was stopped before it had a report", exit_code=STOPPED) from None
    finally:
        show.pause()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    if not reported.good:
        raise Failure("a promise was broken: see the report")


async def _perform(
    plan: DemoPlan,
    show: StandingShow,
    opened: Callable[[Stage, str], None],
    report: Callable[[DemoReport], None],
) -> DemoReport:
    found: DemoReport | None = None
    try:
        async with staged(plan, show.say) as stage, beside(show.keep_fresh()):
            fleet, ledger = stage.cast.fleet, stage.ledger

            def figures() -> str:
                return (
                    f"{fleet.in_contact} of {plan.devices} in contact ·"
                    f" {ledger.delivered} delivered"
                )

            show.figures = figures
            page = await asyncio.to_thread(stage.gateway.page)
            show.pause()
            opened(stage, page)
            async with aclosing(stage.reports()) as reports:
                async for found in reports:
                    show.pause()
                    report(found)
            if plan.seconds is None:
                show.say("going on; Ctrl-C ends it")
                async with beside(stage.make_tables()):
                    await stage.go_on(asyncio.Event())
            show.say("stopping")
    except asyncio.CancelledError:
        if found is None:
            raise
        # A demo without a duration ends in this way.
    assert found is not None
    return found
