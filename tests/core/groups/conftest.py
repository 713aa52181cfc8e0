"""A rig whose devices know groups, fresh for every test."""

from __future__ import annotations

import pytest

from tests.core.groups.crew import Crew


@pytest.fixture
def rig() -> Crew:
    return Crew()
