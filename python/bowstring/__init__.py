"""Compute for Apache Arrow arrays where they are: filter, take, cast, null counts and expressions, on CPU and
GPU memory.

Every function takes any object that speaks the Arrow PyCapsule interface (pyarrow, polars, pandas, duckdb, nanoarrow),
DLPack (numpy, torch, jax, cupy) or the CUDA array interface (cupy, numba), and lists of Python's own values; it returns
objects that speak all of these. Nothing is copied that need not be.
"""

# Whatever `_bowstring` exports, which its stub lists.
from ._bowstring import *
from ._values import MonthDayNano as MonthDayNano
