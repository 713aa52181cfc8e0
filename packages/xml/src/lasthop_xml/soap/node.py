"""The processing of a message by a SOAP node (part 1, sections 2.6 and 2.7): which header blocks
are for the node, which it must understand, and which it passes on."""

from __future__ import annotations

from collections.abc import Collection

from lasthop_xml.soap.envelope import Envelope, HeaderBlock
from lasthop_xml.soap.fault import FaultCode, SoapFault
from lasthop_xml.soap.names import NEXT, NONE, SOAP_NS, ULTIMATE, soap
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.writer import Writer

NOT_UNDERSTOOD = soap("NotUnderstood")
UPGRADE = soap("Upgrade")
_QNAME = Name("", "qname")


class SoapNode:
    """A SOAP node, given by the roles that it plays and the header blocks that it understands.

    `ultimate` means that messages are for this node; any other node is an intermediary.
    """

    __slots__ = ("_roles", "_understands", "ultimate")

    def __init__(
        self,
        *,
        understands: Collection[Name] = (),
        roles: Collection[str] = (),
        ultimate: bool = True,
    ) -> None:
        if NONE in roles:
            raise ValueError("a node must not play the role none")
        self._understands = frozenset(understands)
        self._roles = frozenset(roles) | {NEXT} | ({ULTIMATE} if ultimate else set())
        self.ultimate = ultimate

    def targeted(self, envelope: Envelope) -> list[HeaderBlock]:
        """Return the header blocks that are for this node."""
        return [block for block in envelope.headers if block.role in self._roles]

    def understood(self, envelope: Envelope) -> list[HeaderBlock]:
        """Return the header blocks that the node must act on. Raise a MustUnderstand fault if one
        of the blocks that it must understand is unknown to it; the node must then process none of
        them (part 1, section 2.6, step 3)."""
        targeted = self.targeted(envelope)
        missing = tuple(
            block.name
            for block in targeted
            if block.must_understand and block.name not in self._understands
        )
        if missing:
            raise SoapFault(
                FaultCode.MUST_UNDERSTAND,
                "a header block must be understood, and this node does not understand it",
                not_understood=missing,
            )
        return [block for block in targeted if block.name in self._understands]

    def passed_on(self, envelope: Envelope, *, again: Collection[HeaderBlock] = ()) -> Envelope:
        """Return the message that an intermediary forwards (part 1, table 3): blocks for other
        nodes, unknown blocks for this node that say `relay`, and the blocks in `again`."""
        kept = [
            block
            for block in envelope.headers
            if block.role not in self._roles
            or (block.relay and block.name not in self._understands)
        ]
        return Envelope(envelope.body, [*kept, *again])


def fault_envelope(fault: SoapFault) -> Envelope:
    """Return the reply that reports a fault, with the header blocks that belong to it (part 1,
    sections 5.4.7 and 5.4.8)."""
    headers = [_not_understood(name) for name in fault.not_understood]
    if fault.fault_code is FaultCode.VERSION_MISMATCH:
        headers.append(_upgrade())
    return Envelope(fault.body(), headers)


def _not_understood(name: Name) -> HeaderBlock:
    element = EventList()
    writer = Writer(element)
    prefixes = {"env": SOAP_NS, "n": name.ns}
    writer.start(NOT_UNDERSTOOD, {_QNAME: f"n:{name.local}"}, prefixes=prefixes)
    writer.end()
    return HeaderBlock(element)


def _upgrade() -> HeaderBlock:
    element = EventList()
    writer = Writer(element)
    with writer.element(UPGRADE, prefixes={"env": SOAP_NS}):
        writer.start(soap("SupportedEnvelope"), {_QNAME: "env:Envelope"})
        writer.end()
    return HeaderBlock(element)
