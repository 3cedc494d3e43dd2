"""Tests of how data is imported from other libraries' objects: from the device before the host, with a record of the method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from devices import Only

import bowstring as bs

GPU = bs.Device.emulated()
NUMBERS = pa.array([1, None, 3])
TEXT = pa.array(["a", "b", None])


class PylibcudfTable:
    """A table like pylibcudf's: it has only the device method of Arrow, and columns without names."""

    def __init__(self, *columns: pa.Array) -> None:
        self.held = bs.array(pa.StructArray.from_arrays(columns, names=[""] * len(columns))).to(GPU)

    def num_columns(self) -> int:
        return len(self.held)

    def __arrow_c_device_array__(self, requested_schema: object = None, **kwargs: object) -> object:
        assert requested_schema is None and not any(kwargs.values())
        return self.held.__arrow_c_device_array__()


class PylibcudfColumn(PylibcudfTable):
    def __init__(self, column: pa.Array) -> None:
        self.held = bs.array(column).to(GPU)


class Cudf:
    """An object like cudf's: its Arrow stream is a copy in host memory, which no test here may ask for."""

    def __init__(self, held: PylibcudfTable, said: dict[str, Any]) -> None:
        self.held, self.said = held, said

    def to_pylibcudf(self) -> tuple[PylibcudfTable, dict[str, Any]]:
        return self.held, self.said

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("the data was copied to the host")

    def __array__(self, dtype: object = None, copy: object = None) -> object:
        raise TypeError("Implicit conversion to a host array is not allowed")

    def __len__(self) -> int:
        return 3


def frame(names: list[Any]) -> Cudf:
    return Cudf(PylibcudfTable(NUMBERS, TEXT), {"index": range(3), "columns": pd.Index(names)})


def test_frames_of_cudf_stay_on_the_device() -> None:
    rows = frame(["n", "s"])
    for batch in [bs.record_batch(rows), next(bs.BatchReader(rows))]:
        assert (batch.device, batch.source, batch.column_names) == (GPU, "to_pylibcudf", ["n", "s"])
        assert batch.to("cpu").to_pydict() == {"n": [1, None, 3], "s": ["a", "b", None]}
    kept = bs.filter(rows, bs.col("n").is_not_null())
    assert (kept.device, kept.source) == (GPU, None)
    assert kept.to("cpu").to_pydict() == {"n": [1, 3], "s": ["a", None]}
    assert bs.filter(rows, [True, False, True]).device == GPU
    structs = bs.array(rows)
    assert (structs.device, structs.source, len(structs)) == (GPU, "to_pylibcudf", 3)
    assert [chunk.device for chunk in bs.chunks(rows)] == [GPU]
    # pandas allows any object as a column's name.
    assert bs.record_batch(frame([1, ("a", "b")])).column_names == ["1", "('a', 'b')"]


def test_series_of_cudf_stay_on_the_device() -> None:
    for name in ["n", None, 5]:
        series = bs.array(Cudf(PylibcudfColumn(NUMBERS), {"name": name, "index": range(3)}))
        assert (series.device, series.source, series.name) == (GPU, "to_pylibcudf", "" if name is None else str(name))
        assert series.to("cpu").to_pylist() == [1, None, 3]


def test_what_pylibcudf_has_stays_on_the_device() -> None:
    table, column = PylibcudfTable(NUMBERS, TEXT), PylibcudfColumn(TEXT)
    batch = bs.record_batch(table)
    assert (batch.device, batch.source) == (GPU, "__arrow_c_device_array__")
    assert bs.filter(table, bs.nth(0) > 1).device == GPU
    assert bs.drop_null(column).device == GPU


def test_pairs_that_are_none_are_said_to_be() -> None:
    with pytest.raises(ValueError, match="2 columns and 3 names"):
        bs.record_batch(frame(["a", "b", "c"]))

    class Other:
        def to_pylibcudf(self) -> int:
            return 1

    with pytest.raises(TypeError, match="to_pylibcudf gave .*int"):
        bs.record_batch(Other())


class Both:
    """An object with a device stream and a host stream, which is a copy."""

    def __arrow_c_device_stream__(self, requested_schema: object = None, **kwargs: object) -> object:
        return bs.BatchReader(pa.table({"n": NUMBERS})).to(GPU).__arrow_c_device_stream__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("the data was copied to the host")


def test_device_streams_come_first_wherever_streams_are_taken() -> None:
    assert bs.record_batch(Both()).device == GPU
    assert bs.filter(Both(), bs.col("n") > 1).device == GPU
    assert bs.array(Both()).device == GPU
    reader = bs.BatchReader(Both())
    assert reader.source == "__arrow_c_device_stream__"
    batch = next(reader)
    assert (batch.device, batch.source) == (GPU, "__arrow_c_device_stream__")
    assert bs.BatchReader(bs.BatchReader(Both())).filter(bs.col("n") > 1).source is None


def batches() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"n": NUMBERS})


@pytest.mark.parametrize(
    ("obj", "method"),
    [
        (NUMBERS, "__arrow_c_device_array__"),
        (Only(NUMBERS, "__arrow_c_array__"), "__arrow_c_array__"),
        (pa.chunked_array([NUMBERS]), "__arrow_c_stream__"),
        (pl.Series([1]), "__arrow_c_stream__"),
        (pd.Index([1]), "__arrow_c_stream__"),
        (np.arange(3), "__array_interface__"),
        (np.array(["a"]), "__array_interface__"),
        (bs.array([1]), None),
        ([1], None),
    ],
    ids=str,
)
def test_who_asks_knows_by_which_method_it_came(obj: Any, method: str | None) -> None:
    assert bs.array(obj).source == method


def test_batches_know_it_too() -> None:
    table = pa.table({"n": NUMBERS})
    assert bs.record_batch(pa.record_batch({"n": NUMBERS})).source == "__arrow_c_device_array__"
    assert bs.record_batch(table).source == bs.BatchReader(table).source == "__arrow_c_stream__"
    assert bs.record_batch({"n": NUMBERS}).source is bs.filter(table, bs.col("n") > 0).source is None
    assert bs.BatchReader.from_batches(table.schema, batches()).source is None
    assert bs.from_dlpack(np.arange(2)).source == "__dlpack__"
