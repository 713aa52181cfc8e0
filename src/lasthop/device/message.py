"""A message as the application sees it, and what the gateway answers to one that it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.device.change import RequestRow
from lasthop.message import Binding, Handling, Reliability, key_time
from lasthop.wire.hop.frames import ERROR_TYPE, Headers, MessageFrame

TIMEOUT_TYPE = "application/vnd.lasthop.timeout"
"""Content type of what stands in the inbox for an answer that did not come. It never travels."""

NO_POSITION = -1
"""Of a best-effort message, which has no place in the inbox."""

_PLAIN = Headers()


class Message(msgspec.Struct, gc=False, eq=False):
    """One message for this device; its properties are worked out when they are asked for."""

    frame: MessageFrame
    default_type: str
    """The content type that goes without saying."""
    position: int = NO_POSITION
    """Its place in the inbox, which only grows, whatever the numbering."""
    number: int | None = None
    """Its number in the epoch that holds; None after a new one began without it."""
    deadline: Micros | None = None
    redelivered: bool = False
    """The application may have seen it before."""
    stored: bool = False
    offered: bool = False
    finished: bool = False
    request: RequestRow | None = None
    """What it is the outcome of, if that was asked for a callback by name."""
    fetcher: Callable[[Message], Awaitable[bytes]] | None = None

    async def fetch(self) -> bytes:
        """The content, also where it was left with the gateway to be pulled."""
        return self.body if self.fetcher is None else await self.fetcher(self)

    @property
    def pull_size(self) -> int | None:
        """Bytes of the content, if that was left with the gateway."""
        return self.headers.pull

    @property
    def opens_stream(self) -> bool:
        """Whether a stream comes with it."""
        return self.headers.stream

    @property
    def headers(self) -> Headers:
        """Everything said of the body, defaults included."""
        return self.frame.headers or _PLAIN

    @property
    def key(self) -> int:
        """The time-ordered number that identifies it; 0 when the gateway gave none."""
        return self.frame.key or 0

    @property
    def id(self) -> str:
        """The short form of its id."""
        return f"{self.key:016x}"

    @property
    def published_at(self) -> Micros:
        """When the gateway accepted it."""
        return key_time(self.key)

    @property
    def topic(self) -> str | None:
        """The topic it was published to, if it came through one."""
        return self.frame.topic

    @property
    def body(self) -> bytes:
        """The content."""
        return self.frame.body

    @property
    def text(self) -> str:
        """The content as text; raises UnicodeDecodeError when it is none."""
        return self.frame.body.decode()

    @property
    def content_type(self) -> str:
        """What the body is."""
        return self.headers.content_type or self.default_type

    @property
    def title(self) -> str | None:
        """A headline for people."""
        return self.headers.title

    @property
    def priority(self) -> int:
        """0 to 9."""
        return self.headers.priority

    @property
    def rank(self) -> float:
        """How much it matters among the messages of its topic."""
        return self.headers.rank

    @property
    def handling(self) -> Handling:
        """How it wants to be treated."""
        return self.headers.handling

    @property
    def reliability(self) -> Reliability:
        """How hard it was tried."""
        return self.headers.reliability

    @property
    def source(self) -> str | None:
        """The device that sent it; None when it came from a publisher."""
        return self.headers.source

    @property
    def queue(self) -> str | None:
        """The queue it was taken from."""
        return self.headers.queue

    @property
    def group(self) -> str | None:
        """The group it was sent to."""
        return self.headers.group

    @property
    def claimable(self) -> bool:
        """Whether acting on it needs a claim: see `Device.claim`."""
        return self.headers.binding is Binding.CLAIM

    @property
    def in_reply_to(self) -> int | None:
        """The key of the message that this one answers."""
        return self.headers.in_reply_to

    @property
    def wants_reply(self) -> bool:
        """Whether somebody waits for an answer."""
        return self.headers.reply_within is not None

    @property
    def reply_before(self) -> Micros | None:
        """Until when an answer is of use."""
        within = self.headers.reply_within
        return None if within is None else self.published_at + within * MILLISECOND

    @property
    def timed_out(self) -> bool:
        """Whether it stands for an answer that did not come in time."""
        return self.request is not None and self.headers.content_type == TIMEOUT_TYPE

    @property
    def extra(self) -> dict[str, str]:
        """The sender's own headers."""
        return dict(self.headers.extra)


class Refusal(msgspec.Struct, frozen=True):
    """Why the gateway refused a message: a stable code, and a sentence for people."""

    code: str
    detail: str


def refusal(message: Message) -> Refusal | None:
    """What the gateway says against the message that this one answers, if it is such an answer."""
    headers = message.frame.headers
    if headers is None or headers.content_type != ERROR_TYPE or headers.in_reply_to is None:
        return None
    try:
        return msgspec.json.decode(message.body, type=Refusal)
    except msgspec.DecodeError:
        return Refusal("unknown", message.body[:200].decode(errors="replace"))
