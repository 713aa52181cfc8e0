"""Documents are read as initiators send them, and refused with the right code and line."""

import re

import pytest

from lasthop.errors import PapError, PapInvalid, PapMalformed, PapVersionUnknown, TooLarge
from lasthop.message import DeliveryMethod
from lasthop.wire.pap.documents import (
    Document,
    PushMessage,
    QualityOfService,
    ResultNotificationResponse,
    StatusQueryMessage,
)
from lasthop.wire.pap.layout import MAX_IDENTIFIER, MAX_TEXT
from lasthop.wire.pap.reader import MAX_ATTRIBUTES, read_document
from lasthop.wire.pap.versions import UNDECLARED, VERSIONS, Version
from tests.wire.pap.vectors import EXAMPLES, FIRST, example

BODY = '<pap><statusquery-message push-id="é"/></pap>'
MESSAGE = StatusQueryMessage("é")
DOCTYPE = '<!DOCTYPE pap PUBLIC "-//OMA//DTD PAP 2.1//EN" "x"'


def test_no_doctype_means_the_newest_version_in_use() -> None:
    assert read_document(BODY.encode()) == Document(MESSAGE, UNDECLARED)


@pytest.mark.parametrize(
    "prolog",
    [
        "",
        "\n",
        '<?xml version="1.0"?>',
        "<?xml version='1.0' encoding='utf-8' standalone='no' ?>\r\n",
        "<!-- - a comment - --><?style sheet?> ",
        "<!DOCTYPE pap>",
        "<!DOCTYPE pap []>",
        "<!DOCTYPE pap SYSTEM 'pap_2.1.dtd'>",
        '<!DOCTYPE pap SYSTEM "pap_2.1.dtd" [ <!-- empty --> ] >',
        '<!DOCTYPE pap PUBLIC "-//OMA//DTD PAP 2.1//EN">',
        "<!DOCTYPE pap PUBLIC '-//OMA//DTD PAP 2.1//EN''http://example.org/pap_2.1.dtd'>",
        "<!DOCTYPE\tpap\nPUBLIC\n'-//OMA//DTD PAP 2.1//EN'\n'pap_2.1.dtd'\n>\n<!-- x -->\n",
    ],
)
def test_prologs_of_all_kinds(prolog: str) -> None:
    assert read_document((prolog + BODY).encode()) == Document(MESSAGE, Version.V2_1)


@pytest.mark.parametrize(
    "subset, supported",
    [
        ('<?wap-pap-ver supported-versions="2.1,2.0,1.*"?>', ("2.1", "2.0", "1.*")),
        ("<?wap-pap-ver supported-versions='2.0'?>", ("2.0",)),
        ('\n<!-- a --><?wap-pap-ver other="1" supported-versions = "1.0" ?>\n', ("1.0",)),
        ("<?wap-pap-ver?>", ()),
        ("<?other supported-versions='2.0'?>", ()),
    ],
)
def test_the_sender_says_what_it_understands(subset: str, supported: tuple[str, ...]) -> None:
    document = read_document(f"{DOCTYPE} [{subset}]>{BODY}".encode())
    assert document.supported == supported


@pytest.mark.parametrize(
    "body",
    [
        "<pap>\n  <statusquery-message\n push-id = 'é'\t>\r\n</statusquery-message >\n</pap\n>\n\n",
        "<pap><!-- one --><?two?><statusquery-message push-id='&#233;'/></pap><!-- three -->",
        "<pap><statusquery-message push-id='&#xE9;'></statusquery-message></pap>\n<?end?>",
        "<pap><statusquery-message push-id='é'> <!-- nothing --> </statusquery-message></pap>",
    ],
)
def test_bodies_of_all_kinds(body: str) -> None:
    assert read_document(body.encode()).message == MESSAGE


@pytest.mark.parametrize(
    "written, read",
    [("a\tb\nc", "a b c"), ("a\r\nb", "a b"), ("&lt;&gt;&amp;&quot;&apos;&#10;", "<>&\"'\n")],
)
def test_values_are_normalized_as_xml_has_it(written: str, read: str) -> None:
    data = f'<pap><statusquery-message push-id="{written}"/></pap>'.encode()
    assert read_document(data).message == StatusQueryMessage(read)


@pytest.mark.parametrize("version", VERSIONS)
def test_defaults_are_those_of_the_document_type(version: Version) -> None:
    data = f"""<!DOCTYPE pap SYSTEM "pap_{version}.dtd"><pap>
        <push-message push-id="1" progress-notes-requested="false">
            <address address-value="a"/><quality-of-service priority="medium"/>
        </push-message></pap>""".encode()
    assert read_document(data).message == PushMessage("1", ("a",), quality=QualityOfService())


