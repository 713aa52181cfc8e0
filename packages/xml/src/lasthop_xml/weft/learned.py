"""All that one direction of a session has learned, at any level."""

from __future__ import annotations

from typing import Any

from lasthop_xml.weft.dense.letters import Letters
from lasthop_xml.weft.dense.models import Bits
from lasthop_xml.weft.engine.memory import Memory
from lasthop_xml.weft.engines import Engine
from lasthop_xml.xas.limits import Limits


class Models:
    """The models of level max that are not models of a single column."""

    __slots__ = ("common", "counts", "letters", "runs", "sizes")

    def __init__(self) -> None:
        self.common: Bits = {}
        """The choices of all columns, from which a new column starts."""
        self.counts: Bits = {}
        """The models of the number of values in a document."""
        self.sizes: Bits = {}
        self.letters = Letters()
        """The models of the letters of new words."""
        self.runs = Letters()
        """The models of the bytes of new runs."""


class Learned:
    """A memory, the models of level max, and the reader and the writer that use them."""

    __slots__ = ("memory", "models", "reader", "writer")

    def __init__(self, engine: Engine, memory: Memory, models: Models, limits: Limits) -> None:
        self.memory = memory
        self.models = models
        self.writer: Any = engine.writing.BodyWriter(memory)
        self.reader: Any = engine.reading.BodyReader(memory, limits)


def nothing_learned(engine: Engine, limits: Limits) -> Learned:
    """Return the state from which a session without a profile starts."""
    return Learned(engine, engine.memory.Memory(limits.depth), Models(), limits)
