"""Whatever is wrong, there is a valid document that says so."""

import inspect

import pytest
from hypothesis import given, strategies as st

from lasthop import errors
from lasthop.errors import (
    Conflict,
    Forbidden,
    LasthopError,
    PapError,
    PapInvalid,
    PapMalformed,
    QuotaExceeded,
    StoreFull,
    TooLarge,
)
from lasthop.wire.pap.codes import CODES, CodeUse
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    Document,
    PushResponse,
    ResponseResult,
)
from lasthop.wire.pap.layout import BY_TYPE
from lasthop.wire.pap.reader import read_document
from lasthop.wire.pap.refusals import MAX_FRAGMENT, refusal
from lasthop.wire.pap.versions import SUPPORTED, Version
from lasthop.wire.pap.writer import write_document
from tests.wire.pap.vectors import EXAMPLES


def refused(data: bytes) -> Document:
    with pytest.raises(PapError) as caught:
        read_document(data)
    return refusal(caught.value, received=data, now=0, product="lasthop")


def test_what_cannot_be_read_is_a_bad_message() -> None:
    assert refused(b"<pap>\n<push-message") == Document(
        BadMessageResponse(2000, "a tag is not complete (line=2)", "<pap> <push-message"),
        Version.V2_1,
        SUPPORTED,
        "lasthop",
    )


def test_an_invalid_push_is_refused_by_name_and_in_its_version() -> None:
    found = refused(b'<!DOCTYPE pap SYSTEM "pap_1.0.dtd"><pap><push-message push-id="7"/></pap>')
    assert isinstance(found.message, PushResponse)
    assert (found.message.push_id, found.message.result.code) == ("7", 2000)
    assert found.message.reply_time == 0
    assert found.version is Version.V1_0


def test_an_unknown_version_is_answered_in_one_that_both_speak() -> None:
    found = refused(
        b'<!DOCTYPE pap SYSTEM "pap_4.0.dtd" [<?wap-pap-ver supported-versions="4.0,2.*"?>]><pap/>'
    )
    assert isinstance(found.message, BadMessageResponse)
    assert (found.message.code, found.version) == (3002, Version.V2_2)


def test_a_push_id_that_cannot_be_repeated_is_not() -> None:
    data = b'<pap><push-message push-id="%s"/></pap>' % (b"x" * 600)
    assert isinstance(refused(data).message, BadMessageResponse)
    assert isinstance(refused(data.replace(b"x", b"")).message, BadMessageResponse)


@pytest.mark.parametrize(
    "error, code",
    [
        (TooLarge("too large", limit=1), 2000),
        (Conflict("this push-id was used before"), 2007),
        (QuotaExceeded("enough", retry_after=1), 4001),
        (StoreFull("the path of our disk"), 3000),
    ],
)
def test_other_errors_have_their_codes(error: LasthopError, code: int) -> None:
    message = refusal(error).message
    assert isinstance(message, BadMessageResponse)
    assert message.code == code


def test_our_own_faults_are_not_explained_to_strangers() -> None:
    found = refusal(StoreFull("/var/secret")).message
    assert found == BadMessageResponse(3000, "internal error")


@pytest.mark.parametrize(
    "name, tag, operation",
    [
        ("push-message", "push-response", CodeUse.PUSH),
        ("cancel-message", "cancel-response", CodeUse.CANCEL),
        ("statusquery-message", "statusquery-response", CodeUse.STATUS),
        ("ccq-message", "ccq-response", CodeUse.CAPABILITIES),
        ("resultnotification-message", "resultnotification-response", CodeUse.OUTCOME_ANSWER),
        ("push-response-accepted", "badmessage-response", CodeUse.BAD_MESSAGE),
        ("badmessage-response", "badmessage-response", CodeUse.BAD_MESSAGE),
    ],
)
def test_a_request_is_refused_in_its_own_response(name: str, tag: str, operation: CodeUse) -> None:
    request = Document(EXAMPLES[name], Version.V2_0)
    for error in (
        Forbidden("not yours"),
        QuotaExceeded("enough", retry_after=1),
        StoreFull("x"),
        PapInvalid("wrong"),
    ):
        answer = refusal(error, request=request, received=b"<pap>")
        assert BY_TYPE[type(answer.message)].tag == tag
        assert answer.version is Version.V2_0
        assert operation in CODES[error.pap_code].operations
        data = write_document(answer)
        assert read_document(data).message == answer.message
        assert f'code="{error.pap_code}"'.encode() in data


def every_error() -> list[LasthopError]:
    made: list[LasthopError] = []
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, LasthopError):
            error = kind.__new__(kind)
            LasthopError.__init__(error, "what is wrong")
            if isinstance(error, PapError):
                error.push_id, error.version, error.supported = None, "1.0", ()
            made.append(error)
    return made


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_every_error_has_a_valid_answer(error: LasthopError) -> None:
    unread = read_document(write_document(refusal(error))).message
    assert isinstance(unread, BadMessageResponse)
    assert unread.code == error.pap_code
    request = Document(EXAMPLES["push-message"])
    read = read_document(write_document(refusal(error, request=request))).message
    assert isinstance(read, PushResponse)
    assert CodeUse.PUSH in CODES[read.result.code].operations


@given(st.text(), st.binary(max_size=1000), st.none() | st.integers(0, 10**15))
def test_an_answer_can_always_be_written(detail: str, received: bytes, now: int | None) -> None:
    for error in (PapMalformed(detail, line=1), PapInvalid(detail, push_id="7", what=detail)):
        document = refusal(error, received=received, now=now)
        again = read_document(write_document(document)).message
        if isinstance(again, BadMessageResponse):
            assert len(again.fragment or "") <= MAX_FRAGMENT
        else:
            assert isinstance(again, PushResponse)
            assert isinstance(again.result, ResponseResult)
