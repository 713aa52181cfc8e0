"""The core of a session without any feature, and with one that the SDK does not have."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.device.change import InboxContents
from lasthop.device.message import Message
from lasthop.device.part import DevicePart, moments
from lasthop.device.session_core import SessionCore
from lasthop.wire.hop.frames import Ack, Headers, MessageFrame, Welcome
from tests.device.peer import INCARNATION, NOW, TERMS, frame


class Bin(DevicePart):
    """Takes every message with a certain title, and throws it away."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.had: list[str] = []
        self.ended_by: list[bool] = []

    def claims(self, message: Message, headers: Headers, now: Micros) -> bool:
        if headers.title != "advertisement":
            return False
        self.had.append(message.text)
        self._core.arrivals.finish(message)
        return True

    def ended(self, message: Message, *, had: bool) -> None:
        self.ended_by.append(had)


class LateBin(Bin):
    takes_late = True


def welcomed(core: SessionCore, *parts: DevicePart) -> SessionCore:
    core.attach(parts, InboxContents())
    hello = core.hello()
    welcome = Welcome(incarnation=INCARNATION, epoch=1, resumed=False, received=0)
    assert core.welcomed(hello, welcome, NOW)
    commit(core)
    return core


def commit(core: SessionCore) -> None:
    while (change := core.change()) is not None:
        core.committed(change.n)


def test_a_session_without_parts_takes_and_sends_messages() -> None:
    core = welcomed(SessionCore(TERMS, InboxContents()))
    core.received([frame(0, "hello")], NOW)
    commit(core)
    (message,) = core.ready(NOW)
    assert message.text == "hello"
    core.finished(message)
    core.queue(NOW, headers=Headers(to="device:x"), body=b"answer")
    commit(core)
    said = core.frames()
    assert Ack(1, 1) in said
    assert [f.body for f in said if isinstance(f, MessageFrame)] == [b"answer"]


def test_a_part_has_what_it_claims_and_nobody_else_does() -> None:
    core = SessionCore(TERMS, InboxContents())
    part = Bin(core)
    welcomed(core, part)
    core.received([frame(0, "buy", headers=Headers(title="advertisement")), frame(1)], NOW)
    commit(core)
    assert [message.text for message in core.ready(NOW)] == ["m1"]
    assert part.had == ["buy"]
    assert part.ended_by == [True]


def test_only_a_part_that_takes_late_messages_is_asked_after_the_deadline() -> None:
    late = Headers(title="advertisement", deliver_within=0)
    for kind, had, ended in ((Bin, [], [False]), (LateBin, ["buy"], [True])):
        core = SessionCore(TERMS, InboxContents())
        part = kind(core)
        welcomed(core, part)
        core.received([frame(0, "buy", headers=late)], NOW)
        assert part.had == had
        assert part.ended_by == ended


def test_a_moment_that_a_part_does_not_override_costs_nothing() -> None:
    part = Bin(SessionCore(TERMS, InboxContents()))
    assert moments([part, DevicePart()], "claims") == [part.claims]
    assert moments([part, DevicePart()], "collect") == []
