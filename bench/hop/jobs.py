"""The jobs and orders that the processes of a run receive, and their answers."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class MqttPublisher(msgspec.Struct, tag="mqtt-publisher", kw_only=True):
    """The job of a publisher to an MQTT topic."""

    port: int
    topic: str
    qos: int
    window: int


class AmqpPublisher(msgspec.Struct, tag="amqp-publisher", kw_only=True):
    """The job of a publisher of persistent messages to an AMQP queue, with confirms."""

    port: int
    queue: str
    window: int
    library: bool = False
    """Whether to use pika instead of the client that is made for this benchmark."""


class HttpPublisher(msgspec.Struct, tag="http-publisher", kw_only=True):
    """The job of a publisher that posts to the gateway's REST door."""

    port: int
    device: str
    path: str = "/v1/messages"
    batch: int
    """Messages in a request when there is much to send; 1 for single POSTs."""
    connections: int
    """The number of connections, with one request in flight on each."""
    single_connections: int = 32
    """The number of connections for single POSTs."""


class MqttDevice(msgspec.Struct, tag="mqtt-device", kw_only=True):
    """The job of a device that subscribes to an MQTT topic."""

    port: int
    topic: str
    qos: int


class AmqpDevice(msgspec.Struct, tag="amqp-device", kw_only=True):
    """The job of a device that consumes a durable AMQP queue with manual acks."""

    port: int
    queue: str
    kind: str
    prefetch: int
    library: bool = False


class HopDevice(msgspec.Struct, tag="hop-device", kw_only=True):
    """The job of a lasthop device, with the SDK that applications use."""

    port: int
    device: str
    inbox: str | None = None
    """The file of the device's inbox; None keeps it in memory, as the clients of the other systems
    do."""


PublisherJob: TypeAlias = MqttPublisher | AmqpPublisher | HttpPublisher
DeviceJob: TypeAlias = MqttDevice | AmqpDevice | HopDevice


class Publish(msgspec.Struct, kw_only=True):
    """The order to send `count` messages numbered from `first` on: at `rate` per second, or as fast
    as they are accepted if `rate` is 0."""

    first: int
    count: int
    rate: float = 0.0


class Prepared(msgspec.Struct, kw_only=True):
    """The answer of a publisher that is prepared; the next line starts it."""


class Published(msgspec.Struct, kw_only=True):
    """The answer when all messages were sent and confirmed. Times are those of the shared clock."""

    started: float
    confirmed: float
    cpu: float
    late: list[float] = []
    """How long after it was due each message left, in seconds."""


class Expect(msgspec.Struct, kw_only=True):
    """The order to wait for `count` messages numbered from `first` on; lanes as in `Meter.seen`."""

    first: int
    count: int
    batch: int = 1
    lanes: int = 1
    delays: bool = False
    """Whether the payloads say when they were due."""


class Received(msgspec.Struct, kw_only=True):
    """The answer of a device that has received all messages."""

    received: int
    missing: int
    duplicates: int
    disordered: int
    last: float
    cpu: float
    delays: list[float]


class Relay(msgspec.Struct, kw_only=True):
    """The job of a relay that counts bytes between a device and its broker."""

    port: int


class Listening(msgspec.Struct, kw_only=True):
    """The answer of a relay: the port at which it listens."""

    port: int


class Count(msgspec.Struct, kw_only=True):
    """The order to report the bytes so far."""


class Counted(msgspec.Struct, kw_only=True):
    """The bytes in both directions since the relay started."""

    to_device: int
    from_device: int


class Crowd(msgspec.Struct, kw_only=True):
    """The job of a process with many idle devices of one kind, from one source address."""

    like: DeviceJob
    count: int
    source: str
    spread: float = 0.0
    """Seconds over which the devices connect."""


class Alive(msgspec.Struct, kw_only=True):
    """The state of many idle devices: connections that are up, and heartbeats that were
    answered."""

    connected: int
    pongs: int
    longest_gap: float
    """Seconds between two heartbeats, or since the last one, of the device that waited longest."""
