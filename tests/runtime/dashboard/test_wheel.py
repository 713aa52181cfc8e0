"""An installed lasthop has its pages.

About `runtime/dashboard/files.py`.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lasthop.runtime.dashboard.files import STATIC, ServedFiles

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_wheel_has_every_page_and_the_sdk(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*command, "-d", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    pages = [path for path in STATIC.rglob("*") if path.is_file()]
    assert len(pages) > 20
    for path in pages:
        name = path.relative_to(STATIC).as_posix()
        assert f"lasthop/runtime/dashboard/static/{name}" in names
    assert "lasthop/runtime/dashboard/static/sdk/index.js" in names
    assert "lasthop/runtime/dashboard/static/sdk/wire/decoder.js" in names


def test_the_pages_know_where_devices_connect() -> None:
    files = ServedFiles(websocket="/elsewhere")
    assert b'data-websocket="/elsewhere"' in files.page("device").body
    assert files.find("/sdk/index.js") is not None
    assert files.find("/dashboard/static/sdk/index.js") is None
