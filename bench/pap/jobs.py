"""The jobs and orders that the processes of a run receive, and their answers."""

from __future__ import annotations

import msgspec


class Sink(msgspec.Struct, tag=True):
    """The job of the process that acts as all clients: it receives datagrams at their push port."""

    port: int


class Ready(msgspec.Struct):
    """The answer of a process that can begin."""


class Expect(msgspec.Struct):
    """The order to wait for `count` datagrams, for at most `seconds` seconds."""

    count: int
    seconds: float


class Arrived(msgspec.Struct):
    """When each datagram came, by its number, on the clock that all processes share."""

    times: dict[int, float]
    duplicates: int
    strangers: int


class Initiator(msgspec.Struct, tag=True):
    """The job of a push initiator that submits over a number of connections."""

    port: int
    path: str
    connections: int


class Submit(msgspec.Struct):
    """The order to submit pushes, one in flight on each connection; at `rate` per second, or as
    fast as they are accepted."""

    run: str
    first: int
    count: int
    hosts: list[str]
    rate: float = 0.0


class Submitted(msgspec.Struct):
    """When each push was due and when it was answered, and how many were refused."""

    began: dict[int, float]
    answered: dict[int, float]
    refused: int
    why: str = ""
