"""From events to Xebu: one encoder for each direction of a session.

A message changes the tables only if all of it could be encoded. Its bytes are then part of the
session: they must reach the other end once and in order, or both ends have to reset.
"""

from __future__ import annotations

from lasthop_xml.xas.errors import MalformedEvents, UnknownType
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    COMMENT,
    CONTENT,
    DOCUMENT_END_KIND,
    DOCUMENT_START_KIND,
    ELEMENT_END,
    ELEMENT_START,
    ENTITY_REFERENCE,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    TYPED_CONTENT,
    Event,
)
from lasthop_xml.xas.names import XSI_TYPE, Name, check_name, check_text, is_ncname
from lasthop_xml.xas.scope import LastingScope, Scope
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xebu import layout
from lasthop_xml.xebu.errors import XebuLimitError
from lasthop_xml.xebu.layout import (
    LONGEST_KEPT,
    MAX_MESSAGE,
    ONE_BYTE,
    long_string,
    short_string,
)
from lasthop_xml.xebu.policies import Lru, PolicyFactory
from lasthop_xml.xebu.tokens import EncoderTables, KnownStrings, Mode
from lasthop_xml.xebu.values import FORMS, Write

NOTHING_KNOWN = KnownStrings()


def _with_token(first: int) -> tuple[bytes, ...]:
    return tuple(bytes((first, token)) for token in range(256))


# The two bytes of an event that consists of a token, by token.
_START = _with_token(layout.START | layout.NAME_TOKEN)
_PREFIX = _with_token(layout.PREFIX | layout.NAME_TOKEN)
_VALUE = _with_token(layout.ATTRIBUTE | layout.VALUE_TOKEN)
_TEXT = _with_token(layout.CONTENT | layout.VALUE_TOKEN)
_END = ONE_BYTE[layout.END]
_BLOCK_END = ONE_BYTE[layout.BLOCK_END]
_TYPED = ONE_BYTE[layout.TYPED]
_SEVERAL = ONE_BYTE[layout.TYPED | layout.SEVERAL]


