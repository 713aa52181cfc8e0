"""The part of the session for requests. An answer to a request does not wait for its turn among
other messages, since the handler of an earlier message may be waiting for that answer."""

from __future__ import annotations

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.device.change import Change, InboxContents
from lasthop.device.message import NO_POSITION, TIMEOUT_TYPE, Message, Refusal, refusal
from lasthop.device.outgoing import Outgoing
from lasthop.device.part import DevicePart
from lasthop.device.requests.expectation import Expectation
from lasthop.device.requests.pending_requests import Requests
from lasthop.device.session_core import SessionCore
from lasthop.device.session_events import SessionEvent
from lasthop.message import key_time
from lasthop.wire.hop.frames import ERROR_TYPE, Headers, MessageFrame


class RequestPart(DevicePart):
    """The requests of this device that have not ended, as a part of its session."""

    def __init__(self, core: SessionCore, held: InboxContents) -> None:
        self._core = core
        self._arrivals = core.arrivals
        self._requests = Requests(held.requests, gather_bytes=core.terms.inbox_bytes)

    # The application.

    def ask(
        self,
        now: Micros,
        expects: Expectation,
        *,
        topic: str | None = None,
        headers: Headers,
        body: bytes = b"",
    ) -> int:
        """Queue a request; return the key by which its one outcome is reported. If it raises
        TooLarge or Overloaded, nothing was queued."""
        self._requests.check()
        key = self._core.queue(now, topic=topic, headers=headers, body=body)
        within = (headers.reply_within or 0) * MILLISECOND
        self._requests.add(key, key_time(key) + within, expects)
        return key

    def give_up(self, key: int) -> None:
        """Forget a request whose caller no longer waits; an answer that still comes is dropped."""
        self._requests.give_up(key)

    def time_out(self, key: int) -> None:
        """End a request because its time has passed by the caller's clock."""
        self._requests.time_out(key)

    @property
    def waiting(self) -> int:
        """The number of requests that have no outcome yet."""
        return len(self._requests)

    # What comes in.

    def claims(self, message: Message, headers: Headers, now: Micros) -> bool:
        return headers.in_reply_to is not None and self._answered(message, now)

    def _answered(self, message: Message, now: Micros) -> bool:
        """Whether the message answers a request of this device, and so is not an ordinary
        message."""
        request = message.in_reply_to or 0
        against = refusal(message)
        by_name = self._requests.callback_of(request) is not None
        if against is not None and not by_name:
            self._requests.give_up(request)
            self._core.refuse(request, against)
            self._arrivals.finish(message)
        elif against is not None:
            self._fail(request, message)
        elif self._requests.answered(request, message, now):
            if by_name:
                self._keep_outcome(message)
            else:
                self._arrivals.finish(message)
        elif message.headers.answer:
            # An answer to a request that has ended: it came too late, or twice.
            self._arrivals.drop(message)
        else:
            return False
        self._hand_over_outcomes()
        return True

    def _fail(self, key: int, message: Message) -> None:
        if self._requests.fail(key, message):
            self._keep_outcome(message)
        else:
            self._arrivals.finish(message)

    def _keep_outcome(self, message: Message) -> None:
        if message.position != NO_POSITION:
            self._arrivals.store(message)

    def ended(self, message: Message, *, had: bool) -> None:
        if had and message.request is not None:
            self._requests.settle(message.request.key)

    def fails(self, item: Outgoing, refusal: Refusal) -> bool:
        """Whether a message that cannot leave is dealt with here: for a request, the refusal is its
        outcome, unless it already has one."""
        key = item.key
        if item.asks and not self._requests.waits(key):
            return True
        if self._requests.callback_of(key) is None:
            self._requests.give_up(key)
            return False
        headers = Headers(content_type=ERROR_TYPE, in_reply_to=key)
        frame = MessageFrame(None, None, None, headers, msgspec.json.encode(refusal))
        self._fail(key, self._arrivals.place(frame))
        self._hand_over_outcomes()
        return True

    # Time, and what has to survive.

    def expire(self, now: Micros) -> None:
        for row in self._requests.expire(now):
            headers = Headers(content_type=TIMEOUT_TYPE, in_reply_to=row.key, answer=True)
            placed = self._arrivals.place(MessageFrame(None, None, None, headers))
            self._requests.attach(placed)
        self._hand_over_outcomes()

    def next_expiry(self) -> Micros | None:
        return self._requests.next_deadline()

    def collect(self, change: Change) -> None:
        change.requested = self._requests.take_requested()
        change.settled = self._requests.take_settled()

    def takes_back(self, message: Message) -> bool:
        if self._requests.callback_of(message.in_reply_to or 0) is None:
            return False
        message.offered = False
        self._requests.attach(message)
        return True

    def restored(self) -> None:
        self._hand_over_outcomes()

    def _hand_over_outcomes(self) -> None:
        """Offer the application the outcomes for named callbacks whose turn has come."""
        for message in self._requests.take_due():
            self._arrivals.handover.add(message)
            self._core.mark.dirty = True

    def session_events(self) -> list[SessionEvent]:
        return [*self._requests.take_outcomes()]
