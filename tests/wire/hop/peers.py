"""Two real peers joined in memory: a device and a gateway, on one virtual clock."""

from lasthop.clock import Micros
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Ack, Frame, Hello, MessageFrame, Welcome
from lasthop.wire.hop.handshake import Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping

NOW = 1_800_000_000_000_000
INCARNATION = b"\x01\x02\x03\x04\x05\x06\x07\x08"
HELLO = Hello(app="shop", device="alice-phone")
WELCOME = Welcome(incarnation=INCARNATION, epoch=1, heartbeat=240)


class Pair:
    """A device and a gateway with a channel between them, past its handshake.

    `there` and `back` are the delays towards the device and towards the gateway.
    """

    def __init__(
        self,
        hello: Hello = HELLO,
        welcome: Welcome = WELCOME,
        *,
        mapping: Mapping = Mapping.STREAM,
        there: Micros = 0,
        back: Micros = 0,
    ) -> None:
        self.now = NOW
        self.there = there
        self.back = back
        self.bytes_moved = 0
        self.device_got: list[Frame] = []
        self.gateway_got: list[Frame] = []
        self.sent = 0
        self._acknowledged = 0
        dialing = Dialing(hello, mapping=mapping, now=self.now)
        waiting = Waiting(mapping=mapping, now=self.now)
        self.now += back
        for unit in dialing.data_to_send():
            waiting.receive(unit, self.now)
        self.gateway: Open = waiting.welcome(welcome, self.now)
        self.now += there
        (unit,) = self.gateway.data_to_send()
        opened = dialing.receive(unit, self.now)
        assert opened is not None, dialing.closed
        self.device: Open = opened.connection
        self.welcome = opened.welcome

    def wait(self, duration: Micros) -> None:
        """Let time pass."""
        self.now += duration

    def to_device(self) -> None:
        """Carry what the gateway has to say."""
        units = self.gateway.data_to_send()
        self.now += self.there if units else 0
        for unit in units:
            self.bytes_moved += len(unit)
            self.device_got += self.device.receive(unit, self.now)

    def to_gateway(self) -> None:
        """Carry what the device has to say."""
        units = self.device.data_to_send()
        self.now += self.back if units else 0
        for unit in units:
            self.bytes_moved += len(unit)
            self.gateway_got += self.gateway.receive(unit, self.now)

    def exchange(self) -> None:
        """Carry everything, until both are silent."""
        before = -1
        while before != self.bytes_moved:
            before = self.bytes_moved
            self.to_gateway()
            self.to_device()

    def publish(self, key: int, body: bytes = b"") -> None:
        """The gateway sends a message."""
        self.gateway.send([MessageFrame(self.sent, key, None, None, body)], self.now)
        self.sent += 1
        self.to_device()

    def acknowledge(self) -> None:
        """The device acknowledges everything."""
        self.device.send([Ack(self.sent, self.sent)], self.now)
        self.to_gateway()
