"""Assembles the carrier of short messages: a link for each SMSC of the settings."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec

from lasthop.clock import Clock
from lasthop.decision.routes import VARIANTS, Variant
from lasthop.delivery.sms.smpp_link import SmppLink
from lasthop.delivery.sms.sms_carrier import Receipts, SmsCarrier
from lasthop.runtime.alarm import Alarm
from lasthop.runtime.settings.short_messages import SmscSettings

REFERENCES_PER_LIFE = 37
"""How many reference numbers are skipped at every start of the gateway, so that phones do not put
parts of two messages together."""


def name_price(smscs: Mapping[str, SmscSettings]) -> None:
    """Let budgets reserve for a short message what the dearest SMSC asks for it."""
    usual = VARIANTS[Variant.SMS]
    price = max((smsc.price for smsc in smscs.values()), default=0)
    tariff = msgspec.structs.replace(usual.link.tariff, per_unit=price)
    link = msgspec.structs.replace(usual.link, tariff=tariff)
    VARIANTS[Variant.SMS] = msgspec.structs.replace(usual, link=link)


@asynccontextmanager
async def send_by_sms(
    smscs: Mapping[str, SmscSettings], clock: Clock, *, boot: int, receipts: Receipts
) -> AsyncIterator[SmsCarrier]:
    """Send short messages over these SMSCs for as long as the context lasts."""
    alarm = Alarm(clock)
    carrier = SmsCarrier(
        clock=clock,
        wake_at=alarm.ring_at,
        receipts=receipts,
        first_reference=boot * REFERENCES_PER_LIFE,
    )
    alarm.ring = carrier.wake
    async with AsyncExitStack() as stack:
        stack.callback(alarm.stop)
        for name, settings in smscs.items():
            _, _, secure = settings.place
            link = SmppLink(
                settings.terms(name),
                clock=clock,
                changed=carrier.changed,
                receipted=carrier.receipt,
                tls=ssl.create_default_context() if secure else None,
            )
            carrier.links.append(link)
            task = asyncio.create_task(link.run())
            stack.push_async_callback(_stopped, task)
        yield carrier


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
