"""Never run: a type checker checks this program, which uses the package."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, assert_type

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

import bowstring as bs


def numbers(values: bs.Array, mask: bs.Array, rows: bs.RecordBatch, device: bs.Device) -> int:
    assert_type(bs.filter(values, mask), bs.Array)
    assert_type(bs.filter(rows, mask), bs.RecordBatch)
    assert_type(bs.take(rows, values, out_of_bounds="null"), bs.RecordBatch)
    assert_type(bs.cast(values, "Int8", strict=False, stream=device.stream()), bs.Array)
    assert_type(rows["name"], bs.Array)
    assert_type(bs.array(values, type=values).to(device), bs.Array)
    for batch in bs.BatchReader(rows).filter("odd").take([values]).cast(rows).to(device):
        assert_type(batch, bs.RecordBatch)
    cheap = (bs.col("price") * 2 < Decimal("9.5")) & ~bs.col("sold").is_true() | (bs.col("day") == date(2000, 1, 1))
    assert_type(cheap, bs.Expr)
    assert_type(bs.filter(rows, cheap, floats="sql"), bs.RecordBatch)
    assert_type(bs.evaluate(rows, [1 - bs.nth(0), bs.lit(None, "Int8")], overflow="null"), bs.RecordBatch)
    assert_type(bs.aggregate(rows, [bs.col("price").sum().alias("all"), bs.count_all()], where=cheap), bs.RecordBatch)
    assert_type(bs.BatchReader(rows).filter(cheap).evaluate([cheap]), bs.BatchReader)
    assert_type(rows.evaluate({"double": bs.col("price") * 2}).evaluate(bs.col("double")), bs.RecordBatch)
    assert_type(rows.aggregate({"all": bs.col("price").sum()}, cheap), bs.RecordBatch)
    assert_type(rows[["a", "b"]][cheap][mask][1:].head(3), bs.RecordBatch)
    assert_type(bs.concat([rows, rows]), bs.RecordBatch)
    assert_type(bs.concat([values, values]).nbytes + rows.nbytes, int)
    assert_type(values.source, str | None)
    bs.aggregate(rows, [cheap])  # type: ignore[list-item]
    bs.filter(rows, cheap, overflow="perhaps")  # type: ignore[call-overload]
    bs.filter(values, 3)  # type: ignore[call-overload]
    habits(values, rows)
    bs.array(1)  # type: ignore[arg-type]
    return bs.null_count(bs.drop_null(bs.is_null(values)))


def habits(values: bs.Array, rows: bs.RecordBatch) -> None:
    assert_type(bs.array([1, None, 3], "int32"), bs.Array)
    assert_type(bs.filter([1, 2], [True, False]), bs.Array)
    assert_type(bs.filter({"a": [1], "keep": [True]}, "keep"), bs.RecordBatch)
    assert_type(bs.filter(pl.DataFrame({"a": [1]}), "a"), bs.RecordBatch)
    assert_type(bs.take(values, range(3), copy=True), bs.Array)
    for type_ in [int, np.int32, np.dtype("int8"), pl.Int32, pl.Datetime("us"), pa.int32(), pd.Int8Dtype(), "i32", values.type]:
        assert_type(values.cast(type_), bs.Array)
    assert_type(rows.cast({"a": pl.Int8, "b": float}), bs.RecordBatch)
    assert_type(rows.cast(pa.schema({"a": pa.int8()})), bs.RecordBatch)
    for given in [np.arange(3), pd.Series([1]), pd.Index([1]), pl.Series([1]), pa.array([1]), pa.chunked_array([[1]])]:
        assert_type(bs.array(given), bs.Array)
    assert_type(bs.record_batch(pd.DataFrame({"a": [1]})), bs.RecordBatch)
    assert_type(values[1:], bs.Array)
    assert_type(values[[True, False]], bs.Array)
    assert_type(rows[1:], bs.RecordBatch)
    assert_type(rows["a"], bs.Array)
    assert_type(rows.schema["a"].type == "int8", bool)
    assert_type(rows.to_pydict()["a"] + values.to_pylist(), list[Any])
    assert_type(bs.is_null(rows), bs.RecordBatch)
    assert_type(bs.drop_null(rows, how="all", subset=["a"]), bs.RecordBatch)
    assert_type(bs.fill_null(rows, {"a": 1}), bs.RecordBatch)
    assert_type(values.fill_null(0).to("cpu"), bs.Array)
    assert_type(bs.filter(values, values, null_selection="emit_null"), bs.Array)
    assert_type([bs.cast(chunk, "int8") for chunk in bs.chunks(pa.chunked_array([[1]]))], list[bs.Array])
    frame = pd.Series(np.asarray(values)), pd.Series(values.to_numpy()), pl.Series(values), pa.array(values), values == values
    print(frame, values[0] + 1, [value for value in values], len(rows.schema))
    with bs.BatchReader(rows) as reader:
        assert_type(reader.read_all(), bs.RecordBatch)
