"""Checks whether the hot modules are compiled, and from the present sources."""

from __future__ import annotations

from pathlib import Path

import lasthop
import lasthop_xml
from lasthop.runtime.doctor.finding import Finding, broken, could_be_better, good

REBUILD = "make accelerate, or make accelerate ARGS=--clean for pure Python"

COPIES = {"compiled": "engine"}
"""The packages that are compiled from the sources of another package beside them."""


ROOTS = tuple(Path(package.__path__[0]) for package in (lasthop, lasthop_xml))


def accelerated(*roots: Path) -> Finding:
    """Check that the compiled modules are not older than their sources: Python uses a compiled
    module even if its source has changed since."""
    libraries = sorted(path for root in roots or ROOTS for path in root.rglob("*.so"))
    if not libraries:
        return could_be_better("accelerated build", "pure Python", "make accelerate, if you like")
    stale = [path for path in libraries if _stale(path)]
    if stale:
        names = ", ".join(sorted(path.name.split(".")[0] for path in stale))
        # What runs is then not the present source, which is worse than slow.
        return broken("accelerated build", f"older than its source: {names}", REBUILD)
    return good("accelerated build", f"{len(libraries)} modules")


def _stale(library: Path) -> bool:
    directory = library.parent
    if directory.name in COPIES:
        directory = directory.with_name(COPIES[directory.name])
    source = directory / f"{library.name.split('.')[0]}.py"
    try:
        return source.stat().st_mtime > library.stat().st_mtime
    except OSError:
        return False  # mypyc's library for several modules has no source of its own.
