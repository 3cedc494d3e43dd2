"""Tests with other libraries: import of their arrays, and their import of ours."""

from __future__ import annotations

import arro3.core
import duckdb
import nanoarrow as na
import nanoarrow.device as nad
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tvm_ffi
from samples import ARRAYS, slices

import bowstring as bs

ROWS = {"n": [1, None, 3, 4], "s": ["a", "b", None, "längere Wörter als zwölf Bytes"]}


def kept(obj: object) -> bs.RecordBatch:
    rows = bs.filter(obj, pa.array([True, False, None, True]))
    assert isinstance(rows, bs.RecordBatch)
    return rows


EXPECTED = [{"n": 1, "s": "a"}, {"n": 4, "s": "längere Wörter als zwölf Bytes"}]


def test_polars() -> None:
    frame = pl.DataFrame(ROWS)
    assert pl.DataFrame(kept(frame)).to_dicts() == EXPECTED
    series = frame["s"]
    got = pl.Series(bs.drop_null(series))
    assert got.to_list() == series.drop_nulls().to_list()
    assert bs.null_count(series) == 1
    categories = pl.Series(["x", "y", "x"], dtype=pl.Categorical)
    assert pl.Series(bs.take(categories, np.array([1, 0]))).to_list() == ["y", "x"]
    assert pl.DataFrame(bs.BatchReader(frame).filter([pa.array([True, False, None, True])])).to_dicts() == EXPECTED


def test_polars_in_chunks() -> None:
    series = pl.concat([pl.Series([1, 2]), pl.Series([None, 4])], rechunk=False)
    assert series.n_chunks() == 2
    assert pl.Series(bs.filter(series, pa.array([True, False, True, True]))).to_list() == [1, None, 4]


def test_pandas() -> None:
    frame = pd.DataFrame({"n": pd.array(ROWS["n"], dtype="Int64"), "s": ROWS["s"]})
    back = pd.DataFrame.from_arrow(kept(frame))
    assert back["n"].tolist() == [1, 4] and back["s"].tolist() == ["a", ROWS["s"][3]]
    assert bs.null_count(frame["n"]) == 1
    assert pd.Series.from_arrow(bs.drop_null(frame["n"])).tolist() == [1, 3, 4]


def test_duckdb() -> None:
    connection = duckdb.connect()
    relation = connection.sql("select i as n, i::varchar as s from range(10) t(i)")
    ours = bs.filter(relation, np.arange(10) % 5 == 1)
    assert connection.sql("select sum(n), string_agg(s, ',' order by n) from ours").fetchall() == [(7, "1,6")]
    reader = bs.BatchReader(connection.sql("select i as n, i % 2 = 1 as odd from range(10000) t(i)")).filter("odd")
    assert pa.table(reader)["n"].to_pylist() == list(range(1, 10000, 2))


def test_nanoarrow() -> None:
    array = na.Array([1, None, 3], na.int32())
    ours = bs.array(array)
    assert na.Array(bs.take(ours, na.c_array([2, 1, 0], na.int64()))).to_pylist() == [3, None, 1]
    on_device = nad.c_device_array(ours)
    assert (on_device.device_type_id, on_device.array.length) == (1, 3)
    assert na.Array(nad.c_device_array(bs.array(on_device))).to_pylist() == [1, None, 3]
    stream = na.ArrayStream(bs.BatchReader(pa.table(ROWS)))
    assert stream.read_all().to_pylist() == pa.table(ROWS).to_pylist()
    assert na.Schema(ours).type == na.Type.INT32


@pytest.mark.parametrize("name", ARRAYS)
def test_nanoarrow_views_every_type(name: str) -> None:
    for array in slices(ARRAYS[name]):
        view = na.c_array(bs.array(array)).view()
        assert (view.length, view.null_count) == (len(array), array.null_count)


def test_nanoarrow_sees_where_device_arrays_are() -> None:
    there = bs.array(pa.array([1, 2, 3])).to(bs.Device.emulated())
    seen = nad.c_device_array(there)
    assert (seen.device_type_id, seen.device_id, seen.array.length) == (12, 0, 3)
    with pytest.raises(Exception, match="12"):
        pa.array(there)


def test_numpy() -> None:
    numbers = np.arange(12, dtype=np.int16)
    got = np.from_dlpack(bs.filter(numbers, numbers % 3 == 0))
    assert got.tolist() == [0, 3, 6, 9] and got.dtype == np.int16
    pairs = bs.array(numbers.reshape(6, 2))
    assert str(pairs.type).startswith("fixed_size_list<") and len(pairs) == 6
    assert np.from_dlpack(bs.take(pairs, np.array([5, 0]))).tolist() == [[10, 11], [0, 1]]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float16", "float64", "bool"])
def test_tvm_ffi_takes_and_gives_either_form(dtype: str) -> None:
    values = (np.arange(12) % 5).astype(dtype)
    for shape in [(12,), (4, 3), (0,)]:
        theirs = tvm_ffi.from_dlpack(bs.array(values[: np.prod(shape)].reshape(shape)))
        assert (theirs.shape, str(theirs.dtype)) == (shape, dtype)
        for version in [None, (1, 0)]:
            ours = bs.from_dlpack(theirs.__dlpack__(max_version=version))
            assert np.from_dlpack(ours).tolist() == values[: np.prod(shape)].reshape(shape).tolist()
            raw = tvm_ffi.from_dlpack(ours.__dlpack__(max_version=version))
            assert raw.shape == shape
    kept = bs.filter(tvm_ffi.from_dlpack(np.arange(4)), tvm_ffi.from_dlpack(np.array([True, False, True, False])))
    assert pa.array(kept).to_pylist() == [0, 2]


def test_jax() -> None:
    # jax takes half a gigabyte, so `pip install ./python[test]` does not install it.
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    numbers = jnp.arange(6, dtype=jnp.float32)
    ours = bs.filter(numbers, numbers > 2)
    assert jax.dlpack.from_dlpack(ours).tolist() == [3.0, 4.0, 5.0]
    assert pa.array(bs.take(ours, np.array([2, 0]))).to_pylist() == [5.0, 3.0]


def test_arro3() -> None:
    array = arro3.core.Array([1, None, 3], arro3.core.DataType.int32())
    assert arro3.core.Array(bs.drop_null(array)).to_pylist() == [1, 3]
    rows = arro3.core.RecordBatch.from_pydict({"n": array})
    kept = arro3.core.RecordBatch.from_arrow(bs.filter(rows, pa.array([True, True, False])))
    assert kept["n"].to_pylist() == [1, None]
    table = arro3.core.Table.from_batches([rows])
    reader = arro3.core.RecordBatchReader.from_arrow(bs.BatchReader(table).filter([pa.array([False, True, True])]))
    assert reader.read_all()["n"].to_pylist() == [None, 3]


def test_operations_among_libraries() -> None:
    values, mask = pl.Series([1.0, 2.0, None]), pd.Series([True, False, True])
    assert pa.array(bs.filter(values, mask)).to_pylist() == [1.0, None]
