"""Pieces to and from devices: one at a time, after every message that may leave.

A piece is handed to a channel only when the piece before has left the channel's unsent buffer. So a
message never waits for more than one piece, however much is under way.
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
"""The largest number of ENDING frames that are kept until a device confirms them. A device that
asks about ever more ended transfers and confirms nothing gets its answers, but they are not
remembered."""


def takes_pieces(channel: ChannelState) -> bool:
    """Return whether a device accepts bodies and streams in pieces over a channel."""
    return bool(channel.features & Feature.STREAMS)


class PiecePump:
    """Sends and receives the pieces of all sessions."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._transfers: dict[Session, SessionTransfers] = {}
        self.begin_upload: Callable[[Session, int], PieceSink | None] = lambda _session, _key: None
        """Begins the upload of a body when its first piece comes; None if it cannot begin now."""
        self.wanted: Callable[[Session, Taken], bool] = lambda _session, _taken: False
        """Returns whether the device still needs the rest of a body that it has a part of."""

    def transfers(self, session: Session) -> SessionTransfers:
        """Return the transfers of a session, which are made when first needed."""
        transfers = self._transfers.get(session)
        if transfers is None:
            transfers = self._transfers[session] = SessionTransfers(session, self)
            session.add_part(transfers)
            session.transfers = transfers.outgoing
        return transfers

    def find(self, session: Session) -> SessionTransfers | None:
        """Return the transfers of a session; None if it never had any."""
        return self._transfers.get(session)

    def removed(self, session: Session) -> None:
        """Forget the transfers of a device that is removed."""
        self._transfers.pop(session, None)

    def send(self, session: Session, key: int, outgoing: Transfer) -> None:
        """Begin to send a body or a stream to a device."""
        transfers = self.transfers(session)
        transfers.outgoing[key] = outgoing
        transfers.forget_end(key)
        self._deliveries.touch(session)

    def again(self, session: Session, *, alone: bool = False) -> None:
        """Ask the device how much it has of every transfer, because a contact begins (`alone`: with
        one channel) or one of several channels has ended."""
        transfers = self._transfers.get(session)
        if transfers is None:
            return
        transfers.alone = alone
        for outgoing in transfers.outgoing.values():
            outgoing.sending.again()
        for key, sink in list(transfers.incoming.items()):
            sink.receiving.again()
            # Within a contact the ENDING may have been lost with a channel, and is sent once more.
            if sink.over and alone:
                del transfers.incoming[key]
        if alone:
            transfers.over.clear()  # The device reports the bodies that it has a part of.
        transfers.told.clear()
        transfers.said.clear()
        transfers.claimed.clear()
        self._deliveries.touch(session)

    def joined(self, session: Session) -> None:
        """Note that the device has one more channel, so that frames may overtake one another."""
        transfers = self._transfers.get(session)
        if transfers is not None:
            transfers.alone = False

    # Frames from devices.

    def piece(self, session: Session, piece: Piece, now: Micros) -> None:
        """Handle a piece that a device sent; an empty piece asks how much the gateway has."""
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
        """Handle the device's report of how much it has of a transfer."""
        transfers = self.transfers(session)
        outgoing = transfers.outgoing.get(taken.transfer)
        if outgoing is None:
            if not self.wanted(session, taken):
                self._abort(session, transfers, taken.transfer, OVER)
            return
        transfers.due = None
        source = outgoing.source
        behind = taken.offset < source.floor
        # The first report in a contact is current; a later one may have been overtaken. A device
        # that has more than the gateway ever had of a stream shows that this store is an older
        # copy.
        if behind or (outgoing.sending.stream and taken.offset > source.available):
            if not behind or (transfers.alone and not outgoing.sending.known):
                source.lost(now)
                self._deliveries.touch(session)
            return
        # A device can have more of a body than there is if it has another body of the same key,
        # from a life of the store that this copy does not know. It drops that when it gets the
        # ENDING of this one.
        offset = min(taken.offset, source.available)
        outgoing.sending.heard(Taken(taken.transfer, offset, taken.limit), source.available)
        source.taken(offset, now)
        self._deliveries.touch(session)

    def ending(self, session: Session, ending: Ending, now: Micros) -> None:
        """Handle the ENDING frame that the device sent for a transfer, in either direction."""
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
                # A confirmation of a body that was not asked for may be about an earlier attempt.
                del transfers.outgoing[key]
                outgoing.source.confirmed(now)
            return
        sink = transfers.incoming.get(key)
        if sink is not None and sink.stream == ending.stream:
            transfers.said.discard(key)
            sink.ending(ending, now)
        elif ending.stream or ending.status == EndStatus.ABORTED:
            # The transfer has ended and is forgotten, and the gateway's ENDING was lost.
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

    # Frames to devices.

    def pump(self, session: Session, transfers: SessionTransfers, now: Micros) -> None:
        """Send a device the reports about its transfers that are due, and let the next pieces
        leave."""
        if not session.greeted or not takes_pieces(session.line):
            return
        frames = self._words(session, transfers, now)
        if frames:
            self._deliveries.effects.append(Send(session.channel, frames))
        while self._feed(session, transfers, now):
            pass
        self._await(session, transfers, now)

    def _words(self, session: Session, transfers: SessionTransfers, now: Micros) -> list[Frame]:
        """Return all frames about transfers except pieces: they take next to no room."""
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
                session.sender.changed()  # Deliveries may wait behind this body.
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
        """Hand one piece to a channel that has none in its buffer; return False if there is no such
        channel or piece."""
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
        """Note that the last piece has left a channel's unsent buffer."""
        if line.busy:
            line.busy = False
            if line.pace is not None:
                line.pace.left(now - line.fed_at)
            self._deliveries.touch(session)

    # Channels that lose frames.

    def _await(self, session: Session, transfers: SessionTransfers, now: Micros) -> None:
        """Set a timer on a channel that loses frames, as long as a report of the device is
        expected."""
        if session.retransmission is None or transfers.armed is not None:
            return
        if transfers.over or any(
            o.sending.waits(_owed(session, o)) for o in transfers.outgoing.values()
        ):
            transfers.due = transfers.armed = now + FIRST_TIMEOUT
            self._deliveries.timers.add(transfers.armed, _Patience(self, session, transfers))

    def overdue(self, session: Session, transfers: SessionTransfers) -> None:
        """Ask again about every transfer, because no report came in time."""
        transfers.armed = None
        if self._transfers.get(session) is transfers and session.greeted:
            if transfers.due is not None:
                # An answer may be overtaken by one that was sent before this question.
                transfers.alone = False
                for outgoing in transfers.outgoing.values():
                    outgoing.sending.again()
                transfers.told.clear()
            self._deliveries.touch(session)


def _owed(session: Session, outgoing: Transfer) -> int:
    """Return the offset that the device has to report: without a grant, what has been sent so
    far."""
    if session.sender.covers(outgoing):
        return outgoing.source.available
    return outgoing.sending.cursor


class _Patience:
    """The timer target that repeats a question whose answer may have been lost."""

    __slots__ = ("_pump", "_session", "_transfers")

    def __init__(self, pump: PiecePump, session: Session, transfers: SessionTransfers) -> None:
        self._pump = pump
        self._session = session
        self._transfers = transfers

    def woken(self, now: Micros) -> None:
        self._pump.overdue(self._session, self._transfers)
