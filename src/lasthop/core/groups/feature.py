"""Groups and queues as a feature: acceptance of their messages, membership, claims, and the
decisions that devices are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery, Item
from lasthop.core.envelope import PLAIN_HEADERS
from lasthop.core.feature import (
    Arrival,
    CoreFeature,
    Gate,
    Leaving,
    Operate,
    SessionPart,
    TargetRule,
    Word,
)
from lasthop.core.groups.atomic import AtomicMessage, ReleaseNotice
from lasthop.core.groups.claims import ClaimableMessage, ClaimRecord
from lasthop.core.groups.decider import GroupDecider, Standing
from lasthop.core.groups.members import MemberIndex
from lasthop.core.groups.notices import DecisionNotices
from lasthop.core.groups.queue import SharedQueue
from lasthop.core.groups.queue_entry import QueueEntry
from lasthop.core.groups.records import GroupRecord, GroupRecords, parse_group
from lasthop.core.lifecycle import State, Step
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.publishing.objections import check_possible_for_all
from lasthop.core.publishing.submission import Submission, cannot_wait
from lasthop.core.publishing.targets import PlainTarget
from lasthop.core.registry import Device
from lasthop.core.rights.rule import JOINED_BY, Verb
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, TooLarge
from lasthop.events import Kind
from lasthop.message import GATEWAY, Binding, Message, Reliability, Target, TargetKind
from lasthop.store.commit import Restored
from lasthop.store.groups import (
    RECENT_GROUP_MESSAGES,
    GroupChanges,
    GroupMessageRow,
    GroupsRestored,
)
from lasthop.wire.hop.decisions import GroupDecision, GroupVerdict, decode_decision
from lasthop.wire.hop.frames import (
    DECISION_TYPE,
    Feature,
    Headers,
    Hello,
    MessageFrame,
    Operation,
)

GROUP, QUEUE = TargetKind.GROUP, TargetKind.QUEUE
ATOMIC, CLAIM = Binding.ATOMIC, Binding.CLAIM

SWEEP = 1024
"""The number of replace keys at which the keys of ended messages are first removed."""

FIRM = frozenset({Reliability.AT_LEAST_ONCE_PROCESSING, Reliability.EXACTLY_ONCE})


class Consumer(SessionPart):
    """The queues that one device takes from."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.queues: list[SharedQueue] = []

    def before_sending(self, now: Micros) -> None:
        """Let the device's queues offer it entries again: it may have room for more."""
        for queue in self.queues:
            queue.look_at(self._session)


