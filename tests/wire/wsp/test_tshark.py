"""Wireshark dissects our pushes without a complaint, and sees in them what we put in.

About `wire/wsp/headers.py` and `wire/wsp/pdus.py`.
"""

import subprocess
from pathlib import Path
from random import Random

import pytest

from lasthop.wire.wbxml.encoder import encode
from lasthop.wire.wbxml.languages import CO, SI, SL
from lasthop.wire.wsp.content_types import CONTENT_TYPES
from lasthop.wire.wsp.headers import Field, Header
from lasthop.wire.wsp.httpdate import format_http_date
from lasthop.wire.wsp.pdus import Push, encode_unit
from lasthop.wire.wsp.primitives import Version
from tests.wire.installed import need
from tests.wire.wbxml.generated import generate

pytestmark = pytest.mark.peer

PUSHES = 600
WAP_PUSH = 2948
"""Where connectionless pushes go."""

FIELDS = (
    "wsp.TID",
    "wsp.pdu_type",
    "wsp.header.content_type",
    "wsp.parameter.charset",
    "wsp.header.initiator_uri",
    "wsp.header.push_flag",
    "wsp.header.content_length",
    "wsp.header.content_encoding",
    "_ws.malformed",
    "_ws.expert.message",
)

DISSECTED = frozenset(
    {0x02, 0x03, 0x08, 0x0A, 0x1D, 0x1E, 0x20, 0x21, 0x27, 0x28, 0x2D, 0x2F, 0x31, 0x35, 0x3D}
)
"""Media types of plain content, which has no structure to be complained about."""


def _headers(random: Random) -> list[Header]:
    date = format_http_date(random.randrange(2**32))
    choices = [
        Header("X-Wap-Application-Id", random.choice(["2", "x-wap-application:mms.ua", "36866"])),
        Header("X-Wap-Application-Id", "http://apps.example.org/my.ua"),
        Header("X-Wap-Content-URI", "http://www.example.com/mail/"),
        Header("Date", date),
        Header("Expires", date),
        Header("Last-Modified", date),
        Header("Cache-Control", random.choice(["no-transform", "no-cache", "max-age=3600"])),
        Header("Content-Language", random.choice(["en", "de", "la"])),
        Header("Content-Location", "http://pi.example.org/c"),
        Header("Content-Disposition", "attachment; filename=a.txt"),
        Header("Content-ID", "<a@pi.example.org>"),
        Header("Encoding-Version", "1.4"),
        Header("ETag", '"abc"'),
        Header("Accept-Charset", random.choice(["utf-8", "utf-8; q=0.5", "iso-10646-ucs-2"])),
        Header("Accept-Language", random.choice(["en", "fr; q=0.333"])),
        Header("Bearer-Indication", str(random.randrange(20))),
        Header("Retry-After", random.choice([date, "120"])),
        Header("Vary", "Accept-Language"),
        Header("Age", str(random.randrange(2**20))),
        Header("X-Foo", "bar"),
        Header("Via", "1.1 gateway"),
    ]
    return random.sample(choices, random.randrange(8))


def _push(random: Random) -> tuple[Push, Version]:
    """A push with a document or a text, and the encoding version to write it in."""
    if random.random() < 0.5:
        language = random.choice([SI, SL, CO])
        media, data = language.binary_type, encode(generate(language, random))
    else:
        media, data = CONTENT_TYPES[random.choice(sorted(DISSECTED))][0], b""
    media += random.choice(["", "; charset=utf-8", "; charset=iso-8859-1"])
    watched = [
        Header("X-Wap-Initiator-URI", f"http://pi.example.org/{random.randrange(1000)}"),
        Header("Push-Flag", str(random.randrange(8))),
        Header("Content-Length", str(len(data))),
        Header("Content-Encoding", random.choice(["gzip", "deflate"])),
    ]
    headers: list[Field] = [*watched, *_headers(random)]
    random.shuffle(headers)
    return Push(media, tuple(headers), data), random.choice([(1, 2), (1, 3), (1, 4)])


def _dissect(datagrams: list[bytes], folder: Path) -> list[dict[str, str]]:
    """What tshark sees in each datagram: one capture, one run."""
    dump = folder / "pushes.txt"
    dump.write_text("".join(f"000000 {each.hex(' ')}\n" for each in datagrams))
    capture = folder / "pushes.pcap"
    _run("text2pcap", "-q", "-u", f"9200,{WAP_PUSH}", str(dump), str(capture))
    wanted = [word for field in FIELDS for word in ("-e", field)]
    said = _run("tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "separator=|", *wanted)
    return [dict(zip(FIELDS, line.split("|"), strict=True)) for line in said.splitlines()]


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    return done.stdout


def test_pushes_are_dissected_without_complaint(tmp_path: Path) -> None:
    need("tshark", "text2pcap")
    random = Random("tshark")
    pushes = [_push(random) for _ in range(PUSHES)]
    datagrams = [
        encode_unit(number % 256, push, version=version)
        for number, (push, version) in enumerate(pushes)
    ]
    seen = _dissect(datagrams, tmp_path)
    assert len(seen) == PUSHES
    for number, ((push, _), fields) in enumerate(zip(pushes, seen, strict=True)):
        said = {header.name: header.value for header in push.headers if isinstance(header, Header)}
        assert fields["_ws.malformed"] == "", (fields, datagrams[number].hex())
        assert fields["_ws.expert.message"] == "", (fields, datagrams[number].hex())
        assert int(fields["wsp.TID"], 16) == number % 256
        assert int(fields["wsp.pdu_type"], 16) == 6
        media, _, charset = push.content_type.partition("; charset=")
        assert fields["wsp.header.content_type"] == media
        assert fields["wsp.parameter.charset"].lower() == charset
        assert fields["wsp.header.initiator_uri"] == said["X-Wap-Initiator-URI"]
        assert fields["wsp.header.push_flag"].count("(") == int(said["Push-Flag"]).bit_count()
        assert fields["wsp.header.content_length"] == said["Content-Length"]
        assert fields["wsp.header.content_encoding"] == said["Content-Encoding"]
