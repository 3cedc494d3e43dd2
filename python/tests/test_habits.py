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


def test_types_are_those_of_all_neighbours() -> None:
    for type, name in [
        ("Int32", "int32"),
        ("i32", "int32"),
        ("str", "string"),
        ("Utf8", "string"),
        ("large_string", "large_string"),
        ("TIMESTAMP[us, tz=UTC]", "timestamp[us, tz=UTC]"),
        ("Timestamp(Microsecond, None)", "timestamp[us]"),
        ("datetime64[ns, Europe/Paris]", "timestamp[ns, tz=Europe/Paris]"),
        ("decimal128(10, 2)", "decimal128(10, 2)"),
        ("list<item: int32 not null>", "list<int32 not null>"),
        ("fixed_size_list<float>[3]", "fixed_size_list<float32>[3]"),
        ("map<string, list<int8>>", "map<string, list<int8>>"),
        ("dictionary<int8, string>", "dictionary<values=string, indices=int8>"),
        ("struct<a: int8, b b: struct<>>", "struct<a: int8, b b: struct<>>"),
        ("BIGINT", "int64"),
        (int, "int64"),
        (float, "float64"),
        (str, "string"),
        (bool, "bool"),
        (bytes, "binary"),
        (dt.date, "date32"),
        (dt.datetime, "timestamp[us]"),
        (np.int16, "int16"),
        (np.dtype("datetime64[ms]"), "timestamp[ms]"),
        (np.dtype("U7"), "string"),
        (pl.Int32, "int32"),
        (pl.Datetime("ns", "UTC"), "timestamp[ns, tz=UTC]"),
        (pl.List(pl.UInt8), "large_list<uint8>"),
        (pa.list_(pa.field("x", pa.float16())), "list<float16>"),
        (pd.Int8Dtype(), "int8"),
        (pd.DatetimeTZDtype("us", "UTC"), "timestamp[us, tz=UTC]"),
        (bs.array([1]), "int64"),
    ]:
        got = bs.DataType(type)
        assert str(got) == name and got == name and got == type and hash(got) == hash(bs.DataType(name))
    assert bs.DataType("list<int8>").value_type == "int8"
    assert pa.int32() == bs.DataType("int32") and bs.DataType("int32") != "int33" and bs.DataType("int32") != 1
    with pytest.raises(AttributeError):
        bs.DataType("int8").value_type
    for wrong, words in [("Int33", "mean \"int32\""), ("flaot64", "mean \"float64\""), ("timestamp[xs]", "no type"), ("", "no type")]:
        with pytest.raises(ValueError, match=words):
            bs.DataType(wrong)
    for wrong in ["list<" * 5000, "List(" * 5000, "decimal128(99", "list<int8", "int8>", "map<a, b>", "binary[-1]x"]:
        with pytest.raises(ValueError, match="type: no type"):
            bs.array([1], wrong)
    for wrong in [7, Decimal, object, pl.Series]:
        with pytest.raises(TypeError, match="to: a type is needed"):
            bs.cast([1], wrong)


@pytest.mark.parametrize("name", ARRAYS)
def test_types_are_read_as_they_are_written(name: str) -> None:
    type = bs.array(ARRAYS[name]).type
    assert type == ARRAYS[name].type and pa.field("", ARRAYS[name].type) == pa.field(type).with_name("")
    if "union" not in name and name != "uuid":
        assert bs.DataType(str(type)) == type and bs.DataType(str(ARRAYS[name].type)) == type


