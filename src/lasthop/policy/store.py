"""The directory in which versions of the policy are kept, and the pointer to the one in force.

    policies/20261115T101500-1f3a9c02/policies.json     a version; it never changes
    policies/CURRENT                                    which one is in force, and which were before

The pointer is replaced in one step and carries the digest of what it points to, so that a reader
sees the old version or the new one, never a part of either. No Java, no Parquet: a gateway reads it
with what it has anyway.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from lasthop.errors import NotFound, StoreBroken
from lasthop.policy import Policies, decode, encode
from lasthop.private import private_directory, private_file

POINTER = "CURRENT"
CONTENT = "policies.json"

MAX_BYTES = 1 << 30
"""Of a version: a gateway would need several times as much memory for more."""

REMEMBERED = 100
"""Versions that can be returned to, one by one."""


class Pointer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which version is in force."""

    version: str
    sha256: str
    before: tuple[tuple[str, str], ...] = ()
    """The versions and digests that were in force before, newest first."""


class PolicyStore:
    """Versions of the policy under one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def pointer(self) -> Pointer | None:
        """Which version is in force; none before the first."""
        try:
            data = (self.root / POINTER).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(data, type=Pointer)
        except msgspec.DecodeError as error:
            raise StoreBroken(f"the pointer to the policy cannot be read: {error}") from None

    def versions(self) -> list[str]:
        """All that are kept, oldest first."""
        return sorted(path.parent.name for path in self.root.glob(f"*/{CONTENT}"))

    def read(self, version: str, *, sha256: str | None = None) -> Policies:
        """One version, checked."""
        path = self.root / version / CONTENT
        try:
            size = path.stat().st_size
            if size > MAX_BYTES:
                raise StoreBroken("a policy is too large", version=version, bytes=size)
            data = path.read_bytes()
        except FileNotFoundError:
            raise NotFound("there is no such version of the policy", version=version) from None
        if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
            raise StoreBroken("a policy is not what was published", version=version)
        policies = decode(data)
        if policies.version != version:
            raise StoreBroken("a policy lies under another version's name", version=version)
        return policies

    def current(self) -> Policies | None:
        """The version in force."""
        pointer = self.pointer()
        if pointer is None:
            return None
        return self.read(pointer.version, sha256=pointer.sha256)

    def publish(self, policies: Policies) -> str:
        """Keep a version under a name made from its time and content, and put it in force."""
        made = datetime.fromtimestamp(policies.lineage.made_at / 1e6, UTC)
        digest = hashlib.sha256(encode(policies)).hexdigest()
        version = f"{made:%Y%m%dT%H%M%S}-{digest[:8]}"
        data = encode(msgspec.structs.replace(policies, version=version))
        path = self.root / version / CONTENT
        _write(path, data)
        old = self.pointer()
        before = () if old is None else ((old.version, old.sha256), *old.before)
        sha256 = hashlib.sha256(data).hexdigest()
        if old is None or old.version != version:
            self._point(Pointer(version, sha256, before[:REMEMBERED]))
        return version

    def roll_back(self) -> str:
        """Put the version in force that was so before; a version that is gone is passed over."""
        pointer = self.pointer()
        before = () if pointer is None else pointer.before
        for place, (version, sha256) in enumerate(before):
            if (self.root / version / CONTENT).is_file():
                self._point(Pointer(version, sha256, before[place + 1 :]))
                return version
        raise NotFound("there is no earlier version of the policy to return to")

    def _point(self, pointer: Pointer) -> None:
        _write(self.root / POINTER, msgspec.json.encode(pointer) + b"\n")


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, also after a loss of power."""
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
