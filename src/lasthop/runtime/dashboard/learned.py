"""What the pipeline has written for the dashboard: versions of the policy, and a summary of the
tables.

Both are files that another process writes; they are read off the event loop when a page asks for
them.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from lasthop.clock import Micros
from lasthop.errors import StoreBroken
from lasthop.policy import Lineage
from lasthop.policy.store import CONTENT, PolicyStore
from lasthop.policy.trial import PolicyTrial

SUMMARY = "summary.json"
"""The name of the summary's file in the lake; `lasthop pipeline` writes it."""

MAX_SUMMARY = 4 << 20
"""The largest summary, in bytes; its size does not grow with the log."""

MAX_READ = 16 << 20
"""The largest version of a policy, in bytes, whose content is read; of a larger version only the
name is shown."""

VERSIONS = 20
"""The number of versions that are shown: the newest ones."""


class LearnedVersion(msgspec.Struct, omit_defaults=True):
    """One version of the learned policy, with its origin."""

    version: str
    in_force: bool = False
    made_at: Micros = 0
    first_day: str = ""
    last_day: str = ""
    events: int = 0
    note: str = ""
    code: str = ""
    held_out: dict[str, float] = {}
    """The version's results on days from which it was not learned, beside the results of the
    version that was in force then."""
    devices: int = 0
    networks: int = 0
    problem: str = ""


class PolicyPage(msgspec.Struct, omit_defaults=True):
    """The stored versions of the learned policy, newest first."""

    in_force: str
    versions: list[LearnedVersion]
    total: int
    trial: PolicyTrial | None = None
    """The trial that is running, or the last one."""


class _VersionContent(msgspec.Struct):
    """The part of a version that is shown."""

    lineage: Lineage
    devices: list[msgspec.Raw] = []
    heartbeats: dict[str, msgspec.Raw] = {}


_decode = msgspec.json.Decoder(_VersionContent).decode


def policies(policy_store: PolicyStore, in_force: str) -> PolicyPage:
    """Return the versions in the policy store, newest first."""
    names = policy_store.versions()
    newest = names[-VERSIONS:][::-1]
    shown = [_version(policy_store, name, in_force == name) for name in newest]
    try:
        trial = policy_store.trial()
    except StoreBroken:
        trial = None  # The gateway has logged it.
    return PolicyPage(in_force, shown, len(names), trial)


def _version(policy_store: PolicyStore, name: str, in_force: bool) -> LearnedVersion:
    version = LearnedVersion(name, in_force)
    path = policy_store.root / name / CONTENT
    try:
        if path.stat().st_size > MAX_READ:
            version.problem = "too large to be shown"
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
    """Return the summary of the tables as the pipeline wrote it, or None before its first run."""
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
