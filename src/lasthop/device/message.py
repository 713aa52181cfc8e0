"""A message as the application sees it, and the gateway's refusal of a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.device.change import RequestRow
from lasthop.message import Binding, Handling, Reliability, key_time
from lasthop.wire.hop.frames import ERROR_TYPE, Headers, MessageFrame

TIMEOUT_TYPE = "application/vnd.lasthop.timeout"
"""The content type of the message that stands in the inbox for an answer that did not come. Such a
message is never sent."""

NO_POSITION = -1
"""The position of a best-effort message, which has no place in the inbox."""

_PLAIN = Headers()


class Message(msgspec.Struct, gc=False, eq=False):
    """A message that this device received, with its body and headers.

    `deadline` is the time (UTC, microseconds) after which the message is not handed over any more;
    None if it has none.
    """

    frame: MessageFrame
    default_type: str
    """The content type of a message that names none."""
    position: int = NO_POSITION
    """The message's place in its lane of the inbox; positions only grow, also when a new epoch
    begins."""
    number: int | None = None
    """The message's sequence number in the present epoch; None if the message has none in this
    epoch."""
    deadline: Micros | None = None
    redelivered: bool = False
    """Whether the application may have seen the message before a crash."""
    stored: bool = False
    offered: bool = False
    finished: bool = False
    request: RequestRow | None = None
    """The request whose outcome this message is, if a callback was named for it."""
    lane: int = 0
    """The lane in which the message has its position; its order is that of this lane."""
    numbered_in: int = 0
    """The lane that its number belongs to."""
    fetcher: Callable[[Message], Awaitable[bytes]] | None = None

    async def fetch(self) -> bytes:
        """Return the body, fetching it if it was left at the gateway: see `Device.fetch`."""
        return self.body if self.fetcher is None else await self.fetcher(self)

    @property
    def pull_size(self) -> int | None:
        """The size of the body in bytes if it was left at the gateway; None otherwise."""
        return self.headers.pull

    @property
    def opens_stream(self) -> bool:
        """Whether the message opens a stream: see `Device.stream`."""
        return self.headers.stream

    @property
    def headers(self) -> Headers:
        """All headers of the message, with their defaults."""
        return self.frame.headers or _PLAIN

    @property
    def key(self) -> int:
        """The time-ordered number that identifies the message; 0 if the gateway gave it none."""
        return self.frame.key or 0

    @property
    def id(self) -> str:
        """The short form of the message's id: its key in sixteen hexadecimal digits."""
        return f"{self.key:016x}"

    @property
    def published_at(self) -> Micros:
        """When the gateway accepted the message, in microseconds of UTC."""
        return key_time(self.key)

    @property
    def topic(self) -> str | None:
        """The topic that the message was published to; None if it was not published to a topic."""
        return self.frame.topic

    @property
    def body(self) -> bytes:
        """The bytes of the message; empty if they were left at the gateway: see `fetch`."""
        return self.frame.body

    @property
    def text(self) -> str:
        """The body as text; raises UnicodeDecodeError if it is not UTF-8."""
        return self.frame.body.decode()

    @property
    def content_type(self) -> str:
        """The media type of the body."""
        return self.headers.content_type or self.default_type

    @property
    def title(self) -> str | None:
        """The headline of the message for people; None if it has none."""
        return self.headers.title

    @property
    def priority(self) -> int:
        """The message's priority, 0 to 9; 9 is the most urgent."""
        return self.headers.priority

    @property
    def rank(self) -> float:
        """The message's rank among the messages of its topic; higher is better."""
        return self.headers.rank

    @property
    def handling(self) -> Handling:
        """How the sender wants the device to treat the message."""
        return self.headers.handling

    @property
    def reliability(self) -> Reliability:
        """The guarantee that the message was sent with."""
        return self.headers.reliability

    @property
    def source(self) -> str | None:
        """The sending device as `device:NAME`; None if the message came from a publisher."""
        return self.headers.source

    @property
    def queue(self) -> str | None:
        """The queue that the message was taken from; None if it did not come from a queue."""
        return self.headers.queue

    @property
    def group(self) -> str | None:
        """The group that the message was sent to; None if it was not sent to a group."""
        return self.headers.group

    @property
    def claimable(self) -> bool:
        """Whether a device must claim the message before it acts on it: see `Device.claim`."""
        return self.headers.binding is Binding.CLAIM

    @property
    def in_reply_to(self) -> int | None:
        """The key of the message to which this message is the answer; None if this message is not
        an answer."""
        return self.headers.in_reply_to

    @property
    def wants_reply(self) -> bool:
        """Whether the sender of the message waits for an answer."""
        return self.headers.reply_within is not None

    @property
    def reply_before(self) -> Micros | None:
        """The time until which the sender waits for an answer, in microseconds; None if the sender
        does not wait."""
        within = self.headers.reply_within
        return None if within is None else self.published_at + within * MILLISECOND

    @property
    def timed_out(self) -> bool:
        """Whether the message stands for an answer that did not come in time."""
        return self.request is not None and self.headers.content_type == TIMEOUT_TYPE

    @property
    def extra(self) -> dict[str, str]:
        """The headers that the sender itself added to the message."""
        return dict(self.headers.extra)


class Refusal(msgspec.Struct, frozen=True):
    """Why the gateway refused a message: a stable code, and a sentence for people."""

    code: str
    detail: str


def refusal(message: Message) -> Refusal | None:
    """Return the gateway's refusal that this message carries; None for any other message."""
    headers = message.frame.headers
    if headers is None or headers.content_type != ERROR_TYPE or headers.in_reply_to is None:
        return None
    try:
        return msgspec.json.decode(message.body, type=Refusal)
    except msgspec.DecodeError:
        return Refusal("unknown", message.body[:200].decode(errors="replace"))
