"""Every error has an answer for every edge."""

from __future__ import annotations

import inspect

import pytest

from lasthop import errors
from lasthop.errors import Fault, HopError, LasthopError, Limited, NotFound, QuotaExceeded, Rejected
from lasthop.wire.hop.frames import CloseCode

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, LasthopError)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda c: c.__name__)
def test_an_error_knows_its_answers(error: type[LasthopError]) -> None:
    assert 400 <= error.http_status < 600
    assert CloseCode(error.hop_code)
    assert 2000 <= error.pap_code < 5000
    assert (error.fault is Fault.CALLER) == (issubclass(error, Rejected | Limited)) or (
        error.fault is Fault.GATEWAY
    )
    if issubclass(error, HopError):
        assert error.fault is Fault.PEER


def test_codes_are_one_a_class() -> None:
    assert len({error.code for error in CLASSES}) == len(CLASSES)


def test_an_error_is_one_line_of_what_and_which() -> None:
    assert str(NotFound("no such device", app="a", device="b")) == (
        "no such device (app='a', device='b')"
    )
    assert str(NotFound("gone")) == "gone"
    assert QuotaExceeded("full", retry_after=3, limit=5).retry_after == 3


def test_the_tree_at_the_head_of_the_file_is_complete() -> None:
    assert all(error.__name__ in (errors.__doc__ or "") for error in CLASSES)
