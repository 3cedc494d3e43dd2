"""Conversion to arrays and batches of other libraries, which are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._bowstring import Array, RecordBatch


def arrow(value: Array | RecordBatch) -> Any:
    """Convert to pyarrow's class, in host memory."""
    pa: Any = import_module("pyarrow")
    return pa.record_batch(value.to("cpu")) if isinstance(value, RecordBatch) else pa.array(value.to("cpu"))


def pandas(value: Array | RecordBatch) -> Any:
    """Convert to pandas' class by pyarrow, which chooses the types."""
    return arrow(value).to_pandas()
