"""Requests, gathers and conversations in a fault schedule: who asks whom, and how each must end.

A question reads `?N:T`: number N, with T turns to go. Its answer is `!N:0` if no turn is left, and
the question `?N:T-1` otherwise. Whatever crashes, a question with a named callback ends exactly
once; a question without one ends once, or is lost with the process that asked it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.device.message import Message, refusal
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session_events import Gathered, Refused, RequestAnswered, SessionEvent, TimedOut
from lasthop.simulation.schedule import Schedule
from lasthop.simulation.verdict import RehearsalVerdict
from lasthop.wire.hop.frames import Headers, Operation
from lasthop.wire.hop.services import Service

TOPIC = "news"
SERVICE = Service("answers")
"""The service that every device offers."""
CALLBACK = "callback"
ASKED, TOLD = b"?", b"!"

TIMEOUT, REFUSED = "timeout", "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuestion:
    """A question that a device will ask at a given time."""

    at: Micros
    device: str
    body: bytes
    headers: Headers
    topic: str | None
    expects: Expectation


@dataclass(frozen=True, slots=True)
class Made:
    """A question that is durable in the outbox of the device that asks."""

    key: int
    body: bytes
    expects: Expectation
    life: int
    """How often the asking device had crashed before it asked."""


@dataclass(frozen=True, slots=True)
class QuestionEnding:
    """How a question ended, as the application was told."""

    key: int
    outcome: str
    """The text of the answer, or what came in its place."""
    redelivered: bool = False


@dataclass(slots=True)
class Talk:
    """The questions of one device, and how they ended."""

    made: dict[int, Made] = field(default_factory=dict)
    endings: list[QuestionEnding] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    """Answers that were shown to the application as ordinary messages."""

    def note(self, made: list[Made]) -> None:
        """Note questions that have become durable."""
        self.made.update((question.key, question) for question in made)

    def heard(self, session_event: SessionEvent) -> bool:
        """Note a session event about a question without callback; return True if it was the
        question's end."""
        if isinstance(session_event, RequestAnswered):
            self.endings.append(QuestionEnding(session_event.key, session_event.message.text))
        elif isinstance(session_event, TimedOut):
            self.endings.append(QuestionEnding(session_event.key, TIMEOUT))
        elif isinstance(session_event, Gathered):
            texts = sorted({message.text for message in session_event.replies.values()})
            short = session_event.complete and bool(session_event.missing)
            text = ",".join(texts)
            self.endings.append(
                QuestionEnding(session_event.key, f"short:{text}" if short else text)
            )
        elif isinstance(session_event, Refused):
            if all(ending.key != session_event.key for ending in self.endings):
                self.endings.append(QuestionEnding(session_event.key, REFUSED))
        else:
            return False
        return True

    def show(self, message: Message) -> QuestionEnding | None:
        """Handle a message of a conversation that the application was given; return how a question
        of this device ended, if the message says so."""
        if message.request is not None:
            outcome = message.text
            if message.timed_out:
                outcome = TIMEOUT
            elif refusal(message) is not None:
                outcome = REFUSED
            return QuestionEnding(message.request.key, outcome, message.redelivered)
        if message.in_reply_to is not None:
            self.strays.append(message.text)
        return None


def concerns(message: Message) -> bool:
    """Return whether the message belongs to a conversation."""
    return message.request is not None or message.body[:1] in (ASKED, TOLD)


