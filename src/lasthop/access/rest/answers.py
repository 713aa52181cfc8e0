"""The bodies of the REST door's successful responses, and the functions that make them from stored
rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import msgspec
from starlette.responses import Response

from lasthop.access.rest.times import datetime_of
from lasthop.clock import Micros
from lasthop.core.lifecycle import ODIN_VIEW, State
from lasthop.core.pushes.report import REPORTS
from lasthop.core.registry import Device
from lasthop.core.session import Session
from lasthop.decision.routes import Route
from lasthop.message import Message
from lasthop.store.commit import CredentialRow, DeliveryRow
from lasthop.wire.smpp.commands import SmsState

encode = msgspec.json.Encoder().encode


class Accepted(msgspec.Struct, omit_defaults=True):
    """The answer to a published message, which is durable now."""

    id: str
    repeated: bool = False
    """Whether a message was published under this idempotency key before; if so, the id is that
    message's."""
    subscriptions: int | None = None
    """The number of subscribers of the topic that the message is for; absent for other targets."""
    kept: bool | None = None
    """Whether the topic remembers the message for those who come later; absent for other
    targets."""


class TopicAnswer(msgspec.Struct):
    """What became of a message in its topic."""

    subscriptions: int
    kept: bool


class AcceptedMany(msgspec.Struct, omit_defaults=True):
    """The answer to several published messages, which are durable now; the ids are in the order of
    the request."""

    ids: list[str]
    repeated: bool = False
    topics: list[TopicAnswer | None] = []
    """What became of each message in its topic, null for those with other targets; absent if there
    is no message to a topic."""


class DeliveryStatus(msgspec.Struct, omit_defaults=True):
    """The state of one message's delivery to one device."""

    device: str | None
    """The device's name; null if the device has been removed since."""
    state: str
    pap: str
    """The state of the delivery as PAP reports it."""
    changed_at: datetime
    odin: str | None = None
    """The state of the delivery in Odin's terms, if Odin has one; it has none for failures."""
    attempts: int = 0
    redelivered: bool = False
    reply: str | None = None
    """The id of the device's answer to the message, if it has sent one."""
    receipt: str | None = None
    """What the network has said since the message was sent: delivered, expired, deleted,
    undeliverable, unknown or rejected. It is no confirmation of the client."""


class Summary(msgspec.Struct):
    """The deliveries of a message, counted by state."""

    total: int
    open: int
    replies: int
    states: dict[str, int]


class MessageStatus(msgspec.Struct, omit_defaults=True):
    """The present state of a message and its deliveries."""

    id: str
    to: str
    source: str
    accepted_at: datetime
    summary: Summary
    deliveries: list[DeliveryStatus]
    more: bool = False
    """Whether there are more deliveries than are listed."""
    satisfied: bool | None = None
    """After a wait: whether what was waited for has happened."""
    outcome: str | None = None
    """The outcome of a message for a group or queue as a whole: held, released, aborted, claimable,
    claimed, unclaimed, cancelled, replaced or expired."""
    claimed_by: str | None = None
    """The device that has claimed the message, unless the device was removed since."""


class Cancelled(msgspec.Struct):
    """The number of deliveries that were cancelled, and the number of deliveries that could no
    longer be cancelled."""

    cancelled: int
    too_late: int


class Replaced(msgspec.Struct):
    """The id of the new message, and the number of devices that get it instead of the old one."""

    id: str
    replaced: int
    too_late: int


class DeviceInfo(msgspec.Struct, omit_defaults=True):
    """A device and the links by which it is reached."""

    name: str
    number: int
    user: str
    zone: str
    registered_at: datetime
    in_contact: bool
    open: int
    """The number of deliveries to the device that have not ended."""
    epoch: int
    """The number of the session's epoch: how many times the numbering of its messages has
    started."""
    subscriptions: list[str]
    capabilities: dict[str, str]
    context: dict[str, msgspec.Raw]
    """What the device last reported about itself."""
    routes: list[Route] = []
    """The routes by which carriers reach the device over the air."""
    addresses: list[str] = []
    """The client addresses of the device in PAP."""
    link: str | None = None
    network: str | None = None
    channels: list[str] = []
    """The links of all channels of the device, if it has several."""
    lost_at: datetime | None = None
    token: str | None = None
    """The device's token. Only shown when it has just been made: the gateway stores a hash of
    it."""
    token_expires_at: datetime | None = None
    """When the device's token ends by itself."""
    token_used_at: datetime | None = None
    """When the device last connected with its present token, to the hour."""


class DeviceList(msgspec.Struct, omit_defaults=True):
    """Some of the app's devices, in the order of their registration."""

    devices: list[DeviceInfo]
    next: int | None = None
    """The number to give as `after` to get the next page; absent on the last page."""


class Removed(msgspec.Struct):
    """The answer to the removal of a device."""

    name: str
    number: int
    erased: bool


class Subscribed(msgspec.Struct):
    """A device's subscription to a topic; `changed` is false if the request changed nothing."""

    device: str
    topic: str
    subscribed: bool
    changed: bool


class CredentialInfo(msgspec.Struct, omit_defaults=True):
    """A credential of an app, without its secret."""

    app: str
    name: str
    scopes: list[str]
    created_at: datetime
    revoked: bool = False
    token: str | None = None
    """The credential's token. Only shown when it has just been made: the gateway stores a hash of
    it."""
    certificate: str | None = None
    """The subject of the TLS certificate that the credential is for. Only shown when it has just
    been made."""
    expires_at: datetime | None = None
    """When the credential ends by itself."""
    used_at: datetime | None = None
    """When the credential was last used, to the hour."""


class CredentialList(msgspec.Struct):
    """All credentials of an app, including revoked ones."""

    credentials: list[CredentialInfo]


class AddressInfo(msgspec.Struct):
    """A client address and the target that it stands for."""

    address: str
    target: str


class AddressList(msgspec.Struct):
    """The app's client addresses that stand for a target, in alphabetical order."""

    addresses: list[AddressInfo]


class Revoked(msgspec.Struct):
    """The number of credentials of this name that were revoked."""

    revoked: int


def json_response(answer: object, status: int = 200) -> Response:
    """Return a JSON response. It may contain a secret or a state that changes, so caches are told
    not to store it."""
    headers = {"cache-control": "no-store"}
    return Response(encode(answer), status, headers, media_type="application/json")


def summary_of(rows: list[DeliveryRow]) -> Summary:
    """Count the deliveries of a message by state."""
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
    """Return a delivery as it is shown to publishers; `names` has the devices' names by number,
    `replies` the answers by key."""
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
        receipt=SmsState(row.receipt).name.lower() if row.receipt else None,
    )


def device_of(device: Device, session: Session, token: str | None = None) -> DeviceInfo:
    """Return a device as it is shown to administrators, with its token if the token was just
    made."""
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
        token_expires_at=_maybe(record.token_expires),
        token_used_at=_maybe(record.token_used),
    )


def credential_of(row: CredentialRow) -> CredentialInfo:
    """Return a credential in the form in which it is shown to administrators."""
    return CredentialInfo(
        app=row.app,
        name=row.name,
        scopes=row.scopes.split(),
        created_at=datetime_of(row.created_at),
        revoked=row.revoked,
        expires_at=_maybe(row.expires_at),
        used_at=_maybe(row.used_at),
    )


def _maybe(time: Micros) -> datetime | None:
    """Return a stored time as it is shown; None for 0, which stands for no time."""
    return datetime_of(time) if time else None