@pytest.mark.parametrize(
    "name, since",
    [
        ("push-message-replace", "2.1"),
        ("push-message-response-wanted", "2.1"),
        ("push-message", ""),
    ],
)
def test_the_version_of_the_document_decides_what_is_valid(name: str, since: str) -> None:
    for version in VERSIONS:
        data = example(f"{name}.xml").replace(b"PAP 2.1", b"PAP " + version.encode())
        if version >= since:
            assert read_document(data).message == EXAMPLES[name]
        else:
            with pytest.raises(PapInvalid) as caught:
                read_document(data)
            assert (caught.value.version, caught.value.supported) == (
                version,
                ("2.1", "2.0", "1.*"),
            )
            assert isinstance(EXAMPLES[name], PushMessage)
            assert caught.value.push_id is not None


def test_2_0_replaces_and_1_0_does_not() -> None:
    data = b'<pap><push-message push-id="2" replace-push-id="1"><address address-value="a"/>'
    data += b"</push-message></pap>"
    found = read_document(b'<!DOCTYPE pap SYSTEM "pap_2.0.dtd">' + data).message
    assert found == PushMessage("2", ("a",), replace_push_id="1")
    with pytest.raises(PapInvalid, match="replace-push-id"):
        read_document(b'<!DOCTYPE pap SYSTEM "pap_1.0.dtd">' + data)


def test_an_unknown_version_is_answered_with_3002() -> None:
    data = f'{DOCTYPE} [<?wap-pap-ver supported-versions="2.3,2.0"?>]>{BODY}'
    with pytest.raises(PapVersionUnknown) as caught:
        read_document(data.replace("2.1", "2.3").encode())
    error = caught.value
    assert (error.pap_code, error.version, error.supported) == (3002, "2.3", ("2.3", "2.0"))


def test_some_initiators_answer_with_a_code_alone() -> None:
    def answer(inside: str, attributes: str = 'code="1000"') -> Document:
        text = f"<pap><resultnotification-response {attributes}>{inside}"
        return read_document(f"{text}</resultnotification-response></pap>".encode())

    assert answer("").message == ResultNotificationResponse(1000)
    assert answer('<address address-value="a"/>').message == ResultNotificationResponse(
        1000, address="a"
    )
    assert answer("", f'code="1000" push-id="{FIRST}"').message == ResultNotificationResponse(
        1000, FIRST
    )
    for wrong in ["<address/>", '<address address-value="a"/>' * 2, "<quality-of-service/>"]:
        with pytest.raises(PapInvalid):
            answer(wrong)
    with pytest.raises(PapInvalid):
        answer("", 'desc="no code"')
    with pytest.raises(PapInvalid):
        answer("", 'code="OK"')


PUSH = '<push-message push-id="7">\n<address address-value="a"/>\n</push-message>'
LONG = "x" * 5000


