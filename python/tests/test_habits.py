"""Tests of what Python users try first, as it works in pyarrow, polars and numpy."""

from __future__ import annotations

import copy
import datetime as dt
import gc
import pickle
import sys
import weakref
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from samples import ARRAYS, slices

import bowstring as bs
from bowstring._bowstring import _unpickle as unpickle

TARGETS = ["cpu", "emulated"]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", ARRAYS)
def test_values_of_every_type(name: str) -> None:
    for theirs in slices(ARRAYS[name]):
        ours = bs.array(theirs)
        assert ours.to_pylist() == ours.tolist() == list(ours) == theirs.to_pylist()
        for row in range(-len(theirs), len(theirs)):
            assert ours[row] == theirs[row].as_py()
        assert repr(ours).startswith("<bowstring.Array ")


@pytest.mark.parametrize("name", ARRAYS)
def test_pickles_and_copies_of_every_type(name: str) -> None:
    for theirs in slices(ARRAYS[name]):
        ours = bs.array(theirs)
        for again in [pickle.loads(pickle.dumps(ours)), copy.copy(ours), copy.deepcopy(ours), ours.copy()]:
            assert again.type == ours.type == theirs.type
            assert again == ours and again.equals(theirs)
            pa.array(again).validate(full=True)


def test_pickles_keep_names_and_come_back_on_the_host() -> None:
    rows = bs.record_batch(pa.record_batch({"u": ARRAYS["uuid"], "n": pa.array(range(16))}))
    again = pickle.loads(pickle.dumps(rows.to("emulated")))
    assert again == rows and again.device == bs.Device.cpu()
    assert pa.record_batch(again).schema == pa.record_batch(rows).schema
    assert pickle.loads(pickle.dumps(rows["n"])).name == "n"
    for thing in [rows.schema, rows.schema["u"], rows.schema["u"].type, rows.device]:
        assert pickle.loads(pickle.dumps(thing)) == thing
    empty = bs.record_batch({})
    assert pickle.loads(pickle.dumps(empty)) == empty
    for class_, data in [("Array", b""), ("Array", pickle.dumps(1)), ("Reader", rows.__reduce__()[1][1])]:
        with pytest.raises(ValueError, match="no pickle"):
            unpickle(class_, data)


def test_values_that_python_has_not() -> None:
    fine = bs.array(pa.array([1, 1001], pa.timestamp("ns")))
    assert fine[:0].to_pylist() == []
    with pytest.raises(ValueError, match="no whole number of microseconds"):
        fine.to_pylist()
    assert fine.to_numpy().tolist() == [1, 1001]
    assert "00:00:00.000000001" in repr(fine)
    far = bs.array(pa.array([2**62, None], pa.timestamp("s")))
    with pytest.raises(OverflowError):
        far[0]
    assert far[1] is None and "None]" in repr(far)
    assert bs.array(pa.array([1], pa.timestamp("s", "+01:30")))[0].utcoffset() == dt.timedelta(minutes=90)


def test_what_is_no_valid_data_is_not_followed() -> None:
    claimed = pa.Array.from_buffers(pa.string(), 2, pa.array([b"one", b"\xff"], pa.binary()).buffers())
    for use in [bs.Array.to_pylist, list, lambda array: array[1], bs.Array.to_numpy, pickle.dumps]:
        with pytest.raises(ValueError, match="utf-8"):
            use(bs.array(claimed))
    assert "[(malformed array" in repr(bs.array(claimed))


def test_rows_by_number_slice_and_mask(target: str) -> None:
    values = [5, None, 7, 8, 9]
    array = bs.array(values).to(target)
    for rows in [slice(1, 3), slice(None, None, -1), slice(-2, None), slice(4, 0, -2), slice(9, 3), slice(None, None, 2)]:
        got = array[rows]
        assert got.to_pylist() == values[rows] and got.device == array.device
    with pytest.raises(ValueError, match="zero"):
        array[::0]
    for row in [0, 4, -1, -5, np.int8(2)]:
        assert array[row] == values[row]
    for row in [5, -6, 2**70, -(2**70)]:
        with pytest.raises(IndexError, match=f"no row {row} of 5"):
            array[row]
    assert array[[True, False, None, True, False]].to_pylist() == [5, 8]
    assert array[[3, 0, None]].to_pylist() == [8, 5, None]
    for wrong in ["a", 1.5, None]:
        with pytest.raises(TypeError):
            array[wrong]  # type: ignore[call-overload]


