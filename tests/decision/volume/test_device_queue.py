"""The device's queue: the best of what is here, and an honest report."""

from __future__ import annotations

from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Forward, Rerank, Retract, Show
from lasthop.decision.volume.inputs import ContactUp, Held, OfflineRead, Read


def queue(*ranks: float, max_per_read: int | None = None) -> DeviceQueue:
    made = DeviceQueue(max_per_read=max_per_read)
    for key, rank in enumerate(ranks, start=1):
        made.forward(Forward(key, ""), rank=rank, expires_at=None)
    return made


def test_an_offline_read_takes_the_best_and_is_reported_once() -> None:
    device = queue(1.0, 3.0, 2.0)
    assert device.read_offline(2, 7) == (2, 3)
    assert device.contact() == ContactUp((OfflineRead(7, 2, (2, 3)),))
    assert device.contact() == ContactUp()
    assert len(device) == 1


def test_max_holds_without_a_gateway() -> None:
    device = queue(1.0, 2.0, 3.0, max_per_read=2)
    assert device.read_offline(None, 0) == (3, 2)
    assert device.read_offline(5, 0) == (1,)


def test_a_question_names_the_best_and_takes_nothing() -> None:
    device = queue(1.0, 3.0, 2.0)
    question = Read(2, 3, (Held(2, 3.0), Held(3, 2.0)))
    assert device.ask(2, 0) == device.ask(2, 0) == question


def test_what_is_shown_retracted_expired_or_pushed_out_is_gone() -> None:
    device = queue(1.0, 2.0, 3.0, 4.0)
    device.forward(Forward(5, ""), rank=9.0, expires_at=10)
    device.forward(Forward(6, "", instead_of=1), rank=0.5, expires_at=None)
    assert device.show(Show((2,), "")) == (2,)
    device.retract(Retract(3, ""))
    assert device.read_offline(None, 10) == (4, 6)


def test_a_new_rank_counts() -> None:
    device = queue(1.0, 2.0)
    device.rerank(Rerank(1, 5.0))
    device.rerank(Rerank(77, 5.0))
    assert device.read_offline(None, 0) == (1, 2)
