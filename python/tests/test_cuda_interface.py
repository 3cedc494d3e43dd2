"""Tests of the CUDA array interface without a GPU: the dictionaries are CUDA's, and the memory is that of the emulated device,
which the tests pass to `from_cuda_array_interface`. Tests against cupy, numba and torch run where these find a GPU."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bowstring as bs
from bowstring._bowstring import _cuda_interface as cuda_interface

GPU = bs.Device.emulated()


class Foreign:
    """An object with only the CUDA array interface."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = interface


def there(values: Any) -> bs.Array:
    array = bs.array(values).to(GPU)
    array.wait()
    return array


def interface(values: Any, **changes: Any) -> Foreign:
    array = there(values)
    foreign = Foreign(**(cuda_interface(array) | changes))
    foreign.keep = array  # type: ignore[attr-defined]
    return foreign


def read(foreign: Foreign) -> list[Any]:
    array = bs.from_cuda_array_interface(foreign, device=GPU)
    got = pa.array(array.to(bs.Device.cpu()))
    got.validate(full=True)
    return got.to_pylist()  # type: ignore[no-any-return]


def test_arrays_elsewhere_have_no_such_attribute() -> None:
    for array in [bs.array(pa.array([1])), there(pa.array([1]))]:
        assert not hasattr(array, "__cuda_array_interface__")
    with pytest.raises((RuntimeError, ValueError)):
        bs.from_cuda_array_interface(interface(pa.array([1])), device=bs.Device.cpu())


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
def test_numbers(dtype: str) -> None:
    values = np.arange(10).astype(dtype)
    found = cuda_interface(there(values))
    assert found["version"] == 3 and found["shape"] == (10,) and found["strides"] is None
    assert found["typestr"] == np.dtype(dtype).str
    assert found["data"][0] > 0 and found["data"][1] is True
    assert found["stream"] not in (0, None) and "mask" not in found
    assert read(interface(values)) == values.tolist()


def test_more_dimensions_and_strides() -> None:
    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert cuda_interface(there(values))["shape"] == (2, 3)
    assert read(interface(values, strides=(12, 4))) == values.tolist()
    for strides in [(4, 8), (24, 4), (-12, 4)]:
        with pytest.raises(BufferError):
            read(interface(values, strides=strides))
    with pytest.raises(TypeError):
        read(interface(values, strides=(4,)))


def test_no_elements_have_no_address() -> None:
    found = cuda_interface(there(np.zeros(0, np.int32)))
    assert found["shape"] == (0,) and found["data"][0] == 0
    assert read(Foreign(**found)) == []


def test_booleans_are_bytes() -> None:
    values = [True, False, True] * 7
    assert cuda_interface(there(pa.array(values)))["typestr"] == "|b1"
    assert read(interface(pa.array(values))) == values


def test_nulls_are_a_mask() -> None:
    values = [1, None, 3] * 7
    foreign = interface(pa.array(values))
    mask = foreign.__cuda_array_interface__["mask"].__cuda_array_interface__
    assert (mask["typestr"], mask["shape"]) == ("|b1", (21,))
    assert read(foreign) == values


def test_rows_of_several_dimensions_have_no_mask() -> None:
    pairs = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2))
    with pytest.raises(BufferError):
        cuda_interface(there(pairs))
    assert read(Foreign(**cuda_interface(there(pairs.slice(2))))) == [[3, 4]]


def test_masks_of_numbers_and_of_bits() -> None:
    expected = [0, None, 2, None] * 5
    for dtype in [np.int8, np.uint8, np.int32, np.int64]:
        mask = interface((np.arange(20) % 2 == 0).astype(dtype) * 5)
        assert read(interface(np.arange(20) % 4, mask=mask)) == expected
    packed = np.packbits(np.arange(20) % 2 == 0, bitorder="little")
    # cudf writes "<t1" and version 1.
    for typestr in ["|t1", "<t1"]:
        bits = interface(packed, typestr=typestr, shape=(20,), version=1)
        assert read(interface(np.arange(20) % 4, mask=bits)) == expected
    short = [interface(packed, typestr="|t1", shape=(shape,)) for shape in [0, 3, 19, 21]]
    for wrong in [interface(np.ones(19, np.int8)), interface(np.ones((20, 1), np.int8)), *short]:
        with pytest.raises(BufferError):
            read(interface(np.arange(20), mask=wrong))
    with pytest.raises(TypeError):
        read(interface(np.arange(20), mask=interface(np.ones(20))))
    with pytest.raises(AttributeError):
        read(interface(np.arange(20), mask=1))
    ones = interface(np.ones(20, np.int8))
    with pytest.raises(TypeError, match="mask with a mask"):
        read(interface(np.arange(20), mask=interface(np.ones(20, np.int8), mask=ones)))


