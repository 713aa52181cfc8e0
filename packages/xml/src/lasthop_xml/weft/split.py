"""From events to runs and values.

Every error of a document is found here, before a codec has learned half of it.
"""

from __future__ import annotations

from typing import Any

from lasthop_xml.weft.errors import WeftLimitError
from lasthop_xml.weft.exact import exact
from lasthop_xml.weft.runs import Run, RunSequence, run_of
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    COMMENT,
    CONTENT,
    DOCUMENT_END_KIND,
    DOCUMENT_START_KIND,
    ELEMENT_END,
    ELEMENT_START,
    ENTITY_REFERENCE,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    SAME_TEXT,
    TYPED_CONTENT,
    Event,
    Kind,
)
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import XSI_TYPE, Name, check_name, check_text, is_ncname
from lasthop_xml.xas.sequence import EventSequence

_MOST_REMEMBERED = 4096
"""The largest number of runs that a splitter finds again without checking their events one by
one."""


class Splitter:
    """Splits the documents of a session, which tend to have the same runs, into runs and values."""

    __slots__ = ("_limits", "_runs")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._runs: dict[tuple[tuple[Event, ...], Kind | None, Name | None], Run] = {}

    def split(self, events: EventSequence) -> RunSequence:
        """Return a document as runs and values; raise MalformedEvents or WeftLimitError for an
        invalid one."""
        if isinstance(events, RunSequence):
            return events
        source = iter(events)
        first = next(source, None)
        if first is None or first.kind is not DOCUMENT_START_KIND:
            raise MalformedEvents("the events do not start with a document start")
        runs: list[Run] = []
        values: list[Any] = []
        run: list[Event] = []
        stack: list[Name | None] = []
        depth = self._limits.depth
        last: Event | None = None
        count = 2
        for event in source:
            kind, name, value = event
            count += 1
            if kind is ELEMENT_END:
                # `is` spares the comparison of most names.
                if not stack or ((top := stack.pop()) is not name and top != name):
                    raise MalformedEvents("an element ends that is not open", name=str(name))
                run.append(event)
            elif kind is ELEMENT_START:
                stack.append(name)
                if len(stack) > depth:
                    raise WeftLimitError("elements are too deeply nested", most=depth)
                run.append(event)
            elif kind is PREFIX_MAPPING or (
                kind is ATTRIBUTE and (name is XSI_TYPE or name == XSI_TYPE)
            ):
                run.append(event)
            elif kind is DOCUMENT_END_KIND:
                runs.append(self._run(run, None, None))
                break
            else:
                runs.append(self._run(run, kind, name))
                run = []
                values.append(_checked(kind, name, value, last))
            last = event
        else:
            raise MalformedEvents("the events have no document end")
        if stack or next(source, None) is not None:
            raise MalformedEvents("a document ends inside an element, or events follow its end")
        if count > self._limits.events:
            raise WeftLimitError("a message has too many events", most=self._limits.events)
        return RunSequence(runs, values)

    def _run(self, events: list[Event], slot: Kind | None, name: Name | None) -> Run:
        key = tuple(events), slot, name
        found = self._runs.get(key)
        if found is None:
            for event in events:
                self._check(event)
            if slot is ATTRIBUTE:
                self._check_name(name)
            if len(self._runs) >= _MOST_REMEMBERED:
                self._runs.clear()
            found = self._runs[key] = run_of(*key)
        return found

    def _check(self, event: Event) -> None:
        kind, name, value = event
        if kind is ATTRIBUTE:
            check_text(value)
        elif kind is PREFIX_MAPPING and name is not None and not name.local:
            self._check_name(Name(check_text(name.ns), "x"))
        else:
            self._check_name(name)

    def _check_name(self, name: Name | None) -> None:
        if name is None:
            raise MalformedEvents("an event has no name")
        check_name(name)
        if max(len(name.ns), len(name.local)) > self._limits.name:
            raise WeftLimitError("a name is too long", most=self._limits.name)


def _checked(kind: Kind, name: Name | None, value: Any, last: Event | None) -> Any:
    """Return a value as a document of runs contains it; raise MalformedEvents if it cannot."""
    if kind is TYPED_CONTENT and name is not None:
        return exact(name, value)
    if type(value) is not str:
        raise MalformedEvents("a text is not a string", kind=kind)
    if kind is PROCESSING_INSTRUCTION or kind is ENTITY_REFERENCE:
        text = value.partition(" ")[0] if kind is PROCESSING_INSTRUCTION else value
        if not is_ncname(text):
            raise MalformedEvents("this event is not allowed here", kind=kind)
    elif kind is CONTENT:
        if name is not None and (name != SAME_TEXT or last is None or last.kind is not CONTENT):
            raise MalformedEvents("a text is continued that has not begun")
    elif kind is not ATTRIBUTE and kind is not COMMENT:
        raise MalformedEvents("this event is not allowed here", kind=kind)
    return check_text(value)
