"""How a feature takes part in the life of a message, without the spine knowing its name.

Attached to a message are its *gates*, which must all agree to a release, one *decider* of the steps
of its deliveries, and *observers* that are told how they end. Attached to a session are *parts*,
the state of features for that device, and one *sender*, which says whether and over which channel a
delivery leaves. The spine knows all of them only by their moments: the methods here do nothing, and
a feature overrides those in which it takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.effects import CloseChannel
from lasthop.core.lane import LaneName
from lasthop.core.lifecycle import CONFIRMED_BY, Confirmation, Step
from lasthop.core.publishing.submission import Submission
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.timers import Timers
from lasthop.core.transfer import Transfer
from lasthop.decision.choice import Choice
from lasthop.decision.links import Charge, Link, Tariff
from lasthop.decision.routes import Place, RouteRefusal
from lasthop.decision.schedule import Timed
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import Contradiction
from lasthop.events import Event
from lasthop.message import (
    DEFAULT_PRIORITY,
    GATEWAY,
    Message,
    Quality,
    Reliability,
    TargetKind,
)
from lasthop.store.commit import DeliveryRow, Restored
from lasthop.wire.hop.frames import Frame, Headers, Hello, MessageFrame, Skip

if TYPE_CHECKING:
    from lasthop.core.delivery import Delivery, Item
    from lasthop.core.session import Session

OrderKey: TypeAlias = tuple[str, str, str | None, int]
"""App, source, queue and priority: messages to one device that agree in all four are kept in
order."""


def order_of(message: Message) -> OrderKey:
    """Return the order key of a message: messages with the same key are kept in order."""
    return message.app, message.source, message.queue, message.priority


ABOUT_QUEUE = "lasthop-about-queue"
"""The header, never sent, by which a word of the gateway about a message names that message's
queue, so that it travels in the same lane."""

# Attached to a message: decider, gates and observers.


class Steps(Protocol):
    """The interface by which a delivery changes its state."""

    @property
    def timers(self) -> Timers[Any]:
        """The timers that wake deliveries and other targets when their time has come."""
        ...

    def step(
        self, delivery: Delivery, step: Step, now: Micros, reason: str = "", *, code: int = 0
    ) -> Event:
        """Take one step of a delivery's life cycle and record the event."""
        ...


