"""The directory in which versions of the policy are kept, and the pointer to the one in force.

    policies/20261115T101500-1f3a9c02/policies.json     a version; it never changes
    policies/CURRENT                                    which one is in force, and which were before

The pointer is replaced in one step and carries the digest of the version's file, so that a reader
sees the old version or the new one, never a part of either. There is no Java and no Parquet: a
gateway reads it with the libraries that it has anyway.
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

    def publish(self, policies: Policies) -> str:
        """Store a version under a name made from its time and content, and put it in force; return
        the name."""
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
        """Put the previous version in force again, and return its name; deleted versions are passed
        over. Raises NotFound if there is none."""
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
