"""The files of a schema: where their text comes from, and what keeps them finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from lasthop_xml.relaxng.errors import SchemaTooLarge
from lasthop_xml.relaxng.lexer import Position, failure
from lasthop_xml.relaxng.limits import SchemaLimits


class File(NamedTuple):
    """A file of a schema; `source` names it, however it was referred to."""

    source: str
    text: str


Loader: TypeAlias = Callable[[str, str], File]
"""Finds what a reference in a file (second argument) means. LookupError or OSError if it cannot."""


def no_files(href: str, source: str) -> File:
    """The loader of schemas that have to be in one piece."""
    raise LookupError("schemas in several files are not read here")


class Files:
    """What the parsers of all files of a schema share."""

    def __init__(self, loader: Loader, limits: SchemaLimits) -> None:
        self.limits = limits
        self._loader = loader
        self._read = 0
        self._open: list[str] = []
        self._depth = 0

    def load(self, href: str, at: Position) -> File:
        """The file that a reference at this place means."""
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
        if file.source in self._open:
            raise failure("a file refers to itself", at, href=href[:80])
        return file

    @contextmanager
    def opened(self, file: File) -> Iterator[None]:
        """While a file is being parsed."""
        if len(file.text) > self.limits.size:
            raise SchemaTooLarge("a schema is too large", most=self.limits.size)
        self._open.append(file.source)
        yield
        self._open.pop()

    @contextmanager
    def deeper(self, at: Position) -> Iterator[None]:
        """Inside one more pair of brackets, in whatever file."""
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
