"""Tests of DLPack against numpy, pyarrow and nanoarrow, and with malformed tensors."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import nanoarrow as na
import numpy as np
import pyarrow as pa
import pytest

import bowstring as bs

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_both_ways_without_copying(dtype: str) -> None:
    theirs = np.arange(20).astype(dtype)
    ours = bs.from_dlpack(theirs)
    assert ours.type == dtype and len(ours) == 20
    back = np.from_dlpack(ours.slice(3, 5))
    assert back.dtype == theirs.dtype and back.tolist() == theirs[3:8].tolist()
    assert back.ctypes.data == theirs[3:].ctypes.data
    assert not back.flags.writeable


@pytest.mark.parametrize("dtype", NUMBERS)
def test_pyarrow(dtype: str) -> None:
    theirs = pa.array(np.arange(10).astype(dtype)).slice(2)
    assert pa.array(bs.from_dlpack(theirs)).equals(theirs)
    tensor = pa.Tensor.from_dlpack(bs.array(theirs))
    assert tensor.to_numpy().tolist() == theirs.to_pylist()


def test_nanoarrow_gives_the_older_form() -> None:
    theirs = na.c_array([1, 2, 3], na.int16()).view().buffer(1)
    assert name(theirs.__dlpack__()) == "dltensor"
    assert pa.array(bs.from_dlpack(theirs)).equals(pa.array([1, 2, 3], pa.int16()))


def test_nanoarrow_takes_the_older_form() -> None:
    got = na.c_array(na.c_buffer(bs.array(pa.array([1, 2, 3], pa.int32()))), na.int32())  # type: ignore[arg-type]
    assert na.Array(got).to_pylist() == [1, 2, 3]


def test_booleans_are_copied_both_ways() -> None:
    theirs = np.array([True, False, True] * 5)
    ours = bs.from_dlpack(theirs)
    assert pa.array(ours).to_pylist() == theirs.tolist()
    back = np.from_dlpack(ours.slice(1))
    assert back.dtype == np.bool_ and back.tolist() == theirs[1:].tolist()


def test_more_dimensions() -> None:
    theirs = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    ours = bs.from_dlpack(theirs)
    assert pa.array(ours).to_pylist() == theirs.tolist()
    back = np.from_dlpack(ours)
    assert back.shape == (2, 3, 4) and back.tolist() == theirs.tolist()
    assert np.from_dlpack(ours.slice(1)).tolist() == theirs[1:].tolist()


def test_no_elements() -> None:
    for shape in [(0,), (0, 3), (3, 0)]:
        assert np.from_dlpack(bs.from_dlpack(np.zeros(shape))).shape == shape


def test_what_tensors_cannot_carry_is_a_buffer_error() -> None:
    for array in [pa.array([1, None]), pa.array(["x"]), pa.array([[1]]), pa.nulls(3), pa.array([b"x"])]:
        for version in [None, (1, 0)]:
            with pytest.raises(BufferError):
                bs.array(array).__dlpack__(max_version=version)
    # Without nulls, the export works.
    assert np.from_dlpack(bs.drop_null(pa.array([1, None, 2]))).tolist() == [1, 2]


def test_what_we_cannot_take_is_a_buffer_error() -> None:
    whole = np.arange(12).reshape(3, 4)
    for array in [whole[:, ::2], whole.T, np.arange(5)[::-1], np.zeros(3, complex), np.array(1.0)]:
        with pytest.raises(BufferError):
            bs.from_dlpack(array)
    for dtype in [">i4", "M8[ns]", "U3"]:
        with pytest.raises((BufferError, TypeError)):
            bs.from_dlpack(np.zeros(3, dtype))


def name(capsule: object) -> str:
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    found = get(capsule)
    return str(found.decode())


def test_versions_and_names() -> None:
    ours = bs.array(pa.array([1, 2]))
    assert name(ours.__dlpack__()) == "dltensor"
    assert name(ours.__dlpack__(max_version=(0, 8))) == "dltensor"
    assert name(ours.__dlpack__(max_version=(1, 0))) == "dltensor_versioned"
    assert name(ours.__dlpack__(max_version=(2, 5))) == "dltensor_versioned"
    for form, used in [(None, "used_dltensor"), ((1, 0), "used_dltensor_versioned")]:
        capsule = ours.__dlpack__(max_version=form)
        assert len(bs.from_dlpack(capsule)) == 2
        assert name(capsule) == used
        with pytest.raises(ValueError, match="used"):
            bs.from_dlpack(capsule)
    with pytest.raises(ValueError):
        bs.from_dlpack(pa.int64().__arrow_c_schema__())
    with pytest.raises(TypeError):
        bs.from_dlpack([1, 2])
    with pytest.raises(TypeError):
        ours.__dlpack__(future=1)  # type: ignore[call-arg]


def test_devices_streams_and_copies() -> None:
    ours = bs.array(pa.array([1, 2, 3]))
    assert ours.__dlpack_device__() == (1, 0)
    assert name(ours.__dlpack__(dl_device=(1, 0), copy=False, stream=None)) == "dltensor"
    for wrong in [{"dl_device": (2, 0)}, {"stream": 1}, {"stream": 0}]:
        with pytest.raises(BufferError):
            ours.__dlpack__(**wrong)  # type: ignore[arg-type]
    fresh = np.from_dlpack(ours, copy=True)
    fresh[0] = 7
    assert np.from_dlpack(ours).tolist() == [1, 2, 3] and fresh.tolist() == [7, 2, 3]


def test_the_emulated_device() -> None:
    gpu = bs.Device.emulated()
    there = bs.array(pa.array([1, 2, 3])).to(gpu)
    assert there.__dlpack_device__() == (12, 0)
    again = bs.from_dlpack(there)
    assert again.device == gpu and pa.array(again.to(bs.Device.cpu())).to_pylist() == [1, 2, 3]
    # A consumer's stream is made to wait; a stream that does not exist is refused.
    stream = gpu.stream()
    assert len(bs.from_dlpack(there.__dlpack__(stream=stream.native, max_version=(1, 0)))) == 3
    there.__dlpack__(stream=-1)
    with pytest.raises((RuntimeError, ValueError)):
        there.__dlpack__(stream=987654321)
    with pytest.raises((BufferError, TypeError)):
        there.__dlpack__(stream="first")  # type: ignore[arg-type]
    assert np.from_dlpack(there, device="cpu").tolist() == [1, 2, 3]
    with pytest.raises(BufferError):
        there.__dlpack__(dl_device=(1, 0), copy=False)
    for form in [None, (1, 0)]:
        fresh = bs.from_dlpack(there.__dlpack__(copy=True, max_version=form))
        assert fresh.device == gpu and pa.array(fresh.to(bs.Device.cpu())).to_pylist() == [1, 2, 3]
    shared, fresh = bs.from_dlpack(there), bs.from_dlpack(there, copy=True)
    assert address(shared) == address(there) != address(fresh)


def managed(array: bs.Array, **keywords: Any) -> tuple[object, Any]:
    """Returns the capsule of a versioned tensor, and the tensor that it owns."""
    capsule = array.__dlpack__(max_version=(1, 1), **keywords)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return capsule, Versioned.from_address(pointer(capsule, b"dltensor_versioned"))


def test_flags_strides_and_version() -> None:
    read_only, copied = 1, 2
    numbers, booleans = pa.array(range(5)), pa.array([True, False])
    for device in [bs.Device.cpu(), bs.Device.emulated()]:
        ours, bits = bs.array(numbers).to(device), bs.array(booleans).to(device)
        for array, keywords, flags in [
            (ours, {}, read_only),
            (ours, {"copy": False}, read_only),
            (ours, {"copy": True}, copied),
            (bits, {}, copied),
            (ours.to(bs.Device.emulated()), {"dl_device": (1, 0)}, copied),
        ]:
            capsule, tensor = managed(array, **keywords)
            assert (tensor.major, tensor.minor, tensor.flags) == (1, 0, flags)
            assert tensor.tensor.byte_offset == 0 and tensor.tensor.strides[0] == 1
            del capsule
    capsule, tensor = managed(bs.from_dlpack(np.arange(24, dtype=np.int8).reshape(2, 3, 4)).slice(1))
    assert [tensor.tensor.shape[i] for i in range(3)] == [1, 3, 4]
    assert [tensor.tensor.strides[i] for i in range(3)] == [12, 4, 1]
    del capsule


def test_what_must_not_be_copied_is_not(nothing_leaked: None) -> None:
    for device in [bs.Device.cpu(), bs.Device.emulated()]:
        bits, numbers = bs.array(pa.array([True, False])).to(device), bs.array(pa.array([1, 2])).to(device)
        for form in [None, (1, 0)]:
            with pytest.raises(BufferError, match="copy"):
                bits.__dlpack__(copy=False, max_version=form)
            # Imported booleans are bytes, which cannot be shared.
            with pytest.raises(BufferError, match="copy"):
                bs.from_dlpack(bits.__dlpack__(max_version=form), copy=False)
            assert len(bs.from_dlpack(numbers.__dlpack__(copy=False, max_version=form), copy=False)) == 2
    with pytest.raises(BufferError, match="copy"):
        bs.from_dlpack(np.eye(2, dtype=bool), copy=False)
    theirs = np.arange(4)
    assert np.from_dlpack(bs.from_dlpack(theirs, copy=False)).ctypes.data == theirs.ctypes.data
    assert np.from_dlpack(bs.from_dlpack(theirs, copy=True)).ctypes.data != theirs.ctypes.data


def test_a_capsule_is_copied_and_has_its_device() -> None:
    cpu, gpu = bs.Device.cpu(), bs.Device.emulated()
    theirs = np.arange(4)
    for form in [None, (1, 0)]:
        for keywords in [{}, {"copy": None}, {"copy": False}, {"device": cpu}]:
            shared = bs.from_dlpack(theirs.__dlpack__(max_version=form), **keywords)
            assert np.from_dlpack(shared).ctypes.data == theirs.ctypes.data
        for keywords in [{"copy": True}, {"copy": True, "device": cpu}]:
            fresh = bs.from_dlpack(theirs.__dlpack__(max_version=form), **keywords)
            assert np.from_dlpack(fresh).ctypes.data != theirs.ctypes.data and fresh.to_pylist() == [0, 1, 2, 3]
        with pytest.raises(BufferError, match="not on EMULATED"):
            bs.from_dlpack(theirs.__dlpack__(max_version=form), device=gpu)
        there = bs.array(theirs).to(gpu)
        with pytest.raises(BufferError, match="not on CPU"):
            bs.from_dlpack(there.__dlpack__(max_version=form), device=cpu)
        fresh = bs.from_dlpack(there.__dlpack__(max_version=form), device=gpu, copy=True)
        assert fresh.device == gpu and address(fresh) != address(there) and fresh.to_pylist() == [0, 1, 2, 3]


def test_what_a_producer_is_asked() -> None:
    there = bs.array(pa.array([1, 2])).to(bs.Device.emulated())
    asked: list[dict[str, Any]] = []

    class Producer:
        def __init__(self, old: bool) -> None:
            self.old = old

        def __dlpack_device__(self) -> tuple[int, int]:
            return there.__dlpack_device__()

        def __dlpack__(self, **keywords: Any) -> object:
            asked.append(keywords)
            if self.old and set(keywords) != {"stream"}:
                raise TypeError("unexpected keyword")
            return there.__dlpack__(**keywords)

    def names(old: bool, **keywords: Any) -> list[set[str]]:
        asked.clear()
        assert len(bs.from_dlpack(Producer(old), **keywords)) == 2
        return [set(keywords) for keywords in asked]

    assert names(False) == [{"stream", "max_version"}]
    assert names(True) == [{"stream", "max_version"}, {"stream"}]
    assert names(False, copy=True) == [{"stream", "max_version", "copy"}]
    # An export to the host has no stream that could wait.
    assert names(False, device=bs.Device.cpu()) == [{"max_version", "dl_device"}]
    with pytest.raises(TypeError):
        names(True, device=bs.Device.cpu())
    with pytest.raises(BufferError):
        names(False, device=bs.Device.cpu(), copy=False)


def address(array: bs.Array) -> int:
    """Returns the address that DLPack gives for an array's memory."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = array.__dlpack__()
    return Tensor.from_address(pointer(capsule, b"dltensor")).data


