"""The files of a schema: how their text is loaded, and the limits on their number and nesting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from lasthop_xml.relaxng.errors import SchemaTooLarge
from lasthop_xml.relaxng.lexer import Position, failure
from lasthop_xml.relaxng.limits import SchemaLimits


class File(NamedTuple):
    """The text of one schema file; `source` identifies the file, however it was referred to."""

    source: str
    text: str


Loader: TypeAlias = Callable[[str, str], File]
"""A function that loads a file, given the reference to it and the file that contains the reference.
It raises LookupError or OSError if there is no such file."""


def no_files(href: str, source: str) -> File:
    """Refuse to load a file: the loader for schemas that must be in one file."""
    raise LookupError("a schema must be in one file here")


class Files:
    """The loader, the limits and the nesting that the parsers of all files of a schema share."""

    def __init__(self, loader: Loader, limits: SchemaLimits) -> None:
        self.limits = limits
        self._loader = loader
        self._read = 0
        self._open: list[str] = []
        self._depth = 0

    def load(self, href: str, at: Position) -> File:
        """Load the file that a reference at this place names."""
        if "#" in href:
            raise failure("a reference to a file has a fragment", at, href=href[:80])
        self._read += 1
        if self._read > self.limits.files:
            raise SchemaTooLarge("a schema has too many files", most=self.limits.files)
        try:
            file = self._loader(href, at.source)
        except (LookupError, OSError) as error:
            reason = str(error.args[0]) if isinstance(error, LookupError) else str(error)
            raise failure("a file cannot be read", at, href=href[:80], reason=reason) from None
        # RELAX NG, sections 4.6 and 4.7: a file must not contain itself.
        if file.source in self._open:
            raise failure("a file refers to itself", at, href=href[:80])
        return file

    @contextmanager
    def opened(self, file: File) -> Iterator[None]:
        """Count a file as open while it is being parsed."""
        if len(file.text) > self.limits.size:
            raise SchemaTooLarge("a schema is too large", most=self.limits.size)
        self._open.append(file.source)
        yield
        self._open.pop()

    @contextmanager
    def deeper(self, at: Position) -> Iterator[None]:
        """Count one more level of nesting, across all files of the schema."""
        self._depth += 1
        if self._depth > self.limits.depth:
            raise SchemaTooLarge(
                "a schema is too deeply nested",
                line=at.line,
                column=at.column,
                most=self.limits.depth,
            )
        yield
        self._depth -= 1