class GroupFeature(CoreFeature, Gate):
    """Binds the deliveries of group messages together, and has the queues."""

    def __init__(self, spine: Spine) -> None:
        self.deliveries = deliveries = spine.deliveries
        self.fanouts = spine.fanouts
        self.members = MemberIndex(deliveries.registry)
        deliveries.registry.index(self.members, GROUP)
        self.records = GroupRecords(deliveries, self.members)
        self.decisions = DecisionNotices(deliveries, spine.fanouts)
        self._claims: dict[int, ClaimRecord] = {}
        self._over: dict[int, ClaimRecord] = {}
        """Claim records that are over, oldest first; devices may still ask for some."""
        self._queues: dict[tuple[str, str], SharedQueue] = {}
        self.stirred: list[SharedQueue] = []
        """Queues of which an entry may be given to a consumer."""
        self._replaceable: dict[tuple[str, str, Target, str], GroupDecider] = {}
        self._sweep_at = SWEEP
        self._rows: dict[int, GroupMessageRow] = {}
        """The rows of group messages, while the gateway is restored."""
        self._rosters: dict[int, tuple[int, ...]] = {}
        """The members that messages for groups are for, while the gateway is restored."""
        self._consumers: dict[Session, Consumer] = {}
        self._holding: set[Session] = set()
        """Devices in contact that can hold a message back until a decision comes."""
        self._aside: dict[Session, list[Delivery]] = {}
        """Deliveries that wait until their device can hold them back."""

    def targets(self) -> Mapping[TargetKind, TargetRule]:
        return {
            GROUP: GroupTarget(self.deliveries, self.fanouts, self),
            QUEUE: QueueTarget(self.deliveries, self.fanouts, self),
        }

    def words(self) -> Mapping[str, Word]:
        return {DECISION_TYPE: DecisionWord()}

    def operations(self) -> Mapping[int, Operate]:
        return {
            Operation.JOIN: self._join,
            Operation.LEAVE: self._leave,
            Operation.CLAIM: self._claim,
        }

    # Operations of devices.

    def _join(self, session: Session, frame: MessageFrame, headers: Headers, now: Micros) -> None:
        target = parse_group(headers.to)
        self._check_right(session, JOINED_BY[target.kind], target)
        self._enter(session, target, now, by_itself=True)

    def _check_right(self, session: Session, verb: Verb, target: Target) -> None:
        rights, device = self.deliveries.rights, session.device
        if rights is not None:
            rights.check_device(device.app, device.name, verb, target)

    def _leave(self, session: Session, frame: MessageFrame, headers: Headers, now: Micros) -> None:
        self._quit(session, parse_group(headers.to), now)

    def _claim(self, session: Session, frame: MessageFrame, headers: Headers, now: Micros) -> None:
        if headers.in_reply_to is None:
            raise InvalidRequest("a claim must name the message that it is about")
        self.claim(session, headers.in_reply_to, frame.key, now)

    # Checks of messages, and the gate of those for groups.

    def intake(self, arrival: Arrival, now: Micros) -> bool:
        """Remember the key under which the sending device is told the decision about a message."""
        if arrival.submission.binding:
            arrival.submission.correlation = arrival.frame.key
        return False

    def check(self, submission: Submission) -> None:
        if submission.binding and submission.target.kind is not GROUP:
            raise InvalidRequest("only a message for a group can be atomic or claimable")
        if submission.immediate and submission.binding:
            raise cannot_wait("a decision of its group")
        if submission.immediate and submission.target.kind is TargetKind.QUEUE:
            raise cannot_wait("a queue, which keeps it for a consumer")

    def leaving(self, delivery: Delivery, channel: int, now: Micros) -> Leaving:
        """Set an atomic or claimable message aside until the device can hold back messages."""
        session = delivery.session
        if not delivery.item.message.binding or session in self._holding:
            return Leaving.GO
        self._aside.setdefault(session, []).append(delivery)
        return Leaving.ASIDE

    def frame(self, delivery: Delivery, channel: ChannelState, frame: MessageFrame) -> MessageFrame:
        message = delivery.item.message
        headers = frame.headers or PLAIN_HEADERS
        headers = msgspec.structs.replace(headers, group=message.target.name)
        if message.binding is CLAIM:
            headers = msgspec.structs.replace(headers, binding=CLAIM)
        return msgspec.structs.replace(frame, headers=headers)

    # Acceptance.

    def admit(self, app: str, source: str, submissions: Sequence[Submission]) -> None:
        """Raise an error for messages for which a queue has no room. A batch is counted as a
        whole."""
        more: dict[str, int] = {}
        for index, submission in enumerate(submissions):
            target = submission.target
            if target.kind is QUEUE:
                more[target.name] = more.get(target.name, 0) + 1
                try:
                    self.queue(app, target.name).check_room(source, more[target.name])
                except QuotaExceeded as error:
                    if len(submissions) > 1:
                        error.fields["item"] = index
                    raise

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        """Return the members that a message for a group is for, or no devices for a message to a
        queue. Raise an error if the message asks for what cannot be promised."""
        target, binding = submission.target, submission.binding
        if target.kind is QUEUE:
            self.records.known(app, target)
            self._check_firm(submission)
            submission.queue = target.name
            return {}
        devices = self.deliveries.registry.reach(app, target)
        if binding:
            self._check_firm(submission)
            if binding is ATOMIC and submission.deliver_before is None:
                raise InvalidRequest("an atomic message needs deliver_before")
            most = self.deliveries.limits.bound_members
            if len(devices) > most:
                raise TooLarge("too many members", size=len(devices), limit=most)
            self._check_mailboxes(devices.values())
            if binding is ATOMIC:
                check_possible_for_all(self.deliveries, devices, submission, now)
        return dict(devices)

    def _check_firm(self, submission: Submission) -> None:
        if submission.reliability not in FIRM:
            raise InvalidRequest(
                "an atomic, claimable or queued message needs the reliability exactly-once or"
                " at-least-once-processing"
            )

    def _check_mailboxes(self, devices: Iterable[Device]) -> None:
        limit = self.deliveries.limits.open_per_device
        for device in devices:
            if len(self.deliveries.session(device).mailbox) >= limit:
                raise QuotaExceeded("mailbox full", retry_after=60, device=device.name, limit=limit)

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        """Attach a decider to an accepted message for a group or queue, before its deliveries
        begin."""
        message = item.message
        members = tuple(sorted(devices))
        group_message: GroupDecider | None = None
        if message.target.kind is QUEUE:
            group_message = self.queue(message.app, message.target.name).accept(item, now)
        elif message.binding is ATOMIC:
            group_message = AtomicMessage(self, item, members)
            group_message.begin(members, now)
        elif message.binding is CLAIM:
            claim = ClaimRecord.of(self, message, members)
            self._open(claim)
            claim.note(now)
            group_message = ClaimableMessage(self, item, claim)
        if group_message is not None and message.replace_key is not None:
            self._supersede(group_message, message, message.replace_key, now)

    def _open(self, claim: ClaimRecord) -> None:
        self._claims[claim.key] = claim
        self.deliveries.timers.add(claim.about.before, claim)

    def _supersede(
        self, group_message: GroupDecider, message: Message, replace_key: str, now: Micros
    ) -> None:
        """Replace the publisher's message under the same key in the same group or queue, as a
        whole, if that is still possible."""
        at = (message.app, message.source, message.target, replace_key)
        old = self._replaceable.get(at)
        self._replaceable[at] = group_message
        if old is not None and old.item.message.key in self.deliveries.items:
            old.withdraw(Step.REPLACE, now, f"replaced under {replace_key!r}")
        if len(self._replaceable) > self._sweep_at:
            # Ended ones are removed only here, so that the end of a message costs nothing.
            live = self._replaceable.items()
            self._replaceable = {
                k: b for k, b in live if b.item.message.key in self.deliveries.items
            }
            self._sweep_at = max(SWEEP, 2 * len(self._replaceable))

    def settled(
        self, message: Message, standing: Standing, reason: str, now: Micros, *, count: int
    ) -> None:
        """Record the decision about a message as a whole."""
        self.deliveries.commits.record(
            Kind.SETTLED,
            now,
            app=message.app,
            msg=message.key,
            target=str(message.target),
            state=standing.name,
            reason=reason,
            count=count,
        )
        self.deliveries.commits.hurry()
        self.deliveries.announce_message(message.key)

    def is_undecided(self, key: int) -> bool:
        """Return whether a message as a whole is not decided yet."""
        item = self.deliveries.items.get(key)
        group_message = item.decider if item is not None else None
        if isinstance(group_message, AtomicMessage):
            return group_message.holds
        if isinstance(group_message, QueueEntry):
            return not group_message.over
        return key in self._claims

    def report(self, message: Message, decision: GroupDecision, now: Micros) -> None:
        """Send the decision about a message to the device that sent it."""
        self.decisions.report(message.app, message.source, message.correlation, decision, now)

    # Claims.

    def claim(self, session: Session, key: int, about: int | None, now: Micros) -> None:
        """Grant or refuse a device's claim of a message; the device gets the answer once the
        decision is durable."""
        claim = self._claims.get(key) or self._over.get(key)
        if claim is None or claim.about.app != session.device.app:
            raise NotFound("no such message can be claimed", id=f"{key:016x}")
        self._check_right(session, Verb.CLAIM, Target(GROUP, claim.about.group))
        decision = claim.claim(session.device, now)
        if about is not None:
            self.decisions.answer(session.device, about, decision, now)

    def over(self, claim: ClaimRecord) -> None:
        """Move the record of a message that can no longer be claimed to the recent ones, for
        devices that ask again."""
        self._claims.pop(claim.key, None)
        self._over[claim.key] = claim
        if len(self._over) > RECENT_GROUP_MESSAGES:
            del self._over[next(iter(self._over))]

    def take_back(self, app: str, key: int, now: Micros) -> tuple[int, int] | None:
        """Take back the right to act on a message of which no delivery is open; None if there is no
        such right."""
        claim = self._claims.get(key)
        if claim is None or claim.about.app != app:
            return None
        count = len(claim.members)
        claim.close(Standing.CANCELLED, "cancelled by its publisher", now, Step.CANCEL)
        return count, 0

    # Groups and queues.

    def queue(self, app: str, name: str) -> SharedQueue:
        """Return the queue of this name; its record must exist."""
        queue = self._queues.get((app, name))
        if queue is None:
            record = self.records.find(app, Target(QUEUE, name)) or GroupRecord()
            queue = SharedQueue(
                self.deliveries, self.fanouts, record, stir=self._stir, settled=self.settled
            )
            self._queues[app, name] = queue
        return queue

    def make(self, app: str, target: Target, record: GroupRecord, now: Micros) -> bool:
        """Create a group or queue, or change it; return False if nothing changes."""
        changed = self.records.make(app, target, record, now)
        if target.kind is QUEUE:
            queue = self.queue(app, target.name)
            queue.record = self.records.known(app, target)
            for session in queue.consumers.values():
                queue.look_at(session)
        return changed

    def remove(self, app: str, target: Target, now: Micros) -> int:
        """Remove a group or queue, and return how many members it had."""
        self.records.known(app, target)
        if target.kind is QUEUE:
            queue = self.queue(app, target.name)
            if queue.busy:
                raise Conflict("the queue is not empty", name=target.name, waiting=queue.length)
        members = list(self.members.of(app, target).values())
        for device in members:
            self._quit(self.deliveries.session(device), target, now)
        self.records.remove(app, target)
        return len(members)

    def join(self, app: str, name: str, target: Target, now: Micros) -> bool:
        """Add a device to a group or queue; return False if it was a member."""
        return self._enter(self.deliveries.named(app, name), target, now, by_itself=False)

    def leave(self, app: str, name: str, target: Target, now: Micros) -> bool:
        """Remove a device from a group or queue; return False if it was not a member."""
        return self._quit(self.deliveries.named(app, name), target, now)

    def _enter(self, session: Session, target: Target, now: Micros, *, by_itself: bool) -> bool:
        """Add a device to a group, or to the consumers of a queue."""
        changed = self.records.join(session, target, now, by_itself=by_itself)
        if changed and target.kind is QUEUE:
            self._consumes(session, target.name)
        return changed

    def _quit(self, session: Session, target: Target, now: Micros) -> bool:
        """Remove a device from a group, or from the consumers of a queue."""
        changed = self.records.leave(session, target, now)
        if changed and target.kind is QUEUE:
            queue = self.queue(session.device.app, target.name)
            queue.leave(session, f"{session.device.name} has left the queue", now)
            self._consumers[session].queues.remove(queue)
        return changed

    def _consumes(self, session: Session, name: str) -> None:
        queue = self.queue(session.device.app, name)
        consumer = self._consumers.get(session)
        if consumer is None:
            consumer = self._consumers[session] = Consumer(session)
            session.add_part(consumer)
        consumer.queues.append(queue)
        queue.join(session)

    def _queues_of(self, session: Session) -> list[SharedQueue]:
        consumer = self._consumers.get(session)
        return [] if consumer is None else list(consumer.queues)

    # Devices that connect and disconnect.

    def introduced(
        self, session: Session, hello: Hello, now: Micros, *, resumed: bool, forgot: bool
    ) -> None:
        if hello.features & Feature.GROUPS:
            self._holding.add(session)
            for delivery in self._aside.pop(session, ()):
                session.enqueue(delivery)
        else:
            self._holding.discard(session)
        if forgot:
            self._forgot(session, now)

    def _forgot(self, session: Session, now: Micros) -> None:
        """Send again the atomic messages that a device held when it lost its memory."""
        for delivery in list(session.mailbox.values()):
            group_message = delivery.decider
            if isinstance(group_message, AtomicMessage) and delivery.state is State.RECEIVED:
                group_message.forgotten(delivery, now)

    def away(self, session: Session, now: Micros) -> None:
        for queue in self._queues_of(session):
            queue.lost(session, "the consumer is not there", now)

    def removed(self, session: Session, now: Micros) -> None:
        for queue in self._queues_of(session):
            queue.remove(session, "the consumer was removed", now)
        self._consumers.pop(session, None)
        self._holding.discard(session)
        self._aside.pop(session, None)

    def _stir(self, queue: SharedQueue) -> None:
        if not queue.stirred:
            queue.stirred = True
            self.stirred.append(queue)

    def settle(self, now: Micros) -> None:
        """Give waiting entries to consumers that have room."""
        if not self.stirred:
            return
        stirred, self.stirred = self.stirred, []
        for queue in stirred:
            queue.stirred = False
            queue.offer(now)

    # After a restart.

    def restore(self, restored: Restored, now: Micros) -> None:
        kept = restored.of(GroupsRestored)
        self.records.restore(kept.records)
        for row in kept.group_messages:
            standing = Standing(row.state)
            if standing is Standing.SPREADING:
                self._rosters[row.message] = row.members
            elif standing is Standing.CLAIMABLE:
                self._open(ClaimRecord.resume(self, row))
            elif row.record:
                self.over(ClaimRecord.resume(self, row))
            else:
                self._rosters[row.message] = row.members
                self._rows[row.message] = row

    def attach(self, item: Item, *, spreading: bool) -> None:
        message = item.message
        if message.content_type == DECISION_TYPE and message.source == GATEWAY:
            self._attach_notice(item)
            return
        if message.target.kind is GROUP:
            item.gates = (*item.gates, self)
        row = self._rows.get(message.key)
        group_message: GroupDecider | None = None
        if message.target.kind is QUEUE:
            group_message = entry = QueueEntry(self.queue(message.app, message.target.name), item)
            entry.resume(over=not spreading)
        elif message.binding is ATOMIC and row is not None:
            group_message = atomic_message = AtomicMessage(self, item, row.members)
            atomic_message.resume(row)
        elif message.binding is CLAIM:
            claim = self._claims.get(message.key) or self._over.get(message.key)
            if claim is not None:
                self._rosters[message.key] = tuple(sorted(claim.members))
                group_message = ClaimableMessage(self, item, claim)
        if group_message is not None and message.replace_key is not None:
            at = (message.app, message.source, message.target, message.replace_key)
            self._replaceable[at] = group_message

    def _attach_notice(self, item: Item) -> None:
        if decode_decision(item.message.body).verdict is GroupVerdict.RELEASE:
            subject = self.deliveries.items.get(item.message.in_reply_to or 0)
            if subject is not None and isinstance(subject.decider, AtomicMessage):
                ReleaseNotice(subject.decider, item)

    def finish(self, now: Micros) -> None:
        self._rows = {}
        self._rosters = {}
        for device in self.deliveries.registry:
            for record in device.record.memberships:
                kind, _, name = record.partition(":")
                if kind == QUEUE:
                    self._consumes(self.deliveries.session(device), name)
        for item in list(self.deliveries.items.values()):
            if isinstance(item.decider, GroupDecider):
                item.decider.restored(now)

    # The members that messages are for.

    def roster(self, key: int) -> dict[int, Device]:
        """Return the members that a message for a group was for when it was accepted, as far as
        they exist."""
        registry = self.deliveries.registry
        found = ((number, registry.numbered(number)) for number in self._rosters.pop(key, ()))
        return {number: device for number, device in found if device is not None}

    def remember_roster(self, item: Item, members: tuple[int, ...]) -> None:
        """Store the members of a message until all deliveries have begun, unless its decider stores
        them."""
        if not isinstance(item.decider, (AtomicMessage, ClaimableMessage)):
            key = item.message.key
            state = Standing.SPREADING if members else Standing.SPREAD
            row = GroupMessageRow(key, state, bool(members), members=members)
            self.deliveries.commits.open.of(GroupChanges).group_messages[key] = row