def test_lists_without_values_are_masks_and_indices(target: str) -> None:
    array = bs.array([1, 2]).to(target)
    batch = bs.record_batch({"n": [1, 2]}).to(target)
    for nothing in [[], (), range(0)]:
        assert bs.take(array, nothing) == array[nothing] == bs.filter(array[:0], nothing) == array[:0]
        assert bs.take(batch, nothing) == bs.filter(batch[:0], nothing) == batch[:0]
    assert bs.take(array, [None]) == array[[None]] == bs.array([None], "int64")
    assert bs.filter(array, [None, None]) == array[:0]
    assert bs.filter(array, [None, None], null_selection="emit_null").to_pylist() == [None, None]
    assert bs.filter([], []).to_pylist() == bs.take([], []).to_pylist() == []
    # An array says its type.
    with pytest.raises(ValueError, match="Null"):
        bs.take([1, 2], pa.array([None]))


def test_slices_share_memory() -> None:
    numbers = np.arange(10)
    assert np.shares_memory(bs.array(numbers)[2:5].to_numpy(zero_copy_only=True), numbers)
    assert not np.shares_memory(bs.array(numbers).copy().to_numpy(), numbers)
    assert not np.shares_memory(copy.deepcopy(bs.array(numbers)).to_numpy(), numbers)


def test_equality_is_pyarrows(target: str) -> None:
    array = bs.array([1, None]).to(target)
    assert array == bs.array([1, None]) and array != bs.array([1, 2]) and array != bs.array([1])
    assert array != bs.array([1, None], "int32") and array.equals([1, None])
    assert (array == [1, None]) is False
    # NaNs are equal, as in arrow-rs.
    assert bs.array([float("nan")]) == bs.array([float("nan")])
    with pytest.raises(TypeError, match="unhashable"):
        hash(array)
    rows = bs.record_batch({"a": [1], "b": ["x"]}).to(target)
    assert rows == bs.record_batch({"a": [1], "b": ["x"]}) and rows.equals(pa.table({"a": [1], "b": ["x"]}))
    assert rows != bs.record_batch({"a": [1], "c": ["x"]}) and rows != bs.record_batch({"a": [1], "b": ["y"]})
    assert rows != 1


def test_weak_references() -> None:
    array, rows = bs.array([1]), bs.record_batch({"a": [1]})
    there = [weakref.ref(array), weakref.ref(rows), weakref.ref(array.type), weakref.ref(array.device)]
    assert there[0]() is array and there[1]() is rows
    del array, rows
    gc.collect()
    assert [ref() for ref in there] == [None] * 4


def test_repr_shows_a_few_rows_wherever_they_are(target: str) -> None:
    array = bs.array(list(range(100))).to(target)
    place = {"cpu": "CPU", "emulated": "EMULATED:0"}[target]
    assert repr(array) == f"<bowstring.Array int64 of 100 rows on {place}>\n[0, 1, 2, 3, 4, …, 95, 96, 97, 98, 99]"
    rows = bs.record_batch({"n": [1, None], "s": ["<a>", "b" * 90]}).to(target)
    assert repr(rows).splitlines()[:4] == [
        f"<bowstring.RecordBatch of 2 rows on {place}>",
        "n      s",
        "int64  string",
        "1      '<a>'",
    ]
    assert len(repr(rows).splitlines()[4]) == 47
    assert "&lt;a&gt;" in rows._repr_html_() and "<th>int64</th>" in rows._repr_html_()
    assert "<td>99</td>" in array._repr_html_()
    wide = bs.record_batch({f"c{i}": [i] for i in range(30)})
    assert len(repr(wide)) < 250 and "…" in repr(wide)
    taken = bs.take(array, bs.array([1000]).to(target), out_of_bounds="null")
    assert "[None]" in repr(taken)
    if target == "emulated":
        assert "(" in repr(bs.take(array, bs.array([1000]).to(target)))