class Decider:
    """Decides which step of the life cycle a delivery takes next. The methods here suit plain
    messages; a feature with other rules, such as atomic messages, overrides some of them."""

    __slots__ = ("steps",)

    turn = 0
    """The sort key of deliveries that have the same place in the queue: the lowest leaves first."""
    carried = True
    """Whether a carrier may deliver the message: False if the device has to answer for it."""
    pulled = True
    """Whether the device may pull the body later: False if the delivery may end before that."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def began(self, delivery: Delivery, event: Event, until: Micros | None, now: Micros) -> bool:
        """A delivery was accepted, and may leave after `until`. Return True if the decider keeps
        the delivery waiting itself."""
        return False

    def supersede(self, delivery: Delivery, replace_key: str) -> Delivery | None:
        """Register a delivery under its replace key, and return the older delivery that it
        replaces."""
        return delivery.session.replace(replace_key, delivery)

    def watch(self, delivery: Delivery, deadline: Micros) -> None:
        """Wake the delivery at its deadline."""
        self.steps.timers.add(deadline, delivery)

    def due(self, delivery: Delivery, now: Micros) -> bool:
        """A time that was set for the delivery has come, such as its deadline. Return True if the
        decider has handled it."""
        return False

    def numbers(self, delivery: Delivery) -> bool:
        """Return whether the delivery gets a sequence number, which the device acknowledges."""
        return delivery.item.message.reliability is not Reliability.BEST_EFFORT

    def released(self, delivery: Delivery, now: Micros, reason: str) -> Event:
        """Release the delivery, which has its number by now if it needs one: it can no longer be
        taken back."""
        return self.steps.step(delivery, Step.RELEASE, now, reason)

    def received(self, delivery: Delivery, now: Micros) -> None:
        """Take the step that follows when the device has received the delivery."""
        reliability = delivery.item.message.reliability
        if CONFIRMED_BY[reliability] is Confirmation.RECEIPT:
            self.steps.step(delivery, Step.DELIVER, now, "confirmed by receipt")
        else:
            self.steps.step(delivery, Step.RECEIVE, now)

    def acknowledged(self, delivery: Delivery, now: Micros) -> None:
        """Take the step that follows when the device has acknowledged the delivery's number: its
        application has processed the message."""
        self.steps.step(delivery, Step.DELIVER, now)

    def dropped(self, delivery: Delivery, now: Micros) -> None:
        """Take the step that follows when the device dropped the delivery as too late."""
        self.steps.step(delivery, Step.EXPIRE, now, "dropped by the device as too late")

    def ended(self, delivery: Delivery) -> None:
        """The delivery has ended, for whatever reason."""

    def skip(self, delivery: Delivery) -> Skip | None:
        """Return the frame that tells a device not to wait for the number of a delivery that ended
        before it left; None if the device needs no such frame."""
        return Skip(delivery.seq)

    def frame(self, delivery: Delivery, frame: MessageFrame) -> MessageFrame:
        """Return the delivery's frame as it travels to the device, made from the frame of the plain
        message."""
        return frame

    any_order = True
    """Whether the delivery may be handed over out of order where its queue allows that."""

    def lane(self, delivery: Delivery) -> LaneName | None:
        """Return the name of the lane in which the delivery leaves; None for lane 0."""
        message = delivery.item.message
        queue = message.queue
        if message.source == GATEWAY:
            queue = dict(message.headers).get(ABOUT_QUEUE, queue)
        if queue is None and message.priority == DEFAULT_PRIORITY:
            return None
        return "", queue, message.priority, False

    def order(self, delivery: Delivery) -> OrderKey:
        """Return the order key of the delivery: deliveries with the same key are kept in order."""
        return order_of(delivery.item.message)

    def rank(self, delivery: Delivery) -> float:
        """Return the rank by which the delivery is compared with deliveries that have another order
        key."""
        return delivery.item.message.rank

    def withdraw(self, step: Step, now: Micros, reason: str) -> tuple[int, int] | None:
        """Take the message back as a whole, and return how many deliveries were taken back and for
        how many it is too late; None if each delivery has to be taken back separately."""
        return None

    def audience(self) -> Mapping[int, Device] | None:
        """Return the devices that get a message which replaces the decider's message as a whole;
        None for all devices to which nothing of the old message was sent."""
        return None

    def reopened(self, delivery: Delivery, now: Micros) -> bool:
        """The delivery was restored after a restart. Return True if the decider has dealt with
        it."""
        return False


class Leaving(Enum):
    """The answer of a gate about a delivery that is about to be released."""

    GO = auto()
    WAIT = auto()
    """The delivery stays first in its queue, and those behind it wait."""
    ASIDE = auto()
    """The gate keeps the delivery, and puts it back into the queue itself."""


class Gate:
    """A condition that a delivery has to meet before it leaves. All gates of a message must
    agree."""

    def keeps(self, delivery: Delivery) -> str:
        """Return why a new delivery of the plain decider has to wait at the gate; an empty text if
        it need not wait."""
        return ""

    def keep(self, delivery: Delivery, *, ready: bool) -> None:
        """Let a delivery wait at the gate: from now on if it is `ready`, otherwise from when its
        delay is over."""

    def due(self, delivery: Delivery) -> bool:
        """The delay of a delivery is over. Return True if the delivery still waits at the gate."""
        return False

    def leaving(self, delivery: Delivery, channel: int, now: Micros) -> Leaving:
        """Return whether a delivery may be released, over this channel if one is chosen already."""
        return Leaving.GO

    def weight(self, delivery: Delivery) -> int | None:
        """Return the bytes of the delivery's body that are still to leave; None if that is all of
        them."""
        return None

    def frame(self, delivery: Delivery, channel: ChannelState, frame: MessageFrame) -> MessageFrame:
        """Return the delivery's frame as it travels over a channel; `frame` is the delivery's frame
        without this gate."""
        return frame

    def requeued(self, delivery: Delivery) -> None:
        """The delivery will leave under another number: forget which part of it the device has."""

    def reopened(self, delivery: Delivery, now: Micros) -> bool:
        """A pending delivery was restored after a restart. Return True if it waits at the gate."""
        return False


class DeliveryObserver:
    """An object that is told what becomes of the deliveries of a message. To change other
    deliveries, an observer sets a timer, because the caller is in the middle of ending this one."""

    def ended(self, delivery: Delivery) -> None:
        """One of the message's deliveries has ended."""

    def over(self, item: Item) -> None:
        """None of the message's deliveries is open, and no more of them will begin."""

    def stopped(self, item: Item, now: Micros) -> None:
        """Deliveries of the message that have not begun yet will never begin."""


