"""Generated modules, loaded."""

import sys
from types import ModuleType
from typing import Any

from lasthop_xml.orl.documents import from_document, to_document
from lasthop_xml.orl.generator import generate
from lasthop_xml.orl.parser import parse
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList, EventSequence

ROOT = Name("", "message")


def load(description: str, name: str = "people") -> ModuleType:
    """The module of a description, as if it had been imported."""
    text = generate(parse(description), source=f"{name}.orl")
    module = ModuleType(f"generated_{name}")
    # A dataclass looks for its module to understand its annotations.
    sys.modules[module.__name__] = module
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


def codec(module: ModuleType, kind: str) -> Any:
    (found,) = [
        thing
        for name, thing in vars(module).items()
        if name.endswith(kind) and getattr(thing, "__module__", "") == module.__name__
    ]
    return found()


def written(module: ModuleType, type_: Name, value: object) -> EventList:
    return to_document(
        ROOT, type_, value, encoder=codec(module, "Encoder"), prefixes=module.PREFIXES
    )


def read(module: ModuleType, events: EventSequence, class_: type[Any]) -> Any:
    return from_document(events, ROOT, class_, decoder=codec(module, "Decoder"))
