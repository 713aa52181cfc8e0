"""Requests whose answer has not come: each ends once, with an answer or with its deadline.

A request without a named callback is lost when the process ends. A request with a named callback is
kept in the inbox: its outcome, even a timeout, is a message in the inbox until the application is
done with it. An answer to a request that has ended, or is unknown, is dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heappop, heappush

import msgspec

from lasthop.clock import Micros
from lasthop.device.change import RequestRow
from lasthop.device.message import Message
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session_events import Gathered, RequestAnswered, RequestOutcome, TimedOut
from lasthop.errors import Overloaded
from lasthop.wire.hop.frames import ASKED_TYPE

MOST_PENDING = 10_000
"""The largest number of requests that may wait at a time: the same as the number of messages that
may wait in the outbox."""

DEVICE = "device:"


class _Pending(msgspec.Struct, eq=False):
    """One request that has not been handed its outcome."""

    key: int
    deadline: Micros
    wants: Expectation
    outcome: Message | TimedOut | None = None
    """The outcome, once there is one; in a lane it waits for its turn."""
    replies: dict[str, Message] = {}
    size: int = 0
    asked: dict[str, None] | None = None
    """The names of the devices that were asked, in the gateway's order; None until it tells
    them."""

    @property
    def lane(self) -> tuple[str, str]:
        return self.wants.callback, self.wants.lane

    @property
    def row(self) -> RequestRow:
        wants = self.wants
        return RequestRow(self.key, self.deadline, wants.callback, wants.target, wants.lane)


class Requests:
    """All requests of one device that have not ended."""

    def __init__(self, rows: Iterable[RequestRow], *, gather_bytes: int) -> None:
        """Restore the requests for named callbacks; `gather_bytes` limits the answers to one
        request together."""
        self._pending: dict[int, _Pending] = {}
        self._lanes: dict[tuple[str, str], OrderedDict[int, _Pending]] = {}
        self._deadlines: list[tuple[Micros, int]] = []
        self._gather_bytes = gather_bytes
        self._requested: list[RequestRow] = []
        self._settled: list[int] = []
        self.outcomes: list[RequestOutcome] = []
        """Outcomes of requests without a named callback that `take_outcomes` has not returned
        yet."""
        self.due: list[Message] = []
        """Messages that are outcomes for named callbacks and whose turn has come."""
        for row in rows:
            wants = Expectation(target=row.target, lane=row.lane, callback=row.callback)
            self._enter(_Pending(row.key, row.deadline, wants))

    def __contains__(self, key: int) -> bool:
        return key in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def dirty(self) -> bool:
        """Whether there are changes that have to be made durable."""
        return bool(self._requested or self._settled)

    def check(self) -> None:
        """Raise Overloaded if too many requests wait already."""
        if len(self._pending) >= MOST_PENDING:
            raise Overloaded("too many requests wait for their answers", retry_after=1)

    def add(self, key: int, deadline: Micros, wants: Expectation) -> None:
        """Add a request that was queued."""
        pending = _Pending(key, deadline, wants)
        self._enter(pending)
        if wants.callback:
            self._requested.append(pending.row)

    def _enter(self, pending: _Pending) -> None:
        self._pending[pending.key] = pending
        heappush(self._deadlines, (pending.deadline, pending.key))
        if pending.wants.lane:
            lane = self._lanes.setdefault(pending.lane, OrderedDict())
            lane[pending.key] = pending

    def waits(self, key: int) -> bool:
        """Whether a request has no outcome yet."""
        pending = self._pending.get(key)
        return pending is not None and pending.outcome is None

    def callback_of(self, key: int) -> RequestRow | None:
        """Return the request of this key if its outcome goes to a named callback; None
        otherwise."""
        pending = self._pending.get(key)
        return pending.row if pending is not None and pending.wants.callback else None

    def answered(self, key: int, message: Message, now: Micros) -> bool:
        """Record an answer; return False if the answer is late, is a device's second answer, or
        comes from a device that was not asked."""
        pending = self._pending.get(key)
        if pending is None or pending.outcome is not None or now >= pending.deadline:
            return False
        if pending.wants.gather:
            return self._gather(pending, message)
        target = pending.wants.target
        # Another device cannot answer for the one that was asked; the gateway itself (None) can.
        if target.startswith(DEVICE) and message.source not in (None, target):
            return False
        self._decide(pending, message)
        return True

    def attach(self, message: Message) -> None:
        """Make a message in the inbox the outcome of its request: after a restart, or for a
        timeout."""
        pending = self._pending[message.in_reply_to or 0]
        if pending.outcome is None:
            self._decide(pending, message)

    def fail(self, key: int, message: Message) -> bool:
        """End a request for a named callback with this message, without waiting for its turn;
        return False if the request had ended before."""
        pending = self._pending[key]
        if pending.outcome is not None:
            return False
        pending.outcome = message
        self._leave_lane(pending)
        self._release(pending)
        return True

    def _gather(self, pending: _Pending, message: Message) -> bool:
        if message.headers.content_type == ASKED_TYPE:
            if message.source is not None or pending.asked is not None:
                return False
            pending.asked = asked = _names(message.body)
            if asked is None:
                return False
            # Answers may overtake the gateway's list of the devices that were asked.
            for stranger in pending.replies.keys() - asked.keys():
                del pending.replies[stranger]
        else:
            source = (message.source or "").removeprefix(DEVICE)
            if not source or source in pending.replies:
                return False
            if pending.asked is not None and source not in pending.asked:
                return False
            pending.replies[source] = message
            pending.size += len(message.body)
        if self._is_complete(pending):
            self._end_gathering(pending, complete=True)
        return True

    def _is_complete(self, pending: _Pending) -> bool:
        count = len(pending.replies)
        if pending.wants.most is not None and count >= pending.wants.most:
            return True
        # The answers are kept in memory until all are there: end before they fill it.
        if pending.size > self._gather_bytes:
            return True
        asked = pending.asked
        return asked is not None and count == len(asked)

    def _end_gathering(self, pending: _Pending, *, complete: bool) -> None:
        missing = None
        if pending.asked is not None:
            missing = tuple(name for name in pending.asked if name not in pending.replies)
        del self._pending[pending.key]
        self.outcomes.append(Gathered(pending.key, pending.replies, missing, complete))

    def give_up(self, key: int) -> None:
        """Forget a request without a named callback: its caller no longer waits."""
        pending = self._pending.get(key)
        if pending is not None and not pending.wants.callback:
            del self._pending[key]
            self._leave_lane(pending)

    def expire(self, now: Micros) -> list[RequestRow]:
        """End the requests whose deadline has passed. Return the ended requests that have named
        callbacks: for each of them the owner puts a message into the inbox and calls `attach`."""
        late: list[RequestRow] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, key = heappop(self._deadlines)
            pending = self._pending.get(key)
            if pending is None or pending.outcome is not None:
                continue
            if pending.wants.callback:
                late.append(pending.row)
            else:
                self.time_out(key)
        return late

    def time_out(self, key: int) -> None:
        """End a request without a named callback because its caller's time has passed."""
        pending = self._pending.get(key)
        if pending is None or pending.outcome is not None or pending.wants.callback:
            return
        if pending.wants.gather:
            self._end_gathering(pending, complete=False)
        else:
            self._decide(pending, TimedOut(key))

    def next_deadline(self) -> Micros | None:
        """Return the time at which `expire` has something to do; None if there is no deadline."""
        heap = self._deadlines
        while heap:
            pending = self._pending.get(heap[0][1])
            if pending is not None and pending.outcome is None:
                return heap[0][0]
            heappop(heap)
        return None

    def settle(self, key: int) -> None:
        """Forget a request for a named callback: the application is done with its outcome."""
        if self._pending.pop(key, None) is not None:
            self._settled.append(key)

    def take_requested(self) -> list[RequestRow]:
        """Return the new requests that the inbox has to keep."""
        requested, self._requested = self._requested, []
        return requested

    def take_settled(self) -> list[int]:
        """Return the keys of ended requests that the inbox may forget."""
        settled, self._settled = self._settled, []
        return settled

    def take_outcomes(self) -> list[RequestOutcome]:
        """Return the outcomes of requests without a named callback since the last call."""
        outcomes, self.outcomes = self.outcomes, []
        return outcomes

    def take_due(self) -> list[Message]:
        """Return the outcomes for named callbacks whose turn has come since the last call."""
        due, self.due = self.due, []
        return due

    # Within.

    def _decide(self, pending: _Pending, outcome: Message | TimedOut) -> None:
        pending.outcome = outcome
        if pending.wants.lane:
            self._advance(pending.lane)
        else:
            self._release(pending)

    def _release(self, pending: _Pending) -> None:
        outcome = pending.outcome
        if pending.wants.callback:
            assert isinstance(outcome, Message)
            outcome.request = pending.row
            outcome.deadline = None  # It came in time, however late the application reads it.
            self.due.append(outcome)
            return
        del self._pending[pending.key]
        if isinstance(outcome, Message):
            self.outcomes.append(RequestAnswered(pending.key, outcome))
        elif outcome is not None:
            self.outcomes.append(outcome)

    def _leave_lane(self, pending: _Pending) -> None:
        """Remove a request from its lane, so that the requests behind it need not wait for it."""
        name = pending.lane
        if name in self._lanes:
            self._lanes[name].pop(pending.key, None)
            self._advance(name)

    def _advance(self, name: tuple[str, str]) -> None:
        lane = self._lanes[name]
        while lane and (first := next(iter(lane.values()))).outcome is not None:
            del lane[first.key]
            self._release(first)
        if not lane:
            del self._lanes[name]


def _names(body: bytes) -> dict[str, None] | None:
    try:
        return dict.fromkeys(msgspec.json.decode(body, type=list[str]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # The request then ends by its deadline or by `most`.
