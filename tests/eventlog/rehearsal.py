"""A real gateway over a store in memory, driven by hand, and a day in its life."""

from __future__ import annotations

from random import Random

from lasthop.clock import HOUR, MINUTE, SECOND, Micros
from lasthop.core.effects import Consult, Send
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.publishing.submission import Submission
from lasthop.core.pushes.feature import Order
from lasthop.core.registry import DeviceRecord
from lasthop.core.surrogates.waiting import SurrogateTerms
from lasthop.decision.budgets import Limit, Measure
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import Route, Variant
from lasthop.decision.volume.policy_choice import OnePolicy, PolicyChoice
from lasthop.decision.volume.subscription import Mode
from lasthop.decision.volume.terms import TopicTerms
from lasthop.delivery.carrier import Sent, Spent
from lasthop.eventlog.check import StoredDelivery
from lasthop.message import Binding, Reliability, Target, TargetKind, parse_id
from lasthop.store.memory import MemoryStore
from lasthop.surrogate import mail
from lasthop.surrogate.mail import Mail
from lasthop.wire.hop.feeds import OfflineReading, Report, encode_report
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Ack,
    Credit,
    Dropped,
    Frame,
    Headers,
    Hello,
    MessageFrame,
    Operation,
    Welcome,
)
from lasthop.wire.hop.heartbeat import ANSWERED
from lasthop.wire.pap.answers import AnswerVerdict, PapAnswer
from lasthop.wire.smpp.commands import SmsState
from tests.eventlog.history import NOON

APP = "news"
SHOP = "shop"
"""An app that has a surrogate."""


class Rehearsal:
    """Time stands still unless `pass_time` moves it; everything else settles at once."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.now: Micros = NOON
        self.store = MemoryStore(incarnation=7)
        self.sent: list[Frame] = []
        self.welcomes: dict[int, Welcome] = {}
        self._random = Random(7)
        self.book = OnePolicy()
        self.mails: list[Mail] = []
        self._identity = Identity(
            open_house=True,
            limits=limits or Limits(),
            policies=self.book,
            surrogates={SHOP: SurrogateTerms()},
        )
        self._start()

    def _start(self) -> None:
        self.gateway = Gateway(
            self._identity,
            self.store.open(),
            random64=lambda: self._random.getrandbits(64),
            now=self.now,
        )
        self.settle()

    def restart(self) -> None:
        """Crash, and come back from what was durable."""
        self.store = self.store.crash()
        self._start()

    def settle(self) -> None:
        """Carry out and commit until nothing is left to do."""
        while True:
            self.gateway.settle(self.now)
            for effect in self.gateway.effects():
                if isinstance(effect, Send):
                    self.sent += effect.frames
                    for frame in effect.frames:
                        if isinstance(frame, Welcome):
                            self.welcomes[effect.channel] = frame
                elif isinstance(effect, Consult):
                    self.mails += effect.mails
            commit = self.gateway.commit(self.now, flush=True)
            if commit is None:
                return
            self.store.apply(commit)
            self.gateway.written(commit.n)
            self.gateway.proceed(self.now)

    def pass_time(self, span: Micros) -> None:
        self.now += span
        self.gateway.wake(self.now)
        self.settle()

    def register(self, name: str, *, user: str = "") -> None:
        self.gateway.admin.register(APP, name, DeviceRecord(user=user), self.now)
        self.settle()

    def publish(self, target: Target, **facts: object) -> int:
        """Publish, and return the message's key."""
        submission = Submission(target=target, body=b"hello", **facts)  # type: ignore[arg-type]
        receipt = self.gateway.publish(APP, "publisher:desk", [submission], self.now)
        self.settle()
        return parse_id(receipt.ids[0])[0]

    def hear(self, channel: int, *frames: Frame) -> None:
        """The device says something."""
        self.gateway.frames_received(channel, frames, self.now, local=True)
        self.settle()

    def connect(self, name: str, channel: int, *, resume: Welcome | None = None) -> Welcome:
        """The device comes, as new or where it was."""
        self.hear(
            channel,
            Hello(
                app=APP,
                device=name,
                link="wifi",
                network="ssid:home",
                incarnation=resume.incarnation if resume is not None else None,
                epoch=resume.epoch if resume is not None else None,
            ),
        )
        return self.welcomes[channel]

    def lose(self, channel: int) -> None:
        self.gateway.channel_lost(channel, "no answer to a heartbeat", self.now)
        self.settle()

    def rows(self) -> list[StoredDelivery]:
        """The store's deliveries, as the check wants them."""
        return [
            StoredDelivery(row.message, row.device, State(row.state).name, row.open, row.last_event)
            for row in self.store.all_deliveries()
        ]

    def lines(self) -> list[bytes]:
        """Every event so far, as written."""
        return [line for page in self.store.events(0, 1 << 30) for line in page.lines.splitlines()]

    def last_event(self, message: int) -> int:
        """Of a message's only delivery."""
        (row,) = self.store.deliveries(message)
        return row.last_event


