"""What `sdk/features.toml` says about the SDKs, and what they really have."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from lasthop.device.client import Device
from lasthop.device.compose import Options, SubscriptionOptions
from lasthop.device.handle import MessageHandle
from lasthop.device.terms import DeviceTerms
from lasthop.transport.schemes import SCHEMES

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "sdk/features.toml"
SOURCE = ROOT / "sdk/javascript/src"


class FeatureRow(msgspec.Struct, forbid_unknown_fields=True):
    """One feature: for each SDK the evidence that it has it, or the reason why it has not."""

    name: str
    python: list[str] | str
    javascript: list[str] | str


class OwnNames(msgspec.Struct, forbid_unknown_fields=True):
    """Names that look public and are the SDK's own."""

    python: list[str]
    javascript: list[str]


class FeatureTable(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    own: OwnNames
    feature: list[FeatureRow]


def table(text: str | None = None) -> FeatureTable:
    """The table as it is written."""
    return msgspec.convert(tomllib.loads(text or TABLE.read_text()), FeatureTable)


def in_python() -> Iterator[str]:
    """Everything that an application in Python can name."""
    for cls in (Device, MessageHandle):
        yield from (f"{cls.__name__}.{name}" for name in dir(cls) if name[0] != "_")
    yield from (f"Device({name})" for name in inspect.signature(Device).parameters)
    yield from (f"terms {name}" for name in DeviceTerms.__struct_fields__)
    yield from (f"option {name}" for name in Options.__annotations__)
    yield from (f"subscribe {name}" for name in SubscriptionOptions.__annotations__)
    yield from (f"scheme {name}" for name in SCHEMES)


def in_javascript() -> Iterator[str]:
    """Everything that an application in JavaScript can name."""
    for cls, file in (("Device", "device.js"), ("MessageHandle", "handle.js")):
        yield from (f"{cls}.{name}" for name in _members((SOURCE / file).read_text(), cls))
    device = (SOURCE / "device.js").read_text()
    yield from (f"Device({name})" for name in _properties(device, "DeviceOptions"))
    terms = _properties((SOURCE / "session.js").read_text(), "Terms")
    yield from (f"terms {name}" for name in terms if name not in ("app", "name", "token"))
    options = _properties((SOURCE / "compose.js").read_text(), "Options")
    yield from (f"option {name}" for name in options)
    both = {*_exports("index.js"), *_exports("node.js")}
    yield from (f"export {name}" for name in sorted(both))


def _members(text: str, cls: str) -> set[str]:
    body = text.partition(f"export class {cls} {{\n")[2].partition("\n}\n")[0]
    methods = re.findall(r"^  (?:static )?(?:async )?(?:get |\*)?([a-z]\w*)\(", body, re.MULTILINE)
    fields = re.findall(r"^    this\.([a-z]\w*) = ", body, re.MULTILINE)
    return {*methods, *fields} - {"constructor"}


def _properties(text: str, typedef: str) -> list[str]:
    """The properties of a type in JSDoc."""
    (block,) = re.findall(rf"@typedef {{object}} {typedef}\b(.*?)(?:@typedef|\*/)", text, re.DOTALL)
    return re.findall(r"@property {.*} \[?(\w+)\]?", block)


def _exports(file: str) -> Iterator[str]:
    text = (SOURCE / file).read_text()
    for names in re.findall(r"^export {([^}]*)}", text, re.MULTILINE):
        yield from (name.strip() for name in names.split(","))
    yield from re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE)


PUBLIC: dict[str, Callable[[], Iterator[str]]] = {"python": in_python, "javascript": in_javascript}


def is_test(evidence: str) -> bool:
    """Whether a test is named, and is there."""
    found = re.fullmatch(r"test (\S+): (.+)", evidence)
    if found is None or not (ROOT / found[1]).is_file():
        return False
    text = (ROOT / found[1]).read_text()
    if found[1].endswith(".py"):
        return re.search(rf"^(async )?def {re.escape(found[2])}\(", text, re.MULTILINE) is not None
    return f'test("{found[2]}' in text


def untrue(rows: FeatureTable, sdk: str) -> list[str]:
    """What is wrong about one SDK in a table: one line for each."""
    public = set(PUBLIC[sdk]())
    said: dict[str, str] = dict.fromkeys(getattr(rows.own, sdk), "own")
    wrong = [f"own: {name} is not there" for name in said if name not in public]
    for row in rows.feature:
        evidence = getattr(row, sdk)
        if isinstance(evidence, str):
            if len(evidence.split()) < 4:
                wrong.append(f"{row.name}: why not?")
            continue
        if not evidence:
            wrong.append(f"{row.name}: nothing shows it")
        for name in evidence:
            if name not in public and not is_test(name):
                wrong.append(f"{row.name}: {name} is not there")
            if name in said:
                wrong.append(f"{row.name}: {name} stands in {said[name]} too")
            said[name] = row.name
    wrong += [f"{name} has no row" for name in sorted(public - said.keys())]
    return wrong


NOTE = "<!-- Written by scripts/reference from sdk/features.toml; change it there. -->"


def page() -> str:
    """The table as a page for those who choose an SDK."""
    lines = [
        "# What each SDK can do",
        "",
        NOTE,
        "",
        "This page is for those who choose between the SDKs for Python and JavaScript. Each",
        "feature of a device has a row in `sdk/features.toml`; tests compare it with both SDKs.",
        "",
        "| feature | Python | JavaScript |",
        "|---|---|---|",
    ]
    for row in table().feature:
        cells = (_cell(row.python), _cell(row.javascript))
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(evidence: list[str] | str) -> str:
    if isinstance(evidence, str):
        return f"no: {evidence}"
    names = [name for name in evidence if not name.startswith("test ")]
    return f"yes: {', '.join(f'`{name}`' for name in names)}" if names else "yes"
