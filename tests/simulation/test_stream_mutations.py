"""Would the schedules notice mistakes with pieces and streams? Each of these is planted alone.

About `simulation/streams.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lasthop.core.feature import Leaving
from lasthop.core.pieces.bodies import Bodies
from lasthop.core.pieces.stream import Stream
from lasthop.core.pieces.streams import Streams
from lasthop.device.change import Change
from lasthop.device.pieces.flows import Inflow
from lasthop.device.pieces.incoming_bodies import IncomingBodies
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.simulation.faults import run
from lasthop.wire.hop.frames import Piece
from lasthop.wire.hop.transfer import Receiving, Sending

SCHEDULES = 240
"""How many schedules a bug may survive; every third has streams, all have bodies in pieces."""

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def take_pieces_twice(patch: Patch) -> None:
    """What comes again after a break is taken for new."""

    def take(self: Receiving, piece: Piece) -> bytes:
        self.received += len(piece.body)
        return piece.body

    patch.setattr(Receiving, "take", take)


def go_on_without_asking(patch: Patch) -> None:
    """After a break the sender believes that everything arrived that had left."""
    patch.setattr(Sending, "again", lambda self: None)


def acknowledge_before_it_is_durable(patch: Patch) -> None:
    report = Receiving.report

    def early(self: Receiving, transfer: int, *, step: int) -> Any:
        self.durable = self.received
        return report(self, transfer, step=step)

    patch.setattr(Receiving, "report", early)


def send_the_message_before_its_body(patch: Patch) -> None:
    leaving = Bodies.leaving

    def at_once(self: Bodies, delivery: Any, channel: int, now: int) -> Leaving:
        if leaving(self, delivery, channel, now) is Leaving.WAIT:
            delivery.ahead = True
        return Leaving.GO

    patch.setattr(Bodies, "leaving", at_once)
    patch.setattr(IncomingBodies, "claim", lambda self, frame, headers, *, known: frame)


def keep_no_pieces_of_a_device(patch: Patch) -> None:
    """The inbox forgets what has come of a stream, and keeps how far it was."""
    collect = TransferBook.collect

    def without(self: TransferBook, change: Change) -> None:
        collect(self, change)
        change.pieces = [piece for piece in change.pieces if not piece.incoming]

    patch.setattr(TransferBook, "collect", without)


def read_a_byte_too_far(patch: Patch) -> None:
    consume = Inflow.consume
    patch.setattr(Inflow, "consume", lambda self, position: consume(self, position + 1))


def end_too_early(patch: Patch) -> None:
    """A stream counts as received when its sender has ended it."""
    end = Streams.end

    def over(self: Streams, stream: Stream, now: int, **said: Any) -> None:
        end(self, stream, now, **said)
        self.receiver_done(stream, now)

    patch.setattr(Streams, "end", over)


def never_begin_to_pull(patch: Patch) -> None:
    patch.setattr(Bodies, "_begin_pull", lambda self, session, key: True)


MUTATIONS: list[Mutation] = [
    take_pieces_twice,
    go_on_without_asking,
    acknowledge_before_it_is_durable,
    send_the_message_before_its_body,
    keep_no_pieces_of_a_device,
    read_a_byte_too_far,
    end_too_early,
    never_begin_to_pull,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_caught(mutation: Mutation, monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    for seed in range(0, SCHEDULES, 3):
        try:
            if not run(seed).verdict.good:
                return
        except Exception:
            return  # It broke down, which nobody could overlook.
    pytest.fail(f"the schedules found nothing wrong with {mutation.__name__}")
