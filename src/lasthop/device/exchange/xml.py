"""XML messages in an exchange: SOAP 1.2 envelopes, in the most compact form that both ends know.

    exchange = Exchange(device, Xml())
    answer = await exchange.call("device:shop", XmlMessage.from_pairs({"goods": "tea"}))

The content types that a peer can read are learned from a header of its messages; until then the
peer gets XML. A stored message may be cancelled, expire, or overtake an earlier message of another
lane, so each message is encoded without reference to earlier ones. A profile that both ends know,
made from samples or from a schema, makes the messages small.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from lasthop.device.exchange.binding import Content, Plain, essence
from lasthop.device.exchange.xml_message import XmlMessage
from lasthop.errors import InvalidRequest, Rejected
from lasthop.wire.xml_errors import as_rejected, xml_refusals
from lasthop_xml.errors import XmlError
from lasthop_xml.formats import MessageDecoder, MessageEncoder, XmlMessages
from lasthop_xml.soap.addressing import UNDERSTOOD, read_addressing
from lasthop_xml.soap.envelope import Envelope, read_envelope, write_envelope
from lasthop_xml.soap.fault import FaultCode, SoapFault, read_fault
from lasthop_xml.soap.node import SoapNode, fault_envelope
from lasthop_xml.weft.profile import NO_PROFILE, Profile
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xebu.decoder import Decoder as XebuDecoder
from lasthop_xml.xebu.encoder import Encoder as XebuEncoder
from lasthop_xml.xebu.tokens import Mode

SOAP_XML: Final = "application/soap+xml"
XEBU: Final = "application/x-ebu+data"
WEFT: Final = "application/x-weft"
WEFT_DEFLATE: Final = "application/x-weft+deflate"
WEFT_MAX: Final = "application/x-weft+max"

DEFAULT_ACCEPT: Final = (WEFT, XEBU, SOAP_XML)

ACCEPT_HEADER: Final = "lasthop-accept"
"""The header with the content types that the sender can read, best first, separated by commas; a
question mark at the end asks for the receiver's types."""

MOST_PEERS = 1000
"""The number of peers that are remembered; a forgotten peer gets XML again, and is asked again."""

MOST_TYPES = 16


class _Coding(NamedTuple):
    """A way to encode messages that do not depend on earlier ones."""

    encoder: Callable[[Profile], MessageEncoder]
    decoder: Callable[[Profile], MessageDecoder]
    profiled: bool = False


def _weft(level: Level) -> _Coding:
    return _Coding(
        lambda profile: WeftEncoder(level, profile=profile, forgetful=True),
        lambda profile: WeftDecoder(profile=profile),
        profiled=True,
    )


_CODINGS: Final[Mapping[str, _Coding]] = {
    SOAP_XML: _Coding(lambda _: XmlMessages(), lambda _: XmlMessages()),
    "application/xml": _Coding(lambda _: XmlMessages(), lambda _: XmlMessages()),
    "text/xml": _Coding(lambda _: XmlMessages(), lambda _: XmlMessages()),
    XEBU: _Coding(lambda _: XebuEncoder(Mode.DATA, forgetful=True), lambda _: XebuDecoder()),
    WEFT: _weft(Level.FAST),
    WEFT_DEFLATE: _weft(Level.DEFLATE),
    WEFT_MAX: _weft(Level.MAX),
}


class _Peer(msgspec.Struct):
    accepts: tuple[str, ...] = ()
    """The types that the peer reads, each with the profile that it needs."""
    told: bool = False
    """Whether the peer was told which types we read."""


