"""What is recorded: one scenario for every family of features, each with a life before a crash in
which everything is open, and a life after it in which everything comes to its end.

A scenario says what publishers, administrators and devices do, and when. It never looks at what
comes back: half of those who act may be a recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lasthop.surrogate import Answer, Decision, Drop, Mail, Relay, Surrogate
from tests.compat.adapter import Setting, Stage, content_of, text_of
from tests.compat.javascript import ScriptDevice

NEED_NODE = {"javascript", "backup"}
"""Scenarios with a device that needs Node, unless it is played from a recording."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A story in two lives."""

    name: str
    first: Callable[[Stage], None]
    second: Callable[[Stage], None]
    setting: Setting = field(default_factory=Setting)
    questions: tuple[str, ...] = ("/v1/devices",)
    """What to ask the REST door in either life; what has a name is asked for anyway."""


# Plain messages, to every kind of target.


def _plain_first(stage: Stage) -> None:
    for name, user in (("phone", "alice"), ("tablet", "alice"), ("watch", "bob")):
        stage.http("POST", "/v1/devices", {"name": name, "user": user})
    stage.http("PUT", "/v1/devices/watch/subscriptions/news")
    phone = stage.device("phone", token="token-1")
    tablet = stage.device("tablet", token="token-2", window=(2, 10_000), inbox_messages=4)
    stranger = stage.device("watch", token="wrong")
    stranger.dial()
    phone.dial("wifi", network="home", heartbeat=60)
    tablet.dial("mno", kind="datagram")
    stage.run(1)
    phone.subscribe("news")
    tablet.subscribe("news.sport")
    stage.dismiss("watch")
    stage.device("clock").dial()
    phone.report_context(battery=80, place="home")
    stage.run(1)
    stage.publish("to a device", "device:phone", title="Hello", headers={"x-own": "header"})
    stage.publish("to a user", "user:alice", priority=7)
    stage.publish("to a topic", "topic:news")
    stage.publish("to another topic", "topic:news.sport", handling="silent")
    stage.publish("to everyone", "app:", content_type="text/x-own")
    stage.publish("best effort", "device:phone", reliability="best-effort")
    stage.publish("only received", "device:phone", reliability="at-least-once-delivery")
    stage.publish("processed", "device:phone", reliability="at-least-once-processing")
    stage.publish("under a key", "device:phone", key="order-1")
    stage.publish("under a key", "device:phone", key="order-1")
    stage.run(1)
    phone.report_read("news", 1)
    phone.send("device:watch", "from a phone", title="by hand", expires_in=86_400)
    phone.send("topic:news", "news from a phone")
    phone.send("device:tablet", "casual", reliability=0)
    phone.send("device:nobody", "to be refused")
    stage.run(1)
    # From here on much stays open.
    stage.publish("in an hour", "device:phone", delay="1h")
    stage.publish("within a minute", "device:watch", ttl=60)
    stage.publish("not too late", "device:watch", ttl="10d")
    stage.publish("old version", "device:watch", replace_key="score")
    stage.publish("new version", "device:watch", replace_key="score")
    stage.publish("to be cancelled", "user:bob")
    stage.message("DELETE", "to be cancelled")
    stage.publish("to be rewritten", "device:watch")
    stage.message("PUT", "to be rewritten", "", {"body": "rewritten"})
    stage.publish("with a key", "device:watch", key="order-2")
    for n in range(5):
        stage.publish(f"burst {n}", "device:tablet", f"later {n}")
    stage.publish("too late on the device", "device:tablet", "later, but soon", ttl=5)
    stage.publish("later, in order", "device:phone", "later on")
    stage.publish("after that", "device:phone")
    stage.publish("for a clock", "device:clock")
    stage.run(1)
    # A device that has lost its memory.
    stage.publish("for a clock, twice", "device:clock", "later, for a clock")
    stage.run(1)
    stage.dismiss("clock")
    stage.run(1)
    stage.device("clock").dial()
    stage.publish("expires under way", "device:phone", ttl=2)
    stage.run(0.005)
    phone.lose()
    stage.run(4)
    phone.dial("mno", network="operator", heartbeat=60)
    stage.run(100)
    # These have left when everything stops, and nothing has come back.
    stage.publish("in flight", "device:phone")
    stage.publish("in flight to all", "topic:news")
    phone.send("device:tablet", "in flight from a phone")
    stage.run(0.005)


def _plain_second(stage: Stage) -> None:
    phone = stage.devices["phone"]
    tablet = stage.devices["tablet"]
    stage.run(1)
    phone.dial("wifi", network="home", heartbeat=60)
    tablet.dial("mno", kind="datagram")
    stage.run(2)
    stage.devices["clock"].dial()
    for name in ("phone", "tablet", "clock"):
        stage.devices[name].take_time()
    stage.run(1)
    watch = stage.device("watch", token="token-3")
    watch.dial("wifi", kind="held")
    stage.run(5)
    stage.publish("with a key", "device:watch", key="order-2")
    stage.publish("a new one", "user:alice")
    stage.run(3600)
    phone.hang_up()
    stage.run(1)


# A fan-out that is half done.


def _fanout_first(stage: Stage) -> None:
    for n in range(6):
        stage.device(f"d{n}").dial()
    stage.run(1)
    for n in range(6):
        stage.devices[f"d{n}"].subscribe("news")
    stage.run(1)
    stage.publish("before", "topic:news")
    stage.run(1)
    # Two devices at a time, each time in a commit: die after the second. This is the one place
    # where it matters how the gateway divides what it does into commits.
    stage.crash_after(2)
    stage.publish("spreading", "topic:news")
    stage.run(0)


