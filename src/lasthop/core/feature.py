"""How a feature takes part in the life of a message, without the spine knowing its name.

What a delivery answers to hangs on its message: *gates* that must all agree, one *decider* of its
steps, and *observers* that are told of its end. What a device has of a feature hangs on its session
as *parts*, and one *sender* says whether and over which channel a delivery leaves. The spine knows
all of them only by their moments: the methods here do nothing, and a feature overrides those in
which it takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.effects import CloseChannel
from lasthop.core.lifecycle import CONFIRMED_BY, Confirmation, Step
from lasthop.core.publishing.submission import Submission
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.timers import Timers
from lasthop.core.transfer import Transfer
from lasthop.decision.routes import RouteRefusal
from lasthop.decision.schedule import Timed
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import Contradiction
from lasthop.events import Event
from lasthop.message import Message, Quality, Reliability, TargetKind
from lasthop.store.commit import DeliveryRow, Restored
from lasthop.wire.hop.frames import Frame, Headers, Hello, MessageFrame, Skip

if TYPE_CHECKING:
    from lasthop.core.delivery import Delivery, Item
    from lasthop.core.session import Session

OrderKey: TypeAlias = tuple[str, str, str | None, int]
"""App, source, queue and priority: for one device, what is kept in order."""


def order_of(message: Message) -> OrderKey:
    """What a message is in order with."""
    return message.app, message.source, message.queue, message.priority


# What a delivery answers to.


class Steps(Protocol):
    """The one way in which a delivery changes its state."""

    @property
    def timers(self) -> Timers[Any]:
        """What is looked at again when its time has come."""
        ...

    def step(
        self, delivery: Delivery, step: Step, now: Micros, reason: str = "", *, code: int = 0
    ) -> Event:
        """Take one step of the life cycle and record it."""
        ...


class Decider:
    """Decides the steps of deliveries. This one takes the steps of the life cycle's own table; a
    feature whose deliveries depend on more overrides some of them."""

    __slots__ = ("steps",)

    turn = 0
    """Whose turn it is of two deliveries with the same place."""
    carried = True
    """Whether a carrier may have the delivery: not if the device has to answer for it."""
    pulled = True
    """Whether the device may fetch a body later: not if the delivery may be over before that."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def began(self, delivery: Delivery, event: Event, until: Micros | None, now: Micros) -> bool:
        """A delivery was accepted, and may leave after `until`. True: it waits with the decider."""
        return False

    def supersede(self, delivery: Delivery, replace_key: str) -> Delivery | None:
        """Let a delivery stand under its replace key. Returns the one that it takes the place
        of."""
        return delivery.session.replace(replace_key, delivery)

    def watch(self, delivery: Delivery, deadline: Micros) -> None:
        """Have the delivery looked at again at its deadline."""
        self.steps.timers.add(deadline, delivery)

    def due(self, delivery: Delivery, now: Micros) -> bool:
        """A time of the delivery has come. True: nothing more is to be done about it."""
        return False

    def numbers(self, delivery: Delivery) -> bool:
        """Whether the delivery gets a number, which the device acknowledges."""
        return delivery.item.message.reliability is not Reliability.BEST_EFFORT

    def released(self, delivery: Delivery, now: Micros, reason: str) -> Event:
        """The delivery has its number, if it is to have one: it can no longer be taken back."""
        return self.steps.step(delivery, Step.RELEASE, now, reason)

    def received(self, delivery: Delivery, now: Micros) -> None:
        """The device has the delivery."""
        reliability = delivery.item.message.reliability
        if CONFIRMED_BY[reliability] is Confirmation.RECEIPT:
            self.steps.step(delivery, Step.DELIVER, now, "confirmed by receipt")
        else:
            self.steps.step(delivery, Step.RECEIVE, now)

    def acknowledged(self, delivery: Delivery, now: Micros) -> None:
        """The delivery's number is closed: the application has had it."""
        self.steps.step(delivery, Step.DELIVER, now)

    def dropped(self, delivery: Delivery, now: Micros) -> None:
        """The device let the delivery go as too late."""
        self.steps.step(delivery, Step.EXPIRE, now, "too late when it was to be used")

    def ended(self, delivery: Delivery) -> None:
        """The delivery is over, whoever said so."""

    def skip(self, delivery: Delivery) -> Skip | None:
        """The delivery was over before it left: what to tell a device that waits for its number."""
        return Skip(delivery.seq)

    def frame(self, delivery: Delivery, frame: MessageFrame) -> MessageFrame:
        """The delivery as it travels, from what it would be by itself."""
        return frame

    def order(self, delivery: Delivery) -> OrderKey:
        """What the delivery is in order with."""
        return order_of(delivery.item.message)

    def rank(self, delivery: Delivery) -> float:
        """What the delivery is worth beside others that it is not in order with."""
        return delivery.item.message.rank

    def withdraw(self, step: Step, now: Micros, reason: str) -> tuple[int, int] | None:
        """Take the message back as a whole: how many deliveries were taken back, and for how many
        it is too late. None: each delivery is taken back by itself."""
        return None

    def audience(self) -> Mapping[int, Device] | None:
        """Who gets what replaces the message as a whole. None: whoever has nothing of it yet."""
        return None

    def reopened(self, delivery: Delivery, now: Micros) -> bool:
        """The delivery is back after a restart. True: nothing more is to be done about it."""
        return False


