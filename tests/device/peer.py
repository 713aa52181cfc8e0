"""A session spoken to frame by frame: the test plays the gateway and the disk."""

from __future__ import annotations

from typing import Any

from lasthop.clock import Micros
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message
from lasthop.device.session import DeviceSession
from lasthop.device.terms import DeviceTerms
from lasthop.message import first_key_at
from lasthop.wire.hop.frames import Credit, Frame, Headers, Hello, MessageFrame, Ranges, Welcome

NOW: Micros = 1_800_000_000_000_000
KEY = first_key_at(NOW)
INCARNATION = b"incarnat"
TERMS = DeviceTerms(app="shop", name="phone")


def frame(
    seq: int | None,
    body: str = "",
    *,
    key: int | None = None,
    headers: Headers | None = None,
    lane: int = 0,
) -> MessageFrame:
    """A message; its key follows from its number and lane unless it is given."""
    if key is None:
        key = KEY + (seq or 0) + 1000 * lane
    return MessageFrame(seq, key, None, headers, (body or f"m{seq}").encode(), lane)


class Peer:
    """A device session, its inbox, and the gateway's part of the conversation."""

    def __init__(self, terms: DeviceTerms = TERMS, inbox: MemoryInbox | None = None) -> None:
        self.inbox = inbox or MemoryInbox()
        self.terms = terms
        self.session = DeviceSession(terms, self.inbox.load())
        self.hello: Hello | None = None
        self.lanes = terms.lanes
        """Whether the gateway understands lanes."""

    def welcome(
        self,
        *,
        epoch: int = 1,
        incarnation: bytes = INCARNATION,
        received: int = 0,
        individual: Ranges = (),
        closed: int = 0,
        superseded: int | None = None,
        window: Credit | None = None,
        max_frame: int = 2**20 + 2**10,
        features: int = 0,
        now: Micros = NOW,
        **lanes: Any,
    ) -> bool:
        """Dial, and be welcomed; the numbering goes on if it is the one that was claimed."""
        self.commit()
        self.hello = hello = self.session.hello()
        return self.session.welcomed(
            hello,
            Welcome(
                incarnation=incarnation,
                epoch=epoch,
                resumed=(hello.incarnation, hello.epoch) == (incarnation, epoch),
                received=received,
                individual=individual,
                closed=closed,
                superseded=superseded,
                window=window,
                max_frame=max_frame,
                features=features | (hello.features if self.lanes else 0),
                **lanes,
            ),
            now,
        )

    def welcomed_with(self, hello: Hello, features: int) -> Welcome:
        """The answer to a HELLO with `join`."""
        assert hello.incarnation is not None
        assert hello.epoch is not None
        return Welcome(
            incarnation=hello.incarnation,
            epoch=hello.epoch,
            resumed=True,
            joined=True,
            features=features,
        )

    def commit(self) -> bool:
        """Make the next change durable."""
        change = self.session.change()
        if change is None:
            return False
        self.inbox.apply(change)
        self.session.committed(change.n)
        return True

    def said(self) -> list[Frame]:
        """Commit all there is, and what may be said then."""
        while self.commit():
            pass
        return self.session.frames()

    def arrive(self, *frames: Frame, now: Micros = NOW) -> None:
        """Let frames come in."""
        self.session.received(frames, now)

    def ready(self, now: Micros = NOW) -> list[Message]:
        """What the application gets."""
        return self.session.ready(now)

    def take(self, now: Micros = NOW) -> list[str]:
        """Let the application have and finish what is ready."""
        messages = self.session.ready(now)
        self.session.finished(*messages)
        return [message.text for message in messages]

    def crash(self) -> None:
        """Lose what was not committed."""
        self.inbox = self.inbox.crash()
        self.session = DeviceSession(self.terms, self.inbox.load())
