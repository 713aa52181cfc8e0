"""What became of a message that this device sent."""

from __future__ import annotations

import asyncio
from enum import IntEnum
from typing import Literal

import msgspec

from lasthop.device.message import Refusal
from lasthop.errors import Rejected


class Status(IntEnum):
    """How far a message has come; it only moves on."""

    QUEUED = 0
    """Durable on this device."""
    SENT = 1
    """It has left at least once."""
    ACCEPTED = 2
    """The gateway has it: it will not be lost."""
    REFUSED = 3
    """The gateway will not act on it, and said why."""


class Settlement(msgspec.Struct, frozen=True):
    """What was decided about an atomic or claimable message."""

    outcome: Literal["released", "aborted", "claimed", "unclaimed"]
    by: str = ""
    """The device that claimed it."""


class MessageRefused(Rejected):
    """The gateway refused a message; `reason` is its stable code for why."""

    code = "message_refused"

    def __init__(self, refusal: Refusal, message_id: str) -> None:
        super().__init__(refusal.detail, reason=refusal.code, id=message_id)
        self.reason = refusal.code


class MessageHandle:
    """One message on its way."""

    __slots__ = (
        "__weakref__",
        "_failure",
        "_refusal",
        "_settlement",
        "_status",
        "_waiting",
        "key",
    )

    def __init__(self, key: int) -> None:
        self.key = key
        """By which this device knows it; the gateway gives it an id of its own."""
        self._status = Status.QUEUED
        self._refusal: Refusal | None = None
        self._failure: BaseException | None = None
        self._settlement: Settlement | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def id(self) -> str:
        """The key in sixteen digits."""
        return f"{self.key:016x}"

    @property
    def status(self) -> Status:
        """How far it has come."""
        return self._status

    @property
    def refusal(self) -> Refusal | None:
        """Why the gateway refused it, if it did."""
        return self._refusal

    async def reached(self, status: Status, *, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Until it has come this far. Raises MessageRefused, TimeoutError, or what ended the
        device.

        A refusal may follow after ACCEPTED: the gateway has the message then, and will not act on
        it.
        """
        async with asyncio.timeout(timeout):
            while True:
                if self._refusal is not None and status is not Status.REFUSED:
                    raise MessageRefused(self._refusal, self.id)
                if self._status >= status:
                    return
                if self._failure is not None:
                    raise self._failure
                await self._stirred()

    async def settled(self, *, timeout: float | None = None) -> Settlement:  # noqa: ASYNC109
        """Until it is decided what becomes of an atomic message, or who acts on a claimable one.
        Raises MessageRefused, TimeoutError, or what ended the device."""
        async with asyncio.timeout(timeout):
            while self._settlement is None:
                if self._refusal is not None:
                    raise MessageRefused(self._refusal, self.id)
                if self._failure is not None:
                    raise self._failure
                await self._stirred()
            return self._settlement

    def settle(self, settlement: Settlement) -> None:
        """It is decided."""
        self._settlement = settlement
        self._stir()

    async def accepted(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Until the gateway has it."""
        await self.reached(Status.ACCEPTED, timeout=timeout)

    def move(self, status: Status, refusal: Refusal | None = None) -> None:
        """It has come this far."""
        self._refusal = refusal or self._refusal
        self._status = max(self._status, status)
        self._stir()

    def fail(self, error: BaseException) -> None:
        """The device has ended: it will come no further in this life."""
        self._failure = error
        self._stir()

    async def _stirred(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _stir(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
