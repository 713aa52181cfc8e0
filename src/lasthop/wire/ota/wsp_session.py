"""A client's session as the gateway knows it, and the events of sessions and their pushes."""

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
"""Reasons for which a user aborts a transaction (WSP table 35). Only the last five refuse a
push."""


@dataclass(eq=False, slots=True)
class WspSession:
    """One client's session with the gateway."""

    number: int
    peer: Address
    terminal: Terminal
    applications: frozenset[Application] | None
    """The applications that the client accepts pushes for; None if they are not known."""
    options: WspOptions
    most: int
    sdu: int
    """The largest number of octets in a PDU that the client accepts; 0 means any."""
    suspended: bool = False
    under_way: dict[Side, None] = field(default_factory=dict)
    waiting: deque[Ticket] = field(default_factory=deque)

    @property
    def pushes(self) -> bool:
        """Whether the session accepts unconfirmed pushes now."""
        return not self.suspended and bool(self.options & WspOptions.PUSH)

    @property
    def confirms(self) -> bool:
        """Whether the session accepts confirmed pushes now."""
        return not self.suspended and bool(self.options & WspOptions.CONFIRMED_PUSH)

    def serves(self, application: Application | None) -> bool:
        """Whether the client accepts pushes for this application; None is its default
        application."""
        return (
            self.applications is None
            or application is None
            or 0 in self.applications  # Any application.
            or application in self.applications
        )


@dataclass(eq=False, slots=True)
class Ticket:
    """A confirmed push, from `push_confirmed` to its end."""

    session: WspSession
    pdu: bytes


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A session was opened or resumed."""

    session: WspSession


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """A session was closed or suspended, and accepts no pushes."""

    session: WspSession


@dataclass(frozen=True, slots=True)
class Pushed:
    """The client's application has confirmed the push."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class PushRefused:
    """The client's user has refused the push."""

    ticket: Ticket
    reason: int


@dataclass(frozen=True, slots=True)
class PushUnanswered:
    """The push was sent, and no answer came."""

    ticket: Ticket
    reason: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """The client does not have the push: it said so, or nothing was sent."""

    ticket: Ticket
    reason: str
    too_large: bool = False


Event: TypeAlias = SessionOpened | SessionClosed | Pushed | PushRefused | PushUnanswered | NotSent


def described(headers: tuple[Field, ...]) -> tuple[Terminal, frozenset[Application] | None]:
    """Return what a client says of itself when it connects: its abilities and its applications."""
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