def _fanout_second(stage: Stage) -> None:
    for n in range(6):
        stage.devices[f"d{n}"].dial()
    stage.run(1)
    stage.publish("after", "app:")
    stage.run(1)


# Ranked topics.


def _ranked_first(stage: Stage) -> None:
    stage.http("PUT", "/v1/topics/news", {"title": "What happened"})
    stage.http("PUT", "/v1/topics/gone", {"title": "What happens no more"})
    phone = stage.device("phone")
    tablet = stage.device("tablet", storage=3)
    phone.dial("wifi")
    tablet.dial("wifi", kind="datagram")
    stage.run(1)
    phone.subscribe("news", max=3, threshold=1.0)
    phone.subscribe("alerts", mode="on-line", interrupt=9.0, quiet=("08:30", "09:30"))
    phone.subscribe("gone", max=2)
    tablet.subscribe("news", max=2, policy="buffer", prefetch_limit=2)
    tablet.subscribe("offers", max=2, policy="on-line")
    tablet.subscribe("digest", mode="on-line", times=["12:00", "18:00"], max_per_day=4)
    stage.run(1)
    stage.http(
        "PUT",
        "/v1/devices/phone/rules",
        {
            "rules": [
                {"topic": "traffic.{city}", "when": {"moving": ["true"]}, "terms": {"max": 2}},
                {"topic": "work", "when": {"place": ["office"]}, "quiet_when": {"busy": ["yes"]}},
            ]
        },
    )
    phone.report_context(city="oslo", moving=True, place="office")
    stage.run(1)
    for n, rank in enumerate((5.0, 3.0, 0.5, 4.0, 2.0)):
        stage.publish(f"news {n}", "topic:news", rank=rank, ttl="2d")
        stage.run(1)
    stage.publish("alert", "topic:alerts", rank=5.0)
    stage.publish("traffic", "topic:traffic.oslo", rank=2.0)
    stage.publish("work", "topic:work", rank=1.0)
    stage.publish("offer", "topic:offers", rank=1.0, ttl=30)
    stage.run(2)
    phone.look("news", 2)
    stage.run(1)
    stage.message("PATCH", "news 1", "", {"rank": 8.0})
    stage.message("PATCH", "news 3", "", {"rank": 0.1})
    stage.run(1)
    stage.change_policy("offers", policy="buffer", version="learned-7", prefetch_limit=1)
    stage.run(1)
    phone.lose()
    stage.run(1)
    phone.look("news", 1)
    for n in range(5, 9):
        stage.publish(f"news {n}", "topic:news", rank=float(n))
    stage.publish("digest", "topic:digest", rank=4.0)
    stage.run(40)
    phone.dial("mno")
    stage.run(2)
    stage.http("DELETE", "/v1/topics/gone")
    stage.run(1800)
    stage.publish("quiet alert", "topic:alerts", rank=6.0)
    stage.publish("loud alert", "topic:alerts", rank=9.5)
    stage.publish("more traffic", "topic:traffic.oslo", rank=3.0)
    stage.publish("another offer", "topic:offers", rank=2.0)
    stage.run(1)
    # A look is under way, and a message that is to be kept.
    phone.look("news")
    stage.publish("news 9", "topic:news", rank=9.0)
    stage.run(0.005)


def _ranked_second(stage: Stage) -> None:
    phone, tablet = stage.devices["phone"], stage.devices["tablet"]
    phone.dial("wifi")
    tablet.dial("wifi", kind="datagram")
    stage.run(2)
    phone.look("news", 2)
    stage.run(1)
    tablet.look("news")
    tablet.look("offers")
    stage.run(1)
    phone.report_context(city="bergen", moving=True, place="home")
    stage.run(1)
    stage.publish("far traffic", "topic:traffic.bergen", rank=3.0)
    stage.run(3600)
    stage.run(4 * 3600)
    for _ in range(3):
        phone.look("news")
        phone.look("alerts")
        phone.look("traffic.bergen")
        tablet.look("news")
        tablet.look("offers")
        tablet.look("digest")
        stage.run(2)
    phone.unsubscribe("news")
    tablet.unsubscribe("news")
    stage.run(2)


# Groups and queues.


def _groups_first(stage: Stage) -> None:
    stage.http("PUT", "/v1/groups/crew", {"title": "Those who help"})
    stage.http(
        "PUT", "/v1/queues/jobs", {"title": "What is to be done", "patience": 30, "prefetch": 2}
    )
    names = ("ann", "ben", "cat")
    for name in (*names, "eve"):
        stage.device(name).dial()
    stage.run(1)
    # Takes from the queue what it never does.
    stage.devices["eve"].puts_off = ""
    stage.devices["eve"].join("queue:jobs")
    for name in names:
        stage.devices[name].join("group:crew")
        stage.devices[name].join("queue:jobs")
    stage.devices["ann"].join("group:own")
    stage.run(1)
    stage.publish("to the group", "group:crew")
    stage.publish("all or none", "group:crew", atomic=True, ttl=60)
    stage.publish("who first", "group:crew", claim=True)
    for n in range(4):
        stage.publish(f"job {n}", "queue:jobs")
    stage.run(2)
    stage.devices["ben"].claim("who first")
    stage.run(1)
    stage.devices["ann"].claim("who first")
    stage.run(1)
    stage.devices["ann"].leave("group:own")
    stage.devices["cat"].lose()
    stage.run(1)
    stage.publish("nobody shown", "group:crew", atomic=True, ttl=20)
    stage.publish("taken back", "group:crew", atomic=True, ttl=3600)
    stage.run(1)
    stage.message("DELETE", "taken back")
    stage.run(30)
    # What stays open: cat is away.
    stage.publish("waits for cat", "group:crew", atomic=True, ttl=3600)
    stage.publish("open claim", "group:crew", claim=True)
    stage.publish("granted claim", "group:crew", claim=True)
    stage.run(1)
    stage.devices["ann"].claim("granted claim")
    stage.devices["ann"].send("group:crew", "from a member", claim=True)
    for n in range(4, 9):
        stage.publish(f"job {n}", "queue:jobs", f"later job {n}")
    stage.run(40)
    stage.devices["ben"].claim("open claim")
    stage.publish("last to the group", "group:crew")
    stage.run(0.005)