def device(name: str) -> Target:
    return Target(TargetKind.DEVICE, name)


def busy_day() -> Rehearsal:
    """Every kind of event that core makes, and deliveries at all kinds of ends."""
    day = Rehearsal(limits=Limits(open_per_device=5, preserve=HOUR))
    for name in ("phone", "tablet", "watch"):
        day.register(name, user="alice")
    _deliver_to_the_phone(day)
    _try_the_network(day)
    _talk_back(day)
    _take_back_and_expire(day)
    _fan_out(day)
    _push(day)
    day.restart()
    # The phone comes without its memory, twice: what was under way is sent once more.
    day.connect("phone", 30)
    day.connect("phone", 31)
    day.gateway.admin.remove(APP, "watch", day.now)
    day.settle()
    day.register("watch")
    day.publish(device("watch"))
    _rank(day)
    _choose_a_link(day)
    _over_the_air(day)
    _text(day)
    _ask_a_surrogate(day)
    _together(day)
    _stream(day)
    return day


def _ask_a_surrogate(day: Rehearsal) -> None:
    """Another app, whose surrogate fails at a message, relays it, and drops what a device says."""
    gateway = day.gateway
    gateway.admin.register(SHOP, "till", DeviceRecord(), day.now)
    gateway.publish(SHOP, "publisher:desk", [Submission(target=device("till"))], day.now)
    day.hear(70, Hello(app=SHOP, device="till"))
    gateway.surrogates.failed(SHOP, day.mails.pop().number, "OSError at it.py:1", day.now)
    day.pass_time(SECOND)
    gateway.surrogates.consulted(SHOP, day.mails.pop().number, mail.Verdict(), day.now)
    day.settle()
    day.hear(70, MessageFrame(0, None, None, Headers(to="device:till"), b"from the till"))
    dropped = mail.Verdict(mail.MailAction.DROP, reason="said too often")
    gateway.surrogates.consulted(SHOP, day.mails.pop().number, dropped, day.now)
    day.settle()


def _stream(day: Rehearsal) -> None:
    """Nine megabytes for whoever fetches them."""
    streams = day.gateway.streams
    submission = Submission(target=Target(TargetKind.PUBLISHER, ""))
    stream = streams.open(APP, "publisher:camera", submission, day.now)
    for offset in range(0, 9 << 20, streams.window):
        streams.append(stream, offset, bytes(streams.window), day.now)
        day.settle()
        streams.taken(stream, offset + streams.window, day.now)
    streams.end(stream, day.now)
    day.settle()
    streams.receiver_done(stream, day.now)
    day.settle()


def _choose_a_link(day: Rehearsal) -> None:
    """A device with preferences: its messages wait, cost money, and show what its link is like."""
    day.register("car")
    day.connect("car", 60)
    wishes = Preferences(
        links=(Link("wifi", Tariff(per_unit=1000)),),
        limits=(Limit(1, Measure.MESSAGES, Period.DAY),),
    )
    day.gateway.preferences.prefer(APP, "car", wishes, day.now)
    day.publish(device("car"))
    day.publish(device("car"))
    day.pass_time(SECOND)
    day.hear(60, Ack(1, 1))


