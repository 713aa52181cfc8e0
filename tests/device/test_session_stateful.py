"""Any order of loss, crash and return: the promises hold, and after the storm all has arrived.

About `device/session.py`.
"""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lasthop.clock import SECOND
from lasthop.core.gateway import Identity
from lasthop.device.inbox_memory import MemoryTransaction
from lasthop.device.message import Message
from lasthop.device.terms import DeviceTerms
from lasthop.store.memory import MemoryStore
from lasthop.wire.hop.frames import Credit, Headers
from tests.device.world import APP, NAME, World

SMALL = DeviceTerms(
    app=APP, name=NAME, window=Credit(4, 300), prefetch=2, inbox_messages=10, inbox_bytes=4000
)
"""Limits low enough to be met."""

FEW = st.integers(1, 3)
PRIORITIES = {"slow": 4, "urgent": 9, "other": 4}
QUEUES = st.sampled_from(sorted(PRIORITIES))
BYTES = st.one_of(st.none(), st.integers(1, 80))


class Storm(RuleBasedStateMachine):
    """A publisher, the gateway, a device whose application finishes what it likes when it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.world = self.make_world()
        self.published: list[str] = []
        self.sent: list[str] = []
        self.sent_safely: list[str] = []
        self.deadlines: dict[str, int] = {}
        self.unfinished: list[Message] = []
        self.finishing: list[Message] = []
        self.done: set[int] = set()
        self.seen: set[int] = set()
        self.count = 0

    def make_world(self) -> World:
        return World(SMALL)

    @initialize()
    def come_once(self) -> None:
        self.world.register()

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count:04d}" + "." * (self.count * 37 % 150)

    @rule(count=FEW)
    def publish(self, count: int) -> None:
        bodies = [self._name("down") for _ in range(count)]
        self.world.publish(*bodies)
        self.published += bodies

    @rule(seconds=FEW)
    def publish_with_deadline(self, seconds: int) -> None:
        body = self._name("soon")
        before = self.world.now + seconds * SECOND
        self.world.publish(body, before=before)
        self.deadlines[body] = before

    @rule()
    def send_to_oneself(self) -> None:
        body = self._name("echo")
        headers = Headers(to=f"device:{NAME}")
        self.world.device.queue(self.world.now, headers=headers, body=body.encode())
        self.sent.append(body)

    @rule()
    def dial(self) -> None:
        self.commit()
        self.world.dial()

    @rule(count=BYTES)
    def carry_up(self, count: int | None) -> None:
        self.world.carry_up(count)

    @rule(count=BYTES)
    def carry_down(self, count: int | None) -> None:
        self.world.carry_down(count)

    @rule()
    def reset(self) -> None:
        self.world.reset()

    @rule()
    def commit(self) -> None:
        if self.world.commit_device():
            self._finishes_are_durable()
            self.sent_safely = list(self.sent)

    def _finishes_are_durable(self) -> None:
        self.done |= {message.key for message in self.finishing}
        self.finishing = []

    @rule()
    def say(self) -> None:
        self.world.send_device()

    @rule()
    def take(self) -> None:
        world = self.world
        for message in world.take(finish=False):
            before = self.deadlines.get(message.text)
            assert before is None or world.now < before, "late, and handed over all the same"
            assert message.key not in self.done, "handed over after it was finished for good"
            if message.key in self.seen:
                assert message.redelivered, "seen before without a word of warning"
            self.seen.add(message.key)
            self.unfinished.append(message)

    @rule(count=FEW, last=st.booleans())
    def finish(self, count: int, last: bool) -> None:
        for _ in range(min(count, len(self.unfinished))):
            message = self.unfinished.pop(-1 if last else 0)
            self.world.device.finished(message)
            self.finishing.append(message)

    @rule(seconds=FEW)
    def wait(self, seconds: int) -> None:
        self.world.now += seconds * SECOND
        self.world.gateway.wake(self.world.now)
        self.world.settle_gateway()

    @rule()
    def crash_device(self) -> None:
        self.world.crash_device()
        self.unfinished = []
        self.finishing = []
        self.sent = list(self.sent_safely)

    @rule()
    def crash_gateway(self) -> None:
        self.world.crash_gateway()

    def settle(self) -> None:
        """The storm is over: everybody talks until nothing is left to say."""
        world = self.world
        for _ in range(4):
            self.dial()
            for _ in range(40):
                for act in (self.commit, self.say, self.take):
                    act()
                self.finish(99, last=False)
                self.commit()
                self.say()
                moved = world.carry_up()
                moved = world.carry_down() or moved

    def teardown(self) -> None:
        self.settle()
        assert self.world.closes == [], "neither side found fault with the other"
        assert self.world.device.held == 0
        assert self.world.device.waiting == 0
        assert self.world.inbox.load().inbox == []
        self.check_order()

    def check_order(self) -> None:
        first: dict[str, int] = {}
        for index, body in enumerate(self.world.bodies()):
            first.setdefault(body, index)
        for expected in (self.published, self.sent):
            assert [body for body in first if body in set(expected)] == expected


class StormInLanes(Storm):
    """Several queues, each in a lane of its own: its order holds, whatever the others do."""

    def __init__(self) -> None:
        super().__init__()
        self.in_queue: dict[str, str] = {}
        """The queue of each body that has one."""

    def make_world(self) -> World:
        terms = msgspec.structs.replace(SMALL, lanes=True, inbox_messages=100)
        return World(terms, identity=Identity(open_house=True, lanes=True))

    @rule(count=FEW, queue=QUEUES)
    def publish_to_a_queue(self, count: int, queue: str) -> None:
        bodies = [self._name("down") for _ in range(count)]
        self.world.publish(*bodies, queue=queue, priority=PRIORITIES[queue])
        self.published += bodies
        self.in_queue.update(dict.fromkeys(bodies, queue))

    @rule(queue=QUEUES)
    def send_in_a_queue(self, queue: str) -> None:
        body = self._name("echo")
        headers = Headers(to=f"device:{NAME}", queue=queue, priority=PRIORITIES[queue])
        self.world.device.queue(self.world.now, headers=headers, body=body.encode())
        self.sent.append(body)
        self.in_queue[body] = queue

    @rule()
    def long_silence(self) -> None:
        self.world.now += 100 * SECOND
        self.world.gateway.wake(self.world.now)
        self.world.settle_gateway()
        self.world.device.decide(self.world.now)

    def check_order(self) -> None:
        first = list(dict.fromkeys(self.world.bodies()))
        for kind in (self.published, self.sent):
            for queue in (None, *PRIORITIES):
                expected = [body for body in kind if self.in_queue.get(body) == queue]
                assert [body for body in first if body in set(expected)] == expected, queue
        assert set(self.published) <= set(first)
        assert set(self.sent) <= set(first)


class StormWithOldCopies(Storm):
    """The gateway may also come back as an older copy of itself, and then knows less."""

    def __init__(self) -> None:
        super().__init__()
        self.backup: tuple[MemoryStore, list[str]] | None = None

    @rule()
    def back_up(self) -> None:
        self.backup = (self.world.copy_of_store(), list(self.published))

    @precondition(lambda self: self.backup is not None)
    @rule()
    def restore(self) -> None:
        assert self.backup is not None
        self.world.now += SECOND
        store, published = self.backup
        self.world.restore_gateway(store)
        self.published = list(published)

    def check_order(self) -> None:
        bodies = [body for body in self.world.bodies() if body.startswith("down")]
        assert set(self.published) <= set(bodies)


class TransactionalStorm(RuleBasedStateMachine):
    """A handler whose work commits with the arrival: exactly once, whatever crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(SMALL)
        self.published: list[str] = []

    @initialize()
    def come_once(self) -> None:
        self.world.register()

    @rule(count=FEW)
    def publish(self, count: int) -> None:
        bodies = [f"{len(self.published) + index}" for index in range(count)]
        self.world.publish(*bodies)
        self.published += bodies

    @rule()
    def dial(self) -> None:
        self.world.dial()

    @rule(count=BYTES)
    def carry_up(self, count: int | None) -> None:
        self.world.carry_up(count)

    @rule(count=BYTES)
    def carry_down(self, count: int | None) -> None:
        self.world.carry_down(count)

    @rule(fails_at=st.one_of(st.none(), st.integers(0, 3)))
    def handle(self, fails_at: int | None) -> None:
        """One turn; the handler may fail, whose work is then undone and its turn kept."""
        world = self.world
        with world.inbox.transaction() as transaction:
            fresh = world.device.fresh(world.now)
            for index, message in enumerate(fresh):
                try:
                    with transaction.attempt():
                        record(message, transaction)
                        if index == fails_at:
                            raise RuntimeError("the handler failed")
                except RuntimeError:
                    world.device.put_back(fresh[index:])
                    break
                world.device.finished(message)
            change = world.device.change()
            if change is not None:
                transaction.apply(change)
        if change is not None:
            world.device.committed(change.n)
        world.send_device()

    @rule()
    def crash_in_the_middle(self) -> None:
        """Handlers have run, the commit never comes."""
        world = self.world
        try:
            with world.inbox.transaction() as transaction:
                for message in world.device.fresh(world.now):
                    record(message, transaction)
                    world.device.finished(message)
                raise RuntimeError("power cut")
        except RuntimeError:
            world.crash_device()

    @rule()
    def crash_device(self) -> None:
        self.world.crash_device()

    @rule()
    def crash_gateway(self) -> None:
        self.world.crash_gateway()

    def teardown(self) -> None:
        for _ in range(3):
            self.world.dial()
            for _ in range(40):
                self.handle(None)
                self.world.carry_up()
                self.world.carry_down()
        log = self.world.inbox.note("log") or b""
        assert log.decode().split() == self.published


def record(message: Message, transaction: MemoryTransaction) -> None:
    transaction.put("log", (transaction.get("log") or b"") + message.body + b"\n")


SETTINGS = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStorm = Storm.TestCase
TestStorm.settings = SETTINGS
TestStormInLanes = StormInLanes.TestCase
TestStormInLanes.settings = SETTINGS
TestStormWithOldCopies = StormWithOldCopies.TestCase
TestStormWithOldCopies.settings = SETTINGS
TestTransactionalStorm = TransactionalStorm.TestCase
TestTransactionalStorm.settings = SETTINGS