def test_numpy_of_numbers() -> None:
    for dtype in ["int8", "uint64", "float16", "float64"]:
        values = np.arange(5).astype(dtype)
        got = np.asarray(bs.array(values))
        assert got.dtype == dtype and np.shares_memory(got, values)
    assert bs.array(np.arange(3)).to_numpy(writable=True).flags.writeable
    holes = bs.array([1, None], "int32")
    assert np.isnan(holes.to_numpy()[1]) and holes.to_numpy().dtype == np.float64
    assert bs.array([1.5, None], "float32").to_numpy().dtype == np.float32
    for array in [holes, bs.array(["a"]), bs.array([True]), bs.array([1]).to("emulated")]:
        with pytest.raises(ValueError, match="without a copy"):
            array.to_numpy(zero_copy_only=True)
        with pytest.raises(ValueError, match="without a copy"):
            np.array(array, copy=False)
    assert np.asarray(bs.array([1, 2]), dtype="float32").dtype == np.float32
    values = np.arange(3)
    assert not np.shares_memory(np.array(bs.array(values), copy=True), values)
    assert np.asarray(bs.array([1, 2]).to("emulated")).tolist() == [1, 2]


UNLIKE = ["null", "uuid", "run_end_encoded", "month_day_nano_interval"]


@pytest.mark.parametrize("name", ARRAYS)
def test_numpy_is_pyarrows(name: str) -> None:
    for theirs in slices(ARRAYS[name]):
        got = bs.array(theirs).to_numpy()
        assert len(got) == len(theirs)
        if "list" in name or "map" in name or "union" in name or name in UNLIKE:
            # A row that is a list is a list here, and an array in pyarrow. The other types have no conversion
            # in pyarrow, or another one.
            continue
        if name == "timestamp[us, tz=Europe/Berlin]":
            theirs = theirs.cast(pa.timestamp("us"))
        expected = theirs.to_numpy(zero_copy_only=False)
        if not theirs.null_count or name.startswith(("time", "date", "dur", "int", "uint", "float", "double", "half")):
            assert got.dtype == expected.dtype
        assert pd.Series(got).equals(pd.Series(expected)) or got.tolist() == expected.tolist()


def test_pandas_series_of_ours() -> None:
    assert pd.Series(bs.array([1, 2])).tolist() == [1, 2]
    assert pd.Series(bs.array([1, None])).isna().tolist() == [False, True]
    assert pd.Series(bs.array(["a", None])).isna().tolist() == [False, True]
    assert pd.Series(bs.array([dt.datetime(2020, 1, 1), None])).dt.year.tolist()[0] == 2020


