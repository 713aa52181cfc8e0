"""All listeners of a gateway: what appears in a topic is encoded once and handed to each of them.

No listener has a row, a task for messages or a queue of its own: a listener that does not read is
ended, and goes on later from what the topic remembers.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lasthop.access.live_gateway import LiveGateway
from lasthop.access.ntfy.ntfy_event import NtfyEvent, event_of
from lasthop.access.receive.encoded import PING, EncodedEvent, ReceiveForm, frame
from lasthop.access.receive.topic_listener import Seat, TopicListener
from lasthop.clock import SECOND
from lasthop.core.effects import Appeared
from lasthop.core.topics.histories import Histories
from lasthop.errors import Limited
from lasthop.message import Message, short_form

RETRY = 10.0
"""Seconds after which a listener that was refused for want of room may try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveSettings:
    """The limits of receiving over HTTP."""

    listeners: int = 10_000
    """The largest number of listeners: each takes a connection and some 8 KiB."""
    per_address: int = 1000
    """The largest number of listeners from one address; behind a proxy that is not trusted, all
    callers have one."""
    topics: int = 100
    """The largest number of topics of one listener."""
    keepalive: float = 45.0
    """Seconds between two signs of life: clients of ntfy give a silent connection up after 77."""


class TooManyListeners(Limited):
    """There is no room for one more listener."""

    code = "too_many_listeners"
    http_status = 429


class Hub:
    """The listeners, by app and topic."""

    def __init__(self, live: LiveGateway, settings: ReceiveSettings) -> None:
        self._live = live
        self.settings = settings
        self._seats: dict[tuple[str, str], dict[Seat, None]] = {}
        self._listeners: dict[TopicListener, None] = {}
        """All listeners, the one that was heard from longest ago first."""
        self._addresses: Counter[str] = Counter()
        self._behind: dict[tuple[str, str], deque[Appeared]] = {}
        """What has appeared in topics of which a message is being read from the store."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._beating: asyncio.Task[None] | None = None
        self.sent = 0
        """The number of messages that were handed to listeners."""
        self.fallen_behind = 0
        """The number of listeners that were ended because they did not keep up."""

    @property
    def count(self) -> int:
        """The number of listeners of all topics together."""
        return len(self._listeners)

    def note_fallen_behind(self) -> None:
        """Count a listener that did not keep up."""
        self.fallen_behind += 1

    def admit(self, address: str) -> None:
        """Count one more listener from an address; raise an error if there is no room."""
        limits = self.settings
        if len(self._listeners) >= limits.listeners:
            raise TooManyListeners(
                "there are too many listeners", retry_after=RETRY, limit=limits.listeners
            )
        if self._addresses[address] >= limits.per_address:
            raise TooManyListeners(
                "too many listeners from this address", retry_after=RETRY, limit=limits.per_address
            )
        self._addresses[address] += 1

    def dismiss(self, address: str) -> None:
        """Count a listener from an address no longer."""
        self._addresses[address] -= 1
        if self._addresses[address] <= 0:
            del self._addresses[address]

    def join(self, listener: TopicListener, topics: Iterable[str]) -> None:
        """Let a listener have seats at its topics; what appears waits until it has caught up."""
        self._listeners[listener] = None
        listener.heard_at = asyncio.get_running_loop().time()
        for topic in topics:
            seat = Seat(listener, topic)
            listener.seats.append(seat)
            at = listener.app, topic
            seats = self._seats.get(at)
            if seats is None:
                seats = self._seats[at] = {}
                self._histories().listen(*at)
            seats[seat] = None
        if self._beating is None:
            self._beating = asyncio.get_running_loop().create_task(self._beat())

    def leave(self, listener: TopicListener) -> None:
        """Take away the seats of a listener that has ended."""
        self._listeners.pop(listener, None)
        for seat in listener.seats:
            at = listener.app, seat.topic
            seats = self._seats[at]
            del seats[seat]
            if not seats:
                del self._seats[at]
                self._histories().unlisten(*at)
        listener.seats = []

    def _histories(self) -> Histories:
        return self._live.look(lambda gateway: gateway.topics.histories)

    async def read(self, keys: Sequence[int]) -> dict[int, Message]:
        """Return the messages with these keys that the store has."""
        return await self._live.read(lambda reader: reader.messages(keys))

    # What appears.

    def appeared(self, appeared: Appeared) -> None:
        """Hand a message that has appeared to the listeners of its topic."""
        at = appeared.app, appeared.topic
        behind = self._behind.get(at)
        if behind is not None:
            behind.append(appeared)
        elif appeared.message is None:
            self._behind[at] = deque((appeared,))
            task = asyncio.get_running_loop().create_task(self._read_and_spread(at))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._spread(at, appeared, appeared.message)

    async def _read_and_spread(self, at: tuple[str, str]) -> None:
        """Go on with a topic of which a message is not in memory, in order."""
        behind = self._behind[at]
        try:
            while behind:
                appeared = behind[0]
                message = appeared.message
                if message is None:
                    message = (await self.read([appeared.key])).get(appeared.key)
                behind.popleft()
                if message is not None:
                    self._spread(at, appeared, message)
        except Exception:
            # What was not read is in the history: the listeners go on from it.
            for seat in list(self._seats.get(at, ())):
                seat.listener.fall_behind()
            raise
        finally:
            del self._behind[at]

    def _spread(self, at: tuple[str, str], appeared: Appeared, message: Message) -> None:
        seats = self._seats.get(at)
        if not seats:
            return
        encoded = self.encode(message, kept=bool(appeared.place))
        place = appeared.place
        done = 0
        for seat in list(seats):
            if seat.backlog is not None:
                seat.put_off(place, encoded)
            elif not place or place > seat.after:
                seat.after = place or seat.after
                seat.listener.send(encoded)
                done += 1
        self.sent += done

    def encode(self, message: Message, *, kept: bool) -> EncodedEvent:
        """Return a message as its listeners get it."""
        bounds = self._histories().bounds(message.app, message.target.name)
        age = bounds.age if kept and not bounds.off else 0
        event = event_of(message, age=age)
        return EncodedEvent(event, message.key)

    # Signs of life.

    def signal(self, name: str, topics: str) -> EncodedEvent:
        """Return an event that is no message: `open` or `keepalive`."""
        now = self._live.now()
        salt = self._live.look(lambda gateway: gateway.deliveries.keys.salt())
        event = NtfyEvent(id=short_form(salt >> 2), time=now // SECOND, event=name, topic=topics)
        return EncodedEvent(event)

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            now = loop.time()
            keepalives: dict[str, EncodedEvent] = {}
            while self._listeners:
                listener = next(iter(self._listeners))
                if listener.heard_at + self.settings.keepalive > now:
                    break
                del self._listeners[listener]
                self._listeners[listener] = None
                listener.heard_at = now
                self._sign_of_life(listener, keepalives)
            if not self._listeners:
                self._beating = None
                return

    def _sign_of_life(self, listener: TopicListener, keepalives: dict[str, EncodedEvent]) -> None:
        if listener.form is ReceiveForm.WS:
            listener.write(frame(b"", PING))
            return
        encoded = keepalives.get(listener.topics)
        if encoded is None:
            encoded = keepalives[listener.topics] = self.signal("keepalive", listener.topics)
        listener.say(encoded)

    async def close(self) -> None:
        """End all listeners, because the gateway shuts down."""
        for listener in list(self._listeners):
            listener.end()
        tasks = [*self._tasks, *([self._beating] if self._beating is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
