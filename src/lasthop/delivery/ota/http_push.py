"""One push that is posted to a client of OTA-HTTP: its form, and what the client's answer means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lasthop.delivery.carrier import (
    Aborted,
    Confirmed,
    NotReached,
    Outcome,
    Parcel,
    ReturnedContent as Returned,
    Unanswered,
    Unfit,
)
from lasthop.errors import Unsupported
from lasthop.wire.ota import http
from lasthop.wire.ota.http import Registration
from lasthop.wire.ota.terminal import described
from lasthop.wire.ota.transform import PushContent, application_of, for_http

Report: TypeAlias = Callable[[Outcome], None]


class HttpPush:
    """A push, from when the carrier takes it until its outcome is known."""

    __slots__ = ("_report", "begun", "parcel", "stale")

    def __init__(self, parcel: Parcel, report: Report) -> None:
        self.parcel = parcel
        self._report: Report | None = report
        self.stale = 0
        """How often in a row the client has called its registration stale."""
        self.begun = False
        """Whether a byte of the push may have left."""

    def end(self, outcome: Outcome) -> None:
        """Report the outcome; only the first one counts."""
        report, self._report = self._report, None
        if report is not None:
            report(outcome)


def adapt_push(parcel: Parcel, registration: Registration) -> PushContent:
    """Return the push in the form that this client accepts; raise Rejected if there is none."""
    terminal = registration.terminal.known_as(described(parcel.capabilities))
    push = for_http(PushContent(parcel.content_type, parcel.headers, parcel.body), terminal)
    application = application_of(push)
    known = registration.applications
    if known is not None and application is not None and application not in known:
        raise Unsupported("the client has no such application", application=application)
    return push


def outcome_of(result: http.Verdict) -> Outcome:
    """Return what a client's answer to a push means for it."""
    match result:
        case http.PushAccepted(content=None):
            return Confirmed()
        case http.PushAccepted():
            content = result.content
            assert content is not None
            return Confirmed(Returned(content.content_type, content.body, content.headers))
        case http.PushRejected():
            return Aborted(result.reason)
        case http.Stale():
            return Aborted(0)
        case http.TooMuch():
            return Unfit(3006, result.reason)
        case http.NotTaken():
            return NotReached(result.reason)
        case http.Unclear():
            return Unanswered(result.reason)
