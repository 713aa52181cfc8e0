"""Programs of others that our octets are shown to."""

import os
import shutil

import pytest


def need(*programs: str) -> None:
    """Skip the test where one of them is missing; fail it where none may be."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"not installed: {', '.join(missing)}")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
