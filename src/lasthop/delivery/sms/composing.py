"""What is sent to a phone for a push: a datagram for its push client, or a text for its user.

Plain text that names no application is for people; everything else is a push to port 2948, in the
form in which OTA-WSP sends it without a connection.
"""

from __future__ import annotations

from lasthop.delivery.carrier import Parcel
from lasthop.delivery.sms.sms_link import OutgoingSms
from lasthop.errors import LasthopError, NotTransformable
from lasthop.wire.charsets import named
from lasthop.wire.ota.terminal import described
from lasthop.wire.ota.transform import APPLICATION, PushContent, for_wsp, wsp_headers
from lasthop.wire.pap.mime import parse_media_type
from lasthop.wire.sms.header import Ports
from lasthop.wire.wsp.pdus import Push, encode_unit

PUSH_PORTS = Ports(destination=2948, source=9200)
"""Where phones listen for pushes, and the port of connectionless WSP."""


def compose(parcel: Parcel, *, reference: int) -> OutgoingSms:
    """Return what is sent for a parcel; raise Rejected if there is no form for phones."""
    text = _text_of(parcel)
    datagram = b"" if text is not None else _datagram(parcel, reference)
    return OutgoingSms(
        to=parcel.route.address,
        datagram=datagram,
        ports=None if text is not None else PUSH_PORTS,
        text=text or "",
        deliver_before=parcel.deliver_before,
        priority=parcel.priority,
        once=parcel.once,
        reference=reference,
    )


def _text_of(parcel: Parcel) -> str | None:
    """Return the text of a parcel that is for people; None for a push to an application."""
    try:
        media = parse_media_type(parcel.content_type)
    except LasthopError as error:
        raise NotTransformable(f"the content cannot be adapted: {error}") from None
    if media.essence != "text/plain":
        return None
    if any(name.lower() == APPLICATION for name, _ in parcel.headers):
        return None
    name = media.parameters.get("charset", "utf-8")
    charset = named(name)
    if charset is None:
        raise NotTransformable("the character set is not known", charset=name)
    try:
        return charset.decode(parcel.body)
    except (UnicodeDecodeError, LookupError):
        raise NotTransformable("the text is not in its character set", charset=name) from None


def _datagram(parcel: Parcel, transaction: int) -> bytes:
    terminal = described(parcel.capabilities)
    push = for_wsp(PushContent(parcel.content_type, parcel.headers, parcel.body), terminal)
    unit = Push(push.content_type, wsp_headers(push), push.body)
    return encode_unit(transaction & 0xFF, unit, version=terminal.encoding_version)
