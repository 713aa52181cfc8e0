"""The directory in which versions of the policy are kept, and the pointer to the one in force.

    policies/20261115T101500-1f3a9c02/policies.json     a version; it never changes
    policies/CURRENT                                    which one is in force, and which were before
    policies/TRIAL                                      which one is on trial, or was last

A new version may first be on trial: `TRIAL` names it and the share of the devices that it decides
for. Gateway and command line both end trials, so that each change is made under a lock.

The pointer is replaced in one step and carries the digest of the version's file, so that a reader
sees the old version or the new one, never a part of either. There is no Java and no Parquet: a
gateway reads it with the libraries that it has anyway.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from lasthop.clock import Micros
from lasthop.errors import Conflict, NotFound, StoreBroken
from lasthop.policy import Policies, decode, encode
from lasthop.policy.trial import PolicyTrial, TrialState
from lasthop.private import private_directory, private_file

POINTER = "CURRENT"
CONTENT = "policies.json"
TRIAL = "TRIAL"
LOCK = ".lock"

MAX_BYTES = 1 << 30
"""The largest size of a version's file in bytes: a gateway needs several times as much memory."""

REMEMBERED = 100
"""The number of earlier versions that `roll_back` can return to, one by one."""


class Pointer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The version of the policy that is in force, with the digest of its file."""

    version: str
    sha256: str
    before: tuple[tuple[str, str], ...] = ()
    """The versions and digests that were in force before, newest first."""


class PolicyStore:
    """The versions of the policy in one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def pointer(self) -> Pointer | None:
        """Return which version is in force; None before the first. Raises StoreBroken if the
        pointer is damaged."""
        try:
            data = (self.root / POINTER).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(data, type=Pointer)
        except msgspec.DecodeError as error:
            raise StoreBroken(f"the pointer to the policy cannot be read: {error}") from None

    def versions(self) -> list[str]:
        """Return the names of all stored versions, oldest first."""
        return sorted(path.parent.name for path in self.root.glob(f"*/{CONTENT}"))

    def read(self, version: str, *, sha256: str | None = None) -> Policies:
        """Return one version, checked against its digest if that is given. Raises NotFound or
        StoreBroken."""
        path = self.root / version / CONTENT
        try:
            size = path.stat().st_size
            if size > MAX_BYTES:
                raise StoreBroken("a policy is too large", version=version, bytes=size)
            data = path.read_bytes()
        except FileNotFoundError:
            raise NotFound("there is no such version of the policy", version=version) from None
        if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
            raise StoreBroken("the file of a policy does not match its digest", version=version)
        policies = decode(data)
        if policies.version != version:
            raise StoreBroken("a policy is stored under another version's name", version=version)
        return policies

    def current(self) -> Policies | None:
        """Return the version in force; None before the first. Raises NotFound or StoreBroken."""
        pointer = self.pointer()
        if pointer is None:
            return None
        return self.read(pointer.version, sha256=pointer.sha256)

    def publish(self, policies: Policies, *, percent: float = 100.0) -> str:
        """Store a version under a name made from its time and content, and return the name. It is
        in force for all devices, or with fewer percent on trial, instead of any other."""
        made = datetime.fromtimestamp(policies.lineage.made_at / 1e6, UTC)
        digest = hashlib.sha256(encode(policies)).hexdigest()
        version = f"{made:%Y%m%dT%H%M%S}-{digest[:8]}"
        data = encode(msgspec.structs.replace(policies, version=version))
        path = self.root / version / CONTENT
        _write(path, data)
        sha256 = hashlib.sha256(data).hexdigest()
        with self._locked():
            if percent < 100:
                self._try(PolicyTrial(version, sha256, percent, policies.lineage.made_at))
            else:
                self._put_in_force(version, sha256)
                trial = self.trial()
                if trial is not None and trial.running:
                    self._end(trial, "taken back", "a newer version is in force", trial.since)
        return version

    def roll_back(self) -> str:
        """Put the previous version in force again, and return its name; deleted versions are passed
        over. Raises NotFound if there is none."""
        with self._locked():
            pointer = self.pointer()
            before = () if pointer is None else pointer.before
            for place, (version, sha256) in enumerate(before):
                if (self.root / version / CONTENT).is_file():
                    self._point(Pointer(version, sha256, before[place + 1 :]))
                    return version
        raise NotFound("there is no earlier version of the policy to return to")

    def trial(self) -> PolicyTrial | None:
        """Return the trial that is running, or else the last one; None before the first. Raises
        StoreBroken if the file is damaged."""
        try:
            data = (self.root / TRIAL).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(data, type=PolicyTrial)
        except msgspec.DecodeError as error:
            raise StoreBroken(f"the trial of a policy cannot be read: {error}") from None

    def on_trial(self) -> tuple[PolicyTrial, Policies] | None:
        """Return the trial that is running, with the version; None if there is none. Raises
        NotFound or StoreBroken."""
        trial = self.trial()
        if trial is None or not trial.running:
            return None
        return trial, self.read(trial.version, sha256=trial.sha256)

    def promote(self, reason: str, now: Micros, *, version: str | None = None) -> PolicyTrial:
        """Put the version on trial in force for all devices. Raises Conflict if none is on trial,
        or another than `version`."""
        with self._locked():
            trial = self._running(version)
            self._put_in_force(trial.version, trial.sha256)
            return self._end(trial, "promoted", reason, now)

    def take_back(self, reason: str, now: Micros, *, version: str | None = None) -> PolicyTrial:
        """End the trial, so that the version in force decides for all devices again. Raises
        Conflict if none is on trial, or another than `version`."""
        with self._locked():
            return self._end(self._running(version), "taken back", reason, now)

    def widen(self, percent: float) -> PolicyTrial:
        """Change the share of the devices that the version on trial decides for. Raises Conflict if
        none is on trial."""
        with self._locked():
            running = self._running(None)
            trial = PolicyTrial(running.version, running.sha256, percent, running.since)
            self._try(trial)
            return trial

    def _running(self, version: str | None) -> PolicyTrial:
        trial = self.trial()
        if trial is None or not trial.running:
            raise Conflict("no version of the policy is on trial")
        if version not in (None, trial.version):
            raise Conflict("another version of the policy is on trial", version=trial.version)
        return trial

    def _end(self, trial: PolicyTrial, state: TrialState, reason: str, now: Micros) -> PolicyTrial:
        ended = msgspec.structs.replace(trial, state=state, reason=reason, ended_at=now)
        self._try(ended)
        return ended

    def _try(self, trial: PolicyTrial) -> None:
        _write(self.root / TRIAL, msgspec.json.encode(trial) + b"\n")

    def _put_in_force(self, version: str, sha256: str) -> None:
        old = self.pointer()
        before = () if old is None else ((old.version, old.sha256), *old.before)
        if old is None or old.version != version:
            self._point(Pointer(version, sha256, before[:REMEMBERED]))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the directory, which every change of its files needs."""
        private_directory(self.root)
        with (self.root / LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _point(self, pointer: Pointer) -> None:
        _write(self.root / POINTER, msgspec.json.encode(pointer) + b"\n")


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, also across a loss of power."""
    private_directory(path.parent)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    private_file(partial)
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    for directory in (path.parent, path.parent.parent):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
