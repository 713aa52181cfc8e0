"""Wireshark dissects whole conversations of ours: sessions, pushes, aborts, invitations.

About `wire/ota/`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from lasthop.clock import SECOND
from lasthop.delivery.ota.sessions import invitation_unit
from lasthop.wire.ota.terminal import UNKNOWN
from lasthop.wire.ota.transform import PushContent, for_wsp, wsp_headers
from lasthop.wire.ota.wsp_session import USERDCR
from lasthop.wire.wsp.addresses import Address
from lasthop.wire.wsp.capabilities import Capabilities, WspOptions
from lasthop.wire.wsp.headers import Header
from lasthop.wire.wsp.pdus import Push, encode_pdu
from lasthop.wire.wsp.sir import OTA_HTTP, Sir
from tests.wire.installed import need
from tests.wire.ota.phone import SERVER
from tests.wire.ota.test_wsp_session import BOTH, Server, connected
from tests.wire.wtp.air import Air, Weather

pytestmark = pytest.mark.peer

SI = (
    b'<si><indication href="http://www.example.com/a" action="delete" si-id="1">x</indication></si>'
)
FIELDS = (
    "_ws.malformed",
    "_ws.expert.message",
    "wtp.pdu_type",
    "wtp.inv.transaction_class",
    "wtp.abort.reason.user",
    "wtp.ack.tvetok",
    "wsp.pdu_type",
    "wsp.header.content_type",
    "wsp.header.x_wap_application_id",
)


def dissected(tmp_path: Path, datagrams: list[bytes], *, port: int) -> list[dict[str, str]]:
    """What Wireshark sees in these datagrams."""
    need("tshark", "text2pcap")
    dump = tmp_path / "dump.txt"
    dump.write_text("".join(f"000000 {data.hex(' ')}\n" for data in datagrams))
    capture = tmp_path / "dump.pcap"
    subprocess.run(
        ["text2pcap", "-q", "-u", f"50000,{port}", dump, capture], check=True, capture_output=True
    )
    command = ["tshark", "-r", str(capture), "-T", "fields", "-E", "occurrence=a"]
    for field in FIELDS:
        command += ["-e", field]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    lines = shown.stdout.rstrip("\n").split("\n")
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in lines]


def conversation() -> list[bytes]:
    """A session with everything in it, over a network that loses some."""
    air = Air(3, Weather(loss=0.1, doubling=0.1, clears_at=20 * SECOND))
    server = Server(air)
    headers = (
        Header("Accept", "application/vnd.wap.sic"),
        Header("Accept-Application", "x-wap-application:wml.ua"),
        Header("User-Agent", "TestUA/1.0"),
        Header("Encoding-Version", "1.4"),
    )
    wanted = Capabilities(
        client_sdu_size=60_000,
        options=BOTH | WspOptions.SESSION_RESUME,
        method_outstanding=1,
        push_outstanding=2,
    )
    phone = connected(air, headers=headers, capabilities=wanted)
    air.run(until=lambda: server.sessions.session(phone.host) is not None)
    air.run(limit=30 * SECOND)
    si = for_wsp(PushContent("text/vnd.wap.si", (), SI), UNKNOWN)
    long = b"x" * 5000
    phone.refuses = {b"no": USERDCR}
    for body, media in ((si.body, si.content_type), (long, "text/plain"), (b"no", "text/plain")):
        push = Push(media, wsp_headers(si), body, confirmed=True)
        server.sessions.push_confirmed(server.session(), encode_pdu(push), air.now)
        air.run(limit=30 * SECOND)
    unconfirmed = Push(si.content_type, wsp_headers(si), si.body)
    server.sessions.push(server.session(), encode_pdu(unconfirmed), air.now)
    air.run(limit=30 * SECOND)
    phone.client.suspend(air.now)
    phone.client.resume(air.now)
    air.run(limit=30 * SECOND)
    phone.client.disconnect(air.now)
    air.run(limit=30 * SECOND)
    assert phone.had == {si.body: 2, long: 1}
    sides: set[Any] = {source for source, _, _ in air.captured}
    assert SERVER in sides
    return [data for _, _, data in air.captured]


def test_a_whole_session_is_dissected_without_complaint(tmp_path: Path) -> None:
    datagrams = conversation()
    seen = dissected(tmp_path, datagrams, port=9201)
    assert len(seen) == len(datagrams)
    for packet, data in zip(seen, datagrams, strict=True):
        assert not packet["_ws.malformed"], data.hex()
        assert not packet["_ws.expert.message"], (packet, data.hex())
    # Invoke, Result, Ack, Abort and segmented Invoke.
    assert {int(packet["wtp.pdu_type"], 0) for packet in seen} == {1, 2, 3, 4, 5}
    assert {packet["wtp.inv.transaction_class"] for packet in seen} >= {"0x00", "0x01", "0x02"}
    assert {packet["wtp.ack.tvetok"] for packet in seen} == {"", "0", "1"}
    assert f"{USERDCR:#04x}" in {packet["wtp.abort.reason.user"] for packet in seen}
    spoken = {int(packet["wsp.pdu_type"], 0) for packet in seen if packet["wsp.pdu_type"]}
    # Connect, ConnectReply, Reply, Disconnect, Push, ConfirmedPush, Suspend and Resume.
    assert spoken == {1, 2, 4, 5, 6, 7, 8, 9}


def test_a_request_for_a_session_is_dissected(tmp_path: Path) -> None:
    contact = Address(bytes((192, 0, 2, 10)), 9201)
    requests = [
        Sir(wsp_contacts=(contact,)),
        Sir(
            version=1,
            wsp_contacts=(contact,),
            other_contacts=(Address(bytes((192, 0, 2, 10)), 4035),),
            protocol_options=(OTA_HTTP,),
        ),
    ]
    units = [invitation_unit(request, n) for n, request in enumerate(requests, 1)]
    for packet in dissected(tmp_path, units, port=2948):
        assert not packet["_ws.malformed"]
        assert not packet["_ws.expert.message"]
