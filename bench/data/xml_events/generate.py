"""Makes the notification messages of this folder: offers of restaurants in one invented town.

    python -m bench.data.xml_events.generate OUT SEED COUNT

The order in which random numbers are drawn is part of the data: changing it changes every message.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

WORDS: dict[str, list[str]] = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
NAMESPACES = {
    "soapenv": "http://schemas.xmlsoap.org/soap/envelope/",
    "xsd": "http://www.w3.org/2001/XMLSchema",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "mts": "http://lasthop.example/ns/mts",
    "ev": "http://lasthop.example/ns/notify",
}
XSD_TYPES = {"date": "dateTime"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Message = dict[str, Any]


class Town:
    """Generates messages about sixty restaurants, the same for every seed; its clock advances with
    each message."""

    def __init__(self, seed: int) -> None:
        builder = random.Random("world-7")
        self.restaurants: list[dict[str, Any]] = []
        taken: set[str] = set()
        while len(self.restaurants) < 60:
            name = f"{builder.choice(WORDS['first'])} {builder.choice(WORDS['second'])}"
            if name not in taken:
                taken.add(name)
                self.restaurants.append(_restaurant(builder, name))
        self.random = random.Random(seed)
        self.now = datetime(2006, 3, 1, 9, tzinfo=UTC) + timedelta(days=seed % 97)
        self.serial = self.random.randint(1000, 50000)
        self.origins = [f"amme://fuego{n}.lasthop.example:{4000 + n}/events" for n in range(3)]
        phone = self.random.randint(0, 65535)
        self.receiver = f"amme://phone-{phone:04x}.lasthop.example/restaurant-client"

    def message(self, *, may_nest: bool = True) -> Message:
        """Return the next message: its items, and the properties of its delivery."""
        draw = self.random
        self.now += timedelta(seconds=draw.randint(3, 400))
        self.serial += 1
        items = self._items(draw.choice(self.restaurants))
        if may_nest and draw.random() < 0.04:
            items.append(("previous", "nested", self.message(may_nest=False)))
            self.now -= timedelta(seconds=1)
        return {
            "to": self.receiver,
            "serial": self.serial,
            "origin": draw.choice(self.origins) if draw.random() < 0.9 else None,
            "items": items,
            "topic": draw.choice(WORDS["topics"]),
            "order": draw.choice([0, 0, 0, 1, 2]),
            "deadline": int((self.now - EPOCH).total_seconds()) * 1000
            + draw.choice([60000, 300000, 900000, 3600000]),
            "priority": draw.choice([1, 2, 2, 2, 3]),
            "ack": draw.random() < 0.2,
            "replyid": f"{draw.getrandbits(32):08x}" if draw.random() < 0.2 else None,
            "eventid": f"{draw.getrandbits(32):08x}-{draw.getrandbits(16):04x}"
            if draw.random() < 0.7
            else None,
            "access": draw.choice(["public", "friends", "group:lunch"])
            if draw.random() < 0.3
            else None,
        }

    def _items(self, place: dict[str, Any]) -> list[tuple[str, str, Any]]:
        draw = self.random
        items: list[tuple[str, str, Any]] = [
            ("restaurant", "string", place["name"]),
            ("id", "int", place["id"]),
            ("street", "string", place["street"]),
        ]
        add = items.append
        if draw.random() < 0.8:
            add(("district", "string", place["district"]))
        add(("city", "string", place["city"]))
        add(("cuisine", "string", place["cuisine"]))
        words = (
            draw.choice(WORDS["prepared"]),
            draw.choice(WORDS["main"]),
            draw.choice(WORDS["kind"]),
            draw.choice(WORDS["side"]),
        )
        add(("dish", "string", " ".join(words)))
        euros = draw.choice([5, 6, 7, 8, 9, 11, 13, 15, 18, 22])
        add(("price", "double", float(round(euros + draw.choice([0, 0.5, 0.9, 0.4]), 2))))
        add(("currency", "string", "EUR"))
        add(("seats", "int", draw.randint(0, 60)))
        add(("distance", "int", draw.randint(40, 4000)))
        add(("open", "boolean", draw.random() < 0.85))
        if draw.random() < 0.5:
            add(("rating", "double", place["rating"]))
        if draw.random() < 0.6:
            since = self.now.replace(minute=draw.choice([0, 15, 30, 45]), second=0)
            add(("from", "date", since))
            add(("until", "date", since + timedelta(minutes=30 * draw.randint(2, 8))))
        if draw.random() < 0.4:
            add(("latitude", "double", place["latitude"]))
            add(("longitude", "double", place["longitude"]))
        if draw.random() < 0.5:
            add(("phone", "string", place["phone"]))
        if draw.random() < 0.8:
            add(("language", "string", draw.choice(["fi", "fi", "sv", "en"])))
        if draw.random() < 0.4:
            add(("note", "string", draw.choice(WORDS["notes"])))
        return items


def _restaurant(draw: random.Random, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "street": f"{draw.choice(WORDS['streets'])} {draw.randint(1, 80)}",
        "district": draw.choice(WORDS["districts"]),
        "city": draw.choice(WORDS["cities"]),
        "cuisine": draw.choice(WORDS["cuisines"]),
        "phone": f"+358 9 {draw.randint(100, 999)} {draw.randint(1000, 9999)}",
        "latitude": round(60.15 + draw.random() * 0.09, 6),
        "longitude": round(24.85 + draw.random() * 0.2, 6),
        "rating": round(2.5 + draw.random() * 2.5, 1),
        "id": 1000 + draw.randint(0, 8999),
    }


def lexical(value: Any) -> str:
    """Return the canonical text of a value."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return f"{value:%Y-%m-%dT%H:%M:%SZ}"
        case _:
            return str(value)


