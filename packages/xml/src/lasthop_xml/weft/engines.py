"""The choice of an engine: plain Python, or the same modules compiled by `make accelerate`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Final


class Engine:
    """The modules of one build of `lasthop_xml.weft.engine`."""

    __slots__ = ("chain", "columns", "compiled", "memory", "reading", "writing")

    def __init__(self, package: str) -> None:
        self.compiled = package.endswith(".compiled")
        self.chain = _module(package, "chain")
        self.columns = _module(package, "columns")
        self.memory = _module(package, "memory")
        self.writing = _module(package, "writing")
        self.reading = _module(package, "reading")

    def __repr__(self) -> str:
        return "compiled" if self.compiled else "pure"


def _module(package: str, name: str) -> Any:
    module: ModuleType = import_module(f"{package}.{name}")
    return module


def _compiled() -> Engine | None:
    try:
        return Engine("lasthop_xml.weft.compiled")
    except ModuleNotFoundError:
        return None


PURE: Final = Engine("lasthop_xml.weft.engine")
COMPILED: Final = _compiled()
"""The compiled engine; None if it was not built."""
BEST: Final = COMPILED or PURE