def _groups_second(stage: Stage) -> None:
    ann, ben, cat = (stage.devices[name] for name in ("ann", "ben", "cat"))
    cat.dial()
    stage.run(2)
    cat.claim("open claim")
    stage.run(1)
    ann.dial()
    ben.dial()
    stage.run(2)
    for device in (ann, ben, cat):
        device.take_time()
    stage.run(140)


# Surrogates.


class OperationContext(Surrogate):
    """Counts, and does one of everything, by the first word of a message."""

    def to_device(self, mail: Mail) -> Decision | None:
        return self._act(mail, "to")

    def from_device(self, mail: Mail) -> Decision | None:
        return self._act(mail, "from")

    def _act(self, mail: Mail, way: str) -> Decision | None:
        self.state[f"{way} {mail.device}"] = self.state.get(f"{way} {mail.device}", 0) + 1
        word = mail.body.partition(b" ")[0]
        if word == b"change":
            return Relay(body=b"changed: " + mail.body, headers={"x-seen": way})
        if word == b"answer":
            return Answer("the clerk knows")
        if word == b"drop":
            return Drop("nobody needs it")
        if word == b"copy":
            self.send("device:tablet", b"a copy of " + mail.body)
        return None


def _surrogate_first(stage: Stage) -> None:
    stage.thinking = 1000
    phone = stage.device("phone")
    tablet = stage.device("tablet")
    phone.dial()
    tablet.dial()
    stage.run(1)
    stage.publish("plain", "device:phone")
    stage.publish("change it", "device:phone")
    stage.publish("answer it", "device:phone", reply_within="10m")
    stage.publish("drop it", "device:phone")
    stage.publish("copy it", "device:phone")
    phone.send("device:tablet", "change what I say")
    phone.send("device:tablet", "drop what I say")
    stage.run(3)
    phone.lose()
    stage.run(1)
    stage.publish("change while away", "device:phone")
    stage.run(2)
    stage.thinking = 1_300_000
    for n in range(4):
        stage.publish(f"waits {n}", "device:phone", f"change {n}")
    tablet.send("device:phone", "copy of a tablet")
    stage.run(2)


def _surrogate_second(stage: Stage) -> None:
    stage.thinking = 1000
    stage.devices["phone"].dial()
    stage.devices["tablet"].dial()
    stage.run(5)
    stage.publish("change at last", "device:phone")
    stage.run(5)


# Pushes of PAP.


PAP_2_1 = '"-//OMA//DTD PAP 2.1//EN" "http://www.openmobilealliance.org/tech/DTD/pap_2.1.dtd"'


def _push(
    push_id: str, *addresses: str, attributes: str = "", quality: str = ""
) -> tuple[str, bytes]:
    listed = "".join(f'<address address-value="{address}"/>' for address in addresses)
    control = (
        '<?xml version="1.0"?>\r\n'
        f"<!DOCTYPE pap PUBLIC {PAP_2_1}>\r\n"
        f'<pap><push-message push-id="{push_id}" {attributes}>{listed}{quality}'
        "</push-message></pap>"
    )
    body = (
        "--cut\r\nContent-Type: application/xml\r\n\r\n" + control + "\r\n"
        "--cut\r\nContent-Type: text/plain\r\n"
        "X-Wap-Application-Id: x-wap-application:wml.ua\r\n\r\n"
        f"{push_id}\r\n--cut--\r\n"
    )
    return 'multipart/related; boundary=cut; type="application/xml"', body.encode()


def _pap(message: str) -> tuple[str, bytes]:
    document = f'<?xml version="1.0"?><!DOCTYPE pap PUBLIC {PAP_2_1}><pap>{message}</pap>'
    return "application/xml", document.encode()


def _user(name: str) -> str:
    return f"WAPPUSH={name}/TYPE=USER@ppg.example.com"


PHONE_NUMBER = "WAPPUSH=+15551999/TYPE=PLMN@ppg.example.com"
NOTIFY = 'ppg-notify-requested-to="http://127.0.0.1:9/results"'
CONFIRMED = '<quality-of-service delivery-method="confirmed"/>'
ANSWERED = '<quality-of-service delivery-method="confirmed-with-response"/>'