def element(tag: str, type_: str, value: Any) -> str:
    """Return a typed XML element."""
    return f'<{tag} xsi:type="xsd:{type_}">{escape(lexical(value))}</{tag}>'


def event(message: Message, tag: str) -> str:
    """Return the event that a message carries, or that another event nests."""
    out = [f'<{tag} xsi:type="ev:event"><attributes xsi:type="ev:set">']
    for name, type_, value in message["items"]:
        out.append('<ev:item xsi:type="ev:item">' + element("name", "string", name))
        if type_ == "nested":
            out.append(event(value, "nested"))
        else:
            out.append(element(type_, XSD_TYPES.get(type_, type_), value))
        out.append("</ev:item>")
    out.append("</attributes>")
    out.append(element("topic", "string", message["topic"]))
    out.append(element("order", "int", message["order"]))
    out.append(element("deadline", "long", message["deadline"]))
    out.append(element("priority", "int", message["priority"]))
    out.append(element("ack", "boolean", message["ack"]))
    for name in ("replyid", "eventid", "access"):
        if message[name] is not None:
            out.append(element(name, "string", message[name]))
    out.append(f"</{tag}>")
    return "".join(out)


def to_xml(message: Message) -> bytes:
    """Return a message in its SOAP envelope."""
    declared = "".join(f' xmlns:{prefix}="{ns}"' for prefix, ns in NAMESPACES.items())
    header = element("mts:receiver", "string", message["to"])
    header += element("mts:serial", "int", message["serial"])
    if message["origin"]:
        header += element("mts:origin", "string", message["origin"])
    return (
        f"<soapenv:Envelope{declared}><soapenv:Header>{header}</soapenv:Header><soapenv:Body>"
        f"<mts:deliver><message>{event(message, 'event')}</message></mts:deliver>"
        "</soapenv:Body></soapenv:Envelope>"
    ).encode()


def messages(seed: int, count: int) -> list[bytes]:
    """Return `count` messages of one connection."""
    town = Town(seed)
    return [to_xml(town.message()) for _ in range(count)]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(messages(int(sys.argv[2]), int(sys.argv[3]))):
        (folder / f"{number:04}.xml").write_bytes(data)


if __name__ == "__main__":
    main()
