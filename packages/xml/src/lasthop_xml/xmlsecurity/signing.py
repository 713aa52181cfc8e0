"""Making signatures (W3C, XML Signature 1.1).

The signature is the last child of the root, and signs the whole document or one element that has an
identifier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, Literal

from lasthop_xml.errors import InvalidInput
from lasthop_xml.xas.events import Event, typed
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.tree import Element, Tree
from lasthop_xml.xas.writer import Writer
from lasthop_xml.xmlsecurity.canonicalization import Canonicalization, exclusive_for
from lasthop_xml.xmlsecurity.keys import SigningKey
from lasthop_xml.xmlsecurity.places import BASE64, at_path, identifier_of, only_child
from lasthop_xml.xmlsecurity.vocabulary import (
    ALGORITHM,
    CANONICAL_2,
    DSIG_NS,
    ENVELOPED,
    SHA256,
    URI,
    ds,
)

Form = Literal["canonical", "exclusive"]
_UNSIGNED: Final = b""


def sign(
    events: EventSequence,
    key: SigningKey,
    *,
    at: Sequence[Name] | None = None,
    form: Form = "canonical",
) -> EventList:
    """Return a document with a signature over all of it, or over the element at a path of names.

    `form` is the canonicalization: "canonical" survives every format, "exclusive" is what other
    implementations of XML Signature understand.
    """
    tree = Tree(events)
    target = None if at is None else at_path(tree, at)
    signed = tree.root if target is None else target
    method = Canonicalization(CANONICAL_2) if form == "canonical" else exclusive_for(signed)
    digest = hashlib.sha256(method.of(tree.events if target is None else target.fragment()))
    draft = _signature(target, key, method, digest.digest(), _UNSIGNED)
    place = tree.root.end
    whole = Tree(EventList([*tree.events[:place], *draft, *tree.events[place:]]))
    signature = list(whole.root)[-1]
    information = only_child(signature, ds("SignedInfo"))
    value = key.sign(Canonicalization(method.algorithm).of(information.fragment()))
    final = _signature(target, key, method, digest.digest(), value)
    return EventList([*tree.events[:place], *final, *tree.events[place:]])


def _signature(
    target: Element | None, key: SigningKey, method: Canonicalization, digest: bytes, value: bytes
) -> EventList:
    signature = EventList()
    writer = Writer(signature)
    with writer.element(ds("Signature"), prefixes={"ds": DSIG_NS}):
        with writer.element(ds("SignedInfo")):
            Canonicalization(method.algorithm).write(ds("CanonicalizationMethod"), writer)
            _empty(writer, "SignatureMethod", key.algorithm)
            with writer.element(ds("Reference"), {URI: _reference(target)}):
                with writer.element(ds("Transforms")):
                    if target is None or target.parent is None:
                        _empty(writer, "Transform", ENVELOPED)
                    method.write(ds("Transform"), writer)
                _empty(writer, "DigestMethod", SHA256)
                _value(writer, "DigestValue", digest)
        _value(writer, "SignatureValue", value)
        with writer.element(ds("KeyInfo")):
            writer.text_element(ds("KeyName"), key.name)
    return signature


def _reference(target: Element | None) -> str:
    if target is None:
        return ""
    identifier = identifier_of(target)
    if identifier is None:
        raise InvalidInput(
            "an element needs an attribute Id to be signed", element=str(target.name)
        )
    return f"#{identifier}"


def _empty(writer: Writer, local: str, algorithm: str) -> None:
    with writer.element(ds(local), {ALGORITHM: algorithm}):
        pass


def _value(writer: Writer, local: str, octets: bytes) -> None:
    # The value is typed without a declared type: formats that know types send the bytes themselves.
    event: Event = typed(BASE64, octets)
    with writer.element(ds(local)):
        writer.event(event)
