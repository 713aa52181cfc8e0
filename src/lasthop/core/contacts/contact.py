"""Devices that connect and disconnect: the handshake, their acknowledgements, and the loss of a
channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lasthop.clock import SECOND, Micros
from lasthop.core.contacts.channel_state import AWAY, ChannelState
from lasthop.core.contacts.lane_handshake import begin_lanes, lanes_agree, lanes_fit
from lasthop.core.contacts.probing import Probes
from lasthop.core.contacts.retransmission import Retransmission
from lasthop.core.contacts.token_expiry import TokenExpiries
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.dispatch import Dispatcher
from lasthop.core.effects import CloseChannel, Send
from lasthop.core.lane import Lane
from lasthop.core.lifecycle import DELIVERED, SENDING, Step
from lasthop.core.outbound_lanes import OpenLane
from lasthop.core.registry import NOTED_EVERY, Device, DeviceRecord
from lasthop.core.rights.people import People
from lasthop.core.session import Session, UnderWay
from lasthop.errors import LasthopError, NotFound, OutOfOrder, Unauthorized
from lasthop.events import Kind
from lasthop.wire.hop.frames import (
    DEFAULT_WINDOW,
    Ack,
    CloseCode,
    Credit,
    Dropped,
    Feature,
    Hello,
    LaneFrame,
    OtherWays,
    Welcome,
)
from lasthop.wire.hop.persistence import (
    GatewaySession,
    NewEpoch,
    ResumeNumbering,
    answer as answer_to,
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the gateway offers every device in its WELCOME."""

    incarnation: bytes
    open_house: bool
    """Whether devices without a token may connect, and are registered when they do. This is allowed
    on loopback only."""
    accept: tuple[str, ...] = ()
    lanes: bool = False
    """Whether devices that know lanes get them."""
    ways: tuple[tuple[str, str], ...] = ()
    """The ways that devices are told, each a link and a URL, unless their app has its own."""


MOST_LINES = 4
"""The largest number of channels of one device at a time: a device has no use for more channels
than it has radios."""

JOINED = "joined the channels that were open"

EXPIRED = "the device's token has expired"


