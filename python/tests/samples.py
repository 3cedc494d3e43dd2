"""Arrays of all types in pyarrow, with nulls, and slices of them whose bits do not start at a byte."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pyarrow as pa

D = decimal.Decimal


def _typed(type: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.array(values, type)


def arrays() -> dict[str, pa.Array]:
    found: dict[str, pa.Array] = {}
    repeat = 5

    def add(type: pa.DataType, values: list[Any]) -> None:
        found[str(type)] = _typed(type, values * repeat)

    add(pa.null(), [None, None, None])
    add(pa.bool_(), [True, None, False])
    for type in [pa.int8(), pa.int16(), pa.int32(), pa.int64()]:
        add(type, [-1, None, 2**7 - 1, 0])
    for type in [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]:
        add(type, [1, None, 2**8 - 1, 0])
    add(pa.float16(), [np.float16(1.5), None, np.float16(-2)])
    for type in [pa.float32(), pa.float64()]:
        add(type, [1.5, None, float("inf"), -0.0])
    add(pa.decimal32(7, 2), [D("1.50"), None, D("-99999.99")])
    add(pa.decimal64(15, 3), [D("1.500"), None])
    add(pa.decimal128(30, 4), [D("1.5000"), None, D("-12345678901234567890.1234")])
    add(pa.decimal256(60, 5), [D("1.50000"), None])
    add(pa.date32(), [dt.date(2020, 1, 2), None])
    add(pa.date64(), [dt.date(1960, 1, 2), None])
    add(pa.time32("s"), [dt.time(1, 2, 3), None])
    add(pa.time32("ms"), [dt.time(1, 2, 3, 4000), None])
    add(pa.time64("us"), [dt.time(1, 2, 3, 4), None])
    add(pa.time64("ns"), [dt.time(1, 2, 3, 4), None])
    for unit in ["s", "ms", "us", "ns"]:
        add(pa.timestamp(unit), [dt.datetime(2020, 1, 2, 3), None])
        add(pa.duration(unit), [dt.timedelta(seconds=3), None])
    add(pa.timestamp("us", "Europe/Berlin"), [dt.datetime(2020, 1, 2, 3), None])
    add(pa.month_day_nano_interval(), [pa.MonthDayNano([1, -2, 3]), None])
    text = ["", "a", None, "längere Wörter als zwölf Bytes", "xyz"]
    for type in [pa.string(), pa.large_string(), pa.string_view()]:
        add(type, text)
    for type in [pa.binary(), pa.large_binary(), pa.binary_view()]:
        add(type, [word and word.encode() for word in text])
    add(pa.binary(3), [b"abc", None, b"\x00\xff\x01"])
    lists = [[1, None, 3], [], None, [4]]
    for type in [pa.list_(pa.int32()), pa.large_list(pa.int32())]:
        add(type, lists)
    for type in [pa.list_view(pa.int32()), pa.large_list_view(pa.int32())]:
        add(type, lists)
    add(pa.list_(pa.string(), 2), [["a", None], None, ["b", "c"]])
    add(pa.struct({"a": pa.int8(), "b": pa.string()}), [{"a": 1, "b": "x"}, None, {"a": None, "b": None}])
    add(pa.map_(pa.string(), pa.int64()), [[("k", 1), ("l", None)], None, []])
    add(pa.list_(pa.struct({"x": pa.list_(pa.bool_())})), [[{"x": [True, None]}], None, [None, {"x": None}]])
    words = pa.array(["x", "y", None, "x"] * repeat)
    found["dictionary"] = words.dictionary_encode()
    found["dictionary<int64>"] = words.cast(pa.dictionary(pa.int64(), pa.large_string()))
    ends = pa.array([2, 3, 9, 20], pa.int32())
    found["run_end_encoded"] = pa.RunEndEncodedArray.from_arrays(ends, pa.array([1.5, None, 2.5, 3.5]))
    kinds = pa.array([0, 1] * 2 * repeat, pa.int8())
    offsets = pa.array([i // 2 for i in range(4 * repeat)], pa.int32())
    parts = [pa.array(range(4 * repeat)), pa.array([str(i) for i in range(4 * repeat)])]
    found["sparse_union"] = pa.UnionArray.from_sparse(kinds, parts)
    found["dense_union"] = pa.UnionArray.from_dense(kinds, offsets, parts)
    found["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16), None] * 8, pa.binary(16)))
    return found


ARRAYS = arrays()
SLICES = [(0, None), (1, None), (3, 5), (0, 0), (7, 2)]


def slices(array: pa.Array) -> list[pa.Array]:
    return [array.slice(start, length) for start, length in SLICES]
