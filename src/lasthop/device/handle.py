"""Handles: the progress and outcome of a message that this device sent."""

from __future__ import annotations

import asyncio
from enum import IntEnum
from typing import Literal

import msgspec

from lasthop.device.message import Refusal
from lasthop.errors import Rejected


class Status(IntEnum):
    """The progress of a message that this device sent; it only increases."""

    QUEUED = 0
    """The message is durable on this device."""
    SENT = 1
    """The message has left this device at least once."""
    ACCEPTED = 2
    """The gateway has the message: it will not be lost."""
    REFUSED = 3
    """The gateway will not act on the message, and said why."""


class Settlement(msgspec.Struct, frozen=True):
    """The decision about an atomic message (`released` or `aborted`) or a claimable one (`claimed`
    or `unclaimed`)."""

    outcome: Literal["released", "aborted", "claimed", "unclaimed"]
    by: str = ""
    """The name of the device that claimed the message; empty if none did."""


class MessageRefused(Rejected):
    """The gateway refused a message; `reason` is the stable code of the refusal."""

    code = "message_refused"

    def __init__(self, refusal: Refusal, message_id: str) -> None:
        super().__init__(refusal.detail, reason=refusal.code, id=message_id)
        self.reason = refusal.code


class MessageHandle:
    """The progress of one message that this device sent: await `accepted`, or look at `status`."""

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
        """The number by which this device knows the message; the gateway gives it an id of its
        own."""
        self._status = Status.QUEUED
        self._refusal: Refusal | None = None
        self._failure: BaseException | None = None
        self._settlement: Settlement | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def id(self) -> str:
        """The message's key on this device, in sixteen hexadecimal digits."""
        return f"{self.key:016x}"

    @property
    def status(self) -> Status:
        """The progress of the message so far."""
        return self._status

    @property
    def refusal(self) -> Refusal | None:
        """The reason why the gateway refused the message; None if it has not refused it."""
        return self._refusal

    async def reached(self, status: Status, *, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Wait until the message has this status. Raises MessageRefused, TimeoutError after
        `timeout` seconds, or the error that ended the device.

        A message can be refused even after ACCEPTED: the gateway then has the message and will not
        act on it.
        """
        async with asyncio.timeout(timeout):
            while True:
                # Before the status: a refusal may follow after the gateway has accepted the
                # message.
                if self._refusal is not None and status is not Status.REFUSED:
                    raise MessageRefused(self._refusal, self.id)
                if self._status >= status:
                    return
                if self._failure is not None:
                    raise self._failure
                await self._stirred()

    async def settled(self, *, timeout: float | None = None) -> Settlement:  # noqa: ASYNC109
        """Wait for the decision whether an atomic message is shown, or which device acts on a
        claimable one. Raises MessageRefused, TimeoutError after `timeout` seconds, or the error
        that ended the device."""
        async with asyncio.timeout(timeout):
            while self._settlement is None:
                if self._refusal is not None:
                    raise MessageRefused(self._refusal, self.id)
                if self._failure is not None:
                    raise self._failure
                await self._stirred()
            return self._settlement

    def settle(self, settlement: Settlement) -> None:
        """Record the decision about the message, and wake the callers of `settled`."""
        self._settlement = settlement
        self._stir()

    async def accepted(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Wait until the gateway has the message. Raises MessageRefused, TimeoutError after
        `timeout` seconds, or the error that ended the device."""
        await self.reached(Status.ACCEPTED, timeout=timeout)

    def move(self, status: Status, refusal: Refusal | None = None) -> None:
        """Raise the message's status, record a refusal, and wake the callers that wait."""
        self._refusal = refusal or self._refusal
        self._status = max(self._status, status)
        self._stir()

    def fail(self, error: BaseException) -> None:
        """Record that the device has ended with this error, and wake the callers that wait."""
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
