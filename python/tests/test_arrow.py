"""Tests of the Arrow PyCapsule interface against pyarrow: every type, in and out, and every misuse."""

from __future__ import annotations

import ctypes

import pyarrow as pa
import pytest
from samples import ARRAYS, slices

import bowstring as bs


def same(got: pa.Array, expected: pa.Array) -> None:
    got.validate(full=True)
    assert got.type == expected.type
    assert got.null_count == expected.null_count
    # pyarrow's equality of unions and runs ignores offsets, so compare the values.
    assert got.to_pylist() == expected.to_pylist()


class Only:
    """An object with some methods of another object."""

    def __init__(self, obj: object, *names: str) -> None:
        self.__dict__.update({name: getattr(obj, name) for name in names})

    def __getattr__(self, name: str) -> object:
        raise AttributeError(name)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_device_array__"])
def test_every_type_goes_in_and_comes_out(name: str, method: str) -> None:
    for expected in slices(ARRAYS[name]):
        ours = bs.array(Only(expected, method))
        assert len(ours) == len(expected)
        same(pa.array(Only(ours, method)), expected)


@pytest.mark.parametrize("name", ARRAYS)
def test_every_type_goes_to_the_emulated_device_and_back(name: str) -> None:
    gpu = bs.Device.emulated()
    for expected in slices(ARRAYS[name]):
        there = bs.array(expected).to(gpu)
        assert (there.device, there.device_type) == (gpu, 12)
        same(pa.array(there.to(bs.Device.cpu())), expected)
        # A consumer that asks for host memory gets a copy.
        same(pa.array(Only(there, "__arrow_c_array__")), expected)
        # An array on a device stays there when it is imported through its capsules.
        again = bs.array(Only(there, "__arrow_c_device_array__"))
        assert again.device == gpu
        same(pa.array(again.to(bs.Device.cpu())), expected)


def batch() -> pa.RecordBatch:
    columns = {name: array.slice(0, 12) for name, array in ARRAYS.items() if len(array) >= 12}
    return pa.record_batch(columns).replace_schema_metadata({"who": "test"})


def test_batches_of_every_type() -> None:
    for start, length in [(0, 12), (5, 6), (0, 0)]:
        expected = batch().slice(start, length)
        for method in ["__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__"]:
            ours = bs.record_batch(Only(expected, method))
            assert (ours.num_rows, ours.column_names) == (length, expected.schema.names)
            for back in ["__arrow_c_array__", "__arrow_c_device_array__"]:
                got = pa.record_batch(Only(ours, back))
                got.validate(full=True)
                assert got.schema.equals(expected.schema, check_metadata=True)
                assert got.to_pylist() == expected.to_pylist()
            got_table = pa.table(Only(ours, "__arrow_c_stream__"))
            got_table.validate(full=True)
            assert got_table.to_pylist() == expected.to_pylist()


def test_streams_of_every_type() -> None:
    parts = [batch().slice(0, 5), batch().slice(5, 0), batch().slice(5, 7)]
    reader = bs.BatchReader(pa.RecordBatchReader.from_batches(parts[0].schema, parts))
    got = pa.RecordBatchReader.from_stream(reader)
    assert got.schema.equals(parts[0].schema, check_metadata=True)
    for expected, found in zip(parts, got, strict=True):
        found.validate(full=True)
        assert found.to_pylist() == expected.to_pylist()


def test_nothing_is_copied() -> None:
    theirs = pa.array(range(1000), pa.int64())
    back = pa.array(bs.array(theirs))
    assert back.buffers()[1].address == theirs.buffers()[1].address


def test_arrays_outlive_their_producers(nothing_leaked: None) -> None:
    ours = bs.array(pa.array(["a", None, "längere Wörter als zwölf Bytes"] * 100).slice(3))
    assert pa.array(ours)[2].as_py() == "längere Wörter als zwölf Bytes"
    kept = pa.array(bs.filter(ours, pa.array([True] * 297)))
    del ours
    assert len(kept) == 297


