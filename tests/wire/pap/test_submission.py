"""A request is a control document and exactly the entities that belong to it."""

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import PapError, PapMalformed, TooLarge
from lasthop.wire.pap.documents import Document, PushMessage
from lasthop.wire.pap.multipart import Entity, write_related
from lasthop.wire.pap.submission import PapSubmission, read_submission, write_submission
from lasthop.wire.pap.versions import Version
from lasthop.wire.pap.writer import write_document
from tests.wire.pap import strategies
from tests.wire.pap.vectors import EXAMPLES, example

SI = (("Content-Type", "text/vnd.wap.si"), ("X-Wap-Application-Id", "x-wap-application:wml.ua"))
CONTENT = Entity((("Content-Type", "text/plain"),), b"hello")
PROFILE = Entity((("Content-Type", "application/rdf+xml"),), b"<rdf/>")
PUSH = Document(EXAMPLES["push-message"])
XML = (("Content-Type", "application/xml"),)


def control(document: Document, headers: tuple[tuple[str, str], ...] = XML) -> Entity:
    return Entity(headers, write_document(document))


def read(*entities: Entity) -> PapSubmission:
    return read_submission(*write_related(entities))


def test_the_example_submission() -> None:
    body = example("submit.http").partition(b"\r\n\r\n")[2]
    found = read_submission("multipart/related; boundary=asdlkfj3409ujf", body)
    assert found.document.message == EXAMPLES["push-message"]
    assert found.content is not None
    assert found.content.headers == SI
    assert found.capabilities is None


def test_the_example_reply() -> None:
    body = example("submit-reply.http").partition(b"\r\n\r\n")[2]
    found = read_submission("application/xml", body)
    assert found.document.message == EXAMPLES["push-response-accepted"]


def test_control_content_and_capabilities() -> None:
    assert read(control(PUSH), CONTENT, PROFILE) == PapSubmission(PUSH, CONTENT, PROFILE)
    with pytest.raises(PapMalformed, match="the third entity holds no capabilities"):
        read(control(PUSH), CONTENT, CONTENT)
    with pytest.raises(PapMalformed, match="the third entity holds no capabilities"):
        read(control(PUSH), CONTENT, Entity((), b""))


@pytest.mark.parametrize("headers", [XML, (("Content-Type", "text/xml; charset=utf-8"),), ()])
def test_the_control_entity_is_xml_by_any_name(headers: tuple[tuple[str, str], ...]) -> None:
    assert read(control(PUSH, headers), CONTENT).document == PUSH


def test_its_charset_is_that_of_its_header() -> None:
    text = '<pap><statusquery-message push-id="é"/></pap>'
    found = read_submission("application/xml; charset=iso-8859-1", text.encode("latin-1"))
    assert found == read_submission("text/xml", text.encode())


def test_the_application_may_stand_outside() -> None:
    outer = (("x-wap-application-id", "x-wap-application:mms.ua"),)
    related = write_related((control(PUSH), CONTENT))
    found = read_submission(*related, headers=outer).content
    assert found is not None
    assert found.headers == (
        ("Content-Type", "text/plain"),
        ("X-Wap-Application-Id", "x-wap-application:mms.ua"),
    )
    own = Entity(SI, b"")
    kept = read_submission(*write_related((control(PUSH), own)), headers=outer).content
    assert kept == own


@pytest.mark.parametrize(
    "name, count, said",
    [
        ("push-message", 0, "an entity is missing"),
        ("push-message", 3, "more entities than the message can have"),
        ("push-response-accepted", 1, "more entities"),
        ("cancel-message", 1, "more entities"),
        ("statusquery-message", 1, "more entities"),
        ("ccq-message", 1, "more entities"),
        ("ccq-response", 2, "more entities"),
        ("resultnotification-message", 2, "more entities"),
        ("resultnotification-response", 1, "more entities"),
        ("badmessage-response", 1, "more entities"),
    ],
)
def test_every_message_has_its_entities(name: str, count: int, said: str) -> None:
    document = Document(EXAMPLES[name], Version.V2_1, ("2.1",))
    with pytest.raises(PapMalformed, match=said) as caught:
        read(control(document), *[PROFILE] * count)
    error = caught.value
    assert (error.version, error.supported) == ("2.1", ("2.1",))
    expected = document.message.push_id if isinstance(document.message, PushMessage) else None
    assert error.push_id == expected
    if count == 0:
        with pytest.raises(PapMalformed, match=said):
            read_submission("application/xml", write_document(document))


@pytest.mark.parametrize("name", ["resultnotification-message", "ccq-response"])
def test_an_answer_may_bring_content(name: str) -> None:
    submission = PapSubmission(Document(EXAMPLES[name]), CONTENT)
    assert read_submission(*write_submission(submission)) == submission


def test_what_is_not_pap_at_all() -> None:
    for content_type in ["text/html", "application/x-www-form-urlencoded", "multipart/form-data"]:
        with pytest.raises(PapMalformed, match="not multipart/related"):
            read_submission(content_type, b"")
    with pytest.raises(PapMalformed, match="the first entity is not XML"):
        read(CONTENT, control(PUSH))
    with pytest.raises(TooLarge):
        read_submission("application/xml", b"x" * 11, limit=10)


def test_capabilities_do_not_come_alone() -> None:
    with pytest.raises(ValueError, match="only come along with content"):
        write_submission(PapSubmission(PUSH, None, PROFILE))
    with pytest.raises(PapError, match="missing"):
        write_submission(PapSubmission(PUSH))


@given(strategies.documents(), st.binary(max_size=30), st.booleans())
def test_any_submission_goes_out_and_comes_back(
    document: Document, body: bytes, profile: bool
) -> None:
    submission = PapSubmission(document)
    if isinstance(document.message, PushMessage):
        content = Entity((("Content-Type", "application/octet-stream"),), body)
        submission = PapSubmission(document, content, PROFILE if profile else None)
    content_type, data = write_submission(submission)
    assert read_submission(content_type, data) == submission
    assert write_submission(submission) == (content_type, data)
