"""Certificates are renewed while the gateway runs, for every listener, and nobody is cut off."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import shutil
import signal
import socket
import ssl
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from lasthop.device.client import Device
from lasthop.runtime import tls as renewal
from lasthop.runtime.failure import Failure
from lasthop.runtime.gauges import show_certificates
from lasthop.runtime.metrics import Metrics
from lasthop.runtime.serve import running
from lasthop.runtime.settings import Settings, Tls, load
from lasthop.runtime.tls import Certificates
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DEADLINE, GatewayProcess, eventually
from tests.runtime.test_interconnects import never
from tests.transport.certificates import Authority


class Renewed:
    """The files of a gateway, first from one authority and then from another."""

    def __init__(self, directory: Path) -> None:
        self.authorities = []
        for name in ("old", "new"):
            (directory / name).mkdir()
            self.authorities.append(Authority(directory / name))
        self.cert, self.key = directory / "cert.pem", directory / "key.pem"
        self.client_ca = directory / "clients.pem"
        self.put(0)

    def put(self, which: int, *, key: bool = True) -> None:
        """Replace the files as `mv` does: nobody sees half of one."""
        authority = self.authorities[which]
        pairs = [(authority._chain, self.cert), (authority.certificate, self.client_ca)]
        for source, target in [*pairs, *([(authority._key, self.key)] if key else [])]:
            written = target.with_suffix(".written")
            shutil.copy(source, written)
            written.replace(target)

    def spoil(self, name: str, text: str | None) -> Path:
        """Write nonsense into one of the files, or remove it."""
        path: Path = getattr(self, name)
        path.unlink()
        if text is not None:
            path.write_text(text)
        return path

    def self_sign(self, extension: str) -> None:
        """Put a certificate with this extension in place, and its key."""
        files = ["-keyout", str(self.key), "-out", str(self.cert), "-addext", extension]
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command = ["openssl", "req", "-x509", *kind, *files, "-subj", "/CN=localhost"]
        subprocess.run(command, check=True, capture_output=True)

    def lock(self) -> None:
        """Encrypt the key with a password."""
        locked = self.key.with_suffix(".locked")
        files = ["-in", str(self.key), "-out", str(locked)]
        command = ["openssl", "ec", "-aes128", "-passout", "pass:secret", *files]
        subprocess.run(command, check=True, capture_output=True)
        locked.replace(self.key)

    @property
    def settings(self) -> Tls:
        return Tls(cert=str(self.cert), key=str(self.key), client_ca=str(self.client_ca))

    def options(self, directory: Path) -> Settings:
        options = {
            "data": str(directory / "data"),
            "http.listen": "127.0.0.1:0",
            "tcp.listen": "127.0.0.1:0",
            "beep.listen": "127.0.0.1:0",
            "tls.cert": str(self.cert),
            "tls.key": str(self.key),
        }
        return load(options=options)


@pytest.fixture
def renewed(tmp_path: Path) -> Renewed:
    return Renewed(tmp_path)


def device(url: str, authority: Authority, name: str) -> Device:
    tls = authority.client()
    return Device(url, app="default", name=name, tls=tls, learn_heartbeat=False)


async def test_every_listener_shows_the_renewed_certificate_and_keeps_its_devices(
    renewed: Renewed, tmp_path: Path
) -> None:
    old, new = renewed.authorities
    settings = renewed.options(tmp_path)
    certificates = Certificates(settings.tls)
    async with running(settings, never, certificates=certificates) as places:
        for url in map(str, (places.tcp, places.websocket, places.requests, places.beep)):
            scheme = url.partition(":")[0]
            async with device(url, old, f"{scheme}-before") as before:
                await before.contact(timeout=20)
                renewed.put(1)
                await certificates.reload()
                async with device(url, new, f"{scheme}-after") as after:
                    await after.contact(timeout=20)
                assert before.channels == 1
                renewed.put(0)
                await certificates.reload()
    assert certificates.outcomes == {"reloaded": 8, "failed": 0}


async def test_files_that_change_are_read_without_being_asked(
    renewed: Renewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "CHECK_EVERY", 0.01)
    certificates = Certificates(renewed.settings)
    first = certificates.web
    following = asyncio.create_task(certificates.follow())
    await asyncio.sleep(0.1)
    assert certificates.web is first
    renewed.put(1)
    async with asyncio.timeout(DEADLINE):
        while not certificates.outcomes["reloaded"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert certificates.web is not first
    following.cancel()


async def test_what_cannot_be_used_is_told_once_and_changes_nothing(renewed: Renewed) -> None:
    certificates = Certificates(renewed.settings)
    first, ends = certificates.web, certificates.expires
    renewed.put(1, key=False)
    with structlog.testing.capture_logs() as logs:
        await certificates.reload(changed_only=True)
        await certificates.reload(changed_only=True)
    (line,) = logs
    assert line["event"] == "the TLS certificate stays as it was"
    assert line["why"].startswith(f"cannot use the TLS certificate {renewed.cert}: ")
    assert (certificates.web, certificates.expires) == (first, ends)
    renewed.put(1)
    with structlog.testing.capture_logs() as logs:
        await certificates.reload(changed_only=True)
    assert [line["event"] for line in logs] == ["the TLS certificate was reloaded"]
    assert certificates.outcomes == {"reloaded": 1, "failed": 1}


@pytest.mark.parametrize(
    "name, text, why",
    [
        ("cert", "nothing", "cannot use the TLS certificate {path}: "),
        ("key", "nothing", "cannot use the TLS certificate "),
        ("client_ca", "nothing", "cannot use the authorities of client certificates {path}: "),
        ("cert", None, "cannot use the TLS certificate {path}: "),
    ],
)
async def test_no_file_that_is_wrong_ends_a_gateway(
    renewed: Renewed, name: str, text: str | None, why: str
) -> None:
    certificates = Certificates(renewed.settings)
    path = renewed.spoil(name, text)
    with structlog.testing.capture_logs() as logs:
        await certificates.reload()
    assert logs[0]["why"].startswith(why.format(path=path))
    with pytest.raises(Failure):
        Certificates(renewed.settings)


async def test_a_certificate_that_is_not_for_servers_takes_no_others_place(
    renewed: Renewed,
) -> None:
    certificates = Certificates(renewed.settings)
    first = certificates.web
    renewed.self_sign("extendedKeyUsage = clientAuth")
    with structlog.testing.capture_logs() as logs:
        await certificates.reload()
    assert "certificate purpose" in logs[0]["why"]
    assert certificates.web is first
    # Where there is no other, it is better than none.
    started = Certificates(renewed.settings)
    assert math.isnan(started.expires)
    assert started._ends == "unknown"


async def test_a_key_with_a_password_does_not_wait_for_somebody_to_type_it(
    renewed: Renewed,
) -> None:
    certificates = Certificates(renewed.settings)
    renewed.lock()
    with structlog.testing.capture_logs() as logs:
        await certificates.reload()
    assert "it has a password" in logs[0]["why"]


def test_the_end_of_the_certificate_is_a_metric(renewed: Renewed) -> None:
    metrics, certificates = Metrics(), Certificates(renewed.settings)
    show_certificates(metrics, certificates)
    shown = metrics.render().decode()
    (line,) = [
        line
        for line in shown.splitlines()
        if line.startswith("lasthop_tls_certificate_expires_timestamp_seconds ")
    ]
    said = subprocess.run(
        ["openssl", "x509", "-enddate", "-noout", "-in", str(renewed.cert)],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    assert float(line.split()[1]) == ssl.cert_time_to_seconds(said.removeprefix("notAfter="))
    assert 'lasthop_tls_reloads_total{outcome="failed"} 0.0' in shown


def test_sighup_renews_a_running_gateway(renewed: Renewed, tmp_path: Path) -> None:
    config = tmp_path / "lasthop.toml"
    config.write_text(
        f'[tls]\ncert = "{renewed.cert}"\nkey = "{renewed.key}"\n'
        f'client_ca = "{renewed.client_ca}"\n'
    )
    old, new = renewed.authorities
    with GatewayProcess(tmp_path / "data", "--config", str(config)) as up:
        port = int(up.http.rpartition(":")[2])
        with closing(
            http.client.HTTPSConnection("localhost", port, context=old.client(), timeout=DEADLINE)
        ) as kept:
            assert health(kept) == "ok"
            renewed.put(1)
            up.signal(signal.SIGHUP)
            eventually(lambda: trusts(new, port), "the new certificate is shown")
            assert not trusts(old, port)
            assert trusts(new, int(up.tcp.rpartition(":")[2]))
            assert health(kept) == "ok"
            renewed.cert.write_text("nothing")
            up.signal(signal.SIGHUP)
            said = "the TLS certificate stays as it was"
            eventually(lambda: said in up.errors.read_text(), "the gateway has said so")
            assert trusts(new, port)


async def test_clients_of_a_withdrawn_authority_are_turned_away(renewed: Renewed) -> None:
    """Also those that come with a ticket of an earlier session."""
    old, new = renewed.authorities
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(old.certificate)
    client.load_verify_locations(new.certificate)
    client.load_cert_chain(old._chain, old._key)
    certificates = Certificates(renewed.settings)
    subject, session = meet(certificates.web, client)
    assert subject is not None
    again, _ = meet(certificates.web, client, session)
    assert again == subject
    renewed.put(1)
    await certificates.reload()
    with pytest.raises(ssl.SSLError):
        meet(certificates.web, client, session)


def test_a_trusted_proxy_s_certificate_is_not_its_callers(
    renewed: Renewed, lasthop: Lasthop, tmp_path: Path
) -> None:
    config = tmp_path / "lasthop.toml"
    config.write_text(
        f'[tls]\ncert = "{renewed.cert}"\nkey = "{renewed.key}"\n'
        f'client_ca = "{renewed.client_ca}"\n'
        '[http]\ntrusted_proxies = ["127.0.0.1"]\n[access]\nanonymous = "never"\n'
    )
    data = tmp_path / "data"
    lasthop("credential", "add", "edge", "--certificate", "CN=localhost", "--data", str(data))
    old, _ = renewed.authorities
    client = old.client()
    client.load_cert_chain(old._chain, old._key)
    with GatewayProcess(data, "--config", str(config)) as up:
        port = int(up.http.rpartition(":")[2])
        forwarded = {"X-Forwarded-For": "192.0.2.1"}
        with closing(http.client.HTTPSConnection("localhost", port, context=client)) as line:
            for path in ("/v1/messages", "/v1/messages?"):
                for headers, status in (({}, 202), (forwarded, 401), ({}, 202)):
                    line.request("POST", path, b'{"topic":"news","body":"x"}', headers)
                    response = line.getresponse()
                    response.read()
                    assert response.status == status, (path, headers)


def meet(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[object, ssl.SSLSession | None]:
    """The client's certificate as the server sees it, and the session that may be resumed."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [ours, theirs]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    theirs.write(b"hello")  # The tickets come with it.
    assert ours.read(5) == b"hello"
    return theirs.getpeercert(), ours.session


def health(connection: http.client.HTTPSConnection) -> str:
    connection.request("GET", "/health")
    return str(json.loads(connection.getresponse().read())["status"])


def trusts(authority: Authority, port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as line:
        try:
            with authority.client().wrap_socket(line, server_hostname="localhost"):
                return True
        except ssl.SSLError:
            return False
