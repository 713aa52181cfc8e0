"""What is a schema and what is not, and which documents are valid."""

from __future__ import annotations

import pytest

from lasthop_xml.relaxng.errors import NotValid, SchemaError
from lasthop_xml.relaxng.validate import Validator
from lasthop_xml.xas.xmlparse import parse_xml
from tests.relaxng.corpus import BAD, GOOD, Bad, Case
from tests.relaxng.reading import read


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD)
def test_documents_are_valid_or_not(case: Case) -> None:
    validator = Validator(read(case.schema, case.files))
    for document in case.valid:
        validator.check(parse_xml(document.encode()))
    for document in case.invalid:
        with pytest.raises(NotValid):
            validator.check(parse_xml(document.encode()))


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_is_wrong_with_a_schema_is_said_with_its_place(bad: Bad) -> None:
    with pytest.raises(SchemaError) as caught:
        read(bad.schema, bad.files)
    error = caught.value
    place = error.fields["line"], error.fields["column"]
    assert (error.detail, place) == (bad.detail, (bad.line, bad.column))
