"""What the tests share: samples of every type, and a look at what is left in memory."""

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
    """What pyarrow allocated during the test is freed after it: everything was released, by whoever held it."""
    gc.collect()
    before = pa.total_allocated_bytes()
    yield
    gc.collect()
    assert pa.total_allocated_bytes() == before
