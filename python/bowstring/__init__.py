"""Compute for Apache Arrow arrays where they are: filter, take, cast and null counts, on CPU and GPU memory.

Every function takes any object that speaks the Arrow PyCapsule interface (pyarrow, polars, pandas, duckdb, nanoarrow),
DLPack (numpy, torch, jax, cupy) or the CUDA array interface (cupy, numba), and returns objects that speak all of these.
Nothing is copied that need not be.
"""

from ._bowstring import (
    Array,
    BatchReader,
    Device,
    RecordBatch,
    Stream,
    __version__,
    array,
    cast,
    drop_null,
    fill_null,
    filter,
    from_cuda_array_interface,
    from_dlpack,
    is_null,
    is_valid,
    logical_null_count,
    null_count,
    record_batch,
    take,
)

__all__ = [
    "Array",
    "BatchReader",
    "Device",
    "RecordBatch",
    "Stream",
    "__version__",
    "array",
    "cast",
    "drop_null",
    "fill_null",
    "filter",
    "from_cuda_array_interface",
    "from_dlpack",
    "is_null",
    "is_valid",
    "logical_null_count",
    "null_count",
    "record_batch",
    "take",
]
