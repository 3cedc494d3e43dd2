"""A class for values that Python has no class for, and iteration over rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ._bowstring import Array

# The number of rows that are read at once: few enough to arrive soon, and enough to be worth a call.
_ROWS = 8192


class MonthDayNano(NamedTuple):
    """A calendar interval. Months and days vary in length, so the three parts cannot be converted to one another."""

    months: int
    days: int
    nanoseconds: int


def rows(array: Array) -> Iterator[Any]:
    """Iterate over the values of an array's rows."""
    for start in range(0, len(array), _ROWS):
        yield from array.slice(start, min(_ROWS, len(array) - start)).to_pylist()