def test_booleans_of_a_device_are_packed_there() -> None:
    gpu = bs.Device.emulated()
    values = [True, False, True, True] * 10
    there = bs.array(pa.array([None, *values])).to(gpu).slice(1)
    for form in [None, (1, 0)]:
        again = bs.from_dlpack(there.__dlpack__(max_version=form))
        assert (again.type, again.device) == ("Boolean", gpu)
        assert pa.array(again.to(bs.Device.cpu())).to_pylist() == values
    # The main use of such booleans is as a mask.
    kept = bs.filter(bs.array(np.arange(40)).to(gpu), again)
    assert pa.array(kept.to(bs.Device.cpu())).to_pylist() == [n for n in range(40) if values[n]]
    with pytest.raises(BufferError):
        bs.array(pa.array([True, None])).to(gpu).__dlpack__()


def test_booleans_of_several_dimensions(nothing_leaked: None) -> None:
    values = (np.arange(24) % 5 < 2).reshape(2, 3, 4)
    for device in [bs.Device.cpu(), bs.Device.emulated()]:
        ours = bs.from_dlpack(bs.from_dlpack(values).to(device))
        assert ours.device == device
        assert pa.array(ours.to(bs.Device.cpu())).to_pylist() == values.tolist()
        assert np.from_dlpack(ours, device="cpu").tolist() == values.tolist()
        assert np.from_dlpack(ours.slice(1), device="cpu").tolist() == values[1:].tolist()


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class HandMade:
    """A tensor of four int32 made by hand; it counts the calls of its deleter."""

    def __init__(self, **changes: Any) -> None:
        self.values = (ctypes.c_int32 * 8)(*range(8))
        self.shape = (ctypes.c_int64 * 1)(changes.pop("size", 4))
        self.deleted = 0

        def delete(_: int) -> None:
            self.deleted += 1

        self.deleter = DELETER(delete)
        self.managed = Versioned(major=1, minor=1, deleter=self.deleter)
        fields: dict[str, Any] = {"data": ctypes.addressof(self.values), "device_type": 1, "ndim": 1, "bits": 32}
        fields |= {"lanes": 1, "shape": self.shape} | {k: v for k, v in changes.items() if k != "major"}
        self.managed.tensor = Tensor(**fields)
        self.managed.major = changes.get("major", 1)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.name = b"dltensor_versioned"
        self.capsule = new(ctypes.addressof(self.managed), self.name, None)


