"""The incoming half of a device's session: order, duplicates, deadlines.

A message is taken in, waits for its turn, and is finished when the application is done with it.
Everything that has to survive is collected for the next change.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from lasthop.clock import MILLISECOND, Micros
from lasthop.device.change import Change, Held, InboxRow
from lasthop.device.kept import Kept, Showing
from lasthop.device.keys import KeyMemory
from lasthop.device.message import NO_POSITION, TIMEOUT_TYPE, Message, Refusal, refusal
from lasthop.device.requests import Requests
from lasthop.device.terms import Terms
from lasthop.device.turnstile import Turnstile
from lasthop.device.withheld import Withheld, is_withheld
from lasthop.message import DEFAULT_CONTENT_TYPE, Reliability, key_time
from lasthop.wire.hop.accept import preferred
from lasthop.wire.hop.decisions import Decision, Verdict, decode_decision
from lasthop.wire.hop.feeds import (
    FeedEnded,
    FeedTerms,
    Forget,
    NewRank,
    ShowKept,
    TopicWithdrawn,
    Why,
    decode_instructions,
)
from lasthop.wire.hop.frames import (
    ERROR_TYPE,
    MAX_RANGES,
    Ack,
    Credit,
    Headers,
    MessageFrame,
    Operation,
    Ranges,
    Skip,
)
from lasthop.wire.hop.ranges import RangeSet
from lasthop.wire.hop.sequence import Inbound

PAUSE = Credit(0, 0)


class Arrivals:
    """What came from the gateway and is not finished."""

    def __init__(self, terms: Terms, held: Held) -> None:
        state = held.state
        self._terms = terms
        self._default_type = preferred(terms.accept)
        self._inbound: Inbound[Message] = Inbound()
        self._keys = KeyMemory(
            terms.keys, generation=state.generation, old=held.old_keys, young=held.young_keys
        )
        self._open: dict[int, Message] = {}
        """Everything that is not finished, by position."""
        self._known: dict[int, Message] = {}
        """The same by key, as far as its turn has come."""
        self._gapped: dict[int, Message] = {}
        """By number, what arrived beyond a gap."""
        self.turnstile = Turnstile(prefetch=terms.prefetch, offered=state.offered, late=self.drop)
        self._top = 0
        self.base = state.base
        self.held_bytes = 0
        self._paused = False
        self.lapsed: list[Message] = []
        """What was let go as too late since the owner last looked."""
        self.refusals: list[tuple[int, Refusal]] = []
        """What the gateway said against our messages, by their keys, since then."""
        self.requests = Requests(held.requests, gather_bytes=terms.inbox_bytes)
        """Ours, whose answers need not wait for their turn."""
        self._dropped = RangeSet(state.dropped)
        self._skipped = RangeSet(state.skipped)
        self._unstored: list[Message] = []
        self._adopted: list[tuple[int, int]] = []
        self._removed: list[int] = []
        self._news = RangeSet()
        self._detached = False
        self._touched = False
        self._controls: list[Message] = []
        self.kept = Kept(held)
        self.looks: set[int] = set()
        """Keys of the looks whose answer somebody waits for."""
        self.shown: list[tuple[int, list[Message]]] = []
        """What answered looks, by their keys, since the owner last looked."""
        self.retracted: list[tuple[int, bool]] = []
        """What was retracted since then, and whether the application had had it."""
        self.withdrawn: list[str] = []
        """Topics that were withdrawn since then."""
        self.withheld = Withheld()
        self.decided: list[tuple[int, Decision]] = []
        """What was decided about our claims and messages, by their keys, since then."""
        self._restore(held)

    def _restore(self, held: Held) -> None:
        state = held.state
        waiting: list[tuple[int, Message]] = []
        finished = RangeSet()
        at = state.delivered
        numbers = sorted(
            row.number
            for row in held.inbox
            if row.number is not None and row.number < state.received
        )
        for row in _in_order(held.inbox):
            message = self._message(row.frame, row.position, row.number)
            message.default_type = row.default_type or DEFAULT_CONTENT_TYPE
            message.stored = True
            message.redelivered = message.redelivered or row.position < state.offered
            self._hold(message)
            self._top = max(self._top, row.position + 1)
            if row.number is not None and row.number >= state.received:
                waiting.append((row.number, message))
                self._gapped[row.number] = message
                continue
            self._recognise(message)
            message.offered = row.position < state.offered
            if _instructs(message):
                self._controls.append(message)
            elif self.requests.callback_of(message.in_reply_to or 0) is not None:
                message.offered = False
                self.requests.attach(message)
            else:
                self.turnstile.add(message)
        self._hand_over_outcomes()
        for number in numbers:
            if at < number < state.received:
                finished.add(at, number)
            at = number + 1
        if at < state.received:
            finished.add(at, state.received)
        self._inbound.restore(received=state.received, delivered=state.delivered, waiting=waiting)
        for start, stop in finished.ranges():
            self._inbound.deliver(start, stop - start)
        for start, stop in state.skipped:
            self._inbound.skip(start, stop - start)
        for unread in held.kept:
            kept = self._message(unread.frame, NO_POSITION, None)
            kept.default_type = unread.default_type
            if is_withheld(kept):
                self.withheld.restore(kept)
            else:
                self.kept.restore(kept, unread.rank)
        for control in self._controls:
            self._show_again(control)

    @property
    def dirty(self) -> bool:
        """Whether something must be made durable before long."""
        changed = self.kept.dirty or self.requests.dirty or self.withheld.dirty
        return self._touched or changed

    @dirty.setter
    def dirty(self, value: bool) -> None:
        self._touched = value

    @property
    def held(self) -> int:
        """How many messages are not finished."""
        return len(self._open)

    @property
    def received(self) -> int:
        """How many numbers have arrived without a gap."""
        return self._inbound.received

    @property
    def delivered(self) -> int:
        """How many numbers are finished without a gap."""
        return self._inbound.delivered

    @property
    def duplicates(self) -> int:
        """How many numbers came more than once."""
        return self._inbound.duplicates

    @property
    def dropped(self) -> Ranges:
        """What the gateway may not know to be dropped; the newest, as many as a HELLO takes."""
        return self._dropped.ranges()[-MAX_RANGES:]

    @property
    def skipped(self) -> Ranges:
        """What the gateway has closed beyond a gap: acknowledged, so it has to survive."""
        return self._skipped.ranges()

    @property
    def generation(self) -> int:
        """Of the memory of keys."""
        return self._keys.generation

    def has(self, number: int) -> bool:
        """Whether this number has come."""
        return self._inbound.has(number)

    def knows(self, key: int) -> bool:
        """Whether a message with this key is here, or was."""
        return key in self._known or key in self._keys

    def acknowledgement(self) -> Ack:
        """How far the numbers have come."""
        return self._inbound.acknowledgement()

    def room(self) -> Credit:
        """What the gateway may send after a HELLO: what was under way when the last channel ended
        comes again and was promised a place, also if we have asked for a pause meanwhile."""
        terms = self._terms
        # It is counted in numbers: those beyond a gap that are here already need no more room.
        room = terms.inbox_messages - self.held + len(self._gapped)
        messages = min(terms.window.messages, room)
        size = min(terms.window.bytes, terms.inbox_bytes - self.held_bytes)
        return Credit(messages, size) if messages > 0 and size > 0 else PAUSE

    def window(self) -> Credit:
        """What the gateway may have on the way: nothing while the next lot might not fit."""
        terms = self._terms
        messages = terms.inbox_messages - terms.window.messages
        size = terms.inbox_bytes - terms.window.bytes
        if self._paused:
            # Opened again at the half, so that a full inbox does not flutter.
            messages //= 2
            size //= 2
        self._paused = self.held > max(0, messages) or self.held_bytes > max(0, size)
        return PAUSE if self._paused else terms.window

    # What the gateway says.

    def take(self, frame: MessageFrame, now: Micros) -> None:
        """A message arrived."""
        number = frame.seq
        if number is None:
            message = self._message(frame, NO_POSITION, None)
            if message.in_reply_to is not None and self._answered(message, now):
                return
            if self.turnstile.casual < self._terms.window.messages:
                self.turnstile.add(message)
            return
        message = self._message(frame, self.base + number, number)
        if frame.headers is not None and _instructs(message):
            # What cannot be read raises before its number counts as received: it comes again.
            _shown_by(message)
        duplicates = self._inbound.duplicates
        ready = self._inbound.receive(number, message)
        if ready:
            self._hold(message)
            self._arrive(message, now)
            if len(ready) > 1:
                self._move_up(ready[1:], now)
            self.dirty = True
        elif self._inbound.duplicates == duplicates:
            self._hold(message)
            self._gapped[number] = message
            self._top = max(self._top, message.position + 1)
            self._unstored.append(message)
            self.dirty = True

    def skip(self, skip: Skip, now: Micros) -> None:
        """The gateway closed these numbers."""
        # This comes first: if it raises, nothing has changed.
        ready = self._inbound.skip(skip.first, skip.count)
        for number in [n for n in self._gapped if skip.first <= n < skip.first + skip.count]:
            self._end(self._gapped.pop(number))
        self._skipped.add(skip.first, skip.first + skip.count)
        self._skipped.drop_below(self._inbound.received)
        self._move_up(ready, now)

    def close_below(self, count: int, now: Micros) -> None:
        """The gateway will not send what is missing below."""
        if count > self._inbound.received:
            self._move_up(self._inbound.close_below(count), now)

    def told(self, ranges: Ranges) -> None:
        """The gateway has taken note of these dropped numbers."""
        if not self._dropped:
            return
        known = RangeSet(ranges)
        left = RangeSet()
        for start, stop in self._dropped.ranges():
            for low, high in _without(start, stop, known):
                left.add(low, high)
        self._dropped = left
        self.dirty = True

    def start_over(self, now: Micros, *, related: bool) -> None:
        """A new epoch: numbers count from 0; what is not finished keeps its place before them.

        What waits behind a gap comes again, in its place, from a gateway that knows the old
        numbering (`related`), unless it was content to hear that we have it; any other gateway
        knows nothing of it, and nobody will fill the gap.
        """
        self.base = max(self.base + self._inbound.received, self._top)
        if not related:
            self.withheld.clear()
        for number in sorted(self._gapped):
            message = self._gapped[number]
            if is_withheld(message) and related:
                # The gateway may count on it: it has been acknowledged.
                self._end(message)
                self._withhold(message)
            elif (
                is_withheld(message)
                or _instructs(message)
                or (related and message.reliability is not Reliability.AT_LEAST_ONCE_DELIVERY)
            ):
                self._end(message)
            elif message.headers.keep:
                self._end(message)
                self.kept.keep(self._message(message.frame, NO_POSITION, None))
            else:
                self._recognise(message)
                if message.in_reply_to is None or not self._answered(message, now):
                    self.turnstile.add(message)
        self._gapped.clear()
        for message in self._open.values():
            message.number = None
        self._inbound = Inbound()
        self._adopted.clear()
        self._dropped = RangeSet()
        self._skipped = RangeSet()
        self._news = RangeSet()
        self._detached = True
        self.dirty = True

    # What the application does.

    def finish(self, message: Message) -> None:
        """The application is done with it; doing it twice changes nothing."""
        if message.finished:
            return
        if message.frame.key is not None and message.position != NO_POSITION:
            self._keys.add(message.frame.key)
        if message.request is not None:
            self.requests.settle(message.request.key)
        self._end(message)
        self._shown_to_the_end(message, had=True)

    def drop(self, message: Message) -> None:
        """Too late: the application will not have it, and the gateway is told so."""
        if message.finished:
            return
        self.lapsed.append(message)
        if message.number is not None:
            self._dropped.add(message.number, message.number + 1)
            self._news.add(message.number, message.number + 1)
        self._end(message)
        self._shown_to_the_end(message, had=False)

    def collect(self, change: Change) -> None:
        """Put into `change` what has to survive, and offer what may be offered with it."""
        self.turnstile.offer()
        change.detached, self._detached = self._detached, False
        for message in self._unstored:
            if not message.finished and not message.stored:
                message.stored = True
                change.stored.append(_row(message))
        self._unstored = []
        change.adopted, self._adopted = self._adopted, []
        change.removed, self._removed = self._removed, []
        change.keys = self._keys.take_added()
        self.kept.collect(change)
        change.requested = self.requests.take_requested()
        change.settled = self.requests.take_settled()
        self.withheld.collect(change)
        self._skipped.drop_below(self._inbound.received)
        if len(self._dropped.ranges()) > MAX_RANGES:
            self._dropped = RangeSet(self.dropped)
        self.dirty = False

    def news(self) -> Ranges:
        """What was dropped since the last change."""
        news, self._news = self._news.ranges(), RangeSet()
        return news

    # Within.

    def _message(self, frame: MessageFrame, position: int, number: int | None) -> Message:
        message = Message(frame, self._default_type, position, number)
        headers = frame.headers
        if headers is not None:
            message.redelivered = headers.redelivered
            if headers.deliver_within is not None and frame.key is not None:
                # The same arithmetic as the sender's, so that both mean the same moment.
                message.deadline = key_time(frame.key) + headers.deliver_within * MILLISECOND
        return message

    def _move_up(self, messages: list[Message], now: Micros) -> None:
        """The gap before these is gone."""
        for message in messages:
            assert message.number is not None
            del self._gapped[message.number]
            self._arrive(message, now)
        self.dirty = True

    def _arrive(self, message: Message, now: Micros) -> None:
        """Its number is due: it is known, too late, or new."""
        key = message.frame.key
        if _instructs(message):
            self._follow(message, now)
            return
        if key is not None:
            keep = message.frame.headers is not None and message.frame.headers.keep
            if key in self._keys:
                if keep:
                    self.kept.had(key)
                self._end(message)
                return
            if key in self.kept or key in self.withheld:
                self._end(message)
                return
            known = self._known.get(key)
            if known is not None:
                self._adopt(known, message)
                return
            self._known[key] = message
        if message.frame.headers is not None:
            if is_withheld(message):
                self._end(message)
                self._withhold(message)
                return
            if message.deadline is not None and now >= message.deadline:
                self.drop(message)
                return
            if message.frame.headers.in_reply_to is not None and self._answered(message, now):
                return
            if message.frame.headers.keep:
                self._end(message)
                self.kept.keep(self._message(message.frame, NO_POSITION, None))
                return
        if not message.stored:
            self._unstored.append(message)
        self.turnstile.add(message)

    # Groups.

    def _withhold(self, message: Message) -> None:
        if message.key not in self.withheld:
            self.withheld.keep(self._message(message.frame, NO_POSITION, None))

    def _decide(self, control: Message) -> None:
        """Do as was decided; the number is finished when the application has had what it shows."""
        decision, key = decode_decision(control.body), control.in_reply_to or 0
        if decision.verdict is Verdict.RELEASE:
            self._release(control, key)
            return
        if decision.verdict is Verdict.ABORT:
            self.withheld.take(key)
        elif decision.verdict is Verdict.RETRACT:
            self._retract(key)
        else:
            self.decided.append((key, decision))
        self._end(control)

    def _release(self, control: Message, key: int) -> None:
        """Show what was withheld: its place among messages is here."""
        showing = Showing(control, ())
        message = self.withheld.take(key)
        if message is not None:
            self.turnstile.add(self.move_in(message, in_time=True))
            showing.left.add(key)
        else:
            self._look_for(key, showing)
        self.kept.show(showing)
        if not showing.left:
            self._showed(showing)
        elif not control.stored:
            self._unstored.append(control)

    def _retract(self, key: int) -> None:
        """Nobody here shall act on it. What was not handed over yet never is."""
        message = self._known.get(key)
        if message is not None and not message.offered:
            if message.number is not None:
                self._dropped.add(message.number, message.number + 1)
                self._news.add(message.number, message.number + 1)
            self._end(message)
            self.retracted.append((key, False))
        elif message is not None or key in self._keys:
            self.retracted.append((key, True))

    # Ranked topics.

    def _follow(self, control: Message, now: Micros) -> None:
        """Do as the gateway says; the number is finished when the application has had what it
        shows."""
        if control.headers.operation == Operation.DECISION:
            self._decide(control)
            return
        kept, topic = self.kept, control.topic or ""
        keys: list[int] = []
        for instruction in decode_instructions(control.body):
            match instruction:
                case ShowKept(shown):
                    keys += shown
                case Forget(why, forgotten):
                    self._forget(why, forgotten)
                case NewRank(key, rank):
                    kept.rerank(key, rank)
                case FeedTerms(most):
                    kept.set_max(topic, most)
                case TopicWithdrawn():
                    self.withdrawn.append(topic)
                case FeedEnded():
                    kept.end(topic)
        self._show(control, keys, now)

    def _forget(self, why: int, keys: tuple[int, ...]) -> None:
        for key in keys:
            there = self.kept.take(key) is not None
            had = not there and (key in self._keys or key in self._known)
            if why == Why.RANK and (there or had):
                self.retracted.append((key, had))

    def _show(self, control: Message, keys: list[int], now: Micros) -> None:
        look = control.in_reply_to
        lapsed = self.kept.expire(now)
        self.lapsed += lapsed
        showing = Showing(control, ())
        if look is not None and look not in self.looks:
            # Nobody waits for it any more.
            there = [key for key in keys if key in self.kept]
            showing.partly = bool(keys)
            self.kept.still_unread(there)
            keys = [key for key in keys if key not in there]
        messages: list[Message] = []
        for key in keys:
            self._show_one(key, showing, messages)
        asked = look is not None and look in self.looks
        for message in messages:
            if asked:
                self.turnstile.hand(message)
            else:
                self.turnstile.add(message)
        if look is not None and asked:
            self.looks.discard(look)
            self.shown.append((look, messages))
        self.kept.show(showing)
        if showing.left:
            if not control.stored:
                self._unstored.append(control)
        else:
            self._showed(showing)

    def _show_one(self, key: int, showing: Showing, messages: list[Message]) -> None:
        kept = self.kept.take(key)
        if kept is not None:
            messages.append(self.move_in(kept))
            showing.left.add(key)
        else:
            self._look_for(key, showing)

    def _look_for(self, key: int, showing: Showing) -> None:
        """It is to be shown, and is not where it was kept."""
        if key in self._known:
            showing.left.add(key)  # It is being shown already.
        elif key in self._keys:
            showing.had.append(key)
        else:
            showing.partly = True

    def _show_again(self, control: Message) -> None:
        """After a restart: what of it is not done yet?"""
        showing = Showing(control, ())
        for key in _shown_by(control):
            self._look_for(key, showing)
        self.kept.show(showing)
        if not showing.left:
            self._showed(showing)

    def _shown_to_the_end(self, message: Message, *, had: bool) -> None:
        key = message.frame.key
        if key is None:
            return
        if not had and message.number is None and message.position != NO_POSITION:
            self.kept.lapsed(key)
        for showing in self.kept.ended(key, had=had):
            self._showed(showing)

    def _showed(self, showing: Showing) -> None:
        control = showing.control
        if control.finished:
            return
        if showing.partly:
            self.kept.report_of(showing)
            if control.number is not None:
                self._dropped.add(control.number, control.number + 1)
                self._news.add(control.number, control.number + 1)
        self._end(control)

    def move_in(self, kept: Message, *, in_time: bool = False) -> Message:
        """A kept message is shown: it takes its place in the inbox. When it was read `in_time`, and
        the gateway hears so, the application gets it, however long a crash takes."""
        frame = kept.frame
        if in_time and frame.headers is not None and frame.headers.deliver_within is not None:
            headers = replace(frame.headers, deliver_within=None)
            frame = replace(frame, headers=headers)
        message = self._place(frame)
        message.default_type = kept.default_type
        self._recognise(message)
        return message

    def _place(self, frame: MessageFrame) -> Message:
        """Give something that came under no number a place in the inbox, behind all others."""
        place = max(self._top, self.base + self._inbound.received)
        self._top = place + 1
        self.base = place + 1 - self._inbound.received
        message = self._message(frame, place, None)
        self._hold(message)
        self._unstored.append(message)
        self.dirty = True
        return message

    # Answers.

    def expire(self, now: Micros) -> None:
        """Let go what was not read in time, and end the requests that were not answered in time."""
        self.lapsed += self.kept.expire(now)
        for row in self.requests.expire(now):
            headers = Headers(content_type=TIMEOUT_TYPE, in_reply_to=row.key, answer=True)
            self.requests.attach(self._place(MessageFrame(None, None, None, headers)))
        self._hand_over_outcomes()

    def next_expiry(self) -> Micros | None:
        """When `expire` has something to do."""
        due = [self.kept.next_expiry(), self.requests.next_deadline()]
        return min((time for time in due if time is not None), default=None)

    def refuse(self, key: int, against: Refusal, *, asked: bool) -> None:
        """A message of ours cannot leave: if it `asked` for an answer, that was its outcome, unless
        it has had another."""
        if asked and not self.requests.waits(key):
            return
        if self.requests.callback_of(key) is None:
            self.requests.give_up(key)
            self.refusals.append((key, against))
            return
        headers = Headers(content_type=ERROR_TYPE, in_reply_to=key)
        frame = MessageFrame(None, None, None, headers, msgspec.json.encode(against))
        self._fail(key, self._place(frame))

    def _answered(self, message: Message, now: Micros) -> bool:
        """Whether it answers something of ours, and so is no message like others."""
        request = message.in_reply_to or 0
        against = refusal(message)
        by_name = self.requests.callback_of(request) is not None
        if against is not None and not by_name:
            self.requests.give_up(request)
            self.refusals.append((request, against))
            self.finish(message)
        elif against is not None:
            self._fail(request, message)
        elif self.requests.answered(request, message, now):
            if by_name:
                self._keep_outcome(message)
            else:
                self.finish(message)
        elif message.headers.answer:
            self.drop(message)
        else:
            return False
        self._hand_over_outcomes()
        return True

    def _fail(self, key: int, message: Message) -> None:
        if self.requests.fail(key, message):
            self._keep_outcome(message)
        else:
            self.finish(message)
        self._hand_over_outcomes()

    def _keep_outcome(self, message: Message) -> None:
        if not message.stored and message.position != NO_POSITION:
            self._unstored.append(message)

    def _hand_over_outcomes(self) -> None:
        """What callbacks wait for, as far as it is their turn, is for the application."""
        for message in self.requests.take_due():
            self.turnstile.add(message)
            self.dirty = True

    def _adopt(self, known: Message, again: Message) -> None:
        """It waits in the inbox already: the new number is finished when the message is. Of an
        older one the gateway wants to know no more: it has taken that back, to give it anew."""
        assert again.number is not None
        known.number, again.number = again.number, known.number
        if known.stored:
            self._adopted.append((known.position, known.number))
        self._end(again)

    def _hold(self, message: Message) -> None:
        self._open[message.position] = message
        self.held_bytes += len(message.frame.body)

    def _recognise(self, message: Message) -> None:
        if message.frame.key is not None:
            self._known[message.frame.key] = message

    def _end(self, message: Message) -> None:
        """Whatever became of it, its number is closed and nothing of it is kept."""
        message.finished = True
        if message.position == NO_POSITION:
            return
        del self._open[message.position]
        self.held_bytes -= len(message.frame.body)
        key = message.frame.key
        if key is not None and self._known.get(key) is message:
            del self._known[key]
        self.turnstile.finished(message)
        if message.stored:
            self._removed.append(message.position)
        number = message.number
        if number is not None and number < self._inbound.received:
            self._inbound.deliver(number)
        self.dirty = True


def _in_order(rows: list[InboxRow]) -> list[InboxRow]:
    """Rows by place, but those with a number by number: what waited behind a gap may have its place
    from before something that was shown took one."""
    numbered = iter(sorted((r for r in rows if r.number is not None), key=lambda r: r.number or 0))
    return [row if row.number is None else next(numbered) for row in rows]


_WORDS = frozenset({Operation.FEED, Operation.DECISION})


def _instructs(message: Message) -> bool:
    """Whether it is the gateway's word about a ranked topic, or a group's decision."""
    headers = message.frame.headers
    return headers is not None and headers.operation in _WORDS


def _shown_by(control: Message) -> list[int]:
    """What the gateway's word lets the application see."""
    if control.headers.operation == Operation.DECISION:
        decode_decision(control.body)
        return [control.in_reply_to or 0]
    said = decode_instructions(control.body)
    return [key for one in said if isinstance(one, ShowKept) for key in one.keys]


def _without(start: int, stop: int, known: RangeSet) -> list[tuple[int, int]]:
    """The numbers from `start` to below `stop` that are not known."""
    left = []
    for low, high in known.ranges():
        if start < low < stop:
            left.append((start, low))
        if low < stop:
            start = max(start, high)
    if start < stop:
        left.append((start, stop))
    return left


def _row(message: Message) -> InboxRow:
    plain = message.default_type == DEFAULT_CONTENT_TYPE
    return InboxRow(
        message.position, message.number, message.frame, None if plain else message.default_type
    )