def test_values_of_python_as_arguments() -> None:
    day, now = dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 6)
    for values, type in [
        ([1, None, 2], "int64"),
        ((1, 2.5), "float64"),
        (range(3), "int64"),
        ([2**63, 1], "uint64"),
        (["a", None], "string"),
        ([b"a", bytearray(b"b")], "binary"),
        ([True, None], "bool"),
        ([None, None], "null"),
        ([], "null"),
        ([day, None], "date32"),
        ([now], "timestamp[us]"),
        ([now.time()], "time64[us]"),
        ([dt.timedelta(days=-1, microseconds=1)], "duration[us]"),
        ([Decimal("1.50"), Decimal("-200"), 3], "decimal128(21, 2)"),
        ([[1], None, []], "list<int64>"),
        ([{"a": 1}, {"b": ["x"]}, None], "struct<a: int64, b: list<string>>"),
        ([np.float32(1.5), np.int8(1)], "float64"),
        ([pa.scalar(1), None], "int64"),
        ([np.datetime64("2020-01-02T03:04"), np.datetime64("NaT")], "timestamp[us]"),
        ([pd.NA, pd.NaT, 1], "int64"),
    ]:
        array = bs.array(values)  # type: ignore[arg-type]
        assert array.type == type, (values, array.type)
        pa.array(array).validate(full=True)
    aware = bs.array([now.replace(tzinfo=dt.timezone.utc)])
    assert aware.type == "timestamp[us, tz=UTC]" and aware[0] == now.replace(tzinfo=dt.timezone.utc)
    assert bs.array([now])[0] == now and bs.array([now.time()])[0] == now.time()
    assert bs.array([dt.timedelta(days=-1, microseconds=1)])[0] == dt.timedelta(days=-1, microseconds=1)
    assert bs.array(number for number in [1, 2]).to_pylist() == [1, 2]
    assert bs.array([1, None], "float32").type == pa.float32()
    assert bs.array([{"b": 1}], pa.struct({"a": pa.int8(), "b": pa.int8()})).to_pylist() == [{"a": None, "b": 1}]
    for wrong, words in [
        ([1, "a"], "obj: a str among an int"),
        ([[1], 2], "obj: an int among a list"),
        ([object()], "row 0: .*object"),
        ([{1: 2}], "row 0: keys are str"),
    ]:
        with pytest.raises(TypeError, match=words):
            bs.array(wrong)
    with pytest.raises(OverflowError, match="row 1"):
        bs.array([1, 2**200])
    with pytest.raises(TypeError, match="no field of the type"):
        bs.array([{"c": 1}], pa.struct({"a": pa.int8()}))
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="lists in each other"):
        bs.array(endless)


def test_any_numpy_array_is_an_argument() -> None:
    numbers = np.arange(12, dtype=np.int32)
    for given in [numbers[::2], numbers[::-1], numbers.reshape(3, 4).T[1], numbers.astype(">i4"), numbers[1:1]]:
        assert bs.array(given).to_pylist() == given.tolist()
    locked = numbers.copy()
    locked.flags.writeable = False
    assert bs.array(locked).to_pylist() == numbers.tolist()
    assert bs.array(np.array(["a", "längere"])).to_pylist() == ["a", "längere"]
    assert bs.array(np.array([b"a", b"bc"])).type == "binary"
    assert bs.array(np.array(["a", None], dtype=object)).to_pylist() == ["a", None]
    assert bs.array(np.ma.masked_array([1, 2], [False, True], dtype="int16")).equals(pa.array([1, None], pa.int16()))
    for empty, type in [("U3", "string"), ("S3", "binary"), ("i2", "int16"), ("M8[D]", "date32")]:
        none = np.array([], empty)
        assert bs.array(none).type == bs.array(np.ma.array(none)).type == type
    for dtype in ["M8[D]", "M8[h]", "m8[D]", "m8[ns]"]:
        times = np.ma.array(np.array([5, 7], dtype), mask=[False, True])
        assert bs.array(times).equals(bs.array(times.filled(np.array("NaT", dtype))))
        assert bs.array(times).null_count == 1
    assert bs.array(np.ma.array([[1, 2]], mask=[[False, True]])).to_pylist() == [[1, None]]
    for unit, type in [("D", "date32"), ("s", "timestamp[s]"), ("ns", "timestamp[ns]"), ("h", "timestamp[s]")]:
        days = np.array(["2020-01-02", "NaT", "1960-05-06"], dtype=f"datetime64[{unit}]")
        got = bs.array(days)
        assert got.type == type and got.null_count == 1
        assert got.to_numpy().astype(days.dtype).tolist() == days.tolist()
    for unit, type in [("ms", "duration[ms]"), ("D", "duration[s]")]:
        long = np.array([3, "NaT"], dtype=f"timedelta64[{unit}]")
        assert bs.array(long).type == type and bs.array(long).to_numpy().astype(long.dtype).tolist() == long.tolist()
    for wrong in [np.array([1j]), np.zeros(2, "timedelta64")]:
        with pytest.raises(TypeError, match="obj: "):
            bs.array(wrong)


