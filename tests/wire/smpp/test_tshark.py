"""Wireshark dissects what goes to an SMSC, down to the documents in pushes.

About `wire/smpp/` and `wire/sms/`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import Parcel
from lasthop.delivery.sms.composing import compose
from lasthop.delivery.sms.smpp_units import LongForm, SmppForm, prepare
from lasthop.wire.smpp.commands import SmppCommand
from lasthop.wire.smpp.smpp_pdus import (
    Bind,
    MessageAnswer,
    Pdu,
    SmppQuery,
    encode_pdu,
    phone_address,
)
from tests.wire.installed import need

pytestmark = pytest.mark.peer

LONG = "https://www.example.com/" + "a-long-path/" * 20
SI = '<si><indication href="{}" created="1999-06-25T15:23:15Z">You have mail</indication></si>'
PUSHES = (
    ("text/plain", "Dinner at eight"),
    ("text/plain", "x" * 400),
    ("text/plain", "Привет " * 30),
    ("text/vnd.wap.si", SI.format("http://www.xyz.com/a")),
    ("text/vnd.wap.si", SI.format(LONG)),
    ("text/vnd.wap.sl", '<sl href="http://www.xyz.com/a"/>'),
    ("text/vnd.wap.co", '<co><invalidate-object uri="http://www.xyz.com/a"/></co>'),
)


def conversation(long: LongForm) -> list[bytes]:
    """The PDUs of a session that submits every kind of push."""
    form = SmppForm(sender=phone_address("2948"), long=long)
    pdus = [Pdu(SmppCommand.BIND_TRANSCEIVER, 1, Bind("me", "secret"))]
    for reference, (media, body) in enumerate(PUSHES, 1):
        route = Route(Variant.SMS, "+15551999073")
        parcel = Parcel(route=route, content_type=media, headers=(), body=body.encode())
        for unit in prepare(compose(parcel, reference=reference), form, 0):
            pdus.append(Pdu(SmppCommand.SUBMIT_SM, len(pdus) + 1, unit.message))
    pdus.append(Pdu(SmppCommand.SUBMIT_SM_RESP, 2, MessageAnswer("0001")))
    pdus.append(Pdu(SmppCommand.QUERY_SM, len(pdus), SmppQuery("0001")))
    pdus.append(Pdu(SmppCommand.ENQUIRE_LINK, len(pdus)))
    return [encode_pdu(pdu) for pdu in pdus]


@pytest.mark.parametrize("long", LongForm)
def test_every_packet_is_named_and_none_is_malformed(long: LongForm, tmp_path: Path) -> None:
    need("tshark", "text2pcap")
    packets = conversation(long)
    dump, capture = tmp_path / "dump.txt", tmp_path / "dump.pcap"
    dump.write_text("".join(f"000000 {packet.hex(' ')}\n" for packet in packets))
    subprocess.run(
        ["text2pcap", "-q", "-T", "50000,2775", dump, capture], check=True, capture_output=True
    )
    command = [
        "tshark",
        "-n",
        "-r",
        str(capture),
        "-o",
        "gsm_sms_ud.port_number_udh_means_wsp:TRUE",
    ]
    command += ["-T", "fields", "-E", "separator=|", "-e", "frame.protocols", "-e", "_ws.malformed"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    lines = [line.split("|") for line in shown.stdout.rstrip("\n").split("\n")]
    assert len(lines) == len(packets)
    assert [line for line in lines if line[1]] == []
    assert all("smpp" in protocols for protocols, _ in lines)
    if long is LongForm.HEADER:
        named = [protocols for protocols, _ in lines]
        assert sum("wsp" in each and "wbxml" in each for each in named) >= 4
        assert any("gsm_sms_ud" in each or "gsm-sms-ud" in each for each in named)