# Attached to a session: parts and senders.


class SessionPart:
    """The state that one feature keeps for one session."""

    def decide(self, delivery: Delivery) -> None:
        """A delivery of this session begins: the part may become its decider."""

    def before_sending(self, now: Micros) -> None:
        """Something changed that may let the session send: queue what this part has to send."""

    def after_sending(self, now: Micros) -> None:
        """All deliveries that may leave now have been released."""

    def on_device(self) -> Iterable[Delivery]:
        """Return the deliveries that the device still holds although it has acknowledged their
        numbers."""
        return ()


class SubscriptionTerms(Protocol):
    """The interface of the feature that handles subscriptions with terms."""

    def subscribe(self, session: Session, topic: str, terms: TopicTerms, now: Micros) -> bool:
        """Give a subscription these terms; return False if it has them already."""
        ...

    def unsubscribe(self, session: Session, topic: str, now: Micros) -> None:
        """Drop the terms of a subscription that has ended, if it had any."""
        ...

    def muted(self, session: Session) -> Mapping[str, bool]:
        """Return the topics with terms, and whether each of them is muted now."""
        ...

    def mute(self, session: Session, topic: str, quiet: bool, now: Micros) -> None:
        """Mute a topic because of the user's context, or unmute it."""
        ...


class Asked(Timed, Protocol):
    """The fields of a message or a submission that bear on when, and over which link, it is
    sent."""

    @property
    def rank(self) -> float: ...
    @property
    def quality(self) -> Quality | None: ...


class Objection(Protocol):
    """The reason for which a message can never be sent as its publisher asks."""

    def reason(self) -> object:
        """Return the reason in words, for the event of one delivery among many."""
        ...

    def error(self) -> Contradiction:
        """Return the reason as the error with which a request is refused."""
        ...


class WaitReason(NamedTuple):
    """What a delivery waits for, and until when at the latest; None if no time is known."""

    reason: str
    until: Micros | None = None


