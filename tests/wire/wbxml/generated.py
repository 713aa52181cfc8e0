"""Documents by the thousand from a seed, for peers that are asked about many at once."""

from datetime import UTC, datetime, timedelta
from random import Random

from lasthop.wire.wbxml.document import WbxmlDocument, WbxmlElement
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import CO, EMN, SI, SL

WORDS = (
    *("mail", "news", "You", "have", "4", "new", "example", "a.b-c_d", "~user", "%20", "2024"),
    *("&amp", "<b>", '"quoted"', "'single'", "?x=1&y=2", ";z", "#part", "http://", "https://www."),
    *("naïve", "Ünïcode", "Привет", "你好", "🎉", ".com/", ".org/", ".net", ".edu/x"),
)
SCHEMES = ("http://", "http://www.", "https://", "https://www.", "ftp://", "")
ENDINGS = (".com/", ".edu/", ".net/", ".org/", ".com", ".de/", "")


def generate(language: Language, random: Random) -> WbxmlDocument:
    """A valid document."""
    makers = {SI: _si, SL: _sl, CO: _co, EMN: _emn}
    return WbxmlDocument(language, makers[language](random))


def _text(random: Random) -> str:
    separators = random.choices((" ", "  ", "\n", "\t"), (20, 1, 1, 1), k=8)
    words = (random.choice(WORDS) + random.choice(separators) for _ in range(random.randrange(9)))
    return "".join(words)


def _uri(random: Random) -> str:
    path = "/".join(random.choice(WORDS) for _ in range(random.randrange(4)))
    host = random.choice(("example", "xyz", "www.example", "push.example", "mail"))
    return random.choice(SCHEMES) + host + random.choice(ENDINGS) + path


def _date(random: Random) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(2**32))
    if random.random() < 0.5:
        moment = moment.replace(second=0)
        if random.random() < 0.5:
            moment = moment.replace(minute=0)
        if random.random() < 0.5:
            moment = moment.replace(hour=0)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _si(random: Random) -> WbxmlElement:
    attributes: dict[str, str] = {}
    for name, value in (
        ("href", _uri(random)),
        ("si-id", _uri(random) or "x"),
        ("created", _date(random)),
        ("si-expires", _date(random)),
        ("action", random.choice(sorted(SI.models["indication"].choices["action"]))),
    ):
        if random.random() < 0.6:
            attributes[name] = value
    if attributes.get("action") == "delete":
        attributes.setdefault("si-id", "x")
    indication = WbxmlElement("indication", attributes, _content(random))
    if random.random() < 0.7:
        return WbxmlElement("si", {}, (indication,))
    items = tuple(
        WbxmlElement("item", {"class": random.choice(("a", "b.c", "d-1"))}, _content(random))
        for _ in range(random.randrange(1, 4))
    )
    return WbxmlElement("si", {}, (indication, WbxmlElement("info", {}, items)))


def _content(random: Random) -> tuple[str, ...]:
    text = _text(random)
    return (text,) if text else ()


def _sl(random: Random) -> WbxmlElement:
    attributes = {"href": _uri(random)}
    if random.random() < 0.7:
        attributes["action"] = random.choice(sorted(SL.models["sl"].choices["action"]))
    return WbxmlElement("sl", attributes)


def _co(random: Random) -> WbxmlElement:
    tags = ("invalidate-object", "invalidate-service")
    operations = (
        WbxmlElement(random.choice(tags), {"uri": _uri(random)})
        for _ in range(random.randrange(1, 5))
    )
    return WbxmlElement("co", {}, tuple(operations))


def _emn(random: Random) -> WbxmlElement:
    scheme = random.choice(("mailat:", "pop://", "imap://", "http://", "https://www.", ""))
    host = "example" + random.choice((".com", ".com/", ".edu", ".net/x", ".org", ".de"))
    attributes = {"mailbox": f"{scheme}{random.choice(WORDS)}@{host}"}
    if random.random() < 0.7:
        attributes["timestamp"] = _date(random)
    return WbxmlElement("emn", attributes)
