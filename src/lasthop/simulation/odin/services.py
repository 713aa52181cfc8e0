"""Other push services, emulated by what is known of their policies.

What they keep for an absent device follows the rules of the zoo, with the numbers of the paper. The
way to a device in contact is the same radio and the same delays as ours, one message and its
acknowledgement at a time. Where a protocol is public its bytes are counted; where it is not,
nothing is claimed about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from lasthop.clock import SECOND, Micros
from lasthop.decision.volume.inputs import Arrived
from lasthop.simulation.last_hop.zoo import DiscardAll, OneSlot, RefuseNew, SystemRule
from lasthop.simulation.odin.radio import Bearer, RehearsedRadio
from lasthop.simulation.odin.setting import PAYLOAD, ServiceNotes, Setting, note

RECONNECT: Micros = SECOND
"""Time from the return of the link until the service has contact with the device again."""


class Most32(RefuseNew):
    """MPNS: 32 notifications wait for a device, in the paper's study."""

    LIMIT = 32


@dataclass(frozen=True, slots=True)
class PushService:
    """What is known about one push service."""

    name: str
    rule: Callable[[], SystemRule]
    between: Micros = 0
    """The shortest time between two dispatches, in microseconds."""
    round_trips: int = 1
    """Round trips until a message is finished."""
    message_bytes: Callable[[str], int] | None = None
    """Bytes of one message with its acknowledgements, on this kind of network; `None`: not
    public."""
    connect_bytes: int = 0


MQTT_TOPIC = "odin/phone"


def _mqtt_bytes(bearer: str) -> int:
    """Return the bytes of PUBLISH with a topic, an identifier and two bytes of length, and of
    PUBREC, PUBREL and PUBCOMP."""
    return (3 + 2 + len(MQTT_TOPIC) + 2 + PAYLOAD) + 3 * 4


SERVICES = (
    PushService(
        "MQTT QoS 2", RefuseNew, round_trips=2, message_bytes=_mqtt_bytes, connect_bytes=30
    ),
    PushService("APNs", OneSlot),
    PushService("GCM/FCM", DiscardAll, between=SECOND // 10),
    PushService("MPNS", Most32, between=SECOND // 4),
    PushService("BBPS", SystemRule, between=SECOND // 4),
)


def emulate(
    service: PushService, bearer: Bearer, setting: Setting, *, seed: int = 0
) -> ServiceNotes:
    """Run one service through one experiment."""
    return _Emulation(service, bearer, setting, Random(f"odin/{service.name}/{seed}")).run()


class _Emulation:
    def __init__(
        self, service: PushService, bearer: Bearer, setting: Setting, random: Random
    ) -> None:
        self._service = service
        self._bearer = bearer
        self._setting = setting
        self._random = random
        self._rule = service.rule()
        self._radio = RehearsedRadio(bearer, 0)
        self._free: Micros = 0
        """When the next message may be dispatched."""
        self._shown: list[tuple[int, Micros]] = []
        self._bytes = service.connect_bytes

    def run(self) -> ServiceNotes:
        setting = self._setting
        moments = [(setting.moment(n), n) for n in range(setting.submissions)]
        returns = [(start + lasts + RECONNECT, -1) for start, lasts in setting.breaks]
        for now, number in sorted(moments + returns):
            if number < 0:
                self._bytes += self._service.connect_bytes
                for event in self._rule.replayed(now):
                    self._dispatch(event.key, now)
            elif self._away(now):
                self._rule.arrived(Arrived(number, 0.0), now)
            else:
                self._dispatch(number, now)
        self._radio.settle(max(setting.length, self._free))
        public = self._service.message_bytes is not None
        return note(
            self._service.name,
            self._bearer.name,
            setting,
            sorted(self._shown, key=lambda row: row[1]),
            carried=self._bytes if public else None,
            joules=self._radio.joules,
        )

    def _away(self, now: Micros) -> bool:
        return any(
            start <= now < start + lasts + RECONNECT for start, lasts in self._setting.breaks
        )

    def _dispatch(self, number: int, now: Micros) -> None:
        service, bearer = self._service, self._bearer
        leaves = max(now, self._free)
        self._free = leaves + service.between
        moment = leaves + self._radio.packet(leaves) + self._way()
        # At quality 2 the application gets a message with the service's second packet (PUBREL), as
        # in libmosquitto.
        for _ in range(service.round_trips - 1):
            moment += self._radio.packet(moment) + self._way()
            moment += self._radio.packet(moment) + self._way()
        self._shown.append((number, moment))
        self._radio.packet(moment)  # The device's acknowledgement.
        if service.message_bytes is not None:
            self._bytes += service.message_bytes(bearer.name)

    def _way(self) -> Micros:
        return self._bearer.delay + self._random.randint(0, self._bearer.jitter)
