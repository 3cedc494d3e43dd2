"""Tests of the texts that show arrays: they take little time and memory, whatever the rows are."""

from __future__ import annotations

import time
import zoneinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bowstring as bs

HUGE = 2**30


def row(array: pa.Array) -> str:
    """Returns the text that shows an array of one row, without the brackets around it."""
    return repr(bs.array(array)).splitlines()[1][1:-1]


def runs(value: Any, rows: int = HUGE) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), value)


def fixed(items: pa.Array, size: int) -> pa.Array:
    return pa.Array.from_buffers(pa.list_(items.type, size), len(items) // size, [None], children=[items])


def nested(levels: int) -> pa.Array:
    """Returns lists of 64 views of one list, of which each is such a list."""
    array = pa.array([7])
    for _ in range(levels):
        zeros = pa.array(np.zeros(64, np.int32))
        ones = pa.array(np.full(64, len(array), np.int32))
        array = pa.ListViewArray.from_arrays(zeros, ones, array)
    return array[:1]


def test_a_row_of_a_billion_items_is_shown_at_once() -> None:
    nulls = pa.nulls(HUGE)
    lists = {
        "runs": fixed(runs(pa.array(["a"])), HUGE),
        "nulls": fixed(nulls, HUGE),
        "structs": fixed(pa.StructArray.from_arrays([nulls, runs(pa.array([1]))], ["a", "b"]), HUGE),
        "views": nested(12),
        "struct of lists": pa.StructArray.from_arrays([fixed(nulls, HUGE)] * 2, ["a", "b"]),
        "times": fixed(runs(pa.array([1], pa.timestamp("ns"))), HUGE),
    }
    begun = time.monotonic()
    shown = {name: row(array) for name, array in lists.items()}
    assert time.monotonic() - begun < 5
    assert shown["runs"] == "['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a'…"
    assert shown["nulls"] == "[None, None, None, None, None, None, No…"
    assert shown["structs"] == "[{'a': None, 'b': 1}, {'a': None, 'b': …"
    assert shown["views"] == ("[" * 12 + "7]" + ", [7]" * 9)[:39] + "…"
    assert shown["struct of lists"] == "{'a': [None, None, None, None, None, No…"
    assert shown["times"] == "[1970-01-01T00:00:00.000000001, 1970-01…"


def test_the_beginning_of_a_row_is_right() -> None:
    """The text of a row that is converted in part is the beginning of the whole row's text."""
    deep = [{"a": [], "b": [[1, None]] * 90, "c": "é" * 300}] + [{"a": list(range(500)), "b": None, "c": ""}] * 90
    union = pa.UnionArray.from_dense(
        pa.array([0, 1] * 50, pa.int8()), pa.array(range(100), pa.int32()), [pa.array(range(100)), pa.array(["x"] * 100)]
    )
    for array in [
        pa.array([deep]),
        pa.array([[("k" * i, list(range(i))) for i in range(90)]], pa.map_(pa.string(), pa.list_(pa.int64()))),
        pa.array(["é" * 1000]),
        pa.array([b"\xff" * 1000]),
        pa.array([{f"f{i}": {"g": i} for i in range(300)}]),
        pa.ListArray.from_arrays([0, 100], pa.array(["ab", None] * 50).dictionary_encode()),
        pa.ListArray.from_arrays([0, 100], union),
        pa.array([[]], pa.list_(pa.int8())),
        pa.array([[{}, {}]], pa.list_(pa.struct([]))),
    ]:
        whole = repr(bs.array(array).to_pylist()[0])
        assert row(array) == (whole if len(whole) <= 40 else whole[:39] + "…"), array.type


def test_a_zone_is_needed_only_by_a_row() -> None:
    lacking = bs.array(pa.array([None, None], pa.timestamp("us", "Nowhere/City")))
    assert lacking.to_pylist() == [None, None] and "[None, None]" in repr(lacking)
    for zone in ["Nowhere/City", "Europe"]:
        some = bs.array(pa.array([None, 1], pa.timestamp("us", zone)))
        assert some[0] is None
        with pytest.raises(ValueError, match=f'no time zone "{zone}"'):
            some.to_pylist()
        assert "Array" in repr(some)


def test_a_zone_that_python_lacks_is_shown_as_arrow_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(name: str) -> Any:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    # bowstring keeps the class, so the two places where the class looks are replaced: the package tzdata and files.
    monkeypatch.setattr(zoneinfo._common, "load_tzdata", lacks)
    zoneinfo.ZoneInfo.clear_cache()
    try:
        zoneinfo.reset_tzpath([])
        some = bs.array(pa.array([0], pa.timestamp("s", "Asia/Tokyo")))
        assert "[1970-01-01T09:00:00+09:00]" in repr(some)
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()