class Leaving(Enum):
    """What a gate says of a delivery that is about to be released."""

    GO = auto()
    WAIT = auto()
    """It stays first in its queue, and those behind it wait."""
    ASIDE = auto()
    """The gate keeps it, and puts it back into the queue itself."""


class Gate:
    """Something that a delivery has to pass. All gates of a message must agree."""

    def keeps(self, delivery: Delivery) -> str:
        """Why a new delivery that nobody else decides about has to wait at the gate; empty if it
        does not."""
        return ""

    def keep(self, delivery: Delivery, *, ready: bool) -> None:
        """Let a delivery wait at the gate, from now on or from when it is due."""

    def due(self, delivery: Delivery) -> bool:
        """The delay of a delivery is over. True: it still waits at the gate."""
        return False

    def leaving(self, delivery: Delivery, channel: int, now: Micros) -> Leaving:
        """Whether a delivery may be released, over this channel if that is known."""
        return Leaving.GO

    def weight(self, delivery: Delivery) -> int | None:
        """Bytes of its body that are still to leave, if that is not all of it."""
        return None

    def frame(self, delivery: Delivery, channel: ChannelState, frame: MessageFrame) -> MessageFrame:
        """The delivery as it travels over a channel, from what it would be without the gate."""
        return frame

    def requeued(self, delivery: Delivery) -> None:
        """The delivery will leave under another number: nothing of it is with the device."""

    def reopened(self, delivery: Delivery, now: Micros) -> bool:
        """A pending delivery is back after a restart. True: it waits at the gate."""
        return False


class DeliveryObserver:
    """Is told what becomes of the deliveries of a message. To change other deliveries, an observer
    sets a timer: whoever ends a delivery is in the middle of something."""

    def ended(self, delivery: Delivery) -> None:
        """One of the message's deliveries is over."""

    def over(self, item: Item) -> None:
        """None of the message's deliveries is open or to come."""

    def stopped(self, item: Item, now: Micros) -> None:
        """Deliveries of the message that had not begun never will."""


# What hangs on a session.


class SessionPart:
    """What one device has of a feature."""

    def decide(self, delivery: Delivery) -> None:
        """A delivery begins: the part may become its decider."""

    def before_sending(self, now: Micros) -> None:
        """Something changed that may let the session send."""

    def after_sending(self, now: Micros) -> None:
        """Everything that may leave has been released."""

    def on_device(self) -> Iterable[Delivery]:
        """What the device keeps though its number is closed."""
        return ()


class SubscriptionTerms(Protocol):
    """Subscriptions with terms, whoever makes something of the terms."""

    def subscribe(self, session: Session, topic: str, terms: TopicTerms, now: Micros) -> bool:
        """Give a subscription terms, or others; false when it has them."""
        ...

    def unsubscribe(self, session: Session, topic: str, now: Micros) -> None:
        """A subscription has ended, which may have had terms."""
        ...

    def muted(self, session: Session) -> Mapping[str, bool]:
        """The topics with terms, and whether they are quiet now."""
        ...

    def mute(self, session: Session, topic: str, quiet: bool, now: Micros) -> None:
        """The user's context makes a topic quiet, or no longer."""
        ...


class Asked(Timed, Protocol):
    """A message, or the wish to send one: what bears on when and over which link."""

    @property
    def rank(self) -> float: ...
    @property
    def quality(self) -> Quality | None: ...


class Objection(Protocol):
    """Why something can never be sent as its publisher asks."""

    def reason(self) -> object:
        """In words, for one delivery among many."""
        ...

    def error(self) -> Contradiction:
        """As an answer to whoever asks for it."""
        ...


