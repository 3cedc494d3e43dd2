"""Tables that speak Arrow's device stream interface only, on the device that every machine has: the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from bowstring_sql import Session

# Numbers of kinds of memory, and of errors.
CPU, CUDA, METAL, EIO = 1, 2, 8, 5
ROWS = pa.table(
    {
        "k": pa.array([i % 7 if i % 11 else None for i in range(1000)], pa.int32()),
        "x": pa.array([i * 3 for i in range(1000)], pa.int64()),
        "s": pa.array([None if i % 13 == 0 else f"text {i % 50}" for i in range(1000)]),
    }
)


class Stream(ctypes.Structure):
    """`ArrowDeviceArrayStream`, whose functions are addresses."""

    _fields_ = [
        ("device_type", ctypes.c_int32),
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


class Array(ctypes.Structure):
    """`ArrowDeviceArray`, whose first part is an `ArrowArray` of ten words."""

    _fields_ = [
        ("array", ctypes.c_int64 * 10),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


GIVE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
SAY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
SAID = ctypes.create_string_buffer(b"the producer is tired")


class Producer:
    """A table in memory of one kind. It has to outlive its stream, whose functions it keeps."""

    def __init__(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema = ROWS.schema,
        *,
        device: int = CPU,
        name: bytes = b"arrow_device_array_stream",
    ) -> None:
        self.batches, self.schema, self.name = iter(batches), schema, name
        self.array_device, self.released = device, 0
        self.functions = GIVE(self.give_schema), GIVE(self.give_next), SAY(self.say), RELEASE(self.release)
        addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in self.functions]
        self.stream = Stream(device, *addresses, None)

    def give_schema(self, _: int, out: int) -> int:
        self.schema._export_to_c(out)
        return 0

    def give_next(self, _: int, out: int) -> int:
        try:
            batch = next(self.batches, None)
        except RuntimeError:
            return EIO
        if batch is None:
            # A released array is the end.
            ctypes.memset(out, 0, ctypes.sizeof(Array))
        else:
            batch._export_to_c_device(out)
            Array.from_address(out).device_type = self.array_device
        return 0

    def say(self, _: int) -> int:
        return ctypes.addressof(SAID)

    def release(self, stream: Any) -> None:
        stream.contents.release = None
        self.released += 1

    def __arrow_c_device_stream__(self, requested_schema: object = None, **kwargs: object) -> object:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.stream), self.name, None)


def test_a_device_stream_is_a_table(session: Session) -> None:
    theirs = Producer(ROWS.to_batches(max_chunksize=77))
    session.register("theirs", theirs)
    assert (theirs.released, theirs.stream.release) == (1, None), "it was moved out, and read to its end"
    session.register("plain", ROWS)
    assert session.sql("select * from theirs order by x").to_arrow().to_pylist() == ROWS.to_pylist()
    query = "select k, count(*) as n, sum(x) as x, max(s) as s from {} where x % 2 = 0 group by k order by k"
    groups = session.sql(query.format("theirs")).to_arrow()
    assert groups.num_rows == 8 and groups == session.sql(query.format("plain")).to_arrow()
    none = Producer([])
    session.register("theirs", none)
    assert session.sql("select count(*) as n, count(s) as s from theirs").to_arrow().to_pylist() == [{"n": 0, "s": 0}]


class Claims:
    """An object whose device stream is whatever it was given, and whose plain one is not asked for."""

    def __init__(self, stream: object) -> None:
        self.stream = stream

    def __arrow_c_device_stream__(self, requested_schema: object = None, **kwargs: object) -> object:
        if isinstance(self.stream, BaseException):
            raise self.stream
        return self.stream

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("the device stream is the one to take")


def test_device_streams_that_are_none_are_errors(session: Session) -> None:
    session.register("t", pa.table({"x": [1]}))
    plain = pa.table({"x": [2]}).__arrow_c_stream__()
    misnamed = Producer([], name=b"arrow_array_stream")
    for wrong in [None, 7, plain, misnamed.__arrow_c_device_stream__()]:
        with pytest.raises((TypeError, ValueError)):
            session.register("t", Claims(wrong))
    assert misnamed.released == 0
    with pytest.raises(LookupError, match="mine"):
        session.register("t", Claims(LookupError("mine")))
    once = Producer(ROWS.to_batches())
    capsule = once.__arrow_c_device_stream__()
    session.register("once", Claims(capsule))
    with pytest.raises(ValueError):
        session.register("t", Claims(capsule))
    assert once.released == 1
    elsewhere = Producer([], device=METAL)
    with pytest.raises(ValueError, match="type 8"):
        session.register("t", elsewhere)
    assert elsewhere.released == 1, "also if it cannot be used"
    assert session.sql("select x from t").to_arrow().to_pylist() == [{"x": 1}], "the table before is there"


def test_device_streams_may_fail_in_the_middle(session: Session) -> None:
    def failing() -> Any:
        yield from ROWS.to_batches(max_chunksize=400)[:2]
        raise RuntimeError

    tired = Producer(failing())
    with pytest.raises(OSError, match="the producer is tired"):
        session.register("t", tired)
    assert tired.released == 1
    # A stream of one kind of memory has an array in another.
    mixed = Producer(ROWS.to_batches())
    mixed.array_device = CUDA
    with pytest.raises(ValueError, match="2 in a stream of 1"):
        session.register("t", mixed)
    assert mixed.released == 1
    with pytest.raises(ValueError, match="not found"):
        session.sql("select * from t")
