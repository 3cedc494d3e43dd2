"""Tests of the operations on the CPU and the emulated device, compared with pyarrow's compute functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
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
# The types that the emulated device may refuse; the README has a table of them.
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
    # Arrays of type null have no validity bitmap, so `null_count` is 0.
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
    nulls = pa.record_batch(bs.is_null(there).to(bs.Device.cpu()))
    assert nulls.to_pydict() == {name: rows[name].is_null().to_pylist() for name in ["n", "s"]}


def test_tables_are_batches() -> None:
    table = pa.concat_tables([pa.table({"n": [1, 2]}), pa.table({"n": [3]})])
    kept = bs.filter(table, pa.chunked_array([[True], [False, True]]))
    assert isinstance(kept, bs.RecordBatch)
    assert pa.table(kept).to_pylist() == [{"n": 1}, {"n": 3}]
    assert pa.array(bs.filter(table["n"], np.array([True, False, True]))).to_pylist() == [1, 3]


def test_chunks_that_become_one_count_against_the_limit():
    chunk = pa.array(range(1_000_000))
    bs.Device.cpu().set_memory_limit(10 << 20)
    try:
        with pytest.raises(MemoryError):
            bs.array(pa.chunked_array([chunk, chunk]))
        with pytest.raises(MemoryError):
            bs.record_batch(pa.table({"n": pa.chunked_array([chunk, chunk])}))
        assert len(bs.array(pa.chunked_array([chunk]))) == 1_000_000
    finally:
        bs.Device.cpu().set_memory_limit(2**63 - 1)
    assert len(bs.array(pa.chunked_array([chunk, chunk]))) == 2_000_000


def test_nulls_are_not_under_fields_that_have_none(place: str) -> None:
    never = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    rows = pa.record_batch({"a": [1, 300], "b": ["x", None]}, never)
    target = bs.Device.cpu() if place == "cpu" else bs.Device.emulated()
    there, on = bs.record_batch(rows).to(target), PLACES[place]

    def schema(batch: bs.RecordBatch) -> pa.Schema:
        return pa.schema(batch)

    assert schema(bs.filter(there, on(pa.array([True, None])))) == never
    assert schema(bs.take(there, on(pa.array([1, 0, 1])))) == never
    for taken in [
        bs.take(there, on(pa.array([None, 0]))),
        bs.take(there, on(pa.array([7, 0])), out_of_bounds="null"),
    ]:
        assert schema(taken).field("a").nullable
        assert pa.record_batch(taken.to(bs.Device.cpu()))["a"].to_pylist() == [None, 1]

    small = pa.schema([pa.field("a", pa.int8(), nullable=False), pa.field("b", pa.string())])
    with pytest.raises(ValueError, match='1 nulls in "a", which is not nullable'):
        bs.cast(there, small, strict=False).wait()
    with pytest.raises(ValueError, match="row 1"):
        bs.cast(there, small).wait()
    same = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string(), nullable=False)])
    with pytest.raises(ValueError, match='1 nulls in "b", which is not nullable'):
        bs.cast(there, same).wait()
    assert schema(bs.cast(bs.take(there, on(pa.array([0]))), small)) == small
    fits = bs.cast(bs.take(there, on(pa.array([0, None]).slice(0, 1))), small, strict=False)
    assert pa.record_batch(fits.to(bs.Device.cpu())).to_pylist() == [{"a": 1, "b": "x"}]


def test_zones_by_their_names(place: str) -> None:
    winter = pa.array([0], pa.timestamp("us"))
    assert here(bs.cast(winter, pa.timestamp("us", "Europe/Paris"))).cast(pa.int64()).to_pylist() == [-3_600_000_000]
    for zone, text, day in [("UTC", "1970-01-01T23:30:00Z", 0), ("Europe/Paris", "1970-01-02T00:30:00+01:00", 1)]:
        late = pa.array([1_410_000_000_000 * 60], pa.timestamp("ns", zone))
        assert here(bs.cast(late, pa.string())).to_pylist() == [text]
        assert here(bs.cast(late, pa.date32())).cast(pa.int32()).to_pylist() == [day]
    with pytest.raises(ValueError, match="Mars"):
        bs.cast(winter, pa.timestamp("us", "Mars/Olympus"))


def test_what_extension_types_become() -> None:
    plain, uuids = pa.array([bytes(16)], pa.binary(16)), pa.array([bytes(16)], pa.binary(16)).cast(pa.uuid())
    flag = pa.opaque(pa.bool_(), "t", "v")
    flags = pa.ExtensionArray.from_storage(flag, pa.array([True, None]))
    # Operations that select rows keep the extension type.
    for operation in [lambda a: bs.filter(a, pa.array([True])), lambda a: bs.take(a, pa.array([0])), bs.drop_null]:
        assert pa.array(operation(uuids)).type == pa.uuid()
    assert pa.record_batch(bs.value_counts(uuids)).schema.types == [pa.uuid(), pa.int64()]
    # Operations that compute new values do not.
    for operation in [bs.is_null, bs.is_valid]:
        assert pa.array(operation(flags)).type == pa.bool_()
    # A cast gives the requested type, for arrays and for batches.
    for values, to in [(uuids, pa.binary(16)), (plain, pa.uuid()), (uuids, pa.uuid()), (uuids, pa.binary())]:
        assert pa.array(bs.cast(values, to)).type == pa.array(bs.array(values, to)).type == to
        batch = bs.cast(pa.record_batch({"u": values}), pa.schema({"u": to}))
        assert pa.record_batch(batch).schema.types == [to]
    assert pa.array(bs.cast(uuids, "FixedSizeBinary(16)")).type == pa.binary(16)
    # A producer's other metadata stays with the values: a selection keeps it, and a cast drops it.
    said = pa.record_batch([pa.array([1])], pa.schema([pa.field("n", pa.int64(), metadata={"unit": "m"})]))
    column = bs.record_batch(said)["n"]
    assert pa.field(bs.filter(column, pa.array([True]))).metadata == {b"unit": b"m"}
    assert pa.field(bs.cast(column, "Int64")).metadata is None
    assert pa.field(bs.cast(column, "Int64")).name == "n"


def test_errors_name_the_argument() -> None:
    values, table, mask = pa.array([1]), pa.table({"a": [1]}), pa.array([True])
    wrong: Any = [
        (lambda: bs.filter(1, mask), "values: .*int"),
        (lambda: bs.filter([1, "a"], mask), "values: a str among an int"),
        (lambda: bs.filter(values, "a"), "mask: a column's name is for batches"),
        (lambda: bs.filter(values, [object()]), "mask: row 0: .*object"),
        (lambda: bs.take(values, 0), "indices: .*int"),
        (lambda: bs.cast(values, 8), "to: .*int"),
        (lambda: bs.cast(table, "Int8"), "to: a schema .*str"),
        (lambda: bs.cast(table, pa.int8()), "to: a schema .*int8"),
        (lambda: bs.null_count(None), "values: .*NoneType"),
        (lambda: bs.drop_null(values, subset=["a"]), "subset: an array has no columns"),
        (lambda: bs.array(1), "obj: .*int"),
        (lambda: bs.array(values, 1), "type: .*int"),
        (lambda: bs.record_batch(1), "obj: .*int"),
        (lambda: bs.BatchReader(1), "obj: .*int"),
        (lambda: bs.BatchReader.from_batches(1, []), "schema: .*int"),
        (lambda: bs.BatchReader.from_batches(table.schema, 1), "batches: .*int"),
        (lambda: bs.BatchReader(table).cast("Int8"), "schema: .*str"),
        (lambda: bs.BatchReader(table).take(None), "indices: .*NoneType"),
        (lambda: bs.RecordBatch.from_arrays({"a": 1}), r'columns\["a"\]: .*int'),
        (lambda: bs.array(values).to(1), "target: .*int"),
    ]
    for use, words in wrong:
        with pytest.raises(TypeError, match=words):
            use()
    with pytest.raises(ValueError, match="to: no type .*did you mean \"int32\""):
        bs.cast(values, "Int33")
    with pytest.raises(ValueError, match="Int64 are no batches"):
        bs.record_batch(values)
    with pytest.raises(ValueError, match="Int64 are no batches"):
        bs.BatchReader(pa.chunked_array([values]))


def test_what_arrow_rs_panics_over_is_an_ordinary_exception() -> None:
    # pyo3's PanicException is a BaseException, which `except Exception` does not catch. The rows share their
    # bytes, which would take 2 GiB if copied apart.
    shared = pl.Series(["x" * 2**20]).gather([0] * 2100)
    with pytest.raises((RuntimeError, ValueError, MemoryError)):
        bs.cast(shared, pa.string())


def test_where_arrow_rs_differs() -> None:
    # arrow-rs accepts a shorter mask and does not check indices into nulls; here both are errors on every
    # device.
    with pytest.raises(ValueError, match="3 rows and a mask of 1"):
        bs.filter(pa.array([1, 2, 3]), pa.array([True]))
    with pytest.raises(IndexError, match="15"):
        bs.take(pa.nulls(5), pa.array([15]))


def test_slices(place: str) -> None:
    array = PLACES[place](pa.array(range(100)))
    assert here(array.slice(10, 3)).to_pylist() == [10, 11, 12]
    assert here(array.slice(98)).to_pylist() == [98, 99]
    with pytest.raises(ValueError):
        array.slice(90, 11)
    with pytest.raises(ValueError):
        array.slice(101)
    with pytest.raises(ValueError):
        array.slice(2**70)
    for negative in [(-1,), (0, -1), (-(2**70), 1)]:
        with pytest.raises(IndexError, match=f"not be negative, as {min(negative)} is"):
            array.slice(*negative)


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


def test_the_cpu_has_no_kernels_to_load(place: str) -> None:
    device = bs.Device(place)
    assert device.prepare() == device.prepare("filter", "group") == 0
    with pytest.raises(ValueError, match="sort, group, join"):
        device.prepare("sorts")  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("values", "value"),
    [
        (pa.array([1, None, 3], pa.int8()), 7),
        (pa.array([1, None, 3], pa.uint64()), 2**64 - 1),
        (pa.array([None, 0.5], pa.float32()), 0.25),
        (pa.array([True, None, False]), True),
        (pa.array([None, 1], pa.date32()), "2020-02-29"),
        (pa.array([None, 1], pa.decimal128(20, 2)), pa.array([5], pa.decimal128(20, 2))),
    ],
)
def test_fill_null_is_pyarrows(place: str, values: pa.Array, value: Any) -> None:
    if isinstance(value, pa.Array):
        scalar = value[0]
    else:
        scalar = pa.scalar(value, values.type) if isinstance(value, int) else pa.scalar(value).cast(values.type)
    for rows in [values, values.slice(1)]:
        assert here(bs.fill_null(PLACES[place](rows), value)).equals(pc.fill_null(rows, scalar))
    assert here(bs.fill_null(PLACES[place](values), None)).equals(values)


def test_fill_null_refuses_what_is_no_value_of_the_type() -> None:
    with pytest.raises(ValueError):
        bs.fill_null(pa.array([1, None], pa.int8()), 128)
    with pytest.raises(ValueError, match="rows, not one"):
        bs.fill_null(pa.array([1, None], pa.int8()), pa.array([1, 2], pa.int8()))
    with pytest.raises(ValueError, match="Int16 for nulls among Int8"):
        bs.fill_null(pa.array([1, None], pa.int8()), pa.array([1], pa.int16()))