def _over_the_air(day: Rehearsal) -> None:
    """A push that its carrier has to be paid for."""
    sms = Link("sms", Tariff(per_unit=1_500, unit=140))
    record = DeviceRecord(routes=[Route(Variant.WSP, "192.0.2.1", link=sms)])
    day.gateway.admin.register(APP, "old-phone", record, day.now)
    key = day.publish(device("old-phone"))
    known = day.gateway.registry.find(APP, "old-phone")
    assert known is not None
    day.gateway.air.carried(key, known.number, Sent(spent=Spent(50, 1)), day.now)
    day.settle()


def _text(day: Rehearsal) -> None:
    """A text for a phone, whose network says that the handset has it."""
    record = DeviceRecord(routes=[Route(Variant.SMS, "+15551999")])
    number = day.gateway.admin.register(APP, "handset", record, day.now).number
    key = day.publish(device("handset"))
    day.gateway.air.carried(key, number, Sent(receipts=("smsc/1",)), day.now)
    day.gateway.air.receipts.noted(["smsc/1"], SmsState.DELIVERED, "", day.now)
    day.settle()


def _together(day: Rehearsal) -> None:
    """A group that decides, a claim, and a queue whose first consumer does not come back."""
    crew, jobs = Target(TargetKind.GROUP, "crew"), Target(TargetKind.QUEUE, "jobs")
    for name, channel in (("bob", 80), ("eve", 81)):
        day.register(name)
        day.gateway.groups.join(APP, name, crew, day.now)
        day.gateway.groups.join(APP, name, jobs, day.now)
        day.hear(channel, Hello(app=APP, device=name, features=int(ALL_FEATURES)))
    for reach in (1, 2):
        day.publish(crew, binding=Binding.ATOMIC, deliver_before=day.now + MINUTE)
        for channel in (80, 81)[:reach]:
            day.hear(channel, Ack(reach, reach))
        day.pass_time(2 * MINUTE)
    claimed = day.publish(crew, binding=Binding.CLAIM)
    claim = Headers(operation=Operation.CLAIM, in_reply_to=claimed)
    day.hear(80, MessageFrame(0, 9, None, claim, b""))
    day.publish(jobs)
    day.lose(80)
    day.pass_time(HOUR)
    all_of_it = day.gateway.deliveries.named(APP, "eve").lane.sendable
    day.hear(81, Ack(all_of_it, all_of_it))
    day.gateway.groups.leave(APP, "bob", jobs, day.now)
    day.settle()


def _deliver_to_the_phone(day: Rehearsal) -> None:
    day.publish(device("phone"), rank=2.5)
    day.connect("phone", 1)
    day.pass_time(SECOND)
    day.hear(1, Ack(1, 1))
    day.publish(device("phone"), reliability=Reliability.BEST_EFFORT)
    day.publish(device("phone"), reliability=Reliability.AT_LEAST_ONCE_DELIVERY)
    day.publish(device("phone"))
    day.hear(1, Ack(3, 1))
    day.pass_time(SECOND)
    day.hear(1, Ack(3, 3))


def _try_the_network(day: Rehearsal) -> None:
    hello = Hello(app=APP, device="phone", network="ssid:home", heartbeat=60, probe=True)
    day.hear(50, hello)
    day.pass_time(MINUTE)
    day.gateway.channel_lost(50, ANSWERED, day.now)
    day.settle()


def _talk_back(day: Rehearsal) -> None:
    request = day.publish(device("phone"))
    day.hear(1, Ack(4, 4))
    day.hear(1, Credit(100, 100_000))
    said = [
        MessageFrame(0, None, "news.local", Headers(operation=Operation.SUBSCRIBE)),
        MessageFrame(1, None, "news.world", Headers(operation=Operation.SUBSCRIBE)),
        MessageFrame(2, None, "news.world", Headers(operation=Operation.UNSUBSCRIBE)),
        MessageFrame(3, None, None, Headers(operation=Operation.CONTEXT), b'{"battery":0.5}'),
        MessageFrame(
            4, None, "news.local", Headers(operation=Operation.READ), b'{"count":2,"queue_size":3}'
        ),
        MessageFrame(
            5, None, None, Headers(operation=Operation.REPLY, in_reply_to=request), b"yes"
        ),
        MessageFrame(6, None, None, Headers(to="device:tablet"), b"from the phone"),
    ]
    day.hear(1, *said)


