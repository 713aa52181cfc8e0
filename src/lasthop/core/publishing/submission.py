"""A request to send a message, before the gateway has accepted it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lasthop.clock import Micros
from lasthop.core.publishing.copying import maker
from lasthop.decision.delay import MAX_DELAY
from lasthop.errors import Expired, InvalidRequest
from lasthop.message import (
    DEFAULT_CONTENT_TYPE,
    DEFAULT_PRIORITY,
    Binding,
    DeliveryMethod,
    Handling,
    Message,
    Quality,
    Reliability,
    Target,
    TargetKind,
)


class Submission(msgspec.Struct, gc=False):
    """A request to send a message, valid in form. Times are absolute."""

    target: Target
    body: bytes = b""
    content_type: str = DEFAULT_CONTENT_TYPE
    title: str | None = None
    priority: int = DEFAULT_PRIORITY
    rank: float = 0.0
    deliver_after: Micros | None = None
    deliver_before: Micros | None = None
    delay_tolerance: Micros | None = None
    reliability: Reliability = Reliability.EXACTLY_ONCE
    method: DeliveryMethod = DeliveryMethod.NOT_SPECIFIED
    handling: Handling = Handling.FOREGROUND
    queue: str | None = None
    replace_key: str | None = None
    in_reply_to: int | None = None
    correlation: int | None = None
    reply_before: Micros | None = None
    headers: tuple[tuple[str, str], ...] = ()
    quality: Quality | None = None
    answer: bool = False
    binding: Binding = Binding.NONE
    stream: bool = False
    pull: bool = False
    immediate: bool = False
    unsaid: frozenset[str] = frozenset()
    """Those of `handling`, `reliability` and `pull` that the sender leaves to the app's
    behaviour."""


SAID = tuple(name for name in Submission.__struct_fields__ if name != "unsaid")
"""The fields that a message gets from its submission, under the same names."""

message_of = maker(
    Message,
    {name: name for name in SAID},
    [name for name in Message.__struct_fields__ if name not in SAID],
)
"""Makes the message of a submission: `message_of(submission, key=, salt=, app=, source=,
accepted_at=)`."""

submission_of: Callable[[Message], Submission] = maker(
    Submission, {name: name for name in SAID}, ()
)
"""Makes a submission that would send a message again."""


def check_immediate(submission: Submission) -> None:
    """Raise an error if a message that is only for those who are there asks for something that can
    only be had by waiting."""
    if submission.deliver_after is not None:
        raise cannot_wait("a time before which it is not delivered")
    if submission.target.kind is TargetKind.PUBLISHER:
        raise cannot_wait("a publisher, who fetches it")


def cannot_wait(what: str) -> InvalidRequest:
    """Return the error for an immediate message that would have to wait for something."""
    return InvalidRequest(f"an immediate message cannot wait for {what}", field="immediate")


def check_times(submission: Submission, now: Micros) -> None:
    """Raise an error if a submission is too late for every device, or if its delay tolerance is out
    of range."""
    tolerance = submission.delay_tolerance
    if tolerance is not None and not 0 <= tolerance <= MAX_DELAY:
        raise InvalidRequest(
            "delay_tolerance: a delay must be between 0 and 31 days", field="delay_tolerance"
        )
    before, after = submission.deliver_before, submission.deliver_after
    if before is None:
        return
    if before <= now:
        raise Expired("deliver_before has passed already", deliver_before=before)
    if after is not None and after >= before:
        raise InvalidRequest(
            "deliver_after must come before deliver_before",
            deliver_after=after,
            deliver_before=before,
        )
