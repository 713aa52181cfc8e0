"""Decides over which link each message of this device goes, or that the message waits.

A message has no number before it is released: a waiting message must not hold up those behind it,
and the gateway takes numbers in order. A release reserves the price and gives the number in one
change; when that is durable the message leaves over the chosen link. Messages for the gateway
itself (preferences, subscriptions, reports) are neither held back nor counted.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from lasthop.clock import Micros
from lasthop.decision.choice import Choice, MessageToPlace as Question
from lasthop.decision.decide import Action
from lasthop.decision.preferences import Preferences
from lasthop.decision.reasons import Code, because
from lasthop.decision.transmission import LEAST_RECEIPT
from lasthop.device.change import BUDGETS, PREFERENCES, Change
from lasthop.device.message import Refusal
from lasthop.device.outbox_order import OutboxOrder, PieceSource
from lasthop.device.outgoing import Outgoing, light_size, ordinary
from lasthop.device.outgoing_lane import OutgoingLane
from lasthop.device.preferences.explanation import ChoiceLog, Explanation
from lasthop.device.preferences.own_frames import OwnFrames
from lasthop.device.preferences.sending_preferences import SendingPreferences
from lasthop.device.preferences.transfer_grants import TransferGrants
from lasthop.device.preferences.waiting_lanes import WaitingLane, WaitingLanes
from lasthop.device.session_core import SessionCore
from lasthop.device.session_events import LinkSpent
from lasthop.errors import Expired
from lasthop.message import key_time
from lasthop.wire.hop.frames import Frame

SEND, EXPIRE = Action.SEND, Action.EXPIRE


class PreferenceOrder(OutboxOrder):
    """Numbers the messages of a device with preferences, and sends each over its link."""

    def __init__(
        self, preferences: SendingPreferences, core: SessionCore, source: PieceSource
    ) -> None:
        self.preferences = preferences
        self._lines = preferences.lines
        self._core = core
        self._outbox = core.outbox
        self._own = OwnFrames(core.outbox)
        self._grants = TransferGrants(preferences, source, core.mark)
        self._lanes = WaitingLanes()
        self._released: list[Outgoing] = []
        """Messages that leave when the next change is durable."""
        self._pending: deque[tuple[int, list[Outgoing]]] = deque()
        self._leaving: list[Outgoing] = []
        self._again: dict[int, Outgoing] = {}
        """Messages under way whose link is gone, by key."""
        self._retry = False
        self._starved = False
        self._told: dict[str, Micros] = {}
        """The links that were reported as spent, and until when."""
        self._receipts: list[tuple[Micros, int, int]] = []
        """The times at which acks are missing, with the message's lane and number."""
        self._spent = False
        self._preferences_changed = False
        self._now: Micros = 0
        self.trace = ChoiceLog()
        self.wanted: tuple[str, ...] = ()
        """Links that would be worth opening, the best first."""
        self.told: tuple[str, ...] = ()
        """The value of `wanted` that was last reported to the owner."""
        self.closed: list[LinkSpent] = []
        """Links that have reached a limit of this device; the owner collects them."""

    # What happens.

    @property
    def waiting(self) -> int:
        return len(self._lanes)

    def begin(self, items: Iterable[Outgoing]) -> None:
        for item in items:
            self._outbox.gate.stop(item)
            self._lanes.add(item)

    def take_effect(self) -> None:
        """Begin to obey preferences, also for messages that were queued before. A message that has
        a number keeps it as long as the gateway may have the message."""
        self._preferences_changed = self.preferences.ledger.changed = self._core.mark.dirty = True
        under_way = self._outbox.under_way()
        stranded = any(not item.sent and ordinary(item.frame) for item in under_way)
        self.stuck = self._core.in_contact and stranded

    def prefer(self, preferences: Preferences) -> None:
        """Replace the preferences, and decide again about everything that waits."""
        self.preferences.prefer(preferences)
        self._preferences_changed = self._core.mark.dirty = True
        self._reconsider()

    def end(self) -> list[Outgoing]:
        self.lost()
        return self._lanes.clear()

    def place(self, item: Outgoing) -> None:
        if item.casual or ordinary(item.frame):
            self._lanes.add(item)
        else:
            self._own.add(item)

    def start_over(self, items: list[Outgoing]) -> None:
        self._own.clear()
        for item in items:
            item.number = -1
            if not ordinary(item.frame):
                self._own.add(item)
            self._outbox.note_number(item)
        self._decide_anew([item for item in items if item.number < 0])

    def _decide_anew(self, items: list[Outgoing]) -> None:
        """Decide again about messages that are known not to have arrived."""
        for item in items:
            item.channel = 0
            self.preferences.ledger.ended(item.key, self._now)
        self._lanes.put_back(items)

    def link_changed(self) -> None:
        """Note that a link has come up, or has room again."""
        self.wanted = self.told = ()
        self._spent = True
        self._arm_receipts()
        self._reconsider()

    def link_lost(self, channel: int) -> None:
        """Note that one of several links has ended, so that everything under way on it may be
        lost."""
        self._grants.lost(channel, self._now)
        for item in self._outbox.under_way():
            if item.channel in (channel, 0) and item.sent and ordinary(item.frame):
                self._again[item.key] = item
        for items in (self._released, self._leaving, *(items for _, items in self._pending)):
            stranded = [item for item in items if item.channel == channel]
            items[:] = [item for item in items if item.channel != channel]
            self._take_back(stranded)
        self._reconsider()

    def lost(self) -> None:
        """Note that no channel is open any more."""
        self._grants.lost_all(self._now)
        released = [*self._released, *self._leaving]
        for _, items in self._pending:
            released += items
        self._released, self._leaving = [], []
        self._pending.clear()
        self._take_back(released)
        self._again, self._receipts, self.due = {}, [], None
        self._told = {}
        self.stuck = False

    def _take_back(self, items: Iterable[Outgoing]) -> None:
        """Refund messages that were released and did not leave."""
        for item in items:
            self.preferences.ledger.refund(item.key, self._now)
            item.channel = 0
            if item.casual:
                self._lanes.put_back([item])
            elif not item.taken:
                self._again[item.key] = item

    def resumed(self) -> None:
        self._own.say_again()
        lacking = [item for item in self._outbox.under_way() if ordinary(item.frame)]
        for item in lacking:
            self._outbox.withdraw(item)
        self._decide_anew(lacking)
        if lacking:
            self._core.wait_for_change()
        for item in self._lanes:
            # A gateway restored from a backup may lack the body that was sent ahead: it is asked.
            item.held = item.goes_ahead
        self._reconsider()

    def again(self) -> None:
        self._own.say_again()

    def skipped(self, lane: OutgoingLane, number: int) -> None:
        self._own.skip(lane, number)

    def acknowledged(self, items: Iterable[Outgoing], now: Micros) -> None:
        """Note that the gateway has acknowledged these messages."""
        self._now = now
        ledger = self.preferences.ledger
        for item in items:
            channel = ledger.acknowledged(item.key, now)
            line = self._lines.get(item.channel if channel is None else channel)
            if line is not None:
                line.under_way.discard(item.key)
            self._again.pop(item.key, None)
            ledger.ended(item.key, now)
        self._spent = True
        if self._starved:
            self._starved = False
            self._lanes.reconsider()

    def credit_changed(self) -> None:
        self._lanes.reconsider()

    def let_go(self, item: Outgoing) -> None:
        self._grants.over(item.key, self._now)
        if self._lanes.get(item.key) is not None:
            self._lanes.look_at(item)

    def refuse(self, item: Outgoing, refusal: Refusal) -> None:
        self._grants.over(item.key, self._now)
        if self._lanes.get(item.key) is not None:
            self._drop(item, refusal)

    def _reconsider(self) -> None:
        self._lanes.reconsider()
        self._retry = True

    # Decisions.

    def decide(self, now: Micros, *, budget: int | None = None) -> None:
        self._now = now
        self.more = False
        if self.due is not None and now >= self.due:
            self.due = None
            self._reconsider()
        self._miss_receipts(now)
        if self._retry:
            self._retry = False
            for item in sorted(self._again.values(), key=lambda item: (item.lane, item.number)):
                self._offer_again(item, now)
        left = budget
        for lane in self._lanes.take_fresh():
            left = self._go_on(lane, left, now)
        due, wanted = self._grants.give(self.trace, now)
        self._arm(due)
        self.wanted = wanted or self.wanted
        if self._spent and not self._released:
            self._spent = False
            self._close_links(now)

    def _go_on(self, lane: WaitingLane, budget: int | None, now: Micros) -> int | None:
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
        """Decide about the first message of a lane; return False if it stays there."""
        deadline = item.deadline
        if item.held:
            if deadline is None or now < deadline:
                self._outbox.gate.start(item, durable=False, metered=True)
                self._arm(deadline)
                return False
            self._outbox.gate.abort(item, "it is too late")
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
            self._outbox.release(item)
        self._release(item, choice, now)
        return True

    def _offer_again(self, item: Outgoing, now: Micros) -> None:
        """Decide about a message under way that has lost its link: it may go over another, with its
        number."""
        if item.taken:
            self._again.pop(item.key, None)
            return
        choice = self._choice(item, now)
        if choice.action is SEND:
            self._again.pop(item.key, None)
            self._release(item, choice, now)
        else:
            self._arm(choice.until)
            paused = any(line.paused for line in self._lines.values())
            self.stuck = bool(self._lines) and not paused

    def _miss_receipts(self, now: Micros) -> None:
        """Send messages that were not acknowledged in time over another link as well, if there is
        one."""
        while self._receipts and self._receipts[0][0] <= now:
            _, lane, number = heapq.heappop(self._receipts)
            item = self._outbox.awaited(lane, number)
            if item is None or item.taken or item.channel not in self._lines:
                continue
            if self.preferences.ledger.reserved(item.key) is not None:
                continue  # The message is about to leave again.
            carried = item.channel
            choice = self._choice(item, now)
            if choice.action is SEND and choice.channel != carried:
                self._lines[carried].under_way.discard(item.key)
                self._release(item, choice, now)
            else:
                by = choice.receipt_by if choice.action is SEND else choice.until
                self._await(item, max(by or 0, now + LEAST_RECEIPT))

    def _await(self, item: Outgoing, by: Micros) -> None:
        heapq.heappush(self._receipts, (by, item.lane, item.number))
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
            attempts=self.preferences.ledger.attempts(item.key),
        )
        choice = self.preferences.choice(question, item.queue, now)
        self.trace.note(item.key, choice, now)
        if choice.wanted:
            self.wanted = choice.wanted
        return choice

    def _size(self, item: Outgoing) -> int:
        return light_size(item) + len(item.travels.body)

    def _release(self, item: Outgoing, choice: Choice, now: Micros) -> None:
        self.preferences.ledger.reserve(item.key, choice, queue=item.queue or "", now=now)
        item.channel = choice.channel
        self._released.append(item)
        self._core.mark.dirty = True

    def _drop(self, item: Outgoing, refusal: Refusal) -> None:
        self._lanes.remove(item)
        self.preferences.ledger.ended(item.key, self._now)
        self._outbox.refuse(item, refusal)

    def _arm(self, until: Micros | None) -> None:
        if until is not None and (self.due is None or until < self.due):
            self.due = until

    def _close_links(self, now: Micros) -> None:
        for line, closure in self.preferences.closures(now):
            if self._told.get(line.label) != closure.until:
                self._told[line.label] = closure.until
                self.closed.append(LinkSpent(line.channel, line.label, closure.until))

    # What leaves.

    def frames(self, *, budget: int | None = None) -> list[Frame]:
        return self._own.frames()

    def routed(self, *, piece: bool) -> dict[int, list[Frame]]:
        routed: dict[int, list[Frame]] = {}
        leaving, self._leaving = self._leaving, []
        for item in leaving:
            if item.taken:
                self.preferences.ledger.refund(item.key, self._now)
                continue
            line = self._lines[item.channel]
            reserved = self.preferences.ledger.reserved(item.key)
            assert reserved is not None
            routed.setdefault(item.channel, []).append(self._outbox.leave(item))
            self.preferences.ledger.left(item.key, self._now, gauge=line.gauge)
            self._spent = True
            if item.casual:
                self.preferences.ledger.ended(item.key, self._now)
            else:
                line.under_way.add(item.key)
                self._await(item, reserved.receipt_by)
        next_piece = self._grants.next_piece(self._now) if piece else None
        if next_piece is not None:
            routed.setdefault(next_piece[0], []).append(next_piece[1])
        return routed

    # What has to survive.

    def collect(self, change: Change) -> None:
        """Put the preferences and budgets into `change` if they have changed."""
        preferences = self.preferences
        if self._preferences_changed:
            self._preferences_changed = False
            change.notes[PREFERENCES] = preferences.encode_preferences()
        if preferences.ledger.changed:
            preferences.ledger.changed = False
            change.notes[BUDGETS] = preferences.encode_budgets()
        self._grants.collect(change.n)
        if self._released:
            self._pending.append((change.n, self._released))
            self._released = []

    def committed(self, n: int) -> None:
        """Note that change `n`, and all before it, is durable."""
        self._grants.committed(n)
        while self._pending and self._pending[0][0] <= n:
            self._leaving += self._pending.popleft()[1]

    # Explanations.

    def explain(self, key: int) -> Explanation | None:
        """Return why a message went over a link, or waits; None if that is not remembered."""
        explanation = self.trace.explain(key)
        item = self._lanes.get(key)
        if explanation is None and item is not None:
            # Only the first of a lane is decided about: this message waits behind that one.
            head = self._lanes.head_of(item)
            behind = because(Code.BEHIND, message=f"{head.key:016x}")
            return Explanation(f"{key:016x}", "waiting", self._now, (behind,))
        return explanation

    def held_back(self) -> list[Explanation]:
        """Return why each waiting message waits, the oldest first."""
        found = (self.explain(item.key) for item in self._lanes)
        return [explanation for explanation in found if explanation is not None]