class Sender:
    """Says whether a delivery leaves now, over which channel, and what that costs."""

    def objection(self, asked: Asked, now: Micros) -> Objection | None:
        """Why a message can never be sent as it is asked for."""
        return None

    def pump(self, session: Session, now: Micros) -> list[Delivery]:
        """Release what may leave now, best first."""
        raise AssertionError("a sender releases")

    def channel(
        self, session: Session, delivery: Delivery, usual: ChannelState, now: Micros
    ) -> ChannelState | None:
        """Over which channel something leaves that is released. None: not now."""
        return usual

    def sent(self, session: Session, reason: str, now: Micros) -> None:
        """Everything that may leave was handed to its channel."""

    def left(self, delivery: Delivery, now: Micros) -> int:
        """A delivery was handed to its channel. Returns what that cost, in millionths."""
        return 0

    def refund(self, delivery: Delivery, now: Micros) -> None:
        """A released delivery did not leave after all."""

    def acknowledged(self, session: Session, received: Iterable[object], now: Micros) -> None:
        """The device has these, deliveries among them."""

    def ended(self, delivery: Delivery, now: Micros) -> None:
        """A delivery is over."""

    def changed(self) -> None:
        """Something changed on which a choice may depend."""

    def channels_changed(self, now: Micros) -> None:
        """The device has other channels than before."""

    def patience(self, channel: ChannelState) -> Micros:
        """How long to wait for the receipt of what left over a channel, before it leaves again."""
        raise AssertionError("a sender has patience")

    def settled(self, session: Session, now: Micros) -> None:
        """Everything has left that may."""

    def rests(self, delivery: Delivery, now: Micros) -> bool:
        """Whether the device wants to be left alone with a delivery, which comes back by a timer
        when that is over, or has ended if it never is."""
        return False

    def covers(self, transfer: Transfer) -> bool:
        """Whether more of a transfer may leave as soon as there is room."""
        return True

    def allowance(self, session: Session, transfer: Transfer) -> tuple[ChannelState | None, int]:
        """The channel over which a transfer goes on, and by how many bytes."""
        raise AssertionError("a sender knows a channel")

    def piece_left(self, transfer: Transfer, size: int, now: Micros) -> None:
        """So many bytes of a transfer were handed to their channel."""


class AwaySender(Protocol):
    """Sends what no channel can have: the device is not there, or its link is not what the
    publisher requires."""

    def reaches(self, session: Session) -> bool:
        """Whether anything may leave for a device that is not in contact."""
        ...

    def pump(self, session: Session, now: Micros) -> None:
        """Release what may leave without any channel."""
        ...

    def divert(self, delivery: Delivery, refusal: RouteRefusal, now: Micros) -> None:
        """None of the channels is what the publisher requires."""
        ...


# Tables that features fill.


class Selection(Protocol):
    """Who of those whom a message reaches wants it."""

    @property
    def known(self) -> bool:
        """Whether that can be told already."""
        ...

    def wants(self, device: Device) -> str | None:
        """None if a device does not want the message; otherwise a remark about that, or nothing."""
        ...


class TargetRule(Protocol):
    """Whom a kind of target stands for."""

    def keeps(self, devices: Mapping[int, Device]) -> bool:
        """Whether a message for these devices is kept: one may be for nobody yet."""
        ...

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        """Whom a message is for now; refuses what cannot be promised."""
        ...

    def select(
        self, app: str, what: Message | Submission, devices: Mapping[int, Device], *, resident: bool
    ) -> Selection | None:
        """Who of these devices wants a message, whose body may be in the store only. None: all of
        them do."""
        ...

    def find_out(self, order: OrderKey, item: Item, selection: Selection) -> None:
        """Let it become known who wants a message; then `Fanouts.go_on`."""
        ...

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        """Begin the deliveries of an accepted message."""
        ...

    def resume(self, item: Item) -> Mapping[int, Device] | None:
        """Whom a message is for whose deliveries were still being begun at a restart. None: they
        begin in another way."""
        ...

    def spreading(self, item: Item, members: tuple[int, ...]) -> None:
        """The deliveries of a message are begun in several commits."""
        ...

    def spread(self, item: Item) -> None:
        """All deliveries of such a message have begun."""
        ...


class Word(Protocol):
    """How messages of a content type that is the gateway's own travel."""

    must_arrive: bool
    """Whether a full mailbox takes it all the same."""

    def frame(self, delivery: Delivery) -> MessageFrame:
        """The message as it travels to the device."""
        ...


class Arrival:
    """A message that a device sent, before anybody owns it."""

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
        """The message that it answers, if it is for a publisher."""
        self.then: list[Callable[[Micros], None]] = []
        """What to do when it has been taken."""


