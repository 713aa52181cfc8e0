"""What a format refuses is an error of ours, whichever package its codec is in."""

from __future__ import annotations

import pytest

from lasthop.errors import LasthopError, Malformed, TooLarge
from lasthop.runtime.formats import FORMATS
from lasthop.runtime.formats.format import WantedForm

ANY_XML = sorted(set(FORMATS) - {"wbxml", "wsp"})
"""The others are for push documents and for headers."""


@pytest.mark.parametrize("name", ANY_XML)
def test_what_is_not_xml_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(Malformed) as caught:
        FORMATS[name].encode(b"<a><b></a>", WantedForm())
    assert caught.value.code == "malformed_xml"
    assert str(caught.value) == "mismatched tag (line=1, column=9)"


@pytest.mark.parametrize("name", ANY_XML)
def test_what_is_too_deep_is_refused_as_too_large(name: str) -> None:
    with pytest.raises(TooLarge, match="elements are too deeply nested") as caught:
        FORMATS[name].encode(b"<a>" * 300 + b"</a>" * 300, WantedForm())
    assert caught.value.code == "xml_too_large"


@pytest.mark.parametrize("name", ANY_XML)
def test_octets_that_are_no_message_are_refused(name: str) -> None:
    with pytest.raises(LasthopError):
        FORMATS[name].decode(b"\xff" * 20, WantedForm())


def test_samples_that_are_not_xml_teach_nothing() -> None:
    train = FORMATS["weft"].train
    assert train is not None
    with pytest.raises(Malformed, match="mismatched tag"):
        train([b"<a><b></a>"])