def _pap_first(stage: Stage) -> None:
    stage.http(
        "POST",
        "/v1/devices",
        {"name": "phone", "user": "alice", "addresses": ["PLMN:+15551999"]},
    )
    stage.http("POST", "/v1/devices", {"name": "tablet", "user": "alice"})
    stage.http("POST", "/v1/devices", {"name": "watch", "user": "bob"})
    stage.http("PUT", "/v1/addresses/USER:staff", {"target": "user:alice"})
    stage.http("PUT", "/v1/addresses/USER:boss", {"target": "device:watch"})
    phone = stage.device("phone", token="token-1")
    phone.dial()
    stage.run(1)
    stage.initiators_answer("HEARD")
    stage.pap(*_push("1@shop", PHONE_NUMBER, attributes=NOTIFY, quality=CONFIRMED))
    stage.run(2)
    stage.initiators_answer("UNREACHABLE")
    stage.pap(*_push("2@shop", PHONE_NUMBER, attributes=NOTIFY, quality=ANSWERED))
    stage.run(2)
    stage.pap(*_push("3@shop", _user("staff"), attributes=NOTIFY, quality=CONFIRMED))
    stage.pap(*_push("4@shop", _user("bob"), PHONE_NUMBER, attributes=NOTIFY))
    stage.pap(*_push("5@shop", _user("boss"), attributes=NOTIFY))
    stage.pap(
        *_pap(
            f'<cancel-message push-id="5@shop"><address address-value="{_user("boss")}"/>'
            "</cancel-message>"
        )
    )
    stage.pap(*_push("6@shop", _user("bob"), attributes=NOTIFY))
    replaces = f'{NOTIFY} replace-push-id="6@shop" replace-method="all"'
    stage.pap(*_push("7@shop", _user("bob"), attributes=replaces))
    late = f'{NOTIFY} deliver-before-timestamp="2027-01-15T08:00:20Z"'
    stage.pap(*_push("8@shop", _user("bob"), attributes=late))
    stage.pap(*_push("8@shop", _user("bob"), attributes=late))
    stage.pap(*_push("9@shop", _user("nobody"), attributes=NOTIFY))
    stage.run(60)
    phone.lose()
    stage.run(1)
    stage.pap(*_push("10@shop", PHONE_NUMBER, attributes=NOTIFY, quality=ANSWERED))
    stage.run(1)
    for n in (2, 3, 4, 5):
        stage.pap(*_pap(f'<statusquery-message push-id="{n}@shop"></statusquery-message>'))


def _pap_second(stage: Stage) -> None:
    for n in (2, 3, 4, 5):
        stage.pap(*_pap(f'<statusquery-message push-id="{n}@shop"></statusquery-message>'))
    stage.initiators_answer("HEARD")
    stage.run(1)
    stage.devices["phone"].dial()
    stage.run(5)
    stage.pap(*_push("4@shop", _user("bob"), attributes=NOTIFY))
    stage.pap(*_push("11@shop", _user("boss"), PHONE_NUMBER, attributes=NOTIFY))
    tablet = stage.device("tablet", token="token-2")
    watch = stage.device("watch", token="token-3")
    tablet.dial()
    watch.dial()
    stage.run(4 * 3600)
    stage.initiators_answer("UNREACHABLE")
    stage.pap(*_push("12@shop", PHONE_NUMBER, attributes=NOTIFY))
    stage.run(3600)
    for n in range(2, 13):
        stage.pap(*_pap(f'<statusquery-message push-id="{n}@shop"></statusquery-message>'))


# Streams, and bodies in pieces.


def _streams_first(stage: Stage) -> None:
    phone = stage.device("phone", stream_window=1500, segment=400)
    tablet = stage.device("tablet", stream_window=1500, segment=400)
    phone.dial(rate=2000)
    tablet.dial(rate=2000, kind="datagram")
    stage.run(1)
    stage.open_stream("short/200", "device:phone")
    stage.stream("PUT", "short/200", "/content?offset=0", raw=content_of("short/200"))
    stage.stream("POST", "short/200", "/end")
    stage.open_stream("given up/900", "device:phone")
    stage.stream("PUT", "given up/900", "/content?offset=0", raw=content_of("given up/900")[:300])
    stage.run(1)
    stage.stream("DELETE", "given up/900")
    stage.publish("large", "device:phone", text_of("large/400"))
    stage.publish("pulled", "device:tablet", text_of("pulled/300"), pull=True)
    phone.send("device:tablet", content_of("large from a phone/700"))
    stage.run(8)
    phone.open_stream("device:tablet", "whole/600")
    stage.run(3)
    # From here on everything is on its way.
    stage.open_stream("film/5000", "device:phone")
    stage.stream("PUT", "film/5000", "/content?offset=0", raw=content_of("film/5000")[:1900])
    tablet.reads_streams = False
    phone.open_stream("device:tablet", "song/4000")
    phone.open_stream("publisher:", "log/700")
    stage.run(3)
    phone.send("device:tablet", content_of("half way from a phone/2500"))
    stage.publish("half way", "device:tablet", text_of("half way/1500"))
    stage.publish(
        "to be pulled", "device:tablet", text_of("to be pulled/900"), pull=True, title="later"
    )
    stage.publish("overtakes", "device:tablet", priority=9)
    stage.run(0.7)


def _streams_second(stage: Stage) -> None:
    phone, tablet = stage.devices["phone"], stage.devices["tablet"]
    phone.dial(rate=2000)
    tablet.dial(rate=2000, kind="datagram")
    stage.run(3)
    tablet.take_time()
    content = content_of("film/5000")
    for offset in (1900, 2900, 3900):
        stage.stream("PUT", "film/5000", f"/content?offset={offset}", raw=content[offset:][:1000])
        stage.run(4)
    stage.stream("PUT", "film/5000", "/content?offset=4900", raw=content[4900:])
    stage.stream("POST", "film/5000", "/end")
    stage.run(20)
    tablet.turn()
    stage.run(30)


