"""The surrogate of a fault schedule: an app whose messages pass a surrogate, a worker that keeps
dying, and a check of the outcome against what the surrogate remembers.

It is drawn with a random generator of its own, so that the rest of a schedule does not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from random import Random
from typing import TypeVar
from zlib import crc32

import msgspec

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.effects import Consult
from lasthop.core.gateway import Gateway
from lasthop.core.lifecycle import State
from lasthop.core.surrogates.waiting import Failing, SurrogateTerms
from lasthop.events import Event, Kind
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.schedule import PlannedMessage
from lasthop.simulation.verdict import ArrivedMessage, Fate, RehearsalVerdict as Judgement
from lasthop.store.base import Store
from lasthop.store.commit import DeliveryRow
from lasthop.surrogate import Answer, Decision, Drop, Mail, Relay, Surrogate, Way
from lasthop.surrogate.mail import Verdict
from lasthop.surrogate.surrogate import SurrogateRunner

SEEN_FROM = 1_000_000
"""The amount that is added to the number in a message which the surrogate changed on its way from a
device."""
SEEN_TO = 2_000_000
"""The amount that is added to the number in a message which the surrogate changed on its way to a
device."""
EXTRA = 4_000_000
"""Numbers from here on belong to messages that the surrogate sent itself."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Verdict).decode
_decode_event = msgspec.json.Decoder(Event).decode


Numbered = TypeVar("Numbered", ArrivedMessage, Fate)


class SurrogateChoice(IntEnum):
    """What the surrogate does with a message."""

    RELAY = 0
    CHANGE = 1
    SEND = 2
    ANSWER = 3
    DROP = 4


CHOICES = (
    *[SurrogateChoice.RELAY] * 4,
    *[SurrogateChoice.CHANGE] * 3,
    *[SurrogateChoice.SEND] * 2,
    SurrogateChoice.ANSWER,
    SurrogateChoice.DROP,
)


def base(number: int) -> int:
    """Return the number of a message before any surrogate changed it."""
    return number % SEEN_FROM


def choice(number: int, way: Way, device: str, source: str) -> SurrogateChoice:
    """Return what the surrogate does with a message: always the same for the same arguments."""
    chosen = CHOICES[crc32(f"{base(number)}/{way}/{device}".encode()) % len(CHOICES)]
    if chosen is SurrogateChoice.ANSWER and (
        way is Way.FROM_DEVICE or not source.startswith("publisher:")
    ):
        return SurrogateChoice.DROP
    return chosen


def extra(number: int, way: Way, device: str) -> int:
    """Return the number of the message that the surrogate sends because of this one."""
    place = int(device.rpartition("-")[2])
    return EXTRA + base(number) * 64 + place * 2 + way


def as_sent(numbered: Iterable[Numbered]) -> list[Numbered]:
    """Return messages of others under their original numbers, without those that the surrogate sent
    itself."""
    return [
        replace(one, number=base(one.number)) if one.number >= SEEN_FROM else one
        for one in numbered
        if one.number < EXTRA
    ]


def kept_by_surrogate(
    trouble: Trouble, sent: set[int], plans: Mapping[int, PlannedMessage]
) -> set[int]:
    """Return which of the messages that devices sent must be in the store."""
    if trouble.terms.failing is Failing.REFUSE:
        return set()
    return {
        number
        for number in sent
        if choice(number, Way.FROM_DEVICE, _name(plans[number].source), "")
        is not SurrogateChoice.DROP
    }


def may_be_stopped(trouble: Trouble, number: int, devices: Iterable[str]) -> bool:
    """Return whether the surrogate may now stop a message that it let pass before the gateway went
    back to a backup: it fails at random, and a failure is treated differently."""
    if trouble.terms.failing is Failing.REFUSE:
        return True
    stops = (SurrogateChoice.ANSWER, SurrogateChoice.DROP)
    return any(choice(number, way, name, "publisher:") in stops for name in devices for way in Way)


def _name(source: str) -> str:
    return source.partition(":")[2]


class Scribe(Surrogate):
    """A surrogate that notes every message it sees with its turn, and a checksum over all in
    order."""

    def to_device(self, mail: Mail) -> Decision | None:
        return self._act(mail)

    def from_device(self, mail: Mail) -> Decision | None:
        return self._act(mail)

    def _act(self, mail: Mail) -> Decision | None:
        number = int(mail.body.rstrip(b"."))
        name = f"{mail.way}/{mail.key:x}/{mail.device}"
        turn = self.state["turn"] = self.state.get("turn", 0) + 1
        self.state["sum"] = crc32(name.encode(), self.state.get("sum", 0))
        # If a message came twice, the second entry would replace the first, and its turn would be
        # missing.
        self.state[f"seen/{name}"] = [turn, number, mail.source]
        chosen = choice(number, mail.way, mail.device, mail.source)
        if chosen is SurrogateChoice.CHANGE:
            mark = SEEN_TO if mail.way is Way.TO_DEVICE else SEEN_FROM
            return Relay(body=f"{number + mark}".encode().ljust(len(mail.body) + 1, b"."))
        if chosen is SurrogateChoice.SEND:
            self.send(f"device:{mail.device}", f"{extra(number, mail.way, mail.device)}")
        elif chosen is SurrogateChoice.ANSWER:
            return Answer(f"answer to {number}")
        elif chosen is SurrogateChoice.DROP:
            return Drop("nobody needs it")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """How often the worker of a surrogate dies, fails or is slow."""

    terms: SurrogateTerms
    dies: float
    """The probability that the worker dies at an input, before or after it has worked on it."""
    fails: float
    """The probability that the surrogate raises an exception."""
    slow: Micros
    """The longest time that an input takes, in microseconds."""


