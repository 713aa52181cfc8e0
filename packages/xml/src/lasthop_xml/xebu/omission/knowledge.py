"""What both ends of a session know because they have the same schema."""

from __future__ import annotations

from lasthop_xml.relaxng.schema import Schema
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.fingerprint import fingerprint
from lasthop_xml.xebu.omission.pretokens import known_strings


class Knowledge:
    """Made once for a schema, and shared by all sessions that use it."""

    __slots__ = ("automaton", "fingerprint", "strings")

    def __init__(self, schema: Schema) -> None:
        self.automaton = Automaton(schema)
        self.strings = known_strings(schema)
        self.fingerprint = fingerprint(self.automaton)
