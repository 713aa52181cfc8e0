"""Drafts of the messages that a device sends: from the arguments of the API to a frame's
headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict, Unpack

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.decision.delay import MAX_DELAY
from lasthop.decision.preferences import Preferences
from lasthop.device.message import Message
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session import DeviceSession
from lasthop.device.session_core import milliseconds
from lasthop.errors import Expired, InvalidRequest
from lasthop.message import (
    DEFAULT_CONTENT_TYPE,
    DEFAULT_PRIORITY,
    Binding,
    Handling,
    Reliability,
    TargetKind,
)
from lasthop.wire.hop.frames import Headers, MessageFrame, Operation
from lasthop.wire.hop.services import Question, Service, check_service, encode
from lasthop.wire.hop.topics import XPATH_HEADER

BINARY = "application/octet-stream"
JSON = "application/json"


class Draft(msgspec.Struct, frozen=True):
    """A message that is ready to be queued."""

    headers: Headers
    body: bytes = b""
    topic: str | None = None
    expects: Expectation | None = None

    def frame(self) -> MessageFrame:
        """Return the draft as a frame without key and sequence number, so that its size can be
        checked."""
        return MessageFrame(None, None, self.topic, self.headers, self.body)

    def queue(self, session: DeviceSession, now: Micros) -> int:
        """Queue the draft in the session; return the message's key."""
        topic, headers, body = self.topic, self.headers, self.body
        if self.expects is None:
            return session.queue(now, topic=topic, headers=headers, body=body)
        return session.requests.ask(now, self.expects, topic=topic, headers=headers, body=body)


class Options(TypedDict, total=False):
    """Options of every message, all of them optional.

    `title` is a headline for people; `priority` is 0 to 9 (the default is 4, 9 the most urgent);
    `rank` compares the messages of a ranked topic; `reliability` (exactly once by default) and
    `handling` are those of `lasthop.message`; `queue` names the preferences that apply; `headers`
    are the application's own.
    """

    content_type: str
    """The media type of the body; by default plain text for `str` and unknown bytes for `bytes`."""
    title: str
    priority: int
    rank: float
    expires_in: float
    """Seconds after which the message is not delivered any more."""
    delay_tolerance: float
    """Seconds, at most 31 days, that this device and the gateway may hold the message for a better
    link or moment, if the preferences would allow its queue a longer time."""
    immediate: bool
    """Whether the message is only for those whom the gateway can reach when it gets the message; if
    it can reach nobody, the message is refused with `nobody_there`."""
    reliability: Reliability
    handling: Handling
    queue: str
    headers: Mapping[str, str]
    atomic: bool
    """For a group: all members are shown the message, or none is. Needs `expires_in`."""
    claim: bool
    """For a group: only the member that claims the message first may act on it."""


def message(
    target: str,
    body: bytes | str,
    *,
    reply_within: Micros | None = None,
    expects: Expectation | None = None,
    **options: Unpack[Options],
) -> Draft:
    """Return the draft of a message to `device:NAME`, `user:NAME`, `topic:NAME`, `service:NAME`,
    `group:NAME`, `queue:NAME` or `app:`.

    With `reply_within` the message is a request, which is not delivered after that time; `expects`
    says how its answer is handed over. Raises InvalidRequest for any other target.
    """
    kind, colon, name = target.partition(":")
    if not colon or kind not in _ADDRESSABLE:
        raise InvalidRequest(
            "a target is device:NAME, user:NAME, topic:NAME, service:NAME, group:NAME, queue:NAME"
            " or app:",
            target=target,
        )
    topic = name if kind == TargetKind.TOPIC else None
    if reply_within is not None:
        expects = msgspec.structs.replace(expects or Expectation(), target=target)
    return Draft(
        _headers(
            body,
            options,
            to=None if topic else target,
            reply_within=reply_within,
            deliver_within=reply_within,
            gather=expects is not None and expects.gather,
        ),
        _bytes(body),
        topic,
        expects=expects,
    )


_ADDRESSABLE = set(TargetKind) - {TargetKind.PUSH, TargetKind.PUBLISHER}


def membership(target: str, *, on: bool) -> Draft:
    """Return the draft of a request to join or leave `group:NAME`, or to start or stop taking from
    `queue:NAME`."""
    operation = Operation.JOIN if on else Operation.LEAVE
    return Draft(Headers(operation=operation, to=target))


