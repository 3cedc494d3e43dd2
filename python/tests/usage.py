"""Never run: what a type checker says of a program that uses the package."""

from __future__ import annotations

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
    bs.filter(values, 3)  # type: ignore[call-overload]
    bs.array([1, 2])  # type: ignore[arg-type]
    return bs.null_count(bs.drop_null(bs.is_null(values)))