def test_pandas_and_polars_are_arguments() -> None:
    for given in [pd.Index([1, 2]), pd.Series([1, 2]), pd.array([1, 2]), pl.Series([1, 2])]:
        assert bs.array(given).to_pylist() == [1, 2]
    frame = pd.DataFrame({"n": [1, 2, 3], "keep": [True, False, True]})
    assert bs.filter(frame, "keep")["n"].to_pylist() == [1, 3]
    assert bs.filter(frame["n"], frame["keep"]).to_pylist() == [1, 3]
    assert bs.take(pl.DataFrame(frame), [2, 0])["n"].to_pylist() == [3, 1]
    with pytest.raises(TypeError, match=r"values: .*LazyFrame.*collect\(\)"):
        bs.filter(pl.LazyFrame({"a": [1]}), [True])


def test_devices_by_name_and_arguments_from_elsewhere() -> None:
    assert bs.Device("cpu") == bs.Device.cpu() and bs.Device("emulated:0") == bs.Device.emulated()
    for name in ["gpu", "cpu:x", ""]:
        with pytest.raises(ValueError, match="no device is named"):
            bs.Device(name)
    values = bs.array([1, 2, 3]).to("emulated")
    rows = bs.record_batch({"a": [1, 2, 3]}).to("emulated")
    mask, indices = bs.array([True, False, None]), bs.array([2, 0])
    for use, name in [
        (lambda **more: bs.filter(values, mask, **more), "mask"),
        (lambda **more: values.take(indices, **more), "indices"),
        (lambda **more: rows.filter(mask, **more)["a"], "mask"),
        (lambda **more: bs.take(rows, indices, **more)["a"], "indices"),
    ]:
        with pytest.raises(ValueError, match=rf"{name}: it is on CPU, .* EMULATED:0: move it by {name}\.to"):
            use()
        got = use(copy=True)
        assert got.device == values.device and got.to_pylist() == ([1] if name == "mask" else [3, 1])
    bs.Device("emulated").set_export_fence(False)
    assert values.filter([True, False, True]).to_pylist() == [1, 3]
    bs.Device("emulated").set_export_fence(kept=True)
    with pytest.raises(TypeError):
        bs.Device("emulated").set_export_fence("no")  # type: ignore[arg-type]
    # Python's own values are on no device.
    assert bs.filter(values, [True, False, True]).to_pylist() == [1, 3]


@pytest.mark.parametrize("values", [["a", None, "c"], [b"a", None], [[1], None, []], [{"a": 1}, None], [None, None]])
def test_fill_null_of_any_width(target: str, values: list[Any]) -> None:
    array = bs.array(values).to(target)
    filled = [values[0] if value is None else value for value in values]
    assert bs.fill_null(array, bs.array(values)[:1]).to_pylist() == filled
    assert array.fill_null(None).to_pylist() == values


def test_chunks() -> None:
    chunked = pa.chunked_array([[1, 2], [], [3]], pa.int64())
    assert [chunk.to_pylist() for chunk in bs.chunks(chunked)] == [[1, 2], [], [3]]
    casted = pa.chunked_array([bs.cast(chunk, "int8") for chunk in bs.chunks(chunked)])
    assert casted.num_chunks == 3 and casted.type == pa.int8()
    assert [chunk.to_pylist() for chunk in bs.chunks([1, 2])] == [[1, 2]]


def test_gpu_arrays_of_others() -> None:
    there = bs.array([1, None]).to("emulated")
    # pyarrow asks for the device's memory, and supports no such device; polars asks for host memory.
    assert pa.array(there.to("cpu")).to_pylist() == [1, None]
    assert pl.Series(there).to_list() == [1, None]
    rows = bs.record_batch({"a": [1]}).to("emulated")
    # A batch has two interfaces; `from_arrow` uses that of an array of structs.
    assert pl.DataFrame(rows).to_dicts() == pl.from_arrow(rows).to_list() == [{"a": 1}]  # type: ignore[union-attr]


def test_nothing_is_kept() -> None:
    values = [object() for _ in range(3)]
    before = [sys.getrefcount(value) for value in values]
    for _ in range(10):
        with pytest.raises(TypeError):
            bs.array(values)
    gc.collect()
    assert [sys.getrefcount(value) for value in values] == before
