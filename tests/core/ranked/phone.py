"""A device with ranked topics, by hand: what it keeps, and what it says."""

from __future__ import annotations

from typing import Any

import msgspec

from lasthop.core.limits import Limits
from lasthop.decision.volume.policy_choice import OnePolicy, PolicyChoice
from lasthop.wire.hop.feeds import (
    FeedEnded,
    Forget,
    Instruction,
    Look,
    NewRank,
    Report,
    ShowKept,
    decode_instructions,
    encode_look,
    encode_report,
)
from lasthop.wire.hop.frames import ALL_FEATURES, Headers, MessageFrame, Operation
from tests.core.rig import Rig, to


class Phone:
    """Follows instructions as a device does, and acknowledges everything at once."""

    def __init__(self, rig: Rig | None = None, *, limits: Limits | None = None) -> None:
        self.rig = rig or Rig(limits)
        policies = self.rig.identity.policies
        if rig is None and isinstance(policies, OnePolicy):
            policies.choice = PolicyChoice("unified")  # It sends ahead what nobody knows yet.
        self.channel = 0
        self.seen = 0
        self.sent = 0
        self.received = 0
        self.kept: dict[int, float] = {}
        self.shown: list[int] = []
        self.came: list[int] = []
        """Messages that went straight to the application."""
        self.instructions: list[Instruction] = []

    def connect(self, **claims: Any) -> None:
        claims = {"features": int(ALL_FEATURES), **claims}
        self.channel = self.rig.connect(**claims)
        self.seen = self.sent = self.received = 0
        self.hear()

    def resume(self, **claims: Any) -> None:
        welcome = self.rig.welcome(self.channel)
        self.channel = self.rig.connect(
            features=int(ALL_FEATURES),
            incarnation=welcome.incarnation,
            epoch=welcome.epoch,
            received=self.received,
            delivered=self.received,
            **claims,
        )
        self.seen = 0
        self.hear()

    def lose(self) -> None:
        self.rig.lose(self.channel)

    def say(self, operation: Operation, body: bytes, topic: str | None = "news") -> int:
        key = 1000 + self.sent
        frame = MessageFrame(self.sent, key, topic, Headers(operation=operation), body)
        self.sent += 1
        self.rig.hear(self.channel, frame)
        self.hear()
        return key

    def subscribe(self, **terms: Any) -> None:
        self.say(Operation.SUBSCRIBE, msgspec.json.encode(terms))

    def look(self, wanted: int | None = None) -> list[int]:
        """What a read shows, best first."""
        before = len(self.shown)
        key = self.say(Operation.LOOK, encode_look(Look(wanted, len(self.kept))))
        assert self.answered == key, "every look is answered"
        return self.shown[before:]

    def report(self, report: Report) -> None:
        self.say(Operation.REPORT, encode_report(report))

    def hear(self, *, acknowledge: bool = True) -> None:
        """Take in what has come since the last time."""
        self.rig.run()
        while True:
            frames = self.rig.messages(self.channel)[self.seen :]
            if not frames:
                return
            self.seen += len(frames)
            for frame in frames:
                self._take(frame)
            if acknowledge:
                self.rig.ack(self.channel, self.received)

    def _take(self, frame: MessageFrame) -> None:
        assert frame.seq is not None
        assert frame.key is not None
        self.received = max(self.received, frame.seq + 1)
        headers = frame.headers or Headers()
        if headers.operation == Operation.FEED:
            self.answered = headers.in_reply_to
            for instruction in decode_instructions(frame.body):
                self._follow(instruction)
        elif headers.keep:
            assert frame.key not in self.kept, "kept twice"
            self.kept[frame.key] = headers.rank
        else:
            self.came.append(frame.key)

    def _follow(self, instruction: Instruction) -> None:
        self.instructions.append(instruction)
        match instruction:
            case ShowKept(keys):
                for key in keys:
                    del self.kept[key]
                    self.shown.append(key)
            case Forget(_, keys):
                for key in keys:
                    self.kept.pop(key, None)
            case NewRank(key, rank):
                self.kept[key] = rank
            case FeedEnded():
                self.kept.clear()
            case _:
                pass

    def publish(self, *ranks: float, **fields: Any) -> list[int]:
        keys = self.rig.publish(*(to("topic:news", rank=rank, **fields) for rank in ranks))
        self.rig.run()
        if self.channel in self.rig.sent:
            self.hear()
        return keys
