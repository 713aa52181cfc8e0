"""The real gateway core and the real device session, joined by bytes on a virtual clock.

Loss is a verb here: bytes are carried as far as a test says, links are reset, either side loses
what it had not committed, the gateway comes back as an older copy of itself.
"""

from __future__ import annotations

import copy
from collections import Counter

from lasthop.clock import SECOND, Micros
from lasthop.core.effects import CloseChannel, Send
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.lifecycle import State
from lasthop.core.publishing.submission import Submission
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import SessionEvent
from lasthop.device.terms import DeviceTerms
from lasthop.errors import HopError
from lasthop.message import DEFAULT_PRIORITY, Reliability, Target, TargetKind
from lasthop.store.memory import MemoryStore
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Close, CloseCode, Frame, Hello, Welcome
from lasthop.wire.hop.handshake import Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping

START: Micros = 1_800_000_000 * SECOND
APP = "app"
NAME = "phone"
TARGET = Target(TargetKind.DEVICE, NAME)


class Link:
    """Two byte streams, and a protocol machine at each end."""

    def __init__(self, number: int, hello: Hello, now: Micros) -> None:
        self.number = number
        self.hello = hello
        self.device: Dialing | Open = Dialing(hello, mapping=Mapping.STREAM, now=now)
        self.gateway: Waiting | Open = Waiting(mapping=Mapping.STREAM, now=now)
        self.up = bytearray()
        self.down = bytearray()

    def gather(self) -> None:
        """Write what both machines want written."""
        self.up += b"".join(self.device.data_to_send())
        self.down += b"".join(self.gateway.data_to_send())


