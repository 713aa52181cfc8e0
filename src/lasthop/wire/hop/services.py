"""Services that devices offer, as JSON bodies of the hop protocol: an interface, a question about
interfaces, and the answer to it (docs/hop-protocol.md, "Requests, gathers, services")."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from lasthop.errors import InvalidRequest, TooLarge

MAX_INTERFACE: Final = 16 << 10
"""The largest number of bytes in an interface, which is kept in memory with its device and sent to
everyone who asks."""

MAX_OPERATIONS: Final = 64
MOST_NAMED: Final = 16
"""The largest number of devices that an offer names; the others are counted."""

SERVICE_HEADER: Final = "lasthop-service"
"""The header that names the service a message was for, since it is addressed to the chosen
device."""

OPERATION_HEADER: Final = "lasthop-operation"
"""The header that names the operation a service is asked for."""

DECLINED_TYPE: Final = "application/vnd.lasthop.declined+json"
"""Content type of an answer by which a service declines a request: `{"reason", "detail"}`."""

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
_About = Annotated[str, Meta(max_length=1000)]
_Type = Annotated[str, Meta(max_length=200)]


class ServiceOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation of a service, which a request can ask for."""

    name: str
    takes: _Type = ""
    """The type of its request: a content type, or the name of a type that both sides know."""
    gives: _Type = ""
    """The type of its answer; empty when there is none."""
    about: _About = ""


class Service(msgspec.Struct, frozen=True, omit_defaults=True):
    """The interface of a service. An app has one interface for each name and version."""

    name: str
    version: str = "1"
    about: _About = ""
    operations: tuple[ServiceOperation, ...] = ()

    @property
    def title(self) -> str:
        """The name and version of the service, as in an address."""
        return f"{self.name}@{self.version}"

    def same_as(self, other: Service) -> bool:
        """Whether both interfaces have the same operations and types; descriptions do not
        matter."""
        return _shape(self) == _shape(other)


class Offer(msgspec.Struct, frozen=True):
    """A service that can be asked, and the devices that offer it."""

    service: Service
    providers: int
    """The number of devices that offer the service."""
    in_contact: int
    """The number of these devices that are in contact now."""
    devices: tuple[str, ...]
    """The names of some of these devices, those in contact first."""


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """A search for services; without a name it finds all."""

    name: str = ""
    """The name of the service, or its name and version: `pricing@2`."""
    operation: str = ""
    """The name of an operation that the service must have; empty for any."""


class Offers(msgspec.Struct, frozen=True, omit_defaults=True):
    """The services that a search found, by name and version."""

    offers: tuple[Offer, ...] = ()
    more: bool = False
    """Whether there are more services than the answer holds."""


encode = msgspec.json.Encoder().encode
T = TypeVar("T")


def decode_service(body: bytes) -> Service:
    """Decode and check the interface of a service; raise InvalidRequest or TooLarge."""
    if len(body) > MAX_INTERFACE:
        raise TooLarge("an interface is too large", size=len(body), limit=MAX_INTERFACE)
    return check_service(_decode(body, Service, "an interface"))


def check_service(service: Service) -> Service:
    """Return the interface if it is valid; raise InvalidRequest or TooLarge otherwise."""
    for what, name in (("service", service.name), ("version", service.version)):
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"the {what} of an interface must have up to 64 letters, digits, dots and dashes",
                name=name[:80],
            )
    if len(service.operations) > MAX_OPERATIONS:
        most = MAX_OPERATIONS
        raise TooLarge("too many operations", size=len(service.operations), limit=most)
    names = [operation.name for operation in service.operations]
    for name in names:
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                "the name of an operation must have up to 64 letters, digits, dots and dashes",
                name=name[:80],
            )
    if len(set(names)) < len(names):
        raise InvalidRequest("an operation comes twice", service=service.name)
    return service


def decode_question(body: bytes) -> Question:
    """Decode a search for services; raise InvalidRequest."""
    return _decode(body, Question, "a question for services") if body else Question()


def decode_offers(body: bytes) -> Offers:
    """Decode the answer to a search for services; raise InvalidRequest."""
    return _decode(body, Offers, "an answer about services")


def _decode(body: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"{what} must be a JSON object: {error}") from None


def _shape(service: Service) -> tuple[object, ...]:
    operations = sorted((o.name, o.takes, o.gives) for o in service.operations)
    return service.name, service.version, operations
