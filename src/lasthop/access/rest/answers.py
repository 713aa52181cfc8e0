"""What the REST door says when it has done as asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import msgspec
from starlette.responses import Response

from lasthop.access.rest.times import datetime_of
from lasthop.core.lifecycle import ODIN_VIEW, State
from lasthop.core.pushes.report import REPORTS
from lasthop.core.registry import Device
from lasthop.core.session import Session
from lasthop.decision.routes import Route
from lasthop.message import Message
from lasthop.store.commit import CredentialRow, DeliveryRow

encode = msgspec.json.Encoder().encode


class Accepted(msgspec.Struct, omit_defaults=True):
    """The message is durable."""

    id: str
    repeated: bool = False
    """The idempotency key was known: this is the message that it stands for."""


class AcceptedMany(msgspec.Struct, omit_defaults=True):
    """The messages are durable; ids in the order of the request."""

    ids: list[str]
    repeated: bool = False


class DeliveryStatus(msgspec.Struct, omit_defaults=True):
    """One message for one device."""

    device: str | None
    """Null when the device has been removed since."""
    state: str
    pap: str
    """The state as PAP reports it."""
    changed_at: datetime
    odin: str | None = None
    """The state in Odin's terms, which has no names for unhappy ends."""
    attempts: int = 0
    redelivered: bool = False
    reply: str | None = None
    """Id of the device's answer."""


class Summary(msgspec.Struct):
    """All deliveries of a message."""

    total: int
    open: int
    replies: int
    states: dict[str, int]


class MessageStatus(msgspec.Struct, omit_defaults=True):
    """What became of a message."""

    id: str
    to: str
    source: str
    accepted_at: datetime
    summary: Summary
    deliveries: list[DeliveryStatus]
    more: bool = False
    """There are more deliveries than are listed."""
    satisfied: bool | None = None
    """After a wait: whether it came to what was waited for."""
    outcome: str | None = None
    """Of a message for a group or queue as a whole: held, released, aborted, claimable, claimed,
    unclaimed, cancelled, replaced or expired."""
    claimed_by: str | None = None
    """The device that may act on it, unless it was removed since."""


class Cancelled(msgspec.Struct):
    """Every delivery is one or the other."""

    cancelled: int
    too_late: int


class Replaced(msgspec.Struct):
    """The new message, for as many devices as had not been sent the old one."""

    id: str
    replaced: int
    too_late: int


class DeviceInfo(msgspec.Struct, omit_defaults=True):
    """A device, and how it is reached."""

    name: str
    number: int
    user: str
    zone: str
    registered_at: datetime
    in_contact: bool
    open: int
    """Deliveries that are not at their end."""
    epoch: int
    """How often its numbering has begun."""
    subscriptions: list[str]
    capabilities: dict[str, str]
    context: dict[str, msgspec.Raw]
    """What the device last said of itself."""
    routes: list[Route] = []
    """How it is reached over the air."""
    addresses: list[str] = []
    """Client addresses that it has in PAP."""
    link: str | None = None
    network: str | None = None
    channels: list[str] = []
    """The links of all its channels, when there are several."""
    lost_at: datetime | None = None
    token: str | None = None
    """Only when it has just been made: it is not kept."""


class DeviceList(msgspec.Struct, omit_defaults=True):
    """Devices in the order of their registration."""

    devices: list[DeviceInfo]
    next: int | None = None
    """Ask for those `after` this number."""


class Removed(msgspec.Struct):
    """A device that is gone."""

    name: str
    number: int
    erased: bool


class Subscribed(msgspec.Struct):
    """A device and a topic; `changed` is false when it was so before."""

    device: str
    topic: str
    subscribed: bool
    changed: bool


class CredentialInfo(msgspec.Struct, omit_defaults=True):
    """A credential."""

    app: str
    name: str
    scopes: list[str]
    created_at: datetime
    revoked: bool = False
    token: str | None = None
    """Only when it has just been made: it is not kept."""
    certificate: str | None = None
    """Likewise, if it is for a certificate."""


class CredentialList(msgspec.Struct):
    """The credentials of an app."""

    credentials: list[CredentialInfo]


class AddressInfo(msgspec.Struct):
    """An address, and who it stands for."""

    address: str
    target: str


class AddressList(msgspec.Struct):
    """The app's addresses that stand for a target, in alphabetical order."""

    addresses: list[AddressInfo]


class Revoked(msgspec.Struct):
    """How many credentials of this name were revoked."""

    revoked: int


def json_response(answer: object, status: int = 200) -> Response:
    """An answer in JSON. It may hold a secret or a moment's state: nobody keeps it."""
    headers = {"cache-control": "no-store"}
    return Response(encode(answer), status, headers, media_type="application/json")


def summary_of(rows: list[DeliveryRow]) -> Summary:
    """Count deliveries by state."""
    states = Counter(State(row.state).name.lower() for row in rows)
    return Summary(
        total=len(rows),
        open=sum(row.open for row in rows),
        replies=sum(row.reply != 0 for row in rows),
        states=dict(states),
    )


def delivery_of(
    row: DeliveryRow, names: Mapping[int, str], replies: Mapping[int, Message]
) -> DeliveryStatus:
    """One delivery as a publisher sees it."""
    state = State(row.state)
    reply = replies.get(row.reply)
    return DeliveryStatus(
        device=names.get(row.device),
        state=state.name.lower(),
        odin=ODIN_VIEW.get(state),
        pap=REPORTS[state].state,
        changed_at=datetime_of(row.changed_at),
        attempts=row.attempts,
        redelivered=row.redelivered,
        reply=None if reply is None else reply.id,
    )


def device_of(device: Device, session: Session, token: str | None = None) -> DeviceInfo:
    """A device as an administrator sees it."""
    record = device.record
    here = session.channel != 0
    return DeviceInfo(
        name=device.name,
        number=device.number,
        user=record.user,
        zone=record.zone,
        registered_at=datetime_of(record.registered_at),
        in_contact=here,
        open=len(session.mailbox),
        epoch=session.epoch,
        subscriptions=sorted(record.subscriptions),
        capabilities=record.capabilities,
        context={name: msgspec.Raw(value) for name, value in record.context.items()},
        routes=record.routes,
        addresses=record.addresses,
        link=session.link or None if here else None,
        network=session.network or None if here else None,
        channels=[line.link for line in session.lines] if len(session.lines) > 1 else [],
        lost_at=datetime_of(session.lost_at) if session.lost_at and not here else None,
        token=token,
    )


def credential_of(row: CredentialRow) -> CredentialInfo:
    """A credential as an administrator sees it."""
    return CredentialInfo(
        app=row.app,
        name=row.name,
        scopes=row.scopes.split(),
        created_at=datetime_of(row.created_at),
        revoked=row.revoked,
    )
