"""What became of the messages that this device sent: handles, and answers that somebody awaits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from weakref import WeakValueDictionary

from lasthop.device.handle import MessageHandle, MessageRefused, Status
from lasthop.device.message import Message, Refusal
from lasthop.device.session import (
    Accepted,
    Answered,
    Happening,
    Lapsed,
    LinksWanted,
    Refused,
    Sent,
)

log = logging.getLogger("lasthop.device")


class Correspondence:
    """Tells those who hold a handle or wait for an answer. A handle that nobody holds is gone."""

    def __init__(self) -> None:
        self._handles: WeakValueDictionary[int, MessageHandle] = WeakValueDictionary()
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self.on_refused: Callable[[str, Refusal], None] | None = None
        self.on_links_wanted: Callable[[tuple[str, ...]], None] | None = None

    def queued(self, key: int, answer: asyncio.Future[Message] | None) -> MessageHandle:
        """A message is on its way; `answer` waits for what is said to it."""
        handle = self._handles[key] = MessageHandle(key)
        if answer is not None:
            self._answers[key] = answer
        return handle

    def forget_answer(self, key: int) -> None:
        """Nobody waits for it any more."""
        self._answers.pop(key, None)

    def tell(self, happening: Happening) -> None:
        """Pass on what the session has learned."""
        match happening:
            case Sent(key):
                self._move(key, Status.SENT)
            case Accepted(key):
                self._move(key, Status.ACCEPTED)
            case Refused(key, refusal):
                self._refuse(key, refusal)
            case Answered(key, message):
                answer = self._answers.get(key)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            case LinksWanted(links):
                if self.on_links_wanted is not None:
                    self.on_links_wanted(links)
            case Lapsed(message):
                log.info("message %s came too late to be of use", message.id)

    def give_up(self, error: BaseException) -> None:
        """The device has ended: whoever waits is told why."""
        for handle in list(self._handles.values()):
            handle.fail(error)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)

    def _move(self, key: int, status: Status) -> None:
        handle = self._handles.get(key)
        if handle is not None:
            handle.move(status)

    def _refuse(self, key: int, refusal: Refusal) -> None:
        handle, answer = self._handles.get(key), self._answers.get(key)
        if handle is not None:
            handle.move(Status.REFUSED, refusal)
        if answer is not None and not answer.done():
            answer.set_exception(MessageRefused(refusal, f"{key:016x}"))
        if handle is None and answer is None:
            log.warning("the gateway refused message %016x: %s", key, refusal.detail)
            if self.on_refused is not None:
                self.on_refused(f"{key:016x}", refusal)
