"""Tests with numpy's arrays: what is shared with them, and what is missing in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bowstring as bs


@pytest.mark.parametrize("name", ["M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[us]"])
def test_times_are_shared(name: str) -> None:
    values = np.arange(5).astype(name)
    ours = bs.array(values)[1:]
    for got in [ours.to_numpy(zero_copy_only=True), np.array(ours, copy=False)]:
        assert got.dtype == values.dtype and np.shares_memory(got, values) and got.tolist() == values[1:].tolist()
    assert not np.shares_memory(np.array(ours, copy=True), values)
    fresh = ours.to_numpy(writable=True)
    fresh[0] = fresh[1]
    assert ours.to_numpy().tolist() == values[1:].tolist()


def test_other_times_are_copied() -> None:
    millis = pa.array([86_400_000, 0], pa.date64())
    got = bs.array(millis).to_numpy(zero_copy_only=True)
    assert got.tolist() == millis.to_numpy(zero_copy_only=False).tolist()
    there = bs.array(pa.array([1], pa.timestamp("us"))).to("emulated")
    for array in [bs.array(pa.array([1], pa.date32())), bs.array(pa.array([1, None], pa.timestamp("us"))), there]:
        with pytest.raises(ValueError, match="without a copy"):
            array.to_numpy(zero_copy_only=True)


def test_arrays_that_may_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(values: Any) -> Any:
        values.flags.writeable = False
        return values

    arrays = [locked(np.arange(4)), locked(np.arange(4).astype("M8[s]")), locked(np.arange(8.0).reshape(4, 2))]
    for values in arrays:
        assert np.shares_memory(bs.array(values).to_numpy(), values)
    open_ = np.arange(4)
    # numpy before 2.1 exports no memory that is read-only.
    monkeypatch.setattr(np, "__version__", "2.0.2")
    assert np.shares_memory(bs.array(open_).to_numpy(), open_)
    for values in arrays:
        got = bs.array(values).to_numpy()
        assert got.tolist() == values.tolist() and not np.shares_memory(got, values)


@pytest.mark.parametrize("missing", [float("nan"), None, pd.NA])
def test_missing_texts_are_null(missing: Any) -> None:
    texts = np.array(["a", missing, ""], np.dtypes.StringDType(na_object=missing))
    assert bs.array(texts).to_pylist() == ["a", None, ""] and bs.array(texts).type == bs.DataType("string")
    assert bs.array(texts.reshape(3, 1)).to_pylist() == [["a"], [None], [""]]
    assert bs.array(texts[1:2]).to_pylist() == [None] and bs.array(texts[:0]).type == bs.DataType("string")


def test_texts_that_stand_for_missing_ones_are_texts() -> None:
    texts = np.array(["a", "none"], np.dtypes.StringDType(na_object="none"))
    assert bs.array(texts).to_pylist() == ["a", "none"]
    assert bs.array(np.array(["b", ""], np.dtypes.StringDType())).to_pylist() == ["b", ""]
