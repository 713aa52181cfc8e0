"""What the processes of a run are told, and what they answer."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class MqttPublisher(msgspec.Struct, tag="mqtt-publisher", kw_only=True):
    """Publishes to a topic."""

    port: int
    topic: str
    qos: int
    window: int


class AmqpPublisher(msgspec.Struct, tag="amqp-publisher", kw_only=True):
    """Publishes persistent messages to a queue, with confirms."""

    port: int
    queue: str
    window: int
    library: bool = False
    """Whether pika does it, and not the client that is made for this."""


class HttpPublisher(msgspec.Struct, tag="http-publisher", kw_only=True):
    """Posts to our REST door."""

    port: int
    device: str
    path: str = "/v1/messages"
    batch: int
    """Messages in a request when there is much to send; 1 for single POSTs."""
    connections: int
    """Requests in flight: one a connection."""
    single_connections: int = 32
    """The same for single POSTs."""


class MqttDevice(msgspec.Struct, tag="mqtt-device", kw_only=True):
    """Subscribes to a topic."""

    port: int
    topic: str
    qos: int


class AmqpDevice(msgspec.Struct, tag="amqp-device", kw_only=True):
    """Consumes a durable queue with manual acks."""

    port: int
    queue: str
    kind: str
    prefetch: int
    library: bool = False


class HopDevice(msgspec.Struct, tag="hop-device", kw_only=True):
    """A device of ours, with the SDK that applications use."""

    port: int
    device: str
    inbox: str | None = None
    """Where its inbox is kept; `None`: in memory, as the clients of the peers do."""


PublisherJob: TypeAlias = MqttPublisher | AmqpPublisher | HttpPublisher
DeviceJob: TypeAlias = MqttDevice | AmqpDevice | HopDevice


class Publish(msgspec.Struct, kw_only=True):
    """Send `count` messages numbered from `first` on: at `rate` a second, or as fast as they are
    taken when it is 0."""

    first: int
    count: int
    rate: float = 0.0


class Prepared(msgspec.Struct, kw_only=True):
    """Everything is ready; the next line starts it."""


class Published(msgspec.Struct, kw_only=True):
    """All was sent and confirmed. Times are those of the shared clock."""

    started: float
    confirmed: float
    cpu: float
    late: list[float] = []
    """How long after it was due each message left, in seconds."""


class Expect(msgspec.Struct, kw_only=True):
    """Wait for `count` messages numbered from `first` on; lanes as in `Meter.seen`."""

    first: int
    count: int
    batch: int = 1
    lanes: int = 1
    delays: bool = False
    """Whether the payloads say when they were due."""


class Received(msgspec.Struct, kw_only=True):
    """All has come."""

    received: int
    missing: int
    duplicates: int
    disordered: int
    last: float
    cpu: float
    delays: list[float]


class Relay(msgspec.Struct, kw_only=True):
    """Stands between a device and its broker and counts bytes."""

    port: int


class Listening(msgspec.Struct, kw_only=True):
    """Where the relay is to be found."""

    port: int


class Count(msgspec.Struct, kw_only=True):
    """Asks for the bytes so far."""


class Counted(msgspec.Struct, kw_only=True):
    """Bytes in both directions since the relay started."""

    to_device: int
    from_device: int


class Crowd(msgspec.Struct, kw_only=True):
    """Many idle devices, all of a kind, from one source address."""

    like: DeviceJob
    count: int
    source: str
    spread: float = 0.0
    """Seconds over which they join."""


class Alive(msgspec.Struct, kw_only=True):
    """How a crowd of ours is: connections that are up, and heartbeats that were answered."""

    connected: int
    pongs: int
    longest_gap: float
    """Seconds between two heartbeats, or since the last one, of the device that waited longest."""