def test_a_hand_made_tensor_is_deleted_once() -> None:
    made = HandMade(byte_offset=8)
    ours = bs.from_dlpack(made.capsule)
    assert pa.array(ours).to_pylist() == [2, 3, 4, 5]
    part = pa.array(ours.slice(1))
    del ours
    gc.collect()
    assert made.deleted == 0
    del part
    gc.collect()
    assert made.deleted == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"major": 2},
        {"data": None},
        {"size": -1},
        {"size": 2**62},
        {"ndim": 0},
        {"ndim": -1},
        {"ndim": 1000},
        {"code": 5},
        {"bits": 7},
        {"lanes": 4},
        {"device_type": 99},
        {"device_type": 2, "device_id": 2**31 - 1},
        {"device_type": 12, "device_id": 5},
        {"strides": (ctypes.c_int64 * 1)(2)},
        {"strides": (ctypes.c_int64 * 1)(-1)},
        {"byte_offset": 2**64 - 1},
    ],
    ids=str,
)
def test_tensors_that_are_not_what_they_should_be(changes: dict[str, Any]) -> None:
    made = HandMade(**changes)
    with pytest.raises((BufferError, ValueError, RuntimeError)):
        bs.from_dlpack(made.capsule)
    gc.collect()
    assert made.deleted == 1
