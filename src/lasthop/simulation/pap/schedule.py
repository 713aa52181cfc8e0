"""One random schedule of pushes: what the initiator asks for, and everything that goes wrong
meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from lasthop.clock import HOUR, MILLISECOND, MINUTE, SECOND, Micros
from lasthop.message import DeliveryMethod
from lasthop.wire.pap.documents import ReplaceMethod

METHODS = (
    DeliveryMethod.NOT_SPECIFIED,
    DeliveryMethod.NOT_SPECIFIED,
    DeliveryMethod.CONFIRMED,
    DeliveryMethod.UNCONFIRMED,
    DeliveryMethod.CONFIRMED_WITH_RESPONSE,
    DeliveryMethod.ONESHOT,
)

SPAN = 60 * SECOND
"""The time within which all pushes are submitted."""


def address(name: str) -> str:
    """Return a client address as an initiator writes it."""
    return f"WAPPUSH={name}/TYPE=USER@ppg.rehearsal"


GROUP = address("group")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPush:
    """One push that the initiator will submit."""

    number: int
    at: Micros
    addresses: tuple[str, ...]
    method: DeliveryMethod
    ttl: Micros | None = None
    delay: Micros | None = None
    replaces: int | None = None
    how: ReplaceMethod = ReplaceMethod.ALL
    cancel_after: Micros | None = None
    cancelled: tuple[str, ...] = ()
    """The addresses that are cancelled; empty: all."""

    @property
    def push_id(self) -> str:
        return f"{self.number}@initiator"


@dataclass(slots=True, kw_only=True)
class PapSchedule:
    """Everything about one rehearsal that is drawn beforehand."""

    seed: int
    users: dict[str, list[str]]
    """Devices by user. Devices with a name like ghost-1 never connect."""
    members: list[str]
    """Devices that are members of the group."""
    plans: list[PlannedPush]
    crash_before: set[int]
    """Commits of the gateway that never become durable."""
    crash_after: set[int]
    """Commits of the gateway that become durable although it dies before it tells anyone."""
    device_crashes: dict[str, set[int]]
    outages: list[tuple[Micros, Micros]]
    """Times in which the initiator cannot be reached with results."""
    removed_at: dict[str, Micros] = field(default_factory=dict)
    """When an administrator removes each ghost: after that no delivery is open for it."""

    @property
    def devices(self) -> list[str]:
        """All devices that connect at some time, by name."""
        return [d for ds in self.users.values() for d in ds if not d.startswith("ghost")]

    @property
    def ghosts(self) -> list[str]:
        """All devices that never connect, by name."""
        return [d for ds in self.users.values() for d in ds if d.startswith("ghost")]

    def reached(self, text: str) -> list[str]:
        """Return the devices that an address stands for, without regard to removals."""
        if text == GROUP:
            return self.members
        name = text.partition("=")[2].partition("/")[0]
        return self.users.get(name, [name] if name in self.devices else [])


def draw(seed: int, *, pushes: int = 20) -> PapSchedule:
    """Draw the schedule with this seed."""
    random = Random(seed)
    users = {
        "alice": ["phone"],
        "bob": ["laptop", "tablet"],
        "carol": ["watch", "ghost-1"],
        "dave": ["ghost-2"],
    }
    chosen = random.sample(sorted(users), random.randint(2, 4))
    users = {user: users[user] for user in chosen}
    devices = [d for ds in users.values() for d in ds]
    span = 3 * pushes
    crashes = random.choice((0, 1, 2, 4, 8))
    return PapSchedule(
        seed=seed,
        users=users,
        members=[d for d in devices if random.random() < 0.6],
        plans=[_plan(random, n, [*map(address, [*users, *devices, "nobody"]), GROUP], pushes)
                for n in range(pushes)],
        crash_before={random.randint(1, span) for _ in range(crashes)},
        crash_after={random.randint(1, span) for _ in range(random.choice((0, 1, 2, 4)))},
        device_crashes={
            d: {random.randint(1, 20) for _ in range(random.choice((0, 0, 2)))} for d in devices
        },
        outages=_outages(random),
        removed_at={
            d: random.randint(SECOND, 2 * SPAN) for d in devices if d.startswith("ghost")
        },
    )  # fmt: skip


def _plan(random: Random, number: int, places: list[str], pushes: int) -> PlannedPush:
    addresses = tuple(random.choices(places, k=random.choice((1, 1, 1, 2, 3, 5))))
    replaces = random.randrange(number) if number and random.random() < 0.2 else None
    cancel_after = None
    cancelled: tuple[str, ...] = ()
    if random.random() < 0.3:
        cancel_after = random.choice((0, 5 * MILLISECOND, SECOND, 20 * SECOND))
        cancelled = random.choice(((), addresses[:1]))
    return PlannedPush(
        number=number,
        at=random.randint(0, SPAN),
        addresses=addresses,
        method=random.choice(METHODS),
        ttl=random.choice((None, None, 100 * MILLISECOND, 5 * SECOND, MINUTE)),
        delay=random.choice((None, None, None, SECOND, 30 * SECOND)),
        replaces=replaces,
        how=random.choice(list(ReplaceMethod)),
        cancel_after=cancel_after,
        cancelled=cancelled,
    )


def _outages(random: Random) -> list[tuple[Micros, Micros]]:
    """Draw outages of the initiator: short ones, and now and then an hour."""
    found = []
    for _ in range(random.choice((0, 1, 2))):
        start = random.randint(0, SPAN)
        found.append((start, start + random.choice((SECOND, 20 * SECOND, HOUR))))
    return found
