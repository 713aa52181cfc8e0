"""The channel that tests and rehearsals play."""

from __future__ import annotations

from lasthop.delivery.scripted import ScriptedChannel
from lasthop.wire.hop.frames import Ack, Close, CloseCode, Hello, Ping
from tests.delivery.board import WELCOME, Board


def test_what_the_script_says_is_heard_and_answered() -> None:
    board = Board()
    channel = ScriptedChannel(board)
    channel.say(Hello(app="shop", device="phone"))
    assert channel.number == 1
    assert channel.take() == [WELCOME]
    assert channel.take() == []


def test_a_pause_is_told() -> None:
    board = Board()
    channel = ScriptedChannel(board)
    channel.pause(True)
    channel.pause(False)
    assert board.pauses == [(1, True), (1, False)]


def test_the_end_comes_once() -> None:
    board = Board()
    channel = ScriptedChannel(board)
    channel.close(CloseCode.OVERLOADED, "full", 100)
    channel.hang_up()
    channel.close(CloseCode.BYE, "again")
    channel.say(Ack(1, 1))
    channel.send([Ping()])
    channel.pause(True)
    assert channel.closed == Close(CloseCode.OVERLOADED, 100, "full")
    assert board.ends == [(1, "full")]
    assert (board.frames, board.pauses, channel.take()) == ([], [], [])
