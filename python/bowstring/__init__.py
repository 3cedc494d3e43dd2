"""Compute functions for Apache Arrow arrays in CPU and GPU memory: filter, take, cast, null counts and expressions.

Every function takes any object with the Arrow PyCapsule interface (pyarrow, polars, pandas, duckdb, nanoarrow), DLPack
(numpy, torch, jax, cupy) or the CUDA array interface (cupy, numba), and lists of Python's own values. It returns objects
with all of these interfaces. Data is copied only where that is unavoidable.
"""

# The stub of `_bowstring` lists its exports.
from ._bowstring import *
from ._values import MonthDayNano as MonthDayNano
