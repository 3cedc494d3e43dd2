"""Tests of device streams against Arrow C++. pyarrow's wheel contains it without a Python API, so the tests compile some C++."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from samples import ARRAYS

import bowstring as bs

NAME = b"arrow_device_array_stream"


@pytest.fixture(scope="module")
def through_arrow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shutil.which("c++")
    assert compiler, "a C++ compiler is needed"
    library = tmp_path_factory.mktemp("peer") / "libpeer.so"
    folder = Path(pa.__file__).parent
    [arrow] = folder.glob("libarrow.so.*")
    source = Path(__file__).with_name("peer.cc")
    flags = ["-std=c++20", "-shared", "-fPIC", f"-I{pa.get_include()}", f"-Wl,-rpath,{folder}"]
    subprocess.run([compiler, *flags, "-o", library, source, arrow], check=True)
    function = ctypes.CDLL(str(library)).through_arrow
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_void_p]
    return function


class Through:
    """The device stream of a reader, passed through Arrow C++."""

    def __init__(self, function: Any, reader: bs.BatchReader) -> None:
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        capsule = reader.__arrow_c_device_stream__()
        # The struct has six words; its consumer moves it out.
        self.room = (ctypes.c_int64 * 6)()
        wrong = function(api.PyCapsule_GetPointer(capsule, NAME), ctypes.addressof(self.room))
        if wrong:
            raise RuntimeError(wrong.decode())
        self.capsule = api.PyCapsule_New(ctypes.addressof(self.room), NAME, None)

    def __arrow_c_device_stream__(self, requested_schema: object = None, **kwargs: object) -> object:
        return self.capsule


def test_every_type_both_ways(through_arrow: Any, nothing_leaked: None) -> None:
    columns = {name: array.slice(0, 12) for name, array in ARRAYS.items() if len(array) >= 12}
    whole = pa.record_batch(columns)
    parts = [whole.slice(0, 5), whole.slice(5, 0), whole.slice(5, 7)]
    reader = bs.BatchReader(pa.RecordBatchReader.from_batches(whole.schema, parts))
    back = bs.BatchReader(Through(through_arrow, reader))
    for ours, expected in zip(back, parts, strict=True):
        got = pa.record_batch(ours)
        got.validate(full=True)
        assert got.to_pylist() == expected.to_pylist()


def test_operations_on_either_side(through_arrow: Any) -> None:
    table = pa.table({"n": list(range(100)), "odd": [n % 2 == 1 for n in range(100)]})
    filtered = bs.BatchReader(table.to_reader(7)).filter("odd")
    again = bs.BatchReader(Through(through_arrow, filtered)).filter([pa.array([True, False, False])] * 40)
    with pytest.raises(ValueError):
        list(again)
    filtered = bs.BatchReader(table.to_reader(10)).filter("odd")
    casted = bs.BatchReader(Through(through_arrow, filtered)).cast(pa.schema({"n": pa.int8(), "odd": pa.bool_()}))
    assert pa.table(casted)["n"].to_pylist() == list(range(1, 100, 2))


def test_errors_go_through(through_arrow: Any) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        raise RuntimeError("the disk is on fire")

    reader = bs.BatchReader.from_batches(pa.schema({"n": pa.int64()}), failing())
    back = bs.BatchReader(Through(through_arrow, reader))
    assert next(back).num_rows == 1
    with pytest.raises(OSError, match="the disk is on fire"):
        next(back)


def test_memory_that_arrow_does_not_know_is_refused(through_arrow: Any) -> None:
    there = bs.BatchReader(pa.table({"n": [1]})).to(bs.Device.emulated())
    back = bs.BatchReader(Through(through_arrow, there))
    with pytest.raises(OSError, match="12"):
        next(back)
