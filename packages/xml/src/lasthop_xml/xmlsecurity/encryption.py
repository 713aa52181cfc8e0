"""XML Encryption: elements that only the holders of a key can read (W3C, XML Encryption 1.1).

Each element is encrypted with a key of its own, which is wrapped with the key of the recipient. The
plaintext is XML, or Xebu between ends that both have it, which is smaller. AES-GCM is the only
cipher: the older modes tell an attacker too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lasthop_xml.errors import XmlError
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import PREFIX_MAPPING, typed
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.transform import as_document
from lasthop_xml.xas.tree import Element, Tree
from lasthop_xml.xas.writer import Writer
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xmlsecurity.errors import (
    AlgorithmRefused,
    CannotDecrypt,
    MalformedSecurity,
    UnknownKey,
)
from lasthop_xml.xmlsecurity.keys import UnwrappingKey, WrappingKey
from lasthop_xml.xmlsecurity.places import BASE64, at_path, octets, only_child
from lasthop_xml.xmlsecurity.vocabulary import (
    AES256_GCM,
    ALGORITHM,
    ELEMENT,
    MIME_TYPE,
    PREFIXES,
    TYPE,
    ds,
    xenc,
)

XEBU: Final = "application/x-ebu+data"
MOST_ENCRYPTED: Final = 64
"""The largest number of encrypted elements of a message: each may cost an operation with a private
key, about 1 ms."""
_NONCE: Final = 12
_KEY: Final = 32
_AROUND: Final = Name("", "around")


def encrypt(
    events: EventSequence,
    key: WrappingKey,
    *,
    at: Sequence[Name],
    entropy: Callable[[int], bytes],
    binary: bool = False,
) -> EventList:
    """Return a document in which the element at a path of names is encrypted; pass os.urandom as
    `entropy`.

    With `binary` the plaintext is Xebu instead of XML.
    """
    tree = Tree(events)
    element = at_path(tree, at)
    fragment = element.fragment()
    plain = Encoder().encode(as_document(fragment)) if binary else serialize_xml(fragment)
    secret, nonce = entropy(_KEY), entropy(_NONCE)
    data = nonce + AESGCM(secret).encrypt(nonce, plain, None)
    hidden = EventList()
    writer = Writer(hidden)
    attributes = {TYPE: ELEMENT, **({MIME_TYPE: XEBU} if binary else {})}
    with writer.element(xenc("EncryptedData"), attributes, prefixes=PREFIXES):
        _method(writer, AES256_GCM)
        with writer.element(ds("KeyInfo")), writer.element(xenc("EncryptedKey")):
            _method(writer, key.algorithm)
            with writer.element(ds("KeyInfo")):
                writer.text_element(ds("KeyName"), key.name)
            _cipher(writer, key.wrap(secret))
        _cipher(writer, data)
    return _replaced(tree, element, hidden)


def decrypt(events: EventSequence, keys: Iterable[UnwrappingKey]) -> EventList:
    """Return a document with all its encrypted elements decrypted; encrypted elements inside of
    them stay."""
    tree = Tree(events)
    root = tree.root
    found = [each for each in (root, *root.descendants()) if each.name == xenc("EncryptedData")]
    if not found:
        raise MalformedSecurity("nothing in this message is encrypted")
    if len(found) > MOST_ENCRYPTED:
        raise MalformedSecurity("a message has too many encrypted elements", most=MOST_ENCRYPTED)
    known = {key.name: key for key in keys}
    result = EventList()
    at = 0
    for element in found:
        if element.start < at:
            raise MalformedSecurity("encrypted data is nested in encrypted data")
        result += tree.events[at : element.first]
        scope = outermost() if element.parent is None else element.parent.scope
        result += _needed(_plain(element, known, scope), scope)
        at = element.end + 1
    result += tree.events[at:]
    return result


def _plain(element: Element, keys: dict[str, UnwrappingKey], scope: Scope) -> EventList:
    _check(element, AES256_GCM)
    if element.attributes.get(TYPE) != ELEMENT:
        raise MalformedSecurity("only whole elements can be decrypted")
    wrapped = only_child(only_child(element, ds("KeyInfo")), xenc("EncryptedKey"))
    name = only_child(only_child(wrapped, ds("KeyInfo")), ds("KeyName")).text.strip()
    key = keys.get(name)
    if key is None:
        raise UnknownKey("no key has this name", key=name[:80])
    _check(wrapped, key.algorithm)
    secret = key.unwrap(_value(wrapped))
    data = _value(element)
    if secret is None or len(secret) != _KEY or len(data) < _NONCE:
        raise CannotDecrypt("this cannot be decrypted", key=name)
    try:
        plain = AESGCM(secret).decrypt(data[:_NONCE], data[_NONCE:], None)
    except InvalidTag:
        raise CannotDecrypt("this cannot be decrypted", key=name) from None
    return _parsed(plain, element.attributes.get(MIME_TYPE), scope)


def _parsed(plain: bytes, mime_type: str | None, scope: Scope) -> EventList:
    """Return the element that was encrypted, without the document that its format puts around
    it."""
    try:
        if mime_type == XEBU:
            root = Tree(Decoder().decode(plain)).root
        else:
            root = _parsed_inside(plain, scope)
    except XmlError as error:
        raise MalformedSecurity(
            "the decrypted data is not an element", reason=error.detail
        ) from None
    return EventList(root.tree.events[root.first : root.end + 1])


def _parsed_inside(plain: bytes, scope: Scope) -> Element:
    """Parse XML that relies on the prefixes declared around it, as other implementations encrypt
    it."""
    around = EventList()
    prefixes = {to: ns for to, ns in scope.prefixes.items() if to != "xml" and (to or ns)}
    with Writer(around).element(_AROUND, prefixes=prefixes):
        pass
    opening = serialize_xml(around).removesuffix(b"/>")
    tree = Tree(parse_xml(b"%b>%b</%b>" % (opening, plain, opening[1:].split(b" ")[0])))
    children = list(tree.root)
    if len(children) != 1 or tree.root.text.strip() != children[0].text.strip():
        raise MalformedEvents("one element was expected", found=len(children))
    return children[0]


def _needed(events: EventList, scope: Scope) -> EventList:
    """Return an element without the prefix declarations that are in scope around it anyway."""
    count = next(at for at, event in enumerate(events) if event.kind is not PREFIX_MAPPING)
    own = [
        event
        for event in events[:count]
        if event.name is not None and scope.prefixes.get(event.name.local) != event.name.ns
    ]
    return EventList([*own, *events[count:]])


def _replaced(tree: Tree, element: Element, by: EventList) -> EventList:
    return EventList([*tree.events[: element.first], *by, *tree.events[element.end + 1 :]])


def _method(writer: Writer, algorithm: str) -> None:
    with writer.element(xenc("EncryptionMethod"), {ALGORITHM: algorithm}):
        pass


def _check(element: Element, algorithm: str) -> None:
    method = only_child(element, xenc("EncryptionMethod"))
    found = method.attributes.get(ALGORITHM)
    digests = [each.attributes.get(ALGORITHM) for each in method.find_all(ds("DigestMethod"))]
    if found != algorithm or digests not in ([], ["http://www.w3.org/2000/09/xmldsig#sha1"]):
        raise AlgorithmRefused("this encryption is not supported", algorithm=str(found))


def _cipher(writer: Writer, data: bytes) -> None:
    with writer.element(xenc("CipherData")), writer.element(xenc("CipherValue")):
        writer.event(typed(BASE64, data))


def _value(element: Element) -> bytes:
    return octets(only_child(only_child(element, xenc("CipherData")), xenc("CipherValue")))
