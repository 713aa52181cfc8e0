"""Ranked topics as a part of the session: the gateway's instructions about them, and the user's
reads."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.device.change import Change, InboxContents
from lasthop.device.kept import KeptMessages
from lasthop.device.message import NO_POSITION, Message
from lasthop.device.part import DevicePart
from lasthop.device.ranked.unread import UnreadMessages
from lasthop.device.session_core import SessionCore
from lasthop.device.session_events import Looked, Retracted, SessionEvent, Withdrawn
from lasthop.device.showings import Showing
from lasthop.wire.hop.feeds import (
    FeedEnded,
    FeedTerms,
    Forget,
    NewRank,
    Report,
    ShowKept,
    TopicWithdrawn,
    Why,
    decode_instructions,
    encode_look,
    encode_report,
)
from lasthop.wire.hop.frames import Feature, Headers, Hello, Operation, Welcome


class RankedPart(DevicePart):
    """The unread messages of ranked topics, and the questions to the gateway that wait for an
    answer."""

    word = Operation.FEED

    def __init__(self, core: SessionCore, held: InboxContents) -> None:
        self._core = core
        self._arrivals = core.arrivals
        kept = KeptMessages(core.arrivals.kept_keys, core.mark)
        self._unread = UnreadMessages(kept, held.feeds, core.mark)
        self._looks: set[int] = set()
        """The keys of the looks whose answer a caller waits for."""
        self._told: list[Looked | Retracted | Withdrawn] = []

    # The application.

    def look(self, topic: str, wanted: int | None, now: Micros) -> int:
        """Ask the gateway for the best messages of a topic; return the key that the `Looked` event
        with the answer will have."""
        look = self._unread.look(topic, wanted, now)
        headers = Headers(operation=Operation.LOOK)
        key = self._core.queue(now, topic=topic, headers=headers, body=encode_look(look))
        self._looks.add(key)
        return key

    def read(self, topic: str, wanted: int | None, now: Micros) -> list[Message]:
        """Return the best messages of a topic on this device; the application calls `finished` for
        each."""
        read = self._unread.read(topic, wanted, now)
        messages = [self._arrivals.move_in(kept, in_time=True) for kept in read]
        for message in messages:
            self._arrivals.handover.hand(message)
        return messages

    def read_instead(
        self, look: int, topic: str, wanted: int | None, now: Micros
    ) -> list[Message] | None:
        """Return the best messages on this device, because the gateway's answer to `look` takes too
        long; None if the answer has come after all."""
        if look not in self._looks:
            return None
        self._looks.discard(look)
        return self.read(topic, wanted, now)

    def stop_looking(self, look: int) -> None:
        """Note that the caller of `look` no longer waits for the answer."""
        self._looks.discard(look)

    def unread(self, topic: str) -> int:
        """Return the number of unread messages of a ranked topic on this device."""
        return self._unread.count(topic)

    def topics(self) -> list[str]:
        """Return the ranked topics that are known on this device."""
        return self._unread.topics()

    # What comes in.

    def claims(self, message: Message, headers: Headers, now: Micros) -> bool:
        if not headers.keep or message.number is None:
            return False
        self._arrivals.close(message)
        self._unread.keep(self._arrivals.apart(message.frame))
        return True

    def came_again(self, message: Message) -> None:
        if message.headers.keep:
            self._unread.had([message.key])

    def ended(self, message: Message, *, had: bool) -> None:
        key = message.frame.key
        shown = message.number is None and message.position != NO_POSITION
        if not had and shown and key is not None:
            self._unread.lapsed(key)

    def shown_by(self, control: Message) -> list[int]:
        said = decode_instructions(control.body)
        return [key for one in said if isinstance(one, ShowKept) for key in one.keys]

    def follow(self, control: Message, now: Micros) -> None:
        topic = control.topic or ""
        keys: list[int] = []
        for instruction in decode_instructions(control.body):
            match instruction:
                case ShowKept(shown):
                    keys += shown
                case Forget(why, forgotten):
                    self._forget(why, forgotten)
                case NewRank(key, rank):
                    self._unread.rerank(key, rank)
                case FeedTerms(most):
                    self._unread.set_max(topic, most)
                case TopicWithdrawn():
                    self._told.append(Withdrawn(topic))
                case FeedEnded():
                    self._unread.end(topic)
        self._show(control, keys, now)

    def _forget(self, why: int, keys: tuple[int, ...]) -> None:
        for key in keys:
            there = self._unread.take(key) is not None
            had = not there and self._arrivals.knows(key)
            if why == Why.RANK and (there or had):
                self._told.append(Retracted(key, had))

    def _show(self, control: Message, keys: list[int], now: Micros) -> None:
        look = control.in_reply_to
        self.expire(now)
        showing = Showing(control, self.partly_shown)
        if look is not None and look not in self._looks:
            # The reader no longer waits: leave the messages unread, and tell the gateway.
            there = [key for key in keys if key in self._unread]
            showing.partly = bool(keys)
            self._unread.still_unread(there)
            keys = [key for key in keys if key not in there]
        messages: list[Message] = []
        for key in keys:
            kept = self._unread.take(key)
            if kept is not None:
                messages.append(self._arrivals.move_in(kept, lane=control.lane))
                showing.left.add(key)
            else:
                self._arrivals.look_for(key, showing)
        handover = self._arrivals.handover
        asked = look is not None and look in self._looks
        for message in messages:
            if asked:
                handover.hand(message)
            else:
                handover.add(message)
        if look is not None and asked:
            self._looks.discard(look)
            self._told.append(Looked(look, messages))
        self._arrivals.begin_showing(showing)

    def partly_shown(self, had: list[int]) -> None:
        self._unread.had(had)

    # What the gateway hears.

    def welcomed(self, hello: Hello, welcome: Welcome, now: Micros) -> None:
        # A gateway that did not resume the session may not know what is kept here.
        if not welcome.resumed and hello.epoch is not None and welcome.features & Feature.FEEDS:
            self._report(None, Report(held=self._unread.inventory()), now)

    def before_change(self) -> None:
        for topic, report in self._unread.reports():
            self._report(topic, report, self._core.last_time)

    def _report(self, topic: str | None, report: Report, now: Micros) -> None:
        headers = Headers(operation=Operation.REPORT)
        self._core.say(now, topic=topic, headers=headers, body=encode_report(report))

    # Time, and what has to survive.

    def expire(self, now: Micros) -> None:
        self._arrivals.lapsed += self._unread.expire(now)

    def next_expiry(self) -> Micros | None:
        return self._unread.next_expiry()

    def collect(self, change: Change) -> None:
        self._unread.collect(change)

    def keeps_again(self, message: Message, rank: float) -> bool:
        self._unread.restore(message, rank)
        return True

    def session_events(self) -> list[SessionEvent]:
        told, self._told = self._told, []
        return [*told]
