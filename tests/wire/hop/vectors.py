"""The vectors of vectors/hop as values: JSON that a JavaScript implementation reads too.

Bytes are hexadecimal. What may exceed 53 bits (keys) is a decimal string. What is at its default is
left out.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from lasthop.message import Handling, Reliability
from lasthop.wire.hop.frames import (
    Ack,
    Close,
    Credit,
    Dropped,
    Ending,
    EndStatus,
    Frame,
    Headers,
    Hello,
    LaneClaim,
    LaneClaims,
    LaneFrame,
    Last,
    MessageFrame,
    OtherWays,
    Piece,
    Ping,
    Pong,
    Skip,
    Taken,
    Time,
    Wanted,
    Welcome,
)

FOLDER = Path("vectors/hop")

TYPES: dict[str, type[Frame | Last]] = {
    "message": MessageFrame,
    "ack": Ack,
    "skip": Skip,
    "dropped": Dropped,
    "last": Last,
    "lane": LaneFrame,
    "credit": Credit,
    "ping": Ping,
    "pong": Pong,
    "time": Time,
    "wanted": Wanted,
    "ways": OtherWays,
    "piece": Piece,
    "taken": Taken,
    "ending": Ending,
    "close": Close,
    "hello": Hello,
    "welcome": Welcome,
}
NAMES = {kind: name for name, kind in TYPES.items()}
BIG = {"key", "in_reply_to", "correlation", "transfer"}


def load(name: str) -> dict[str, Any]:
    """One file of vectors."""
    content: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return content


def frame_from_json(value: dict[str, Any]) -> Any:
    """The frame that a vector describes."""
    kind = TYPES[value["type"]]
    known = {field.name for field in msgspec.structs.fields(kind)}
    items = {name: _from_json(name, item) for name, item in value.items() if name != "type"}
    assert items.keys() <= known, items.keys() - known
    if kind is MessageFrame:
        items = {"seq": None, "key": None} | items
    return kind(**items)


def frame_to_json(frame: Frame | Last) -> dict[str, Any]:
    """How a vector describes a frame."""
    return {"type": NAMES[type(frame)], **_struct_to_json(frame)}


def _struct_to_json(value: Any) -> dict[str, Any]:
    found = {}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        if item is not None and item != field.default:
            found[field.name] = _to_json(field.name, item)
    return found


def _to_json(name: str, item: Any) -> Any:
    if name in BIG:
        return str(item)
    if name == "frame":
        return frame_to_json(item)
    if isinstance(item, bytes):
        return item.hex()
    if isinstance(item, Headers | Credit | LaneClaims):
        return _struct_to_json(item)
    if name == "lanes":
        return [_struct_to_json(claim) for claim in item]
    return item


def _from_json(name: str, item: Any) -> Any:
    match name:
        case "key" | "in_reply_to" | "correlation" | "transfer":
            return int(item)
        case "body" | "incarnation":
            return bytes.fromhex(item)
        case "window":
            return Credit(**item)
        case "headers":
            return Headers(**{key: _from_json(key, value) for key, value in item.items()})
        case "status":
            return EndStatus(item)
        case "handling":
            return Handling(item)
        case "reliability":
            return Reliability(item)
        case "frame":
            return frame_from_json(item)
        case "lanes" if isinstance(item, dict):
            return LaneClaims(**{key: _from_json(key, value) for key, value in item.items()})
        case "lanes":
            claims = ({key: _from_json(key, value) for key, value in each.items()} for each in item)
            return tuple(LaneClaim(**claim) for claim in claims)
        case "lane_dropped":
            return tuple((lane, _from_json("ranges", ranges)) for lane, ranges in item)
        case "individual" | "finished" | "ranges" | "dropped" | "extra" | "lane_closed":
            return tuple(tuple(pair) for pair in item)
        case "lane_superseded":
            return tuple((lane, count, _from_json("ranges", held)) for lane, count, held in item)
        case "accept" | "links" | "sending":
            return tuple(item)
        case _:
            return item