class World:
    """One gateway, one device, at most one link between them."""

    def __init__(
        self, terms: DeviceTerms | None = None, *, identity: Identity | None = None
    ) -> None:
        self.now = START
        self.identity = identity or Identity(open_house=True)
        self.store = MemoryStore(incarnation=7)
        self.gateway = self._open_gateway()
        self.terms = terms or DeviceTerms(app=APP, name=NAME)
        self.inbox = MemoryInbox()
        self.device = DeviceSession(self.terms, self.inbox.load())
        self.link: Link | None = None
        self.handed: list[Message] = []
        self.happened: list[SessionEvent] = []
        self.closes: list[Close] = []
        self._links = 0

    def _open_gateway(self) -> Gateway:
        return Gateway(self.identity, self.store.open(), random64=lambda: 1, now=self.now)

    # The gateway's side.

    def register(self) -> None:
        """Let the device come once, so that messages for it are accepted."""
        self.dial()
        self.carry()
        self.reset()

    def publish(
        self,
        *bodies: str,
        before: Micros | None = None,
        target: Target = TARGET,
        reliability: Reliability = Reliability.EXACTLY_ONCE,
        reply_before: Micros | None = None,
        queue: str | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> list[int]:
        """Hand messages to the gateway and wait until it has them safe; returns their keys."""
        submissions = [
            Submission(
                target=target,
                body=body.encode(),
                deliver_before=before,
                reliability=reliability,
                reply_before=reply_before,
                queue=queue,
                priority=priority,
            )
            for body in bodies
        ]
        receipt = self.gateway.publish(APP, "shop", submissions, self.now)
        self.settle_gateway()
        return [int(message_id[:16], 16) for message_id in receipt.ids]

    def settle_gateway(self) -> None:
        """Let the gateway do all that it wants to do now, commits included."""
        while True:
            self.gateway.settle(self.now)
            for effect in self.gateway.effects():
                if isinstance(effect, Send):
                    self._send(effect)
                elif isinstance(effect, CloseChannel):
                    self._disconnect(effect)
            commit = self.gateway.commit(self.now, flush=True)
            if commit is None:
                return
            self.store.apply(commit)
            self.gateway.written(commit.n)
            self.gateway.proceed(self.now)

    def _send(self, effect: Send) -> None:
        link = self.link
        if link is None or link.number != effect.channel:
            return
        frames = effect.frames
        if isinstance(frames[0], Welcome):
            assert isinstance(link.gateway, Waiting)
            link.gateway = link.gateway.welcome(frames[0], self.now)
            frames = frames[1:]
        assert isinstance(link.gateway, Open)
        link.gateway.send(frames, self.now)

    def _disconnect(self, effect: CloseChannel) -> None:
        link = self.link
        if link is None or link.number != effect.channel:
            return
        close = Close(effect.code, effect.retry_after_ms, effect.reason)
        if isinstance(link.gateway, Open):
            link.gateway.close(close, self.now)
        else:
            link.gateway.close(close)

    def states(self) -> Counter[State]:
        """How many deliveries stand where, durably."""
        self.settle_gateway()
        return Counter(State(row.state) for row in self.store.all_deliveries())

    def crash_gateway(self) -> None:
        """The gateway loses what it had not committed, and its links."""
        self.reset(tell_gateway=False)
        self.store = self.store.crash()
        self.gateway = self._open_gateway()
        self.settle_gateway()

    def copy_of_store(self) -> MemoryStore:
        """A backup."""
        self.settle_gateway()
        return copy.deepcopy(self.store)

    def restore_gateway(self, backup: MemoryStore) -> None:
        """The gateway comes back as it was when the backup was made."""
        self.reset(tell_gateway=False)
        self.store = copy.deepcopy(backup)
        # As `lasthop.store.sqlite.backup.restore` does: another life of the store.
        self.store._kept.incarnation += 1
        self.gateway = self._open_gateway()
        self.settle_gateway()

    # The link.

    def dial(self) -> None:
        """The device dials; its HELLO is on the way."""
        self.reset()
        self.commit_device()
        self._links += 1
        self.link = Link(self._links, self.device.hello(link="wifi"), self.now)
        self.link.gather()

    def reset(self, *, tell_gateway: bool = True) -> None:
        """The link breaks: what is on it is lost, and both sides learn of it."""
        link, self.link = self.link, None
        if link is None:
            return
        self.device.lost()
        if tell_gateway:
            self.gateway.channel_lost(link.number, "reset", self.now)
            self.settle_gateway()

    def carry_up(self, count: int | None = None) -> bool:
        """Bring bytes to the gateway; says whether there were any."""
        link = self.link
        if link is None:
            return False
        link.gather()
        data = bytes(link.up[:count])
        del link.up[:count]
        if not data:
            return False
        if isinstance(link.gateway, Waiting):
            hello = link.gateway.receive(data, self.now)
            if hello is not None:
                self.gateway.frames_received(link.number, [hello], self.now, local=True)
        else:
            frames = link.gateway.receive(data, self.now)
            self.gateway.frames_received(link.number, frames, self.now, local=True)
        self.settle_gateway()
        if link.gateway.closed is not None and self.link is link:
            self.gateway.channel_lost(link.number, link.gateway.closed.reason, self.now)
            self.settle_gateway()
        return True

    def carry_down(self, count: int | None = None) -> bool:
        """Bring bytes to the device; says whether there were any."""
        link = self.link
        if link is None:
            return False
        link.gather()
        data = bytes(link.down[:count])
        del link.down[:count]
        if not data:
            return False
        if isinstance(link.device, Dialing):
            opened = link.device.receive(data, self.now)
            if opened is not None:
                link.device = opened.connection
                if not self.device.welcomed(link.hello, opened.welcome, self.now):
                    self.reset()
                    return True
                self._to_device(opened.frames)
        else:
            self._to_device(link.device.receive(data, self.now))
        if link.device.closed is not None and self.link is link:
            self.closes.append(link.device.closed)
            self.reset()
        return True

    def _to_device(self, frames: list[Frame]) -> None:
        link = self.link
        assert link is not None
        assert isinstance(link.device, Open)
        try:
            self.device.received(frames, self.now)
        except HopError as error:
            link.device.fail(error, self.now)

    def carry(self) -> None:
        """Let both sides talk until they have nothing more to say."""
        moved = True
        while moved:
            self.settle_device()
            self.take()
            self.settle_device()
            moved = self.carry_up()
            moved = self.carry_down() or moved

    # The device's side.

    def commit_device(self) -> bool:
        """One commit of the inbox; says whether there was anything to commit."""
        change = self.device.change()
        if change is None:
            return False
        self.inbox.apply(change)
        self.device.committed(change.n)
        return True

    def send_device(self) -> None:
        """Put on the link what the device may say now."""
        link = self.link
        if link is not None and isinstance(link.device, Open):
            link.device.send(self.device.frames(), self.now)
            link.gather()
        self.happened += self.device.session_events()

    def settle_device(self) -> None:
        """Commit, and say what may be said then."""
        while self.commit_device():
            pass
        self.send_device()

    def take(self, *, finish: bool = True) -> list[Message]:
        """The application takes what is ready."""
        messages = self.device.ready(self.now)
        self.handed += messages
        if finish:
            self.device.finished(*messages)
        return messages

    def crash_device(self) -> None:
        """The device loses what it had not committed, and its link."""
        self.reset()
        self.inbox = self.inbox.crash()
        self.device = DeviceSession(self.terms, self.inbox.load())

    def bodies(self) -> list[str]:
        """What the application was handed, in order."""
        return [message.text for message in self.handed]


def closed_with(world: World, code: CloseCode) -> bool:
    """Whether the gateway's last word was this."""
    return bool(world.closes) and world.closes[-1].code == code