def claim(of: Message) -> Draft:
    """Return the draft of a claim to a message of a group. Raises InvalidRequest if the message is
    not claimable."""
    if of.headers.binding is not Binding.CLAIM or of.frame.key is None:
        raise InvalidRequest("this message cannot be claimed", id=of.id)
    return Draft(Headers(operation=Operation.CLAIM, in_reply_to=of.frame.key))


_OF_MESSAGES = frozenset({"expires_in", "reliability", "rank", "delay_tolerance", "immediate"})


def stream(target: str, **options: Unpack[Options]) -> Draft:
    """Return the draft of the message that opens a stream to `device:NAME`, or to `publisher:`."""
    kind, colon, name = target.partition(":")
    one = (kind == TargetKind.DEVICE and name) or (kind == TargetKind.PUBLISHER and not name)
    if not colon or not one:
        raise InvalidRequest("a stream must go to device:NAME or to publisher:", target=target)
    if options.keys() & _OF_MESSAGES:
        raise InvalidRequest(
            "a stream cannot have a deadline, rank, reliability or delay, or be immediate"
        )
    headers = _headers(b"", options, to=target)
    return Draft(msgspec.structs.replace(headers, stream=True))


def reply(
    to: Message,
    body: bytes | str,
    now: Micros,
    *,
    reply_within: Micros | None = None,
    expects: Expectation | None = None,
    **options: Unpack[Options],
) -> Draft:
    """Return the draft of the answer to a message; it is not delivered after the sender stops
    waiting. With `reply_within` the answer is a request itself. Raises Expired if the sender no
    longer waits."""
    before = to.reply_before
    if before is not None and now >= before:
        raise Expired("the sender no longer waits for an answer", id=to.id)
    if to.frame.key is None:
        raise InvalidRequest("a message without a key cannot be answered")
    headers = _headers(
        body,
        options,
        operation=Operation.REPLY,
        in_reply_to=to.frame.key,
        to=to.source,
        correlation=to.headers.correlation,
        reply_within=reply_within,
        deliver_within=None if before is None else before - now,
    )
    if reply_within is not None:
        expects = msgspec.structs.replace(expects or Expectation(), target=to.source or "")
    return Draft(headers, _bytes(body), expects=expects)


def offer(service: Service) -> Draft:
    """Return the draft that offers a service of this device. Raises InvalidRequest if the service's
    description is invalid."""
    headers = Headers(operation=Operation.OFFER, content_type=JSON)
    return Draft(headers, encode(check_service(service)))


def withdrawal(name: str) -> Draft:
    """Return the draft that withdraws a service of this device."""
    return Draft(Headers(operation=Operation.WITHDRAW), name.encode())


def question(wanted: Question, reply_within: Micros) -> Draft:
    """Return the draft of a question to the gateway for the services of the app."""
    headers = Headers(
        operation=Operation.FIND, content_type=JSON, reply_within=milliseconds(reply_within)
    )
    return Draft(headers, encode(wanted), expects=Expectation())


class SubscriptionOptions(TypedDict, total=False):
    """Options of a subscription. With any option other than `xpath` the topic is a ranked topic.

    `max_per_day` limits the messages shown at the `times` of one day; `zone` is the user's time
    zone (IANA; by default the device's); `prefetch_limit` is the largest number of unread messages
    that are sent ahead, for policies that have such a limit.
    """

    mode: Literal["on-line", "on-demand"]
    """`on-line`: messages are shown as soon as possible; `on-demand` (the default): when the user
    reads."""
    max: int
    """The largest number of messages that one read or catch-up returns: the best ones."""
    xpath: str
    """An XPath expression that an XML message must match; an empty text removes the filter. This
    option alone does not make the topic a ranked topic."""
    threshold: float
    """The lowest rank of messages that are delivered; messages with a lower rank are not."""
    interrupt: float
    """The rank from which a message is shown at once, whatever the mode and the hour."""
    quiet: tuple[str, str]
    """The hours ("22:00", "07:00") during which an on-line topic behaves like an on-demand one."""
    quiet_when: Mapping[str, list[str]]
    """The context in which an on-line topic behaves like an on-demand one."""
    times: list[str]
    """The only times of the day at which an on-line topic is shown ("08:00")."""
    max_per_day: int
    zone: str
    retention: int
    """The number of messages of the topic that the gateway keeps for this device."""
    storage: int
    """The number of unread messages of the topic that this device keeps."""
    policy: str
    """The policy for sending ahead: a name in `lasthop.decision.policies.POLICIES`."""
    prefetch_limit: int
    expiration_threshold: float
    """Seconds that a message must still be valid to be sent ahead, for policies that have such a
    limit."""


