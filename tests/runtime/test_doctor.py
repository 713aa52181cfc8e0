"""Each check of `lasthop doctor` finds what is wrong, and says what to do."""

from __future__ import annotations

import json
import os
import resource
import socket
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lasthop.pipeline.java import Java
from lasthop.runtime.doctor import build, gateway, learning, machine
from lasthop.runtime.doctor.finding import Finding, FindingState
from lasthop.runtime.settings import Settings, Tls, load
from lasthop.store.sqlite import SqliteStore
from lasthop.store.sqlite.migrations import MIGRATIONS
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess
from tests.transport.certificates import Authority

BROKEN, GOOD, BETTER = FindingState.BROKEN, FindingState.GOOD, FindingState.COULD_BE_BETTER


def test_python() -> None:
    assert machine.python().state is GOOD
    for version in ((3, 10, 2), (3, 14, 0), (4, 0, 0)):
        found = machine.python(version)
        assert found.state is BROKEN
        assert "3.11" in found.remedy


def test_sqlite() -> None:
    assert machine.sqlite().state is GOOD
    found = machine.sqlite((3, 37, 9))
    assert (found.state, found.found) == (BROKEN, "3.37.9")
    assert "SQLite 3.38.0" in found.remedy


def test_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.event_loop().state is GOOD
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    assert machine.event_loop() == Finding("uvloop", BROKEN, "not installed", "pip install uvloop")


def test_open_files() -> None:
    assert machine.open_files(resource.RLIM_INFINITY).found == "no limit"
    assert machine.open_files(65536).state is GOOD
    few = machine.open_files(1024)
    assert few.state is BETTER
    assert "LimitNOFILE" in few.remedy


def test_a_clock_that_is_behind_the_store(tmp_path: Path) -> None:
    assert machine.clock(tmp_path / "nowhere").state is GOOD
    file = tmp_path / "store.db"
    file.touch()
    assert machine.clock(tmp_path).state is GOOD
    os.utime(file, (0, time.time() + 3600))
    behind = machine.clock(tmp_path)
    assert behind.state is BROKEN
    assert "behind the files" in behind.found


def test_a_file_of_settings_that_is_wrong(lasthop: Lasthop, tmp_path: Path) -> None:
    config = tmp_path / "lasthop.toml"
    config.write_text("[http]\nlisten = 7\n")
    result = lasthop("doctor", "--config", str(config), "--json", fails=True)
    assert result.code == 1
    (found,) = [f for f in map(json.loads, result.lines) if f["state"] == "broken"]
    assert found["name"] == "settings"
    assert "http.listen" in found["found"]


