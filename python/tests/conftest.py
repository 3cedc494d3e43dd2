"""Fixtures of all tests."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def nothing_leaked() -> Iterator[None]:
    """Checks that all memory that pyarrow allocated during the test is free afterwards."""
    gc.collect()
    before = pa.total_allocated_bytes()
    yield
    gc.collect()
    assert pa.total_allocated_bytes() == before
