"""Decides, message by message, over which link what this device sends goes, or that it waits.

A message has no number before it is released: what waits must not hold up what is behind it, and
the gateway takes numbers in order. A release reserves its price and gives the number, in one
change; when that is durable the message leaves over the link that was chosen. What the device says
to the gateway about itself (wishes, subscriptions, reports) is no message for others: it is not
held, and not counted.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from lasthop.clock import Micros
from lasthop.decision.choice import Choice, Outgoing as Question
from lasthop.decision.decide import Action
from lasthop.decision.preferences import Preferences
from lasthop.decision.reasons import Code, because
from lasthop.decision.transmission import LEAST_RECEIPT
from lasthop.device.change import BUDGETS, WISHES, Change
from lasthop.device.explanation import Explanation, Trace
from lasthop.device.grants import Grants
from lasthop.device.happenings import LinkSpent
from lasthop.device.lanes import Lane, Lanes
from lasthop.device.message import Refusal
from lasthop.device.outbox import Outbox
from lasthop.device.outgoing import Outgoing, light_size, ordinary
from lasthop.device.steering import Steering
from lasthop.device.transfers import Transfers
from lasthop.errors import Expired
from lasthop.message import key_time
from lasthop.wire.hop.frames import Frame, MessageFrame, Piece

SEND, EXPIRE = Action.SEND, Action.EXPIRE


class Pilot:
    """Lets messages leave, each over its link."""

    def __init__(self, steering: Steering, outbox: Outbox, transfers: Transfers) -> None:
        self.steering = steering
        self._lines = steering.lines
        self._outbox = outbox
        self._transfers = transfers
        self._grants = Grants(steering, transfers)
        self._lanes = Lanes()
        self._released: list[Outgoing] = []
        """To leave when the next change is durable."""
        self._pending: deque[tuple[int, list[Outgoing]]] = deque()
        self._leaving: list[Outgoing] = []
        """To leave now."""
        self._again: dict[int, Outgoing] = {}
        """By number: what is under way, and whose link is gone."""
        self._retry = False
        self._starved = False
        """Something waits for credit."""
        self._told: dict[str, Micros] = {}
        """Links that were called spent, and until when."""
        self._receipts: list[tuple[Micros, int]] = []
        """When acknowledgements are missing, by number."""
        self._due: Micros | None = None
        self._spent = False
        self._wished = False
        self._now: Micros = 0
        self.trace = Trace()
        self.wanted: tuple[str, ...] = ()
        """Links that would be worth opening."""
        self.told: tuple[str, ...] = ()
        """What the owner was told of them."""
        self.closed: list[LinkSpent] = []
        """Links that have reached a limit of ours, since then."""
        self.stuck = False
        """Something under way must not be sent again over any link that is left, and everything
        after it waits for it: only in a new contact may it be taken back."""
        self.more = False
        """Whether more could be released when what was released has left."""

    # What happens.

    def begin(self, *, in_contact: bool) -> None:
        """The user has wishes from now on, also about what was queued before."""
        self._wished = self.steering.books.changed = True
        self.take_over()
        self.stuck = in_contact and self._outbox.stranded

    def take_over(self) -> None:
        """Take over what has no number, in this life or an earlier one."""
        for item in self._outbox.give_up_order():
            self._transfers.drop_body(item.key)
            self._lanes.add(item)
        self._count()

    def wish(self, wishes: Preferences) -> None:
        """The user wants it otherwise."""
        self.steering.wish(wishes)
        self._wished = True
        self._reconsider()

    def end(self) -> list[Outgoing]:
        """There are no wishes any more; returns what waited, the oldest first."""
        self.lost()
        waiting = self._lanes.clear()
        self._count()
        return waiting

    def takes(self, frame: MessageFrame) -> bool:
        """Whether this is decided here."""
        return ordinary(frame)

    def queue(self, frame: MessageFrame, *, casual: bool) -> None:
        """The application sends a message that was checked."""
        self._lanes.add(self._outbox.admit(frame, casual=casual))
        self._count()

    def link_changed(self) -> None:
        """A link has come up, or has room again."""
        self.wanted = self.told = ()
        self._spent = True
        self._arm_receipts()
        self._reconsider()

    def link_lost(self, channel: int) -> None:
        """One of several links is gone, with whatever was on it."""
        self._grants.lost(channel, self._now)
        for item in self._outbox.under_way():
            if item.channel in (channel, 0) and item.sent and ordinary(item.frame):
                self._again[item.number] = item
        for items in (self._released, self._leaving, *(items for _, items in self._pending)):
            stranded = [item for item in items if item.channel == channel]
            items[:] = [item for item in items if item.channel != channel]
            self._take_back(stranded)
        self._reconsider()

    def lost(self) -> None:
        """There is no contact any more."""
        self._grants.lost_all(self._now)
        released = [*self._released, *self._leaving]
        for _, items in self._pending:
            released += items
        self._released, self._leaving = [], []
        self._pending.clear()
        self._take_back(released)
        self._again, self._receipts, self._due = {}, [], None
        self._told = {}
        self.stuck = False

    def _take_back(self, items: Iterable[Outgoing]) -> None:
        """These were released and did not leave."""
        for item in items:
            self.steering.books.refund(item.key, self._now)
            item.channel = 0
            if item.casual:
                self._lanes.put_back([item])
            elif not item.taken:
                self._again[item.number] = item
        self._count()

    def resumed(self) -> bool:
        """The gateway has said what it has: what it lacks is decided anew. True if that is to be
        durable before anything is said of it."""
        withdrawn = self._outbox.withdraw()
        for item in withdrawn:
            item.channel = 0
            self.steering.books.ended(item.key, self._now)  # It did not arrive, and that is known.
        for item in self._lanes:
            # The gateway may be an older copy of itself, without what went ahead: it is asked.
            item.there = False
        self._lanes.put_back(withdrawn)
        self._count()
        self._reconsider()
        return bool(withdrawn)

    def acknowledged(self, items: Iterable[Outgoing], now: Micros) -> None:
        """The gateway has these."""
        self._now = now
        books = self.steering.books
        for item in items:
            channel = books.acknowledged(item.key, now)
            line = self._lines.get(item.channel if channel is None else channel)
            if line is not None:
                line.under_way.discard(item.key)
            self._again.pop(item.number, None)
            books.ended(item.key, now)
        self._spent = True
        if self._starved:
            self._starved = False
            self._lanes.reconsider()

    def credit(self) -> None:
        """The gateway takes more at a time."""
        self._lanes.reconsider()

    def body_arrived(self, key: int) -> None:
        """The gateway has a body that went ahead: its message may follow."""
        self._grants.over(key, self._now)
        item = self._lanes.get(key)
        if item is not None:
            item.there = True
            self._lanes.look_at(item)

    def body_refused(self, key: int, refusal: Refusal) -> None:
        """The gateway will not take a body."""
        self._grants.over(key, self._now)
        item = self._lanes.get(key)
        if item is not None:
            self._drop(item, refusal)

    def _reconsider(self) -> None:
        self._lanes.reconsider()
        self._retry = True

    def _count(self) -> None:
        self._outbox.aside = len(self._lanes)

    # Decisions.

    def steer(self, now: Micros, *, budget: int | None = None) -> None:
        """Release what may leave now, no more than `budget` bytes and one message."""
        self._now = now
        self.more = False
        if self._due is not None and now >= self._due:
            self._due = None
            self._reconsider()
        self._miss_receipts(now)
        if self._retry:
            self._retry = False
            for number in sorted(self._again):
                self._offer_again(self._again[number], now)
        left = budget
        for lane in self._lanes.take_fresh():
            left = self._go_on(lane, left, now)
        due, wanted = self._grants.give(self.trace, now)
        self._arm(due)
        self.wanted = wanted or self.wanted
        self._count()
        if self._spent and not self._released:
            self._spent = False
            self._close_links(now)

    def _go_on(self, lane: Lane, budget: int | None, now: Micros) -> int | None:
        while (item := self._lanes.head(lane)) is not None:
            if budget is not None and budget <= 0:
                self.more = True
                self._lanes.look_at(item)
                break
            if not self._offer(item, now):
                break
            if budget is not None and item.channel:
                budget -= item.size
        return budget

    def _offer(self, item: Outgoing, now: Micros) -> bool:
        """Decide about the first of a lane; false when it stays where it is."""
        deadline = item.deadline
        if item.large and not item.there and self._outbox.streams:
            if deadline is None or now < deadline:
                self._transfers.send_body(item.frame, queue=item.queue, deadline=deadline)
                self._arm(deadline)
                return False
            self._transfers.abort_body(item.key, "it is too late")
        refusal = self._outbox.too_large(item)
        if refusal is not None:
            self._drop(item, refusal)
            return True
        choice = self._choice(item, now)
        if choice.action is EXPIRE:
            self._drop(item, Refusal(Expired.code, str(self.trace.explain(item.key))))
            return True
        if choice.action is not SEND:
            self._arm(choice.until)
            return False
        if not item.casual and not self._outbox.has_credit(item):
            self._starved = True
            self._arm(deadline)
            return False
        self._lanes.remove(item)
        if not item.casual:
            self._outbox.number(item)
        self._release(item, choice, now)
        return True

    def _offer_again(self, item: Outgoing, now: Micros) -> None:
        """Something under way has lost its link: it may go over another, and keeps its number."""
        if item.taken:
            self._again.pop(item.number, None)
            return
        choice = self._choice(item, now)
        if choice.action is SEND:
            self._again.pop(item.number, None)
            self._release(item, choice, now)
        else:
            self._arm(choice.until)
            paused = any(line.paused for line in self._lines.values())
            self.stuck = bool(self._lines) and not paused

    def _miss_receipts(self, now: Micros) -> None:
        """What was not acknowledged in time goes over another link as well, if there is one."""
        while self._receipts and self._receipts[0][0] <= now:
            _, number = heapq.heappop(self._receipts)
            item = self._outbox.numbered(number)
            if item is None or item.taken or item.channel not in self._lines:
                continue
            if self.steering.books.reserved(item.key) is not None:
                continue  # It is about to leave again.
            carried = item.channel
            choice = self._choice(item, now)
            if choice.action is SEND and choice.channel != carried:
                self._lines[carried].under_way.discard(item.key)
                self._release(item, choice, now)
            else:
                by = choice.receipt_by if choice.action is SEND else choice.until
                self._await(number, max(by or 0, now + LEAST_RECEIPT))

    def _await(self, number: int, by: Micros) -> None:
        heapq.heappush(self._receipts, (by, number))
        self._arm_receipts()

    def _arm_receipts(self) -> None:
        if self._receipts and len(self._lines) > 1:
            self._arm(self._receipts[0][0])

    def _choice(self, item: Outgoing, now: Micros) -> Choice:
        question = Question(
            size=self._size(item),
            since=key_time(item.key),
            deliver_before=item.deadline,
            delay_tolerance=item.tolerance,
            attempts=self.steering.books.attempts(item.key),
        )
        choice = self.steering.choice(question, item.queue, now)
        self.trace.note(item.key, choice, now)
        if choice.wanted:
            self.wanted = choice.wanted
        return choice

    def _size(self, item: Outgoing) -> int:
        light = item.large and self._outbox.streams
        return light_size(item) + (0 if light else len(item.frame.body))

    def _release(self, item: Outgoing, choice: Choice, now: Micros) -> None:
        self.steering.books.reserve(item.key, choice, queue=item.queue or "", now=now)
        item.channel = choice.channel
        self._released.append(item)

    def _drop(self, item: Outgoing, refusal: Refusal) -> None:
        self._lanes.remove(item)
        self.steering.books.ended(item.key, self._now)
        self._outbox.drop(item, refusal)

    def _arm(self, until: Micros | None) -> None:
        if until is not None and (self._due is None or until < self._due):
            self._due = until

    def _close_links(self, now: Micros) -> None:
        for line, closure in self.steering.closures(now):
            if self._told.get(line.label) != closure.until:
                self._told[line.label] = closure.until
                self.closed.append(LinkSpent(line.channel, line.label, closure.until))

    @property
    def due(self) -> Micros | None:
        """When to steer again, unless something happens before."""
        return self._due

    # What leaves.

    def frames(self) -> dict[int, list[Frame]]:
        """What leaves now, by channel."""
        routed: dict[int, list[Frame]] = {}
        leaving, self._leaving = self._leaving, []
        for item in leaving:
            if item.taken:
                self.steering.books.refund(item.key, self._now)
                continue
            line = self._lines[item.channel]
            reserved = self.steering.books.reserved(item.key)
            assert reserved is not None
            routed.setdefault(item.channel, []).append(self._outbox.leave(item))
            self.steering.books.left(item.key, self._now, gauge=line.gauge)
            self._spent = True
            if item.casual:
                self.steering.books.ended(item.key, self._now)
            else:
                line.under_way.add(item.key)
                self._await(item.number, reserved.receipt_by)
        return routed

    def next_piece(self) -> tuple[int, Piece] | None:
        """The piece that leaves when the last one has left, and over which link."""
        return self._grants.next_piece(self._now)

    # What has to survive.

    @property
    def dirty(self) -> bool:
        """Whether something must be durable before it may leave."""
        return bool(self._released or self._wished or self._grants.unsettled)

    def collect(self, change: Change) -> None:
        """Put into `change` what has to survive."""
        steering = self.steering
        if self._wished:
            self._wished = False
            change.notes[WISHES] = steering.encode_wishes()
        if steering.books.changed:
            steering.books.changed = False
            change.notes[BUDGETS] = steering.encode_budgets()
        self._grants.collect(change.n)
        if self._released:
            self._pending.append((change.n, self._released))
            self._released = []

    def committed(self, n: int) -> None:
        """Change `n`, and all before it, is durable."""
        self._grants.committed(n)
        while self._pending and self._pending[0][0] <= n:
            self._leaving += self._pending.popleft()[1]

    # For whoever asks.

    def explain(self, key: int) -> Explanation | None:
        """Why a message went over a link, or waits."""
        explanation = self.trace.explain(key)
        item = self._lanes.get(key)
        if explanation is None and item is not None:
            # It waits behind another, and nobody has looked at it yet.
            head = self._lanes.head_of(item)
            behind = because(Code.BEHIND, message=f"{head.key:016x}")
            return Explanation(f"{key:016x}", "waiting", self._now, (behind,))
        return explanation

    def waiting(self) -> list[Explanation]:
        """Why each message that waits does, the oldest first."""
        found = (self.explain(item.key) for item in self._lanes)
        return [explanation for explanation in found if explanation is not None]