class Sender:
    """Decides whether a delivery leaves now, over which channel, and what that costs."""

    def objection(self, asked: Asked, now: Micros) -> Objection | None:
        """Return why a message can never be sent as its publisher asks; None if it can."""
        return None

    def pump(self, session: Session, now: Micros) -> list[Delivery]:
        """Release the deliveries that may leave now, best first, and return them."""
        raise AssertionError("a sender must override pump")

    def channel(
        self, session: Session, delivery: Delivery, usual: ChannelState, now: Micros
    ) -> ChannelState | None:
        """Return the channel over which a released delivery leaves; None if it cannot leave now."""
        return usual

    def sent(self, session: Session, reason: str, now: Micros) -> None:
        """All released deliveries were handed to their channels."""

    def left(self, delivery: Delivery, now: Micros) -> int:
        """Note that a delivery was handed to its channel, and return the cost in millionths."""
        return 0

    def refund(self, delivery: Delivery, now: Micros) -> None:
        """Take back the cost of a released delivery that did not leave after all."""

    def acknowledged(self, session: Session, received: Iterable[object], now: Micros) -> None:
        """Learn from an acknowledgement that the device received these items, deliveries among
        them."""

    def ended(self, delivery: Delivery, now: Micros) -> None:
        """Forget what was kept for a delivery that has ended."""

    def changed(self) -> None:
        """Note that something changed on which the choice of channel may depend."""

    def channels_changed(self, now: Micros) -> None:
        """Note that the device has other channels than before."""

    def patience(self, channel: ChannelState) -> Micros:
        """Return the microseconds to wait for the receipt of a delivery that left over a channel,
        before it is sent again."""
        raise AssertionError("a sender must override patience")

    def settled(self, session: Session, now: Micros) -> None:
        """All deliveries of the session that may leave now have left."""

    def rests(self, delivery: Delivery, now: Micros) -> bool:
        """Return whether a delivery must not leave now, because the device's quiet times forbid it.
        A timer brings the delivery back at the first time allowed; if there is none, the delivery
        has been given up."""
        return False

    def tariff(self, link: Link) -> Tariff:
        """Return the tariff of a carrier's link, which the device may have declared otherwise."""
        return link.tariff

    def route_choice(self, delivery: Delivery, size: int, now: Micros) -> Place | None:
        """Return a function that chooses among the links by which carriers reach the device; None
        if nothing limits them. `size` is the most that the delivery takes."""
        return None

    def given_to_carrier(self, delivery: Delivery, choice: Choice, now: Micros) -> None:
        """Reserve what a delivery costs that is released by the answer of `route_choice`."""

    def waits(self, delivery: Delivery, choice: Choice, now: Micros) -> None:
        """Keep a delivery that no carrier may have now, until the choice is worth asking again."""

    def carried(self, delivery: Delivery, spent: Charge | None, now: Micros) -> Charge | None:
        """Settle the reservation of a delivery that was with a carrier: what the carrier spent, or
        if that is None all of it. Return what was charged; None if nothing was reserved."""
        return None

    def waiting(self, session: Session, delivery: Delivery) -> WaitReason | None:
        """Return what holds back a delivery that could leave otherwise; None if nothing does."""
        return None

    def stir(self, now: Micros) -> None:
        """Offer again what waits for a carrier, if something has changed that may let it leave."""

    def covers(self, transfer: Transfer) -> bool:
        """Return whether more of a transfer may leave as soon as its channel has room."""
        return True

    def allowance(self, session: Session, transfer: Transfer) -> tuple[ChannelState | None, int]:
        """Return the channel over which a transfer continues, and how many bytes of it may
        leave."""
        raise AssertionError("a sender must override allowance")

    def piece_left(self, transfer: Transfer, size: int, now: Micros) -> None:
        """Note that `size` bytes of a transfer were handed to their channel."""


class AwaySender(Protocol):
    """Sends what no channel can deliver: the device is not in contact, or its link is not what the
    publisher requires."""

    def reaches(self, session: Session) -> bool:
        """Return whether anything can be sent to a device that is not in contact."""
        ...

    def pump(self, session: Session, now: Micros) -> None:
        """Release the deliveries that can leave without a channel."""
        ...

    def waiting(self, delivery: Delivery) -> WaitReason | None:
        """Return what a delivery waits for that a carrier has, or will have again; None if neither
        is so."""
        ...

    def divert(self, delivery: Delivery, refusal: RouteRefusal, now: Micros) -> None:
        """Find another way for a delivery whose publisher requires a quality that none of the
        channels has, or give the delivery up."""
        ...


# Tables that features fill.


class Selection(Protocol):
    """Which of the devices that a message reaches want it."""

    @property
    def known(self) -> bool:
        """Whether the devices that want the message are known already."""
        ...

    def wants(self, device: Device) -> str | None:
        """Return None if a device does not want the message; otherwise a remark for the event,
        which may be empty."""
        ...


