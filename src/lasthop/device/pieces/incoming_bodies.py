"""Bodies that come in pieces: ahead of their messages, or because the application fetches them."""

from __future__ import annotations

import msgspec

from lasthop.device.pieces.flows import Body
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.terms import DeviceTerms
from lasthop.wire.hop.frames import Ending, EndStatus, Headers, MessageFrame, Piece, Taken


class IncomingBodies:
    """The incoming bodies that are here, in part or complete."""

    def __init__(self, terms: DeviceTerms, book: TransferBook) -> None:
        self._terms = terms
        self._book = book
        self._bodies: dict[int, Body] = {}
        self._pulls: set[int] = set()
        self.fetched: list[tuple[int, bytes | None, str]] = []
        """The results of fetching bodies: the body, or the reason why there is none. The owner
        collects them."""

    def all(self) -> list[Body]:
        """Return all incoming bodies with their progress."""
        return [*self._bodies.values()]

    def body(self, key: int) -> Body:
        """Return the incoming body of this key; a new one begins empty."""
        body = self._bodies.get(key)
        if body is None:
            body = Body(key, window=self._terms.stream_window, most=self._terms.max_body)
            self._bodies[key] = body
        return body

    def claim(self, frame: MessageFrame, headers: Headers, *, known: bool) -> MessageFrame | None:
        """Return a message together with its body, which came ahead of it; None if the message
        cannot be used."""
        key = frame.key or 0
        body = self._bodies.get(key)
        whole = msgspec.structs.replace(headers, ahead=None)
        if known or (frame.seq is None and body is None):
            return msgspec.structs.replace(frame, headers=whole) if known else None
        if body is None or body.receiving.durable != headers.ahead:
            # The gateway believes that we have the body, and we do not: treat the message as lost.
            self._book.words.append(Taken(key, 0, 0))
            return None
        self.forget(key)
        return msgspec.structs.replace(frame, headers=whole, body=body.chunks.all())

    def forget(self, key: int) -> None:
        """Drop a body that has been joined to its message or is no longer needed."""
        body = self._bodies.pop(key, None)
        self._pulls.discard(key)
        if body is not None and body.receiving.received:
            self._book.drop(key, incoming=True, below=body.receiving.received)

    def pull(self, key: int) -> bytes | None:
        """Return the body of a message that was left at the gateway if it has come; otherwise note
        that the application waits for it, and return None."""
        body = self.body(key)
        if body.complete:
            return body.chunks.all()
        self._pulls.add(key)
        return None

    def _fetched(self, body: Body) -> None:
        if body.key in self._pulls and body.complete:
            self._pulls.discard(body.key)
            self.fetched.append((body.key, body.chunks.all(), ""))

    def take(self, piece: Piece) -> None:
        """Handle a piece of a body, or a question about this device's progress, that the gateway
        sends."""
        key = piece.transfer
        body = self.body(key)
        if body.complete and body.answer is not None:
            # More bytes than the complete body has: the gateway sends another one.
            if piece.offset + len(piece.body) > body.receiving.received:
                body.spoil()
                self._book.said.discard(key)
                return
            body.receiving.again()
            told = body.receiving.report(key, step=1)
            assert told is not None
            self._book.words.append(told)
        elif body.answer is not None:
            self._book.said.discard(key)
        elif (row := body.take(piece)) is not None:
            self._book.keep(row)
            end = row.offset + len(row.body)

            def durable() -> None:
                body.durable(end)
                self._book.stirred.append(key)
                self._fetched(body)

            self._book.then(durable)

    def end(self, ending: Ending) -> None:
        """Handle the frame with which the gateway ends a body."""
        key = ending.transfer
        body = self._bodies.get(key)
        if ending.stream or ending.status == EndStatus.ABORTED:
            if body is not None:
                if key in self._pulls:
                    self.fetched.append((key, None, ending.reason))
                self.forget(key)
            self._book.words.append(Ending(key, EndStatus.CONFIRMED, stream=ending.stream))
        elif body is not None:
            body.end(ending)
            self._fetched(body)
        else:
            self.body(key)  # A new, empty body asks for all pieces.
