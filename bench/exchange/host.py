"""The process of the device that has the service: `python -m bench.exchange.host JOB`.

The device uses the SDK as applications do, with its inbox on the disk.
"""

from __future__ import annotations

import sys

import msgspec

from bench.exchange.service import OPERATION, SERVICE, answer_message, binding, serial_of
from bench.hop.conversation import Conversation, Ready, run
from bench.hop.idlers import APP
from lasthop.device.client import Device
from lasthop.device.exchange.exchange import Exchange
from lasthop.device.exchange.received import Received
from lasthop.device.exchange.xml_message import XmlMessage
from lasthop.wire.hop.services import Service, ServiceOperation


class Host(msgspec.Struct, kw_only=True):
    """The job of a device that answers calls in one coding."""

    port: int
    coding: str
    profiled: bool
    inbox: str


class Over(msgspec.Struct):
    """The order to end: no more calls will come."""


def reply(received: Received[XmlMessage]) -> XmlMessage:
    """Return the answer to a call."""
    return answer_message(serial_of(received.value.body))


async def main(parent: Conversation) -> None:
    """Offer the service, and answer calls until the parent process sends no more orders."""
    job = msgspec.json.decode(sys.argv[1], type=Host)
    url = f"tcp://127.0.0.1:{job.port}"
    async with Device(url, app=APP, name="server", inbox=job.inbox) as device:
        offered = Service(SERVICE, version="1", operations=(ServiceOperation(OPERATION),))
        exchange = Exchange(device, binding(job.coding, profiled=job.profiled))
        await (await exchange.serve(offered, {OPERATION: reply})).accepted()
        parent.say(Ready())
        await parent.hear(Over)


if __name__ == "__main__":
    run(main)
