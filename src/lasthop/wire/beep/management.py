"""The documents of channel 0: greeting, start, close and their answers (RFC 3080, 2.3.1).

The documents are small and use one vocabulary, so this module has its own grammar for them: no
entities, no document types, nothing that can expand.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from lasthop.wire.beep.errors import BeepError

CONTENT_TYPE = b"application/beep+xml"

MAX_DOCUMENT = 4096
"""The largest number of octets in a document: the window with which channel 0 begins, so that a
document never waits for another SEQ."""

MAX_PROFILES = 32

_SPACE = r"[ \t\r\n]"
_TOKEN = re.compile(
    rf"<(?P<close>/)?(?P<name>[A-Za-z]+)(?P<attributes>(?:{_SPACE}+[A-Za-z:]+{_SPACE}*={_SPACE}*"
    rf"(?:'[^'<]*'|\"[^\"<]*\"))*){_SPACE}*(?P<empty>/)?>"
    r"|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<!--.*?-->|(?P<text>[^<]+)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(rf"([A-Za-z:]+){_SPACE}*={_SPACE}*(?:'([^'<]*)'|\"([^\"<]*)\")")
_DECLARATION = re.compile(r"<\?xml [^?<>]*\?>")
_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


class Greeting(NamedTuple):
    """The first document of each side: the profiles that the peer may start (RFC 3080, 2.3.1.1)."""

    profiles: tuple[str, ...] = ()


class StartRequest(NamedTuple):
    """A request to start a channel with one of these profiles (RFC 3080, 2.3.1.2)."""

    number: int
    profiles: tuple[str, ...]
    server_name: str = ""


class StartedProfile(NamedTuple):
    """The positive answer to a start: the profile with which the channel has started."""

    uri: str


class CloseRequest(NamedTuple):
    """A request to close a channel, or with number 0 the session (RFC 3080, 2.3.1.3)."""

    number: int = 0
    code: int = 200
    text: str = ""


class Ok(NamedTuple):
    """The positive answer to a close: the channel or session is closed (RFC 3080, 2.3.1.4)."""


class Error(NamedTuple):
    """The negative answer: a start or close was refused, with a code and a text (RFC 3080,
    2.3.1.5)."""

    code: int
    text: str = ""


Management: TypeAlias = Greeting | StartRequest | StartedProfile | CloseRequest | Ok | Error


class _Element(NamedTuple):
    name: str
    attributes: dict[str, str]
    children: list[_Element]
    text: list[str]


def write(said: Management) -> bytes:
    """Encode a document of channel 0, without MIME headers."""
    return _text(said).encode()


def _text(said: Management) -> str:
    match said:
        case Greeting(profiles):
            inner = _profiles(profiles)
            return f"<greeting>{inner}</greeting>" if inner else "<greeting/>"
        case StartRequest(number, profiles, server_name):
            server = f" serverName='{_escape(server_name)}'" if server_name else ""
            return f"<start number='{number}'{server}>{_profiles(profiles)}</start>"
        case StartedProfile(uri):
            return _profiles((uri,))
        case CloseRequest(number, code, words):
            return _worded("close", f" number='{number}' code='{code}'", words)
        case Error(code, words):
            return _worded("error", f" code='{code}'", words)
        case _:
            return "<ok/>"


def _profiles(uris: tuple[str, ...]) -> str:
    return "".join(f"<profile uri='{_escape(uri)}'/>" for uri in uris)


def read(document: bytes) -> Management:
    """Decode a document of channel 0; raise BeepError."""
    if len(document) > MAX_DOCUMENT:
        raise BeepError("a document of channel 0 is too large", most=MAX_DOCUMENT)
    try:
        root = _parse(document.decode("utf-8"))
    except UnicodeDecodeError:
        raise BeepError("a document of channel 0 is not UTF-8") from None
    uris = tuple(_uri(child) for child in root.children if child.name == "profile")
    if len(uris) > MAX_PROFILES:
        raise BeepError("there are too many profiles", most=MAX_PROFILES)
    text = "".join(root.text).strip()
    match root.name:
        case "greeting":
            return Greeting(uris)
        case "start":
            if not uris:
                raise BeepError("a start names no profile")
            server_name = root.attributes.get("serverName", "")
            return StartRequest(_number(root, "number", least=1), uris, server_name)
        case "profile":
            return StartedProfile(_uri(root))
        case "close":
            number = _number(root, "number") if "number" in root.attributes else 0
            return CloseRequest(number, _number(root, "code", least=100, most=999), text)
        case "ok":
            return Ok()
        case "error":
            return Error(_number(root, "code", least=100, most=999), text)
        case name:
            raise BeepError("channel 0 has no such element", element=name)


def _parse(text: str) -> _Element:
    outside = _Element("", {}, [], [])
    stack = [outside]
    text = text.strip()
    declaration = _DECLARATION.match(text)
    pos = declaration.end() if declaration is not None else 0
    while pos < len(text):
        token = _TOKEN.match(text, pos)
        if token is None:
            raise BeepError("a document of channel 0 is not well-formed", offset=pos)
        pos = token.end()
        if token["text"] is not None:
            stack[-1].text.append(_unescape(token["text"]))
        elif token["cdata"] is not None:
            stack[-1].text.append(token["cdata"])
        elif token["name"] is not None:
            _tag(token, stack)
    if len(stack) > 1 or len(outside.children) != 1 or "".join(outside.text).strip():
        raise BeepError("a document of channel 0 is not one element")
    return outside.children[0]


def _tag(token: re.Match[str], stack: list[_Element]) -> None:
    name = token["name"]
    if token["close"]:
        if len(stack) < 2 or stack[-1].name != name:
            raise BeepError("a document of channel 0 is not well-formed", offset=token.start())
        stack.pop()
        return
    if len(stack) > 3:
        raise BeepError("a document of channel 0 is too deep")
    attributes = {
        found[1]: _unescape(found[2] if found[2] is not None else found[3])
        for found in _ATTRIBUTE.finditer(token["attributes"])
    }
    element = _Element(name, attributes, [], [])
    stack[-1].children.append(element)
    if not token["empty"]:
        stack.append(element)


def _number(element: _Element, name: str, *, least: int = 0, most: int = 2**31 - 1) -> int:
    said = element.attributes.get(name, "")
    if not re.fullmatch("[0-9]{1,10}", said) or not least <= int(said) <= most:
        raise BeepError(f"{element.name} has no valid {name}", **{name: said})
    return int(said)


def _uri(element: _Element) -> str:
    uri = element.attributes.get("uri", "")
    if not uri:
        raise BeepError("a profile has no uri")
    return uri


def _worded(name: str, attributes: str, words: str) -> str:
    return f"<{name}{attributes}>{_escape(words)}</{name}>" if words else f"<{name}{attributes}/>"


def _escape(text: str) -> str:
    for letter, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ("'", "apos"), ('"', "quot")):
        text = text.replace(letter, f"&{name};")
    return text


def _unescape(text: str) -> str:
    if "&" not in _REFERENCE.sub("", text):
        return _REFERENCE.sub(_character, text)
    raise BeepError("a document of channel 0 has an unknown entity")


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return _NAMED[found[1]]
    code = int(found[2]) if found[2] else int(found[3], 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000 or code == 0:
        raise BeepError("a document of channel 0 has an unknown entity")
    return chr(code)