def subscription(topic: str, *, on: bool, **options: Unpack[SubscriptionOptions]) -> Draft:
    """Return the draft that subscribes to a topic, or (with `on` False) ends the subscription."""
    if not on:
        return Draft(Headers(operation=Operation.UNSUBSCRIBE), topic=topic)
    terms: dict[str, object] = dict(options)
    xpath = terms.pop("xpath", None)
    extra = () if xpath is None else ((XPATH_HEADER, str(xpath)),)
    if not terms:
        return Draft(Headers(operation=Operation.SUBSCRIBE, extra=extra), topic=topic)
    if "quiet" in options:
        start, end = options["quiet"]
        terms["quiet"] = {"start": start, "end": end}
    headers = Headers(operation=Operation.SUBSCRIBE, content_type=JSON, extra=extra)
    return Draft(headers, msgspec.json.encode(terms), topic)


def preferences(options: Preferences) -> Draft:
    """Return the draft that tells the gateway the device's preferences: links, quiet hours,
    budgets."""
    headers = Headers(operation=Operation.PREFERENCES, content_type=JSON)
    return Draft(headers, msgspec.json.encode(options))


def context(report: Mapping[str, object]) -> Draft:
    """Return the draft of a report of the device's context: battery, place, links."""
    headers = Headers(operation=Operation.CONTEXT, content_type=JSON)
    return Draft(headers, msgspec.json.encode(report))


def read(
    *, read: Message | None = None, topic: str | None = None, count: int = 1, queue_size: int = -1
) -> Draft:
    """Return the draft of a report that the user has read a message, or `count` messages of a
    topic. `queue_size` is the number of messages that were there to read, or -1 if unknown."""
    report = {"count": count}
    if queue_size >= 0:
        report["queue_size"] = queue_size
    if read is not None:
        report["message"] = read.key
        topic = topic or read.topic
    headers = Headers(operation=Operation.READ, content_type=JSON)
    return Draft(headers, msgspec.json.encode(report), topic)


def _headers(
    body: bytes | str,
    options: Options,
    *,
    to: str | None = None,
    reply_within: Micros | None = None,
    deliver_within: Micros | None = None,
    operation: Operation = Operation.DATA,
    in_reply_to: int | None = None,
    correlation: int | None = None,
    gather: bool = False,
) -> Headers:
    default_type = DEFAULT_CONTENT_TYPE if isinstance(body, str) else BINARY
    expires_in = options.get("expires_in")
    limits = [] if deliver_within is None else [deliver_within]
    if expires_in is not None:
        limits.append(round(expires_in * SECOND))
    return Headers(
        content_type=options.get("content_type", default_type),
        priority=_priority(options.get("priority", DEFAULT_PRIORITY)),
        deliver_within=milliseconds(min(limits)) if limits else None,
        in_reply_to=in_reply_to,
        reply_within=None if reply_within is None else milliseconds(reply_within),
        operation=operation,
        handling=options.get("handling", Handling.FOREGROUND),
        reliability=options.get("reliability", Reliability.EXACTLY_ONCE),
        title=options.get("title"),
        rank=options.get("rank", 0.0),
        to=to,
        extra=tuple(options.get("headers", {}).items()),
        queue=options.get("queue"),
        correlation=correlation,
        gather=gather,
        binding=_binding(options),
        tolerance=_tolerance(options),
        immediate=options.get("immediate", False),
    )


def _tolerance(options: Options) -> int | None:
    seconds = options.get("delay_tolerance")
    if seconds is None:
        return None
    if not 0 <= seconds <= MAX_DELAY / SECOND:
        raise InvalidRequest(
            "delay_tolerance must be 0 to 31 days, in seconds", delay_tolerance=seconds
        )
    return milliseconds(round(seconds * SECOND))


def _binding(options: Options) -> Binding:
    if options.get("atomic") and options.get("claim"):
        raise InvalidRequest("a message cannot be both atomic and claimable")
    if options.get("atomic"):
        return Binding.ATOMIC
    return Binding.CLAIM if options.get("claim") else Binding.NONE


def _priority(priority: int) -> int:
    if not 0 <= priority <= 9:
        raise InvalidRequest("a priority must be 0 to 9", priority=priority)
    return priority


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body)
