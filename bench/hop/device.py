"""The process of a device: `python -m bench.hop.device JOB`."""

from __future__ import annotations

import dataclasses
import sys

import msgspec

from bench.hop.conversation import Conversation, Ready, own_cpu, run
from bench.hop.devices import connect
from bench.hop.jobs import DeviceJob, Expect, Prepared, Received
from bench.hop.meter import Meter


async def main(parent: Conversation) -> None:
    """Receive the announced messages until no more are announced."""
    job: DeviceJob = msgspec.json.decode(sys.argv[1], type=DeviceJob)
    meter = Meter()
    connection = await connect(job, meter)
    parent.say(Ready())
    while (order := await parent.hear(Expect)) is not None:
        here = meter.start(order.first, order.count)
        cpu = own_cpu()
        parent.say(Prepared())
        await connection.guard(here)
        cpu = own_cpu() - cpu
        seen = meter.seen(batch=order.batch, lanes=order.lanes, delays=order.delays)
        parent.say(Received(**dataclasses.asdict(seen), cpu=cpu))
    await connection.close()


if __name__ == "__main__":
    run(main)
