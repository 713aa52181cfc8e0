"""Telling a device why a message that it sent was refused."""

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
    """Send a device the reason for a refusal, even if the device asked for no answer. `key` is the
    device's own key of the message."""
    device = session.device
    answer = Submission(
        target=Target(TargetKind.DEVICE, device.name),
        body=msgspec.json.encode({"code": error.code, "detail": str(error)}),
        content_type=ERROR_TYPE,
        in_reply_to=key,
        reliability=Reliability.EXACTLY_ONCE,
    )
    # A full mailbox has no room for the reason either, and preferences that let nothing through
    # also apply to this message.
    with suppress(QuotaExceeded, Contradiction):
        acceptance.accept(device.app, GATEWAY, [answer], now)
