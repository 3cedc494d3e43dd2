"""Tests of batches and readers with the methods that pyarrow's tables have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from samples import ARRAYS

import bowstring as bs


@pytest.fixture(params=["cpu", "emulated"])
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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


def test_columns_by_number_and_name() -> None:
    rows = bs.record_batch(pa.record_batch({"a": [1], "b": ["x"]}))
    for which in ["b", 1, -1, np.int64(-1)]:
        assert rows[which].name == rows.column(which).name == "b"
    for which in [2, -3, 2**70, -(2**70)]:
        with pytest.raises(IndexError, match=str(which)):
            rows[which]
    with pytest.raises(KeyError, match="c"):
        rows["c"]
    for which in [None, 1.5, b"a"]:
        with pytest.raises(TypeError, match="which: a column's name or number"):
            rows[which]  # type: ignore[index]


def test_batches_of_arrays() -> None:
    rows = bs.RecordBatch.from_arrays({"a": pa.array([1, 2]), "b": np.array([1.5, 2.5])})
    assert pa.record_batch(rows).to_pydict() == {"a": [1, 2], "b": [1.5, 2.5]}
    with pytest.raises(ValueError):
        bs.RecordBatch.from_arrays({"a": pa.array([1]), "b": pa.array([1, 2])})


def test_names_and_metadata() -> None:
    rows = pa.record_batch({"u": ARRAYS["uuid"]})
    column = bs.record_batch(rows)["u"]
    assert pa.array(bs.filter(column, pa.array([True] * 16))).type == pa.uuid()
    # The extension type is dropped with the type that it describes.
    assert pa.array(bs.is_null(column)).type == pa.bool_()
