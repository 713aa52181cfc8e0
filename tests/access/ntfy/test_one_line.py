"""`curl -d 'text' http://HOST/TOPIC`; about `access/ntfy/ntfy_door.py` and
`access/rest/reserved.py`."""

from __future__ import annotations

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from lasthop.access.rest import RestSettings, make_app
from lasthop.access.rest.reserved import RESERVED
from lasthop.clock import HOUR, SECOND
from lasthop.message import Message, Reliability, Target, TargetKind
from tests.access.knocking import detail, knock, refusal
from tests.access.live import START, LiveInMemory

CURL = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture(autouse=True)
def phone(live: LiveInMemory) -> None:
    live.register("phone", "news", "sensors.kitchen.heat", "grüße")


async def published(
    http: httpx.AsyncClient, live: LiveInMemory, path: str = "/news", **headers: str
) -> Message:
    named = {name.replace("_", "-").encode(): text.encode() for name, text in headers.items()}
    curl = {name.encode(): text.encode() for name, text in CURL.items()}
    answer = await http.post(path, content=b"text", headers=curl | named)
    assert answer.status_code == 200, answer.text
    (message,) = live.store.messages(r.message for r in live.store.all_deliveries()).values()
    told = answer.json()
    assert told["message_id"] == message.id
    assert (told["subscriptions"], told["kept"]) == (1, True)
    return message


@pytest.mark.parametrize("topic", ["news", "sensors.kitchen.heat", "grüße"])
@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_line_is_published_to_the_topic(
    http: httpx.AsyncClient, live: LiveInMemory, topic: str, method: str
) -> None:
    answer = await http.request(method, f"/{topic}", content=b"text", headers=CURL)
    assert answer.status_code == 200
    (row,) = live.store.all_deliveries()
    message = live.store.messages([row.message])[row.message]
    assert message.target == Target(TargetKind.TOPIC, topic)
    assert message.body == b"text"
    assert message.content_type == "text/plain; charset=utf-8"