def _take_back_and_expire(day: Rehearsal) -> None:
    cancelled = day.publish(device("tablet"))
    day.gateway.cancel(APP, cancelled, day.now)
    day.publish(device("tablet"), replace_key="score")
    day.publish(device("tablet"), replace_key="score", deliver_before=day.now + MINUTE)
    day.publish(
        device("tablet"), deliver_after=day.now + MINUTE, deliver_before=day.now + 2 * MINUTE
    )
    day.pass_time(3 * MINUTE)
    day.publish(device("phone"), deliver_before=day.now + SECOND)
    day.hear(1, Dropped(((4, 5),)), Ack(5, 5))
    day.publish(device("phone"), deliver_before=day.now + SECOND)
    day.lose(1)
    day.pass_time(2 * HOUR)
    day.pass_time(2 * HOUR)


def _push(day: Rehearsal) -> None:
    """An initiator hears late of one push, and never of another."""
    for number in range(2):
        day.register(f"pager-{number}")
        order = Order(
            push_id=str(number),
            addresses=(f"WAPPUSH=pager-{number}/TYPE=USER@ppg.example",),
            submission=Submission(target=device("")),
            notify_to=f"http://pi-{number}.example/",
        )
        message = day.gateway.pushes.submit(APP, "publisher:pi", order, day.now)
        day.settle()
        day.gateway.admin.remove(APP, f"pager-{number}", day.now)
        day.settle()
        for verdict in (
            AnswerVerdict.UNREACHABLE,
            (AnswerVerdict.HEARD, AnswerVerdict.REFUSED)[number],
        ):
            answer = PapAnswer(verdict, "so it is")
            day.gateway.notifications.answered(message.key, 0, answer, day.now)
            day.pass_time(MINUTE)


def _fan_out(day: Rehearsal) -> None:
    day.publish(Target(TargetKind.TOPIC, "news.local"))
    day.publish(Target(TargetKind.TOPIC, "nobody.listens"))
    for _ in range(6):
        day.publish(Target(TargetKind.USER, "alice"))


def _rank(day: Rehearsal) -> None:
    """A ranked topic: held, sent ahead, retracted, read; and a policy that changes."""
    day.register("reader")
    topic = Target(TargetKind.TOPIC, "ranked")
    day.gateway.topics.advertised.advertise(APP, "ranked", "publisher:desk", "The best", day.now)
    terms = TopicTerms(mode=Mode.ON_LINE, times=["12:30"], threshold=2, max=1)
    day.gateway.topics.subscribe(APP, "reader", "ranked", day.now, terms)
    low, high = day.publish(topic, rank=1), day.publish(topic, rank=3)
    day.hear(40, Hello(app=APP, device="reader", features=int(ALL_FEATURES)))
    day.hear(40, Ack(2, 2))
    message = day.store.messages([high])[high]
    day.gateway.ranked.change_rank(APP, message, 1.5, [], day.now)
    day.settle()
    day.gateway.ranked.change_rank(APP, message, 4.0, [], day.now)
    day.settle()
    for wait in (HOUR, 23 * HOUR):
        day.pass_time(wait)
    look = Headers(operation=Operation.LOOK)
    day.hear(40, MessageFrame(0, 9, "ranked", look, b""))
    report = Report(reads=(OfflineReading(day.now // 1000, 1, (low,)),))
    told = Headers(operation=Operation.REPORT)
    day.hear(40, MessageFrame(1, 10, "ranked", told, encode_report(report)))
    day.book.choice = PolicyChoice("buffer", version="7")
    day.gateway.ranked.policies_changed(day.now)
    day.gateway.topics.advertised.withdraw(APP, "ranked", "publisher:desk", day.now, force=False)
    day.settle()
