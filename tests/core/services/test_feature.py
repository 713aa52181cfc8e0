"""What devices arrange through the gateway: answers, gathers, and services."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.core.services.feature import MOST_ASKED
from lasthop.core.services.providers import LARGEST_ANSWER, MOST_FOUND, MOST_OFFERED
from lasthop.errors import InvalidRequest, NotFound, TooLarge
from lasthop.message import first_key_at
from lasthop.wire.hop.frames import ASKED_TYPE, ERROR_TYPE, Headers, MessageFrame, Operation
from lasthop.wire.hop.services import (
    MAX_INTERFACE,
    MAX_OPERATIONS,
    Offers,
    Question,
    Service,
    ServiceOperation,
    decode_offers,
    decode_question,
    decode_service,
    encode,
)
from tests.core.rig import APP, START, Rig, to

KEY = first_key_at(START)
PRICING = Service("pricing", about="What things cost", operations=(ServiceOperation("price"),))


def says(
    rig: Rig, channel: int, operation: int, body: bytes = b"", *, key: int = KEY, **headers: Any
) -> MessageFrame | None:
    """Let a device say something; what the gateway answered, if anything."""
    number = rig.gateway.contacts.session(channel).lane.inbound.received  # type: ignore[union-attr]
    before = len(rig.messages(channel))
    headers = {"operation": operation, **headers}
    rig.hear(channel, MessageFrame(number, key, None, Headers(**headers), body))
    answers = rig.messages(channel)[before:]
    return answers[-1] if answers else None


def code(answer: MessageFrame | None) -> str:
    assert answer is not None
    assert answer.headers is not None
    assert answer.headers.content_type == ERROR_TYPE
    return str(msgspec.json.decode(answer.body)["code"])


def offer(rig: Rig, channel: int, service: Service = PRICING) -> MessageFrame | None:
    return says(rig, channel, Operation.OFFER, encode(service))


def find(rig: Rig, channel: int, **question: str) -> Offers:
    answer = says(rig, channel, Operation.FIND, encode(Question(**question)), reply_within=1000)
    assert answer is not None
    assert answer.headers is not None
    assert (answer.headers.in_reply_to, answer.headers.answer) == (KEY, True)
    return decode_offers(answer.body)


class TestAnswers:
    def test_to_a_device_are_marked_so_that_it_can_let_them_go(self, rig: Rig) -> None:
        asker, phone = rig.connect("asker"), rig.connect()
        request = Headers(to="device:phone", reply_within=1000)
        rig.hear(asker, MessageFrame(0, 123, None, request, b"?"))
        (question,) = rig.messages(phone)
        reply: dict[str, Any] = {
            "to": "device:asker",
            "in_reply_to": question.key,
            "correlation": 123,
        }
        says(rig, phone, Operation.REPLY, b"!", **reply)
        (answer,) = rig.messages(asker)
        assert answer.headers is not None
        assert (answer.headers.in_reply_to, answer.headers.answer) == (123, True)

    def test_survive_a_crash_with_their_mark(self, rig: Rig) -> None:
        asker, phone = rig.connect("asker"), rig.connect()
        rig.hear(
            asker, MessageFrame(0, 123, None, Headers(to="device:phone", reply_within=1000), b"?")
        )
        (question,) = rig.messages(phone)
        rig.lose(asker)
        reply: dict[str, Any] = {
            "to": "device:asker",
            "in_reply_to": question.key,
            "correlation": 123,
        }
        says(rig, phone, Operation.REPLY, b"!", **reply)
        rig.crash()
        (answer,) = rig.messages(rig.resume("asker"))
        assert answer.headers is not None
        assert answer.headers.answer

    def test_to_a_publisher_are_not(self, rig: Rig) -> None:
        phone = rig.connect()
        (key,) = rig.publish(to("phone", reply_before=rig.now + SECOND))
        rig.run()
        says(rig, phone, Operation.REPLY, b"!", in_reply_to=key)
        reply = rig.row(key).reply
        assert not rig.store.messages([reply])[reply].answer

    def test_that_come_too_late_are_refused(self, rig: Rig) -> None:
        phone = rig.connect()
        (key,) = rig.publish(to("phone", reply_before=rig.now + SECOND))
        rig.run()
        rig.pass_time(2 * SECOND)
        late = says(rig, phone, Operation.REPLY, b"!", in_reply_to=key, deliver_within=0)
        assert code(late) == "expired"
        assert rig.row(key).reply == 0


class TestGathering:
    def gather(self, rig: Rig, channel: int, target: str) -> MessageFrame | None:
        return says(rig, channel, 0, b"?", to=target, reply_within=1000, gather=True)

    def names(self, answer: MessageFrame | None) -> list[str]:
        assert answer is not None
        assert answer.headers is not None
        headers = answer.headers
        told = (headers.content_type, headers.in_reply_to, headers.answer, headers.source)
        assert told == (ASKED_TYPE, KEY, True, None)
        found: list[str] = msgspec.json.decode(answer.body)
        return found

    def test_says_who_was_asked_but_for_who_asks(self, rig: Rig) -> None:
        asker = rig.connect("asker")
        phone = rig.connect()
        rig.connect("tablet")
        for name in ("asker", "phone", "tablet"):
            rig.gateway.topics.subscribe(APP, name, "news", rig.now)
        rig.gateway.topics.subscribe(APP, "phone", "#", rig.now)
        answer = says(rig, asker, 0, b"?", to="topic:news", reply_within=1000, gather=True)
        assert self.names(answer) == ["phone", "tablet"]
        (question,) = rig.messages(phone)
        assert question.headers is not None
        assert question.headers.correlation == KEY

    def test_asks_everyone_of_the_app(self, rig: Rig) -> None:
        asker = rig.connect("asker")
        rig.connect()
        assert self.names(self.gather(rig, asker, "app:")) == ["phone"]

    def test_asks_too_many_only_if_they_are_counted(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert MOST_ASKED >= 1000
        monkeypatch.setattr("lasthop.core.services.feature.MOST_ASKED", 1)
        asker = rig.connect("asker")
        rig.connect()
        assert code(self.gather(rig, asker, "app:")) == "too_large"
        assert rig.states()[State.DELIVERED] == 0

    @pytest.mark.parametrize("target", ["service:pricing", "queue:jobs"])
    def test_does_not_ask_services_and_queues(self, rig: Rig, target: str) -> None:
        asker = rig.connect("asker")
        assert code(self.gather(rig, asker, target)) == "invalid_request"

    def test_without_a_wish_for_answers_is_a_message(self, rig: Rig) -> None:
        asker, phone = rig.connect("asker"), rig.connect()
        assert says(rig, asker, 0, b"?", to="device:phone", gather=True) is None
        assert rig.bodies(phone) == [b"?"]


class TestServices:
    def test_are_found_by_name_version_and_operation(self, rig: Rig) -> None:
        phone, asker = rig.connect(), rig.connect("asker")
        newer = Service("pricing", "2", operations=(ServiceOperation("discount", gives="number"),))
        offer(rig, phone)
        offer(rig, rig.connect("tablet"), newer)
        offer(rig, phone, Service("clock"))
        titles = [found.service.title for found in find(rig, asker).offers]
        assert titles == ["clock@1", "pricing@1", "pricing@2"]
        assert [o.service for o in find(rig, asker, name="pricing").offers] == [PRICING, newer]
        assert [o.service for o in find(rig, asker, name="pricing@2").offers] == [newer]
        assert [o.service for o in find(rig, asker, operation="price").offers] == [PRICING]
        assert find(rig, asker, name="nothing") == Offers()

    def test_say_who_offers_them_those_in_contact_first(self, rig: Rig) -> None:
        asker = rig.connect("asker")
        phone = rig.connect()
        offer(rig, phone)
        offer(rig, rig.connect("tablet"))
        rig.lose(phone)
        (found,) = find(rig, asker, name="pricing").offers
        assert (found.providers, found.in_contact) == (2, 1)
        assert found.devices == ("tablet", "phone")

    def test_stay_in_their_app(self, rig: Rig) -> None:
        offer(rig, rig.connect())
        assert rig.gateway.services.book.find("another", Question()) == Offers()

    def test_outlive_a_crash_and_go_with_their_device(self, rig: Rig) -> None:
        offer(rig, rig.connect())
        rig.crash()
        asker = rig.connect("asker")
        (found,) = find(rig, asker, name="pricing").offers
        assert (found.providers, found.in_contact) == (1, 0)
        rig.resume()
        (found,) = find(rig, asker, name="pricing").offers
        assert found.in_contact == 1
        rig.gateway.admin.remove(APP, "phone", rig.now)
        assert find(rig, asker) == Offers()

    def test_are_withdrawn(self, rig: Rig) -> None:
        phone = rig.connect()
        offer(rig, phone)
        assert says(rig, phone, Operation.WITHDRAW, b"pricing") is None
        assert says(rig, phone, Operation.WITHDRAW, b"pricing") is None
        assert find(rig, phone) == Offers()
        rig.crash()
        assert find(rig, rig.resume()) == Offers()

    def test_are_told_in_the_log(self, rig: Rig) -> None:
        phone = rig.connect()
        offer(rig, phone)
        offer(rig, phone)
        says(rig, phone, Operation.WITHDRAW, b"pricing")
        reasons = [e["reason"] for e in rig.events() if e["kind"] == "context_changed"]
        assert reasons == ["it offers pricing@1", "it offers pricing no longer"]

    def test_a_newer_version_takes_the_place_of_the_older_one_of_a_device(self, rig: Rig) -> None:
        phone = rig.connect()
        offer(rig, phone)
        offer(rig, phone, Service("pricing", "2"))
        assert [found.service.title for found in find(rig, phone).offers] == ["pricing@2"]

    def test_of_one_version_have_one_interface(self, rig: Rig) -> None:
        phone, tablet = rig.connect(), rig.connect("tablet")
        other = Service("pricing", operations=(ServiceOperation("haggle"),))
        offer(rig, phone)
        offer(rig, phone, other)  # Nobody else offers it: this is what it is now.
        assert code(offer(rig, tablet)) == "conflict"
        assert offer(rig, tablet, msgspec.structs.replace(other, about="the same")) is None

    def test_of_one_device_are_counted(self, rig: Rig) -> None:
        phone = rig.connect()
        for n in range(MOST_OFFERED):
            assert offer(rig, phone, Service(f"s{n}")) is None
        assert code(offer(rig, phone, Service("more"))) == "quota_exceeded"
        assert offer(rig, phone, Service("s0", "2")) is None

    def test_more_than_an_answer_holds_are_not_all_told(self, rig: Rig) -> None:
        book = rig.gateway.services.book
        for number in range(MOST_FOUND // MOST_OFFERED + 1):
            rig.connect(f"d{number}")
            device = rig.gateway.registry.named(APP, f"d{number}")
            for n in range(MOST_OFFERED):
                book.offer(device, Service(f"s{number}.{n}"), here=True)
        found = book.find(APP, Question())
        assert (len(found.offers), found.more) == (MOST_FOUND, True)
        assert len(encode(found)) < LARGEST_ANSWER

    def test_large_interfaces_fill_an_answer_sooner(self, rig: Rig) -> None:
        book = rig.gateway.services.book
        rig.connect()
        wide = tuple(ServiceOperation(f"o{n}", about="x" * 900) for n in range(60))
        for n in range(MOST_OFFERED):
            service = Service(f"s{n}", operations=wide)
            book.offer(rig.gateway.registry.named(APP, "phone"), service, here=True)
        found = book.find(APP, Question())
        assert found.more
        assert len(encode(found)) < LARGEST_ANSWER


class TestRequestsForServices:
    def test_go_round_those_in_contact(self, rig: Rig) -> None:
        channels = [rig.connect(name) for name in ("a", "b", "c")]
        for channel in channels:
            offer(rig, channel)
        rig.lose(channels[1])
        for _ in range(4):
            rig.publish(to("service:pricing"))
        rig.run()
        assert [len(rig.messages(channel)) for channel in channels] == [2, 0, 2]

    def test_wait_for_somebody_when_nobody_is_there(self, rig: Rig) -> None:
        channel = rig.connect()
        offer(rig, channel)
        rig.lose(channel)
        (key,) = rig.publish(to("service:pricing@1"))
        rig.run()
        assert rig.store.messages([key])[key].target.name == "phone"
        (frame,) = rig.messages(rig.resume())
        assert frame.headers is not None
        assert frame.headers.extra == (("lasthop-service", "pricing"),)

    def test_come_from_devices_as_well(self, rig: Rig) -> None:
        phone, asker = rig.connect(), rig.connect("asker")
        offer(rig, phone)
        says(rig, asker, 0, b"?", to="service:pricing", reply_within=1000)
        assert rig.bodies(phone) == [b"?"]

    def test_for_what_nobody_offers_are_refused(self, rig: Rig) -> None:
        offer(rig, rig.connect())
        with pytest.raises(NotFound, match="nobody offers this service"):
            rig.publish(to("service:pricing@2"))
        assert code(says(rig, rig.connect("asker"), 0, to="service:nothing")) == "not_found"


class TestForms:
    @pytest.mark.parametrize(
        "body, told",
        [
            (b"{", "an interface must be a JSON object"),
            (b"[]", "an interface must be a JSON object"),
            (b'{"name": "two words"}', "the service of an interface must have up to 64"),
            (b'{"name": ""}', "the service of an interface must have up to 64"),
            (b'{"name": "x", "version": "@"}', "the version of an interface must have up to 64"),
            (b'{"name": "x", "operations": [{"name": "a b"}]}', "an operation must have up to 64"),
            (b'{"name": "x", "operations": [{"name": "a"}, {"name": "a"}]}', "comes twice"),
            (b'{"name": "x", "about": 7}', "an interface must be a JSON object"),
        ],
    )
    def test_an_interface_that_nobody_could_use_is_refused(self, body: bytes, told: str) -> None:
        with pytest.raises(InvalidRequest, match=told):
            decode_service(body)

    def test_an_interface_has_a_size(self) -> None:
        with pytest.raises(TooLarge, match="an interface is too large"):
            decode_service(b" " * (MAX_INTERFACE + 1))
        many = tuple(ServiceOperation(f"o{n}") for n in range(MAX_OPERATIONS + 1))
        with pytest.raises(TooLarge, match="too many operations"):
            decode_service(encode(Service("x", operations=many)))

    def test_a_question_that_makes_no_sense_is_refused(self) -> None:
        assert decode_question(b"") == Question()
        with pytest.raises(InvalidRequest, match="a question for services must be a JSON object"):
            decode_question(b"7")

    def test_a_device_is_told_what_is_wrong(self, rig: Rig) -> None:
        phone = rig.connect()
        assert code(says(rig, phone, Operation.OFFER, b"{")) == "invalid_request"
        assert code(says(rig, phone, Operation.FIND, b"{")) == "invalid_request"