@pytest.mark.parametrize(
    "text, error, line, said",
    [
        # Not XML.
        ("", PapMalformed, 1, "no root element"),
        ("\n\n hello", PapMalformed, 3, "no root element"),
        ("\n<!-- never ends", PapMalformed, 2, "no root element"),
        ("<!-- a -- b --><pap/>", PapMalformed, 1, "no root element"),
        ("<?xml version='1.0'", PapMalformed, 1, "no root element"),
        ("<", PapMalformed, 1, "no root element"),
        (f"{DOCTYPE}\n", PapMalformed, 2, "the DOCTYPE does not end"),
        (f"{DOCTYPE} [\n", PapMalformed, 2, "the DOCTYPE does not end"),
        (f"{DOCTYPE} [<?a?>]\n<pap/>", PapMalformed, 2, "the DOCTYPE does not end"),
        (f"{DOCTYPE}>\n<!DOCTYPE pap>", PapMalformed, 2, "no root element"),
        ("<pap>\n<push-message", PapMalformed, 2, "a tag is not complete"),
        ('<pap>\n<push-message push-id="7', PapMalformed, 2, "a tag is not complete"),
        ("<pap>\n<push-message push-id=7/></pap>", PapMalformed, 2, "a tag is not complete"),
        ("<pap>\n< push-message/></pap>", PapMalformed, 2, "not a tag"),
        ("<pap>\n<!-- a -- b --></pap>", PapMalformed, 2, "not a tag"),
        ("<pap>\n<!DOCTYPE pap></pap>", PapMalformed, 2, "not a tag"),
        ("<pap>\n</push-message>", PapMalformed, 2, "not well-formed: .*mismatch"),
        ("<pap>\n<address>\n", PapMalformed, 3, "not well-formed"),
        ("<pap/>\n<pap/>", PapMalformed, 2, "not well-formed: Extra content"),
        ("<pap>\n<address code='1' code='2'/></pap>", PapMalformed, 2, "redefined"),
        ("<pap>\n<address code='\x01'/></pap>", PapMalformed, 2, "not well-formed"),
        ("<pap>\n<address code='&#0;'/></pap>", PapMalformed, 2, "not well-formed"),
        ("<pap>\n<address code='&#xD800;'/></pap>", PapMalformed, 2, "not well-formed"),
        (
            "<pap>\n<address code='1'\n desc='&who;'/></pap>",
            PapMalformed,
            3,
            "a reference names an entity that is not declared",
        ),
        ("<pap>\n<address code='a & b'/></pap>", PapMalformed, 2, "a reference names an entity"),
        ("<pap>\n<address code='a<b'/></pap>", PapMalformed, 2, '"<" in the value'),
        # Declarations of one's own.
        (f'{DOCTYPE} [\n<!ENTITY a "b">]>{BODY}', PapInvalid, 2, "may not declare entities"),
        (f"{DOCTYPE} [\n%a;]>{BODY}", PapInvalid, 2, "may not declare entities"),
        (f"{DOCTYPE} [<?a?>\n<!ELEMENT pap ANY>]>{BODY}", PapInvalid, 2, "may not change"),
        (f"{DOCTYPE} [<!ATTLIST pap x CDATA '1'>]>{BODY}", PapInvalid, 1, "may not change"),
        # Not PAP.
        ("<!DOCTYPE html><html/>", PapInvalid, 1, "the document type is not pap"),
        ("\n<html/>", PapInvalid, 2, "PAP has no such element .*'html'"),
        ("<address/>", PapInvalid, 1, "the root element is not pap"),
        ("<pap xmlns='urn:x'/>", PapInvalid, 1, "PAP has no such attribute .*'xmlns'"),
        ("<pap>\ntext</pap>", PapInvalid, 2, "there is text between the elements"),
        ("<pap>\n<![CDATA[ ]]></pap>", PapInvalid, 2, "a CDATA section"),
        ("<Pap/>", PapInvalid, 1, "PAP has no such element"),
        # Not valid.
        ("<pap/>", PapInvalid, 1, "not valid: pap holds push-message or"),
        (f"<pap>{PUSH}{PUSH}</pap>", PapInvalid, 1, "not valid: pap holds push-message or"),
        (
            "<pap>\n<push-message push-id='7'/></pap>",
            PapInvalid,
            2,
            "push-message holds address\\+, quality-of-service\\?",
        ),
        ("<pap>\n<cancel-message/></pap>", PapInvalid, 2, "cancel-message has no push-id"),
        (
            f"<pap>{PUSH}</pap>".replace(
                "</push", "<quality-of-service priority='urgent'/>\n</push"
            ),
            PapInvalid,
            3,
            "priority is one of high, low, medium",
        ),
        ("<pap>\n<address code='1'/></pap>", PapInvalid, 1, "pap holds"),
        ("<pap code='1'>\n<address/></pap>", PapInvalid, 1, "pap cannot have code"),
        # Valid, and still wrong.
        ("<pap>\n<cancel-message push-id=''/></pap>", PapInvalid, 2, "push-id: an identifier may"),
        (
            f"<pap><cancel-message push-id='{'x' * 600}'/></pap>",
            PapInvalid,
            1,
            f"push-id: an identifier may have at most {MAX_IDENTIFIER}",
        ),
        (
            "<pap>\n<badmessage-response code='0200'/></pap>",
            PapInvalid,
            2,
            "code: a code must have four",
        ),
        (
            f"<pap>\n<badmessage-response code='2000' desc='{LONG}'/></pap>",
            PapInvalid,
            2,
            f"desc: a text may have at most {MAX_TEXT} characters",
        ),
        (
            f"<pap product-name='{LONG}'>{PUSH}</pap>",
            PapInvalid,
            1,
            f"product-name: a text may have at most {MAX_TEXT} characters",
        ),
        (
            f"<pap>\n{PUSH}</pap>".replace('"a"', f'"{LONG}"'),
            PapInvalid,
            3,
            f"address-value: a text may have at most {MAX_TEXT} characters",
        ),
        (
            f"<pap>\n{PUSH}</pap>".replace('"7"', '"7" deliver-before-timestamp="tomorrow"'),
            PapInvalid,
            2,
            "deliver-before-timestamp: a time must be YYYY-MM-DDThh:mm:ssZ in UTC",
        ),
        (
            f"<pap>\n{PUSH}</pap>".replace(
                '"7"',
                '"7" deliver-before-timestamp="2024-02-29T08:00:00Z"'
                ' deliver-after-timestamp="2024-02-29T08:00:00Z"',
            ),
            PapInvalid,
            2,
            "deliver-after-timestamp is not before deliver-before-timestamp",
        ),
    ],
)
def test_an_error_tells_the_line_and_the_reason(
    text: str, error: type[PapError], line: int, said: str
) -> None:
    with pytest.raises(PapError) as caught:
        read_document(text.encode())
    found = caught.value
    assert type(found) is error
    assert (found.line, found.pap_code) == (line, 2000)
    assert re.search(said, str(found))