class TargetRule(Protocol):
    """The rules of one kind of target: which devices it stands for, and how their deliveries
    begin."""

    def keeps(self, devices: Mapping[int, Device]) -> bool:
        """Return whether the gateway keeps a message for these devices, of which there may be none
        yet."""
        ...

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        """Return the devices that a message is for now; raise an error if it cannot be delivered as
        asked."""
        ...

    def select(
        self, app: str, what: Message | Submission, devices: Mapping[int, Device], *, resident: bool
    ) -> Selection | None:
        """Return which of these devices want a message, whose body may be in the store only; None
        if all of them do."""
        ...

    def find_out(self, order: OrderKey, item: Item, selection: Selection) -> None:
        """Find out which devices want a message, and then call `Fanouts.go_on`."""
        ...

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        """Begin the deliveries of an accepted message."""
        ...

    def resume(self, item: Item) -> Mapping[int, Device] | None:
        """Return the devices of a message whose deliveries were still being begun at a restart;
        None if they begin in another way."""
        ...

    def spreading(self, item: Item, members: tuple[int, ...]) -> None:
        """Note the members of a message whose deliveries are begun in several commits."""
        ...

    def spread(self, item: Item) -> None:
        """Forget the members that `spreading` noted: all deliveries of the message have begun."""
        ...


class Word(Protocol):
    """How messages of one of the gateway's own content types travel."""

    must_arrive: bool
    """Whether a full mailbox accepts the message all the same."""

    def frame(self, delivery: Delivery) -> MessageFrame:
        """Return the frame of the message as it travels to the device."""
        ...


class Arrival:
    """A message that a device sent, before it is accepted."""

    __slots__ = ("answers_to", "frame", "headers", "session", "submission", "then")

    def __init__(
        self,
        session: Session,
        frame: MessageFrame,
        headers: Headers,
        submission: Submission,
        answers_to: int = 0,
    ) -> None:
        self.session = session
        self.frame = frame
        self.headers = headers
        self.submission = submission
        self.answers_to = answers_to
        """The key of the message that this one answers, if it is for a publisher; otherwise 0."""
        self.then: list[Callable[[Micros], None]] = []
        """Functions to call when the message has been accepted."""


Operate: TypeAlias = Callable[["Session", MessageFrame, Headers, Micros], None]
"""A function that carries out one operation that a device asks for."""


