"""Conversion to the classes of other libraries, which are imported only when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._bowstring import Array, RecordBatch


def arrow(value: Array | RecordBatch) -> Any:
    """Convert to a `pyarrow.Array` or `pyarrow.RecordBatch` in host memory."""
    pa: Any = import_module("pyarrow")
    return pa.record_batch(value.to("cpu")) if isinstance(value, RecordBatch) else pa.array(value.to("cpu"))


def pandas(value: Array | RecordBatch) -> Any:
    """Convert to a `pandas.Series` or `pandas.DataFrame` by way of pyarrow, which chooses the types."""
    return arrow(value).to_pandas()