def test_a_broken_push_can_still_be_named() -> None:
    with pytest.raises(PapInvalid) as caught:
        read_document(b'<pap><push-message push-id="7"/></pap>')
    assert caught.value.push_id == "7"
    with pytest.raises(PapInvalid) as caught:
        read_document(b'<pap><cancel-message push-id="7"><pap/></cancel-message></pap>')
    assert caught.value.push_id is None


def test_there_is_a_limit_to_attributes() -> None:
    many = " code='1'" * (MAX_ATTRIBUTES + 1)
    with pytest.raises(TooLarge):
        read_document(f"<pap><address{many}/></pap>".encode())
    with pytest.raises(PapMalformed, match="redefined"):
        read_document(f"<pap><address{many[9:]}/></pap>".encode())


@pytest.mark.parametrize(
    "data",
    [
        BODY.encode("utf-8"),
        BODY.encode("utf-8-sig"),
        b"\xff\xfe" + BODY.encode("utf-16-le"),
        b"\xfe\xff" + BODY.encode("utf-16-be"),
        BODY.encode("utf-16-le"),
        BODY.encode("utf-16-be"),
        b"<?xml version='1.0' encoding='ISO-8859-1'?>" + BODY.encode("latin-1"),
        b'<?xml version="1.0" encoding="windows-1252"?>' + BODY.encode("cp1252"),
        ('<?xml version="1.0" encoding="UTF-16"?>' + BODY).encode("utf-16"),
        BODY.replace("é", "&#233;").encode("ascii"),
    ],
)
def test_character_sets_are_recognised(data: bytes) -> None:
    assert read_document(data).message == MESSAGE


@pytest.mark.parametrize(
    "charset, encoding",
    [("utf-8", "utf-8"), ("ISO-8859-1", "latin-1"), ("utf-16le", "utf-16-le"), ("", "utf-8")],
)
def test_the_header_outweighs_the_declaration(charset: str, encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="koi8-r"?>{BODY}' if charset else BODY
    assert read_document(text.encode(encoding), charset=charset).message == MESSAGE


@pytest.mark.parametrize(
    "data, charset, said",
    [
        (b"<pap>\n" + BODY.encode("latin-1"), None, "a byte of the document is not utf-8 .*line=2"),
        (BODY.encode(), "us-ascii", "a byte of the document is not ascii"),
        (b"<?xml version='1.0' encoding='utf-7'?>" + BODY.encode(), None, "character set"),
        (BODY.encode(), "utf-7", "the character set is not supported .*charset='utf-7'"),
        (b"<?xml version='1.0' encoding='rot13'?>" + BODY.encode(), None, "character set"),
        (b"\xff\xfe<", None, "a byte of the document is not utf-16-le"),
        (BODY.encode("utf-32"), None, "utf-16-le|no root|not a tag"),
        (b"<?xml version='1.0' encoding='UTF-16'?><pap/>", None, "utf-16-be|no root"),
        (b"<pap>\0</pap>", None, "there is text between the elements"),
        (b"<pap>\n<cancel-message push-id='a\0b'/></pap>", None, "not well-formed"),
        (b"\0" * 100, None, "no root element"),
    ],
)
def test_wrong_character_sets_are_refused(data: bytes, charset: str | None, said: str) -> None:
    with pytest.raises(PapError, match=said) as caught:
        read_document(data, charset=charset)
    assert caught.value.pap_code == 2000


def test_all_methods_are_read() -> None:
    for method in DeliveryMethod:
        word = "confirmed-with-response" if "with" in method else method.value
        data = PUSH.replace("</push", f'<quality-of-service delivery-method="{word}"/></push')
        found = read_document(f"<pap>{data}</pap>".encode()).message
        assert isinstance(found, PushMessage)
        assert found.quality == QualityOfService(method=method)
