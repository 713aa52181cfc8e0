"""One listener: a connection over which a caller receives one or several topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lasthop.access.ntfy.ntfy_event import NtfyEvent
from lasthop.access.receive.encoded import EncodedEvent, ReceiveForm
from lasthop.message import short_form

MOST_UNSENT = 256 << 10
"""Bytes that may wait for a listener that does not read; then it is closed and told where to go
on."""

MOST_BEHIND = 1000
"""Messages that may appear while a listener is still given what the topic remembers."""


class ListenerOutlet(Protocol):
    """The way to a listener: it takes bytes at once, and says how many still wait."""

    def write(self, data: bytes) -> None:
        """Hand over bytes to be sent."""
        ...

    @property
    def unsent(self) -> int:
        """The number of bytes that were handed over and not sent yet."""
        ...


Filter = Callable[[NtfyEvent], bool]


class TopicListener:
    """A connection that gets messages of topics as they appear."""

    __slots__ = (
        "__weakref__",
        "_outlet",
        "app",
        "chunked",
        "ended",
        "fell_behind",
        "form",
        "heard_at",
        "last",
        "over",
        "seats",
        "topics",
        "wants",
    )

    def __init__(
        self,
        app: str,
        topics: str,
        form: ReceiveForm,
        outlet: ListenerOutlet,
        *,
        chunked: bool,
        wants: Filter | None,
        over: Callable[[], None],
        fell_behind: Callable[[], None] = lambda: None,
    ) -> None:
        self.app = app
        self.topics = topics
        """The topics as they were asked for, between commas."""
        self.form = form
        self.chunked = chunked
        self._outlet = outlet
        self.wants = wants
        """Which events the listener wants; None for all."""
        self.over = over
        self.fell_behind = fell_behind
        """Called once when the gateway ends the listener."""
        self.seats: list[Seat] = []
        self.ended = False
        self.last = 0
        """The key of the last message that was handed over."""
        self.heard_at = 0.0

    def send(self, encoded: EncodedEvent) -> None:
        """Hand over one event, unless the listener does not want it or does not keep up."""
        if self.ended:
            return
        if self.wants is not None and not self.wants(encoded.event):
            return
        outlet = self._outlet
        if outlet.unsent > MOST_UNSENT:
            self.fall_behind()
            return
        outlet.write(encoded.wire(self.form, chunked=self.chunked))
        if encoded.key:
            self.last = encoded.key

    def say(self, encoded: EncodedEvent) -> None:
        """Hand over an event that is no message, whatever is filtered."""
        if not self.ended:
            self._outlet.write(encoded.wire(self.form, chunked=self.chunked))

    @property
    def unsent(self) -> int:
        """The number of bytes that wait to be read."""
        return self._outlet.unsent

    def write(self, data: bytes) -> None:
        """Hand over bytes of the connection's own, such as a ping."""
        if not self.ended:
            self._outlet.write(data)

    def fall_behind(self) -> None:
        """End a listener that does not keep up, and tell it the id to go on from."""
        if self.ended:
            return
        self.fell_behind()
        since = short_form(self.last) if self.last else "all"
        self.say(EncodedEvent(NtfyEvent(id=since, event="closed", topic=self.topics, since=since)))
        self.end()

    def end(self) -> None:
        """End the listener, whoever wants that."""
        if not self.ended:
            self.ended = True
            self.over()


class Seat:
    """A listener's place at one topic."""

    __slots__ = ("after", "backlog", "listener", "topic")

    def __init__(self, listener: TopicListener, topic: str) -> None:
        self.listener = listener
        self.topic = topic
        self.after = 0
        """The place in the history up to which the listener has had the topic."""
        self.backlog: list[tuple[int, EncodedEvent]] | None = []
        """What has appeared while the listener is still given what the topic remembers; None when
        it has caught up."""

    def put_off(self, place: int, encoded: EncodedEvent) -> None:
        """Keep what has appeared until the listener has caught up."""
        assert self.backlog is not None
        if len(self.backlog) >= MOST_BEHIND:
            self.listener.fall_behind()
        else:
            self.backlog.append((place, encoded))

    def catch_up(self) -> None:
        """Hand over what has appeared meanwhile, once, and go on live."""
        backlog, self.backlog = self.backlog or [], None
        for place, encoded in backlog:
            if not place or place > self.after:
                self.after = place or self.after
                self.listener.send(encoded)
