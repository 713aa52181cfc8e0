"""Initiators, a gateway and devices as real processes: pushes and what is heard of them.

About `runtime/cli/pap.py` and `access/pap/`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from lasthop.device.client import Device
from lasthop.runtime.certificates import subject_of
from lasthop.runtime.cli.pap_listener import PapListener
from lasthop.wire.pap.documents import ResultNotificationMessage
from lasthop.wire.pap.submission import PapSubmission
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DEADLINE, GatewayProcess, Process, eventually

ALICE = "WAPPUSH=alice/TYPE=USER@ppg.example.com"
PHONE = "WAPPUSH=+1-555-1999/TYPE=PLMN@ppg.example.com"

Heard = Queue[tuple[ResultNotificationMessage, PapSubmission]]


class EventListener:
    """An initiator that listens, and can be away."""

    def __init__(self) -> None:
        self.results: Heard = Queue()
        self._start(0)

    def _start(self, port: int) -> None:
        self._server = PapListener("127.0.0.1", port, lambda *heard: self.results.put(heard))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/results"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def hear(self) -> tuple[str, str, str, int]:
        message, _ = self.results.get(timeout=DEADLINE)
        return message.push_id, message.address, str(message.state), message.code

    def leave(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def come_back(self) -> None:
        self._start(self._server.server_address[1])


@pytest.fixture
def listener() -> Iterator[EventListener]:
    listener = EventListener()
    yield listener
    listener.leave()


def device(up: GatewayProcess, token: str, directory: Path) -> Process:
    arguments = ["device", "run", "--name", "phone", "--token", token, "--url", up.tcp]
    return Process(arguments, directory / "device.log")


def test_a_push_from_the_initiator_to_the_device_and_back(
    lasthop: Lasthop, tmp_path: Path, listener: EventListener
) -> None:
    with GatewayProcess(tmp_path / "data") as up:
        at = ("--url", up.http)
        pap = ("--url", f"{up.http}/pap")
        made = lasthop(
            "device", "register", "phone", "--user", "alice", "--address", "PLMN:+15551999",
            "--json", *at,
        ).json  # fmt: skip
        assert made["addresses"] == ["PLMN:+15551999"]
        lasthop("device", "change", "phone", "--capability", "Model=A1", *at)

        said = lasthop(
            "pap", "push", PHONE, "--text", "hello", "--push-id", "1@pi", "--notify", listener.url,
            "--progress-notes", "--json", *pap,
        ).json  # fmt: skip
        assert said["result"]["code"] == 1001
        assert [note["stage"] for note in said["progress"]] == ["received", "accepted"]
        again = lasthop("pap", "push", PHONE, "--text", "x", "--push-id", "1@pi", *pap, fails=True)
        assert again.out.startswith("2007 ")
        assert "pending" in lasthop("pap", "status", "1@pi", *pap).out
        assert "<prf:Model>A1</prf:Model>" in lasthop("pap", "ccq", ALICE, *pap).out

        lasthop(
            "pap", "push", ALICE, "--text", "x", "--push-id", "2@pi", "--notify", listener.url, *pap
        )
        lasthop("pap", "replace", "2@pi", ALICE, "--text", "y", "--push-id", "3@pi", *pap)
        assert listener.hear() == ("2@pi", ALICE, "cancelled", 1000)
        assert "1000 OK" in lasthop("pap", "cancel", "3@pi", *pap).out

        with device(up, made["token"], tmp_path) as phone:
            assert json.loads(phone.line())["body"] == "hello"
            assert listener.hear() == ("1@pi", PHONE, "delivered", 1000)
        late = lasthop("pap", "cancel", "1@pi", "--to", PHONE, *pap, fails=True)
        assert "2008 Cancellation Not Possible" in late.out
        (result,) = lasthop("pap", "status", "1@pi", "--json", *pap).json["results"]
        assert (result["state"], result["quality"]["method"]) == ("delivered", "confirmed")


def test_what_was_accepted_is_reported_across_kills_of_the_gateway(
    lasthop: Lasthop, tmp_path: Path, listener: EventListener
) -> None:
    listener.leave()
    with GatewayProcess(tmp_path / "data") as up:
        pap = ("--url", f"{up.http}/pap")
        token = lasthop("device", "register", "phone", "--json", "--url", up.http).json["token"]
        to = "WAPPUSH=phone/TYPE=USER@ppg"
        push = ("pap", "push", to, "--text", "hello", "--push-id", "1@pi", "--notify", listener.url)
        lasthop(*push, *pap)
        up.kill()
    with up.again() as up:
        assert lasthop(*push, *pap, fails=True).out.startswith("2007 ")
        with device(up, token, tmp_path) as phone:
            phone.line()
            # The outcome is known as soon as the device has said so; nobody hears it yet.
            status = ("pap", "status", "1@pi", *pap)
            eventually(lambda: "delivered" in lasthop(*status).out, "the push is delivered")
        up.kill()
    listener.come_back()
    with up.again() as up:
        assert listener.hear() == ("1@pi", to, "delivered", 1000)
        assert lasthop(*push, *pap, fails=True).out.startswith("2007 ")


@pytest.mark.conformance("PPG-GEN-S-024", "PPG-GEN-S-026")
def test_a_devices_answer_comes_back_in_the_result(
    lasthop: Lasthop, tmp_path: Path, listener: EventListener
) -> None:
    async def answer(up: GatewayProcess, token: str) -> None:
        async with Device(up.tcp, app="default", name="phone", token=token) as phone:
            async for message in phone.messages(automatic=False):
                reply = await phone.reply(message, b"yes, at noon", content_type="text/plain")
                await phone.done(message)
                await reply.accepted(timeout=DEADLINE)
                return

    with GatewayProcess(tmp_path / "data") as up:
        token = lasthop("device", "register", "phone", "--url", up.http).out.strip()
        push = ("pap", "push", "WAPPUSH=phone/TYPE=USER@ppg", "--text", "Lunch?")
        notify = ("--method", "confirmed-with-response", "--notify", listener.url)
        lasthop(*push, *notify, "--url", f"{up.http}/pap")
        asyncio.run(answer(up, token))
        message, given = listener.results.get(timeout=DEADLINE)
    assert message.state == "delivered"
    assert given.content is not None
    assert (given.content.content_type, given.content.body) == ("text/plain", b"yes, at noon")


@pytest.mark.conformance("PPG-GEN-S-011", "PPG-GEN-S-012", "PPG-GEN-S-022")
def test_a_service_indication_goes_over_the_air_in_its_binary_form(
    lasthop: Lasthop, tmp_path: Path, listener: EventListener
) -> None:
    document = tmp_path / "si.xml"
    document.write_text(
        '<?xml version="1.0"?><!DOCTYPE si PUBLIC "-//WAPFORUM//DTD SI 1.0//EN"'
        ' "http://www.wapforum.org/DTD/si.dtd">'
        '<si><indication href="http://www.example.com/">mail</indication></si>'
    )
    with (
        GatewayProcess(tmp_path / "data") as up,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handset,
    ):
        handset.bind(("127.0.0.1", 0))
        handset.settimeout(DEADLINE)
        route = f"wsp=127.0.0.1:{handset.getsockname()[1]}"
        at = ("--url", up.http)
        lasthop("device", "register", "handset", "--route", route, "--address", "MAN:12345678", *at)
        to = "WAPPUSH=12345678/TYPE=MAN@ppg"
        push = ("pap", "push", to, "--file", str(document), "--type", "text/vnd.wap.si")
        notify = ("--method", "unconfirmed", "--push-id", "1@pi", "--notify", listener.url)
        lasthop(*push, *notify, "--url", f"{up.http}/pap")
        datagram = handset.recv(2000)
        assert datagram[1] == 0x06  # A push PDU, behind its transaction number.
        assert bytes([0x02, 0x05, 0x6A]) in datagram or bytes([0x03, 0x05, 0x6A]) in datagram
        assert b"www" not in datagram  # "http://www." is one token of WBXML,
        assert b"example" in datagram
        assert listener.hear() == ("1@pi", to, "delivered", 1000)


def test_an_initiator_is_known_by_its_certificate(lasthop: Lasthop, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    config = tmp_path / "lasthop.toml"
    config.write_text(
        f'[tls]\ncert = "{certificates.server}"\nkey = "{certificates.key}"\n'
        f'client_ca = "{certificates.authority}"\n'
        '[access]\nanonymous = "never"\n'
    )
    data = tmp_path / "data"
    subject = "CN=shop,O=Example\\, Inc."
    made = lasthop("credential", "add", "shop", "--certificate", subject, "--data", str(data))
    assert made.out == f"shop is the holder of the certificate {subject}\n"
    lasthop("device", "register", "phone", "--data", str(data))
    with GatewayProcess(data, "--config", str(config)) as up:
        url = f"{up.http.replace('127.0.0.1', 'localhost')}/pap"
        push = ("pap", "push", "WAPPUSH=phone/TYPE=USER@ppg", "--text", "x", "--url", url)
        trusting = (*push, "--ca", str(certificates.authority))
        shown = ("--certificate", str(certificates.client), "--key", str(certificates.client_key))
        assert lasthop(*trusting, *shown).out.startswith("1001 ")
        assert "401 Unauthorized" in lasthop(*trusting, fails=True).error
        # A certificate that nobody here signed does not even get through the handshake.
        stranger = ("--certificate", str(certificates.stranger))
        assert "lost the gateway" in lasthop(*trusting, *stranger, fails=True).error
        assert "CERTIFICATE_VERIFY_FAILED" in lasthop(*push, *shown, fails=True).error


class Certificates:
    """An authority, a server and a client that it certifies, and somebody else."""

    def __init__(self, directory: Path) -> None:
        self.authority = directory / "ca.pem"
        self.key, self.server = directory / "server.key", directory / "server.pem"
        self.client_key, self.client = directory / "client.key", directory / "client.pem"
        self.stranger = directory / "stranger.pem"
        ca_key = directory / "ca.key"
        usage = ("-addext", "keyUsage = critical, keyCertSign, cRLSign")
        self._make(ca_key, self.authority, "/CN=test authority", *usage)
        signed = ("-CA", self.authority, "-CAkey", ca_key, "-addext", "basicConstraints=CA:FALSE")
        names = ("-addext", "subjectAltName = DNS:localhost")
        self._make(self.key, self.server, "/CN=localhost", *signed, *names)
        self._make(self.client_key, self.client, "/O=Example, Inc./CN=shop", *signed)
        self._make(self.stranger, self.stranger, "/O=Example, Inc./CN=shop")

    def _make(self, key: Path, certificate: Path, subject: str, *more: object) -> None:
        pem = certificate.with_suffix(".crt") if key == certificate else certificate
        command = (
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-keyout", key, "-out", pem, "-subj", subject, "-days", "2", *more,
        )  # fmt: skip
        subprocess.run([str(part) for part in command], check=True, capture_output=True)
        if key == certificate:
            certificate.write_bytes(key.read_bytes() + pem.read_bytes())


@pytest.mark.parametrize(
    "certificate, subject",
    [
        ({}, ""),
        ({"subject": ((("countryName", "SE"),), (("commonName", "a"),))}, "CN=a,C=SE"),
        ({"subject": ((("commonName", 'a,b+"c\\'),),)}, 'CN=a\\,b\\+\\"c\\\\'),
        ({"subject": ((("commonName", " #a "),),)}, "CN=\\ #a\\ "),
        ({"subject": ((("commonName", "a"), ("serialNumber", "1")),)}, "CN=a+serialNumber=1"),
    ],
)
def test_subjects_are_written_as_the_rfc_has_it(
    certificate: dict[str, object], subject: str
) -> None:
    assert subject_of(certificate) == subject


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["push", ALICE], "no content to push: give --text or --file"),
        (["push", ALICE, "--text", "x", "--method", "maybe"], "--method must be one of"),
        (["push", ALICE, "--text", "x", "--before", "soon"], "a time must be like 10m, 2h or"),
        (["push", ALICE, "--text", "x", "--header", "X"], "--header must be 'NAME: VALUE'"),
        (["push", ALICE, "--text", "x", "--url", "ftp://x"], "--url must be like"),
        (["push", ALICE, "--text", "x", "--url", "http://127.0.0.1:1/"], "there is no gateway at"),
        (
            ["push", ALICE, "--text", "x", "--method", "oneshot", "--pap-version", "2.0"],
            "this is not a request of PAP",
        ),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(
    lasthop: Lasthop, arguments: list[str], message: str
) -> None:
    assert message in lasthop("pap", *arguments, fails=True).error


def test_an_answer_that_is_no_pap_is_said_so(lasthop: Lasthop, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data") as up:
        elsewhere = ("--url", f"{up.http}/health")
        assert (
            "did not answer in PAP" in lasthop("pap", "status", "1", *elsewhere, fails=True).error
        )


def test_addresses_are_administered(lasthop: Lasthop, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    said = lasthop("address", "set", "user:staff@example.org", "topic:staff", *data).out
    assert said == "USER:staff%40example.org stands for topic:staff\n"
    assert lasthop("address", "list", "--json", *data).json == {
        "address": "USER:staff%40example.org",
        "target": "topic:staff",
    }
    with GatewayProcess(tmp_path / "data") as up:
        at = ("--url", up.http)
        assert "USER:staff%40example.org" in lasthop("address", "list", *at).out
        lasthop("address", "remove", "USER:staff%40example.org", *at)
        assert "no such address" in lasthop("address", "remove", "USER:x", *at, fails=True).error
        assert "TYPE:VALUE" in lasthop("address", "set", "staff", "app:", *at, fails=True).error
    assert lasthop("address", "list", "--json", *data).out == ""
