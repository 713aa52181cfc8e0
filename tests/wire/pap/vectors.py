"""Documents as they are on the wire, and the values that they stand for."""

from pathlib import Path

from lasthop.message import DeliveryMethod
from lasthop.wire.pap.codes import MessageState
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    CancelMessage,
    CancelResponse,
    CancelResult,
    CcqMessage,
    CcqResponse,
    PapMessage,
    Priority,
    ProgressNote,
    PushMessage,
    PushResponse,
    QualityOfService,
    ReplaceMethod,
    ResponseResult,
    ResultNotificationMessage,
    ResultNotificationResponse,
    StatusQueryMessage,
    StatusQueryResponse,
    StatusQueryResult,
)
from lasthop.wire.pap.times import parse_time

FOLDER = Path(__file__).parent / "examples"
PHONE = "WAPPUSH=+15551999073/TYPE=PLMN@ppg.example.net"
ALICE = "WAPPUSH=alice%40example.org/TYPE=USER@ppg.example.net"
SIP = "WAPPUSH=sip%3Aalice%40atlanta.example/TYPE=URI@ppg.example.net"
FIRST = "20240229-0001@pi.example.org"

CONFIRMED = QualityOfService(method=DeliveryMethod.CONFIRMED)

EXAMPLES: dict[str, PapMessage] = {
    "badmessage-response": BadMessageResponse(
        2000, "not well-formed XML at line 4", '<push-message push-id="x'
    ),
    "cancel-message": CancelMessage(FIRST, (PHONE,)),
    "cancel-response": CancelResponse(
        FIRST,
        (
            CancelResult(1000, "cancelled", (PHONE,)),
            CancelResult(2008, "already delivered", (ALICE,)),
        ),
    ),
    "ccq-message": CcqMessage(PHONE, "q-17@pi.example.org"),
    "ccq-response": CcqResponse(
        PHONE, 3008, "no capability data for this client", "q-17@pi.example.org"
    ),
    "push-message": PushMessage(
        FIRST,
        (PHONE, ALICE),
        deliver_before=parse_time("2024-02-29T20:00:00Z"),
        deliver_after=parse_time("2024-02-29T08:00:00Z"),
        source_reference="news-desk",
        notify_to="http://pi.example.org/notify",
        progress_notes=True,
        quality=QualityOfService(
            priority=Priority.HIGH,
            method=DeliveryMethod.CONFIRMED,
            network="GSM",
            network_required=True,
            bearer="SMS",
            bearer_required=True,
        ),
    ),
    "push-message-replace": PushMessage(
        "20240229-0002@pi.example.org",
        (PHONE,),
        replace_push_id=FIRST,
        replace_method=ReplaceMethod.PENDING_ONLY,
        quality=QualityOfService(method=DeliveryMethod.ONESHOT),
    ),
    "push-message-response-wanted": PushMessage(
        "20240229-0003@pi.example.org",
        (SIP,),
        notify_to="http://pi.example.org/notify",
        quality=QualityOfService(method=DeliveryMethod.CONFIRMED_WITH_RESPONSE),
    ),
    "push-response-accepted": PushResponse(
        FIRST,
        ResponseResult(1001, "accepted for processing"),
        (ProgressNote("validated", "control entity accepted", parse_time("2024-02-29T07:59:00Z")),),
        "http://ppg.example.net/pap",
        "ExamplePPG",
        parse_time("2024-02-29T07:59:01Z"),
    ),
    "push-response-rejected": PushResponse(
        FIRST,
        ResponseResult(2007, "push-id already used"),
        reply_time=parse_time("2024-02-29T08:10:00Z"),
    ),
    "resultnotification-aborted": ResultNotificationMessage(
        FIRST,
        ALICE,
        MessageState.ABORTED,
        5029,
        "client discarded the message: out of resources",
        event_time=parse_time("2024-02-29T08:00:09Z"),
    ),
    "resultnotification-message": ResultNotificationMessage(
        FIRST,
        PHONE,
        MessageState.DELIVERED,
        1000,
        "acknowledged by the client",
        "http://ppg.example.net/pap",
        "ExamplePPG",
        parse_time("2024-02-29T07:59:00Z"),
        parse_time("2024-02-29T08:00:07Z"),
        QualityOfService(method=DeliveryMethod.CONFIRMED, bearer="SMS", network="GSM"),
    ),
    "resultnotification-response": ResultNotificationResponse(1000, FIRST, PHONE, "OK"),
    "statusquery-message": StatusQueryMessage(FIRST),
    "statusquery-response": StatusQueryResponse(
        FIRST,
        (
            StatusQueryResult(
                MessageState.DELIVERED,
                1000,
                event_time=parse_time("2024-02-29T08:00:07Z"),
                addresses=(PHONE,),
                quality=CONFIRMED,
            ),
            StatusQueryResult(MessageState.PENDING, 1000, addresses=(ALICE,)),
        ),
    ),
}


def example(name: str) -> bytes:
    return (FOLDER / name).read_bytes()
