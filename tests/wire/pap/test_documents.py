"""Every message of PAP in every version goes out and comes back, and is valid on the way."""

from typing import Any, cast

import pytest
from hypothesis import given
from lxml import etree

from lasthop.clock import SECOND
from lasthop.errors import PapInvalid
from lasthop.message import DeliveryMethod
from lasthop.wire.pap.codes import MessageState
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    Document,
    PapMessage,
    PushMessage,
    QualityOfService,
    ReplaceMethod,
    ResultNotificationMessage,
    ResultNotificationResponse,
)
from lasthop.wire.pap.layout import ATTRIBUTES, BY_TAG, MAX_IDENTIFIER, MAX_TEXT, TAGS
from lasthop.wire.pap.reader import read_document
from lasthop.wire.pap.validity import document_type
from lasthop.wire.pap.versions import SUPPORTED, VERSIONS, Version
from lasthop.wire.pap.writer import write_document
from tests.wire.pap import strategies
from tests.wire.pap.vectors import EXAMPLES, FOLDER, PHONE, example

OFFER = ("2.1", "2.0", "1.*")


def test_there_is_an_example_of_every_message() -> None:
    assert {path.stem for path in FOLDER.glob("*.xml")} == set(EXAMPLES)
    assert {type(message) for message in EXAMPLES.values()} == {e.type for e in BY_TAG.values()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_read(name: str) -> None:
    document = read_document(example(f"{name}.xml"))
    assert document.message == EXAMPLES[name]
    assert (document.version, document.supported) == (Version.V2_1, OFFER)


@pytest.mark.parametrize("version", [Version.V2_1, Version.V2_2])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_written_and_read_again(name: str, version: Version) -> None:
    document = Document(EXAMPLES[name], version, OFFER, "ExamplePI 1.0")
    data = write_document(document)
    assert read_document(data) == document
    assert write_document(read_document(data)) == data
    assert valid(data, version)


def test_the_exact_octets() -> None:
    document = Document(EXAMPLES["push-message"], Version.V2_0, SUPPORTED, "A & B")
    assert write_document(document).decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 2.0//EN"'
        ' "http://www.wapforum.org/DTD/pap_2.0.dtd"'
        ' [<?wap-pap-ver supported-versions="2.2,2.1,2.0,1.0"?>]>\n'
        '<pap product-name="A &amp; B">'
        '<push-message push-id="20240229-0001@pi.example.org"'
        ' deliver-before-timestamp="2024-02-29T20:00:00Z"'
        ' deliver-after-timestamp="2024-02-29T08:00:00Z" source-reference="news-desk"'
        ' ppg-notify-requested-to="http://pi.example.org/notify" progress-notes-requested="true">'
        '<address address-value="WAPPUSH=+15551999073/TYPE=PLMN@ppg.example.net"/>'
        '<address address-value="WAPPUSH=alice%40example.org/TYPE=USER@ppg.example.net"/>'
        '<quality-of-service priority="high" delivery-method="confirmed" network="GSM"'
        ' network-required="true" bearer="SMS" bearer-required="true"/>'
        "</push-message></pap>\n"
    )


def test_version_1_0_offers_nothing() -> None:
    data = write_document(Document(EXAMPLES["statusquery-message"], Version.V1_0, SUPPORTED))
    assert data == (
        b'<?xml version="1.0" encoding="UTF-8"?>\n'
        b'<!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 1.0//EN"'
        b' "http://www.wapforum.org/DTD/pap_1.0.dtd">\n'
        b'<pap><statusquery-message push-id="20240229-0001@pi.example.org"/></pap>\n'
    )


def valid(data: bytes, version: Version) -> bool:
    """By a parser that knows nothing of ours."""
    return document_type(version).validate(etree.fromstring(data))


@given(strategies.documents())
def test_any_document_goes_out_and_comes_back(document: Document) -> None:
    data = write_document(document)
    assert valid(data, document.version)
    assert read_document(data) == document
    assert write_document(read_document(data)) == data


@pytest.mark.parametrize("version", VERSIONS)
def test_the_vocabulary_is_that_of_the_document_types(version: Version) -> None:
    declared = list(cast(Any, document_type(version)).iterelements())
    assert {element.name for element in declared} == TAGS
    names = {a.name for element in declared for a in element.iterattributes()}
    later = {"replace-push-id", "replace-method"} if version is Version.V1_0 else set()
    assert names == ATTRIBUTES - later


def push(**changes: object) -> PushMessage:
    return PushMessage("1", (PHONE,), **changes)  # type: ignore[arg-type]


ONESHOT = QualityOfService(method=DeliveryMethod.ONESHOT)
WITH_RESPONSE = QualityOfService(method=DeliveryMethod.CONFIRMED_WITH_RESPONSE)
PENDING_ONLY = ReplaceMethod.PENDING_ONLY


@pytest.mark.parametrize(
    "message, version, said",
    [
        (push(replace_push_id="0"), "1.0", "replace-push-id: not in this version of PAP"),
        (push(replace_method=PENDING_ONLY), "1.0", "replace-method: not in this version of PAP"),
        (push(quality=ONESHOT), "2.0", "delivery-method: not in this version of PAP"),
        (push(quality=WITH_RESPONSE), "1.0", "delivery-method: not in this version of PAP"),
        (
            push(source_reference="\0"),
            "2.1",
            "source-reference: XML does not have this character",
        ),
        (push(notify_to="\ud800"), "2.1", "notify-requested-to: XML does not have this character"),
        (push(notify_to="x" * 5000), "2.1", f"a text may have at most {MAX_TEXT} characters"),
        (PushMessage("", (PHONE,)), "2.1", "push-id: an identifier may not be empty"),
        (PushMessage("x" * 600, (PHONE,)), "2.1", f"at most {MAX_IDENTIFIER} characters"),
        (PushMessage("1", ("\x01",)), "2.1", "address-value: XML does not have this character"),
        (push(deliver_before=10**20), "2.1", "a time of PAP must lie in the years 1 to 9999"),
        (
            push(deliver_after=1, deliver_before=SECOND),
            "2.1",
            "deliver-after-timestamp is not before deliver-before-timestamp",
        ),
        (BadMessageResponse(200), "2.1", "code: a code must have four digits"),
        (ResultNotificationResponse(1000, "1"), "2.1", "must name its push and address"),
    ],
)
def test_what_cannot_be_said_is_not_written(message: PapMessage, version: str, said: str) -> None:
    with pytest.raises(PapInvalid, match=said):
        write_document(Document(message, Version(version)))


def test_an_offer_cannot_break_out_of_its_instruction() -> None:
    with pytest.raises(PapInvalid, match="supported version"):
        write_document(Document(push(), supported=('1.0"?><!ENTITY a "b">',)))


def test_times_are_written_in_whole_seconds_on_the_safe_side() -> None:
    written = read_document(
        write_document(Document(push(deliver_after=SECOND + 1, deliver_before=9 * SECOND + 1)))
    ).message
    assert isinstance(written, PushMessage)
    assert (written.deliver_after, written.deliver_before) == (2 * SECOND, 9 * SECOND)
    happened = ResultNotificationMessage("1", PHONE, MessageState.DELIVERED, 1000, event_time=1)
    told = read_document(write_document(Document(happened))).message
    assert isinstance(told, ResultNotificationMessage)
    assert told.event_time == 0
