"""Telling a device that what it sent was refused, and why."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from lasthop.clock import Micros
from lasthop.core.publishing.acceptance import Acceptance
from lasthop.core.publishing.submission import Submission
from lasthop.core.session import Session
from lasthop.errors import Contradiction, LasthopError, QuotaExceeded
from lasthop.message import GATEWAY, Reliability, Target, TargetKind
from lasthop.wire.hop.frames import ERROR_TYPE


def refuse(
    acceptance: Acceptance, session: Session, key: int | None, error: LasthopError, now: Micros
) -> None:
    """Answer with the reason; a device that asked for nothing back is told all the same. `key` is
    what the device itself calls the message."""
    device = session.device
    answer = Submission(
        target=Target(TargetKind.DEVICE, device.name),
        body=msgspec.json.encode({"code": error.code, "detail": str(error)}),
        content_type=ERROR_TYPE,
        in_reply_to=key,
        reliability=Reliability.EXACTLY_ONCE,
    )
    # A full mailbox has no room for the reason either, and who never wants to hear anything does
    # not hear this.
    with suppress(QuotaExceeded, Contradiction):
        acceptance.accept(device.app, GATEWAY, [answer], now)