def test_schemas() -> None:
    for expected in ARRAYS.values():
        assert pa.field(bs.array(expected)).type == expected.type
    assert pa.schema(bs.record_batch(batch())).equals(batch().schema, check_metadata=True)


def test_a_requested_schema_is_honoured() -> None:
    ours = bs.array(pa.array([1, None, 3], pa.int64()))
    # `pa.array` with a type passes the requested schema.
    got = pa.array(ours, pa.int16())
    assert (got.type, got.to_pylist()) == (pa.int16(), [1, None, 3])
    assert pa.array(ours, pa.string()).to_pylist() == ["1", None, "3"]
    with pytest.raises(ValueError, match="300"):
        pa.array(bs.array(pa.array([300])), pa.int8())
    with pytest.raises(NotImplementedError):
        pa.array(ours, pa.list_(pa.struct({"a": pa.int8()})))

    # The metadata that marks an extension type follows the requested type.
    uuids = bs.array(ARRAYS["uuid"])
    assert pa.array(uuids).type == pa.uuid()
    assert pa.array(uuids, pa.binary()).type == pa.binary()
    # pyarrow asks for the storage of an extension type, and accepts nothing else.
    assert pa.array(uuids, pa.uuid()).type == pa.binary(16)
    plain = bs.array(pa.array([bytes(16)], pa.binary(16)))
    for ours, asked in [(uuids, pa.uuid()), (uuids, pa.binary()), (uuids, pa.binary(16)), (plain, pa.uuid()), (plain, pa.binary(16))]:
        schema, _ = ours.__arrow_c_array__(pa.field("x", asked).__arrow_c_schema__())
        assert pa.Field._import_from_c_capsule(schema).type == asked

    rows = bs.record_batch(pa.record_batch({"a": [1, 2], "b": ["x", None]}))
    wanted = pa.schema({"a": pa.float32(), "b": pa.large_string()})
    for method in ["__arrow_c_array__", "__arrow_c_device_array__"]:
        schema, array = getattr(rows, method)(wanted.__arrow_c_schema__())
        got = bs.record_batch(type("It", (), {method: lambda self, schema=schema, array=array: (schema, array)})())
        assert pa.schema(got) == wanted
    table = pa.table(rows, schema=wanted)
    assert table.schema == wanted
    assert table.to_pylist() == [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": None}]
    reader = pa.RecordBatchReader.from_stream(bs.BatchReader(pa.table({"a": [1, 2]})), pa.schema({"a": pa.int8()}))
    assert reader.read_all()["a"].type == pa.int8()


def test_unknown_keywords_are_refused_unless_none() -> None:
    ours, rows = bs.array(pa.array([1])), bs.record_batch(pa.record_batch({"a": [1]}))
    for obj in [ours, rows]:
        assert obj.__arrow_c_device_array__(future=None)
        with pytest.raises(NotImplementedError):
            obj.__arrow_c_device_array__(future=1)
    with pytest.raises(NotImplementedError):
        rows.__arrow_c_device_stream__(future=1)
    with pytest.raises(TypeError):
        ours.__arrow_c_array__(future=None)  # type: ignore[call-arg]


class Capsules:
    """A producer that returns the given answer."""

    def __init__(self, method: str, capsules: object) -> None:
        setattr(type(self), method, lambda self: capsules)


def lying(method: str, capsules: object) -> object:
    return type("Lying", (), {method: lambda self, requested_schema=None: capsules})()


def test_wrong_and_consumed_capsules(nothing_leaked: None) -> None:
    theirs = pa.array([1, 2, 3])
    schema, array = theirs.__arrow_c_array__()
    with pytest.raises(ValueError):
        bs.array(lying("__arrow_c_array__", (array, schema)))
    with pytest.raises(ValueError):
        bs.array(lying("__arrow_c_device_array__", (schema, array)))
    with pytest.raises(ValueError):
        bs.array(lying("__arrow_c_stream__", schema))
    with pytest.raises((ValueError, TypeError)):
        bs.array(lying("__arrow_c_array__", None))
    with pytest.raises((ValueError, TypeError)):
        bs.array(lying("__arrow_c_array__", (1, 2)))
    assert len(bs.array(lying("__arrow_c_array__", (schema, array)))) == 3
    with pytest.raises(ValueError, match="released"):
        bs.array(lying("__arrow_c_array__", (schema, array)))
    stream = pa.table({"a": [1]}).__arrow_c_stream__()
    assert bs.record_batch(lying("__arrow_c_stream__", stream)).num_rows == 1
    with pytest.raises(ValueError, match="released"):
        bs.record_batch(lying("__arrow_c_stream__", stream))


def test_device_arrays_of_devices_that_are_not_here(nothing_leaked: None) -> None:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for device_type, device_id, error in [(99, 0, ValueError), (0, 0, ValueError), (8, 0, ValueError), (12, 5, RuntimeError)]:
        for take in [bs.array, bs.record_batch]:
            schema, array = pa.record_batch({"a": [1, 2]}).__arrow_c_device_array__()
            at = pointer(array, b"arrow_device_array")
            ctypes.c_int64.from_address(at + 80).value = device_id
            ctypes.c_int32.from_address(at + 88).value = device_type
            with pytest.raises(error):
                take(lying("__arrow_c_device_array__", (schema, array)))  # type: ignore[operator]


def test_device_streams_of_devices_that_are_not_here(nothing_leaked: None) -> None:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for device_type in [99, 0, 8, -1]:
        stream = bs.record_batch(pa.record_batch({"a": [1]})).__arrow_c_device_stream__()
        ctypes.c_int32.from_address(pointer(stream, b"arrow_device_array_stream")).value = device_type
        for take in [bs.array, bs.record_batch, bs.BatchReader]:
            with pytest.raises(ValueError):
                take(lying("__arrow_c_device_stream__", stream))  # type: ignore[operator]


def test_an_object_with_nothing_but_a_device_stream() -> None:
    for device in [bs.Device.cpu(), bs.Device.emulated()]:
        rows = bs.record_batch(pa.record_batch({"a": [1, 2, 3]})).to(device)
        got = bs.record_batch(Only(rows, "__arrow_c_device_stream__"))
        assert got.device == device
        assert pa.record_batch(got.to(bs.Device.cpu())).to_pydict() == {"a": [1, 2, 3]}
        column = bs.array(Only(rows, "__arrow_c_device_stream__"))
        assert str(column.type).startswith("struct<") and column.device == device
        mask = bs.array(pa.array([True, False, True])).to(device)
        kept = bs.filter(Only(rows, "__arrow_c_device_stream__"), mask)
        assert isinstance(kept, bs.RecordBatch) and kept.num_rows == 2
    # Several batches become one on their device.
    there = bs.BatchReader(pa.table({"a": [1, 2]}).to_reader(1)).to(bs.Device.emulated())
    one = bs.record_batch(Only(there, "__arrow_c_device_stream__"))
    assert one.device == bs.Device.emulated() and one.to_pydict() == {"a": [1, 2]}


def test_ours_that_nobody_takes_are_released(nothing_leaked: None) -> None:
    theirs = pa.array(range(100))
    ours = bs.array(theirs)
    for _ in range(3):
        ours.__arrow_c_array__()
        ours.__arrow_c_device_array__()
        ours.__dlpack__()
        ours.__dlpack__(max_version=(1, 0))
    rows = bs.record_batch(pa.record_batch({"a": theirs}))
    rows.__arrow_c_stream__()
    rows.__arrow_c_device_stream__()


def test_a_schema_that_is_not_the_arrays() -> None:
    schema, _ = pa.array(["a"]).__arrow_c_array__()
    _, array = pa.array([1]).__arrow_c_array__()
    with pytest.raises(ValueError, match="n_buffers"):
        bs.array(lying("__arrow_c_array__", (schema, array)))


def test_what_is_no_array_is_a_type_error() -> None:
    for obj in [None, 1, "text", b"bytes", object()]:
        with pytest.raises(TypeError):
            bs.array(obj)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            bs.record_batch(obj)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            bs.BatchReader(obj)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        bs.record_batch(pa.array([1, 2]))
