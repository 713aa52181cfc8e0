"""What a phone gets for a push: a text for people, or a datagram for its push client."""

from __future__ import annotations

import pytest

from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import Parcel
from lasthop.delivery.sms.composing import PUSH_PORTS, compose
from lasthop.errors import NotTransformable
from lasthop.wire.sms.alphabets import Alphabet
from tests.delivery.ota.test_unit import SI, W1


def parcel(body: bytes, media: str, *headers: tuple[str, str]) -> Parcel:
    route = Route(Variant.SMS, "+15551999")
    return Parcel(route=route, content_type=media, headers=headers, body=body)


@pytest.mark.conformance("PPG-GEN-S-018")
def test_a_service_indication_is_the_worked_example() -> None:
    sms = compose(parcel(SI, "text/vnd.wap.si"), reference=1)
    assert sms.ports == PUSH_PORTS
    assert sms.datagram.startswith(W1[:3])
    assert sms.datagram.endswith(W1[-60:])
    (segment,) = sms.segments()
    assert segment.user_data.hex().startswith("0605040b8423f00106")


def test_a_plain_text_is_for_people() -> None:
    sms = compose(parcel("Grüße".encode(), "text/plain; charset=utf-8"), reference=1)
    assert (sms.ports, sms.text, sms.to) == (None, "Grüße", "+15551999")
    (segment,) = sms.segments()
    assert segment.alphabet is Alphabet.GSM
    assert compose(parcel(b"\xe4", "text/plain; charset=iso-8859-1"), reference=1).text == "ä"


def test_a_plain_text_for_an_application_is_a_push() -> None:
    header = ("X-Wap-Application-Id", "x-wap-application:mms.ua")
    sms = compose(parcel(b"hello", "text/plain", header), reference=1)
    assert sms.ports == PUSH_PORTS
    assert sms.datagram.endswith(b"hello")


@pytest.mark.parametrize("media", ["text/plain; charset=nobody", "text", "text/plain"])
def test_a_text_that_cannot_be_read_is_refused(media: str) -> None:
    with pytest.raises(NotTransformable):
        compose(parcel(b"\xff\xfe\xfd", media), reference=1)
