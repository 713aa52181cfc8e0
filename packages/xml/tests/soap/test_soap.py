"""SOAP 1.2: envelopes both ways, the rules of header blocks, faults, and addressing."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop_xml.soap.addressing import (
    ACTION,
    FAULT_TO,
    MESSAGE_ID,
    TO,
    UNDERSTOOD,
    Addressing,
    read_addressing,
)
from lasthop_xml.soap.envelope import (
    MAX_BLOCKS,
    Envelope,
    HeaderBlock,
    block,
    read_envelope,
    write_envelope,
)
from lasthop_xml.soap.fault import MAX_SUBCODES, FaultCode, MalformedSoap, SoapFault, read_fault
from lasthop_xml.soap.names import ANONYMOUS, NEXT, NOBODY, NONE, SOAP_11_NS, SOAP_NS, ULTIMATE
from lasthop_xml.soap.node import SoapNode, fault_envelope
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.tree import Tree
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml

APP = "urn:example:app"
A, B = Name(APP, "a"), Name(APP, "b")
LOGGER = "urn:example:logger"


def elements(xml: str) -> EventList:
    return Tree(parse_xml(xml.encode())).root.fragment()


def envelope(inside: str, ns: str = SOAP_NS) -> bytes:
    return f"<e:Envelope xmlns:e='{ns}' xmlns:x='{APP}'>{inside}</e:Envelope>".encode()


def read(inside: str) -> Envelope:
    return read_envelope(parse_xml(envelope(inside)))


class TestEnvelopes:
    def test_have_a_fixed_form(self) -> None:
        message = Envelope(
            elements(f"<order xmlns='{APP}'>tea</order>"),
            [block(A, "1", must_understand=True, role=NEXT), block(B, relay=True)],
        )
        assert serialize_xml(write_envelope(message)).decode() == (
            '<env:Envelope xmlns:env="http://www.w3.org/2003/05/soap-envelope" '
            'xmlns:xsd="http://www.w3.org/2001/XMLSchema" '
            'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
            "<env:Header>"
            '<h:a xmlns:h="urn:example:app" '
            'env:role="http://www.w3.org/2003/05/soap-envelope/role/next" '
            'env:mustUnderstand="true">1</h:a>'
            '<h:b xmlns:h="urn:example:app" env:relay="true"/>'
            "</env:Header>"
            '<env:Body><order xmlns="urn:example:app">tea</order></env:Body>'
            "</env:Envelope>"
        )

    def test_are_read_as_they_were_written(self) -> None:
        message = Envelope(elements("<x/>"), [block(A, "t", role=LOGGER, must_understand=True)])
        again = read_envelope(parse_xml(serialize_xml(write_envelope(message))))
        (header,) = again.headers
        assert (header.name, header.text, header.role) == (A, "t", LOGGER)
        assert (header.must_understand, header.relay) == (True, False)
        assert Tree(again.body).root.name == Name("", "x")
        assert write_envelope(again) == write_envelope(read_envelope(write_envelope(again)))

    def test_may_have_no_header_and_an_empty_body(self) -> None:
        assert read("<e:Body/>") == Envelope()

    def test_keep_prefixes_that_the_body_relies_on(self) -> None:
        body = read("<e:Body><x:q>x:name</x:q><x:r/></e:Body>").body
        first, second = Tree(body).roots
        assert first.scope.prefixes["x"] == APP
        assert second.name == Name(APP, "r")

    def test_keep_attributes_of_the_same_name_further_inside(self) -> None:
        inner = "<x:a e:mustUnderstand='1'><x:b e:mustUnderstand='1'/></x:a>"
        (header,) = read(f"<e:Header>{inner}</e:Header><e:Body/>").headers
        assert header.must_understand
        assert not header.root.attributes
        child = header.root.find(B)
        assert child is not None
        assert child.attributes[Name(SOAP_NS, "mustUnderstand")] == "1"

    @pytest.mark.parametrize("text, value", [("1", True), ("true", True), (" 0 ", False)])
    def test_have_flags_in_every_form_of_xsd(self, text: str, value: bool) -> None:
        header = f"<e:Header><x:a e:relay='{text}'/></e:Header><e:Body/>"
        assert read(header).headers[0].relay is value

    def test_name_no_role_or_an_empty_one_for_the_ultimate_receiver(self) -> None:
        found = read("<e:Header><x:a/><x:a e:role=''/></e:Header><e:Body/>").headers
        assert [header.role for header in found] == [ULTIMATE, ULTIMATE]

    @pytest.mark.parametrize(
        "inside, told",
        [
            ("", "one body"),
            ("<e:Body/><e:Body/>", "one body"),
            ("<e:Body/><e:Header/>", "one body"),
            ("<e:Header/><e:Header/><e:Body/>", "one body"),
            ("<e:Body/><x:a/>", "one body"),
            ("<e:Header><a/></e:Header><e:Body/>", "a header block must have a namespace"),
            (
                "<e:Header><x:a e:mustUnderstand='yes'/></e:Header><e:Body/>",
                "a flag of a header block must be true or false",
            ),
            ("<e:Body><?x y?></e:Body>", "must not contain processing instructions"),
            (
                f"<e:Header>{'<x:a/>' * (MAX_BLOCKS + 1)}</e:Header><e:Body/>",
                "too many header blocks",
            ),
        ],
    )
    def test_that_are_none_are_refused(self, inside: str, told: str) -> None:
        with pytest.raises(MalformedSoap, match=told):
            read(inside)

    def test_another_root_is_no_message(self) -> None:
        with pytest.raises(
            MalformedSoap, match="the root element of a SOAP message must be Envelope"
        ):
            read_envelope(parse_xml(b"<a/>"))

    def test_another_version_is_a_fault_that_names_ours(self) -> None:
        with pytest.raises(
            SoapFault, match=r"only SOAP 1.2 is supported \(this is SOAP 1.1\)"
        ) as c:
            read_envelope(parse_xml(envelope("<e:Body/>", SOAP_11_NS)))
        assert c.value.fault_code is FaultCode.VERSION_MISMATCH
        text = serialize_xml(write_envelope(fault_envelope(c.value))).decode()
        assert "<env:Upgrade" in text
        assert 'qname="env:Envelope"' in text

    def test_too_many_blocks_are_not_written(self) -> None:
        with pytest.raises(MalformedSoap, match="too many header blocks"):
            write_envelope(Envelope(headers=[block(A)] * (MAX_BLOCKS + 1)))


class TestNodes:
    MESSAGE = (
        block(A, "1", must_understand=True),
        block(B, "2", role=NEXT),
        block(A, "3", role=LOGGER, must_understand=True),
        block(B, "4", role=NONE, must_understand=True),
    )

    def texts(self, blocks: list[HeaderBlock]) -> list[str]:
        return [one.text for one in blocks]

    def test_act_on_blocks_for_their_roles(self) -> None:
        node = SoapNode(understands={A, B})
        assert self.texts(node.understood(Envelope(headers=list(self.MESSAGE)))) == ["1", "2"]
        logger = SoapNode(understands={A}, roles={LOGGER}, ultimate=False)
        assert self.texts(logger.understood(Envelope(headers=list(self.MESSAGE)))) == ["3"]

    def test_refuse_what_must_be_understood_and_is_not(self) -> None:
        with pytest.raises(SoapFault, match="must be understood") as caught:
            SoapNode(understands={B}).understood(Envelope(headers=list(self.MESSAGE)))
        assert caught.value.fault_code is FaultCode.MUST_UNDERSTAND
        assert caught.value.not_understood == (A,)
        answer = read_envelope(write_envelope(fault_envelope(caught.value)))
        (header,) = answer.headers
        assert header.name == Name(SOAP_NS, "NotUnderstood")
        assert header.root.attributes[Name("", "qname")] == "n:a"
        assert header.root.scope.prefixes["n"] == APP

    def test_let_others_worry_about_what_is_for_others(self) -> None:
        message = Envelope(headers=[block(A, role=LOGGER, must_understand=True)])
        assert SoapNode().understood(message) == []

    def test_play_no_role_of_none(self) -> None:
        with pytest.raises(ValueError, match="a node must not play the role none"):
            SoapNode(roles={NONE})

    @pytest.mark.parametrize(
        "role, understood, relay, kept",
        [
            # Table 3 of part 1.
            (NEXT, True, False, False),
            (NEXT, False, False, False),
            (NEXT, True, True, False),
            (NEXT, False, True, True),
            (LOGGER, True, False, False),
            (LOGGER, False, True, True),
            ("urn:example:other", True, False, True),
            (ULTIMATE, False, False, True),
            (ULTIMATE, False, True, True),
            (NONE, False, False, True),
        ],
    )
    def test_pass_on_what_the_table_says(
        self, role: str, understood: bool, relay: bool, kept: bool
    ) -> None:
        node = SoapNode(understands={A} if understood else (), roles={LOGGER}, ultimate=False)
        message = Envelope(elements("<x/>"), [block(A, role=role, relay=relay)])
        passed = node.passed_on(message)
        assert (passed.headers == message.headers) is kept
        assert passed.body == message.body
        again = node.passed_on(message, again=[block(B)])
        assert again.headers[-1].name == B


class TestFaults:
    def fault(self) -> SoapFault:
        return SoapFault(
            FaultCode.SENDER,
            "no tea",
            subcodes=(Name(APP, "SoldOut"), Name("urn:other", "Tea")),
            role=NEXT,
            node="urn:example:node",
            elements=elements(f"<left xmlns='{APP}'>0</left>"),
        )

    def test_are_read_as_they_were_written(self) -> None:
        xml = serialize_xml(write_envelope(fault_envelope(self.fault())))
        fault = read_fault(read_envelope(parse_xml(xml)).body)
        assert fault is not None
        assert (fault.fault_code, fault.reason) == (FaultCode.SENDER, "no tea")
        assert fault.subcodes == (Name(APP, "SoldOut"), Name("urn:other", "Tea"))
        assert (fault.role, fault.node) == (NEXT, "urn:example:node")
        assert fault.elements is not None
        assert Tree(fault.elements).root.text == "0"

    def test_are_no_other_bodies(self) -> None:
        assert read_fault(elements("<x/>")) is None
        assert read_fault(EventList()) is None

    def test_speak_english_if_they_can(self) -> None:
        texts = "<e:Text xml:lang='de'>nein</e:Text><e:Text xml:lang='en-GB'>no</e:Text>"
        fault = self.read_text(f"<e:Reason>{texts}</e:Reason>")
        assert fault is not None
        assert fault.reason == "no"

    def read_text(self, more: str, value: str = "e:Sender") -> SoapFault | None:
        code = f"<e:Code><e:Value>{value}</e:Value></e:Code>"
        return read_fault(read(f"<e:Body><e:Fault>{code}{more}</e:Fault></e:Body>").body)

    def test_that_are_not_as_they_should_be_are_refused(self) -> None:
        with pytest.raises(MalformedSoap, match="gives no reason"):
            self.read_text("")
        with pytest.raises(MalformedSoap, match="a code that SOAP does not define"):
            self.read_text("", "x:Sender")
        with pytest.raises(MalformedSoap, match="code is not declared"):
            self.read_text("", "y:Sender")
        with pytest.raises(MalformedSoap, match="has no code"):
            read_fault(read("<e:Body><e:Fault/></e:Body>").body)
        with pytest.raises(MalformedSoap, match="has no value"):
            read_fault(read("<e:Body><e:Fault><e:Code/></e:Fault></e:Body>").body)
        deep = "<e:Subcode><e:Value>x:c</e:Value>" * (MAX_SUBCODES + 1)
        deep += "</e:Subcode>" * (MAX_SUBCODES + 1)
        code = f"<e:Code><e:Value>e:Sender</e:Value>{deep}</e:Code>"
        reason = "<e:Reason><e:Text xml:lang='en'>x</e:Text></e:Reason>"
        with pytest.raises(MalformedSoap, match="too many codes"):
            read_fault(read(f"<e:Body><e:Fault>{code}{reason}</e:Fault></e:Body>").body)


IRIS = st.sampled_from(["urn:a", "http://example.org/b", "lasthop:device:shop#orders"])


class TestAddressing:
    @given(
        st.builds(
            Addressing,
            action=IRIS,
            to=IRIS | st.just(ANONYMOUS),
            message_id=IRIS | st.just(""),
            relates_to=IRIS,
            relationship=IRIS,
            source=IRIS | st.just(""),
            reply_to=IRIS | st.just(ANONYMOUS) | st.just(NOBODY),
            fault_to=IRIS | st.just(""),
        )
    )
    def test_is_read_as_it_was_written(self, way: Addressing) -> None:
        message = Envelope(headers=way.blocks())
        assert read_addressing(read_envelope(write_envelope(message))) == way

    def test_says_little_when_everything_is_as_usual(self) -> None:
        (only,) = Addressing(action="urn:a").blocks()
        assert (only.name, only.must_understand) == (ACTION, True)
        assert read_addressing(Envelope(headers=[block(A)])) is None

    def test_of_an_answer_follows_from_the_request(self) -> None:
        request = Addressing(
            action="urn:ask", message_id="urn:1", reply_to="urn:me", fault_to="urn:clinic"
        )
        assert request.wants_answer
        answer = request.answer("urn:told", message_id="urn:2")
        assert answer == Addressing(
            action="urn:told", to="urn:me", message_id="urn:2", relates_to="urn:1"
        )
        assert request.answer("urn:f", fault=True).to == "urn:clinic"
        assert not Addressing(action="a", message_id="i", reply_to=NOBODY).wants_answer
        with pytest.raises(SoapFault, match="the addressing header MessageID is missing"):
            Addressing(action="urn:ask").answer("urn:told")

    @pytest.mark.parametrize(
        "headers, told",
        [
            ([block(TO, "urn:x")], "the addressing header Action is missing"),
            ([block(ACTION, "urn:a"), block(ACTION, "urn:b")], "Action is not valid"),
            ([block(ACTION, "two words")], "Action is not valid"),
            ([block(ACTION, "urn:a"), block(MESSAGE_ID)], "MessageID is not valid"),
            ([block(ACTION, "urn:a"), block(FAULT_TO, "urn:x")], "FaultTo is not valid"),
        ],
    )
    def test_that_is_not_valid_is_a_fault_of_the_sender(
        self, headers: list[HeaderBlock], told: str
    ) -> None:
        with pytest.raises(SoapFault, match=told) as caught:
            read_addressing(Envelope(headers=headers))
        assert caught.value.fault_code is FaultCode.SENDER

    def test_has_names(self) -> None:
        assert len(UNDERSTOOD) == 7