# Preferences: links, limits, calendars, quiet hours.


LINKS = [
    {"label": "wifi", "tariff": {}, "energy": 1000, "latency": 250_000, "coverage": 100},
    {
        "label": "mno",
        "tariff": {"per_volume": 30_000_000, "volume": 6 << 30},
        "energy": 1500,
        "latency": 500_000,
        "coverage": 1000,
    },
    {
        "label": "satellite",
        "tariff": {"per_unit": 1_000_000},
        "latency": 1_000_000,
        "coverage": 100_000,
    },
]
EVENING = [0.0] * 19 + [0.9] * 4 + [0.0]
PREFERENCES: dict[str, Any] = {
    "links": LINKS,
    "queues": [
        {"name": "photos", "links": ["wifi"]},
        {"name": "patient", "max_delay": 3_600_000_000},
        {"name": "far", "weights": {"price": 0, "energy": 0, "latency": 0, "coverage": 1}},
    ],
    "limits": [
        {"amount": 3, "measure": "messages", "period": "day", "queues": ["news"]},
        {"amount": 4000, "measure": "bytes", "period": "week", "link": "mno"},
        {"amount": 50_000_000, "measure": "money", "period": "month"},
    ],
    "calendar": {"zone": "Europe/Oslo", "hours": {"wifi": EVENING * 7}},
    "quiet": [{"zone": "Europe/Oslo", "start": 23 * 60, "end": 6 * 60}],
    "caps": [{"limit": 2, "period": "day", "queues": ["jokes"]}],
    "digests": [{"times": [12 * 60], "queues": ["digest"]}],
}


def _preferences_first(stage: Stage) -> None:
    phone = stage.device("phone", segment=400)
    friend = stage.device("friend")
    phone.dial("mno", network="operator")
    friend.dial("wifi")
    stage.run(1)
    phone.prefer(PREFERENCES)
    stage.http("PUT", "/v1/devices/friend/preferences", {"links": LINKS[:1], "limits": []})
    stage.run(1)
    phone.dial("wifi", network="home", kind="datagram")
    stage.run(1)
    stage.publish("cheap", "device:phone")
    stage.publish("far", "device:phone", queue="far")
    stage.publish("photo", "device:phone", queue="photos")
    for n in range(5):
        stage.publish(f"news {n}", "device:phone", queue="news")
    for n in range(4):
        stage.publish(f"joke {n}", "device:phone", queue="jokes", rank=float(n))
    stage.publish("digest", "device:phone", queue="digest")
    phone.send("device:friend", "over the best link")
    phone.send("device:friend", "a photo", queue="photos")
    stage.run(2)
    phone.lose("wifi")
    stage.run(2)
    stage.publish("photo waits", "device:phone", queue="photos")
    stage.publish("patient waits", "device:phone", queue="patient")
    stage.publish("large over mno", "device:phone", text_of("large over mno/700"))
    phone.send("device:friend", "a photo that waits", queue="photos")
    for n in range(4):
        phone.send("device:friend", f"news from a phone {n}", queue="news")
    stage.run(2)
    stage.publish("beyond the limit", "device:phone", text_of("beyond the limit/2000"))
    stage.publish("urgent photo", "device:phone", queue="photos", ttl=5)
    stage.run(10)
    stage.publish("in flight", "device:phone")
    phone.send("device:friend", "from a phone, in flight")
    stage.run(0.005)


def _preferences_second(stage: Stage) -> None:
    phone, friend = stage.devices["phone"], stage.devices["friend"]
    friend.dial("wifi")
    phone.dial("mno", network="operator")
    stage.run(3)
    phone.dial("wifi", network="home", kind="datagram")
    stage.run(5)
    phone.hang_up()
    stage.run(1)
    phone.dial("wifi", network="home")
    stage.run(5 * 3600)
    phone.hang_up()
    friend.hang_up()
    # Past midnight there is a new day's worth of everything.
    stage.run(20 * 3600)
    phone.dial("wifi", network="home")
    friend.dial("wifi")
    stage.run(3600)


# Over the air.


ROUTES = [
    {"variant": "wsp", "address": "192.0.2.1"},
    {"variant": "wsp-session", "address": "192.0.2.1"},
    {"variant": "http", "address": "192.0.2.1:4035", "bearer": "Packet Data"},
]


def _air_first(stage: Stage) -> None:
    stage.http("POST", "/v1/devices", {"name": "pager", "routes": ROUTES[:1]})
    stage.http("POST", "/v1/devices", {"name": "phone", "routes": ROUTES})
    stage.publish("handed over", "device:pager")
    stage.publish("confirmed", "device:phone", method="confirmed")
    stage.publish("answered", "device:phone", method="confirmedwithresponse", reply_within="1h")
    stage.publish("refused", "device:phone", method="confirmed")
    stage.publish("given up", "device:phone", method="confirmed")
    stage.run(1)
    stage.report("handed over", "sent")
    stage.report("confirmed", "confirmed")
    stage.report("answered", "answered")
    stage.report("refused", "aborted")
    stage.report("given up", "unanswered")
    for _ in range(2):
        stage.run(600)
        stage.report("given up", "unanswered")
    stage.publish("again", "device:phone", method="confirmed")
    stage.publish("out of reach", "device:pager", ttl="2d")
    stage.run(1)
    stage.report("again", "unanswered")
    stage.report("out of reach", "unreached")
    stage.publish("tomorrow", "device:pager", delay="1d")
    stage.publish("with a carrier", "device:phone", method="confirmed")
    stage.run(1)


