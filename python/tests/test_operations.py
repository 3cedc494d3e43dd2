"""The operations, with pyarrow's compute functions as second opinion, on the CPU and the emulated device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from samples import ARRAYS

import bowstring as bs

Place = Callable[[Any], bs.Array]
PLACES: dict[str, Place] = {
    "cpu": lambda array: bs.array(array),
    "emulated": lambda array: bs.array(array).to(bs.Device.emulated()),
}
# What the emulated device may refuse: see the README's table.
REFUSED = {"filter": ["run_end_encoded"], "take": ["run_end_encoded", "sparse_union", "dense_union"]}


def here(array: bs.Array) -> pa.Array:
    got = pa.array(array.to(bs.Device.cpu()))
    got.validate(full=True)
    return got


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def answered(place: str, operation: str, name: str, answer: Callable[[], bs.Array]) -> bs.Array | None:
    try:
        return answer()
    except NotImplementedError:
        assert place != "cpu" and name in REFUSED[operation]
        return None


@pytest.mark.parametrize("name", ARRAYS)
def test_filter(place: str, name: str) -> None:
    array = ARRAYS[name]
    mask = pa.array([None if i % 7 == 0 else i % 3 != 1 for i in range(len(array))])
    expected = [value for value, keep in zip(array.to_pylist(), mask.to_pylist(), strict=True) if keep]
    on = PLACES[place]
    got = answered(place, "filter", name, lambda: bs.filter(on(array), on(mask)))
    if got is not None:
        assert here(got).to_pylist() == expected
        assert here(got).type == array.type


@pytest.mark.parametrize("name", ARRAYS)
def test_take(place: str, name: str) -> None:
    array = ARRAYS[name]
    indices = [2, 2, None, 0, len(array) - 1, 1]
    if "union" in name:
        indices[2] = 3  # a union has no null of its own
    values = array.to_pylist()
    on = PLACES[place]
    got = answered(place, "take", name, lambda: bs.take(on(array), on(pa.array(indices, pa.int32()))))
    if got is not None:
        assert here(got).to_pylist() == [None if i is None else values[i] for i in indices]


def test_nulls(place: str) -> None:
    on = PLACES[place]
    for array in [pa.array([1, None, 3] * 50), pa.array([1, 2]), pa.array(["x", None])]:
        there = on(array)
        assert bs.null_count(there) == bs.logical_null_count(there) == array.null_count == there.null_count
        assert here(bs.is_null(there)).equals(array.is_null())
        assert here(bs.is_valid(there)).equals(array.is_valid())
        assert here(bs.drop_null(there)).equals(array.drop_null())


def test_arrays_of_nothing_but_nulls(place: str) -> None:
    there = PLACES[place](pa.nulls(5))
    # They have no bitmap that says so.
    assert (bs.null_count(there), bs.logical_null_count(there), len(bs.drop_null(there))) == (0, 5, 0)
    assert here(bs.is_null(there)).to_pylist() == [True] * 5


def test_nulls_of_dictionaries_are_looked_through() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["x", None]))
    assert bs.null_count(array) == 1
    assert bs.logical_null_count(array) == 2
    assert pa.array(bs.is_null(array)).to_pylist() == [False, True, True]


def test_cast(place: str) -> None:
    on = PLACES[place]
    numbers = pa.array([1, None, 300, -4])
    assert here(bs.cast(on(numbers), pa.float32())).equals(numbers.cast(pa.float32()))
    assert here(bs.cast(on(numbers), "Float64")).equals(numbers.cast(pa.float64()))
    assert here(bs.cast(on(numbers), pa.int8(), strict=False)).to_pylist() == [1, None, None, -4]
    with pytest.raises(ValueError, match="row 2"):
        bs.cast(on(numbers), pa.int8()).wait()
    assert here(bs.array(on(numbers), pa.int16())).type == pa.int16()
    with pytest.raises(ValueError):
        bs.cast(on(numbers), "Int33")
    with pytest.raises(TypeError):
        bs.cast(on(numbers), 8)  # type: ignore[call-overload]


def test_out_of_bounds(place: str) -> None:
    on = PLACES[place]
    values = on(pa.array([1, 2, 3]))
    for bad in [3, -1, 2**40]:
        with pytest.raises(IndexError, match=str(bad)):
            bs.take(values, on(pa.array([0, bad]))).wait()
    got = bs.take(values, on(pa.array([0, 3, -1])), out_of_bounds="null")
    assert here(got).to_pylist() == [1, None, None]
    with pytest.raises(ValueError, match="raise"):
        bs.take(values, on(pa.array([0])), out_of_bounds="wrap")  # type: ignore[call-overload]


def test_batches(place: str) -> None:
    rows = pa.record_batch({"n": [1, None, 3, 4], "s": ["a", "b", None, "d"]})
    target = bs.Device.cpu() if place == "cpu" else bs.Device.emulated()
    there, on = bs.record_batch(rows).to(target), PLACES[place]
    assert there.device == target
    kept = bs.filter(there, on(pa.array([True, False, None, True])))
    assert pa.record_batch(kept.to(bs.Device.cpu())).to_pylist() == rows.take(pa.array([0, 3])).to_pylist()
    taken = bs.take(there, on(pa.array([3, None, 0])))
    assert pa.record_batch(taken.to(bs.Device.cpu()))["s"].to_pylist() == ["d", None, "a"]
    column = there["n"]
    assert here(column).equals(rows["n"])
    assert here(there.column(1)).equals(rows["s"])
    assert column.name == "n"
    for missing in ["x", 2]:
        with pytest.raises((KeyError, IndexError)):
            there.column(missing)
    wide = bs.cast(bs.record_batch(rows), pa.schema({"n": pa.float64(), "s": pa.large_string()}))
    assert pa.record_batch(wide).schema.types == [pa.float64(), pa.large_string()]
    with pytest.raises(ValueError):
        bs.cast(there, pa.schema({"n": pa.int64()}))
    assert bs.null_count(rows) == bs.null_count(there) == [column.null_count for column in rows.columns]
    with pytest.raises(TypeError):
        bs.is_null(rows)


def test_tables_are_batches() -> None:
    table = pa.concat_tables([pa.table({"n": [1, 2]}), pa.table({"n": [3]})])
    kept = bs.filter(table, pa.chunked_array([[True], [False, True]]))
    assert isinstance(kept, bs.RecordBatch)
    assert pa.table(kept).to_pylist() == [{"n": 1}, {"n": 3}]
    assert pa.array(bs.filter(table["n"], np.array([True, False, True]))).to_pylist() == [1, 3]


def test_batches_of_arrays() -> None:
    rows = bs.RecordBatch.from_arrays({"a": pa.array([1, 2]), "b": np.array([1.5, 2.5])})
    assert pa.record_batch(rows).to_pydict() == {"a": [1, 2], "b": [1.5, 2.5]}
    with pytest.raises(ValueError):
        bs.RecordBatch.from_arrays({"a": pa.array([1]), "b": pa.array([1, 2])})


def test_names_and_metadata() -> None:
    rows = pa.record_batch({"u": ARRAYS["uuid"]})
    column = bs.record_batch(rows)["u"]
    assert pa.array(bs.filter(column, pa.array([True] * 16))).type == pa.uuid()
    # What a type means goes with the type.
    assert pa.array(bs.is_null(column)).type == pa.bool_()


def test_slices(place: str) -> None:
    array = PLACES[place](pa.array(range(100)))
    assert here(array.slice(10, 3)).to_pylist() == [10, 11, 12]
    assert here(array.slice(98)).to_pylist() == [98, 99]
    with pytest.raises(ValueError):
        array.slice(90, 11)
    with pytest.raises(ValueError):
        array.slice(101)


def test_streams_of_work() -> None:
    gpu = bs.Device.emulated()
    first, second = gpu.stream(), bs.Stream(gpu)
    array = bs.array(pa.array(range(1000))).to(first)
    mask = bs.array(pa.array([i % 2 == 0 for i in range(1000)])).to(second)
    kept = bs.filter(array, mask, stream=second)
    assert here(kept).to_pylist() == list(range(0, 1000, 2))
    first.synchronise()
    assert first.native and first.native != second.native
    wrapped = bs.Stream(gpu, native=first.native)
    assert here(bs.cast(array, "Int32", stream=wrapped)).equals(pa.array(range(1000), pa.int32()))
    with pytest.raises(RuntimeError):
        bs.Stream(gpu, native=12345678)
    with pytest.raises(ValueError):
        bs.Stream(bs.Device.cpu(), native=1)


def test_devices() -> None:
    cpu, gpu = bs.Device.cpu(), bs.Device.emulated()
    assert (cpu.device_type, gpu.device_type, gpu.device_id) == (1, 12, 0)
    assert cpu == bs.Device.open(1) and gpu == bs.Device.open(12) and cpu != gpu
    assert len({cpu, bs.Device.cpu(), gpu}) == 2
    assert "CPU" in repr(cpu) and cpu.name
    with pytest.raises(ValueError):
        bs.Device.open(4)
    with pytest.raises(RuntimeError, match="no "):
        bs.Device.open(12, 5)


def test_devices_do_not_mix() -> None:
    there, mask = bs.array(pa.array([1, 2])).to(bs.Device.emulated()), pa.array([True, False])
    with pytest.raises(ValueError, match="stream on"):
        bs.filter(there, mask)
    with pytest.raises(ValueError, match="stream on"):
        bs.filter(pa.array([1, 2]), mask, stream=bs.Device.emulated().stream())


def test_arguments_that_do_not_fit() -> None:
    values = pa.array([1, 2, 3])
    with pytest.raises(ValueError, match="not Boolean"):
        bs.filter(values, pa.array([1, 0, 1]))
    with pytest.raises(ValueError, match="3 rows and a mask of 2"):
        bs.filter(values, pa.array([True, False]))
    with pytest.raises((ValueError, NotImplementedError)):
        bs.take(values, pa.array([1.5]))


def test_against_pyarrow_at_random() -> None:
    random = np.random.default_rng(7)
    for rows in [1, 63, 64, 65, 1000, 100_000]:
        values = pa.array(random.integers(-(2**40), 2**40, rows), mask=random.random(rows) < 0.1)
        mask = pa.array(random.random(rows) < 0.3, mask=random.random(rows) < 0.05)
        indices = pa.array(random.integers(0, rows, rows), mask=random.random(rows) < 0.05)
        assert pa.array(bs.filter(values, mask)).equals(pc.filter(values, mask))
        assert pa.array(bs.take(values, indices)).equals(pc.take(values, indices))
        assert pa.array(bs.cast(values, "Float64")).equals(pc.cast(values, pa.float64()))