class CoreFeature:
    """A feature of the gateway. Every method is a moment in which the feature may take part."""

    def needed(self, restored: Restored) -> bool:
        """Return whether the settings or the store ask for the feature at all; otherwise it takes
        part in nothing."""
        return True

    # Tables.

    def targets(self) -> Mapping[TargetKind, TargetRule]:
        """Return the rules for the feature's own kinds of target."""
        return {}

    def words(self) -> Mapping[str, Word]:
        """Return the feature's own content types, in which the gateway speaks to devices."""
        return {}

    def operations(self) -> Mapping[int, Operate]:
        """Return the operations that devices may ask of the feature, by their numbers."""
        return {}

    def frames(self) -> Mapping[type[Frame], Callable[[Session, Frame, Micros], None]]:
        """Return the handlers of the feature's own frames, which are neither messages nor
        acknowledgements."""
        return {}

    # Messages.

    def check(self, submission: Submission) -> None:
        """Raise an error for a submission that contradicts itself."""

    def admit(self, app: str, source: str, submissions: Sequence[Submission]) -> None:
        """Raise an error for submissions for which there is no room."""

    def capacity(self, app: str) -> int:
        """Return how many more deliveries of an app may begin now."""
        return 1 << 62

    def owned(self, item: Item) -> None:
        """The gateway owns a message, new or after a restart: gates, a decider and observers may be
        attached before its first delivery."""

    def accepted(self, message: Message, now: Micros) -> bool:
        """The gateway has accepted a message, for which there may be no device; it is in the open
        commit, and no delivery of it has begun. Return whether the feature keeps the message for
        those who come later."""
        return False

    def withdrawn(self, app: str, key: int, now: Micros) -> None:
        """A publisher has cancelled or replaced a message, whatever became of its deliveries."""

    def take_back(self, app: str, key: int, now: Micros) -> tuple[int, int] | None:
        """Take back a message of which no delivery is open, and return how many deliveries were
        taken back and for how many it is too late; None if the feature knows nothing of the
        message."""
        return None

    def recall(self, delivery: Delivery, now: Micros) -> bool:
        """A released delivery is to be taken back. Return True if nothing of it has left: it is
        pending again."""
        return False

    def replied(self, message: int, device: int, reply: int) -> None:
        """A device has answered a publisher's message; `reply` is the key of the answer."""

    def intake(self, arrival: Arrival, now: Micros) -> bool:
        """A device sent a message. Return True if the feature has taken it, so that it is not
        accepted otherwise."""
        return False

    # Devices.

    def check_device(self, app: str, record: DeviceRecord, device: Device | None) -> None:
        """Raise an error for the record of a new device, or for a changed record of a present
        one."""

    def opened(self, session: Session) -> None:
        """A session was created: parts and senders may be attached to it."""

    def meeting(
        self, session: Session, channel: int, hello: Hello, now: Micros
    ) -> CloseChannel | None:
        """A device introduces itself over a channel. Return how to close the channel if the contact
        may not begin; otherwise None."""
        return None

    def introduced(
        self, session: Session, hello: Hello, now: Micros, *, resumed: bool, forgot: bool
    ) -> None:
        """A contact begins, and the device's acknowledgements have been applied. `resumed`: the
        numbering goes on; `forgot`: it does not, because the device has lost its memory."""

    def greeted(self, session: Session, now: Micros, *, joined: bool) -> None:
        """WELCOME has left over a channel; `joined` if the device has other channels besides."""

    def channel_gone(self, session: Session) -> None:
        """One of several channels of a device has ended."""

    def away(self, session: Session, now: Micros) -> None:
        """The last channel of a device has ended."""

    def amended(self, session: Session, changes: Mapping[str, object], now: Micros) -> None:
        """An administrator changed these fields of a device's record."""

    def removed(self, session: Session, now: Micros) -> None:
        """A device is about to be removed: its open deliveries are given up after this."""

    def forgotten(self, session: Session) -> None:
        """The open deliveries of a device that is being removed have been given up."""

    # The driver.

    def turned(self) -> None:
        """A new turn of the driver begins: the feature may go on with work that is limited per
        turn."""

    def settle(self, now: Micros) -> None:
        """Act on the inputs since the last call, where that may change what sessions can send."""

    def after_settling(self, now: Micros) -> None:
        """Every feature's `settle` was called: act on what is left, which changes nothing for
        sessions."""

    def proceed(self, now: Micros) -> None:
        """A commit has become durable: the next batch of long work may follow."""

    def before_commit(self) -> None:
        """The open commit is about to be taken: write into it what has changed."""

    def wake(self, now: Micros) -> None:
        """Do what is due by `now`."""

    def next_due(self) -> Micros | None:
        """Return when the feature has to be woken next; None if never."""
        return None

    def fetched(self, messages: Mapping[int, Message], now: Micros) -> None:
        """Handle bodies that were read from the store; other features may have asked for some of
        them."""

    def recalled(
        self, device: int, messages: Mapping[int, Message], had: Collection[int], now: Micros
    ) -> None:
        """Handle messages that were read from the store for a device; of those in `had` it has or
        had a delivery."""

    # After a restart.

    def restore(self, restored: Restored, now: Micros) -> None:
        """Restore the feature's state from the store; devices and sessions are restored by now,
        messages are not."""

    def attach(self, item: Item, *, spreading: bool) -> None:
        """A message was restored, and its deliveries are not yet; `spreading` if more of them are
        to begin."""

    def reopening(self, delivery: Delivery, row: DeliveryRow) -> None:
        """A delivery was restored: a decider or other content may be attached to it."""

    def finish(self, now: Micros) -> None:
        """Resume work after a restart: everything has been restored."""