def _air_second(stage: Stage) -> None:
    stage.run(1)
    for _ in range(4):
        stage.report_all()
        stage.run(12 * 3600)
    phone = stage.device("phone", token="token-2")
    phone.dial()
    stage.run(1)
    stage.publish("by itself", "device:phone")
    stage.run(2)


# What pushes over the air cost.


def _tariffs_first(stage: Stage) -> None:
    sms = {"label": "sms", "tariff": {"per_unit": 1500, "unit": 140}}
    route = {"variant": "wsp", "address": "192.0.2.1", "link": sms}
    stage.http("POST", "/v1/devices", {"name": "pager", "routes": [route]})
    stage.http("POST", "/v1/devices", {"name": "phone", "routes": [route]})
    limits = [{"amount": 5, "measure": "units", "period": "day", "link": "sms"}]
    stage.http("PUT", "/v1/devices/phone/preferences", {"limits": limits})
    stage.publish("paid without a limit", "device:pager")
    stage.publish("paid", "device:phone")
    stage.run(1)
    stage.report("paid without a limit", "paid")
    stage.report("paid", "paid")
    stage.publish("reserved and given back", "device:phone")
    stage.publish("beyond the limit", "device:phone")
    stage.run(1)
    stage.report("reserved and given back", "unreached")
    stage.run(1)


def _tariffs_second(stage: Stage) -> None:
    stage.run(1)
    for _ in range(8):
        stage.report_all()
        stage.run(12 * 3600)


# Requests, services, heartbeats, and what administrators do.


def _exchange_first(stage: Stage) -> None:
    phone, tablet, robot = (stage.device(name) for name in ("phone", "tablet", "robot"))
    phone.dial(network="home")
    tablet.dial()
    robot.dial()
    stage.run(1)
    robot.offer("lights", "on", "off")
    robot.offer("doors", "open")
    robot.offer("songs", "sing")
    robot.withdraw("songs")
    tablet.subscribe("questions")
    robot.subscribe("questions")
    stage.run(1)
    phone.find("lights", 30)
    phone.ask("device:tablet", "how are you?", 30)
    phone.ask("service:lights", "are they on?", 30, callback="lights")
    phone.ask("topic:questions", "who is there?", 30, gather=True)
    stage.publish("publisher asks", "device:phone", reply_within="5m")
    stage.run(3)
    stage.message("GET", "publisher asks", "/reply")
    tablet.answers = False
    robot.answers = False
    phone.ask("device:tablet", "still there?", 3)
    stage.run(5)
    phone.probe("home", 30)
    stage.run(35)
    phone.end_probe()
    stage.run(1)
    # Open questions.
    phone.ask("device:tablet", "later, with a callback", 3600, callback="answers")
    phone.ask("device:tablet", "never answered", 60, callback="answers")
    stage.publish("publisher waits", "device:tablet", "later, publisher", reply_within="1h")
    stage.run(2)
    tablet.lose()
    stage.run(1)
    phone.ask("service:doors", "open them", 3600, callback="doors")
    phone.ask("device:tablet", "on its way", 3600, callback="answers")
    stage.run(0.005)


def _exchange_second(stage: Stage) -> None:
    phone, tablet, robot = (stage.devices[name] for name in ("phone", "tablet", "robot"))
    phone.dial(network="home")
    stage.run(62)
    tablet.dial()
    robot.dial()
    stage.run(3)
    tablet.take_time()
    stage.run(2)
    stage.message("GET", "publisher waits", "/reply")
    stage.run(100)


def _house_first(stage: Stage) -> None:
    stage.http("POST", "/v1/credentials", {"name": "shop", "scopes": ["publish"]})
    stage.http("POST", "/v1/credentials", {"name": "old", "scopes": ["publish", "devices"]})
    stage.http("DELETE", "/v1/credentials/old")
    stage.http(
        "POST", "/v1/credentials", {"name": "cert", "scopes": ["admin"], "certificate": "CN=me"}
    )
    behaviour = {"handling": "notify", "reliability": "at-least-once-processing", "max_size": 5000}
    stage.http("PUT", "/v1/apps/default/behaviour", {**behaviour, "pull_on": ["satellite"]})
    phone = stage.device("phone", accept=("text/plain", "image/png"))
    phone.dial()
    other = stage.device("other")
    other.dial()
    stage.run(1)
    phone.subscribe("prices", xpath="//item[@price<10]")
    phone.subscribe("house.*")
    other.subscribe("prices")
    stage.run(1)
    stage.publish(
        "cheap", "topic:prices", '<list><item price="5"/></list>', content_type="text/xml"
    )
    stage.publish(
        "dear", "topic:prices", '<list><item price="50"/></list>', content_type="text/xml"
    )
    stage.publish("by pattern", "topic:house.door")
    stage.publish("too large", "device:phone", "x" * 6000)
    stage.run(1)
    stage.open_stream("long/60000", "device:phone")
    stage.stream("PUT", "long/60000", "/content?offset=0", raw=content_of("long/60000"))
    stage.stream("POST", "long/60000", "/end")
    # Nobody hears of its progress before 8 MiB: from a publisher to a publisher that is soon done.
    stage.open_stream("huge/8500000", "publisher:")
    content = content_of("huge/8500000")
    for offset in range(0, 8_500_000, 250_000):
        part = content[offset : offset + 250_000]
        stage.stream("PUT", "huge/8500000", f"/content?offset={offset}", raw=part)
        stage.stream("GET", "huge/8500000", f"/content?offset={offset + len(part)}")
    stage.run(1)
    gone = stage.device("gone")
    gone.dial()
    stage.run(1)
    gone.lose()
    stage.run(1)
    stage.publish("for nobody", "device:gone")
    stage.publish("for all", "app:", "later for all")
    stage.run(1)
    stage.http("DELETE", "/v1/devices/gone")
    stage.http("PATCH", "/v1/devices/other", {"user": "carol", "zone": "Asia/Tokyo"})
    phone.lose()
    other.lose()
    stage.run(1)
    stage.publish(
        "cheap again", "topic:prices", '<list><item price="1"/></list>', content_type="text/xml"
    )
    stage.publish(
        "dear again", "topic:prices", '<list><item price="99"/></list>', content_type="text/xml"
    )
    stage.run(1)