def test_schemas() -> None:
    schema = bs.Schema({"a": "int8", "b": pa.string()})
    assert schema.names == ["a", "b"] and schema.types == ["int8", "string"] and len(schema) == 2
    assert schema["a"] == schema.field(-2) == bs.Field("a", "int8") and "b" in schema and "c" not in schema
    assert [field.name for field in schema] == ["a", "b"] and str(schema) == "a: int8\nb: string"
    assert pa.schema(schema) == pa.schema({"a": pa.int8(), "b": pa.string()}) and schema == pa.schema(schema)
    assert schema != bs.Schema({"a": "int16", "b": "string"}) and hash(schema) == hash(bs.Schema(pa.schema(schema)))
    said = pa.schema([pa.field("a", pa.int8(), nullable=False, metadata={"k": "v"})], {"s": "t"})
    assert bs.Schema(said).metadata == {b"s": b"t"} and bs.Schema(said)["a"].metadata == {b"k": b"v"}
    assert not bs.Schema(said)["a"].nullable and str(bs.Schema(said)["a"]) == "a: int8 not null"
    with pytest.raises(KeyError, match="mean .*price"):
        bs.Schema({"price": int})["prize"]
    with pytest.raises(TypeError, match=r"obj\['a'\]: a type is needed"):
        bs.Schema({"a": 1})


def test_batches_as_pyarrow_has_them(target: str) -> None:
    columns = {"n": [1, None, 3], "s": ["a", "b", None]}
    rows = bs.RecordBatch.from_pydict(columns).to(target)
    assert rows.to_pydict() == columns and rows.to_pylist() == pa.table(columns).to_pylist()
    assert rows.schema == pa.table(columns).schema and rows.shape == (3, 2)
    assert [column.to_pylist() for column in rows.columns] == list(columns.values())
    assert "n" in rows and "x" not in rows
    table = np.asarray(rows.select(["n", "n"]))
    assert table.shape == (3, 2) and table[2].tolist() == [3.0, 3.0] and np.asarray(rows).dtype == object
    assert np.asarray(bs.record_batch({})).shape == (0, 0) and np.asarray(rows.select(["n"]), "float32").dtype == "float32"
    assert rows.select(["s", 0]).column_names == ["s", "n"]
    assert rows.slice(1).to_pydict()["n"] == rows[1:].to_pydict()["n"] == [None, 3] and rows[-1:]["n"][0] == 3
    for wrong in [(4,), (1, 3), (2**70,)]:
        with pytest.raises(ValueError):
            rows.slice(*wrong)
    with pytest.raises(IndexError):
        rows.slice(-1)
    for part in [slice(None, None, 2), slice(None, None, -1), slice(2, 0, -2), slice(5, 1, -1), slice(2, 0), slice(1, None, 7), slice(-9, 9, 3)]:
        assert rows[part].to_pylist() == rows.to_pylist()[part] and rows[part].device == rows.device
    with pytest.raises(ValueError, match="zero"):
        rows[::0]
    assert rows.tail(2).to_pylist() == rows.to_pylist()[-2:] and len(rows.tail()) == 3 and len(rows.tail(0)) == 0
    assert bs.record_batch(pa.table(columns).to_pylist()).to_pydict() == columns
    typed = bs.RecordBatch.from_pydict(columns, {"s": "large_string", "n": int})
    assert typed.column_names == ["s", "n"] and typed.schema.types == ["large_string", "int64"]
    for schema, words in [({"n": int}, 'no column "s" in the schema'), ({"n": int, "s": str, "x": int}, "no column \"x\"")]:
        with pytest.raises(KeyError, match=words):
            bs.RecordBatch.from_pydict(columns, schema)
    assert rows.cast({"n": "float64"}).schema == bs.Schema({"n": float, "s": str})
    with pytest.raises(KeyError, match="no column"):
        rows.cast({"x": "int8"})


def test_readers_as_pyarrow_has_them() -> None:
    table = pa.table({"n": [1, 2, 3]})
    with bs.BatchReader(table) as reader:
        assert reader.schema == table.schema and "n: int64" in repr(reader)
        assert reader.read_next_batch().to_pydict() == {"n": [1, 2, 3]}
        with pytest.raises(StopIteration):
            reader.read_next_batch()
    with pytest.raises(ValueError, match="given away"):
        next(reader)
    chunked = pa.concat_tables([table, table])
    assert bs.BatchReader(chunked).read_all().to_pydict()["n"] == [1, 2, 3, 1, 2, 3]
    assert bs.BatchReader(chunked.slice(0, 0)).cast({"n": "int8"}).read_all().schema == {"n": "int8"}
    closed = []

    def batches() -> Any:
        try:
            yield bs.record_batch(table)
            yield bs.record_batch(table)
        finally:
            closed.append(True)

    with bs.BatchReader.from_batches({"n": "int64"}, batches()) as reader:
        next(reader)
    assert closed
    with pytest.raises(TypeError, match="mask: one array for each batch"):
        bs.BatchReader(table).filter(bs.array([True, True, True]))


