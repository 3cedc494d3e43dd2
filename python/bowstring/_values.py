"""A class for calendar intervals, which Python lacks, and iteration over rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ._bowstring import Array

# The number of rows that are read at once: few enough that the first arrives soon, enough to be worth a call.
_ROWS = 8192


class MonthDayNano(NamedTuple):
    """A calendar interval in three parts, which cannot be converted to each other: months and days vary in length."""

    months: int
    days: int
    nanoseconds: int


def rows(array: Array) -> Iterator[Any]:
    """Iterate over the rows of an array as Python values."""
    for start in range(0, len(array), _ROWS):
        yield from array.slice(start, min(_ROWS, len(array) - start)).to_pylist()
