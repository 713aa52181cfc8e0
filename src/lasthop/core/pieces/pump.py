"""Pieces to and from devices: one at a time, after every message that may leave.

A piece is handed to a line only when the one before has left its unsent buffer. A message never
waits for more than that one, however much is under way.
"""

from __future__ import annotations

from collections.abc import Callable

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.contacts.retransmission import FIRST_TIMEOUT
from lasthop.core.deliveries import Deliveries
from lasthop.core.effects import Send, SendPiece
from lasthop.core.pieces.session_transfers import PieceSink, SessionTransfers
from lasthop.core.session import Session
from lasthop.core.transfer import Transfer
from lasthop.wire.hop.frames import Ending, EndStatus, Feature, Frame, Piece, Taken
from lasthop.wire.hop.transfer import Pace

OVER = "it is over here"
UNKNOWN = "no such stream"

MOST_OVER = 1024
"""Last words that are kept until a device confirms them. One that asks about ever more that is over
and confirms nothing gets its answers, but we remember no more of them."""


def takes_pieces(channel: ChannelState) -> bool:
    """Whether a device takes bodies and streams in pieces over a channel."""
    return bool(channel.features & Feature.STREAMS)


class PiecePump:
    """Carries pieces for all sessions."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._transfers: dict[Session, SessionTransfers] = {}
        self.begin_upload: Callable[[Session, int], PieceSink | None] = lambda _session, _key: None
        """What to do with the first piece of a body that a device sends."""
        self.wanted: Callable[[Session, Taken], bool] = lambda _session, _taken: False
        """Whether something that the device has part of is still to come, or begins now."""

    def transfers(self, session: Session) -> SessionTransfers:
        """What a session has under way, to be added to."""
        transfers = self._transfers.get(session)
        if transfers is None:
            transfers = self._transfers[session] = SessionTransfers(session, self)
            session.add_part(transfers)
            session.transfers = transfers.outgoing
        return transfers

    def find(self, session: Session) -> SessionTransfers | None:
        """What a session has under way, if anything ever was."""
        return self._transfers.get(session)

    def removed(self, session: Session) -> None:
        """A device is gone."""
        self._transfers.pop(session, None)

    def send(self, session: Session, key: int, outgoing: Transfer) -> None:
        """Begin to send something."""
        transfers = self.transfers(session)
        transfers.outgoing[key] = outgoing
        transfers.forget_end(key)
        self._deliveries.touch(session)

    def again(self, session: Session, *, alone: bool = False) -> None:
        """A contact begins, `alone` with one channel, or one of several has ended: find out how far
        everything is."""
        transfers = self._transfers.get(session)
        if transfers is None:
            return
        transfers.alone = alone
        for outgoing in transfers.outgoing.values():
            outgoing.sending.again()
        for key, sink in list(transfers.incoming.items()):
            sink.receiving.again()
            # Within a contact the last word may have gone down with a line, and is said once more.
            if sink.over and alone:
                del transfers.incoming[key]
        if alone:
            transfers.over.clear()  # The device says of what it has a part.
        transfers.told.clear()
        transfers.said.clear()
        transfers.claimed.clear()
        self._deliveries.touch(session)

    def joined(self, session: Session) -> None:
        """There is one more channel: words may overtake one another."""
        transfers = self._transfers.get(session)
        if transfers is not None:
            transfers.alone = False

    # What a device says.

    def piece(self, session: Session, piece: Piece, now: Micros) -> None:
        """Bytes, or a question how far we are."""
        transfers = self.transfers(session)
        sink = transfers.incoming.get(piece.transfer)
        if sink is None and not piece.stream:
            sink = self.begin_upload(session, piece.transfer)
            if sink is None:
                return  # A late copy; or there is no room yet, and the answer comes when there is.
        if sink is None:
            stop = Ending(piece.transfer, EndStatus.STOPPED, reason=UNKNOWN, stream=True)
            self._say(session, stop)
            return
        if sink.answer() is None:
            sink.piece(piece, now)
        else:
            transfers.said.discard(piece.transfer)
        self._deliveries.touch(session)

    def taken(self, session: Session, taken: Taken, now: Micros) -> None:
        """The device says how far it is."""
        transfers = self.transfers(session)
        outgoing = transfers.outgoing.get(taken.transfer)
        if outgoing is None:
            if not self.wanted(session, taken):
                self._abort(session, transfers, taken.transfer, OVER)
            return
        transfers.due = None
        source = outgoing.source
        behind = taken.offset < source.floor
        # The first word in a contact is meant; later it may have been overtaken. And if the device
        # has what we never had, we are an older copy of ourselves.
        if behind or (outgoing.sending.stream and taken.offset > source.available):
            if not behind or (transfers.alone and not outgoing.sending.known):
                source.lost(now)
                self._deliveries.touch(session)
            return
        # Of a body the device can have more than there is if it is another one under the same key,
        # of a life of ours that a copy of the store does not know. It lets go of that when it hears
        # how this one ends.
        offset = min(taken.offset, source.available)
        outgoing.sending.heard(Taken(taken.transfer, offset, taken.limit), source.available)
        source.taken(offset, now)
        self._deliveries.touch(session)

    def ending(self, session: Session, ending: Ending, now: Micros) -> None:
        """The device says how a transfer ends, its own or one of ours."""
        transfers = self.transfers(session)
        key = ending.transfer
        self._deliveries.touch(session)
        if ending.status in (EndStatus.CONFIRMED, EndStatus.STOPPED):
            outgoing = transfers.outgoing.get(key)
            if outgoing is None:
                stopped = ending.status == EndStatus.STOPPED
                if ending.stream:
                    if stopped:
                        over = Ending(key, EndStatus.ABORTED, reason=OVER, stream=True)
                        self._say(session, over)
                elif stopped or (not transfers.forget_end(key) and key not in session.mailbox):
                    self._abort(session, transfers, key, OVER)
            elif ending.status == EndStatus.STOPPED:
                outgoing.source.stopped(ending.reason, now)
            elif outgoing.sending.said_end or (
                ending.stream and outgoing.source.last_word() is not None
            ):
                # Of a body, what was not asked for may be about an earlier attempt.
                del transfers.outgoing[key]
                outgoing.source.confirmed(now)
            return
        sink = transfers.incoming.get(key)
        if sink is not None and sink.stream == ending.stream:
            transfers.said.discard(key)
            sink.ending(ending, now)
        elif ending.stream or ending.status == EndStatus.ABORTED:
            # It was over and forgotten, and our word to say so was lost.
            self._say(session, Ending(key, EndStatus.CONFIRMED, stream=ending.stream))

    def _abort(self, session: Session, transfers: SessionTransfers, key: int, reason: str) -> None:
        """Tell the device that there will be no more of a body."""
        word = Ending(key, EndStatus.ABORTED, reason=reason)
        if len(transfers.over) >= MOST_OVER and key not in transfers.over:
            self._say(session, word)
            return
        transfers.over[key] = word
        transfers.told.discard(key)
        self._deliveries.touch(session)

    def _say(self, session: Session, frame: Frame) -> None:
        if session.greeted:
            self._deliveries.effects.append(Send(session.channel, [frame]))

    # What leaves.

    def pump(self, session: Session, transfers: SessionTransfers, now: Micros) -> None:
        """Say what is to be said, and let the next pieces leave."""
        if not session.greeted or not takes_pieces(session.line):
            return
        frames = self._words(session, transfers, now)
        if frames:
            self._deliveries.effects.append(Send(session.channel, frames))
        while self._feed(session, transfers, now):
            pass
        self._await(session, transfers, now)

    def _words(self, session: Session, transfers: SessionTransfers, now: Micros) -> list[Frame]:
        """Everything but pieces: it takes next to no room."""
        frames: list[Frame] = []
        step = self._deliveries.limits.stream_window // 4
        for key, sink in transfers.incoming.items():
            answer = sink.answer()
            if answer is None:
                taken = sink.receiving.report(key, step=step)
                if taken is not None:
                    frames.append(taken)
            elif key not in transfers.said:
                transfers.said.add(key)
                frames.append(answer)
        for key, outgoing in list(transfers.outgoing.items()):
            sending, source = outgoing.sending, outgoing.source
            against = source.refusal(now)
            if against is not None:
                del transfers.outgoing[key]
                self._abort(session, transfers, key, against)
                session.sender.changed()  # Others may wait behind it.
                continue
            if not source.announced():
                continue
            question = sending.question()
            if question is not None:
                frames.append(question)
            word = source.last_word()
            if word is None or sending.said_end:
                continue
            if word.status != EndStatus.COMPLETE or (sending.known and sending.cursor >= word.size):
                sending.said_end = True
                frames.append(word)
        for key, word in transfers.over.items():
            if key not in transfers.told:
                transfers.told.add(key)
                frames.append(word)
        return frames

    def _feed(self, session: Session, transfers: SessionTransfers, now: Micros) -> bool:
        """Hand one piece to a line that has none; false when there is no such line or piece."""
        if all(line.busy or line.paused or not line.greeted for line in session.lines):
            return False
        sender = session.sender
        for outgoing in sorted(transfers.outgoing.values(), key=Transfer.place):
            line, most = sender.allowance(session, outgoing)
            if line is None or line.busy or line.paused or not line.greeted:
                continue
            line.pace = line.pace or Pace()
            sending, source = outgoing.sending, outgoing.source
            size = sending.room(source.available, min(line.pace.size, most))
            body = source.read(sending.cursor, size) if size else None
            if not body:
                continue
            sender.piece_left(outgoing, len(body), now)
            transfers.turns += 1
            sending.turn = transfers.turns
            line.busy = True
            line.fed_at = now
            self._deliveries.effects.append(SendPiece(line.channel, sending.piece(body)))
            return True
        return False

    def drained(self, session: Session, line: ChannelState, now: Micros) -> None:
        """The last piece has left a line's unsent buffer."""
        if line.busy:
            line.busy = False
            if line.pace is not None:
                line.pace.left(now - line.fed_at)
            self._deliveries.touch(session)

    # Channels that lose frames.

    def _await(self, session: Session, transfers: SessionTransfers, now: Micros) -> None:
        """If nothing is heard for a while, something was lost."""
        if session.retransmission is None or transfers.armed is not None:
            return
        if transfers.over or any(
            o.sending.waits(_owed(session, o)) for o in transfers.outgoing.values()
        ):
            transfers.due = transfers.armed = now + FIRST_TIMEOUT
            self._deliveries.timers.add(transfers.armed, _Patience(self, session, transfers))

    def overdue(self, session: Session, transfers: SessionTransfers) -> None:
        """The time to hear of something is up."""
        transfers.armed = None
        if self._transfers.get(session) is transfers and session.greeted:
            if transfers.due is not None:
                # Its answer may be overtaken by what was said before we asked once more.
                transfers.alone = False
                for outgoing in transfers.outgoing.values():
                    outgoing.sending.again()
                transfers.told.clear()
            self._deliveries.touch(session)


def _owed(session: Session, outgoing: Transfer) -> int:
    """How far the device will have to say that it has a transfer: without a grant, as far as it
    has gone."""
    if session.sender.covers(outgoing):
        return outgoing.source.available
    return outgoing.sending.cursor


class _Patience:
    """Waits for the answer to what may have been lost."""

    __slots__ = ("_pump", "_session", "_transfers")

    def __init__(self, pump: PiecePump, session: Session, transfers: SessionTransfers) -> None:
        self._pump = pump
        self._session = session
        self._transfers = transfers

    def woken(self, now: Micros) -> None:
        self._pump.overdue(self._session, self._transfers)
