"""The process of a publisher: `python -m bench.hop.publisher JOB`."""

from __future__ import annotations

import sys

import msgspec

from bench.hop.conversation import Conversation, Ready, own_cpu, run
from bench.hop.jobs import Prepared, Publish, Published, PublisherJob
from bench.hop.pacing import paced
from bench.hop.payload import now, stamp
from bench.hop.publishers import Publisher, connect


async def main(parent: Conversation) -> None:
    """Publish as ordered until no more orders come."""
    job: PublisherJob = msgspec.json.decode(sys.argv[1], type=PublisherJob)
    publisher = await connect(job)
    parent.say(Ready())
    while (order := await parent.hear(Publish)) is not None:
        numbers = range(order.first, order.first + order.count)
        await publisher.prepare([] if order.rate else [stamp(number) for number in numbers])
        parent.say(Prepared())
        await parent.hear(Prepared)
        parent.say(await publish(publisher, order))


async def publish(publisher: Publisher, order: Publish) -> Published:
    """Carry out one order to publish."""
    cpu, started = own_cpu(), now()
    late: list[float] = []
    if order.rate:
        late = await paced(publisher.send, first=order.first, count=order.count, rate=order.rate)
        await publisher.settled()
    else:
        await publisher.blast()
    return Published(started=started, confirmed=now(), cpu=own_cpu() - cpu, late=late)


if __name__ == "__main__":
    run(main)
