"""Fault schedules over the air: a gateway that keeps dying, pushes over networks that lose them,
handsets without battery.

The gateway, its carriers, the transactions and the sessions are the product itself. What must hold:
everything that was accepted gets exactly one outcome, and the outcome is true. A confirmed push is
shown at most once for each attempt.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random

from lasthop.clock import MILLISECOND, MINUTE, SECOND, Micros
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.lifecycle import RELIABILITY_OF_METHOD, State
from lasthop.core.limits import Limits
from lasthop.core.registry import DeviceRecord
from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import Carrier
from lasthop.delivery.ota.sessions import SessionCarrier
from lasthop.delivery.ota.unit import UnitCarrier
from lasthop.message import DeliveryMethod, Reliability
from lasthop.simulation.air.ether import AirWeather, Ether, Handset, Socket
from lasthop.simulation.disk import MemoryDisk, SqliteDisk
from lasthop.simulation.faults import RehearsalOutcome
from lasthop.simulation.gateway_node import Disk, GatewayNode
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.ledger import CommitLedger
from lasthop.simulation.publisher import APP, Publisher
from lasthop.simulation.schedule import PlannedMessage
from lasthop.simulation.verdict import NEVER_SHOWN, RehearsalVerdict
from lasthop.store.commit import DeliveryRow
from lasthop.wire.ota.wsp_server import SessionServer
from lasthop.wire.ota.wsp_session import USERRFS
from lasthop.wire.wsp.addresses import Address as ContactPoint
from lasthop.wire.wsp.sir import Sir

GATEWAY = "10.0.0.1"
STORM: Micros = 3 * MINUTE
PATIENCE: Micros = 90 * MINUTE
"""Virtual time after which a schedule is stuck: longer than the gateway's wait for a handset, all
attempts and all pauses between them."""

_ASKS_NOTHING = (DeliveryMethod.UNCONFIRMED, DeliveryMethod.ONESHOT)


def run(seed: int, *, messages: int = 30, sqlite: bool = False) -> RehearsalOutcome:
    """Run and judge the schedule with this seed."""
    if not sqlite:
        return AirRehearsal(seed, messages, MemoryDisk()).run()
    with tempfile.TemporaryDirectory(prefix="lasthop-air-") as directory:
        return AirRehearsal(seed, messages, SqliteDisk(Path(directory), Random(seed))).run()


class AirRehearsal:
    """One run of one schedule over the air: gateway, handsets and the checks at the end."""

    def __init__(self, seed: int, messages: int, disk: Disk) -> None:
        self._seed = seed
        self._random = random = Random(seed)
        self._kernel = kernel = Kernel()
        self._begin = kernel.now()
        self._ledger = CommitLedger()
        delay = random.choice((10, 100, 600)) * MILLISECOND
        self._weather = AirWeather(
            loss=random.choice((0.0, 0.1, 0.4)),
            doubling=random.choice((0.0, 0.0, 0.3)),
            delay=delay,
            spread=random.choice((0, delay, 20 * delay)),
        )
        self._ether = Ether(kernel, random, self._weather)
        crashes = random.choice((0, 1, 3))
        self._crash_before = {random.randint(2, 60) for _ in range(crashes)}
        self._crash_after = {random.randint(2, 60) for _ in range(random.choice((0, 1, 2)))}
        limits = Limits(
            resident=random.choice((0, 200, 1 << 20)),
            carried_per_device=random.choice((1, 4, 128)),
            carried_patience=30 * MINUTE,
        )
        self._gateway = GatewayNode(
            kernel,
            random,
            disk,
            Identity(open_house=True, limits=limits),
            before_commit=partial(self._dies, self._crash_before),
            after_commit=partial(self._dies, self._crash_after),
            started=self._ledger.start_over,
            committed=self._ledger.note,
            carriers=self._carriers,
        )
        self._routes = {
            f"handset-{n}": _draw_routes(random, n) for n in range(random.randint(1, 3))
        }
        self._handsets = {
            name: Handset(
                kernel, random, self._ether, routes[0].endpoint()[0], refuses=self._refuses
            )
            for name, routes in self._routes.items()
        }
        self._publisher = Publisher(kernel, random, self._gateway)
        self._plans = {n: _draw_message(random, n, list(self._routes)) for n in range(messages)}
        self._refused = {n for n in self._plans if random.random() < 0.1}
        self._doubled = self._weather.doubling > 0

    def run(self) -> RehearsalOutcome:
        kernel, random = self._kernel, self._random
        self._gateway.start()
        for name, routes in self._routes.items():
            self._register(name, routes)
        kernel.run(until=self._introduced, limit=PATIENCE)
        self._begin = kernel.now()
        for plan in self._plans.values():
            at = self._begin + SECOND + random.randint(0, STORM // 2)
            kernel.at(at, partial(self._publisher.publish, [plan]))
        for handset in self._handsets.values():
            for _ in range(random.choice((0, 0, 1, 2))):
                off = self._begin + random.randint(0, STORM)
                kernel.at(off, handset.stop)
                kernel.at(off + random.randint(SECOND, 2 * MINUTE), handset.start)
        kernel.at(self._begin + STORM, self._clear)
        through = kernel.run(until=self._through, limit=PATIENCE)
        verdict = self._judge()
        if not through:
            verdict.add("lost", "the rehearsal is stuck")
        return RehearsalOutcome(
            self._seed,
            len(self._plans),
            verdict,
            self._gateway.crashes + sum(h.lives - 1 for h in self._handsets.values()),
            self._gateway.commits,
        )

    def _register(self, name: str, routes: list[Route]) -> None:
        """Register a device with its routes; every device is known before anything is sent to
        it."""

        def act(gateway: Gateway, now: Micros) -> None:
            if gateway.registry.find(APP, name) is None:
                gateway.admin.register(APP, name, DeviceRecord(token_hash=b"x", routes=routes), now)

        if not self._gateway.act(act, lambda: None):
            self._kernel.after(SECOND, partial(self._register, name, routes))
            return
        # The gateway may die before the registration is durable.
        self._kernel.after(100 * MILLISECOND, partial(self._registered, name, routes))

    def _registered(self, name: str, routes: list[Route]) -> None:
        store = self._gateway.store
        if store is None or store.device(APP, name) is None:
            self._register(name, routes)

    def _introduced(self) -> bool:
        store = self._gateway.store
        return store is not None and all(store.device(APP, name) for name in self._routes)

    def _carriers(self, boot: int) -> Mapping[str, Carrier]:
        kernel, ether = self._kernel, self._ether
        at = (GATEWAY, 9201)
        contact = ContactPoint(bytes(map(int, GATEWAY.split("."))), 9201)
        out = Socket(ether, (GATEWAY, 9200))
        carrier = SessionCarrier(
            SessionServer(first_tid=boot * 4099, first_session=boot << 16),
            network=Socket(ether, at),
            push_network=out,
            invitation=Sir(wsp_contacts=(contact,)),
            clock=kernel,
            wake_at=lambda due: kernel.at(due, lambda: self._wake(carrier)),
            reachable=self._reachable,
        )
        self._live = carrier
        ether.listen(at, lambda data, peer: self._receive(carrier, data, peer))
        unit = UnitCarrier(by_ipv4=out, by_ipv6=None, clock=kernel)
        return {Variant.WSP: unit, Variant.WSP_SESSION: carrier}

    def _reachable(self, host: str) -> None:
        gateway = self._gateway.gateway
        if gateway is not None:
            gateway.air.reachable_at(host, self._kernel.now())
            self._kernel.after(0, self._gateway.turn)

    def _wake(self, carrier: SessionCarrier) -> None:
        if self._gateway.up and self._live is carrier:
            carrier.wake()

    def _receive(self, carrier: SessionCarrier, data: bytes, peer: tuple[str, int]) -> None:
        if self._gateway.up and self._live is carrier:
            carrier.received(data, peer)

    def _dies(self, when: set[int], n: int) -> bool:
        if n not in when:
            return False
        when.discard(n)
        self._kernel.after(self._random.randint(0, 20 * SECOND), self._gateway.start)
        return True

    def _refuses(self, number: int) -> int:
        return USERRFS if number in self._refused else 0

    def _clear(self) -> None:
        self._ether.weather = AirWeather()

    def _through(self) -> bool:
        if self._kernel.now() < self._begin + STORM or self._publisher.busy:
            return False
        gateway = self._gateway.gateway
        return gateway is not None and not gateway.deliveries.items and gateway.idle

    # The checks at the end.

    def _judge(self) -> RehearsalVerdict:
        verdict = RehearsalVerdict()
        store, gateway = self._gateway.store, self._gateway.gateway
        if store is None or gateway is None:
            verdict.add("lost", "the gateway is not back")
            return verdict
        told: set[int] = set()
        for row in store.all_deliveries():
            message = store.messages([row.message])[row.message]
            number = int(message.body.rstrip(b"."))
            device = gateway.registry.numbered(row.device)
            assert device is not None
            told.add(number)
            self._judge_delivery(verdict, self._plans[number], row, self._handsets[device.name])
        for number in sorted(self._publisher.accepted - told):
            verdict.add("lost", f"message {number} was accepted and is not in the store")
        self._ledger.close(store)
        for problem in self._ledger.problems:
            verdict.add("untrue", problem)
        return verdict

    def _judge_delivery(
        self, verdict: RehearsalVerdict, plan: PlannedMessage, row: DeliveryRow, handset: Handset
    ) -> None:
        number, state = plan.number, State(row.state)
        shown = handset.shown[number]
        about = f"message {number} ({state.name}, {plan.method}, {row.attempts} attempts)"
        if not state.final:
            verdict.add("lost", f"{about} is still open")
        if state is State.DELIVERED and not shown:
            verdict.add("lost", f"{about} was never shown")
        if state is State.SENT and plan.method is DeliveryMethod.CONFIRMED:
            verdict.add("untrue", f"{about} was to be confirmed")
        if state in NEVER_SHOWN and shown and state is not State.ABORTED:
            verdict.add("untrue", f"{about} was shown all the same")
        if state is State.ABORTED and (number not in self._refused or row.code != 5027):
            verdict.add("untrue", f"{about} was refused by no user")
        if number in self._publisher.cancelled and shown:
            verdict.add("untrue", f"{about} was cancelled and shown")
        # Duplicates by the network, or for a client that lost its memory, are not the gateway's
        # fault.
        ours = not self._doubled and handset.lives == 1
        most = 1 if plan.method in _ASKS_NOTHING else row.attempts
        if ours and shown > most:
            verdict.add("duplicated", f"{about} was shown {shown} times")


def _draw_routes(random: Random, n: int) -> list[Route]:
    host = f"10.0.1.{n + 1}"
    unit, session = Route(Variant.WSP, host), Route(Variant.WSP_SESSION, host)
    return random.choice(([unit], [session], [session, unit], [unit, session]))


def _draw_message(random: Random, number: int, devices: list[str]) -> PlannedMessage:
    method = random.choice(
        (
            DeliveryMethod.NOT_SPECIFIED,
            DeliveryMethod.PREFER_CONFIRMED,
            DeliveryMethod.CONFIRMED,
            DeliveryMethod.CONFIRMED,
            DeliveryMethod.UNCONFIRMED,
            DeliveryMethod.ONESHOT,
        )
    )
    asked = RELIABILITY_OF_METHOD[method]
    return PlannedMessage(
        number=number,
        source="publisher:p",
        target=f"device:{random.choice(devices)}",
        priority=random.choice((4, 4, 9)),
        reliability=Reliability.EXACTLY_ONCE if asked is None else asked,
        delay=random.randint(0, 20 * SECOND) if random.random() < 0.1 else None,
        ttl=random.randint(SECOND, 2 * MINUTE) if random.random() < 0.2 else None,
        cancel_after=random.randint(0, random.choice((20 * SECOND, STORM)))
        if random.random() < 0.3
        else None,
        replace_key=random.choice("ab") if random.random() < 0.2 else None,
        size=random.choice((20, 20, 300)),
        method=method,
    )