class Contacts:
    """The devices that are in contact, with their channels."""

    def __init__(
        self,
        deliveries: Deliveries,
        dispatcher: Dispatcher,
        terms: Terms,
        people: People,
    ) -> None:
        self._deliveries = deliveries
        self._moments = deliveries.moments
        self._dispatcher = dispatcher
        self._terms = terms
        self._people = people
        self.probes = Probes(deliveries)
        self.expiries = TokenExpiries(deliveries, self._token_expired)
        self._by_channel: dict[int, Session] = {}
        self._lossy: set[int] = set()

    def tell_of_networks(self, others: Callable[[str], Micros | None]) -> None:
        """Tell devices from now on which heartbeat interval other devices found to work on their
        network."""
        self.probes.others = others

    def opened(self, channel: int, *, reliable: bool) -> None:
        """Register a new channel; unless it is `reliable`, frames may be lost and are
        retransmitted."""
        if not reliable:
            self._lossy.add(channel)

    def session(self, channel: int) -> Session | None:
        """Return the session of a channel; None before the handshake and after a newer channel took
        over."""
        return self._by_channel.get(channel)

    def find(self, channel: int) -> tuple[Session, ChannelState] | None:
        """Return the session of a channel and the channel's state; None where `session` returns
        None."""
        session = self._by_channel.get(channel)
        state = session.line_of(channel) if session is not None else None
        return None if session is None or state is None else (session, state)

    def hello(self, channel: int, hello: Hello, now: Micros, *, local: bool) -> None:
        """Answer the HELLO of a device: refuse the device, begin a probe, add the channel to its
        other ones, or begin a contact."""
        if channel in self._by_channel:
            raise OutOfOrder("a second HELLO on a channel", device=hello.device)
        try:
            device = self._identify(hello, now, local=local)
        except LasthopError as error:
            code = CloseCode(error.hop_code)
            self._deliveries.effects.append(CloseChannel(channel, code, str(error)))
            return
        session = self._deliveries.session(device)
        if hello.probe:
            self.probes.begin(session, channel, hello, self._terms.incarnation, now)
            return
        for meeting in self._moments.meeting:
            refused = meeting(session, channel, hello, now)
            if refused is not None:
                self._deliveries.effects.append(refused)
                return
        if hello.join:
            self._join(session, channel, hello, now)
            return
        # Only a HELLO with `join` keeps the other channels; any other one replaces them.
        self.disconnect(session, CloseCode.REPLACED, "a newer channel took over", now)
        granted = self._terms.lanes and bool(hello.features & Feature.LANES)
        answer = self._number(session, hello, now, granted=granted)
        # WELCOME says what the gateway has; the device may send the rest under other numbers.
        session.lane.inbound.drop_beyond()
        begin_lanes(self._deliveries, session, hello, answer, granted=granted)
        session.contacts += 1
        session.preserve = self._deliveries.limits.preserve
        if hello.preserve is not None:
            session.preserve = min(session.preserve, hello.preserve * SECOND)
        self._set_window(session, hello.window or DEFAULT_WINDOW)
        resumed = isinstance(answer, ResumeNumbering)
        line = self._connect(session, channel, hello, now, resumed=resumed)
        line.window = session.lane.window
        if isinstance(answer, ResumeNumbering):
            self._apply_claims(session, hello, answer.ack, now)
        forgot = isinstance(answer, NewEpoch) and (hello.epoch is None or answer.superseded is None)
        for introduced in self._moments.introduced:
            introduced(session, hello, now, resumed=resumed, forgot=forgot)
        welcome = self._welcome(session, answer, hello)
        self._deliveries.commits.when_durable(partial(self._begin, session, line, welcome))

    def _connect(
        self,
        session: Session,
        channel: int,
        hello: Hello,
        now: Micros,
        *,
        resumed: bool,
        reason: str = "",
    ) -> ChannelState:
        """Add a channel to a session, and record that contact began over it."""
        line = ChannelState(
            channel,
            link=hello.link or "",
            network=hello.network or "",
            max_frame=hello.max_frame,
            lossy=channel in self._lossy,
            features=hello.features,
        )
        self._by_channel[channel] = session
        session.add(line)
        self.expiries.watch(session)
        self._lines_changed(session, now)
        self._deliveries.commits.record(
            Kind.CONTACT_STARTED,
            now,
            session,
            link=line.link,
            network=line.network,
            channel=channel,
            epoch=session.epoch,
            resumed=resumed,
            count=session.lane.window.messages,
            size=session.lane.window.bytes,
            reason=reason,
        )
        return line

    def _begin(self, session: Session, line: ChannelState, welcome: Welcome, now: Micros) -> None:
        """Answer with WELCOME, now that the numbering is durable, and send what the device does not
        have."""
        if line not in session.lines:
            return
        line.greeted = True
        session.sender.changed()
        self._deliveries.effects.append(Send(line.channel, [welcome]))
        if not welcome.joined:
            self._tell_ways(session, line)
            self._dispatcher.resume(session, now)
        for greeted in self._moments.greeted:
            greeted(session, now, joined=welcome.joined)
        self._deliveries.touch(session)

    def _tell_ways(self, session: Session, line: ChannelState) -> None:
        """Tell the device which other ways there are, if any are configured."""
        behaviour = self._deliveries.behaviours.get(session.device.app)
        ways = (behaviour.other_ways() if behaviour is not None else ()) or self._terms.ways
        if ways:
            self._deliveries.effects.append(Send(line.channel, [OtherWays(ways)]))

    def _join(self, session: Session, channel: int, hello: Hello, now: Micros) -> None:
        """Add one more channel to a device that is in contact.

        Nothing is sent again over it, so its numbering must be that of the other channels. After a
        restart of the gateway there are no others, and the device may hold more than it claims.
        """
        claimed = hello.incarnation, hello.epoch
        highest = hello.individual[-1][1] if hello.individual else hello.received
        if (
            not session.greeted
            or claimed != (session.incarnation, session.epoch)
            or highest > session.lane.sendable
            or not lanes_agree(session, hello)
        ):
            gone = CloseChannel(channel, CloseCode.BYE, "there is no contact to join")
            self._deliveries.effects.append(gone)
            return
        if len(session.lines) >= MOST_LINES:
            most = CloseChannel(
                channel, CloseCode.OVERLOADED, f"a device may have {MOST_LINES} channels at most"
            )
            self._deliveries.effects.append(most)
            return
        ack = Ack(hello.received, hello.delivered, hello.individual)
        self._apply_claims(session, hello, ack, now)
        before = session.line
        line = self._connect(session, channel, hello, now, resumed=True, reason=JOINED)
        session.line = before  # Nothing may leave over a channel before its WELCOME.
        welcome = self._welcome(session, ResumeNumbering(ack, 0), hello, joined=True)
        self._deliveries.commits.when_durable(partial(self._begin_joined, session, line, welcome))

    def _apply_claims(self, session: Session, hello: Hello, ack: Ack, now: Micros) -> None:
        """Take in what a HELLO that goes on with the numbering says of the gateway's messages."""
        self._drop(session, hello.dropped, now)
        self.acknowledge(session, ack, now)
        if session.lanes is None:
            return
        for number, ranges in hello.lane_dropped:
            dropped_in = session.lanes.out.open.get(number)
            if dropped_in is not None:
                self._drop(session, ranges, now, dropped_in)
        for lane, claim in session.lanes.claimed(hello):
            self.acknowledge(session, claim, now, lane)

    def _begin_joined(
        self, session: Session, line: ChannelState, welcome: Welcome, now: Micros
    ) -> None:
        self._begin(session, line, welcome, now)
        if line.greeted:
            session.line = line

    def _lines_changed(self, session: Session, now: Micros) -> None:
        """Use a retransmission timer if a channel may lose frames, or if a delivery that does not
        arrive over one channel can be tried over another."""
        session.sender.channels_changed(now)
        if len(session.lines) > 1 or any(line.lossy for line in session.lines):
            session.retransmission = session.retransmission or Retransmission(session)
        else:
            session.retransmission = None
            if session.lanes is not None:
                session.lanes.out.stop_timers()

    def _identify(self, hello: Hello, now: Micros, *, local: bool) -> Device:
        device = self._deliveries.registry.find(hello.app, hello.device)
        if device is None:
            if not (self._terms.open_house and local):
                raise NotFound("unknown device", app=hello.app, device=hello.device)
            return self.register(hello.app, hello.device, DeviceRecord(registered_at=now), now)
        signed = hello.token and self._people.owner(
            device.app, device.record.user, hello.token, now
        )
        if signed:
            self.expiries.identified(device, signed.expires_at)
            return device
        if device.record.token_hash:
            self._check_token(device, hello.token, now)
        elif not (self._terms.open_house and local):
            raise Unauthorized(
                "this device has no token, so it can connect only from the gateway's machine"
            )
        self.expiries.identified(device, None)
        return device

    def _check_token(self, device: Device, token: str | None, now: Micros) -> None:
        """Raise `Unauthorized` unless a device may connect with this token; otherwise note that the
        token was used."""
        present = token is not None and device.is_token(token)
        if token is None or not device.accepts(token, now):
            reason = f"{EXPIRED}: give it a new one" if present else "wrong token"
            raise Unauthorized(reason, device=device.name)
        # Only of the present token: it says whether a device has taken up its new one.
        if present and now - device.record.token_used >= NOTED_EVERY:
            device.record.token_used = now
            self._deliveries.commits.open.devices[device.number] = device.row()

    def _token_expired(self, session: Session, now: Micros) -> None:
        self.disconnect(session, CloseCode.UNAUTHORIZED, EXPIRED, now)

    def register(self, app: str, name: str, record: DeviceRecord, now: Micros) -> Device:
        """Add a device to the registry and record the event."""
        device = self._deliveries.registry.add(app, name, record)
        self._deliveries.commits.open.devices[device.number] = device.row()
        self._deliveries.commits.record(Kind.REGISTERED, now, self._deliveries.session(device))
        return device

    def _number(
        self, session: Session, hello: Hello, now: Micros, *, granted: bool
    ) -> ResumeNumbering | NewEpoch:
        """Decide whether the device's numbering goes on or a new epoch begins."""
        # A store that was restored from a backup does not continue the numbers of the store that it
        # is a copy of: how far that one got is unknown.
        copied = session.incarnation != self._terms.incarnation
        copied = copied or not lanes_fit(session, hello, granted=granted)
        known = GatewaySession(
            current=session.numbering(),
            assigned=-1 if copied else session.lane.sendable,
            acknowledged=session.lane.outbound.received,
            previous=session.previous,
            used=session.lanes is not None and session.lanes.used,
        )
        answer = answer_to(known, hello)
        if isinstance(answer, NewEpoch) and (copied or not answer.offered_before):
            if (hello.incarnation, hello.epoch) == (session.incarnation, session.epoch):
                # The device's numbers run ahead of the gateway's: this store is an older copy. What
                # the device says of the numbers that the copy knows is true all the same.
                received = min(hello.received, session.lane.sendable)
                self.acknowledge(session, Ack(received, min(hello.delivered, received)), now)
            self._begin_epoch(session, answer, now)
        return answer

    def _begin_epoch(self, session: Session, epoch: NewEpoch, now: Micros) -> None:
        """Start numbering at 0, and requeue what was under way."""
        for delivery in session.under_way():
            before = delivery.item.message.deliver_before
            if before is not None and now >= before:
                self._deliveries.give_up(delivery, Step.EXPIRE, now, "too late for the new epoch")
                continue
            delivery.redelivered = delivery.redelivered or delivery.attempts > 0
            self._deliveries.step(delivery, Step.REQUEUE, now, "a new epoch began")
            session.sender.refund(delivery, now)
            delivery.seq = delivery.epoch = -1
            delivery.lane = session.lane
            for gate in delivery.item.gates:
                gate.requeued(delivery)
            session.enqueue(delivery)
        session.restart(self._terms.incarnation, epoch.current.epoch, epoch.previous)
        self._deliveries.commits.record(Kind.EPOCH_STARTED, now, session, epoch=session.epoch)

    def _welcome(
        self,
        session: Session,
        answer: ResumeNumbering | NewEpoch,
        hello: Hello,
        *,
        joined: bool = False,
    ) -> Welcome:
        limits = self._deliveries.limits
        resumed = isinstance(answer, ResumeNumbering)
        welcome = Welcome(
            incarnation=session.incarnation,
            epoch=session.epoch,
            resumed=resumed,
            superseded=answer.superseded if isinstance(answer, NewEpoch) else None,
            received=session.lane.inbound.received,
            closed=answer.closed if isinstance(answer, ResumeNumbering) else 0,
            accept=self._terms.accept,
            window=Credit(limits.window_messages, limits.window_bytes),
            preserve=session.preserve // SECOND,
            max_frame=limits.max_frame,
            heartbeat=self.probes.heartbeat(hello) // SECOND,
            found=self.probes.found(hello),
            joined=joined,
        )
        if session.lanes is None:
            return welcome
        return session.lanes.answer(welcome, hello, resumed=resumed)

    def acknowledge(
        self, session: Session, ack: Ack, now: Micros, lane: OpenLane | None = None
    ) -> None:
        """Apply an acknowledgement in a lane: what the device has received, and what its
        application has processed."""
        numbered: Lane[UnderWay] = session.lane if lane is None else lane
        outbound = numbered.outbound
        highest = ack.individual[-1][1] if ack.individual else ack.received
        # A number that is not durable was never sent: after a crash it could stand for another
        # message.
        if highest > numbered.sendable:
            raise OutOfOrder("a number was acknowledged that was never sent", number=highest - 1)
        oldest = outbound.received
        progress = outbound.acknowledge(ack)
        session.sender.acknowledged(session, progress.received, now)
        step, deliver, plain = self._deliveries.step, Step.DELIVER, self._deliveries.plain
        # A delivery that is processed at once gets no separate RECEIVED step: one step, one event.
        for delivery in progress.delivered:
            if isinstance(delivery, Delivery) and delivery.state < DELIVERED:
                if delivery.decider is plain:
                    step(delivery, deliver, now)
                else:
                    delivery.decider.acknowledged(delivery, now)
        for delivery in progress.received:
            if isinstance(delivery, Delivery) and delivery.state is SENDING:
                delivery.decider.received(delivery, now)
        if progress.delivered or progress.received:
            self._deliveries.commits.touch_session(session, now)
            self._deliveries.touch(session)
            if lane is not None and session.lanes is not None:
                session.lanes.acknowledged(lane, now)
        if session.retransmission is not None and outbound.received > oldest:
            self._dispatcher.advanced(session, now, lane)

    def dropped(self, session: Session, dropped: Dropped, now: Micros) -> None:
        """Apply the device's report that it dropped the messages with these numbers as too late:
        its application never got them."""
        self._drop(session, dropped.ranges, now)

    def _drop(
        self,
        session: Session,
        ranges: tuple[tuple[int, int], ...],
        now: Micros,
        lane: OpenLane | None = None,
    ) -> None:
        numbered: Lane[UnderWay] = session.lane if lane is None else lane
        for first, stop in ranges:
            if stop > numbered.sendable:
                raise OutOfOrder("a number was dropped that was never sent", number=stop - 1)
            for seq in range(max(first, numbered.outbound.delivered), stop):
                delivery = numbered.outbound.get(seq)
                if not isinstance(delivery, Delivery) or delivery.state >= DELIVERED:
                    continue
                delivery.decider.dropped(delivery, now)

    def lane_frame(self, session: Session, frame: LaneFrame, now: Micros) -> None:
        """Apply what the device says of a lane of the gateway's. Of a lane that has closed it says
        nothing new."""
        lane = None if session.lanes is None else session.lanes.out.open.get(frame.lane)
        if lane is None:
            return
        if isinstance(frame.frame, Ack):
            self.acknowledge(session, frame.frame, now, lane)
        elif isinstance(frame.frame, Dropped):
            self._drop(session, frame.frame.ranges, now, lane)
        elif isinstance(frame.frame, Credit):
            lane.limit = frame.frame
            self._deliveries.touch(session)

    def paused(self, channel: int, paused: bool, now: Micros) -> None:
        """Note that a channel's unsent buffer is full, or has room again."""
        session = self._by_channel.get(channel)
        line = session.line_of(channel) if session is not None else None
        if session is None or line is None or line.paused == paused:
            return
        line.paused = paused
        session.sender.changed()
        window = Credit(0, 0) if session.paused else session.lane.window
        self._deliveries.commits.record(
            Kind.CREDIT_CHANGED,
            now,
            session,
            count=window.messages,
            size=window.bytes,
            reason="the link is full" if paused else "the link has room again",
        )
        self._deliveries.touch(session)

    def credit(self, session: Session, channel: int, credit: Credit, now: Micros) -> None:
        """Set the window that the device named over a channel."""
        line = session.line_of(channel)
        if line is not None:
            line.window = credit
            self._follow_windows(session, now)

    def _follow_windows(self, session: Session, now: Micros) -> None:
        """Use the window that was named over the newest channel: the device speaks over that one,
        and an older one may be slower. When it has ended, the device names its window again over
        another."""
        said = [line.window for line in session.lines if line.window is not None]
        if not said:
            return
        before = session.lane.window
        self._set_window(session, said[-1])
        if session.lane.window != before:
            self._deliveries.commits.record(
                Kind.CREDIT_CHANGED,
                now,
                session,
                count=session.lane.window.messages,
                size=session.lane.window.bytes,
            )
            self._deliveries.touch(session)

    def lost(self, channel: int, reason: str, now: Micros) -> None:
        """Remove a channel that has ended, and go on over the others if there are any."""
        self._lossy.discard(channel)
        if self.probes.lost(channel, reason, now):
            return
        session = self._by_channel.pop(channel, None)
        line = session.line_of(channel) if session is not None else None
        if session is None or line is None:
            return
        session.remove(line)
        self._lines_changed(session, now)
        self._deliveries.commits.record(
            Kind.CONTACT_LOST, now, session, reason=reason, link=line.link, channel=channel
        )
        if session.greeted:
            self._follow_windows(session, now)
            self._dispatcher.reroute(session, channel, now)
            for channel_gone in self._moments.channel_gone:
                channel_gone(session)
            session.acknowledge_again()  # The last ACK may have been lost with the channel.
            self._deliveries.touch(session)
            return
        self.disconnect(session, CloseCode.BYE, "the channel that it joined is gone", now)
        self._away(session, now)

    def _away(self, session: Session, now: Micros) -> None:
        """Note that a device is no longer in contact, and preserve its session for a time."""
        session.retransmission = None
        session.sender.channels_changed(now)
        session.lost_at = now
        for away in self._moments.away:
            away(session, now)
        if session.has_immediate and not session.reachable:
            session.has_immediate = False
            self._deliveries.drop_immediate(session, now)
        if session.lanes is not None:
            session.lanes.away()
        under_way = any(
            lane.outbound.delivered < lane.outbound.assigned for lane in session.every_lane()
        )
        if under_way or any(delivery for part in session.parts for delivery in part.on_device()):
            self._dispatcher.preserve(session)

    def disconnect(self, session: Session, code: CloseCode, reason: str, now: Micros) -> None:
        """Close all channels of a device, if it has any."""
        lines, session.lines, session.line = session.lines, (), AWAY
        for line in lines:
            self._by_channel.pop(line.channel, None)
            self._lossy.discard(line.channel)
            self._deliveries.commits.record(
                Kind.CONTACT_LOST, now, session, reason=reason, link=line.link, channel=line.channel
            )
            self._deliveries.effects.append(CloseChannel(line.channel, code, reason))
        if lines:
            self._away(session, now)

    def _set_window(self, session: Session, window: Credit) -> None:
        limits = self._deliveries.limits
        if window.messages > limits.flight_messages or window.bytes > limits.flight_bytes:
            window = Credit(
                min(window.messages, limits.flight_messages), min(window.bytes, limits.flight_bytes)
            )
        session.lane.window = window