def answer_to(
    message: Message, now: Micros
) -> tuple[bytes, str | None, Headers, Expectation | None] | None:
    """Return what every application answers, ready to be sent; None if no answer is expected any
    more."""
    before = message.reply_before
    if message.body[:1] != ASKED or before is None or now >= before:
        return None
    number, turns = map(int, message.body[1:].split(b":"))
    body, expects, within = TOLD + b"%d:0" % number, None, None
    if turns:
        body = ASKED + b"%d:%d" % (number, turns - 1)
        expects = expectation(number + turns, message.source or "")
        within = 20_000
    headers = Headers(
        operation=Operation.REPLY,
        in_reply_to=message.frame.key,
        to=message.source,
        correlation=message.headers.correlation,
        deliver_within=-(-(before - now) // MILLISECOND),
        reply_within=within,
    )
    return body, None, headers, expects


def expectation(number: int, target: str) -> Expectation:
    """Return what to expect of the answer: some questions name a callback, some keep their
    order."""
    return Expectation(
        target=target,
        callback=CALLBACK if number % 2 else "",
        lane=target if number % 3 else "",
    )


def draw_asks(schedule: Schedule) -> list[PlannedQuestion]:
    """Draw the questions of a schedule with a random generator of their own, so that the rest of
    the schedule does not change."""
    random = Random(schedule.seed ^ 0xA5C)
    end = schedule.batches[-1].at
    asks: list[PlannedQuestion] = []
    for number in range(random.choice((0, 0, 2, 5, 9))):
        gathers = bool(schedule.topic_members) and random.random() < 0.3
        target = f"topic:{TOPIC}" if gathers else f"device:{random.choice(schedule.devices)}"
        if not gathers and random.random() < 0.3:
            target = f"service:{SERVICE.name}"
        turns = 0 if gathers else random.choice((0, 0, 1, 3))
        within = random.choice((1, 5, 20, 120)) * 1000
        expects = expectation(number, target)
        if gathers:
            most = random.choice((None, None, 1))
            expects = Expectation(target=target, gather=True, most=most)
        asks.append(
            PlannedQuestion(
                at=random.randint(0, end + 5 * SECOND),
                device=random.choice(schedule.devices),
                body=ASKED + b"%d:%d" % (number, turns),
                headers=Headers(
                    to=None if gathers else target,
                    reply_within=within,
                    deliver_within=within,
                    gather=gathers,
                ),
                topic=TOPIC if gathers else None,
                expects=expects,
            )
        )
    return asks


def judge_talk(
    verdict: RehearsalVerdict, device: str, talk: Talk, *, crashes: int, plain: bool
) -> None:
    """Check that every question ended once and in order, with its own answer or at its deadline."""
    for stray in talk.strays:
        verdict.add("untrue", f"{device} was shown the answer {stray} as something else")
    endings: dict[int, list[QuestionEnding]] = defaultdict(list)
    for ending in talk.endings:
        if ending.outcome != REFUSED or ending.key in talk.made:  # Others are refused, too.
            endings[ending.key].append(ending)
    for key in endings.keys() - talk.made.keys():
        verdict.add("untrue", f"{device} has an answer to a question that it never asked: {key}")
    for key, made in talk.made.items():
        about = f"the question {made.body.decode()} of {device}"
        found = endings[key]
        lives_on = bool(made.expects.callback) or made.life == crashes
        if not found and lives_on:
            verdict.add("lost", f"{about} has no end")
        again = [ending for ending in found[1:] if not (plain and ending.redelivered)]
        if again:
            verdict.add("duplicated", f"{about} ended {len(found)} times")
        for ending in found:
            if ending.outcome not in (TIMEOUT, REFUSED, *_answers(made)):
                verdict.add("untrue", f"{about} was answered with {ending.outcome}")
        if len({ending.outcome for ending in found}) > 1:
            verdict.add("untrue", f"{about} ended in different ways")
    _judge_order(verdict, device, talk)


def _answers(made: Made) -> list[str]:
    number, turns = map(int, made.body[1:].split(b":"))
    if made.expects.gather:
        # All answers are equal; a missing one is right if a smaller number was enough.
        few = [] if made.expects.most is None else [f"short:!{number}:0"]
        return ["", f"!{number}:0", *few]
    return [f"?{number}:{turns - 1}" if turns else f"!{number}:0"]


def _judge_order(verdict: RehearsalVerdict, device: str, talk: Talk) -> None:
    newest: Counter[tuple[str, str, int]] = Counter()
    seen: set[int] = set()
    for ending in talk.endings:
        made = talk.made.get(ending.key)
        if made is None or not made.expects.lane or ending.key in seen:
            continue
        if ending.outcome == REFUSED:
            continue  # Refusals come at once, out of order.
        seen.add(ending.key)
        # Questions without callback do not survive a crash.
        life = 0 if made.expects.callback else made.life
        lane = (made.expects.callback, made.expects.lane, life)
        if ending.key < newest[lane]:
            verdict.add("misordered", f"{device} got an answer before that to an earlier question")
        newest[lane] = max(newest[lane], ending.key)