async def test_options_are_headers_with_or_without_x(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    message = await published(
        http,
        live,
        Title="Grüße",
        X_Priority="high",
        Rank="1.5",
        TTL="2h",
        X_Delay="30s",
        Delay_Tolerance="10m",
        Replace_Key="k",
        Reliability="best-effort",
        Content_Type="text/markdown",
    )
    assert message.title == "Grüße"
    assert message.priority == 6
    assert message.rank == 1.5
    assert message.deliver_before == START + 2 * HOUR
    assert message.deliver_after == START + 30 * SECOND
    assert message.delay_tolerance == 600 * SECOND
    assert not message.immediate
    assert message.replace_key == "k"
    assert message.reliability is Reliability.BEST_EFFORT
    assert message.content_type == "text/markdown"


@pytest.mark.parametrize(
    "text, before",
    [
        ("90s", START + 90 * SECOND),
        ("3600", START + HOUR),
        ("1750000060", START + 60 * SECOND),
        ("2025-06-15T15:06:41Z", START + SECOND),
    ],
)
async def test_expires_is_a_time_or_a_duration(
    http: httpx.AsyncClient, live: LiveInMemory, text: str, before: int
) -> None:
    assert (await published(http, live, Expires=text)).deliver_before == before


@pytest.mark.parametrize(
    "headers, field",
    [
        ({"priority": "highest"}, "priority"),
        ({"x-priority": "12"}, "priority"),
        ({"rank": "best"}, "rank"),
        ({"delay": "later"}, "delay"),
        ({"delay-tolerance": "a bit"}, "delay_tolerance"),
        ({"expires": "never"}, "ttl"),
        ({"expires": "2025-99-99"}, "deliver_before"),
        ({"ttl": "1h", "expires": "2030-01-01T00:00:00Z"}, "ttl"),
        ({"reliability": "maybe"}, "reliability"),
        ({"content-type": "none"}, "content_type"),
        ({"title": "x" * 251}, "title"),
    ],
)
async def test_a_bad_option_is_named(
    http: httpx.AsyncClient, headers: dict[str, str], field: str
) -> None:
    answer = await http.post("/news", content=b"x", headers=CURL | headers)
    assert refusal(answer) == (400, "invalid_request", field)


async def test_the_answer_is_text_for_who_wants_text(http: httpx.AsyncClient) -> None:
    answer = await http.post("/news", content=b"x", headers={"accept": "text/plain"})
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(answer.text.strip()) == 32


@pytest.mark.parametrize("name", sorted(RESERVED))
async def test_paths_of_the_gateway_are_no_topics(http: httpx.AsyncClient, name: str) -> None:
    answer = await http.post(f"/{name}", content=b"x")
    assert refusal(answer) == (400, "invalid_request", "topic")
    assert "POST /v1/messages" in detail(answer)


class TestMisdirected:
    @pytest.mark.parametrize(
        "path, service",
        [
            ("/message?token=A8bsomething", "Gotify"),
            ("/notify", "Apprise"),
            ("/notify/key", "Apprise"),
            ("/1/messages.json", "Pushover"),
            ("/fcm/send", "Firebase Cloud Messaging"),
            ("/v1/projects/mine/messages:send", "Firebase Cloud Messaging"),
            ("/3/device/00fc13adff78", "the Apple Push Notification service"),
            ("/services/T0/B0/XX", "Slack"),
            ("/hooks/xyz", "Mattermost"),
            ("/api/webhooks/12/token", "Discord"),
            ("/api/v1/notifications", "OneSignal"),
            ("/_matrix/push/v1/notify", "Matrix"),
            ("/metrics/job/backup", "the Pushgateway of Prometheus"),
        ],
    )
    async def test_a_path_of_another_service_is_named(
        self, http: httpx.AsyncClient, live: LiveInMemory, path: str, service: str
    ) -> None:
        answer = await http.post(path, content=b"x")
        assert refusal(answer)[:2] == (404, "not_found")
        bare = path.partition("?")[0]
        assert detail(answer) == (
            f"{bare!r} is a path of {service}, which this gateway does not speak; nothing was"
            " published; POST /TOPIC and POST /v1/messages publish"
        )
        assert not list(live.store.all_deliveries())

    async def test_it_is_named_before_a_credential_is_missed(self, live: LiveInMemory) -> None:
        async with knock(make_app(live, RestSettings())) as http:
            assert refusal(await http.post("/message?token=A8b"))[:2] == (404, "not_found")
            assert refusal(await http.post("/news"))[:2] == (401, "unauthorized")

    async def test_a_topic_that_somebody_subscribed_to_is_a_topic(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        live.register("pad", "message")
        assert (await http.post("/message", content=b"x")).status_code == 200

    async def test_a_topic_that_is_advertised_is_a_topic(self, http: httpx.AsyncClient) -> None:
        assert (await http.put("/v1/topics/notify", json={"title": "Notes"})).is_success
        assert (await http.post("/notify", content=b"x")).status_code == 200


@pytest.mark.parametrize("path", ["/a b", "/a..b", "/.a", "/a*", "/%23", "/" + "x" * 201])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_is_no_topic_is_refused(http: httpx.AsyncClient, path: str, method: str) -> None:
    answer = await http.request(method, path)
    assert refusal(answer)[2] == "topic"
    assert answer.status_code in {400, 413}


async def test_asking_for_a_topic_tells_how_to_publish(http: httpx.AsyncClient) -> None:
    answer = await http.get("/news")
    assert "curl -d 'text' http://localhost/news\n" in answer.text
    assert "curl -sN http://localhost/news/json\n" in answer.text


async def test_other_methods_and_longer_paths_are_refused(http: httpx.AsyncClient) -> None:
    answer = await http.delete("/news")
    assert refusal(answer) == (405, "method_not_allowed", None)
    assert answer.headers["allow"] == "GET, HEAD, POST, PUT"
    assert refusal(await http.post("/news/a/b/c", content=b"x")) == (404, "not_found", None)


async def test_a_message_too_large_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/news", content=b"x" * ((1 << 20) + 1))
    assert refusal(answer) == (413, "too_large", None)


async def test_added_routes_come_first_and_are_no_topics(live: LiveInMemory) -> None:
    async def fine(request: Request) -> PlainTextResponse:
        return PlainTextResponse("fine")

    routes = [Route("/health", fine), Route("/mine", fine, methods=["GET"])]
    async with knock(make_app(live, RestSettings(open_house=True), routes=routes)) as http:
        assert (await http.get("/health")).text == "fine"
        assert (await http.get("/mine")).text == "fine"
        assert refusal(await http.post("/mine"))[0] == 405
        assert (await http.post("/news")).status_code == 200


class TestPushesOfPap:
    DOCUMENT = (
        b'<?xml version="1.0"?>\n<!DOCTYPE pap PUBLIC "x" "y" [<?v?>]>\n<pap><push-message/></pap>'
    )
    RELATED = 'multipart/related; boundary=part; type="application/xml"'
    PART = b"--part\r\nContent-Type: application/xml\r\n\r\n%s\r\n--part--\r\n" % DOCUMENT

    @pytest.mark.parametrize("method", ["POST", "PUT"])
    @pytest.mark.parametrize(
        "content_type, body",
        [
            (RELATED, PART),
            ("Multipart/Related;type=text/xml;boundary=part", PART),
            ("application/xml", DOCUMENT),
            ("text/xml; charset=utf-8", b"<pap >"),
        ],
    )
    async def test_are_no_messages_for_a_topic(
        self,
        http: httpx.AsyncClient,
        live: LiveInMemory,
        content_type: str,
        body: bytes,
        method: str,
    ) -> None:
        answer = await http.request(
            method, "/news", content=body, headers={"content-type": content_type}
        )
        assert refusal(answer) == (404, "not_found", None)
        assert detail(answer) == (
            "a PAP push cannot be published to a topic; PAP requests go to POST /pap"
        )
        assert live.store.counts().messages == 0

    @pytest.mark.parametrize(
        "content_type, body",
        [
            ("application/xml", b"<doc><pap/></doc>"),
            ("application/xml", b"<papa/>"),
            ("text/plain", DOCUMENT),
            ("multipart/related; boundary=part; type=text/html", PART),
            ("multipart/mixed; boundary=part", PART),
        ],
    )
    async def test_are_not_seen_in_other_content(
        self, http: httpx.AsyncClient, content_type: str, body: bytes
    ) -> None:
        answer = await http.post("/news", content=body, headers={"content-type": content_type})
        assert answer.status_code == 200

    @pytest.mark.parametrize("path", ["/wappush", "/ppg", "/pap"])
    @pytest.mark.parametrize(
        "spoken, words",
        [
            ("/push/access", "PAP requests go to POST /push/access"),
            ("", "this gateway does not accept PAP"),
        ],
    )
    async def test_are_shown_the_way_from_where_other_gateways_take_them(
        self, live: LiveInMemory, path: str, spoken: str, words: str
    ) -> None:
        door = make_app(live, RestSettings(open_house=True, pap=spoken))
        async with knock(door) as http:
            answer = await http.post(
                path, content=self.PART, headers={"content-type": self.RELATED}
            )
            assert refusal(answer) == (400, "invalid_request", "topic")
            assert detail(answer).endswith(words)
            assert (await http.get(path)).status_code == 404


@pytest.mark.parametrize("url", ["http://[", "http://[x]/", "ftp://x/y", "http:///y"])
async def test_an_attachment_has_a_url_that_can_be_read(http: httpx.AsyncClient, url: str) -> None:
    answer = await http.post("/news", content=b"x", headers={"attach": url})
    assert (answer.status_code, answer.json()["code"]) == (400, 40013)


async def test_headers_of_a_message_have_no_control_characters(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    asked = "/news?click=http://x%0d%0aX-Evil:1&filename=f.txt&message=a%0ab&tags=a%00b"
    assert (await http.post(asked, content=b"file")).status_code == 200
    (message,) = live.store.messages(r.message for r in live.store.all_deliveries()).values()
    assert not [v for _, v in message.headers if any(ord(c) < 32 for c in v)]
    assert dict(message.headers)["click"] == "http://x  X-Evil:1"


async def test_what_goes_into_headers_counts_for_the_size(live: LiveInMemory) -> None:
    door = make_app(live, RestSettings(open_house=True, max_message=3000))
    async with knock(door) as http:
        answer = await http.post("/news", content=b"x", headers={"click": "http://" + "x" * 1500})
        assert answer.status_code == 200
        many = {"click": "http://" + "x" * 1500, "icon": "http://" + "x" * 1500}
        assert (await http.post("/news", content=b"x", headers=many)).json()["code"] == 41301
