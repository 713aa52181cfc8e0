"""`lasthop codec` for Weft: sessions in files, at every level, with a schema or a profile.

About `runtime/cli/codec.py` and `runtime/formats/weft.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.conftest import Lasthop

SAMPLE = Path("bench/data/xml_events")
MESSAGES = sorted((SAMPLE / "messages").glob("*.xml"))


@pytest.fixture
def profile(lasthop: Lasthop, tmp_path: Path) -> Path:
    file = tmp_path / "profile"
    said = lasthop(
        *("codec", "train", "--format", "weft", *map(str, MESSAGES[10:20]), "-o", str(file)),
        "--json",
    ).json
    assert said == {"format": "weft", "samples": 10, "size": file.stat().st_size}
    return file


@pytest.mark.parametrize("known", ["nothing", "schema", "profile"])
@pytest.mark.parametrize("level", ["fast", "deflate", "max"])
def test_a_session_is_kept_in_files(
    lasthop: Lasthop, tmp_path: Path, profile: Path, level: str, known: str
) -> None:
    octets, back = tmp_path / "message.weft", tmp_path / "message.xml"
    beforehand = {
        "nothing": (),
        "schema": ("--schema", str(SAMPLE / "event.rnc")),
        "profile": ("--profile", str(profile)),
    }[known]
    shares = []
    for message in MESSAGES[:4]:
        lasthop(
            *("codec", "encode", "--format", "weft", "--level", level, *beforehand),
            *("--state", str(tmp_path / "sender"), str(message), "-o", str(octets)),
        )
        said = lasthop(
            *("codec", "decode", "--format", "weft", *beforehand, "--json"),
            *("--state", str(tmp_path / "receiver"), str(octets), "-o", str(back)),
        ).json
        assert said["level"] == level
        assert back.read_bytes() == message.read_bytes() + b"\n"
        shares.append(octets.stat().st_size / message.stat().st_size)
    assert shares[3] < 0.06
    assert shares[0] < {"nothing": 0.4, "schema": 0.2, "profile": 0.15}[known]


def test_a_level_lasts_until_another_is_asked_for(lasthop: Lasthop, tmp_path: Path) -> None:
    arguments = ("codec", "encode", "--format", "weft", "--state", str(tmp_path / "s"), "--hex")
    message = str(MESSAGES[0])
    assert lasthop(*arguments, "--level", "deflate", message).out.startswith("0500")
    assert lasthop(*arguments, message).out.startswith("01")
    assert lasthop(*arguments, "--level", "max", message).out.startswith("02")


def test_a_message_without_its_session_is_refused(lasthop: Lasthop, tmp_path: Path) -> None:
    octets = tmp_path / "out"
    for message in MESSAGES[:2]:
        lasthop(
            *("codec", "encode", "--format", "weft", "--state", str(tmp_path / "sender")),
            *(str(message), "-o", str(octets)),
        )
    said = lasthop("codec", "decode", "--format", "weft", str(octets), fails=True)
    assert "does not continue the session" in said.error


@pytest.mark.parametrize(
    "arguments, message, code",
    [
        (("encode", "--format", "weft", "--level", "best", "FILE"), "no level of weft", 2),
        (("encode", "--format", "xebu", "--level", "max", "FILE"), "has no levels", 2),
        (("encode", "--format", "xebu", "--profile", "FILE", "FILE"), "cannot be trained", 2),
        (("encode", "--format", "weft", "--profile", "FILE", "FILE"), "not a profile", 1),
        (("encode", "--format", "weft", "--state", "FILE", "FILE"), "damaged", 1),
        (("decode", "--format", "weft", "FILE"), "unknown form", 1),
        (("train", "--format", "xml", "FILE", "-o", "-"), "cannot be trained", 2),
        (
            ("encode", "--format", "weft", "--schema", "SCHEMA", "--profile", "FILE", "FILE"),
            "both a schema and a profile",
            1,
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    lasthop: Lasthop, tmp_path: Path, arguments: tuple[str, ...], message: str, code: int
) -> None:
    file = tmp_path / "a.xml"
    file.write_text("<a/>")
    places = {"FILE": str(file), "SCHEMA": str(SAMPLE / "event.rnc")}
    result = lasthop("codec", *(places.get(each, each) for each in arguments), fails=True)
    assert message in result.error
    assert result.code == code
