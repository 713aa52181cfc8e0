"""Tests that share something expensive (a Spark session, a browser) stay on one worker.

xdist knows groups by a suffix that it writes into an attribute of pytest's items, which newer
versions of pytest no longer read. A folder says as much, and needs no attribute.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

GROUPS: Final = {
    "tests/pipeline/": "spark",
    "tests/runtime/dashboard/": "browser",
    "tests/runtime/issuers/test_provider.py": "issuers",
    "tests/bench/test_xml_tables.py": "xml-tables",
}
"""By folder or file, what its tests share."""


def group_of(nodeid: str) -> str | None:
    """The group of a test, or None if any worker may run it."""
    return next((group for path, group in GROUPS.items() if nodeid.startswith(path)), None)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands whole groups to a worker first, then one test after the other to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid


def claim_group(group: str, factory: pytest.TempPathFactory) -> None:
    """Fail if another worker of this run has already started what the group shares."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return
    worker = os.environ["PYTEST_XDIST_WORKER"]
    owner = Path(factory.getbasetemp().parent, f"{group}-{run}")
    try:
        owner.touch(exist_ok=False)
        owner.write_text(worker)
    except FileExistsError:
        if owner.read_text() != worker:
            pytest.fail(f"the group {group!r} is spread over several workers")