def write_certificate(directory: Path, *, days: int, name: str = "server") -> Tls:
    """A certificate that ends in so many days, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    end = datetime.now(UTC) + timedelta(days=days)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(end - timedelta(days=365))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    cert, private = directory / f"{name}.pem", directory / f"{name}.key"
    cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return Tls(cert=str(cert), key=str(private))


def test_certificates(tmp_path: Path) -> None:
    assert list(gateway.certificates(Tls())) == []
    tls = write_certificate(tmp_path, days=90)
    (found,) = gateway.certificates(tls)
    assert found.state is GOOD
    assert found.found.startswith("until 20")
    (soon,) = gateway.certificates(tls, now=time.time() + 80 * 86_400)
    assert (soon.state, soon.remedy) == (BETTER, "renew it soon")
    (over,) = gateway.certificates(tls, now=time.time() + 100 * 86_400)
    assert over.state is BROKEN


def test_a_certificate_that_has_ended_or_has_another_key(tmp_path: Path) -> None:
    (ended,) = gateway.certificates(write_certificate(tmp_path, days=-1))
    assert ended.state is BROKEN
    assert ended.found.startswith("ended on 20")
    one = write_certificate(tmp_path, days=90, name="one")
    other = write_certificate(tmp_path, days=90, name="other")
    (mixed,) = gateway.certificates(Tls(cert=one.cert, key=other.key))
    assert mixed.state is BROKEN
    assert "that match" in mixed.remedy
    (missing,) = gateway.certificates(Tls(cert=str(tmp_path / "no.pem"), key=one.key))
    assert missing.state is BROKEN


def test_authorities_of_clients(tmp_path: Path) -> None:
    authority = Authority(tmp_path)  # It signs for two days.
    tls = write_certificate(tmp_path, days=90, name="own")
    tls.client_ca = str(authority.certificate)
    _, soon = gateway.certificates(tls)
    assert (soon.name, soon.state) == ("client authorities", BETTER)
    tls.client_ca = tls.key
    _, wrong = gateway.certificates(tls)
    assert wrong.state is BROKEN
    assert wrong.found.startswith(f"cannot use {tls.key}: ")
    tls.client_ca = tls.cert
    _, leaf = gateway.certificates(tls)
    assert "no certificate of an authority" in leaf.found


def test_traces_that_were_asked_for_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(gateway.traces("")) == []
    (found,) = gateway.traces("http://localhost:4318/v1/traces")
    assert (found.state, found.found) == (GOOD, "to http://localhost:4318/v1/traces")
    monkeypatch.setattr(gateway, "find_spec", lambda name: None)
    (found,) = gateway.traces("http://localhost:4318/v1/traces")
    assert (found.state, found.remedy) == (BROKEN, "pip install 'lasthop[otel]'")


def test_broad_rules_are_listed(tmp_path: Path) -> None:
    options: dict[str, object] = {"data": str(tmp_path / "data"), "access.anonymous": "never"}
    assert list(gateway.rights(load(options=options | {"access.anonymous": "loopback"}))) == []
    (found,) = gateway.rights(load(options=options))
    assert (found.state, found.found) == (GOOD, "devices do what rules allow; there are 0")
    before = [step for step in MIGRATIONS if step.to < 9]
    with closing(SqliteStore(tmp_path / "data", migrations=before)) as store:
        store._connection.execute("UPDATE meta SET boot = 1")
    with closing(SqliteStore(tmp_path / "data")) as store:
        store.open()
    (found,) = gateway.rights(load(options=options))
    assert found.state is BETTER
    assert found.found.startswith("the rule upgraded: device:* allow publish send")
    assert found.remedy.endswith("lasthop rule remove upgraded")
    (found, _) = gateway.rights(load(options=options | {"rights.devices": "open"}))
    assert found.found == "devices may do everything"


def test_a_data_directory_that_cannot_be(tmp_path: Path) -> None:
    assert gateway.directory(tmp_path).state is GOOD
    assert gateway.directory(tmp_path / "a" / "b").found.endswith(", to be made")
    (tmp_path / "file").touch()
    found = gateway.directory(tmp_path / "file" / "data")
    assert found.state is BROKEN
    assert "no directory" in found.found


def test_a_directory_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs the tests may be allowed everything.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert gateway.directory(tmp_path).state is BROKEN


def test_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gateway.disk(tmp_path).state is not BROKEN
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(gateway, "_kind", lambda place: "tmpfs")
    assert "in memory" in gateway.disk(tmp_path).found
    monkeypatch.setattr(gateway, "_kind", lambda place: "ext4")
    monkeypatch.setattr(gateway, "_sync_time", lambda place: 0.2)
    slow = gateway.disk(tmp_path)
    assert (slow.state, slow.found) == (BETTER, "a commit takes 200.0 ms")

    def refuse(place: Path) -> float:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(gateway, "_sync_time", refuse)
    assert gateway.disk(tmp_path).state is BROKEN


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system in memory here")
def test_a_file_system_in_memory_is_known() -> None:
    assert gateway._kind(Path("/dev/shm")) == "tmpfs"


def settings_at(port: int, data: Path) -> Settings:
    place = f"127.0.0.1:{port}"
    options = {"http.listen": place, "tcp.listen": "127.0.0.1:0", "data": str(data)}
    return load(options=options)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        http, tcp = gateway.ports(settings_at(port, tmp_path))
    assert http.state is BROKEN
    assert f"127.0.0.1:{port}" in http.found
    assert tcp.state is GOOD
    assert [found.state for found in gateway.ports(settings_at(port, tmp_path))] == [GOOD, GOOD]


def test_ports_taken_by_the_gateway_of_this_directory_are_as_they_should_be(
    up: GatewayProcess,
) -> None:
    port = int(up.http.rpartition(":")[2])
    (found,) = gateway.ports(settings_at(port, up.data))
    assert found.state is GOOD
    assert up.http in found.found


def test_an_accelerated_build_and_a_stale_one(tmp_path: Path) -> None:
    assert build.accelerated(tmp_path).found == "pure Python"
    for name in ("decision/feed", "weft/engine/memory"):
        source = tmp_path / f"{name}.py"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.touch()
    library = tmp_path / "decision" / "feed.cpython-311-x86_64-linux-gnu.so"
    library.touch()
    shared = tmp_path / "abcdef__mypyc.cpython-311-x86_64-linux-gnu.so"
    shared.touch()
    copy = tmp_path / "weft/compiled/memory.cpython-311-x86_64-linux-gnu.so"
    copy.parent.mkdir()
    copy.touch()
    assert build.accelerated(tmp_path).found == "3 modules"
    later = time.time() + 100
    os.utime(tmp_path / "weft/engine/memory.py", (later, later))
    stale = build.accelerated(tmp_path)
    assert (stale.state, stale.found) == (BROKEN, "older than its source: memory")


def test_the_pipeline_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert learning.spark().state is GOOD
    monkeypatch.setattr(learning, "find_spec", lambda name: None)
    assert learning.spark().state is BETTER
    assert "lasthop[pipeline]" in learning.spark().remedy


def test_java(monkeypatch: pytest.MonkeyPatch) -> None:
    assert learning.java().state is GOOD
    monkeypatch.setattr(learning, "candidates", lambda: iter(()))
    assert learning.java().found.startswith("none found")
    old = Java(Path("/old"), (11, 0, 2), frozenset())
    monkeypatch.setattr(learning, "candidates", lambda: iter([Path("/old")]))
    monkeypatch.setattr(learning, "describe", lambda place: old)
    found = learning.java()
    assert found.state is BETTER
    assert "Java 11.0.2 is older" in found.found


def test_the_round_as_a_user_sees_it(lasthop: Lasthop, tmp_path: Path) -> None:
    config = tmp_path / "lasthop.toml"
    config.write_text('[http]\nlisten = "127.0.0.1:0"\n[tcp]\nlisten = "127.0.0.1:0"\n')
    arguments = ["doctor", "--config", str(config), "--data", str(tmp_path / "data")]
    said = lasthop(*arguments)
    assert "ok  python" in said.out
    assert "NO" not in said.out
    named = [json.loads(line)["name"] for line in lasthop(*arguments, "--json").lines]
    assert named == [
        "python",
        "sqlite",
        "uvloop",
        "open files",
        "settings",
        "data directory",
        "disk",
        "clock",
        "http.listen",
        "tcp.listen",
        "accelerated build",
        "spark",
        "java",
    ]
    assert not (tmp_path / "data").exists(), "a check changes nothing"
