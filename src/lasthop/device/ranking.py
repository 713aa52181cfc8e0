"""The part of a session that reads ranked topics."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.device.arrivals import Arrivals
from lasthop.device.message import Message
from lasthop.device.outbox import Outbox
from lasthop.device.requests import Expectation
from lasthop.message import KeyMaker
from lasthop.wire.hop.feeds import Report, encode_look, encode_report
from lasthop.wire.hop.frames import Headers, MessageFrame, Operation


class RankedSession:
    """What a session does for topics of which the best is shown. The session owns all that is named
    here."""

    _arrivals: Arrivals
    _outbox: Outbox
    _keys: KeyMaker
    _last_key: int

    def queue(
        self,
        now: Micros,
        *,
        topic: str | None = None,
        headers: Headers | None = None,
        body: bytes = b"",
        expects: Expectation | None = None,
    ) -> int:
        """Take a message for the gateway."""
        raise NotImplementedError

    def look(self, topic: str, wanted: int | None, now: Micros) -> int:
        """Ask the gateway for the best of a topic; `Looked` has the answer to the key."""
        look = self._arrivals.kept.look(topic, wanted, now)
        headers = Headers(operation=Operation.LOOK)
        key = self.queue(now, topic=topic, headers=headers, body=encode_look(look))
        self._arrivals.looks.add(key)
        return key

    def read(self, topic: str, wanted: int | None, now: Micros) -> list[Message]:
        """Take the best of what is here. They are the application's, which says `finished` of
        each."""
        arrivals = self._arrivals
        read = arrivals.kept.read(topic, wanted, now)
        messages = [arrivals.move_in(kept, in_time=True) for kept in read]
        for message in messages:
            arrivals.turnstile.hand(message)
        return messages

    def read_instead(
        self, look: int, topic: str, wanted: int | None, now: Micros
    ) -> list[Message] | None:
        """The answer to a look takes too long: take what is here. None: it has come after all."""
        if look not in self._arrivals.looks:
            return None
        self._arrivals.looks.discard(look)
        return self.read(topic, wanted, now)

    def stop_looking(self, look: int) -> None:
        """Nobody waits for the answer to a look any more."""
        self._arrivals.looks.discard(look)

    def unread(self, topic: str) -> int:
        """How many messages of a ranked topic wait here."""
        return self._arrivals.kept.count(topic)

    def _report(self, topic: str | None, report: Report, now: Micros) -> None:
        """Say what became of kept messages. However full the outbox is: this makes room."""
        key = self._keys.key(now)
        self._last_key = key
        headers = Headers(operation=Operation.REPORT)
        frame = MessageFrame(None, key, topic, headers, encode_report(report))
        self._outbox.queue(frame, casual=False)
