"""A gateway in rehearsal: the real `Gateway` and channels on virtual time, which can crash.

Writing takes time, and a crash can fall anywhere: while changes are only collected, while a commit
is being written (then it is lost), or after it is durable and before anyone is told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Protocol, TypeAlias

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.effects import (
    Carry,
    CloseChannel,
    Consult,
    Effect,
    Fetch,
    MatchFilters,
    Notify,
    Recall,
    Send,
    SendPiece,
    SentElsewhere,
)
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.pushes.results import write_result
from lasthop.core.session import Session
from lasthop.delivery.carrier import Carrier, Outcome
from lasthop.message import Message
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.interconnects import Thrift
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import LinkEnd, RehearsedLink
from lasthop.store.base import Store
from lasthop.store.commit import Commit
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Close, Frame, Welcome
from lasthop.wire.hop.handshake import Waiting
from lasthop.wire.pap.answers import PapAnswer

Tell: TypeAlias = Callable[[str, bytes, Callable[[PapAnswer], None]], None]
"""Posts a result of this content type, and passes the answer on when there is one."""

AskSurrogate: TypeAlias = Callable[[Gateway, Consult, Callable[[], bool]], None]
"""Gives a surrogate the messages that wait for it. The last argument returns whether the gateway
that asks is still running."""


class Disk(Protocol):
    """The disk with a gateway's store; it survives the gateway's crashes."""

    def open(self) -> Store:
        """Return the store as a new process finds it."""
        ...

    def crash(self, writing: Commit | None) -> None:
        """End the process that uses the disk: what was applied is kept, and `writing` completely or
        not at all."""
        ...


class GatewayNode:
    """One gateway that starts, crashes and starts again."""

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        disk: Disk,
        identity: Identity,
        *,
        write_time: Micros = 2 * MILLISECOND,
        before_commit: Callable[[int], bool] = lambda n: False,
        after_commit: Callable[[int], bool] = lambda n: False,
        started: Callable[[Store], None],
        committed: Callable[[Commit], None],
        tell: Tell | None = None,
        consult: AskSurrogate | None = None,
        carriers: Callable[[int], Mapping[str, Carrier]] = lambda boot: {},
    ) -> None:
        """`carriers` returns the carriers of a new start, given its number."""
        self._kernel = kernel
        self._random = random
        self._disk = disk
        self._identity = identity
        self._write_time = write_time
        self._before_commit = before_commit
        self._after_commit = after_commit
        self._on_started = started
        self._on_committed = committed
        self._tell = tell
        self._ask_surrogate = consult
        self._make_carriers = carriers
        self._carriers: Mapping[str, Carrier] = {}
        self.gateway: Gateway | None = None
        self.store: Store | None = None
        self.thrift: Thrift | None = None
        """Checks what is sent again, in rehearsals that want to know; otherwise None."""
        self.crashes = 0
        self.commits = 0
        self._channels: dict[int, _Channel] = {}
        self._last_channel = 0
        self._writing: deque[Commit] = deque()
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    @property
    def up(self) -> bool:
        return self.gateway is not None

    def start(self) -> None:
        """Start the gateway, or restart it after a crash, with the store on its disk."""
        self.store = self._disk.open()
        self._writing.clear()
        restored = self.store.open()
        self._on_started(self.store)
        self.gateway = Gateway(
            self._identity,
            restored,
            random64=lambda: self._random.getrandbits(64),
            now=self._kernel.now(),
        )
        self._carriers = self._make_carriers(restored.boot)
        self.gateway.air.withdraw = self._withdraw
        self.turn()

    def crash(self, writing: Commit | None = None) -> None:
        """Crash at once, perhaps in the middle of a write. Others only notice the silence."""
        if self.gateway is None:
            return
        self.crashes += 1
        self.gateway = None
        self.store = None
        self._waiting = []
        self._disk.crash(writing)
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.link.cut()

    def dial(self, link: RehearsedLink, kind: Interconnect) -> int:
        """Connect a device; return the number of the channel, or 0 if the gateway is down."""
        if self.gateway is None:
            return 0
        self._last_channel += 1
        number = self._last_channel
        self._channels[number] = _Channel(
            link, Waiting(mapping=kind.mapping, now=self._kernel.now())
        )
        self.gateway.channel_opened(number, reliable=kind.lossless)
        self._watch(number)
        return number

    def act(self, action: Callable[[Gateway, Micros], None], durable: Callable[[], None]) -> bool:
        """Let a publisher act, and call `durable` when the action is durable. Return False if the
        gateway is down. If the gateway crashes first, `durable` is never called.
        """
        gateway = self.gateway
        if gateway is None:
            return False
        action(gateway, self._kernel.now())
        if gateway.horizon <= gateway.durable:
            durable()
        else:
            self._waiting.append((gateway.horizon, durable))
            gateway.hurry()
        self.turn()
        return True

    def arrived(self, number: int, data: bytes, unit: int | None = None) -> None:
        """Handle bytes that arrived over a channel; on an unordered link they are a numbered
        unit."""
        channel = self._channels.get(number)
        if channel is None or self.gateway is None:
            return
        now = self._kernel.now()
        if isinstance(channel.phase, Waiting):
            hello = channel.phase.receive(data, now)
            frames: list[Frame] = [hello] if hello is not None else []
        elif unit is None:
            frames = channel.phase.receive(data, now)
        else:
            frames = channel.phase.receive_unit(data, unit, now)
        self.gateway.frames_received(number, frames, now, local=True)
        self._flush(number, channel)
        self.turn()

    def broken(self, number: int) -> None:
        """Note that the link of a channel has ended."""
        if self._channels.pop(number, None) is not None and self.gateway is not None:
            self.gateway.channel_lost(number, "the link broke", self._kernel.now())
            self.turn()

    def turn(self) -> None:
        """Act on what has happened: carry out effects, and begin to write the next commit."""
        gateway = self.gateway
        if gateway is None:
            return
        now = self._kernel.now()
        gateway.wake(now)
        gateway.settle(now)
        for effect in gateway.effects():
            self._perform(gateway, effect)
        self._write_next(gateway)
        if self.gateway is gateway:
            due = gateway.next_wake()
            if due is not None and not (self._writing and due <= now):
                self._kernel.at(max(due, now + 1), self._wake)

    def _wake(self) -> None:
        # Every turn plans a wake-up; only those that are due have an effect.
        gateway = self.gateway
        if gateway is not None:
            due = gateway.next_wake()
            if due is not None and due <= self._kernel.now():
                self.turn()

    def _write_next(self, gateway: Gateway) -> None:
        commit = gateway.commit(self._kernel.now())
        if commit is not None:
            self._writing.append(commit)
            if len(self._writing) == 1:
                self._write(gateway)

    def _write(self, gateway: Gateway) -> None:
        """Write the first waiting commit; commits are written one after the other."""
        delay = self._random.randint(0, self._write_time)
        self._kernel.after(delay, lambda: self._written(gateway))

    def _written(self, gateway: Gateway) -> None:
        if self.gateway is not gateway or self.store is None:
            return
        commit = self._writing[0]
        if self._before_commit(commit.n):
            self.crash(commit)
            return
        self.store.apply(commit)
        self.commits += 1
        self._on_committed(commit)
        if self._after_commit(commit.n):
            self.crash()
            return
        self._writing.popleft()
        if self._writing:
            self._write(gateway)
        gateway.written(commit.n)
        self._write_next(gateway)
        gateway.proceed(self._kernel.now())
        heard = [done for n, done in self._waiting if n <= commit.n]
        self._waiting = [(n, done) for n, done in self._waiting if n > commit.n]
        for done in heard:
            done()
        self.turn()

    def _perform(self, gateway: Gateway, effect: Effect) -> None:
        now = self._kernel.now()
        if isinstance(effect, Send):
            channel = self._channels.get(effect.channel)
            if channel is not None:
                if self.thrift is not None:
                    self.thrift.sent(session_of(gateway, effect.channel), effect.frames)
                self._send(channel, effect.frames)
                self._flush(effect.channel, channel)
        elif isinstance(effect, SendPiece):
            channel = self._channels.get(effect.channel)
            if channel is not None:
                self._send(channel, [effect.piece])
                self._flush(effect.channel, channel)
                drained = partial(self._drained, gateway, effect.channel)
                self._kernel.at(channel.link.drained_at(LinkEnd.GATEWAY), drained)
        elif isinstance(effect, SentElsewhere):
            channel = self._channels.get(effect.channel)
            if channel is not None and isinstance(channel.phase, Open):
                channel.phase.sent_elsewhere(effect.frames)
        elif isinstance(effect, CloseChannel):
            channel = self._channels.get(effect.channel)
            if channel is not None:
                close = Close(effect.code, effect.retry_after_ms, effect.reason)
                if isinstance(channel.phase, Waiting):
                    channel.phase.close(close)
                else:
                    channel.phase.close(close, now)
                self._flush(effect.channel, channel)
        elif isinstance(effect, Notify):
            self._notify(gateway, effect)
        elif isinstance(effect, Carry):
            carrier = self._carriers[effect.parcel.route.variant]
            report = partial(self._carried, gateway, effect.message, effect.device)
            carrier.carry(effect.parcel, report)
        elif isinstance(effect, Consult):
            assert self._ask_surrogate is not None, "there is a surrogate, and nobody asks it"
            self._ask_surrogate(gateway, effect, lambda: self.gateway is gateway)
        elif isinstance(effect, MatchFilters):
            self._kernel.after(self._write_time, partial(self._match, gateway, effect))
        elif isinstance(effect, Fetch):
            assert self.store is not None
            messages = self.store.messages(effect.keys)
            self._kernel.after(self._write_time, lambda: self._fetched(gateway, messages))
        elif isinstance(effect, Recall):
            assert self.store is not None
            messages = self.store.messages(effect.keys)
            had = self.store.delivered_to(effect.device, effect.keys)
            self._kernel.after(
                self._write_time, lambda: self._recalled(gateway, effect.device, messages, had)
            )

    def _match(self, gateway: Gateway, effect: MatchFilters) -> None:
        """Read a large body here: in virtual time there is no event loop to delay."""
        if self.gateway is gateway:
            filters = gateway.topics.index.filters
            reading = filters.read(effect.app, effect.content_type, effect.body)
            gateway.topics.matched(effect.message, reading, self._kernel.now())
            self.turn()

    def _drained(self, gateway: Gateway, number: int) -> None:
        if self.gateway is gateway:
            gateway.pieces.drained(number, self._kernel.now())
            self.turn()

    def _notify(self, gateway: Gateway, notify: Notify) -> None:
        assert self.store is not None
        assert self._tell is not None, (
            "a result is to be posted, and the rehearsal has no initiator"
        )
        reply = self.store.messages([notify.reply]).get(notify.reply)
        content_type, body = write_result(notify, reply)

        def answered(answer: PapAnswer) -> None:
            if self.gateway is gateway:
                now = self._kernel.now()
                gateway.notifications.answered(notify.message, notify.place, answer, now)
                self.turn()

        self._tell(content_type, body, answered)

    def _carried(self, gateway: Gateway, message: int, device: int, outcome: Outcome) -> None:
        if self.gateway is gateway:
            gateway.air.carried(message, device, outcome, self._kernel.now())
            self._kernel.after(0, self.turn)

    def _withdraw(self, variant: str, number: int) -> bool:
        return self._carriers[variant].withdraw(number)

    def _recalled(
        self, gateway: Gateway, device: int, messages: dict[int, Message], had: set[int]
    ) -> None:
        if self.gateway is gateway:
            gateway.recalled(device, messages, had, self._kernel.now())
            self.turn()

    def _fetched(self, gateway: Gateway, messages: dict[int, Message]) -> None:
        if self.gateway is gateway:
            gateway.fetched(messages, self._kernel.now())
            self.turn()

    def _send(self, channel: _Channel, frames: list[Frame]) -> None:
        now = self._kernel.now()
        if isinstance(channel.phase, Waiting):
            welcome, *frames = frames
            assert isinstance(welcome, Welcome), "the first frame to a device is a WELCOME"
            channel.phase = channel.phase.welcome(welcome, now)
        channel.phase.send(frames, now)

    def _flush(self, number: int, channel: _Channel) -> None:
        """Write what the channel has to send, and hang up after its last frame."""
        for data in channel.phase.data_to_send():
            channel.link.write(LinkEnd.GATEWAY, data)
        if channel.phase.closed is not None and self._channels.pop(number, None) is not None:
            channel.link.close(LinkEnd.GATEWAY)
            if self.gateway is not None:
                reason = channel.phase.closed.reason
                self.gateway.channel_lost(number, reason, self._kernel.now())
        self._watch(number)

    def _watch(self, number: int) -> None:
        channel = self._channels.get(number)
        if channel is None:
            return
        due = channel.phase.next_timeout()
        if due is not None and due != channel.watched:
            channel.watched = due
            self._kernel.at(due, lambda: self._timeout(number, channel))

    def _timeout(self, number: int, channel: _Channel) -> None:
        if self._channels.get(number) is channel:
            channel.watched = None
            channel.phase.timeout(self._kernel.now())
            self._flush(number, channel)
            self.turn()


def session_of(gateway: Gateway, channel: int) -> Session | None:
    """Return the session that uses this channel, or None."""
    for session in gateway.deliveries.sessions():
        if any(line.channel == channel for line in session.lines):
            return session
    return None


class _Channel:
    __slots__ = ("link", "phase", "watched")

    def __init__(self, link: RehearsedLink, phase: Waiting | Open) -> None:
        self.link = link
        self.phase: Waiting | Open = phase
        self.watched: Micros | None = None
