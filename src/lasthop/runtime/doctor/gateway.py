"""Checks the certificate, the data directory and the ports that a gateway with these settings would
use."""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from lasthop.core.rights.book import stored_rules
from lasthop.core.rights.rule import AccessRule
from lasthop.errors import LasthopError, StoreError
from lasthop.runtime.doctor.finding import Finding, broken, could_be_better, good
from lasthop.runtime.expiry import expiry
from lasthop.runtime.failure import Failure
from lasthop.runtime.listening import listen, tls_context
from lasthop.runtime.places import find
from lasthop.runtime.settings import Settings, Tls
from lasthop.runtime.units import ListenAddress
from lasthop.store.commit import MemoryRow
from lasthop.store.sqlite.reader import SqliteReader

SOON = 14 * 86_400
"""A certificate that expires within this number of seconds is reported."""

FORGETFUL = {"tmpfs", "ramfs", "devtmpfs"}
"""The types of file systems that keep their files in memory, so that a restart of the machine loses
them."""

SLOW_SYNC = 0.05
"""A disk is reported as slow if a sync takes more than this number of seconds: every publisher
waits at least that long for its answer."""


def unreadable(error: LasthopError) -> Finding:
    """Report settings that a gateway would refuse."""
    return broken("settings", str(error), "lasthop config shows all settings, explained")


def configuration(config: Path | None, settings: Settings) -> Finding:
    """Report settings that a gateway would accept, and whether they require credentials."""
    where = str(config) if config is not None else "the defaults and the environment"
    kept = "open to everyone on this machine" if settings.open_house else "with credentials only"
    return good("settings", f"{where}; {kept}")


def certificates(tls: Tls, now: float | None = None) -> Iterator[Finding]:
    """Check the certificate and its key, if there are any."""
    if not tls.cert:
        return
    try:
        context = tls_context(tls)
        assert context is not None
        until = expiry(context, tls.cert)
    except (Failure, OSError, ssl.SSLError, ValueError) as error:
        yield broken("certificate", str(error), "tls.cert and tls.key name PEM files that match")
        return
    now = time.time() if now is None else now
    yield _lasting("certificate", until, now)
    if tls.client_ca:
        try:
            yield _lasting("client authorities", _first_end(tls.client_ca), now)
        except (OSError, ValueError) as error:
            found = f"cannot use {tls.client_ca}: {error}"
            yield broken("client authorities", found, "tls.client_ca names a PEM file")


def _lasting(name: str, until: float, now: float) -> Finding:
    day = time.strftime("%Y-%m-%d", time.gmtime(until))
    if until <= now:
        return broken(name, f"ended on {day}", "renew it: a running gateway takes the new one")
    if until - now < SOON:
        return could_be_better(name, f"ends on {day}", "renew it soon")
    return good(name, f"until {day}")


def _first_end(authorities: str) -> float:
    """Return when the first of the authorities in a file ends, in seconds since 1970."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(authorities)
    ends = [str(found["notAfter"]) for found in context.get_ca_certs()]
    if not ends:
        raise ValueError("the file has no certificate of an authority")
    return min(ssl.cert_time_to_seconds(end) for end in ends)


def traces(endpoint: str) -> Iterator[Finding]:
    """Check that the packages for traces are installed, if traces are on."""
    if not endpoint:
        return
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.proto") is None:
        yield broken("traces", "opentelemetry-proto is missing", "pip install 'lasthop[otel]'")
    else:
        yield good("traces", f"to {endpoint}")


def rights(settings: Settings) -> Iterator[Finding]:
    """Report the rules that allow something on everything to many, in the settings and in the
    store, and devices that need no rule although credentials are asked for."""
    if settings.open_house:
        return
    if not settings.least:
        yield could_be_better(
            "rights", "devices may do everything", 'set rights.devices to "least", and write rules'
        )
    rules = [*settings.configured_rules(), *_stored_rules(Path(settings.data))]
    for rule in rules:
        if rule.broad:
            yield could_be_better(
                "rights",
                f"the rule {rule} is broad",
                f"write narrower rules, then: lasthop rule remove {rule.name}",
            )
    if settings.least and not any(rule.broad for rule in rules):
        yield good("rights", f"devices do what rules allow; there are {len(rules)}")


def _stored_rules(data: Path) -> list[AccessRule]:
    """Return the rules that administrators have added; none if there is no store to read."""
    try:
        with closing(SqliteReader.beside(data)) as reader:
            return stored_rules(reader.rows("memory", MemoryRow, "device, name"))
    except StoreError:
        return []


def directory(data: Path) -> Finding:
    """Check that the store can be written in the data directory."""
    place = _existing(data)
    if not place.is_dir():
        return broken("data directory", f"{place} is no directory", "choose another with --data")
    if not os.access(place, os.W_OK | os.X_OK):
        return broken("data directory", f"{place} cannot be written", "chown or chmod it")
    return good("data directory", f"{data}" if data.exists() else f"{data}, to be made")


def disk(data: Path) -> Finding:
    """Check that written data survives a loss of power, and how long a sync takes."""
    place = _existing(data)
    kind = _kind(place)
    if kind in FORGETFUL:
        return could_be_better(
            "disk", f"{place} is in memory ({kind})", "put the data directory on a disk"
        )
    try:
        took = _sync_time(place)
    except OSError as error:
        return broken("disk", f"cannot sync in {place}: {error.strerror}", "use another disk")
    shown = f"a commit takes {took * 1000:.1f} ms"
    if took > SLOW_SYNC:
        return could_be_better("disk", shown, "use a faster disk, or one that is less busy")
    return good("disk", shown)


def ports(settings: Settings) -> Iterator[Finding]:
    """Check that the ports are free, or used by the gateway of this data directory."""
    data = Path(settings.data)
    running = find(data) if data.is_dir() else None
    if running is not None:
        yield good("ports", f"a gateway runs here: {running.http}, {running.tcp}")
        return
    wanted: list[tuple[str, ListenAddress]] = [
        ("http.listen", settings.http.listen),
        ("tcp.listen", settings.tcp.listen),
    ]
    if settings.beep_listen is not None:
        wanted.append(("beep.listen", settings.beep_listen))
    for name, address in wanted:
        try:
            with closing(listen(address)):
                yield good(name, f"{address} is free")
        except Failure as error:
            yield broken(name, str(error), f"end what is there, or set {name}")


def _existing(path: Path) -> Path:
    """Return the directory, or the nearest existing one above it."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _kind(place: Path) -> str:
    """Return the type of the file system that a directory is on, or an empty text if it is
    unknown."""
    try:
        mounts = Path("/proc/mounts").read_text()
    except OSError:
        return ""
    found, kind = "", ""
    for line in mounts.splitlines():
        _, mounted, of_kind, *_ = line.split()
        mounted = mounted.replace("\\040", " ")
        if place.is_relative_to(mounted) and len(mounted) >= len(found):
            found, kind = mounted, of_kind
    return kind


def _sync_time(place: Path) -> float:
    """Return the seconds that the disk takes to sync a page, as a commit does."""
    times = []
    with tempfile.TemporaryFile(dir=place) as file:
        for _ in range(5):
            began = time.monotonic()
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            times.append(time.monotonic() - began)
    return median(times)
