"""Pushes, cancellations, replacements, devices and crashes in any order: what is reported is always
what the deliveries say, and an outcome that was told stays true.

About `core/pushes/`.
"""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from lasthop.clock import MINUTE, SECOND
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.errors import LasthopError
from lasthop.message import Target, TargetKind
from lasthop.wire.hop.frames import MessageFrame
from lasthop.wire.pap.documents import ReplaceMethod
from tests.core.pushes.initiator import HEARD, UNREACHABLE, Initiator, user
from tests.core.rig import APP, Rig

OWNERS = {"phone": "alice", "tablet": "alice", "watch": "bob"}
EVERYONE, NOBODY = user("everyone"), user("nobody")
PLACES = [*map(user, ["alice", "bob", *OWNERS]), EVERYONE, NOBODY]

places = st.lists(st.sampled_from(PLACES), min_size=1, max_size=4).map(tuple)
names = st.sampled_from(sorted(OWNERS))

ENDS = ("aborted", "timeout", "cancelled", "expired", "undeliverable")
"""What outweighs what, when nobody has it and nobody may get it any more."""

WORDS = {
    State.DELIVERED: "delivered",
    State.SENT: "delivered",
    State.EXPIRED: "expired",
    State.CANCELLED: "cancelled",
    State.REPLACED: "cancelled",
    State.ABORTED: "aborted",
    State.TIMED_OUT: "timeout",
    State.UNDELIVERABLE: "undeliverable",
    State.SUPPRESSED: "undeliverable",
}


class Pushing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(Limits(fanout_batch=1))
        self.initiator = Initiator(self.rig)
        self.numbers = {
            name: self.initiator.register(name, owner, subscriptions=["news"])
            for name, owner in OWNERS.items()
        }
        self.rig.gateway.pushes.point(APP, "USER:everyone", Target(TargetKind.TOPIC, "news"))
        self.rig.run()
        self.channels: dict[str, int] = {}
        self.accepted: list[str] = []
        self.told: dict[tuple[str, str], tuple[str, int]] = {}
        self.next = 0

    @rule(to=places, ttl=st.sampled_from([None, None, SECOND, MINUTE]), run=st.booleans())
    def push(self, to: tuple[str, ...], ttl: int | None, run: bool) -> None:
        self._push(to, ttl, run=run)

    @rule(to=places, data=st.data(), how=st.sampled_from(list(ReplaceMethod)))
    def replace(self, to: tuple[str, ...], data: st.DataObject, how: ReplaceMethod) -> None:
        self.rig.run()
        if self.accepted:
            old = data.draw(st.sampled_from(self.accepted))
            self._push(to, None, replaces=old, how=how)

    def _push(self, to: tuple[str, ...], ttl: int | None, **more: object) -> None:
        push_id = str(self.next)
        self.next += 1
        before = self.rig.now + ttl if ttl is not None else None
        try:
            self.initiator.push(push_id, *to, deliver_before=before, **more)  # type: ignore[arg-type]
        except LasthopError:
            return
        # It may not be durable yet: then it need not be there after a crash.
        if more.get("run", True):
            self.accepted.append(push_id)

    @rule(data=st.data(), some=st.booleans())
    def cancel(self, data: st.DataObject, some: bool) -> None:
        if not self.accepted:
            return
        push_id = data.draw(st.sampled_from(self.accepted))
        known = self.initiator.known(push_id)
        assert known is not None
        assert known.row is not None
        to = [known.row.addresses[0].text] if some else []
        before = self.initiator.reports(push_id)
        rows = self.rig.store.deliveries(known.message)
        codes = self.initiator.cancel(push_id, *to)
        after = self.initiator.reports(push_id)
        for text, code in (codes or {}).items():
            if code == 1000:
                assert after[text].state == "cancelled"
            else:
                assert after[text] == before[text]
        if codes is not None and 1000 not in codes.values():
            # Too late means that nothing was done.
            assert self.rig.store.deliveries(known.message) == rows

    @rule(name=names)
    def connect(self, name: str) -> None:
        self.channels[name] = self.rig.connect(name)

    @rule(name=names)
    def acknowledge(self, name: str) -> None:
        channel = self.channels.get(name)
        if channel is None:
            return
        frames = [f for f in self.rig.sent.get(channel, []) if isinstance(f, MessageFrame)]
        numbered = [frame.seq for frame in frames if frame.seq is not None]
        if numbered:
            self.rig.ack(channel, max(numbered) + 1)

    @rule(name=names)
    def lose(self, name: str) -> None:
        channel = self.channels.pop(name, None)
        if channel is not None:
            self.rig.lose(channel)

    @rule(seconds=st.sampled_from([1, 2, 61]))
    def wait(self, seconds: int) -> None:
        self.rig.pass_time(seconds * SECOND)

    @rule(hears=st.booleans())
    def hear(self, hears: bool) -> None:
        for push_id, text, state, code in self.initiator.hear(HEARD if hears else UNREACHABLE):
            known = self.told.setdefault((push_id, text), (state, code))
            assert known == (state, code)

    @rule()
    def crash(self) -> None:
        self.rig.crash()
        self.channels.clear()
        self.rig.run()

    @invariant()
    def what_is_reported_is_what_happened(self) -> None:
        self.rig.run()
        for push_id in self.accepted:
            reports = self.initiator.reports(push_id)
            for text, report in reports.items():
                assert str(report.state) == self._expected(push_id, text), (push_id, text)
        for (push_id, text), told in self.told.items():
            report = self.initiator.reports(push_id)[text]
            assert (str(report.state), report.code) == told

    def _expected(self, push_id: str, text: str) -> str:
        """As naively as it can be said, from the rows alone."""
        known = self.initiator.known(push_id)
        assert known is not None
        assert known.row is not None
        (addressee,) = [a for a in known.row.addresses if a.text == text]
        if addressee.code:
            return "undeliverable" if addressee.code == 2003 else "rejected"
        rows = self.rig.store.deliveries(known.message)
        if addressee.devices is not None:
            rows = [row for row in rows if row.device in addressee.devices]
        words = {WORDS[State(row.state)] if not row.open else "pending" for row in rows}
        first = ("pending", "delivered") if addressee.everyone else ("delivered", "pending")
        return next(word for word in (*first, *ENDS) if word in words)


def test_what_is_reported_is_always_what_happened() -> None:
    run_state_machine_as_test(
        Pushing, settings=settings(max_examples=60, stateful_step_count=30, deadline=None)
    )