def draw_trouble(seed: int) -> Trouble | None:
    """Draw the worker's trouble: every third schedule has a surrogate, but none that has groups."""
    if seed % 3 != 2:
        return None
    random = Random(seed ^ 0x50BB)
    failing = random.choice((Failing.RELAY, Failing.RELAY, Failing.REFUSE))
    return Trouble(
        terms=SurrogateTerms(attempts=random.choice((1, 2, 3, 3)), failing=failing),
        dies=random.choice((0.0, 0.02, 0.1, 0.3)),
        fails=random.choice((0.0, 0.0, 0.05, 0.2)),
        slow=random.choice((0, 5 * MILLISECOND, 200 * MILLISECOND)),
    )


class RehearsedWorker:
    """The worker of one app: the product's own `SurrogateRunner` on virtual time, which dies."""

    def __init__(self, kernel: Kernel, random: Random, trouble: Trouble) -> None:
        self._kernel = kernel
        self._random = random
        self._trouble = trouble
        self.turn: Callable[[], None] = lambda: None
        """Called after a verdict, so that the gateway acts on it."""
        self._runner: SurrogateRunner | None = None
        self._gateway: Gateway | None = None
        self.crashes = 0

    def consult(self, gateway: Gateway, consult: Consult, alive: Callable[[], bool]) -> None:
        """Begin to work on the messages; a gateway that has died meanwhile gets no verdict."""
        if gateway is not self._gateway:
            self._gateway, self._runner = gateway, None  # The worker died with the gateway.
        wait = 0 if self._runner is not None else self._random.randint(0, SECOND // 10)
        self._next(gateway, consult, 0, alive, wait)

    def _next(
        self, gateway: Gateway, consult: Consult, at: int, alive: Callable[[], bool], wait: Micros
    ) -> None:
        delay = wait + self._random.randint(0, self._trouble.slow)
        self._kernel.after(delay, lambda: self._work(gateway, consult, at, alive))

    def _work(self, gateway: Gateway, consult: Consult, at: int, alive: Callable[[], bool]) -> None:
        if not alive():
            return
        app, mail = consult.app, consult.mails[at]
        now = self._kernel.now()
        if self._runner is None:
            post = gateway.surrogates.post(app)
            assert post is not None
            self._runner = SurrogateRunner(Scribe, post.state, limit=post.terms.state)
        chance = self._random.random()
        if chance < self._trouble.fails:
            gateway.surrogates.failed(app, mail.number, "OSError at scribe.py:1", now)
            self.turn()
            return
        verdict = _decode(_encode(self._runner.handle(mail)))
        if self._random.random() < self._trouble.dies:
            # The work is done but was not reported.
            self.crashes += 1
            self._runner = None
            gateway.surrogates.failed(app, mail.number, "the worker died", now)
            self.turn()
            return
        refused = gateway.surrogates.consulted(app, mail.number, verdict, now)
        if refused is not None:
            self._runner = None
        elif at + 1 < len(consult.mails):
            self._next(gateway, consult, at + 1, alive, 0)
        self.turn()


class Seen(msgspec.Struct):
    """One input that took effect, as the surrogate remembers it."""

    turn: int
    number: int
    source: str
    way: Way
    key: int
    device: str


def judge_surrogate(
    judgement: Judgement,
    store: Store,
    entries: dict[str, bytes],
    fates: list[Fate],
    arrivals: dict[str, list[ArrivedMessage]],
    *,
    trouble: Trouble,
    plain: Collection[str],
    undone: bool,
) -> None:
    """Check the outcomes of messages against what the surrogate remembers. `undone`: the gateway
    went back to a backup, so devices know more than the gateway does."""
    seen = _seen(judgement, entries)
    told = _told(store)
    rows = {(row.message, row.device): row for row in store.all_deliveries()}
    _judge_sends(judgement, seen, fates)
    by_input = {(s.key, s.device): s for s in seen if s.way is Way.TO_DEVICE}
    for fate in fates:
        if fate.number < EXTRA:
            spoken = told.get((fate.key, fate.device), [])
            _judge_fate(judgement, by_input.get((fate.key, fate.device)), fate, spoken, trouble)
    _judge_answers(judgement, store, by_input.values(), fates, rows.values())
    if undone:
        return
    for fate in fates:
        if fate.number >= EXTRA:
            had = [a for a in arrivals[fate.device] if a.key == fate.key]
            _judge_extra(judgement, fate, had, plain=fate.device in plain)
    for device, had in arrivals.items():
        for arrival in had:
            known = by_input.get((arrival.key, device))
            chosen = None
            if known is not None:
                chosen = choice(known.number, Way.TO_DEVICE, device, known.source)
            marked = arrival.number >= SEEN_TO
            if arrival.number < EXTRA and marked != (chosen is SurrogateChoice.CHANGE):
                judgement.add("untrue", f"{device} had {arrival.number}, which is not as it left")


def _seen(judgement: Judgement, entries: dict[str, bytes]) -> list[Seen]:
    """Return the inputs in the surrogate's state, after checking that turns and checksum match
    them."""
    values = {name[1:]: msgspec.msgpack.decode(value) for name, value in entries.items()}
    seen = []
    for name, value in values.items():
        if name.startswith("seen/"):
            way, key, device = name.removeprefix("seen/").split("/")
            turn, number, source = value
            seen.append(Seen(turn, number, source, Way(int(way)), int(key, 16), device))
    seen.sort(key=lambda one: one.turn)
    if [one.turn for one in seen] != list(range(1, values.get("turn", 0) + 1)):
        judgement.add("duplicated", "an input counted twice, or was forgotten")
    total = 0
    for one in seen:
        total = crc32(f"{one.way}/{one.key:x}/{one.device}".encode(), total)
    if total != values.get("sum", 0):
        judgement.add("untrue", "the state is not what the inputs make of it")
    return seen


def _told(store: Store) -> dict[tuple[int, str], list[str]]:
    """Return what the log says that surrogates did, by message and device."""
    told: dict[tuple[int, str], list[str]] = {}
    for page in store.events(0, 1 << 40):
        for line in page.lines.splitlines():
            if Kind.CONSULTED.encode() in line:
                event = _decode_event(line)
                if event.kind == Kind.CONSULTED:
                    told.setdefault((event.msg, event.dev), []).append(event.reason)
    return told


def _judge_sends(judgement: Judgement, seen: Iterable[Seen], fates: list[Fate]) -> None:
    """Check that every input that counted has sent its message once."""
    expected = Counter(
        extra(one.number, one.way, one.device)
        for one in seen
        if choice(one.number, one.way, one.device, one.source) is SurrogateChoice.SEND
    )
    found = Counter(fate.number for fate in fates if fate.number >= EXTRA)
    for number in (expected - found).elements():
        judgement.add("lost", f"what the surrogate sent as {number} is not in the store")
    for number in (found - expected).elements():
        judgement.add("duplicated", f"what the surrogate sent as {number} is there too often")


def _judge_extra(
    judgement: Judgement, fate: Fate, had: list[ArrivedMessage], *, plain: bool
) -> None:
    """Check that a message which the surrogate sent was shown once."""
    about = f"what the surrogate sent as {fate.number} to {fate.device}"
    if fate.state is State.DELIVERED and not had:
        judgement.add("lost", f"{about} was never shown")
    if len(had) > 1 and not plain:
        judgement.add("duplicated", f"{about} was shown {len(had)} times")


def _judge_fate(
    judgement: Judgement, seen: Seen | None, fate: Fate, spoken: list[str], trouble: Trouble
) -> None:
    """Check that no message bypassed the surrogate, and that a message it stopped was not shown."""
    about = f"message {fate.number} for {fate.device} ({fate.state.name})"
    shown = fate.state in (State.DELIVERED, State.SENT, State.TIMED_OUT)
    if seen is None:
        gave_up = any("since its surrogate failed" in reason for reason in spoken)
        if shown and not gave_up:
            judgement.add("untrue", f"{about} passed its surrogate by")
        if shown and trouble.terms.failing is Failing.REFUSE:
            judgement.add("untrue", f"{about} was to be refused")
        return
    chosen = choice(seen.number, Way.TO_DEVICE, fate.device, seen.source)
    stopped = chosen in (SurrogateChoice.ANSWER, SurrogateChoice.DROP)
    if stopped and shown:
        judgement.add("untrue", f"{about} went on, though its surrogate stopped it")
    if not stopped and fate.state is State.SUPPRESSED:
        judgement.add("lost", f"{about} was stopped, and not by its surrogate")


def _judge_answers(
    judgement: Judgement,
    store: Store,
    seen: Iterable[Seen],
    fates: list[Fate],
    rows: Iterable[DeliveryRow],
) -> None:
    """Check that every message which the surrogate answered has the right number of answers."""
    state_of = {(fate.key, fate.device): fate.state for fate in fates}
    replies = Counter[int]()
    reply_of: dict[int, list[int]] = {}
    for row in rows:
        if row.reply:
            reply_of.setdefault(row.message, []).append(row.reply)
    for one in seen:
        if choice(one.number, one.way, one.device, one.source) is not SurrogateChoice.ANSWER:
            continue
        if state_of.get((one.key, one.device)) is State.SUPPRESSED:
            replies[one.key] += 1
    for key, count in replies.items():
        found = [m.body for m in store.messages(reply_of.get(key, [])).values()]
        if len(found) != count or any(not body.startswith(b"answer to ") for body in found):
            judgement.add("lost", f"message {key:x} has {len(found)} answers of {count}")
