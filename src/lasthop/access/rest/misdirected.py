"""Requests in the form of another service, by a script that still has its paths.

Taken for the one-line form, `POST /message` of a Gotify script would be a publication to a topic
that nobody reads, answered as accepted.
"""

from __future__ import annotations

from typing import Final

from lasthop.access.callers import Caller
from lasthop.core.gateway import Gateway
from lasthop.errors import NotFound

PATHS: Final = {
    "/message": "Gotify",
    "/notify": "Apprise",
    "/notify/": "Apprise",
    "/1/messages.json": "Pushover",
    "/fcm/send": "Firebase Cloud Messaging",
    "/v1/projects/": "Firebase Cloud Messaging",
    "/3/device/": "the Apple Push Notification service",
    "/services/": "Slack",
    "/hooks/": "Mattermost",
    "/api/webhooks/": "Discord",
    "/api/v1/notifications": "OneSignal",
    "/_matrix/push/v1/notify": "Matrix",
    "/metrics/job/": "the Pushgateway of Prometheus",
}
"""The paths by which other services accept messages; one that ends with a slash stands for all
paths below it."""


def misdirected(path: str) -> NotFound | None:
    """Return the error for a path of another service, or None for other paths."""
    service = PATHS.get(path) or next(
        (name for start, name in PATHS.items() if start.endswith("/") and path.startswith(start)),
        None,
    )
    if service is None:
        return None
    return NotFound(
        f"{path!r} is a path of {service}, which this gateway does not speak; nothing was"
        " published; POST /TOPIC and POST /v1/messages publish"
    )


def is_topic(gateway: Gateway, caller: Caller, topic: str) -> bool:
    """Whether somebody has made a topic, by advertising it or by subscribing to its very name."""
    topics = gateway.topics
    return topics.advertised.find(caller.app, topic) is not None or topics.index.has_subscribers(
        caller.app, topic
    )
