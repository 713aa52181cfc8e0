"""What the pipeline has left for the gateway to show: versions of the policy, and a summary.

Both are files that another process writes; they are read when somebody looks, off the event loop.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from lasthop.clock import Micros
from lasthop.errors import StoreBroken
from lasthop.policy import Lineage
from lasthop.policy.store import CONTENT, PolicyStore

SUMMARY = "summary.json"
"""In the lake; `lasthop pipeline` writes it."""

MAX_SUMMARY = 4 << 20
"""Bytes. The summary is of a size that does not grow with the log."""

MAX_READ = 16 << 20
"""Bytes of a version that is read for its lineage; of a larger one the name has to do."""

VERSIONS = 20
"""The newest of them are shown."""


class LearnedVersion(msgspec.Struct, omit_defaults=True):
    """One version of the policy."""

    version: str
    in_force: bool = False
    made_at: Micros = 0
    first_day: str = ""
    last_day: str = ""
    events: int = 0
    note: str = ""
    code: str = ""
    held_out: dict[str, float] = {}
    """How it did on days that it was not learned from, beside what was in force then."""
    devices: int = 0
    networks: int = 0
    problem: str = ""


class PolicyPage(msgspec.Struct, omit_defaults=True):
    """The versions that are kept, newest first."""

    in_force: str
    versions: list[LearnedVersion]
    total: int


class _Content(msgspec.Struct):
    """As much of a version as is shown."""

    lineage: Lineage
    devices: list[msgspec.Raw] = []
    heartbeats: dict[str, msgspec.Raw] = {}


_decode = msgspec.json.Decoder(_Content).decode


def policies(policy_store: PolicyStore, in_force: str) -> PolicyPage:
    """The versions on the shelf."""
    names = policy_store.versions()
    newest = names[-VERSIONS:][::-1]
    shown = [_version(policy_store, name, in_force == name) for name in newest]
    return PolicyPage(in_force, shown, len(names))


def _version(policy_store: PolicyStore, name: str, in_force: bool) -> LearnedVersion:
    version = LearnedVersion(name, in_force)
    path = policy_store.root / name / CONTENT
    try:
        if path.stat().st_size > MAX_READ:
            version.problem = "too large to look into"
            return version
        content = _decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        version.problem = str(error)
        return version
    lineage = content.lineage
    version.made_at = lineage.made_at
    version.first_day, version.last_day = lineage.first_day, lineage.last_day
    version.events, version.note, version.code = lineage.events, lineage.note, lineage.code
    version.held_out = lineage.held_out
    version.devices, version.networks = len(content.devices), len(content.heartbeats)
    return version


def summary(lake: Path) -> msgspec.Raw | None:
    """The tables in a page's worth of numbers, as the pipeline wrote them; None before it has."""
    path = lake / SUMMARY
    try:
        if path.stat().st_size > MAX_SUMMARY:
            raise StoreBroken("the summary of the tables is too large", most=MAX_SUMMARY)
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise StoreBroken(f"the summary of the tables cannot be read: {error}") from None
    return msgspec.Raw(data)
