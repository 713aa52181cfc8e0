"""The state of an end as bytes, so that it survives reconnects, restarts and a move to another
host.

A snapshot is taken between two messages. The end that is restored from it continues as if nothing
had happened; if the other end is ahead or behind, the chain of checks shows it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop_xml.weft.engines import BEST, Engine
from lasthop_xml.weft.errors import WeftStateError
from lasthop_xml.weft.frozen import Snapshot, frozen, thawed
from lasthop_xml.weft.profile import MAGIC, NO_PROFILE, Profile, read_snapshot
from lasthop_xml.weft.session import WINDOW, End, Level, WeftDecoder, WeftEncoder
from lasthop_xml.xas.limits import DEFAULT_LIMITS, Limits
from lasthop_xml.xas.sequence import EventSequence


class _State(msgspec.Struct, array_like=True):
    encodes: bool
    level: int
    forgetful: bool
    epoch: int
    messages: int
    chain: int
    profile: int
    window: bytes
    learned: Snapshot


def save_encoder(encoder: WeftEncoder) -> bytes:
    """Return the encoder's state as bytes for `restore_encoder`."""
    return _save(encoder, encodes=True, level=encoder.level, forgetful=encoder.forgetful)


def save_decoder(decoder: WeftDecoder) -> bytes:
    """Return the decoder's state as bytes for `restore_decoder`; raise WeftStateError if it is
    poisoned."""
    if decoder.poisoned:
        raise WeftStateError(
            "a decoder that has failed cannot be saved; reset first", epoch=decoder.epoch
        )
    return _save(decoder, encodes=False, level=0, forgetful=False)


def _save(end: End, *, encodes: bool, level: int, forgetful: bool) -> bytes:
    return msgspec.msgpack.encode(
        _State(
            encodes,
            int(level),
            forgetful,
            end.epoch,
            end.messages,
            end.chain,
            end.profile.check,
            end.window(),
            frozen(end.learned),
        )
    )


def restore_encoder(
    data: bytes,
    *,
    profile: Profile | None = None,
    limits: Limits = DEFAULT_LIMITS,
    engine: Engine = BEST,
) -> WeftEncoder:
    """Return an encoder that continues where the snapshot was taken; the profile must be that of
    the session."""
    state = _read(data, profile, encodes=True)
    try:
        level = Level(state.level)
    except ValueError:
        raise WeftStateError("a snapshot is damaged", level=state.level) from None
    encoder = WeftEncoder(
        level, profile=profile, forgetful=state.forgetful, limits=limits, engine=engine
    )
    _resume(encoder, state, engine, limits)
    return encoder


def restore_decoder(
    data: bytes,
    *,
    profile: Profile | None = None,
    limits: Limits = DEFAULT_LIMITS,
    engine: Engine = BEST,
) -> WeftDecoder:
    """Return a decoder that continues where the snapshot was taken; the profile must be that of the
    session."""
    state = _read(data, profile, encodes=False)
    decoder = WeftDecoder(profile=profile, limits=limits, engine=engine)
    _resume(decoder, state, engine, limits)
    return decoder


def _read(data: bytes, profile: Profile | None, *, encodes: bool) -> _State:
    state = read_snapshot(data, _State)
    if state.encodes is not encodes:
        raise WeftStateError(
            "an encoder needs the snapshot of an encoder, a decoder that of a decoder",
            epoch=state.epoch,
        )
    if state.profile != (profile or NO_PROFILE).check:
        raise WeftStateError("a snapshot was taken with another profile", epoch=state.epoch)
    fits = 0 <= state.epoch < 256 and 0 <= state.messages < 2**63 and 0 <= state.chain < 2**32
    if not fits or len(state.window) > WINDOW:
        raise WeftStateError("a snapshot is damaged", epoch=state.epoch)
    return state


def _resume(end: End, state: _State, engine: Engine, limits: Limits) -> None:
    learned = thawed(state.learned, engine, limits)
    end.resume(state.epoch, state.messages, state.chain, learned, state.window)


def train(documents: Iterable[EventSequence], *, limits: Limits = DEFAULT_LIMITS) -> Profile:
    """Return a profile of what a session would know after these documents, at any level."""
    # Level max learns all that the other levels learn, and more.
    encoder = WeftEncoder(Level.MAX, limits=limits, max_message=2**31)
    for document in documents:
        encoder.encode(document)
    return profile_of(encoder)


def profile_of(encoder: WeftEncoder) -> Profile:
    """Return what this encoder knows now, as a profile that other sessions can start from."""
    return Profile(MAGIC + msgspec.msgpack.encode(frozen(encoder.learned)))
