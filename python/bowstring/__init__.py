"""Compute for Apache Arrow arrays on CPU and GPU memory: filter, take, cast, sort, group, join, windows and expressions.

Every function accepts any object with the Arrow PyCapsule interface (pyarrow, polars, pandas, duckdb, nanoarrow), DLPack
(numpy, torch, jax, cupy) or the CUDA array interface (cupy, numba), and lists of Python values. The arrays that it
returns have all of these interfaces. Functions copy data only where they must.
"""

# The stub of `_bowstring` lists its exports.
from ._bowstring import *
from ._values import MonthDayNano as MonthDayNano