def _house_second(stage: Stage) -> None:
    stage.http(
        "POST",
        "/v1/messages",
        {"to": "device:phone", "body": "by a shop"},
        headers={"authorization": "Bearer token-1"},
    )
    stage.http(
        "POST",
        "/v1/messages",
        {"to": "device:phone", "body": "by an old one"},
        headers={"authorization": "Bearer token-2"},
    )
    stage.devices["phone"].dial()
    stage.devices["other"].dial()
    stage.run(1)
    for name in ("phone", "other"):
        stage.devices[name].take_time()
    stage.stream("POST", "huge/8500000", "/end")
    stage.stream("GET", "huge/8500000", "/content?offset=8500000")
    stage.publish("too large still", "device:phone", "x" * 6000)
    stage.publish(
        "cheap at last", "topic:prices", '<list><item price="2"/></list>', content_type="text/xml"
    )
    stage.run(2)
    stage.http("DELETE", "/v1/apps/default/behaviour")
    stage.run(1)


# The SDK for JavaScript.


def _javascript_first(stage: Stage) -> None:
    browser = ScriptDevice(stage, "browser", window={"messages": 4, "bytes": 10_000})
    phone = stage.device("phone")
    browser.start()
    phone.dial()
    stage.run(1)
    browser.call("subscribe", "news")
    browser.call("subscribe", "sport")
    phone.subscribe("news")
    browser.call("report", {"battery": 50, "place": "desk"})
    stage.run(1)
    stage.publish("to a browser", "device:browser", title="Hello", headers={"x-own": "header"})
    stage.publish("to be read", "topic:news", title="to be read")
    stage.publish("best effort", "device:browser", reliability="best-effort")
    stage.publish("to everyone", "app:", content_type="text/x-own", handling="background")
    for n in range(6):
        stage.publish(f"burst {n}", "device:browser", priority=n)
    browser.call("send", "device:phone", "from a browser", {"title": "by hand", "priority": 7})
    browser.call("publish", "news", "news from a browser", {"rank": 2.5, "expiresIn": 3600})
    browser.call("send", "device:nobody", "to be refused")
    browser.call("request", "device:phone", "how are you?", {"timeout": 20})
    phone.ask("device:browser", "and you?", 20)
    stage.publish("publisher asks", "device:browser", reply_within="5m")
    browser.call("unsubscribe", "sport")
    stage.run(2)
    # Silence, in which the heartbeat is heard.
    stage.run(200)
    stage.publish("expires under way", "device:browser", ttl=0.3)
    stage.run(0.005)
    browser.lose()
    stage.run(10)
    stage.publish("put off", "device:browser", "later, put off")
    stage.publish("behind that", "device:browser")
    stage.publish("too late on the device", "device:browser", ttl=5)
    stage.run(10)
    phone.lose()
    browser.call("send", "device:phone", "waits for the phone")
    stage.run(1)
    browser.call("request", "device:phone", "nobody answers", {"timeout": 5})
    stage.run(8)
    browser.call("send", "device:phone", "in flight from a browser")
    stage.publish("in flight", "device:browser")
    stage.run(0.005)


def _javascript_second(stage: Stage) -> None:
    browser = stage.others["browser"]
    assert isinstance(browser, ScriptDevice)
    browser.start()
    stage.run(2)
    browser.take_time()
    stage.run(1)
    stage.devices["phone"].dial()
    stage.run(2)
    stage.publish("a new one", "topic:news")
    browser.call("send", "app:", "good bye")
    stage.run(2)
    browser.call("close")
    stage.run(5)


# A gateway that goes back to a backup, and devices that know more than it does.


def _backup_first(stage: Stage) -> None:
    phone = stage.device("phone")
    browser = ScriptDevice(stage, "browser")
    phone.dial()
    browser.start()
    stage.run(1)
    phone.subscribe("news", max=2)
    stage.run(1)
    for name in ("phone", "browser"):
        stage.publish(f"before, to a {name}", f"device:{name}")
        stage.publish(f"put off by a {name}", f"device:{name}", f"later, by a {name}")
    stage.publish("kept", "topic:news", rank=3.0)
    phone.send("device:browser", "before, by a phone")
    stage.run(1)
    stage.publish("open in the backup", "device:phone", delay=5)
    stage.back_up()
    for name in ("phone", "browser"):
        stage.publish(f"forgotten, to a {name}", f"device:{name}")
    stage.publish("kept and forgotten", "topic:news", rank=4.0)
    phone.send("device:browser", "forgotten, by a phone")
    browser.call("send", "device:phone", "forgotten, by a browser")
    stage.run(10)
    phone.send("device:browser", "in flight, by a phone")
    browser.call("send", "device:phone", "in flight, by a browser")
    stage.run(0.005)


