"""What the processes of a run are told, and what they answer."""

from __future__ import annotations

import msgspec


class Sink(msgspec.Struct, tag=True):
    """Be the clients: take datagrams at their push port."""

    port: int


class Ready(msgspec.Struct):
    """The process can begin."""


class Expect(msgspec.Struct):
    """So many datagrams will come within so many seconds, or not at all."""

    count: int
    seconds: float


class Arrived(msgspec.Struct):
    """When each came, by its number, on the clock that all processes share."""

    times: dict[int, float]
    duplicates: int
    strangers: int


class Initiator(msgspec.Struct, tag=True):
    """Be an initiator: submit pushes over so many connections."""

    port: int
    path: str
    connections: int


class Submit(msgspec.Struct):
    """These, one in flight on each connection; `rate` a second, or as fast as they are taken."""

    run: str
    first: int
    count: int
    hosts: list[str]
    rate: float = 0.0


class Submitted(msgspec.Struct):
    """When each was due and when it was answered; how many were refused."""

    began: dict[int, float]
    answered: dict[int, float]
    refused: int
    why: str = ""
