"""The buttons of a message in ntfy's two forms: a JSON array, or fields between commas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lasthop.access.ntfy.ntfy_errors import NtfyError
from lasthop.access.ntfy.ntfy_event import NtfyAction

MOST = 3
MAX_TEXT = 4096
"""The longest text of actions, in characters, before it is read."""

_TYPES = {"view": "url", "http": "url", "broadcast": "", "copy": "value"}
"""The kinds of actions, each with its third field in the short form."""

_CLEAR = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TEXTS = ("action", "label", "url", "method", "body", "intent", "value")


class _Given(msgspec.Struct):
    action: str = ""
    label: str = ""
    clear: bool = False
    url: str = ""
    method: str = ""
    headers: dict[str, str] = {}
    body: str = ""
    intent: str = ""
    extras: dict[str, str] = {}
    value: str = ""


def _wrong(detail: str) -> NtfyError:
    return NtfyError(40018, f"actions: {detail}", field="actions")


def parse_actions(text: str, make_id: Callable[[], str]) -> list[NtfyAction]:
    """Return the actions that a text describes; `make_id` makes the id of each."""
    if len(text) > MAX_TEXT:
        raise _wrong(f"at most {MAX_TEXT} characters")
    if text.startswith("["):
        try:
            given = msgspec.json.decode(text.encode(), type=list[_Given])
        except (msgspec.DecodeError, RecursionError) as error:
            raise _wrong(str(error)) from None
    else:
        given = _short(text)
    return checked(given, make_id)


def actions_of(value: list[Any], make_id: Callable[[], str]) -> list[NtfyAction]:
    """Return the actions of a JSON publication."""
    try:
        return checked(msgspec.convert(value, list[_Given]), make_id)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None


def checked(given: list[_Given], make_id: Callable[[], str]) -> list[NtfyAction]:
    """Return actions that have what their kind needs."""
    if len(given) > MOST:
        raise _wrong(f"at most {MOST} of them")
    return [_action(each, make_id()) for each in given]


def _action(given: _Given, number: str) -> NtfyAction:
    kind = given.action.lower()
    if kind not in _TYPES:
        raise _wrong(f"{given.action[:50]!r} is none of {', '.join(_TYPES)}")
    if not given.label:
        raise _wrong("a label is needed")
    needed = _TYPES[kind]
    if needed and not getattr(given, needed):
        raise _wrong(f"{kind} needs {needed}")
    method = given.method.upper()
    if given.body and method in ("GET", "HEAD"):
        raise _wrong(f"{method} has no body")
    return NtfyAction(
        number,
        kind,
        given.label,
        given.clear,
        given.url,
        method,
        given.headers or None,
        given.body,
        given.intent,
        given.extras or None,
        given.value,
    )


def _short(text: str) -> list[_Given]:
    found: list[_Given] = []
    for fields in _split(text):
        given = _Given()
        for place, (key, value) in enumerate(fields):
            _set(given, key or _key_at(place, given), value)
        found.append(given)
    return found


def _key_at(place: int, given: _Given) -> str:
    if place < 2:
        return ("action", "label")[place]
    if place == 2 and _TYPES.get(given.action.lower()):
        return _TYPES[given.action.lower()]
    raise _wrong(f"field {place + 1} needs a name")


def _set(given: _Given, key: str, value: str) -> None:
    key = key.lower() if not key.startswith(("headers.", "extras.")) else key
    if key in _TEXTS:
        setattr(given, key, value)
    elif key == "clear":
        if value.lower() not in _CLEAR:
            raise _wrong("clear is true or false")
        given.clear = _CLEAR[value.lower()]
    elif key.startswith("headers."):
        given.headers = {**given.headers, key[8:]: value}
    elif key.startswith("extras."):
        given.extras = {**given.extras, key[7:]: value}
    else:
        raise _wrong(f"{key[:50]!r} is no field of an action")


def _split(text: str) -> list[list[tuple[str, str]]]:
    """Split a text at semicolons and commas that are not quoted, and fields into key and value."""
    actions: list[list[tuple[str, str]]] = [[]]
    at, end = 0, len(text)
    while at < end:
        key, value, at = _field(text, at)
        actions[-1].append((key, value))
        if at < end and text[at] == ";":
            actions.append([])
        at += 1
    if not actions[-1]:
        actions.pop()
    return actions


def _field(text: str, at: int) -> tuple[str, str, int]:
    """Read one field from a place on; return its key, its value and the place of what ends it."""
    key, value, quoted = "", "", False
    while at < len(text):
        c = text[at]
        if c in "\"'" and not value.strip():
            value, at = _quoted(text, at)
            quoted = True
            continue
        if c in ",;":
            break
        if quoted:
            if not c.isspace():
                raise _wrong("there is something behind a quoted value")
        elif c == "=" and not key and _is_key(value.strip()):
            key, value = value.strip(), ""
        else:
            value += c
        at += 1
    return key, value if quoted else value.strip(), at


def _is_key(text: str) -> bool:
    return bool(text) and all(c.isalnum() or c in "._-" for c in text)


def _quoted(text: str, at: int) -> tuple[str, int]:
    quote, at, value = text[at], at + 1, ""
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] == quote:
            value += quote
            at += 2
        elif text[at] == quote:
            return value, at + 1
        else:
            value += text[at]
            at += 1
    raise _wrong("a quote is not closed")