def _backup_second(stage: Stage) -> None:
    browser = stage.others["browser"]
    assert isinstance(browser, ScriptDevice)
    phone = stage.devices["phone"]
    phone.dial()
    browser.start()
    stage.run(5)
    phone.take_time()
    browser.take_time()
    phone.look("news")
    stage.run(5)
    for name in ("phone", "browser"):
        stage.publish(f"after, to a {name}", f"device:{name}")
    stage.run(5)
    phone.unsubscribe("news")
    stage.run(2)


# Topics that remember.


def _history_first(stage: Stage) -> None:
    stage.http("PUT", "/v1/topics/short/history", {"messages": 2, "age": 3600})
    for n in range(4):
        stage.publish(f"news {n}", "topic:news")
        stage.publish(f"short {n}", "topic:short")
    stage.publish("cancelled", "topic:news")
    stage.message("DELETE", "cancelled")
    stage.publish("not kept", "topic:news", headers={"cache": "no"})
    stage.publish("soon", "topic:news", delay="30s")
    stage.publish("gone soon", "topic:news", ttl=20)
    stage.publish("old score", "topic:news", replace_key="score")
    stage.publish("new score", "topic:news", replace_key="score")
    phone = stage.device("phone")
    tablet = stage.device("tablet")
    phone.dial("wifi")
    tablet.dial("mno", kind="datagram")
    stage.run(1)
    stage.http("PUT", "/v1/devices/phone/subscriptions/news?since=all")
    stage.http("PUT", "/v1/devices/tablet/subscriptions/short?last=1")
    stage.run(1)
    stage.publish("live", "topic:news")
    stage.run(1)
    tablet.lose()
    for n in range(150):
        stage.publish(f"many {n}", "topic:many", f"{n}")
    stage.run(1)
    stage.http("PUT", "/v1/devices/tablet/subscriptions/many?since=all")
    stage.run(0.005)


def _history_second(stage: Stage) -> None:
    stage.run(1)
    stage.devices["phone"].dial("wifi")
    stage.devices["tablet"].dial("wifi", kind="datagram")
    stage.http("PUT", "/v1/devices/phone/subscriptions/short?since=all")
    stage.run(60)
    stage.publish("at the end", "topic:many")
    stage.publish("the last", "topic:short")
    stage.run(5)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "plain",
            _plain_first,
            _plain_second,
            questions=("/v1/devices", "/v1/devices/phone/subscriptions"),
        ),
        Scenario(
            "fanout",
            _fanout_first,
            _fanout_second,
            Setting(limits={"fanout_batch": 2, "large_commit": 2}),
        ),
        Scenario(
            "ranked",
            _ranked_first,
            _ranked_second,
            questions=(
                "/v1/devices",
                "/v1/devices/phone/subscriptions",
                "/v1/devices/phone/rules",
                "/v1/devices/tablet/subscriptions",
                "/v1/topics",
            ),
        ),
        Scenario(
            "groups",
            _groups_first,
            _groups_second,
            questions=("/v1/devices", "/v1/groups", "/v1/groups/crew", "/v1/queues/jobs"),
        ),
        Scenario(
            "surrogate", _surrogate_first, _surrogate_second, Setting(surrogate=OperationContext)
        ),
        Scenario(
            "pap",
            _pap_first,
            _pap_second,
            Setting(give_up_after=600_000_000),
            questions=("/v1/devices", "/v1/addresses?target=user:alice"),
        ),
        Scenario(
            "streams",
            _streams_first,
            _streams_second,
            Setting(limits={"segment": 400, "stream_window": 2000}),
            questions=("/v1/devices", "/v1/streams"),
        ),
        Scenario(
            "steering",
            _preferences_first,
            _preferences_second,
            Setting(limits={"segment": 400}, shared="100 messages per day over mno"),
            questions=(
                "/v1/devices",
                "/v1/devices/phone/preferences",
                "/v1/devices/phone/budgets",
                "/v1/devices/friend/budgets",
            ),
        ),
        Scenario("air", _air_first, _air_second),
        Scenario(
            "tariffs",
            _tariffs_first,
            _tariffs_second,
            questions=("/v1/devices/phone/budgets",),
        ),
        Scenario(
            "exchange",
            _exchange_first,
            _exchange_second,
            questions=("/v1/devices", "/v1/services", "/v1/services/lights"),
        ),
        Scenario("javascript", _javascript_first, _javascript_second),
        Scenario("backup", _backup_first, _backup_second),
        Scenario(
            "house",
            _house_first,
            _house_second,
            questions=(
                "/v1/devices",
                "/v1/credentials",
                "/v1/apps/default/behaviour",
                "/v1/devices/phone/subscriptions",
            ),
        ),
        Scenario(
            "history",
            _history_first,
            _history_second,
            questions=(
                "/v1/devices",
                "/v1/devices/phone/subscriptions",
                "/v1/topics/news/history",
                "/v1/topics/short/history",
                "/v1/topics/many/history",
            ),
        ),
    )
}