class GroupTarget(PlainTarget):
    """The members of a group, as they are when a message for it is accepted."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts, groups: GroupFeature) -> None:
        super().__init__(deliveries, fanouts)
        self._groups = groups

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        return self._groups.reach(app, submission, now)

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        item.gates = (*item.gates, self._groups)
        self._groups.begin(item, devices, now)
        super().begin(item, devices, now)

    def resume(self, item: Item) -> Mapping[int, Device]:
        return self._groups.roster(item.message.key)

    def spreading(self, item: Item, members: tuple[int, ...]) -> None:
        self._groups.remember_roster(item, members)

    def spread(self, item: Item) -> None:
        self._groups.remember_roster(item, ())


class QueueTarget(PlainTarget):
    """A queue: a message belongs to it, and one consumer after the other may have it."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts, groups: GroupFeature) -> None:
        super().__init__(deliveries, fanouts)
        self._groups = groups

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        return self._groups.reach(app, submission, now)

    def keeps(self, devices: Mapping[int, Device]) -> bool:
        return True

    def resume(self, item: Item) -> None:
        """Return None: the entry is offered to consumers again."""

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        self._groups.begin(item, devices, now)


class DecisionWord:
    """How a decision about a group message travels."""

    must_arrive = True

    def frame(self, delivery: Delivery) -> MessageFrame:
        """Return the frame of an instruction, which the device follows without passing it to its
        application."""
        message = delivery.item.message
        seq = delivery.seq if delivery.seq >= 0 else None
        decides = Headers(operation=Operation.DECISION, in_reply_to=message.in_reply_to)
        return MessageFrame(seq, message.key, None, decides, message.body)