def test_bits_are_booleans() -> None:
    expected = [n % 3 == 1 for n in range(21)]
    packed = np.packbits(expected, bitorder="little")
    assert read(interface(packed, typestr="|t1", shape=(21,))) == expected
    # 21 bits take three bytes, and no byte beyond them is read.
    assert len(packed) == 3
    with pytest.raises(TypeError):
        read(interface(packed, typestr="|t1", shape=(7, 3)))
    with pytest.raises(BufferError):
        read(interface(packed, typestr="|t1", shape=(21,), strides=(1,)))


def test_version_2_has_no_stream() -> None:
    found = cuda_interface(there(np.arange(3)))
    del found["stream"]
    assert read(Foreign(**(found | {"version": 2}))) == [0, 1, 2]


def test_streams_are_waited_on() -> None:
    stream = GPU.stream()
    values = bs.array(np.arange(1000)).to(stream)
    late = bs.cast(values, "Float64", stream=stream)
    found = cuda_interface(late)
    assert read(Foreign(**(found | {"stream": stream.native}))) == list(range(1000))
    with pytest.raises(ValueError):
        read(Foreign(**(found | {"stream": 0})))
    with pytest.raises((RuntimeError, ValueError)):
        read(Foreign(**(found | {"stream": 987654321})))


def test_the_owner_is_kept_alive() -> None:
    foreign = interface(np.arange(5))
    gone = weakref.ref(foreign)
    ours = bs.from_cuda_array_interface(foreign, device=GPU)
    part = ours.slice(2)
    del foreign, ours
    gc.collect()
    assert gone() is not None
    assert pa.array(part.to(bs.Device.cpu())).to_pylist() == [2, 3, 4]
    del part
    bs.Stream(GPU).synchronise()
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "changes",
    [
        {"typestr": ">i8"},
        {"typestr": "<c16"},
        {"typestr": "<M8"},
        {"typestr": "<i3"},
        {"typestr": "i8"},
        {"typestr": 8},
        {"version": 1},
        {"version": None},
        {"shape": [5]},
        {"shape": None},
        {"shape": (5.0,)},
        {"shape": (2**64,)},
        {"data": None},
        {"data": (1,)},
        {"data": (-8, False)},
        {"data": (2**64, False)},
        {"version": -3},
        {"strides": ("8",)},
        {"stream": -1},
        {"stream": "first"},
        {"stream": 2**64},
    ],
    ids=str,
)
def test_dictionaries_that_are_not_what_they_should_be(changes: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        read(interface(np.arange(5), **changes))


def test_impossible_shapes() -> None:
    for shape in [(-1,), (2**62, 2**62), ()]:
        with pytest.raises(BufferError):
            read(interface(np.arange(5), shape=shape))
    here = np.arange(5)
    # These addresses belong to no known memory, or to memory of another device.
    for address in [0, 1, here.ctypes.data, 2**64 - 8]:
        with pytest.raises(BufferError):
            read(interface(np.arange(5), data=(address, False)))
    with pytest.raises((TypeError, AttributeError)):
        bs.from_cuda_array_interface(object(), device=GPU)  # type: ignore[arg-type]


def cuda() -> bs.Device:
    try:
        return bs.Device.cuda()
    except RuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")


def test_cupy() -> None:
    device, cp = cuda(), pytest.importorskip("cupy")
    theirs = cp.arange(1000)
    ours = bs.filter(bs.array(theirs), bs.array(theirs % 2 == 0))
    assert ours.device == device
    assert cp.asarray(ours).get().tolist() == list(range(0, 1000, 2))
    assert cp.from_dlpack(ours).get().tolist() == list(range(0, 1000, 2))
    with pytest.raises(ValueError, match="mask"):
        cp.asarray(bs.array(pa.array([1, None])).to(device))


def test_numba() -> None:
    device, numba = cuda(), pytest.importorskip("numba.cuda")
    ours = bs.array(np.arange(5)).to(device)
    assert numba.as_cuda_array(ours).copy_to_host().tolist() == [0, 1, 2, 3, 4]
    back = bs.array(numba.to_device(np.arange(5)))
    assert back.device == device
    with pytest.raises(NotImplementedError):
        numba.as_cuda_array(bs.array(pa.array([1, None])).to(device))


def test_torch() -> None:
    device, torch = cuda(), pytest.importorskip("torch")
    theirs = torch.arange(1000, device="cuda")
    ours = bs.take(bs.array(theirs), bs.array(torch.tensor([3, 1], device="cuda")))
    assert ours.device == device
    assert torch.from_dlpack(ours).tolist() == [3, 1]
