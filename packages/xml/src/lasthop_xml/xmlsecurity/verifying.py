"""Checking signatures, and returning only what they cover.

The caller says which part of a message it is going to read, and gets exactly the events that were
digested: a message with a good signature somewhere else in it ("signature wrapping") is refused.
Only signatures like our own and those that others commonly make are accepted: one reference into
the same document, no transforms that compute.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.transform import coalesced, without_comments
from lasthop_xml.xas.tree import Element, Tree
from lasthop_xml.xmlsecurity.canonicalization import Canonicalization, read
from lasthop_xml.xmlsecurity.errors import (
    AlgorithmRefused,
    MalformedSecurity,
    NotCovered,
    NotSigned,
    SignatureWrong,
    Tampered,
    UnknownKey,
)
from lasthop_xml.xmlsecurity.keys import VerifyingKey
from lasthop_xml.xmlsecurity.places import at_path, cut, identified, octets, only_child
from lasthop_xml.xmlsecurity.vocabulary import ALGORITHM, ENVELOPED, SHA256, URI, ds


class Verified(NamedTuple):
    """The part of a document that a key has signed, so that it may be trusted."""

    events: EventList
    """The document without its signature, or the signed element alone; without comments."""
    key: str
    """The name of the key that signed the events."""


def verify(
    events: EventSequence, keys: Iterable[VerifyingKey], *, at: Sequence[Name] | None = None
) -> Verified:
    """Return the part of a document that is going to be read, if one of the keys has signed it.

    That part is the element at the path of names `at` from the root, or without `at` the whole
    document.
    """
    tree = Tree(events)
    signature = _only_signature(tree)
    information = only_child(signature, ds("SignedInfo"))
    key = _key(signature, information, keys)
    form = read(only_child(information, ds("CanonicalizationMethod")))
    value = octets(only_child(signature, ds("SignatureValue")))
    if not key.verifies(value, form.of(information.fragment())):
        raise SignatureWrong("the signature does not match its key and what it signs", key=key.name)
    # XML Signature 1.1, section 3.2.2 is done: from here on SignedInfo is the statement of the
    # key's owner. The digest is checked below (section 3.2.1).
    reference = only_child(information, ds("Reference"))
    target = _target(tree, reference)
    wanted = None if at is None else at_path(tree, at)
    if (target or tree.root) != (wanted or tree.root):
        raise NotCovered(
            "the signature is for another element",
            signed=str((target or tree.root).name),
            wanted=str((wanted or tree.root).name),
        )
    enveloped, method = _transforms(reference)
    out = signature if enveloped and _inside(signature, target) else None
    covered = cut(tree, target, out)
    _check_digest(reference, method.of(covered))
    # Comments are not in the canonical form: a forged one could cut a text in two for a careless
    # reader.
    return Verified(EventList(coalesced(without_comments(covered))), key.name)


def _only_signature(tree: Tree) -> Element:
    root = tree.root
    found = [each for each in (root, *root.descendants()) if each.name == ds("Signature")]
    if len(found) != 1:
        raise NotSigned("a message must have exactly one signature", found=len(found))
    return found[0]


def _key(signature: Element, information: Element, keys: Iterable[VerifyingKey]) -> VerifyingKey:
    name = only_child(only_child(signature, ds("KeyInfo")), ds("KeyName")).text.strip()
    key = next((key for key in keys if key.name == name), None)
    if key is None:
        raise UnknownKey("no key has this name", key=name[:80])
    algorithm = only_child(information, ds("SignatureMethod")).attributes.get(ALGORITHM)
    if algorithm != key.algorithm:
        raise AlgorithmRefused(
            "the signature's algorithm is not that of its key",
            key=key.name,
            algorithm=str(algorithm),
        )
    return key


def _target(tree: Tree, reference: Element) -> Element | None:
    """Return the element that is signed; None for the whole document."""
    uri = reference.attributes.get(URI)
    # XML Signature 1.1, section 4.4.3.3: an empty URI is the document that has the signature.
    if uri == "":
        return None
    if uri is None or not uri.startswith("#") or uri.startswith("#xpointer("):
        raise MalformedSecurity("a reference points outside of the message", uri=str(uri)[:80])
    return identified(tree, uri[1:])


def _transforms(reference: Element) -> tuple[bool, Canonicalization]:
    listed = list(reference.find_all(ds("Transforms"), ds("Transform")))
    # XML Signature 1.1, section 6.6.4: this transform takes the signature out of what it signs.
    enveloped = bool(listed) and listed[0].attributes.get(ALGORITHM) == ENVELOPED
    rest = listed[enveloped:]
    if len(rest) != 1:
        raise AlgorithmRefused(
            "a reference must have exactly one canonicalization", found=len(rest)
        )
    return enveloped, read(rest[0])


def _inside(signature: Element, target: Element | None) -> bool:
    return target is None or target.start < signature.start < target.end


def _check_digest(reference: Element, covered: bytes) -> None:
    algorithm = only_child(reference, ds("DigestMethod")).attributes.get(ALGORITHM)
    if algorithm != SHA256:
        raise AlgorithmRefused("this digest is not supported", algorithm=str(algorithm))
    digest = hashlib.sha256(covered).digest()
    if not hmac.compare_digest(digest, octets(only_child(reference, ds("DigestValue")))):
        raise Tampered("what was signed has changed")
