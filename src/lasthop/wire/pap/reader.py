"""Reads control entities: bytes become a `Document` that is valid by the document type of its
version.

A plain push-message is read by `plain`. Everything else takes three steps, each passing on less
than it got. `prolog` removes everything before the root element. `_screen` lets nothing pass but
tags and attributes of PAP's vocabulary with harmless references. Then libxml2 parses what is left,
`validity` checks it against its document type (5.1.1 of the PPG service: that decides), and
`layout` says how it becomes a value.

The screen gives more than good error messages. libxml2 keeps every distinct name, and every
distinct short run of blanks, for the life of the process; a sender of new ones with each document
would fill the memory.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, cast

from lxml import etree

from lasthop.errors import PapError, PapInvalid, PapMalformed, PapVersionUnknown, TooLarge
from lasthop.wire.pap.documents import Document, PapMessage, PushMessage
from lasthop.wire.pap.layout import ATTRIBUTES, BY_TAG, MAX_TEXT, TAGS, PapElement
from lasthop.wire.pap.plain import Prologs
from lasthop.wire.pap.prolog import (
    BLANK,
    COMMENT,
    INSTRUCTION,
    decode,
    encoding_of,
    line_at,
    read_prolog,
)
from lasthop.wire.pap.validity import check_valid, line_of
from lasthop.wire.pap.versions import UNDECLARED, VERSIONS, Version

MAX_DOCUMENT = 1024 * 1024
"""The largest number of octets in a control entity: as many addresses as are allowed fit, each with
room to spare."""

MAX_TAGS = 2000
"""The largest number of tags of a control entity: a push to some two thousand phone numbers; use
groups for larger audiences. Reading and looking up an address takes 13 microseconds, in which no
other work is done. A node costs libxml2 some 400 octets, so a document of nothing but small tags
would grow a hundredfold."""

MAX_ATTRIBUTES = 16
"""The largest number of attributes of one element; a push-message, which has the most, has
eight."""

_REFERENCE = "&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});"
_DOUBLE = f'"[^"<&]*+(?:{_REFERENCE}[^"<&]*+)*+"'
_SINGLE = f"'[^'<&]*+(?:{_REFERENCE}[^'<&]*+)*+'"
_NAME = "|".join(sorted(TAGS, reverse=True))
_ATTRIBUTE_NAME = "|".join(sorted(ATTRIBUTES, reverse=True))
_ATTRIBUTE = f"{BLANK}++(?:{_ATTRIBUTE_NAME}){BLANK}*+={BLANK}*+(?:{_DOUBLE}|{_SINGLE})"

_TAGS = re.compile(
    f"(?:<(?:(?:{_NAME})(?:{_ATTRIBUTE}){{0,{MAX_ATTRIBUTES}}}+{BLANK}*+/?|/(?:{_NAME}){BLANK}*+)>"
    f"{BLANK}*+)*+"
)
"""A run of tags that PAP has, each with attributes that PAP has."""

_PASSED_OVER = re.compile(f"(?:(?:{COMMENT}|{INSTRUCTION}){BLANK}*+)++")
_BLANKS = re.compile(f">{BLANK}+<")
_ANY_NAME = re.compile(r"</?([^ \t\r\n/>=<\"']*+)")
_ANY_ATTRIBUTE = re.compile(
    f"{BLANK}++([^ \t\r\n/>=<\"']++){BLANK}*+={BLANK}*+(\"[^\"]*+\"|'[^']*+')"
)
_BAD_REFERENCE = re.compile(f"&(?!{_REFERENCE[1:]})")

# The depth needs no limit of its own: libxml2 stops at 256 levels unless told otherwise
# (huge_tree), and no valid document has more than four.
_PARSER = etree.XMLParser(
    encoding="utf-8",
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    dtd_validation=False,
    huge_tree=False,
)


_PROLOGS = Prologs()


def read_document(data: bytes, *, charset: str | None = None) -> Document:
    """Read a control entity; `charset` is that of its MIME header.

    Raises a `PapError` or `TooLarge`. A document whose DOCTYPE shows no version is checked against
    the newest that is in use.
    """
    plain = _PROLOGS.read(data, charset)
    return read_any_document(data, charset=charset) if plain is None else plain


def read_any_document(data: bytes, *, charset: str | None = None) -> Document:
    """Read a control entity as `read_document` does, without trying whether the document is
    plain."""
    if len(data) > MAX_DOCUMENT:
        raise TooLarge("a control entity is too large", limit=MAX_DOCUMENT)
    encoding = encoding_of(data, charset)
    text = decode(data, encoding)
    prolog = read_prolog(text)
    try:
        if prolog.version is not None and prolog.version not in VERSIONS:
            raise PapVersionUnknown("this version of PAP is not supported", asked=prolog.version)
        version = Version(prolog.version) if prolog.version else UNDECLARED
        root = _parse(_screen(text, prolog.root))
        message = _message(root, version)
        _PROLOGS.note(data, charset, encoding, prolog)
    except PapError as error:
        error.version, error.supported = prolog.version, prolog.supported
        raise
    return Document(message, version, prolog.supported, root.get("product-name"))


def _screen(text: str, at: int) -> str:
    """Return the document from its root element on, with the same line numbers, without comments,
    instructions and the exact form of blanks."""
    if text.count("<", at) > MAX_TAGS:
        raise TooLarge("a control entity has too many tags", limit=MAX_TAGS)
    kept = ["\n" * text.count("\n", 0, at)]
    while True:
        found = _TAGS.match(text, at)
        end = found.end() if found else at
        kept.append(text[at:end])
        if end == len(text):
            break
        skipped = _PASSED_OVER.match(text, end)
        if skipped is None:
            _refuse(text, end)
        kept.append("\n" * text.count("\n", end, skipped.end()))
        at = skipped.end()
    return _BLANKS.sub(_only_newlines, "".join(kept))


def _only_newlines(blanks: re.Match[str]) -> str:
    return ">" + "\n" * blanks[0].count("\n") + "<"


def _refuse(text: str, at: int) -> NoReturn:
    """Raise the error that says why the screen stopped here."""
    line = line_at(text, at)
    if text[at] != "<":
        raise PapInvalid("there is text between the elements", line=line)
    if text.startswith("<![CDATA[", at):
        raise PapInvalid("there is a CDATA section between the elements", line=line)
    name = _ANY_NAME.match(text, at)
    if name is None or not name[1].isprintable() or name[1][:1] in ("", "!", "?"):
        raise PapMalformed("not a tag", line=line)
    if name[1] not in TAGS:
        raise PapInvalid("PAP has no such element", line=line, element=name[1][:40])
    count = 0
    at = name.end()
    while found := _ANY_ATTRIBUTE.match(text, at):
        count += 1
        at = found.end()
        line = line_at(text, found.start(1))
        if found[1] not in ATTRIBUTES:
            raise PapInvalid("PAP has no such attribute", line=line, attribute=found[1][:40])
        if _BAD_REFERENCE.search(found[2]):
            raise PapMalformed("a reference names an entity that is not declared", line=line)
        if "<" in found[2]:
            raise PapMalformed('"<" in the value of an attribute', line=line)
        if count > MAX_ATTRIBUTES:
            raise TooLarge("an element has too many attributes", limit=MAX_ATTRIBUTES, line=line)
    raise PapMalformed("a tag is not complete", line=line_at(text, at))


def _parse(body: str) -> etree._Element:
    try:
        return etree.fromstring(body.encode(), _PARSER)
    except etree.XMLSyntaxError as error:
        line = error.lineno or None
        said = str(error.msg).partition(", line ")[0]
        raise PapMalformed(f"not well-formed: {said[:200]}", line=line) from None


def _message(root: etree._Element, version: Version) -> PapMessage:
    push_id = root[0].get("push-id") if len(root) and root[0].tag == "push-message" else None
    try:
        if root.tag == "pap" and len(root) and root[0].tag == "resultnotification-response":
            _check_answer(root)
        else:
            check_valid(root, version)
        _check_text("product-name", root.get("product-name"), root)
        return cast(PapMessage, _build(root[0], BY_TAG[str(root[0].tag)]))
    except PapError as error:
        error.push_id = push_id or None
        raise


def _check_answer(root: etree._Element) -> None:
    """Check a resultnotification-response less strictly: some initiators answer with nothing but a
    code. That is not valid, but shows that they have the notification, and an error would only
    repeat it."""
    answer = root[0]
    if len(root) > 1 or len(answer) > 1 or any(c.tag != "address" or len(c) for c in answer):
        raise PapInvalid(
            "a resultnotification-response must hold one address", line=line_of(answer)
        )
    if "code" not in answer.attrib:
        raise PapInvalid("a resultnotification-response must have a code", line=line_of(answer))
    if any("address-value" not in c.attrib for c in answer):
        raise PapInvalid("an address must have an address-value", line=line_of(answer))


def _check_text(name: str, text: str | None, node: etree._Element) -> None:
    if text is not None and len(text) > MAX_TEXT:
        raise PapInvalid(
            f"{name}: a text may have at most {MAX_TEXT} characters", line=line_of(node)
        )


def _build(node: etree._Element, element: PapElement) -> Any:
    values: dict[str, Any] = {}
    attributes = node.attrib
    for attribute in element.attributes:
        text = attributes.get(attribute.name)
        if text is not None:
            try:
                values[attribute.field] = attribute.read(str(text))
            except ValueError as error:
                raise PapInvalid(f"{attribute.name}: {error}", line=line_of(node)) from None
    for child in element.children:
        inner = child.element
        tag = "address" if inner is None else inner.tag
        found = [
            _address(part) if inner is None else _build(part, inner)
            for part in node.iterchildren(tag)
        ]
        if child.many:
            values[child.field] = tuple(found)
        elif found:
            values[child.field] = found[0]
    message = element.type(**values)
    if isinstance(message, PushMessage):
        _check_push(message, node)
    return message


def _address(node: etree._Element) -> str:
    text = str(node.get("address-value"))
    _check_text("address-value", text, node)
    return text


def _check_push(push: PushMessage, node: etree._Element) -> None:
    """Refuse a push whose times leave no moment to deliver it, which no document type can express
    (5.1.1)."""
    after, before = push.deliver_after, push.deliver_before
    if after is not None and before is not None and after >= before:
        raise PapInvalid(
            "deliver-after-timestamp is not before deliver-before-timestamp", line=line_of(node)
        )
