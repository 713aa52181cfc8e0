"""Services that devices offer, as they travel: an interface, a question about interfaces, and the
answer to it. All three are JSON."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from lasthop.errors import InvalidRequest, TooLarge

MAX_INTERFACE: Final = 16 << 10
"""Bytes of an interface: it is kept in memory with its device, and sent to everyone who asks."""

MAX_OPERATIONS: Final = 64
MOST_NAMED: Final = 16
"""Devices that an offer names; the others are counted."""

SERVICE_HEADER: Final = "lasthop-service"
"""Which service a message was for, since it is addressed to the device that was chosen."""

OPERATION_HEADER: Final = "lasthop-operation"
"""What is asked of the service."""

DECLINED_TYPE: Final = "application/vnd.lasthop.declined+json"
"""Content type of an answer that is none: `{"reason", "detail"}`."""

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
_About = Annotated[str, Meta(max_length=1000)]
_Type = Annotated[str, Meta(max_length=200)]


class ServiceOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a service does when it is asked."""

    name: str
    takes: _Type = ""
    """What its request is: a content type, or the name of a type that both sides know."""
    gives: _Type = ""
    """What its answer is; empty when there is none."""
    about: _About = ""


class Service(msgspec.Struct, frozen=True, omit_defaults=True):
    """The interface of a service. Of one name and version there is one interface in an app."""

    name: str
    version: str = "1"
    about: _About = ""
    operations: tuple[ServiceOperation, ...] = ()

    @property
    def title(self) -> str:
        """Name and version, as in an address."""
        return f"{self.name}@{self.version}"

    def same_as(self, other: Service) -> bool:
        """Whether a client may take one for the other: descriptions do not matter."""
        return _shape(self) == _shape(other)


class Offer(msgspec.Struct, frozen=True):
    """A service that can be asked, and by whom it is offered."""

    service: Service
    providers: int
    """Devices that offer it."""
    in_contact: int
    """Those of them that are there now."""
    devices: tuple[str, ...]
    """The names of some, those in contact first."""


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which services somebody looks for; without a name all of them."""

    name: str = ""
    """A name, or a name and a version: `pricing@2`."""
    operation: str = ""
    """It has an operation of this name."""


class Offers(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was found, by name and version."""

    offers: tuple[Offer, ...] = ()
    more: bool = False
    """There are more than an answer holds."""


encode = msgspec.json.Encoder().encode
T = TypeVar("T")


def decode_service(body: bytes) -> Service:
    """Read and check an interface."""
    if len(body) > MAX_INTERFACE:
        raise TooLarge("an interface is too large", size=len(body), limit=MAX_INTERFACE)
    return check_service(_decode(body, Service, "an interface"))


def check_service(service: Service) -> Service:
    """Refuse an interface that nobody could address."""
    for what, name in (("service", service.name), ("version", service.version)):
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"the {what} of an interface has up to 64 letters, digits, dots and dashes",
                name=name[:80],
            )
    if len(service.operations) > MAX_OPERATIONS:
        most = MAX_OPERATIONS
        raise TooLarge("too many operations", size=len(service.operations), limit=most)
    names = [operation.name for operation in service.operations]
    for name in names:
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                "an operation has up to 64 letters, digits, dots and dashes", name=name[:80]
            )
    if len(set(names)) < len(names):
        raise InvalidRequest("an operation comes twice", service=service.name)
    return service


def decode_question(body: bytes) -> Question:
    """Read what somebody looks for."""
    return _decode(body, Question, "a question for services") if body else Question()


def decode_offers(body: bytes) -> Offers:
    """Read what was found."""
    return _decode(body, Offers, "an answer about services")


def _decode(body: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"{what} is a JSON object: {error}") from None


def _shape(service: Service) -> tuple[object, ...]:
    operations = sorted((o.name, o.takes, o.gives) for o in service.operations)
    return service.name, service.version, operations
