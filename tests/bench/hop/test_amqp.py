"""The AMQP client of the benchmarks, without a broker."""

from __future__ import annotations

import struct

import pytest

from bench.hop import amqp


def frames(pieces: list[bytes]) -> list[tuple[int, bytes]]:
    parser = amqp.Parser()
    return [frame for piece in pieces for frame in parser.feed(piece)]


def test_a_method_has_its_class_and_number_first() -> None:
    assert amqp.method(amqp.CHANNEL_OPEN, b"\0").hex() == "010001000000050014000a00ce"


def test_an_ack_may_cover_all_before_it() -> None:
    [(kind, payload)] = frames([amqp.ack(258, multiple=True)])
    assert kind == amqp.METHOD
    assert payload == struct.pack(">HHQB", 60, 80, 258, 1)


def test_a_message_is_three_frames_and_persistent() -> None:
    body = b"x" * 256
    published = frames([amqp.publish_head("queue", len(body)) + body + amqp.END])
    assert [kind for kind, _ in published] == [amqp.METHOD, amqp.HEADER, amqp.BODY]
    assert published[0][1] == struct.pack(">HHH", 60, 40, 0) + b"\0" + b"\x05queue" + b"\0"
    assert published[1][1] == struct.pack(">HHQHB", 60, 0, 256, 0x1000, amqp.PERSISTENT)
    assert published[2][1] == body


def test_frames_are_found_however_the_stream_is_cut() -> None:
    stream = amqp.ack(1, multiple=False) + amqp.publish_head("q", 5) + b"hello" + amqp.END
    whole = frames([stream])
    assert len(whole) == 4
    assert frames([stream[i : i + 1] for i in range(len(stream))]) == whole
    assert frames([stream + b"\x01"]) == whole


def test_a_frame_that_does_not_end_is_refused() -> None:
    with pytest.raises(amqp.Refused):
        frames([amqp.frame(amqp.BODY, 1, b"hello")[:-1] + b"\0"])


def test_a_table_names_its_values() -> None:
    assert amqp.table({"k": "v"}) == b"\0\0\0\x08" + b"\x01k" + b"S" + b"\0\0\0\x01v"


def test_confirms_count_up_to_the_first_gap() -> None:
    confirms = amqp.Confirms()
    counts: list[int] = []
    for tag, multiple in ((1, False), (3, False), (5, False), (2, False), (4, True), (9, True)):
        confirms.add(tag, multiple=multiple)
        counts.append(confirms.count)
    assert counts == [1, 1, 1, 3, 5, 9]
    confirms.add(7, multiple=False)
    confirms.add(6, multiple=True)
    assert confirms.count == 9
