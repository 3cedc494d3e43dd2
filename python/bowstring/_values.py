"""Values that Python has no class for, and rows one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ._bowstring import Array

# Rows are read by so many: few enough to be soon there, and enough for a call to be worth it.
_ROWS = 8192


class MonthDayNano(NamedTuple):
    """An interval of the calendar: months and days differ in length, so none of the three becomes another."""

    months: int
    days: int
    nanoseconds: int


def rows(array: Array) -> Iterator[Any]:
    """The values of an array's rows."""
    for start in range(0, len(array), _ROWS):
        yield from array.slice(start, min(_ROWS, len(array) - start)).to_pylist()
