"""Errors of the XML package, `lasthop_xml`, as errors of ours: with an answer for every edge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

from lasthop import errors
from lasthop_xml.errors import InvalidInput, Malformed, TooLarge, XmlError

_KINDS: Final[tuple[tuple[type[XmlError], type[errors.Rejected]], ...]] = (
    (Malformed, errors.Malformed),
    (InvalidInput, errors.InvalidRequest),
    (TooLarge, errors.TooLarge),
    (XmlError, errors.Rejected),
)
"""What each kind of error is at the edges; the first that fits counts."""

_BOTH: Final[dict[type[XmlError], type[errors.Rejected]]] = {}
"""The classes that are both, made when they are first needed."""


@contextmanager
def xml_refusals() -> Iterator[None]:
    """Turn every error that the XML package raises inside into one that is also a `Rejected`;
    usable as a decorator."""
    try:
        yield
    except XmlError as error:
        if isinstance(error, errors.Rejected):
            raise
        raise as_rejected(error) from error


def as_rejected(error: XmlError) -> errors.Rejected:
    """Return the error of the XML package with the same code, text and fields, as an instance of a
    class that is also a `Rejected`."""
    if isinstance(error, errors.Rejected):
        return error
    theirs = type(error)
    both = _BOTH.get(theirs) or _join(theirs)
    rejected = both.__new__(both, *error.args)
    vars(rejected).update(vars(error))
    return rejected


def _join(theirs: type[XmlError]) -> type[errors.Rejected]:
    ours = next(ours for kind, ours in _KINDS if issubclass(theirs, kind))
    both = cast("type[errors.Rejected]", type(theirs.__name__, (theirs, ours), {}))
    _BOTH[theirs] = both
    return both
