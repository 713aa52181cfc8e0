"""`lasthop codec` for XML messages: sessions that are kept in files between two calls.

About `runtime/cli/codec.py` and `runtime/formats/xebu.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.conftest import Lasthop

MESSAGES = sorted(Path("bench/data/xml_events/messages").glob("*.xml"))[:6]


def test_a_session_is_kept_in_files(lasthop: Lasthop, tmp_path: Path) -> None:
    octets, back = tmp_path / "message.xebu", tmp_path / "message.xml"
    ends = {side: ("--state", str(tmp_path / side)) for side in ("sender", "receiver")}
    shares = []
    for message in MESSAGES:
        lasthop(
            *("codec", "encode", "--format", "xebu", str(message), "-o", str(octets)),
            *ends["sender"],
        )
        lasthop(
            *("codec", "decode", "--format", "xebu", str(octets), "-o", str(back)),
            *ends["receiver"],
        )
        assert back.read_bytes() == message.read_bytes() + b"\n"
        shares.append(octets.stat().st_size / message.stat().st_size)
    assert shares[-1] < 0.75 * shares[0]
    assert {path.name for path in tmp_path.iterdir()} == {
        *("message.xebu", "message.xml"),
        *ends,
    }


def test_a_failure_leaves_the_state_as_it_was(lasthop: Lasthop, tmp_path: Path) -> None:
    state, broken, octets = tmp_path / "state", tmp_path / "broken.xml", tmp_path / "out"
    arguments = ("codec", "encode", "--format", "xebu", "--state", str(state), "-o", str(octets))
    lasthop(*arguments, str(MESSAGES[0]))
    before = state.read_bytes()
    broken.write_text("<new><unheard-of></new>")
    assert "mismatched tag" in lasthop(*arguments, str(broken), fails=True).error
    assert state.read_bytes() == before


def test_machines_get_the_events_counted(lasthop: Lasthop, tmp_path: Path) -> None:
    text, octets = tmp_path / "a.xml", tmp_path / "a.xebu"
    text.write_text("<a>x</a>")
    lasthop("codec", "encode", "--format", "xebu", "--type", "item", str(text), "-o", str(octets))
    said = lasthop("codec", "decode", "--format", "xebu", str(octets), "--json").json
    assert said == {
        "format": "xebu",
        "type": "item",
        "size": octets.stat().st_size,
        "events": 5,
        "message": 1,
        "text": "<a>x</a>",
    }


@pytest.mark.parametrize(
    "name, state, message, code",
    [
        ("wbxml", b"", "keeps no state", 2),
        ("xml", b"", "keeps no state", 2),
        ("xebu", b"junk", "a snapshot is damaged", 1),
    ],
)
def test_a_state_that_does_not_fit_is_refused(
    lasthop: Lasthop, tmp_path: Path, name: str, state: bytes, message: str, code: int
) -> None:
    file, kept = tmp_path / "a.xml", tmp_path / "state"
    file.write_text("<a/>")
    kept.write_bytes(state)
    arguments = ("--format", name, "--state", str(kept), str(file))
    result = lasthop("codec", "encode", *arguments, fails=True)
    assert message in result.error
    assert result.code == code


def test_a_session_keeps_its_type(lasthop: Lasthop, tmp_path: Path) -> None:
    file, kept = tmp_path / "a.xml", tmp_path / "state"
    file.write_text("<a/>")
    arguments = ("codec", "encode", "--format", "xebu", "--state", str(kept), str(file), "--hex")
    lasthop(*arguments, "--type", "item")
    assert lasthop(*arguments).out.startswith("8183")
    assert "the type of the session" in lasthop(*arguments, "--type", "data", fails=True).error


def test_xml_is_written_again_as_it_is_or_canonical(lasthop: Lasthop, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text("<!--x--><p:a xmlns:p='urn:p' b='1'   a='2'></p:a>")
    out = tmp_path / "b.xml"
    arguments = ("codec", "encode", "--format", "xml", str(file), "-o", str(out))
    lasthop(*arguments)
    assert out.read_text() == '<!--x--><p:a xmlns:p="urn:p" b="1" a="2"/>'
    lasthop(*arguments, "--type", "canonical")
    assert out.read_text() == '<n0:a xmlns:n0="urn:p" a="2" b="1"></n0:a>'
    said = lasthop("codec", "decode", "--format", "xml", str(file), "--json").json
    assert said["events"] == 8


SCHEMA = Path("bench/data/xml_events/event.rnc")


def test_a_schema_makes_messages_smaller(lasthop: Lasthop, tmp_path: Path) -> None:
    octets, back = tmp_path / "message.xebu", tmp_path / "message.xml"
    for message in MESSAGES[:3]:
        for verb, source, target in (("encode", message, octets), ("decode", octets, back)):
            lasthop(
                *("codec", verb, "--format", "xebu", str(source), "-o", str(target)),
                *("--schema", str(SCHEMA), "--state", str(tmp_path / verb)),
            )
        assert back.read_bytes() == message.read_bytes() + b"\n"
        assert octets.stat().st_size < 0.2 * message.stat().st_size
    said = lasthop("codec", "decode", "--format", "xebu", str(octets), fails=True).error
    assert "the message leaves out what a schema foresees; give the schema" in said
    arguments = ("--format", "xebu", "--state", str(tmp_path / "decode"))
    plain = tmp_path / "plain"
    plain.write_bytes(b"\xc1")
    said = lasthop("codec", "decode", *arguments, str(plain), fails=True).error
    assert "the snapshot is of a session with another schema" in said


def test_a_schema_may_have_several_files(lasthop: Lasthop, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "b.rnc").write_text("element b { xsd:int }")
    schema, file = tmp_path / "a.rnc", tmp_path / "a.xml"
    schema.write_text('element a { external "parts/b.rnc"* }')
    file.write_text("<a><b>5</b></a>")
    arguments = ("codec", "encode", "--format", "xebu", str(file), "--schema", str(schema))
    assert lasthop(*arguments, "--hex").out.strip().endswith("4c0504")


@pytest.mark.parametrize(
    "name, schema, message, code",
    [
        ("wbxml", "element a { empty }", "wbxml uses no schema", 2),
        ("xebu", "element a { ", "something else was expected (source=", 1),
        ("xebu", 'external "b.rnc"', "No such file", 1),
        ("xebu", 'external "http://a.example/b.rnc"', "only refer to files on this machine", 1),
    ],
)
def test_a_schema_that_cannot_be_used_is_an_error(
    lasthop: Lasthop, tmp_path: Path, name: str, schema: str, message: str, code: int
) -> None:
    file, rules = tmp_path / "a.xml", tmp_path / "a.rnc"
    file.write_text("<a/>")
    rules.write_text(schema)
    arguments = ("--format", name, "--schema", str(rules), str(file))
    result = lasthop("codec", "encode", *arguments, fails=True)
    assert message in result.error
    assert result.code == code
