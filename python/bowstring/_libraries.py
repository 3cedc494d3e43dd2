"""Arrays and batches as those of other libraries, which are imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._bowstring import Array, RecordBatch


def arrow(value: Array | RecordBatch) -> Any:
    """As pyarrow's, in host memory."""
    pa: Any = import_module("pyarrow")
    return pa.record_batch(value.to("cpu")) if isinstance(value, RecordBatch) else pa.array(value.to("cpu"))


def pandas(value: Array | RecordBatch) -> Any:
    """As pandas', in the types that pyarrow makes of Arrow's."""
    return arrow(value).to_pandas()
