"""Tests of arrays of structs, which may have null rows, and of what is a batch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import arro3.core
import nanoarrow as na
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import bowstring as bs

STRUCTS = [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}]


def structs() -> dict[str, Any]:
    array = pa.array(STRUCTS)
    # A frame with one column of structs is a batch of one column, not a batch of the structs' fields.
    return {
        "array": array,
        "chunked": pa.chunked_array([array]),
        "chunks": pa.chunked_array([array.slice(0, 2), array.slice(2)]),
        "polars": pl.Series(STRUCTS),
        "nanoarrow": na.Array(array),
        "nanoarrow stream": na.ArrayStream(pa.chunked_array([array])),
        "arro3": arro3.core.Array.from_arrow(array),
        "arro3 chunked": arro3.core.ChunkedArray.from_arrow(pa.chunked_array([array])),
        "ours": bs.array(array),
    }


@pytest.mark.parametrize("kind", structs())
def test_null_rows_of_structs_are_kept(kind: str) -> None:
    def given() -> Any:
        return structs()[kind]

    assert bs.null_count(given()) == bs.logical_null_count(given()) == 1
    assert pa.array(bs.is_null(given())).to_pylist() == [False, True, False]
    assert pa.array(bs.filter(given(), pa.array([True, True, False]))).to_pylist() == STRUCTS[:2]
    assert pa.array(bs.take(given(), pa.array([1, 0]))).to_pylist() == [STRUCTS[1], STRUCTS[0]]
    narrow = pa.struct({"x": pa.int8(), "y": pa.large_string()})
    assert pa.array(bs.cast(given(), narrow)).equals(pa.array(STRUCTS, narrow))
    assert pa.array(bs.drop_null(given())).to_pylist() == STRUCTS[::2]
    # A batch cannot have null rows.
    with pytest.raises(ValueError, match="1 rows are null"):
        bs.record_batch(given())
    if hasattr(given(), "__arrow_c_stream__"):
        with pytest.raises(ValueError, match="1 rows are null"):
            list(bs.BatchReader(given()))


def test_what_lies_under_a_null_struct_is_not_converted() -> None:
    far = pa.array([2**62, 0, 1], pa.timestamp("us"))
    at, types, ends = pa.array([0, 1, 2], pa.int32()), pa.array([0, 0, 0], pa.int8()), pa.array([1, 2, 3], pa.int32())
    then = datetime(1970, 1, 1)
    for values, right in [
        (far, then),
        (far.dictionary_encode(), then),
        (pa.RunEndEncodedArray.from_arrays(ends, far), then),
        (pa.UnionArray.from_sparse(types, [far]), then),
        (pa.UnionArray.from_dense(types, at, [far]), then),
        (pa.StructArray.from_arrays([far], ["u"]), {"u": then}),
        (pa.FixedSizeListArray.from_arrays(far, 1), [then]),
        (pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["a", "b", "c"]), far), [("b", then)]),
    ]:
        rows = pa.StructArray.from_arrays([values], ["t"], mask=pa.array([True, False, True]))
        ours = bs.array(rows)
        got = ours.to_pylist()
        assert got[0] is got[2] is None and len(got) == 3, values.type
        assert got[1] == {"t": right}, values.type
        assert list(ours) == got == [ours[0], ours[1], ours[2]] == ours.to_numpy().tolist()
        assert ours[1:].to_pylist() == got[1:] and "None, {" in repr(ours)
    # The nulls of a struct hide what is in the structs in it.
    inner = pa.StructArray.from_arrays([far], ["t"], mask=pa.array([False, False, True]))
    outer = pa.StructArray.from_arrays([inner], ["s"], mask=pa.array([True, False, False]))
    assert bs.array(outer).to_pylist() == [None, {"s": {"t": then}}, {"s": None}]


def test_what_is_a_batch_and_what_an_array() -> None:
    table, mask = pa.table({"a": [1, 2]}), pa.array([True, False])
    rows = table.to_batches()[0]
    tables = [table, rows, table.to_reader(), pl.DataFrame(table), table.to_pandas(), na.ArrayStream(table)]
    tables += [arro3.core.Table.from_arrow(table), arro3.core.RecordBatch.from_arrow(rows)]
    for given in tables:
        assert isinstance(bs.filter(given, mask), bs.RecordBatch), type(given)
    for given in [na.Array([1, 2], na.int32()), table["a"], pl.Series([1, 2]), np.array([1, 2]), mask]:
        assert isinstance(bs.filter(given, mask), bs.Array), type(given)
    assert bs.null_count(na.Array([1, None], na.int32())) == 1
