"""The octets that every implementation agrees on, in both directions.

About `wire/wbxml/encoder.py` and `wire/wbxml/decoder.py`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lasthop.errors import Malformed
from lasthop.wire.wbxml.decoder import decode
from lasthop.wire.wbxml.encoder import encode
from lasthop.wire.wbxml.xml_reader import read_xml
from lasthop.wire.wbxml.xml_writer import write_xml

FOLDER = Path("vectors/wbxml")

Case = dict[str, Any]


def cases(file: str) -> list[Any]:
    found = json.loads((FOLDER / file).read_text())["cases"]
    return [pytest.param(case, id=case["name"]) for case in found]


@pytest.mark.parametrize("case", cases("documents.json"))
class TestDocuments:
    def test_octets_become_the_text(self, case: Case) -> None:
        document = decode(bytes.fromhex(case["wbxml"]))
        assert write_xml(document) == case["xml"]
        assert document.language.key == case["language"]

    def test_the_text_becomes_octets(self, case: Case) -> None:
        assert encode(read_xml(case["xml"])).hex() == case.get("encoded", case["wbxml"])

    def test_the_text_means_what_the_octets_mean(self, case: Case) -> None:
        assert read_xml(case["xml"].encode()) == decode(bytes.fromhex(case["wbxml"]))

    def test_a_part_of_the_octets_is_not_a_document(self, case: Case) -> None:
        data = bytes.fromhex(case["wbxml"])
        whole = decode(data)
        for end in range(len(data)):
            try:
                part = decode(data[:end])
            except Malformed:
                continue
            # Only processing instructions behind the root element may be missing.
            assert part == whole
            assert 0x43 in data[end:]

    def test_trailing_octets_are_refused(self, case: Case) -> None:
        data = bytes.fromhex(case["wbxml"])
        with pytest.raises(Malformed, match="behind the end") as refused:
            decode(data + b"\x05")
        assert refused.value.fields["offset"] == len(data)


@pytest.mark.parametrize("case", cases("errors.json"))
def test_what_is_wrong_is_refused_with_its_place(case: Case) -> None:
    with pytest.raises(Malformed) as refused:
        decode(bytes.fromhex(case["wbxml"]))
    assert case["says"] in str(refused.value)
    assert refused.value.fields["offset"] == case["offset"]
