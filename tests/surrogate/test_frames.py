"""Frames between the gateway and a worker, and classes found by name."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from lasthop.surrogate import Surrogate
from lasthop.surrogate.frames import (
    MAX_FRAME,
    Begin,
    Done,
    Frames,
    FrameTooLong,
    InputFailed,
    Order,
    Report,
    Work,
    decode_order,
    decode_report,
    encode,
    frame,
)
from lasthop.surrogate.loading import CannotLoad, load
from lasthop.surrogate.mail import Content, Mail, MailAction, OutgoingMail, Verdict, Way

MAIL = Mail(1, Way.FROM_DEVICE, "phone", 2, Content(b"x", headers=(("a", "b"),)), 3)
VERDICT = Verdict(
    MailAction.ANSWER,
    Content(b"y"),
    sends=(OutgoingMail("device:x", Content()),),
    state={"a": b"b"},
)
ORDERS: list[Order] = [Begin({"a": b"b"}, 5), Work([MAIL, MAIL])]
REPORTS: list[Report] = [Done(1, VERDICT), InputFailed(1, "why", "more")]


@given(st.lists(st.integers(1, 40)))
def test_frames_come_whole_however_they_are_cut(cuts: list[int]) -> None:
    data = b"".join(map(frame, [*ORDERS, *REPORTS]))
    frames, found = Frames(), list[bytes]()
    for size in [*cuts, len(data)]:
        found += frames.receive(data[:size])
        data = data[size:]
    assert [decode_order(one) for one in found[:2]] == ORDERS
    assert [decode_report(one) for one in found[2:]] == REPORTS


def test_a_frame_has_a_limit() -> None:
    with pytest.raises(FrameTooLong, match="too many for one frame"):
        frame(Begin({"a": bytes(MAX_FRAME)}, 1))
    with pytest.raises(FrameTooLong, match="a frame has"):
        Frames().receive((MAX_FRAME + 1).to_bytes(4))


@given(st.binary(max_size=200))
def test_nonsense_of_a_worker_is_an_error_and_nothing_else(data: bytes) -> None:
    try:
        decode_report(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return


@pytest.mark.parametrize(
    "report",
    [
        ["done", 1, [9]],
        ["done", 1, [0, None, "x" * 2000]],
        ["done", 1, [0, None, "", [["device:x", [b""], 10]]]],
        ["done", 1, [0, None, "", [["device:x", [b""], 4, 0]]]],
        ["done", 1, [1, [b"", "x" * 600]]],
        ["done", "one", []],
        ["work", []],
    ],
)
def test_reports_have_their_form(report: list[object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_report(msgspec.msgpack.encode(report))
    assert encode(Done(1, VERDICT))


def test_a_class_is_found_by_its_name() -> None:
    assert load("lasthop.surrogate:Surrogate") is Surrogate


@pytest.mark.parametrize(
    "place, why",
    [
        ("lasthop.surrogate", "'lasthop.surrogate' does not have the form package.module:Class"),
        ("lasthop.surrogate:", "does not have the form package.module:Class"),
        ("lasthop.surrogate:Nobody", "lasthop.surrogate has no Nobody"),
        ("lasthop.surrogate:Mail", "is not a subclass of lasthop.surrogate.Surrogate"),
        ("lasthop.surrogate:cacheable", "is not a subclass of lasthop.surrogate.Surrogate"),
    ],
)
def test_what_is_no_surrogate_is_told_so(place: str, why: str) -> None:
    with pytest.raises(CannotLoad, match=why):
        load(place)


def test_a_module_that_is_not_there_says_so() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        load("no_such_module:Class")


def test_the_public_names_are_few_and_there() -> None:
    import lasthop.surrogate  # noqa: PLC0415

    text = Path(lasthop.surrogate.__file__).read_text("utf-8")
    for name in lasthop.surrogate.__all__:
        assert hasattr(lasthop.surrogate, name)
        assert name in text
