"""The systems that are compared: their promises, their settings, their publishers and devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.hop.jobs import (
    AmqpDevice,
    AmqpPublisher,
    DeviceJob,
    MqttDevice,
    MqttPublisher,
    PublisherJob,
)
from bench.hop.peers import Broker

QOS1_WINDOW = 1000
QOS2_WINDOW = 100
"""Unconfirmed messages of a publisher: more makes Mosquitto slower, not faster, at quality 2."""

AMQP_WINDOW = 500
AMQP_PREFETCH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A system in one setting: one row of the tables."""

    key: str
    label: str
    promise: str
    settings: str
    broker: Broker
    publisher: Callable[[str], PublisherJob]
    """Returns the job of a publisher to the device of a name."""
    device: Callable[[str, int], DeviceJob]
    """Returns the job of the device of a name, at a port."""
    window: int
    """Unconfirmed messages, or requests, of a publisher."""
    batch: int = 1
    lanes: int = 1
    """The number of lanes over which a publisher spreads its messages; order is promised within a
    lane."""
    ours: bool = False
    throughput_only: bool = False


def mosquitto(broker: Broker, *, qos: int) -> System:
    """Return the row of Mosquitto at quality of service 1 or 2."""
    window = QOS1_WINDOW if qos == 1 else QOS2_WINDOW
    return System(
        key=f"qos{qos}",
        label=f"Mosquitto QoS {qos}",
        promise=("at least once" if qos == 1 else "exactly once") + ", nothing durable",
        settings=f"no limit in flight or queued, no persistence, nodelay; window {window}",
        broker=broker,
        window=window,
        publisher=lambda name: MqttPublisher(
            port=broker.port, topic=f"{name}{qos}", qos=qos, window=window
        ),
        device=lambda name, port: MqttDevice(port=port, topic=f"{name}{qos}", qos=qos),
    )


def rabbitmq(broker: Broker, *, kind: str, library: bool = False) -> System:
    """Return the row of RabbitMQ with a durable queue, persistent messages, confirms and manual
    acks; with clients that are made for this benchmark, or with the library that applications
    use."""
    suffix = "-pika" if library else ""
    return System(
        key=f"rabbitmq-{kind}{suffix}",
        label=f"RabbitMQ {kind} queue" + (", with pika" if library else ""),
        promise="at least once, durable or consumed before it is confirmed",
        settings=(
            f"durable queue, persistent messages, confirms (window {AMQP_WINDOW}), manual acks "
            f"(multiple), prefetch {AMQP_PREFETCH}, nodelay; clients: "
            + ("pika, the library for Python" if library else "made for this benchmark")
        ),
        broker=broker,
        window=AMQP_WINDOW,
        publisher=lambda name: AmqpPublisher(
            port=broker.port, queue=f"{name}-{kind}{suffix}", window=AMQP_WINDOW, library=library
        ),
        device=lambda name, port: AmqpDevice(
            port=port,
            queue=f"{name}-{kind}{suffix}",
            kind=kind,
            prefetch=AMQP_PREFETCH,
            library=library,
        ),
        throughput_only=library,
    )