class Xml(Plain):
    """The binding of an exchange to XML messages (`XmlMessage`)."""

    def __init__(
        self,
        *,
        accept: Iterable[str] = DEFAULT_ACCEPT,
        assume: Iterable[str] = (),
        profile: Profile | None = None,
        understands: Collection[Name] = (),
        roles: Collection[str] = (),
    ) -> None:
        """Choose how XML messages are encoded. Raises InvalidRequest for an unknown type.

        - `accept`: the content types that are read here, best first.
        - `assume`: types that peers are taken to read before they have named theirs.
        - `profile`: the names and values that both ends know beforehand, for weft.
        - `understands`, `roles`: header blocks and roles of this SOAP node; addressing headers are
          always understood.
        """
        self._accept = tuple(accept)
        for kind in (*self._accept, *assume):
            if kind not in _CODINGS:
                raise InvalidRequest("not a content type of XML messages", content_type=kind)
        self._profile = profile or NO_PROFILE
        self._assume = frozenset(self._full(kind) for kind in assume)
        self._node = SoapNode(understands={*understands, *UNDERSTOOD}, roles=roles)
        self._peers: OrderedDict[str, _Peer] = OrderedDict()

    @xml_refusals()
    def encode(self, value: XmlMessage, peer: str) -> Content:
        headers = list(value.headers)
        if value.addressing is not None:
            headers = [*value.addressing.blocks(), *headers]
        return self._encode(Envelope(value.body, headers), peer)

    @xml_refusals()
    def decode(self, content: Content, peer: str) -> XmlMessage:
        self._learn(content.headers, peer)
        kind, profile = self._known(content.content_type)
        events = _CODINGS[kind].decoder(profile).decode(content.body)
        envelope = read_envelope(typed_sequence(events))
        fault = read_fault(envelope.body)
        if fault is not None:
            raise fault
        self._node.understood(envelope)
        addressing = read_addressing(envelope)
        others = tuple(block for block in envelope.headers if block.name not in UNDERSTOOD)
        return XmlMessage(envelope.body, others, addressing)

    def takes(self, content_type: str) -> bool:
        return essence(content_type) in _CODINGS

    def refusal_of(self, error: Exception) -> Rejected | None:
        return as_rejected(error) if isinstance(error, XmlError) else super().refusal_of(error)

    def decline(self, error: Rejected, peer: str) -> Content | None:
        said = error if isinstance(error, SoapFault) else SoapFault(FaultCode.SENDER, str(error))
        return self._encode(fault_envelope(said), peer)

    def _encode(self, envelope: Envelope, peer: str) -> Content:
        known = self._peer(peer)
        reads = frozenset(known.accepts) or self._assume
        full = next((f for kind in self._accept if (f := self._full(kind)) in reads), SOAP_XML)
        encoder = _CODINGS[essence(full)].encoder(self._profile)
        body = encoder.encode(write_envelope(envelope))
        if known.told and known.accepts:
            return Content(full, body)
        known.told = True
        mine = ",".join(self._full(kind) for kind in self._accept)
        asks = "" if known.accepts else "?"
        return Content(full, body, ((ACCEPT_HEADER, mine + asks),))

    def _full(self, kind: str) -> str:
        if _CODINGS[kind].profiled and self._profile.check:
            return f"{kind}; profile={self._profile.check:08x}"
        return kind

    def _known(self, content_type: str) -> tuple[str, Profile]:
        """Return the coding of a content type, and the profile that it needs."""
        kind = essence(content_type)
        if kind not in _CODINGS:
            raise InvalidRequest(
                "not a content type of XML messages", content_type=content_type[:80]
            )
        wanted = content_type.partition("profile=")[2].strip()
        if not wanted:
            return kind, NO_PROFILE
        if wanted != f"{self._profile.check:08x}":
            raise InvalidRequest(
                "the message needs a profile that is not known here", profile=wanted[:80]
            )
        return kind, self._profile

    def _learn(self, headers: tuple[tuple[str, str], ...], peer: str) -> None:
        told = dict(headers).get(ACCEPT_HEADER)
        if told is None or not peer:
            return
        known = self._peer(peer)
        types = told.removesuffix("?").split(",")[:MOST_TYPES]
        known.accepts = tuple(kind.strip()[:120] for kind in types)
        if told.endswith("?"):
            known.told = False

    def _peer(self, peer: str) -> _Peer:
        known = self._peers.setdefault(peer, _Peer())
        self._peers.move_to_end(peer)
        if len(self._peers) > MOST_PEERS:
            self._peers.popitem(last=False)
        return known