Operate: TypeAlias = Callable[["Session", MessageFrame, Headers, Micros], None]
"""Does what a device asks for by one operation."""


class CoreFeature:
    """A feature of the gateway. Everything here is a moment in which it may take part."""

    def needed(self, restored: Restored) -> bool:
        """Whether anything asks for the feature at all; otherwise it takes part in nothing."""
        return True

    # Tables.

    def targets(self) -> Mapping[TargetKind, TargetRule]:
        """Whom its kinds of target stand for."""
        return {}

    def words(self) -> Mapping[str, Word]:
        """Its own content types, in which the gateway speaks to devices."""
        return {}

    def operations(self) -> Mapping[int, Operate]:
        """What devices may ask of it."""
        return {}

    def frames(self) -> Mapping[type[Frame], Callable[[Session, Frame, Micros], None]]:
        """Frames that are neither messages nor acknowledgements."""
        return {}

    # Messages.

    def check(self, submission: Submission) -> None:
        """Refuse what contradicts itself."""

    def admit(self, app: str, source: str, submissions: Sequence[Submission]) -> None:
        """Refuse what there is no room for."""

    def capacity(self, app: str) -> int:
        """How many more deliveries of an app may begin now."""
        return 1 << 62

    def owned(self, item: Item) -> None:
        """A message is the gateway's, new or after a restart: gates, a decider and observers may be
        attached before its first delivery."""

    def take_back(self, app: str, key: int, now: Micros) -> tuple[int, int] | None:
        """Take back a message of which no delivery is open: how many were taken back, and for how
        many it is too late. None: there is nothing to take back."""
        return None

    def replied(self, message: int, device: int, reply: int) -> None:
        """A device has answered a message that a publisher sent, by a message of this key."""

    def intake(self, arrival: Arrival, now: Micros) -> bool:
        """A device sent a message. True: the feature has taken it, and nobody else will."""
        return False

    # Devices.

    def check_device(self, app: str, record: DeviceRecord, device: Device | None) -> None:
        """Refuse the record of a new device, or another one of a device that there is."""

    def opened(self, session: Session) -> None:
        """There is a session: parts and senders may be attached to it."""

    def meeting(
        self, session: Session, channel: int, hello: Hello, now: Micros
    ) -> CloseChannel | None:
        """A device introduces itself over a channel; what to tell it if that may not begin."""
        return None

    def introduced(
        self, session: Session, hello: Hello, now: Micros, *, resumed: bool, forgot: bool
    ) -> None:
        """A contact begins: whether the numbering goes on, and if not whether the device has lost
        its memory. Its acknowledgements have been taken in."""

    def greeted(self, session: Session, now: Micros, *, joined: bool) -> None:
        """WELCOME has left over a channel, which the device may have joined to others."""

    def channel_gone(self, session: Session) -> None:
        """One of several channels has ended."""

    def away(self, session: Session, now: Micros) -> None:
        """Nothing reaches the device any more."""

    def amended(self, session: Session, changes: Mapping[str, object], now: Micros) -> None:
        """An administrator changed these fields of a device's record."""

    def removed(self, session: Session, now: Micros) -> None:
        """A device is about to be removed: what is open for it is given up after this."""

    def forgotten(self, session: Session) -> None:
        """What was open for a device that is being removed has been given up."""

    # The driver.

    def turned(self) -> None:
        """The driver has served everybody else: there is time again."""

    def settle(self, now: Micros) -> None:
        """Draw consequences that may touch sessions."""

    def after_settling(self, now: Micros) -> None:
        """Every consequence has been drawn that touches sessions."""

    def proceed(self, now: Micros) -> None:
        """A commit has become durable: the next batch of long work may follow."""

    def before_commit(self) -> None:
        """The open commit is about to be taken: write into it what has changed."""

    def wake(self, now: Micros) -> None:
        """Time has passed."""

    def next_due(self) -> Micros | None:
        """When the feature wants to be woken next."""
        return None

    def fetched(self, messages: Mapping[int, Message], now: Micros) -> None:
        """Bodies have come back from the store, for whomever."""

    # After a restart.

    def restore(self, restored: Restored, now: Micros) -> None:
        """Take what the store knows; devices and sessions are back, messages are not."""

    def attach(self, item: Item, *, spreading: bool) -> None:
        """A message is back, its deliveries are not; `spreading` if more of them are to begin."""

    def reopening(self, delivery: Delivery, row: DeliveryRow) -> None:
        """A delivery is back: a decider or other content may be attached to it."""

    def finish(self, now: Micros) -> None:
        """Everything is back: go on."""
