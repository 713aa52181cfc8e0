"""The JSON form of preferences, as devices and the REST interface use it."""

from __future__ import annotations

import msgspec

from lasthop.decision.preferences import Preferences
from lasthop.errors import InvalidRequest, LasthopError

_decode = msgspec.json.Decoder(Preferences).decode
_encode = msgspec.json.Encoder().encode


def decode_preferences(body: bytes) -> Preferences:
    """Return the preferences of a JSON body, checked as a whole."""
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        cause = error.__cause__
        if isinstance(cause, LasthopError):
            raise cause from None
        raise InvalidRequest(f"not preferences: {error}") from None
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"preferences must be a JSON object: {error}") from None


def encode_preferences(preferences: Preferences) -> bytes:
    """Return preferences as JSON, to be shown and logged."""
    return _encode(preferences)
