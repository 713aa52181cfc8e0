"""Our own part of the experiments: the real gateway, session, hop protocol and inbox."""

from __future__ import annotations

from functools import partial
from random import Random

from lasthop.clock import HOUR, SECOND, Micros
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.publishing.submission import Submission
from lasthop.device.message import Message
from lasthop.device.session import DeviceSession
from lasthop.device.terms import DeviceTerms
from lasthop.message import Target, TargetKind
from lasthop.simulation.device_node import DeviceNode
from lasthop.simulation.disk import MemoryDisk
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import Weather
from lasthop.simulation.odin.radio import Bearer, RehearsedRadio
from lasthop.simulation.odin.setting import PAYLOAD, ServiceNotes, Setting, note

APP, NAME = "odin", "phone"

UNNOTICED: Micros = 30 * SECOND
"""The longest time until an end notices that the link was taken away."""


class Phone(DeviceNode):
    """A device whose network comes and goes; it dials again when the network is back."""

    experiment: Experiment

    def _redial(self, session: DeviceSession) -> None:
        wait = self.experiment.until_link()
        if wait:
            self._kernel.after(wait, lambda: self._redial(session))
        else:
            super()._redial(session)

    def _show(self, message: Message, body: bytes | None = None) -> None:
        self.experiment.showed(int(message.body.rstrip(b".")))


class Experiment:
    """One run of our own gateway and device through a setting."""

    def __init__(self, bearer: Bearer, setting: Setting, *, seed: int = 0) -> None:
        self._bearer = bearer
        self._setting = setting
        self._kernel = kernel = Kernel()
        self._began = kernel.now()
        self._random = Random(f"odin/{bearer.name}/{seed}")
        self._radio = RehearsedRadio(bearer, kernel.now())
        self._bytes = 0
        self._shown: list[tuple[int, Micros]] = []
        self._accepted = 0
        self._gateway = GatewayNode(
            kernel,
            self._random,
            MemoryDisk(),
            Identity(open_house=True),
            started=lambda store: None,
            committed=lambda commit: None,
        )
        self._phone = Phone(
            kernel,
            self._random,
            DeviceTerms(app=APP, name=NAME),
            self._gateway,
            transactional=True,
            weather=self._weather,
            crash_at=set(),
        )
        self._phone.experiment = self

    def run(self) -> ServiceNotes:
        """Run from the first submission until the last message has arrived."""
        self._gateway.start()
        self._phone.start()
        kernel, setting = self._kernel, self._setting
        for number in range(setting.submissions):
            kernel.at(self._began + setting.moment(number), partial(self._submit, number))
        kernel.run(until=lambda: self._now() >= setting.length and self._idle, limit=48 * HOUR)
        self._radio.settle(self._began + setting.length)
        return note(
            "lasthop",
            self._bearer.name,
            setting,
            self._shown,
            carried=self._bytes,
            joules=self._radio.joules,
        )

    @property
    def _idle(self) -> bool:
        gateway = self._gateway.gateway
        assert gateway is not None
        return self._accepted == self._setting.submissions and not gateway.deliveries.items

    def _now(self) -> Micros:
        return self._kernel.now() - self._began

    def until_link(self) -> Micros:
        """Return how long it takes until the link is back; 0 if it is up."""
        back = self._setting.back_at(self._now())
        return 0 if back is None else back - self._now()

    def showed(self, number: int) -> None:
        """Note that the application has been given a message."""
        self._shown.append((number, self._now()))

    def _weather(self) -> tuple[Weather, Interconnect]:
        bearer, now = self._bearer, self._now()
        goes = self._setting.next_break(now)
        weather = Weather(
            delay=bearer.delay,
            jitter=bearer.jitter,
            lives=None if goes is None else goes - now,
            silent=UNNOTICED,
            tap=self._tap,
        )
        return weather, Interconnect.STREAM

    def _tap(self, size: int) -> Micros:
        self._bytes += size
        return self._radio.packet(self._kernel.now())

    def _submit(self, number: int) -> None:
        body = str(number).encode().ljust(PAYLOAD, b".")
        target = Target(TargetKind.DEVICE, NAME)

        def publish(gateway: Gateway, now: Micros) -> None:
            gateway.publish(APP, "publisher:odin", [Submission(target=target, body=body)], now)

        self._gateway.act(publish, self._was_accepted)

    def _was_accepted(self) -> None:
        self._accepted += 1
