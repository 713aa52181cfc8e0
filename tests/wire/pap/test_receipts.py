"""Answers to accepted pushes: the same octets as by the long way."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import SECOND
from lasthop.errors import PapInvalid
from lasthop.wire.pap.codes import CODES
from lasthop.wire.pap.documents import Document, PushResponse, ResponseResult
from lasthop.wire.pap.layout import MAX_TEXT
from lasthop.wire.pap.receipts import ACCEPTED, write_receipt
from lasthop.wire.pap.versions import SUPPORTED, Version
from lasthop.wire.pap.writer import write_document
from tests.wire.pap.strategies import identifiers, versions, xml_characters


@given(
    push_id=identifiers | st.just("\ue000"),
    version=versions,
    sender=st.text(xml_characters, max_size=5) | st.just("\ue000"),
    at=st.integers(0, 4 * SECOND),
)
def test_it_is_what_the_whole_document_would_be(
    push_id: str, version: Version, sender: str, at: int
) -> None:
    result = ResponseResult(ACCEPTED, CODES[ACCEPTED].name)
    message = PushResponse(push_id, result, sender_name=sender, reply_time=at)
    whole = write_document(Document(message, version, SUPPORTED, "p"))
    found = write_receipt(push_id, version=version, product="p", sender=sender, reply_time=at)
    assert found == whole


@pytest.mark.parametrize("push_id", ["\x01", "x" * (MAX_TEXT + 1)])
def test_what_cannot_be_written_is_refused(push_id: str) -> None:
    with pytest.raises(PapInvalid):
        write_receipt(push_id, version=Version.V2_1, product="p", sender="s", reply_time=0)
