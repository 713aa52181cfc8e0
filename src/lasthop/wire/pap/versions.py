"""Versions of PAP: how a document shows its own, and in which one an answer is written."""

from __future__ import annotations

import re
from enum import StrEnum


class Version(StrEnum):
    """The versions of PAP that are read and written, in ascending order."""

    V1_0 = "1.0"
    V2_0 = "2.0"
    V2_1 = "2.1"
    V2_2 = "2.2"


VERSIONS = tuple(Version)

PUBLIC_IDS: dict[Version, str] = {
    Version.V1_0: "-//WAPFORUM//DTD PAP 1.0//EN",
    Version.V2_0: "-//WAPFORUM//DTD PAP 2.0//EN",
    Version.V2_1: "-//OMA//DTD PAP 2.1//EN",
    Version.V2_2: "-//OMA//DTD PAP 2.2//EN",
}
SYSTEM_IDS: dict[Version, str] = {
    Version.V1_0: "http://www.wapforum.org/DTD/pap_1.0.dtd",
    Version.V2_0: "http://www.wapforum.org/DTD/pap_2.0.dtd",
    Version.V2_1: "http://www.openmobilealliance.org/tech/DTD/pap_2.1.dtd",
    Version.V2_2: "http://www.openmobilealliance.org/tech/DTD/pap_2.2.dtd",
}
"""The identifiers that are written. Initiators spell them in many ways, so reading looks at the
number only."""

UNDECLARED = Version.V2_1
"""The version of a document without a number: the newest that is in use. Its document type admits
everything of the earlier ones."""

SUPPORTED: tuple[str, ...] = tuple(reversed(VERSIONS))
"""The versions named in our `supported-versions`, the best first."""

_IN_PUBLIC_ID = re.compile(r"PAP[ \t\r\n]+([0-9]{1,4}\.[0-9]{1,4})", re.IGNORECASE)
_IN_SYSTEM_ID = re.compile(r"pap[_-]?([0-9]{1,4}\.[0-9]{1,4})", re.IGNORECASE)
_UNNUMBERED = re.compile(r"DTD[ \t\r\n]+PAP[ \t\r\n]*//", re.IGNORECASE)
_PATTERN = re.compile(r"[0-9]{1,4}\.(?:[0-9]{1,4}|\*)")

MAX_PATTERNS = 16
"""The largest number of entries of one `supported-versions`; four versions of PAP exist, and
nothing after the sixteenth entry can matter."""


def declared_version(public_id: str | None, system_id: str | None) -> str | None:
    """Return the version number that a DOCTYPE shows, whether it is known or not; None without one.

    The public identifier wins where both have a number. Its first form had none and meant 1.0.
    """
    if public_id is not None and (found := _IN_PUBLIC_ID.search(public_id)):
        return found[1]
    if system_id is not None and (found := _IN_SYSTEM_ID.search(system_id)):
        return found[1]
    if public_id is not None and _UNNUMBERED.search(public_id):
        return Version.V1_0.value
    return None


def parse_supported(text: str) -> tuple[str, ...]:
    """Return the entries of `supported-versions="2.1,2.0,1.*"`; what is no version is skipped.

    >>> parse_supported("2.1, 1.*, new")
    ('2.1', '1.*')
    """
    entries = (entry.strip() for entry in text.split(",", MAX_PATTERNS)[:MAX_PATTERNS])
    return tuple(entry for entry in entries if _PATTERN.fullmatch(entry))


def is_supported(version: str, patterns: tuple[str, ...]) -> bool:
    """Whether a peer that sent these patterns understands this version."""
    return version in patterns or f"{version.partition('.')[0]}.*" in patterns


def answer_version(asked: str, patterns: tuple[str, ...] = ()) -> Version:
    """Return the version in which to answer a document.

    A sender understands what it wrote itself, so its own version comes first. If that one is
    unknown here, the answer (a refusal with code 3002) is in our best version that its
    `supported-versions` names; failing that, in our nearest version below its own.
    """
    if asked in VERSIONS:
        return Version(asked)
    for version in reversed(VERSIONS):
        if is_supported(version, patterns):
            return version
    below = [version for version in VERSIONS if _number(version) <= _number(asked)]
    return below[-1] if below else VERSIONS[0]


def _number(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)
