"""Snapshots of token tables as bytes, so that a session survives reconnects, restarts and a move to
another host.

A snapshot is taken between two messages; its epoch and its number of messages give its place in the
session. Two ends that are restored from snapshots of the same place continue as if nothing had
happened; anything else needs a reset.
"""

from __future__ import annotations

from typing import Final

import msgspec

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import Event, attribute, content
from lasthop_xml.xas.limits import DEFAULT_LIMITS, Limits
from lasthop_xml.xas.names import Name, check_text, is_ncname
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import NOTHING_KNOWN, Encoder
from lasthop_xml.xebu.errors import XebuStateError
from lasthop_xml.xebu.layout import TOKENS
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.omission.knowledge import Knowledge
from lasthop_xml.xebu.policies import POLICIES
from lasthop_xml.xebu.tokens import KnownStrings, Mode, interned

VERSION: Final = 1
MAX_SNAPSHOT: Final = 8 * 2**20
"""The largest number of bytes of a snapshot: four full tables of the longest strings, with the
namespaces of names written out."""


class _Snapshot(msgspec.Struct, array_like=True):
    version: int
    epoch: int
    messages: int
    namespaces: list[str | None]
    names: list[tuple[str, str] | None]
    values: list[tuple[str, str, str] | None]
    texts: list[str | None]
    mode: int = 0
    policy: str = ""
    orders: list[list[list[int]]] = []
    schema: bytes = b""


def save_encoder(encoder: Encoder) -> bytes:
    """Return the encoder's state as bytes for `restore_encoder`."""
    tables = encoder.tables
    orders = [table.policy.state() for table in tables.all]
    names = {kind: name for name, kind in POLICIES.items()}
    policy = names.get(type(tables.names.policy), "")
    state = _Snapshot(
        VERSION,
        encoder.epoch,
        encoder.messages,
        tables.namespaces.keys,
        _plain_names(tables.names.keys),
        _plain_values(tables.values.keys),
        tables.texts.keys,
        encoder.mode.value,
        policy,
        orders,
        encoder.schema,
    )
    return msgspec.msgpack.encode(state)


def save_decoder(decoder: Decoder) -> bytes:
    """Return the decoder's state as bytes for `restore_decoder`; raise XebuStateError if it is
    poisoned."""
    if decoder.poisoned:
        raise XebuStateError(
            "a decoder that has failed cannot be saved; reset first", epoch=decoder.epoch
        )
    tables = decoder.tables
    state = _Snapshot(
        VERSION,
        decoder.epoch,
        decoder.messages,
        tables.namespaces,
        _plain_names(tables.names),
        _plain_values(tables.values),
        [None if event is None else event.value for event in tables.texts],
        schema=decoder.schema,
    )
    return msgspec.msgpack.encode(state)


def restore_encoder(
    data: bytes, *, known: KnownStrings = NOTHING_KNOWN, knowledge: Knowledge | None = None
) -> Encoder:
    """Return an encoder that continues where the snapshot was taken.

    `known` is for its next reset; a session with a schema needs the schema's `knowledge` instead.
    """
    state = _load(data, knowledge)
    policy = POLICIES.get(state.policy)
    if policy is None or len(state.orders) != 4:
        raise XebuStateError("this is not a snapshot of an encoder", epoch=state.epoch)
    try:
        mode = Mode(state.mode)
        if knowledge is None:
            encoder = Encoder(mode, policy=policy, known=known)
        else:
            encoder = SchemaEncoder(knowledge, mode, policy=policy)
        tables = encoder.tables
        tables.namespaces.load(state.namespaces)
        tables.names.load([None if name is None else Name(*name) for name in state.names])
        tables.values.load([_value(value) for value in state.values])
        tables.texts.load(state.texts)
        for table, order in zip(tables.all, state.orders, strict=True):
            table.policy.restore(order)
    except ValueError as error:
        raise XebuStateError("a snapshot is damaged", reason=str(error)) from None
    encoder.epoch, encoder.messages = state.epoch, state.messages
    return encoder


def restore_decoder(
    data: bytes,
    *,
    known: KnownStrings = NOTHING_KNOWN,
    knowledge: Knowledge | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Decoder:
    """Return a decoder that continues where the snapshot was taken. `known` is for its next reset;
    a session with a schema needs the schema's `knowledge` instead."""
    state = _load(data, knowledge)
    if knowledge is None:
        decoder = Decoder(known=known, limits=limits)
    else:
        decoder = SchemaDecoder(knowledge, limits=limits)
    tables = decoder.tables
    tables.namespaces[:] = state.namespaces
    tables.texts[:] = [None if text is None else content(text) for text in state.texts]
    tables.values[:] = [_value(value) for value in state.values]
    for token, name in enumerate(state.names):
        tables.put_name(token, None if name is None else interned(Name(*name)))
    decoder.epoch, decoder.messages = state.epoch, state.messages
    return decoder


def _plain_names(names: list[Name | None]) -> list[tuple[str, str] | None]:
    return [None if name is None else (name.ns, name.local) for name in names]


def _plain_values(values: list[Event | None]) -> list[tuple[str, str, str] | None]:
    return [
        None if event is None or event.name is None else (*event.name, event.value)
        for event in values
    ]


def _value(value: tuple[str, str, str] | None) -> Event | None:
    return None if value is None else attribute(interned(Name(*value[:2])), value[2])


def _load(data: bytes, knowledge: Knowledge | None) -> _Snapshot:
    if len(data) > MAX_SNAPSHOT:
        raise XebuStateError("a snapshot is too large", size=len(data), most=MAX_SNAPSHOT)
    try:
        state = msgspec.msgpack.decode(data, type=_Snapshot)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise XebuStateError("a snapshot is damaged", reason=str(error)) from None
    tables = (state.namespaces, state.names, state.values, state.texts)
    if state.version != VERSION or any(len(table) != TOKENS for table in tables):
        raise XebuStateError("a snapshot is of another version", version=state.version)
    if state.schema != (b"" if knowledge is None else knowledge.fingerprint):
        raise XebuStateError("the snapshot is of a session with another schema", epoch=state.epoch)
    try:
        _check(state)
    except MalformedEvents as error:
        raise XebuStateError("a snapshot is damaged", reason=error.detail) from None
    return state


def _check(state: _Snapshot) -> None:
    """Check the strings of a snapshot as strings of messages are checked, since they go straight
    into events."""
    for text in (*state.namespaces, *state.texts):
        check_text(text or "")
    for name in (*state.names, *state.values):
        if name is not None:
            for part in name:
                check_text(part)
            if name[1] and not is_ncname(name[1]):
                raise MalformedEvents("this is not a local name")
    if state.epoch < 0 or state.messages < 0:
        raise MalformedEvents("a count is negative")
