"""What a request to receive asks for: topics, a form, a beginning, and filters."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.access.ntfy.ntfy_errors import NtfyError
from lasthop.access.ntfy.ntfy_event import NtfyEvent
from lasthop.access.ntfy.ntfy_parameters import NtfyParameters
from lasthop.access.ntfy.ntfy_values import parse_priority
from lasthop.access.receive.encoded import ReceiveForm
from lasthop.access.receive.topic_listener import Filter
from lasthop.clock import Micros
from lasthop.core.names import check_topic
from lasthop.core.topics.topic_history import ALL, NONE, Since, parse_last, parse_since
from lasthop.errors import InvalidRequest, Rejected

FORMS = {
    "json": ReceiveForm.JSON,
    "sse": ReceiveForm.SSE,
    "raw": ReceiveForm.RAW,
    "ws": ReceiveForm.WS,
}


@dataclass(frozen=True, slots=True)
class ReceiveRequest:
    """A request to receive, valid in form."""

    topics: tuple[str, ...]
    form: ReceiveForm
    since: Since
    poll: bool
    scheduled: bool
    wants: Filter | None
    ignored: list[str]
    """Parameters that look meant for the gateway, and that it does not know."""

    @property
    def named(self) -> str:
        """The topics between commas, as signals have them."""
        return ",".join(self.topics)


def topics_in(text: str, most: int) -> tuple[str, ...]:
    """Return the topics of a path, each once."""
    found = tuple(dict.fromkeys(each for each in text.split(",") if each))
    if not found or len(found) > most:
        raise NtfyError(40009, f"1 to {most} topics are needed", field="topic")
    for topic in found:
        try:
            check_topic(topic)
        except Rejected as error:
            raise NtfyError(40009, error.detail, field="topic") from None
    return found


def asking_of(
    topics: tuple[str, ...], form: ReceiveForm, parameters: NtfyParameters, now: Micros
) -> ReceiveRequest:
    """Return what the parameters of a request ask for; raise an error for wrong ones."""
    if "as" in parameters.query:
        raise NtfyError(40000, "this gateway has no durable cursors over HTTP", field="as")
    poll = parameters.true("poll")
    return ReceiveRequest(
        topics,
        form,
        _since(parameters, now, poll=poll),
        poll,
        parameters.true("scheduled"),
        _filter(parameters),
        parameters.unknown(),
    )


def _since(parameters: NtfyParameters, now: Micros, *, poll: bool) -> Since:
    text, last = parameters.get("since"), parameters.get("last")
    try:
        if last:
            if text:
                raise InvalidRequest("give since or last", field="since")
            return parse_last(last)
        if not text:
            return ALL if poll else NONE
        if len(text) == 12 and text.isascii() and text.isalnum() and text[0] != "0":
            return ALL  # No message of this gateway has such an id: it is of another server.
        return parse_since(text, now)
    except NtfyError:
        raise
    except InvalidRequest as error:
        raise NtfyError(40008, error.detail, **error.fields) from None


def _filter(parameters: NtfyParameters) -> Filter | None:
    exact = {name: parameters.get(name) for name in ("id", "message", "title")}
    tags = frozenset(tag for tag in parameters.get("tags").split(",") if tag)
    given = parameters.get("priority")
    priorities = frozenset(parse_priority(p.strip()) for p in given.split(",")) if given else None
    if not any(exact.values()) and not tags and priorities is None:
        return None

    def wants(event: NtfyEvent) -> bool:
        for name, value in exact.items():
            if value and getattr(event, name) != value:
                return False
        if tags and not tags.issubset(event.tags):
            return False
        return priorities is None or event.event != "message" or (event.priority or 3) in priorities

    return wants
