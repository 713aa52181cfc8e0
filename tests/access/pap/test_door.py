"""What initiators ask over HTTP, and what they are answered."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.access.pap import PapDoor
from lasthop.access.rest import RestSettings
from lasthop.clock import HOUR, MINUTE, SECOND
from lasthop.core.apps.credentials import Scope
from lasthop.core.quota import Rate
from lasthop.decision.constraints import QuietHours
from lasthop.decision.preferences import Preferences
from lasthop.message import DeliveryMethod, Quality, Reliability, Target, TargetKind
from lasthop.wire.pap.answers import AnswerVerdict, PapAnswer
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    CancelMessage,
    CancelResponse,
    CcqMessage,
    CcqResponse,
    Document,
    Priority,
    PushMessage,
    PushResponse,
    QualityOfService,
    ReplaceMethod,
    ResponseResult,
    ResultNotificationMessage,
    ResultNotificationResponse,
    StatusQueryMessage,
    StatusQueryResponse,
)
from lasthop.wire.pap.multipart import Entity
from lasthop.wire.pap.submission import PapSubmission, write_submission
from lasthop.wire.pap.uaprof import write_profile
from lasthop.wire.pap.versions import Version
from tests.access.live import START, LiveInMemory
from tests.access.pap.conftest import MakeDoor
from tests.access.pap.initiating import CONTENT, NOTIFY, Initiator, read_answer, user

ALICE, BOB = user("alice"), user("bob")


async def status(initiator: Initiator, push_id: str, *addresses: str) -> StatusQueryResponse:
    return await initiator.ask(StatusQueryMessage(push_id, addresses), StatusQueryResponse)


class TestPushing:
    async def test_an_accepted_push_is_durable_and_delivered(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        assert await initiator.push("1@pi", BOB) == 1001
        (row,) = live.store.all_deliveries()
        message = live.store.messages([row.message])[row.message]
        assert (message.body, message.content_type) == (b"hello", "text/plain")
        assert message.headers == (("X-Wap-Application-Id", "x-app:7"),)
        assert message.target == Target(TargetKind.USER, "bob")
        assert message.source == "publisher:anonymous"
        phone = live.connect("watch")
        assert [frame.body for frame in phone.messages()] == [b"hello"]

    async def test_its_quality_of_service_goes_with_it(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        quality = QualityOfService(
            priority=Priority.HIGH,
            method=DeliveryMethod.UNCONFIRMED,
            network="GSM",
            bearer="SMS",
            bearer_required=True,
        )
        before = START + HOUR
        await initiator.push("1", BOB, quality=quality, deliver_before=before)
        (row,) = live.store.all_deliveries()
        message = live.store.messages([row.message])[row.message]
        assert message.priority == 7
        assert message.reliability is Reliability.BEST_EFFORT
        assert message.method is DeliveryMethod.UNCONFIRMED
        assert message.quality == Quality("GSM", False, "SMS", True)
        assert message.deliver_before == before
        assert message.reply_before is None

    async def test_a_push_that_wants_an_answer_says_so_to_the_device(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        quality = QualityOfService(method=DeliveryMethod.CONFIRMED_WITH_RESPONSE)
        assert await initiator.push("1", BOB, quality=quality) == 1001
        (frame,) = live.connect("watch").messages()
        assert frame.headers is not None
        assert frame.headers.reply_within is not None

    async def test_the_application_may_stand_on_the_outer_message(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        content = Entity((("Content-Type", "text/plain"),), b"x")
        given = write_submission(
            PapSubmission(initiator_document(PushMessage("1", (BOB,))), content)
        )
        kind, body = given
        outer: dict[str, Any] = {"X-Wap-Application-Id": "x-app:9"}
        await initiator.post(kind, body, **outer)
        (row,) = live.store.all_deliveries()
        message = live.store.messages([row.message])[row.message]
        assert message.headers == (("X-Wap-Application-Id", "x-app:9"),)

    async def test_progress_notes_are_given_on_request(self, initiator: Initiator) -> None:
        push = PushMessage("1", (BOB,), progress_notes=True)
        answer = (await initiator.send(push, CONTENT)).document.message
        assert isinstance(answer, PushResponse)
        assert [note.stage for note in answer.progress] == ["received", "accepted"]
        assert answer.reply_time == START
        assert answer.sender_name == "lasthop"

    async def test_many_addresses_are_one_message(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        assert await initiator.push("1", ALICE, BOB) == 1001
        assert live.store.counts().messages == 1
        assert len(list(live.store.all_deliveries())) == 3

    async def test_a_push_id_is_used_once(self, initiator: Initiator) -> None:
        assert await initiator.push("1", BOB) == 1001
        assert await initiator.push("1", BOB) == 2007

    async def test_the_same_push_id_of_another_initiator_is_another_push(
        self, initiator: Initiator, pap: PapDoor, live: LiveInMemory
    ) -> None:
        live.gateway.admin.admit("secret", "default", "other", {Scope.PUBLISH}, START)
        other = Initiator(pap, token="secret")
        assert await initiator.push("1", BOB) == 1001
        assert await other.push("1", BOB) == 1001
        assert (await status(other, "1")).results[0].state == "pending"

    @pytest.mark.conformance("PPG-GEN-S-001")
    @pytest.mark.parametrize(
        "address, code",
        [
            (user("nobody"), 2003),
            ("WAPPUSH=+1999/TYPE=PLMN@x", 2003),
            ("WAPPUSH=1/TYPE=TELEX@x", 2002),
            ("alice@example.com", 2002),
        ],
    )
    async def test_a_push_to_nobody_is_rejected(
        self, initiator: Initiator, live: LiveInMemory, address: str, code: int
    ) -> None:
        assert await initiator.push("1", address) == code
        assert live.store.counts().messages == 0
        # The push-id was not used up.
        assert await initiator.push("1", BOB) == 1001

    async def test_a_push_that_came_too_late_is_rejected(self, initiator: Initiator) -> None:
        assert await initiator.push("1", BOB, deliver_before=START - SECOND) == 2000

    async def test_a_push_that_its_client_can_never_have_is_rejected(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        always = Preferences(quiet=(QuietHours("UTC", start=0, end=1440),))
        live.gateway.preferences.prefer("default", "watch", always, START)
        push = PushMessage("1", (BOB,), deliver_before=START + MINUTE)
        answer = (await initiator.send(push, CONTENT)).document.message
        assert isinstance(answer, PushResponse)
        assert answer.result.code == 3003
        assert "quiet hours 00:00-24:00 UTC" in (answer.result.desc or "")
        assert live.store.counts().messages == 0

    async def test_too_many_headers_are_rejected(self, initiator: Initiator) -> None:
        content = Entity(tuple((f"X-{n}", "x") for n in range(33)), b"")
        assert await initiator.push("1", BOB, content=content) == 2000

    @pytest.mark.parametrize("version", list(Version))
    async def test_every_version_is_answered_in_itself(
        self, initiator: Initiator, version: Version
    ) -> None:
        initiator.version = version
        answer = await initiator.send(PushMessage("1", (BOB,)), CONTENT)
        assert answer.document.version is version
        cancelled = await initiator.send(CancelMessage("1"))
        assert cancelled.document.version is version
        asked = await initiator.send(StatusQueryMessage("1"))
        assert asked.document.version is version

    async def test_a_full_disk_is_a_service_that_is_unavailable(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        live.full = True
        assert await initiator.push("1", BOB) == 4001
        live.full = False
        assert await initiator.push("1", BOB) == 1001

    async def test_a_push_stays_in_the_trace_of_its_request(
        self, live: LiveInMemory, make_door: MakeDoor
    ) -> None:
        live.register("watch", user="bob")
        context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        own = Entity((("Traceparent", context[:-1] + "0"),), b"hello")
        full = Entity(tuple((f"X-{n}", "v") for n in range(32)), b"hello")
        for traced, content, count in (
            (True, CONTENT, 2),
            (False, CONTENT, 1),
            (True, own, 1),
            (True, full, 32),
        ):
            initiator = Initiator(make_door(traced=traced))
            given = PapSubmission(
                initiator_document(PushMessage(f"{traced}{count}", (BOB,))), content
            )
            await initiator.post(*write_submission(given), traceparent=context)
            (message,) = live.store.messages(
                [max(r.message for r in live.store.all_deliveries())]
            ).values()
            assert len(message.headers) == count
            assert (("traceparent", context) in message.headers) is (traced and content is CONTENT)

    async def test_a_quota_is_kept(self, live: LiveInMemory, make_door: MakeDoor) -> None:
        live.register("watch", user="bob")
        strict = make_door(RestSettings(open_house=True, messages=Rate(1, 2)))
        initiator = Initiator(strict)
        assert await initiator.push("1", BOB, BOB) == 1001
        given = PapSubmission(initiator_document(PushMessage("2", (BOB,))), CONTENT)
        answer = await initiator.post(*write_submission(given))
        message = read_answer(answer).document.message
        assert isinstance(message, PushResponse)
        assert message.result.code == 4001
        assert answer.headers["retry-after"] == "1"
        live.time += 2 * SECOND
        assert await initiator.push("2", BOB) == 1001


def initiator_document(message: PushMessage) -> Document:
    return Document(message, Version.V2_1)


class TestReplacing:
    @pytest.mark.conformance("PPG-GEN-S-020")
    async def test_a_push_takes_the_place_of_another(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        await initiator.push("1", BOB)
        assert await initiator.push("2", BOB, replace_push_id="1") == 1001
        assert (await status(initiator, "1")).results[0].state == "cancelled"
        assert len(live.connect("watch").messages()) == 1

    async def test_what_is_not_pending_cannot_be_replaced_for_those_only(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        await initiator.push("1", BOB)
        live.connect("watch").acknowledge(1)
        replacing: dict[str, Any] = {
            "replace_push_id": "1",
            "replace_method": ReplaceMethod.PENDING_ONLY,
        }
        assert await initiator.push("2", BOB, **replacing) == 3003

    async def test_an_unknown_push_cannot_be_replaced(self, initiator: Initiator) -> None:
        assert await initiator.push("2", BOB, replace_push_id="1") == 2004


class TestCancelling:
    @pytest.mark.conformance("PPG-GEN-S-016", "PPG-GEN-S-017")
    async def test_it_succeeds_while_the_push_is_pending(self, initiator: Initiator) -> None:
        await initiator.push("1", ALICE, BOB)
        answer = await initiator.ask(CancelMessage("1"), CancelResponse)
        (result,) = answer.results
        assert (result.code, result.addresses) == (1000, (ALICE, BOB))

    @pytest.mark.conformance("PPG-GEN-S-017")
    async def test_it_is_refused_when_the_push_has_left_or_is_over(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        await initiator.push("1", ALICE, BOB)
        watch = live.connect("watch")
        answer = await initiator.ask(CancelMessage("1"), CancelResponse)
        assert [(r.code, r.addresses) for r in answer.results] == [(1000, (ALICE,)), (2008, (BOB,))]
        watch.acknowledge(1)
        answer = await initiator.ask(CancelMessage("1", (BOB,)), CancelResponse)
        assert answer.results[0].code == 2008

    @pytest.mark.parametrize("addresses", [(), (BOB,)])
    async def test_an_unknown_push_is_not_found(
        self, initiator: Initiator, addresses: tuple[str, ...]
    ) -> None:
        answer = await initiator.ask(CancelMessage("9", addresses), CancelResponse)
        (result,) = answer.results
        assert (result.code, result.addresses) == (2004, addresses)

    async def test_an_address_that_is_not_of_the_push_is_not_found(
        self, initiator: Initiator
    ) -> None:
        await initiator.push("1", BOB)
        answer = await initiator.ask(CancelMessage("1", (ALICE,)), CancelResponse)
        assert answer.results[0].code == 2003


@pytest.mark.conformance("PPG-GEN-S-015")
class TestStatus:
    async def test_addresses_of_one_outcome_are_listed_together(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        spelled = BOB.lower()
        await initiator.push("1", ALICE, BOB, spelled, user("nobody"))
        live.connect("watch").acknowledge(1)
        results = (await status(initiator, "1")).results
        found = [(r.state, r.code, r.addresses) for r in results]
        assert found == [
            ("pending", 1000, (ALICE,)),
            ("delivered", 1000, (BOB, spelled)),
            ("undeliverable", 2003, (user("nobody"),)),
        ]
        assert results[1].quality is not None
        assert results[1].quality.method is DeliveryMethod.CONFIRMED

    async def test_one_address_is_asked_for_alone(self, initiator: Initiator) -> None:
        await initiator.push("1", ALICE, BOB)
        answer = await status(initiator, "1", BOB, user("else"))
        assert [(r.state, r.code, r.addresses) for r in answer.results] == [
            ("pending", 1000, (BOB,)),
            ("unknown", 2003, (user("else"),)),
        ]

    async def test_another_spelling_is_the_same_address(self, initiator: Initiator) -> None:
        await initiator.push("1", ALICE, BOB)
        spelled = "/wappush=bob/type=user/@PPG.example.com"
        (result,) = (await status(initiator, "1", spelled)).results
        assert (result.state, result.addresses) == ("pending", (spelled,))
        answer = await initiator.ask(CancelMessage("1", (spelled,)), CancelResponse)
        assert [(r.code, r.addresses) for r in answer.results] == [(1000, (spelled,))]
        (result,) = (await status(initiator, "1", BOB)).results
        assert (result.state, result.addresses) == ("cancelled", (BOB,))

    async def test_what_is_over_is_still_known(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        await initiator.push("1", BOB, deliver_before=START + MINUTE)
        live.pass_time(61)
        (result,) = (await status(initiator, "1")).results
        assert (result.state, result.code, result.event_time) == ("expired", 4000, live.time)

    async def test_a_push_that_was_forgotten_is_no_longer_possible_to_tell(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        await initiator.push("1", BOB)
        live.connect("watch").acknowledge(1)
        live.store.retire(messages_before=START + HOUR, keys_before=0)
        (result,) = (await status(initiator, "1")).results
        assert (result.state, result.code, result.addresses) == ("unknown", 3003, ())
        answer = await initiator.ask(CancelMessage("1"), CancelResponse)
        assert answer.results[0].code == 2008
        assert await initiator.push("1", BOB) == 2007

    async def test_an_unknown_push_is_unknown(self, initiator: Initiator) -> None:
        (result,) = (await status(initiator, "9", BOB)).results
        assert (result.state, result.code, result.addresses) == ("unknown", 2004, (BOB,))


class TestCapabilities:
    async def test_a_profile_comes_along(self, initiator: Initiator) -> None:
        answer = await initiator.send(CcqMessage(user("phone"), "q1"))
        message = answer.document.message
        assert isinstance(message, CcqResponse)
        assert (message.code, message.query_id, message.address) == (1000, "q1", user("phone"))
        assert answer.content is not None
        assert b"<prf:Model>A1</prf:Model>" in answer.content.body

    async def test_of_several_devices_what_all_can_do(self, initiator: Initiator) -> None:
        answer = await initiator.send(CcqMessage(ALICE))
        assert answer.content is not None
        assert b"<prf:OSName>x</prf:OSName>" in answer.content.body
        assert b"Model" not in answer.content.body

    @pytest.mark.parametrize("address, code", [(BOB, 3008), (user("nobody"), 2003), ("x", 2002)])
    async def test_where_nothing_is_known_it_is_said(
        self, initiator: Initiator, address: str, code: int
    ) -> None:
        answer = await initiator.ask(CcqMessage(address, "q"), CcqResponse)
        assert (answer.code, answer.address, answer.query_id) == (code, address, "q")


class TestAssuming:
    """The third entity of a push: what the initiator takes its clients for."""

    async def push(self, initiator: Initiator, push_id: str, to: str, **assumed: str) -> int:
        profile = Entity((("Content-Type", "application/xml"),), write_profile(assumed))
        given = PapSubmission(initiator_document(PushMessage(push_id, (to,))), CONTENT, profile)
        answer = await initiator.post(*write_submission(given))
        message = read_answer(answer).document.message
        assert isinstance(message, PushResponse)
        return message.result.code

    async def test_a_client_that_is_otherwise_does_not_get_it(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        assert await self.push(initiator, "1", ALICE, Model="C3") == 2005
        assert live.store.counts().messages == 0
        assert await self.push(initiator, "1", BOB, Model="C3") == 1001

    async def test_of_several_devices_only_those_that_fit(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        assert await self.push(initiator, "1", ALICE, Model="B2", OSName="x") == 1001
        assert [row.device for row in live.store.all_deliveries()] == [2]
        assert (await status(initiator, "1")).results[0].addresses == (ALICE,)

    async def test_a_profile_that_cannot_be_read_is_a_bad_request(
        self, initiator: Initiator
    ) -> None:
        profile = Entity((("Content-Type", "application/xml"),), b"<rdf")
        given = PapSubmission(initiator_document(PushMessage("1", (BOB,))), CONTENT, profile)
        answer = await initiator.post(*write_submission(given))
        message = read_answer(answer).document.message
        assert isinstance(message, PushResponse)
        assert message.result.code == 2000


class TestNotifying:
    @pytest.mark.conformance("PPG-GEN-S-014")
    async def test_the_outcome_is_told_where_the_initiator_wants_it(
        self, initiator: Initiator, live: LiveInMemory
    ) -> None:
        await initiator.push("1", BOB, notify_to=NOTIFY)
        live.connect("watch").acknowledge(1)
        (notify,) = live.notifies
        assert notify.url == NOTIFY
        told = notify.document.message
        assert isinstance(told, ResultNotificationMessage)
        assert (told.push_id, told.address, told.state) == ("1", BOB, "delivered")
        assert notify.document.version is Version.V2_1
        answer = PapAnswer(AnswerVerdict.HEARD)
        live.gateway.notifications.answered(notify.message, notify.place, answer, live.time)

    @pytest.mark.parametrize(
        "url, code",
        [
            ("ftp://pi.example.com/", 2000),
            ("pi.example.com", 2000),
            ("http://", 2000),
            ("http://pi.example.com:x/", 2000),
            ("http://[::1/", 2000),
            ("http://user:secret@pi.example.com/", 2000),
            ("http://pi.example.com/a b", 2000),
            ("http://pi.example.com/" + "a" * 2000, 2000),
            ("http://127.0.0.1/", 2001),
            ("http://10.1.2.3/", 2001),
            ("http://169.254.169.254/latest", 2001),
            ("http://[::1]/", 2001),
            ("http://[::ffff:127.0.0.1]/", 2001),
            ("http://0.0.0.0/", 2001),
            ("http://224.0.0.1/", 2001),
        ],
    )
    async def test_a_place_where_we_will_not_go_is_refused(
        self, initiator: Initiator, url: str, code: int
    ) -> None:
        assert await initiator.push("1", BOB, notify_to=url) == code

    async def test_a_list_of_hosts_is_kept_to(
        self, make_door: MakeDoor, live: LiveInMemory
    ) -> None:
        live.register("watch", user="bob")
        initiator = Initiator(make_door(notify_hosts=("pi.example.com", "*.example.org")))
        for number, (host, code) in enumerate(
            [
                ("pi.example.com", 1001),
                ("PI.Example.Com", 1001),
                ("a.example.org", 1001),
                ("example.org", 2001),
                ("evil.com", 2001),
            ]
        ):
            assert await initiator.push(str(number), BOB, notify_to=f"https://{host}/") == code

    async def test_private_places_can_be_allowed(
        self, make_door: MakeDoor, live: LiveInMemory
    ) -> None:
        live.register("watch", user="bob")
        initiator = Initiator(make_door(notify_private=True))
        assert await initiator.push("1", BOB, notify_to="http://127.0.0.1:9/") == 1001


class TestCallers:
    async def test_tokens_come_as_bearer_or_basic(self, live: LiveInMemory, pap: PapDoor) -> None:
        live.register("watch", user="bob")
        live.gateway.admin.admit("secret", "default", "shop", {Scope.PUBLISH}, START)
        far: dict[str, Any] = {"peer": "203.0.113.5"}
        bearer = Initiator(pap, token="secret", **far)
        basic = Initiator(pap, basic=("shop", "secret"), **far)
        assert await bearer.push("1", BOB) == 1001
        assert await basic.push("1", BOB) == 2007

    async def test_a_push_is_there_for_its_own_initiator_only(
        self, live: LiveInMemory, pap: PapDoor
    ) -> None:
        live.register("watch", user="bob")
        for name in "shop", "other":
            live.gateway.admin.admit(name, "default", name, {Scope.PUBLISH}, START)
        shop, other = Initiator(pap, token="shop"), Initiator(pap, token="other")
        assert await shop.push("1", BOB) == 1001
        assert (await status(other, "1")).results[0].code == 2004
        assert (await other.ask(CancelMessage("1"), CancelResponse)).results[0].code == 2004
        assert await other.push("2", BOB, replace_push_id="1") == 2004
        assert await other.push("1", BOB) == 1001
        assert [r.state for r in (await status(shop, "1")).results] == ["pending"]

    @pytest.mark.parametrize("token", [None, "wrong"])
    async def test_who_has_none_is_turned_away(
        self, live: LiveInMemory, pap: PapDoor, token: str | None
    ) -> None:
        stranger = Initiator(pap, token=token, peer="203.0.113.5")
        answer = await stranger.post("application/xml", b"")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
        message = read_answer(answer).document.message
        assert isinstance(message, BadMessageResponse)
        assert message.code == 2001

    async def test_a_credential_without_the_right_is_forbidden(
        self, live: LiveInMemory, pap: PapDoor
    ) -> None:
        live.gateway.admin.admit("secret", "default", "ops", {Scope.DEVICES}, START)
        answer = await Initiator(pap, token="secret").post("application/xml", b"")
        assert answer.status_code == 403

    async def test_a_certificate_is_a_credential(self, live: LiveInMemory, pap: PapDoor) -> None:
        live.register("watch", user="bob")
        subject = "CN=shop,O=Example"
        far: dict[str, Any] = {"peer": "203.0.113.5", "certificate": subject}
        shop = Initiator(pap, **far)
        assert (await shop.post("application/xml", b"")).status_code == 401
        live.gateway.admin.certify(subject, "default", "shop", {Scope.PUBLISH}, START)
        assert await shop.push("1", BOB) == 1001
        # Nobody can type a certificate in.
        for token in (subject, f"certificate:{subject}"):
            stranger = Initiator(pap, token=token, peer="203.0.113.5")
            assert (await stranger.post("application/xml", b"")).status_code == 401
        live.gateway.admin.dismiss("default", "shop")
        assert (await shop.post("application/xml", b"")).status_code == 401

    async def test_a_certificate_says_nothing_for_another_sites_page(
        self, live: LiveInMemory, pap: PapDoor
    ) -> None:
        live.gateway.admin.certify("CN=shop", "default", "shop", {Scope.PUBLISH}, START)
        browser = Initiator(pap, peer="203.0.113.5", certificate="CN=shop")
        own = await browser.post("application/xml", b"", origin="http://localhost")
        assert own.status_code == 202
        forged = await browser.post("application/xml", b"", origin="https://page.example")
        assert forged.status_code == 401

    async def test_only_post_is_spoken(self, initiator: Initiator) -> None:
        answer = await initiator._http.get("/pap")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "message",
    [
        PushResponse("1", ResponseResult(1001)),
        ResultNotificationResponse(1000, "1", BOB),
        BadMessageResponse(2000),
    ],
)
async def test_a_response_is_no_request(initiator: Initiator, message: PushResponse) -> None:
    answer = await initiator.ask(message, BadMessageResponse)
    assert answer.code == 2000


async def test_a_notification_to_a_gateway_is_answered_in_kind(initiator: Initiator) -> None:
    message = ResultNotificationMessage("1", BOB, "delivered", 1000)  # type: ignore[arg-type]
    answer = await initiator.ask(message, ResultNotificationResponse)
    assert (answer.code, answer.push_id, answer.address) == (2000, "1", BOB)


async def test_a_fault_of_ours_is_an_internal_error(
    initiator: Initiator, live: LiveInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(live.gateway.pushes, "submit", broken)
    answer = (await initiator.send(PushMessage("1", (BOB,)), CONTENT)).document.message
    assert isinstance(answer, PushResponse)
    assert answer.result == ResponseResult(3000, "internal error")
