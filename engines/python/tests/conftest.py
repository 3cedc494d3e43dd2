"""What several files of tests have in common."""

from __future__ import annotations

from typing import Any

import pytest

from bowstring_sql import Session


@pytest.fixture(params=["cpu", "emulator", "off"])
def session(request: Any) -> Session:
    """A session on each device, whose operators take every query that they can."""
    return Session(device=request.param, partitions=2, settings={"bowstring.always": True})
