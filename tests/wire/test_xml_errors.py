"""What the XML package refuses has an answer at every edge, and stays what it is."""

from __future__ import annotations

import pytest

from lasthop.errors import Fault, InvalidRequest, LasthopError, Malformed, Rejected, TooLarge
from lasthop.wire.xml_errors import as_rejected, xml_refusals
from lasthop_xml.errors import XmlError
from lasthop_xml.orl.errors import MalformedOrl
from lasthop_xml.relaxng.errors import NotValid, SchemaError, SchemaTooLarge
from lasthop_xml.soap.fault import FaultCode, MalformedSoap, SoapFault
from lasthop_xml.weft.errors import WeftFormatError, WeftLimitError, WeftStateError
from lasthop_xml.xas.errors import (
    InvalidValue,
    MalformedEvents,
    MalformedXml,
    UnknownType,
    XmlTooLarge,
)
from lasthop_xml.xebu.errors import XebuFormatError, XebuLimitError, XebuStateError
from lasthop_xml.xmlsecurity.errors import MalformedSecurity, Tampered, Untrusted
from lasthop_xml.xpath.errors import MalformedXPath, UnsupportedXPath, XPathTooLarge

ANSWERS: dict[type[XmlError], tuple[type[Rejected], str, int, int]] = {
    MalformedXml: (Malformed, "malformed_xml", 400, 1),
    MalformedEvents: (Malformed, "malformed_events", 400, 1),
    InvalidValue: (InvalidRequest, "invalid_value", 400, 1),
    UnknownType: (InvalidRequest, "unknown_type", 400, 1),
    XmlTooLarge: (TooLarge, "xml_too_large", 413, 2),
    XebuFormatError: (Malformed, "xebu_format", 400, 1),
    XebuStateError: (Malformed, "xebu_state", 400, 1),
    XebuLimitError: (TooLarge, "xebu_limit", 413, 2),
    WeftFormatError: (Malformed, "weft_format", 400, 1),
    WeftStateError: (Malformed, "weft_state", 400, 1),
    WeftLimitError: (TooLarge, "weft_limit", 413, 2),
    SchemaError: (Malformed, "schema", 400, 1),
    NotValid: (Malformed, "not_valid", 400, 1),
    SchemaTooLarge: (TooLarge, "schema_too_large", 413, 2),
    MalformedXPath: (Malformed, "malformed_xpath", 400, 1),
    UnsupportedXPath: (InvalidRequest, "unsupported_xpath", 400, 1),
    XPathTooLarge: (TooLarge, "xpath_too_large", 413, 2),
    Untrusted: (InvalidRequest, "untrusted", 400, 1),
    Tampered: (InvalidRequest, "tampered", 400, 1),
    MalformedSecurity: (Malformed, "malformed_security", 400, 1),
    MalformedOrl: (Malformed, "malformed_orl", 400, 1),
    MalformedSoap: (Malformed, "malformed_soap", 400, 1),
}


@pytest.mark.parametrize("theirs", ANSWERS, ids=lambda each: each.__name__)
def test_an_error_of_xml_has_the_answers_of_its_kind(theirs: type[XmlError]) -> None:
    kind, code, status, close = ANSWERS[theirs]
    with pytest.raises(kind) as caught, xml_refusals():
        raise theirs("this is wrong", column=3)
    error = caught.value
    assert isinstance(error, theirs)
    assert (error.code, error.http_status, error.hop_code) == (code, status, close)
    assert (error.pap_code, error.fault) == (2000, Fault.CALLER)
    assert str(error) == "this is wrong (column=3)"
    assert error.fields == {"column": 3}


def test_a_soap_fault_keeps_what_it_says() -> None:
    error = as_rejected(SoapFault(FaultCode.RECEIVER, "no tea", role="urn:shop"))
    assert isinstance(error, SoapFault)
    assert (error.fault_code, error.role) == (FaultCode.RECEIVER, "urn:shop")
    assert (error.code, error.http_status, error.hop_code) == ("soap_fault", 400, 8)
    assert str(error) == "no tea (fault='Receiver')"


def test_what_is_ours_already_is_left_alone() -> None:
    ours = as_rejected(MalformedXml("no element"))
    with pytest.raises(Malformed) as caught, xml_refusals():
        raise ours
    assert caught.value is ours
    assert caught.value.__cause__ is None
    assert type(as_rejected(MalformedXml("again"))) is type(ours)


def test_other_errors_pass() -> None:
    with pytest.raises(LasthopError, match="another") as caught, xml_refusals():
        raise LasthopError("another")
    assert type(caught.value) is LasthopError
