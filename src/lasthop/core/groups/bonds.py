"""Messages for groups and queues: what is asked of them, what binds them, and everyone who has to
hear of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from lasthop.clock import Micros
from lasthop.core.delivery import Item
from lasthop.core.fanout import Fanouts
from lasthop.core.groups.bond import Bond, Standing
from lasthop.core.groups.circles import Circle, Circles
from lasthop.core.groups.contest import Claimable, Contest
from lasthop.core.groups.decisions import Decisions
from lasthop.core.groups.errand import Errand
from lasthop.core.groups.pact import Notice, Pact
from lasthop.core.groups.queue import SharedQueue
from lasthop.core.lifecycle import State, Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device
from lasthop.core.session import Session
from lasthop.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, TooLarge
from lasthop.events import Kind
from lasthop.message import GATEWAY, Binding, Message, Reliability, Target, TargetKind
from lasthop.store.bonds import RECENT_BONDS, BondRow, BondsRestored
from lasthop.wire.hop.decisions import Decision, Verdict, decode_decision
from lasthop.wire.hop.frames import DECISION_TYPE

if TYPE_CHECKING:
    from lasthop.core.acceptance import Submission

GROUP, QUEUE = TargetKind.GROUP, TargetKind.QUEUE
ATOMIC, CLAIM = Binding.ATOMIC, Binding.CLAIM

SWEEP = 1024
"""Replace keys that are looked through at least."""

FIRM = frozenset({Reliability.AT_LEAST_ONCE_PROCESSING, Reliability.EXACTLY_ONCE})


class Settled(Protocol):
    """Puts down in the log what was decided about a message as a whole."""

    def __call__(
        self, message: Message, standing: Standing, reason: str, now: Micros, *, count: int
    ) -> None: ...


class Bonds:
    """Binds deliveries together, and knows the queues."""

    def __init__(self, room: Mailroom, fanouts: Fanouts) -> None:
        self.room = room
        self.fanouts = fanouts
        self.circles = Circles(room)
        self.decisions = Decisions(room, fanouts)
        self._contests: dict[int, Contest] = {}
        self._over: dict[int, Contest] = {}
        """Contests that are over, oldest first; some are still asked for."""
        self._queues: dict[tuple[str, str], SharedQueue] = {}
        self.stirred: list[SharedQueue] = []
        """Queues of which something may be given to somebody."""
        self._replaceable: dict[tuple[str, str, Target, str], Bond] = {}
        self._sweep_at = SWEEP
        self._rows: dict[int, BondRow] = {}
        """While the gateway comes back: what held messages together."""

    # Acceptance.

    def reach(self, app: str, submission: Submission) -> Mapping[int, Device]:
        """Who a message for a group is for; nobody yet, if it is for a queue. Refuses what cannot
        be promised."""
        target, binding = submission.target, submission.binding
        if target.kind is QUEUE:
            self.circles.known(app, target)
            if binding:
                raise InvalidRequest("only a message for a group is atomic or can be claimed")
            self._check_firm(submission)
            self.queue(app, target.name).check_room()
            return {}
        if target.kind is not GROUP:
            raise InvalidRequest("only a message for a group is atomic or can be claimed")
        devices = self.room.registry.reach(app, target)
        if binding:
            self._check_firm(submission)
            if binding is ATOMIC and submission.deliver_before is None:
                raise InvalidRequest("an atomic message needs deliver_before")
            most = self.room.limits.bound_members
            if len(devices) > most:
                raise TooLarge("too many members", size=len(devices), limit=most)
            self._check_mailboxes(devices.values())
        return dict(devices)

    def _check_firm(self, submission: Submission) -> None:
        if submission.reliability not in FIRM:
            raise InvalidRequest(
                "this needs a reliability by which the application confirms: exactly-once or"
                " at-least-once-processing"
            )

    def _check_mailboxes(self, devices: Iterable[Device]) -> None:
        limit = self.room.limits.open_per_device
        for device in devices:
            if len(self.room.session(device).mailbox) >= limit:
                raise QuotaExceeded("mailbox full", retry_after=60, device=device.name, limit=limit)

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        """A message for a group or queue was accepted: bind it before its deliveries begin."""
        message = item.message
        members = tuple(sorted(devices))
        bond: Bond | None = None
        if message.target.kind is QUEUE:
            bond = self.queue(message.app, message.target.name).accept(item, now)
        elif message.binding is ATOMIC:
            bond = Pact(self, item, members)
            bond.begin(members, now)
        elif message.binding is CLAIM:
            contest = Contest.of(self, message, members)
            self._open(contest)
            contest.note(now)
            bond = Claimable(self, item, contest)
        if bond is not None and message.replace_key is not None:
            self._supersede(bond, message, message.replace_key, now)

    def _open(self, contest: Contest) -> None:
        self._contests[contest.key] = contest
        self.room.timers.add(contest.about.before, contest)

    def _supersede(self, bond: Bond, message: Message, replace_key: str, now: Micros) -> None:
        """What its publisher has under the same key in the same group or queue makes room, if it
        still can, as a whole."""
        at = (message.app, message.source, message.target, replace_key)
        old = self._replaceable.get(at)
        self._replaceable[at] = bond
        if old is not None and old.item.message.key in self.room.items:
            old.withdraw(Step.REPLACE, now, f"replaced under {replace_key!r}")
        if len(self._replaceable) > self._sweep_at:
            # What is over stays until then, so that its end costs nothing.
            live = self._replaceable.items()
            self._replaceable = {k: b for k, b in live if b.item.message.key in self.room.items}
            self._sweep_at = max(SWEEP, 2 * len(self._replaceable))

    def settled(
        self, message: Message, standing: Standing, reason: str, now: Micros, *, count: int
    ) -> None:
        """Put down what was decided about a message as a whole."""
        self.room.journal.tell(
            Kind.SETTLED,
            now,
            app=message.app,
            msg=message.key,
            target=str(message.target),
            state=standing.name,
            reason=reason,
            count=count,
        )
        self.room.journal.hurry()
        self.room.announce_message(message.key)

    def is_undecided(self, key: int) -> bool:
        """Whether it is open what becomes of a message as a whole."""
        item = self.room.items.get(key)
        bond = item.bond if item is not None else None
        if isinstance(bond, Pact):
            return bond.holds
        if isinstance(bond, Errand):
            return not bond.over
        return key in self._contests

    def report(self, message: Message, decision: Decision, now: Micros) -> None:
        """Tell the device that sent it."""
        self.decisions.report(message.app, message.source, message.correlation, decision, now)

    # Claims.

    def claim(self, session: Session, key: int, about: int | None, now: Micros) -> None:
        """A device wants to act on a message; it gets its answer once that is durable."""
        contest = self._contests.get(key) or self._over.get(key)
        if contest is None or contest.about.app != session.device.app:
            raise NotFound("no such message can be claimed", id=f"{key:016x}")
        decision = contest.claim(session.device, now)
        if about is not None:
            self.decisions.answer(session.device, about, decision, now)

    def over(self, contest: Contest) -> None:
        """Nobody can claim it any more; who has may ask again for a while."""
        self._contests.pop(contest.key, None)
        self._over[contest.key] = contest
        if len(self._over) > RECENT_BONDS:
            del self._over[next(iter(self._over))]

    def cancel(self, app: str, key: int, now: Micros) -> tuple[int, int] | None:
        """Take back the right to act on a message of which no delivery is open; None: there is no
        such right."""
        contest = self._contests.get(key)
        if contest is None or contest.about.app != app:
            return None
        count = len(contest.members)
        contest.close(Standing.CANCELLED, "cancelled by its publisher", now, Step.CANCEL)
        return count, 0

    # Groups and queues.

    def queue(self, app: str, name: str) -> SharedQueue:
        """The queue of this name, which is known."""
        queue = self._queues.get((app, name))
        if queue is None:
            circle = self.circles.find(app, Target(QUEUE, name)) or Circle()
            queue = SharedQueue(
                self.room, self.fanouts, circle, stir=self._stir, settled=self.settled
            )
            self._queues[app, name] = queue
        return queue

    def make(self, app: str, target: Target, circle: Circle, now: Micros) -> bool:
        """Let there be a group or queue, or change it; false when it was just so."""
        changed = self.circles.make(app, target, circle, now)
        if target.kind is QUEUE:
            queue = self.queue(app, target.name)
            queue.circle = self.circles.known(app, target)
            for session in queue.consumers.values():
                queue.look_at(session)
        return changed

    def remove(self, app: str, target: Target, now: Micros) -> int:
        """Let there be none; how many devices belonged to it."""
        self.circles.known(app, target)
        if target.kind is QUEUE:
            queue = self.queue(app, target.name)
            if queue.busy:
                raise Conflict("the queue is not empty", name=target.name, waiting=queue.length)
        members = list(self.room.registry.members(app, target).values())
        for device in members:
            self.leave(self.room.session(device), target, now)
        self.circles.remove(app, target)
        return len(members)

    def join(self, session: Session, target: Target, now: Micros, *, by_itself: bool) -> bool:
        """A device joins a group, or takes from a queue from now on."""
        changed = self.circles.join(session, target, now, by_itself=by_itself)
        if changed and target.kind is QUEUE:
            self._consumes(session, target.name)
        return changed

    def leave(self, session: Session, target: Target, now: Micros) -> bool:
        """And no longer."""
        changed = self.circles.leave(session, target, now)
        if changed and target.kind is QUEUE:
            queue = self.queue(session.device.app, target.name)
            queue.leave(session, f"{session.device.name} has left the queue", now)
            session.queues = [q for q in session.queues or () if q is not queue] or None
        return changed

    def _consumes(self, session: Session, name: str) -> None:
        queue = self.queue(session.device.app, name)
        session.queues = [*(session.queues or ()), queue]
        queue.join(session)

    # Devices that come and go.

    def forgot(self, session: Session, now: Micros) -> None:
        """A device has lost its memory: what it held for a decision it holds no more."""
        for delivery in list(session.mailbox.values()):
            bond = delivery.item.bond
            if isinstance(bond, Pact) and delivery.state is State.RECEIVED:
                bond.forgotten(delivery, now)

    def lost(self, session: Session, now: Micros) -> None:
        """A consumer is out of reach."""
        for queue in session.queues or ():
            queue.lost(session, "the consumer is not there", now)

    def removing(self, session: Session, now: Micros) -> None:
        """A device is about to be removed."""
        for queue in session.queues or ():
            queue.remove(session, "the consumer was removed", now)
        session.queues = None

    def look_at(self, session: Session) -> None:
        """A consumer may have room."""
        for queue in session.queues or ():
            queue.look_at(session)

    def _stir(self, queue: SharedQueue) -> None:
        if not queue.stirred:
            queue.stirred = True
            self.stirred.append(queue)

    def settle(self, now: Micros) -> None:
        """Give what waits to consumers that have room."""
        stirred, self.stirred = self.stirred, []
        for queue in stirred:
            queue.stirred = False
            queue.offer(now)

    # After a restart.

    def restore(self, restored: BondsRestored) -> None:
        """What the store knows, before messages are opened again."""
        self.circles.restore(restored.circles)
        for row in restored.bonds:
            standing = Standing(row.state)
            if standing is Standing.SPREADING:
                self.fanouts.rosters[row.message] = row.members
            elif standing is Standing.CLAIMABLE:
                self._open(Contest.resume(self, row))
            elif row.record:
                self.over(Contest.resume(self, row))
            else:
                self.fanouts.rosters[row.message] = row.members
                self._rows[row.message] = row

    def attach(self, item: Item, *, spreading: bool) -> None:
        """Bind a message that is open again, before its deliveries are."""
        message = item.message
        if message.content_type == DECISION_TYPE and message.source == GATEWAY:
            self._attach_notice(item)
            return
        row = self._rows.get(message.key)
        bond: Bond | None = None
        if message.target.kind is QUEUE:
            bond = errand = Errand(self.queue(message.app, message.target.name), item)
            errand.resume(over=not spreading)
        elif message.binding is ATOMIC and row is not None:
            bond = pact = Pact(self, item, row.members)
            pact.resume(row)
        elif message.binding is CLAIM:
            contest = self._contests.get(message.key) or self._over.get(message.key)
            if contest is not None:
                self.fanouts.rosters[message.key] = tuple(sorted(contest.members))
                bond = Claimable(self, item, contest)
        if bond is not None and message.replace_key is not None:
            at = (message.app, message.source, message.target, message.replace_key)
            self._replaceable[at] = bond

    def _attach_notice(self, item: Item) -> None:
        if decode_decision(item.message.body).verdict is Verdict.RELEASE:
            subject = self.room.items.get(item.message.in_reply_to or 0)
            if subject is not None and isinstance(subject.bond, Pact):
                Notice(subject.bond, item)

    def finish(self, now: Micros) -> None:
        """Everything is open again: go on where it was."""
        self._rows = {}
        for device in self.room.registry:
            for circle in device.record.circles:
                kind, _, name = circle.partition(":")
                if kind == QUEUE:
                    self._consumes(self.room.session(device), name)
        for item in list(self.room.items.values()):
            if item.bond is not None:
                item.bond.restored(now)
