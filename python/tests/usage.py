"""Never run: what a type checker says of a program that uses the package."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import assert_type

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
    bs.aggregate(rows, [cheap])  # type: ignore[list-item]
    bs.filter(rows, cheap, overflow="perhaps")  # type: ignore[call-overload]
    bs.filter(values, 3)  # type: ignore[call-overload]
    bs.array(1)  # type: ignore[arg-type]
    return bs.null_count(bs.drop_null(bs.is_null(values)))
