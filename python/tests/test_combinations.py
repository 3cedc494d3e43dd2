"""Answers that were wrong where two right features met."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

import bowstring as bs

pd = pytest.importorskip("pandas")


def test_times_of_the_other_byte_order() -> None:
    for unit in ("D", "s", "ms", "ns"):
        times = np.array(["2020-01-02", "NaT", "1970-01-01"], f"M8[{unit}]")
        assert bs.array(times.astype(f">M8[{unit}]")).equals(bs.array(times))
    spans = np.array([5, -7], ">m8[ms]")
    assert bs.array(spans).equals(bs.array(spans.astype("m8[ms]")))
    numbers = np.asfortranarray(np.arange(6).reshape(2, 3).astype(">f8"))
    assert bs.array(numbers).to_pylist() == [[0, 1, 2], [3, 4, 5]]


def test_nanoseconds_are_not_dropped() -> None:
    for time_ in (pd.Timestamp(1), pd.Timedelta(1), pd.Timestamp(1, tz="UTC")):
        with pytest.raises(ValueError, match="microseconds"):
            bs.array([time_])
    assert bs.array([pd.Timestamp(1000)]).to_pylist() == bs.array([pd.Timestamp(1000).to_pydatetime()]).to_pylist()


def test_a_schema_of_other_columns_is_no_request() -> None:
    batch = bs.record_batch({"a": [1], "b": [2]})
    swapped = pa.schema({"b": pa.int64(), "a": pa.int64()})
    for ask in (lambda: pa.table(batch, schema=swapped), lambda: pa.record_batch(batch, schema=swapped)):
        try:
            assert ask().to_pydict() == {"a": [1], "b": [2]}
        except (ValueError, TypeError, KeyError):
            pass
    narrow = pa.schema({"a": pa.int32(), "b": pa.int32()})
    assert pa.record_batch(batch, schema=narrow).schema == narrow


def test_names_do_not_hide_columns() -> None:
    one = bs.record_batch({"a: int64, b": [1]})
    two = bs.record_batch({"a": [1], "b": [9]})
    assert one != two and one.schema != two.schema and not one.equals(two)


def test_a_schema_forbids_nulls() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(ValueError):
        bs.RecordBatch.from_pydict({"a": [1, None]}, schema)
    batch = bs.RecordBatch.from_pydict({"a": [1, 2]}, schema)
    assert batch.schema.field("a").nullable is False and batch.to_pydict() == {"a": [1, 2]}


def test_copies_share_nothing() -> None:
    buffer = np.array([7, 8, 9])
    values = pa.Array.from_buffers(pa.int64(), 3, [None, pa.py_buffer(buffer)])
    codes = pa.DictionaryArray.from_arrays(pa.array([2, 0]), values)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3]), values.slice(0, 2))
    copies = [bs.array(array).copy() for array in (codes, runs)]
    buffer[:] = 0
    assert [copy.to_pylist() for copy in copies] == [[9, 7], [7, 8, 8]]
    views = bs.array(pa.array(["a" * 40, None, "b"], pa.string_view())[1:])
    assert views.copy().to_pylist() == [None, "b"]


def test_columns_of_two_places_come_together() -> None:
    gpu = bs.Device.emulated()
    there = bs.array([1]).to(gpu)
    for columns in ({"m": [True], "a": there}, {"a": there, "m": [True]}):
        batch = bs.record_batch(columns)
        assert batch.to_pydict() == {name: [True] if name == "m" else [1] for name in columns}
        for device in (bs.Device.cpu(), gpu):
            moved = batch.to(device)
            assert all(column.device == device for column in moved.columns)
            assert moved.to_pydict() == batch.to_pydict()
        batch.validate()


def test_numpy_arrays_of_ones_own_may_be_written() -> None:
    for array in (bs.array([1, None]), bs.array([1, 2]), bs.array(np.array(["2020-01-02"], "M8[D]"))):
        copy = np.array(array)
        copy[0] = copy[-1]
        assert copy.flags.writeable


def test_many_names_take_no_time() -> None:
    began = time.monotonic()
    wide = {str(i): i for i in range(20_000)}
    assert bs.array([wide, wide])[1]["19999"] == 19_999
    structs = bs.array(pa.array([{"t": "x" * 50}] * 300_000))
    assert sum(1 for _ in structs) == 300_000
    assert time.monotonic() - began < 60


def test_an_expression_keeps_the_bytes_that_it_was_given() -> None:
    import pickle

    given = bytearray(b"ab")
    is_ab = bs.col("b") == given
    given[0] = 0
    again = pickle.loads(pickle.dumps(is_ab))
    rows = bs.record_batch({"b": [b"ab", b"x"]})
    assert bs.evaluate(rows, [again]).column(0).to_pylist() == [True, False]