class Encoder:
    """An encoder for the messages of one direction of a session, which must be decoded in order.

    With `forgetful`, every message starts from the strings known beforehand: for connections that
    lose or reorder messages. The decoder needs no such setting, since tokens are explicit.
    """

    def __init__(
        self,
        mode: Mode = Mode.DATA,
        *,
        policy: PolicyFactory = Lru,
        known: KnownStrings = NOTHING_KNOWN,
        forgetful: bool = False,
        max_message: int = MAX_MESSAGE,
    ) -> None:
        self.mode = mode
        self.known = known
        self.epoch = 0
        self.messages = 0
        self.schema = b""
        """The fingerprint of the session's schema; empty if it has none."""
        self._policy = policy
        self._forgetful = forgetful
        self._max_message = max_message
        self._scope = LastingScope()
        self.tables = EncoderTables(policy, known)

    def reset(self) -> None:
        """Begin a new epoch with empty tables; the decoder at the other end must do the same."""
        self.tables = EncoderTables(self._policy, self.known)
        self.epoch += 1
        self.messages = 0

    def encode(self, events: EventSequence) -> bytes:
        """Encode one document and return the bytes of its message; after an error the tables are
        unchanged."""
        if self._forgetful:
            self.tables = EncoderTables(self._policy, self.known)
        tables = self.tables.all
        try:
            message = self._encode(events)
            # The other end would refuse the message, and its tables would no longer match.
            if len(message) > self._max_message:
                raise XebuLimitError("a message is too large", most=self._max_message)
        except BaseException:
            for table in tables:
                table.undo()
            raise
        for table in tables:
            table.changes.clear()
            table.policy.next_message()
        self.messages += 1
        return message

    def _encode(self, events: EventSequence) -> bytes:
        source = iter(events)
        first = next(source, None)
        if first is None or first.kind is not DOCUMENT_START_KIND:
            raise MalformedEvents("the events do not start with a document start")
        tables = self.tables
        find_name, name_used = tables.names.tokens.get, tables.names.policy.used
        find_value, value_used = tables.values.tokens.get, tables.values.policy.used
        find_text, text_used = tables.texts.tokens.get, tables.texts.policy.used
        out = [ONE_BYTE[layout.DOCUMENT | self.mode.value]]
        add = out.append
        stack: list[Name | None] = []
        scope: Scope = self._scope
        outer: list[tuple[Scope, int]] = []
        scoped = -1  # the depth at which the innermost prefix mappings end
        mappings: list[Name] = []
        declared: str | None = None  # by the xsi:type of the innermost open element
        block = False  # a start block is open
        runs: list[tuple[int, list[bytes]]] = []
        typed_end = text_end = -1
        last_type: Name | None = None

        for event in source:
            kind, name, value = event
            if kind is ATTRIBUTE:
                token = find_value(event)
                if token is not None:
                    value_used(token)
                    add(_VALUE[token])
                else:
                    add(self._new_value(event))
                if name is XSI_TYPE or name == XSI_TYPE:
                    declared = value
            elif kind is ELEMENT_END:
                if block:
                    add(_BLOCK_END)
                    block = False
                # `is` spares the comparison of most names, here and above.
                if not stack or ((top := stack.pop()) is not name and top != name):
                    raise MalformedEvents("an element ends that is not open", name=str(name))
                add(_END)
                declared = None
                if len(stack) == scoped:
                    scope, scoped = outer.pop()
            elif kind is ELEMENT_START:
                if block:
                    add(_BLOCK_END)
                if mappings:
                    outer.append((scope, scoped))
                    scope, scoped = scope.declare(mappings), len(stack)
                    mappings = []
                block = True
                declared = None
                stack.append(name)
                token = find_name(name)  # type: ignore[arg-type]
                if token is not None:
                    name_used(token)
                    add(_START[token])
                else:
                    add(self._new_name(layout.START, name))
            elif kind is TYPED_CONTENT:
                if block:
                    add(_BLOCK_END)
                    block = False
                found = scope.codecs.get(declared)  # type: ignore[arg-type]
                if found is None:
                    found = declared_writer(scope, declared)
                if found is None or (found[0] is not name and found[0] != name):
                    data = writer_of(name)(value)
                    add(self._named(layout.TYPED | layout.NAMED_TYPE, name) + data)
                    continue
                data = found[1](value)
                if typed_end != len(out) or last_type != name:
                    add(_TYPED)
                    add(data)
                    typed_end, last_type = len(out), name
                elif runs and runs[-1][0] == typed_end:
                    runs[-1][1].append(data)
                else:
                    runs.append((typed_end, [out[-1], data]))
            elif kind is CONTENT:
                if block:
                    add(_BLOCK_END)
                    block = False
                token = find_text(value)
                if token is not None:
                    text_used(token)
                    data = _TEXT[token]
                else:
                    data = self._new_text(layout.CONTENT, value)
                if name is not None:
                    if text_end != len(out):
                        raise MalformedEvents("a text is continued that has not begun")
                    data = continue_text(out, data)
                add(data)
                text_end = len(out)
            elif kind is PREFIX_MAPPING and name is not None:
                if block:
                    add(_BLOCK_END)
                    block = False
                mappings.append(name)
                token = find_name(name)
                if token is not None:
                    name_used(token)
                    add(_PREFIX[token])
                else:
                    add(self._new_name(layout.PREFIX, name))
            elif kind is DOCUMENT_END_KIND:
                break
            else:
                if block:
                    add(_BLOCK_END)
                    block = False
                add(self._special(kind, value))
        else:
            raise MalformedEvents("the events have no document end")
        if stack or next(source, None) is not None:
            raise MalformedEvents("a document ends inside an element, or events follow its end")
        for at, values in runs:
            # Typed values in a row share one length instead of a byte each (thesis, section 5.4.2).
            out[at - 2] = _SEVERAL
            out[at - 1] = long_string(b"".join(values))
        return b"".join(out)

    def _named(self, kind: int, name: Name | None) -> bytes:
        token = self.tables.names.tokens.get(name) if name is not None else None
        if token is None:
            return self._new_name(kind, name)
        self.tables.names.policy.used(token)
        return bytes((kind | layout.NAME_TOKEN, token))

    def _new_name(self, kind: int, name: Name | None) -> bytes:
        """Encode a name that has no token yet, and assign one to it."""
        if name is None:
            raise MalformedEvents("an event has no name")
        if kind != layout.PREFIX or name.local:
            check_name(name)
        else:
            check_text(name.ns)
        tables = self.tables
        with_tokens = self.mode is not Mode.NONE
        token = tables.namespaces.tokens.get(name.ns)
        if token is not None:
            tables.namespaces.policy.used(token)
            ns = ONE_BYTE[token]
            kind |= layout.NAMESPACE_TOKEN
        else:
            data = name.ns.encode()
            ns = short_string(data)
            if with_tokens:
                keep = len(data) <= LONGEST_KEPT
                ns = ONE_BYTE[tables.namespaces.assign(name.ns) if keep else 0] + ns
        data = name.local.encode()
        local = short_string(data)
        if with_tokens:
            keep = len(data) <= LONGEST_KEPT
            local = ONE_BYTE[tables.names.assign(name) if keep else 0] + local
        return ONE_BYTE[kind] + ns + local

    def _new_value(self, event: Event) -> bytes:
        value = check_text(event.value)
        data = value.encode()
        token = b""
        prefix = self._named(layout.ATTRIBUTE, event.name)
        if self.mode is Mode.DATA:
            keep = len(data) <= LONGEST_KEPT
            token = ONE_BYTE[self.tables.values.assign(event) if keep else 0]
        return prefix + token + short_string(data)

    def _new_text(self, kind: int, text: str) -> bytes:
        data = check_text(text).encode()
        token = b""
        if self.mode is Mode.DATA:
            keep = len(data) <= LONGEST_KEPT
            token = ONE_BYTE[self.tables.texts.assign(text) if keep else 0]
        return ONE_BYTE[kind] + token + long_string(data)

    def _special(self, kind: int, value: str) -> bytes:
        if kind is COMMENT:
            return ONE_BYTE[layout.COMMENT] + long_string(check_text(value).encode())
        if kind is ENTITY_REFERENCE and is_ncname(value):
            form = layout.ENTITY
        elif kind is PROCESSING_INSTRUCTION and is_ncname(value.partition(" ")[0]):
            form = layout.INSTRUCTION
        else:
            raise MalformedEvents("this event is not allowed here", kind=kind)
        texts = self.tables.texts
        token = texts.tokens.get(value)
        if token is None:
            return self._new_text(form, value)
        texts.policy.used(token)
        return bytes((form | layout.SPECIAL_TOKEN, token))


def declared_writer(scope: Scope, text: str | None) -> tuple[Name, Write] | None:
    """Return the type that an xsi:type of `text` declares and the function that writes its values;
    None if Xebu has no form for it."""
    type_ = scope.resolve(text) if text is not None else None
    form = FORMS.get(type_) if type_ is not None else None
    if form is None or type_ is None or text is None:
        return None
    scope.remember(text, type_, form.write)
    return type_, form.write


def writer_of(type_: Name | None) -> Write:
    form = FORMS.get(type_) if type_ is not None else None
    return form.write if form is not None else _unknown_type


def _unknown_type(value: object) -> bytes:
    raise UnknownType("the type of this value is not primitive", value=str(value)[:80])


def continue_text(out: list[bytes], data: bytes) -> bytes:
    """Append `data` to the text at the end of `out`: flag every part of that text as a piece, and
    write the byte that ends the text."""
    before = out[-1]
    if before[0] & layout.PIECE:
        out[-1] = before[: -len(_BLOCK_END)]
    else:
        out[-1] = ONE_BYTE[before[0] | layout.PIECE] + before[1:]
    return ONE_BYTE[data[0] | layout.PIECE] + data[1:] + _BLOCK_END
