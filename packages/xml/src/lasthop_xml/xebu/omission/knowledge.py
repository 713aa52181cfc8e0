"""The knowledge that both ends of a session share because they have the same schema."""

from __future__ import annotations

from lasthop_xml.relaxng.schema import Schema
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.fingerprint import fingerprint
from lasthop_xml.xebu.omission.known_strings import known_strings


class Knowledge:
    """The automaton, the known strings and the fingerprint of a schema: made once, and shared by
    all its sessions."""

    __slots__ = ("automaton", "fingerprint", "strings")

    def __init__(self, schema: Schema) -> None:
        self.automaton = Automaton(schema)
        self.strings = known_strings(schema)
        self.fingerprint = fingerprint(self.automaton)