def test_nulls_of_tables(target: str) -> None:
    columns: dict[str, list[Any]] = {"n": [1, None, None], "s": ["a", "b", None], "x": [0.5, None, None]}
    rows = bs.record_batch(columns).to(target)
    assert bs.is_null(rows).to_pydict()["n"] == [False, True, True]
    assert bs.is_valid(rows).to_pydict()["s"] == [True, True, False]
    assert bs.null_count(rows) == bs.logical_null_count(rows) == [2, 1, 2]
    assert len(rows.drop_null()) == 1 and len(rows.drop_null(how="all")) == 2
    assert bs.drop_null(rows, subset=["s"]).to_pydict()["s"] == ["a", "b"] == rows.drop_null(subset="s")["s"].to_pylist()
    assert len(rows.drop_null(subset=["n", -1], how="all")) == 1 and len(rows.drop_null(subset=[])) == 3
    wide = bs.record_batch({f"c{i}": [i, None] for i in range(500)}).to(target)
    assert len(wide.drop_null()) == 1
    with pytest.raises(ValueError, match="how is"):
        rows.drop_null(how="some")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="no column"):
        rows.drop_null(subset=["y"])
    filled = rows.fill_null({"n": 7, "x": 1})
    assert filled.to_pydict() == {"n": [1, 7, 7], "s": ["a", "b", None], "x": [0.5, 1.0, 1.0]}
    assert bs.fill_null(rows.select(["n", "x"]), 0).to_pydict() == {"n": [1, 0, 0], "x": [0.5, 0.0, 0.0]}
    with pytest.raises(TypeError, match='value for column "n": a str'):
        rows.fill_null("none")
    assert bs.fill_null(rows, {"s": "?"})["s"].to_pylist() == ["a", "b", "?"]


@pytest.mark.parametrize("values", [["a", None, "c"], [b"a", None], [[1], None, []], [{"a": 1}, None], [None, None]])
def test_fill_null_of_any_width(target: str, values: list[Any]) -> None:
    array = bs.array(values).to(target)
    filled = [values[0] if value is None else value for value in values]
    assert bs.fill_null(array, bs.array(values)[:1]).to_pylist() == filled
    assert array.fill_null(None).to_pylist() == values


def test_nulls_of_masks(target: str) -> None:
    values, mask = bs.array([1, 2, 3, 4]).to(target), bs.array([True, None, False, True]).to(target)
    assert bs.filter(values, mask).to_pylist() == values.filter(mask, null_selection="drop").to_pylist() == [1, 4]
    assert bs.filter(values, mask, null_selection="emit_null").to_pylist() == [1, None, 4]
    rows = bs.record_batch({"a": values, "m": mask})
    assert bs.filter(rows, "m").to_pydict()["a"] == [1, 4]
    assert rows.filter("m", null_selection="emit_null").to_pydict() == {"a": [1, None, 4], "m": [True, None, True]}
    with pytest.raises(ValueError, match="rows and a mask of|Boolean"):
        bs.filter(values, mask.slice(1), null_selection="emit_null")
    with pytest.raises(ValueError, match="emit_null"):
        bs.filter(rows, bs.col("m"), null_selection="emit_null")
    with pytest.raises(ValueError, match="null_selection is"):
        bs.filter(rows, "m", null_selection="keep")  # type: ignore[call-overload]
    with pytest.raises(KeyError, match="no column"):
        bs.filter(rows, "b")


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
