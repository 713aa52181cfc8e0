"""A client's session as the gateway knows it, and what can happen to it and to its pushes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from lasthop.wire.ota.terminal import Terminal, media_types, version_of
from lasthop.wire.wsp.applications import Application, parse_application
from lasthop.wire.wsp.capabilities import WspOptions
from lasthop.wire.wsp.headers import Field, Header
from lasthop.wire.wtp.transaction import Side

Address: TypeAlias = tuple[str, int]

PROTOERR, DISCONNECT, SUSPEND, RESUME, CONGESTION = 0xE0, 0xE1, 0xE2, 0xE3, 0xE4
CONNECTERR, MRUEXCEEDED, MOREXCEEDED, PEERREQ, NETERR = 0xE5, 0xE6, 0xE7, 0xE8, 0xE9
USERREQ, USERRFS, USERPND, USERDCR, USERDCU = 0xEA, 0xEB, 0xEC, 0xED, 0xEE
"""Why a user gives a transaction up (WSP table 35). Only the last five refuse a push."""


@dataclass(eq=False, slots=True)
class WspSession:
    """One client's session."""

    number: int
    peer: Address
    terminal: Terminal
    applications: frozenset[Application] | None
    """Those that it takes pushes for; none named: not known."""
    options: WspOptions
    most: int
    sdu: int
    """Octets of a PDU that the client takes; 0: any."""
    suspended: bool = False
    under_way: dict[Side, None] = field(default_factory=dict)
    waiting: deque[Ticket] = field(default_factory=deque)

    @property
    def pushes(self) -> bool:
        """Whether it takes unconfirmed pushes now."""
        return not self.suspended and bool(self.options & WspOptions.PUSH)

    @property
    def confirms(self) -> bool:
        """Whether it takes confirmed pushes now."""
        return not self.suspended and bool(self.options & WspOptions.CONFIRMED_PUSH)

    def serves(self, application: Application | None) -> bool:
        """Whether the client takes pushes for this application; its default one is none."""
        return (
            self.applications is None
            or application is None
            or 0 in self.applications  # any
            or application in self.applications
        )


@dataclass(eq=False, slots=True)
class Ticket:
    """A confirmed push, from `push` to its end."""

    session: WspSession
    pdu: bytes


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A session is there, or there again."""

    session: WspSession


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """A session takes nothing any more, or for the time being."""

    session: WspSession


@dataclass(frozen=True, slots=True)
class Pushed:
    """The client's application has the push."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class PushRefused:
    """The client's user has refused it."""

    ticket: Ticket
    reason: int


@dataclass(frozen=True, slots=True)
class PushUnanswered:
    """It has left, and nobody has said anything of it."""

    ticket: Ticket
    reason: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """The client has not got it: it said so, or nothing has left."""

    ticket: Ticket
    reason: str
    too_large: bool = False


Event: TypeAlias = SessionOpened | SessionClosed | Pushed | PushRefused | PushUnanswered | NotSent


def described(headers: tuple[Field, ...]) -> tuple[Terminal, frozenset[Application] | None]:
    """What a client says of itself when it connects."""
    named = [header for header in headers if isinstance(header, Header)]

    def values(name: str) -> list[str]:
        return [each.value for each in named if each.name.lower() == name]

    versions = values("encoding-version")
    applications = [_application(text) for text in values("accept-application")]
    terminal = Terminal(
        accept=media_types(",".join(values("accept"))),
        codings=frozenset(text.strip().lower() for text in values("accept-encoding")),
        encoding_version=version_of(versions[0] if versions else ""),
    )
    return terminal, frozenset(applications) or None


def _application(text: str) -> Application:
    return 0 if text.strip() == "*" else parse_application(text)
