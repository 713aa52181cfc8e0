"""The request bodies for administering devices, credentials and addresses, and the checks of their
form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated
from zoneinfo import ZoneInfo

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lasthop.access.callers import APP_NAME
from lasthop.clock import SECOND, Micros
from lasthop.core.apps.credentials import Scope
from lasthop.core.names import check_topic
from lasthop.core.registry import DeviceRecord, hash_token
from lasthop.decision.routes import MAX_ROUTES, Route
from lasthop.errors import InvalidRequest, PapAddressError, Rejected
from lasthop.wire.ota.terminal import described as terminal
from lasthop.wire.pap.addresses import parse_short

NAME = r"^[^\x00-\x20\x7f/]{1,128}$"
"""The form of a name. Names stand in paths, logs and metric labels, so spaces, control characters
and slashes are refused."""

MOST_SECONDS = 10 * 365 * 86_400
"""The longest time for which a token may be valid: ten years are as good as for ever."""

_Name = Annotated[str, Meta(pattern=NAME)]
_Seconds = Annotated[int, Meta(ge=1, le=MOST_SECONDS)]
_User = Annotated[
    str,
    Meta(pattern=r"^[^\x00-\x20\x7f/]{0,128}$", description="The user that the device belongs to"),
]
_Capabilities = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=250)]],
    Meta(max_length=64, description="What the device can do, as it describes itself"),
]
"""At most 20 kB: a device's record is kept in memory."""
_Topics = Annotated[
    list[str], Meta(max_length=1000, description="Topics that the device subscribes to")
]
_Routes = Annotated[
    list[Route],
    Meta(max_length=MAX_ROUTES, description="Routes by which the device is reached over the air"),
]
_Addresses = Annotated[
    list[Annotated[str, Meta(max_length=1024)]],
    Meta(max_length=16, description="The device's client addresses in PAP, as TYPE:VALUE"),
]
_zone_form = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")


class NewDevice(msgspec.Struct, forbid_unknown_fields=True):
    """The description of a device to register."""

    name: Annotated[_Name, Meta(description="The name of the device")]
    user: _User = ""
    zone: Annotated[str, Meta(description="The device's time zone (IANA name)", max_length=64)] = (
        "UTC"
    )
    capabilities: _Capabilities = {}
    subscriptions: _Topics = []
    routes: _Routes = []
    addresses: _Addresses = []
    token_expires_in: Annotated[
        _Seconds | None,
        Meta(description="Seconds after which the token ends; without it, it does not end"),
    ] = None

    def record(self, token: str, now: int) -> DeviceRecord:
        """Return the device's record for the registry, with a hash of its token."""
        terminal(self.capabilities)
        return DeviceRecord(
            token_hash=hash_token(token),
            user=self.user,
            zone=checked_zone(self.zone),
            subscriptions=_checked_topics(self.subscriptions),
            capabilities=self.capabilities,
            registered_at=now,
            routes=checked_routes(self.routes),
            addresses=checked_addresses(self.addresses),
            token_expires=time_after(self.token_expires_in, now),
        )


class DeviceChange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The fields of a device to change; a field that is left out keeps its value."""

    user: _User | UnsetType = UNSET
    zone: (
        Annotated[str, Meta(description="The device's time zone (IANA name)", max_length=64)]
        | UnsetType
    ) = UNSET
    capabilities: _Capabilities | UnsetType = UNSET
    routes: _Routes | UnsetType = UNSET
    addresses: _Addresses | UnsetType = UNSET

    def changes(self) -> dict[str, object]:
        """Return the fields that were given, checked, with their new values."""
        if self.zone is not UNSET:
            checked_zone(self.zone)
        if self.routes is not UNSET:
            checked_routes(self.routes)
        if self.capabilities is not UNSET:
            terminal(self.capabilities)
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        if self.addresses is not UNSET:
            given["addresses"] = checked_addresses(self.addresses)
        return {name: value for name, value in given.items() if value is not UNSET}


class NewCredential(msgspec.Struct, forbid_unknown_fields=True):
    """The description of a credential to make. Several credentials may have one name; all
    credentials of a name are revoked together."""

    name: Annotated[_Name, Meta(description="Who the credential is for")]
    scopes: Annotated[
        list[Scope],
        Meta(min_length=1, max_length=8, description="What the credential's holder may do"),
    ]
    app: Annotated[
        Annotated[str, Meta(pattern=f"^{APP_NAME.pattern}$")] | None,
        Meta(description="Default: the app of the request"),
    ] = None
    certificate: Annotated[
        Annotated[str, Meta(min_length=3, max_length=1000)] | None,
        Meta(
            description="Subject of the TLS client certificate that it is for, instead of a token"
        ),
    ] = None
    expires_in: Annotated[
        _Seconds | None,
        Meta(description="Seconds after which it ends; without it, it does not end by itself"),
    ] = None


_Overlap = Annotated[
    int,
    Meta(
        ge=0,
        le=MOST_SECONDS,
        description="Seconds for which the earlier token is accepted beside the new one",
    ),
]


class CredentialRotation(msgspec.Struct, forbid_unknown_fields=True):
    """How a credential gets a new token."""

    overlap: _Overlap = 86_400


class TokenRotation(msgspec.Struct, forbid_unknown_fields=True):
    """How a device gets a new token."""

    overlap: _Overlap = 0
    expires_in: Annotated[
        _Seconds | None,
        Meta(description="Seconds after which the new token ends; without it, it does not end"),
    ] = None


class AddressTarget(msgspec.Struct, forbid_unknown_fields=True):
    """The target that a client address is to stand for."""

    target: Annotated[
        str,
        Meta(
            max_length=300,
            description="Who the address stands for: device:NAME, user:NAME, topic:NAME or app:",
        ),
    ]


def time_after(seconds: int | None, now: Micros) -> Micros:
    """Return the time after so many seconds at which a token ends; 0 for a token that does not end
    by itself."""
    return 0 if seconds is None else now + seconds * SECOND


@lru_cache(1024)
def checked_zone(name: str) -> str:
    """Return the name of a time zone if this machine knows the zone; raise `InvalidRequest`
    otherwise."""
    try:
        if name != "UTC" and _zone_form.fullmatch(name):
            ZoneInfo(name)
        elif name != "UTC":
            raise ValueError(name)
    except (ValueError, OSError, LookupError):
        raise InvalidRequest("zone: no such IANA time zone", field="zone", zone=name) from None
    return name


def checked_routes(routes: list[Route]) -> list[Route]:
    """Return the routes if all of them differ: the second of two equal routes would never be
    used."""
    if len(set(routes)) != len(routes):
        raise InvalidRequest("routes: a route is given twice", field="routes")
    return routes


def checked_address(text: str, field: str = "addresses") -> str:
    """Return a client address in the form in which the gateway stores it; raise `InvalidRequest` if
    the address is malformed."""
    try:
        return parse_short(text).short
    except PapAddressError as error:
        raise InvalidRequest(f"{field}: {error.detail}", field=field, address=text) from None


def checked_addresses(addresses: Iterable[str]) -> list[str]:
    """Return client addresses in their stored form, each of them once."""
    return list(dict.fromkeys(checked_address(text) for text in addresses))


def _checked_topics(topics: Iterable[str]) -> list[str]:
    try:
        return [check_topic(topic) for topic in dict.fromkeys(topics)]
    except Rejected as error:
        error.fields["field"] = "subscriptions"
        raise
