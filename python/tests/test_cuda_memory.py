"""Tests of memory that CUDA shares with the host, pinned and managed, as another library makes it. The device is a real one, or
the library that stands in for CUDA's driver (see `tools/check python-gpus`); without either, the tests are skipped."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from devices import Only, opened
from test_dlpack import address, managed

import bowstring as bs

CPU, CUDA, PINNED, MANAGED = 1, 2, 3, 13


@pytest.fixture(scope="module")
def device() -> bs.Device:
    return opened("CUDA", bs.Device.cuda)


@pytest.fixture(params=[PINNED, MANAGED], ids=["pinned", "managed"])
def kind(request: pytest.FixtureRequest, device: bs.Device) -> int:
    # Managed memory can hang some machines with a real GPU.
    if request.param == MANAGED and "stand-in" not in device.name.lower():
        pytest.skip("managed memory is tested on the stand-in only")
    return int(request.param)


class Foreign:
    """An object with only the CUDA array interface."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = interface


def there(kind: int, values: Any, **changes: Any) -> Foreign:
    """Returns values in memory of this kind, which is kept to the end of the process."""
    if kind == CUDA:
        array = bs.array(np.ascontiguousarray(values)).to("cuda")
        foreign = Foreign(**(array.__cuda_array_interface__ | changes))
        foreign.keep = array  # type: ignore[attr-defined]
        return foreign
    values, cuda = np.ascontiguousarray(values), ctypes.CDLL("libcuda.so.1")
    context, memory = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
    make = cuda.cuMemHostAlloc if kind == PINNED else cuda.cuMemAllocManaged
    assert make(ctypes.byref(memory), ctypes.c_size_t(max(values.nbytes, 1)), 1) == 0
    ctypes.memmove(memory, values.ctypes.data, values.nbytes)
    known = {"version": 3, "shape": values.shape, "typestr": values.dtype.str, "data": (memory.value, True)}
    return Foreign(**(known | changes))


def test_the_host_reads_it_in_place(kind: int) -> None:
    ours = bs.from_cuda_array_interface(there(kind, np.arange(10)))
    assert ours.device_type == kind
    for plain in [ours.to("cpu"), ours.to(bs.Stream())]:
        assert plain.device_type == CPU and address(plain) == address(ours)
    assert ours.to_pylist() == ours.to_numpy().tolist() == np.asarray(ours).tolist() == list(range(10))
    assert pa.array(Only(ours, "__arrow_c_array__")).to_pylist() == ours.to_arrow().to_pylist() == list(range(10))
    batch = bs.RecordBatch.from_arrays({"n": ours, "m": bs.array(np.ones(10))})
    assert batch.to("cpu")["n"].device_type == CPU
    assert pa.record_batch(Only(batch, "__arrow_c_array__"))["n"].to_pylist() == list(range(10))
    batch = batch.select(["n"])
    for stream in [batch, bs.BatchReader(batch)]:
        table = pa.RecordBatchReader.from_stream(Only(stream, "__arrow_c_stream__")).read_all()
        assert table["n"].to_pylist() == list(range(10))
    read = bs.BatchReader(Only(bs.BatchReader(batch).to("cpu"), "__arrow_c_device_stream__"))
    assert next(read)["n"].device_type == CPU


def test_tensors_for_the_host_share_it(kind: int) -> None:
    ours = bs.from_cuda_array_interface(there(kind, np.arange(10)))
    for copy, flags in [(None, 1), (False, 1), (True, 2)]:
        capsule, tensor = managed(ours, dl_device=(CPU, 0), copy=copy)
        assert (tensor.flags, tensor.tensor.device_type) == (flags, CPU)
        assert (tensor.tensor.data == address(ours)) == (flags == 1)
        del capsule
    assert not np.from_dlpack(ours, device="cpu").flags.writeable
    again = bs.from_dlpack(ours)
    assert (again.device_type, address(again)) == (kind, address(ours))


def test_producers_of_pinned_memory_are_given_no_stream(device: bs.Device) -> None:
    ours, asked = bs.from_cuda_array_interface(there(PINNED, np.arange(3))), {}

    class Producer:
        def __dlpack_device__(self) -> tuple[int, int]:
            return ours.__dlpack_device__()

        def __dlpack__(self, **keywords: Any) -> object:
            asked.update(keywords)
            return ours.__dlpack__(**keywords)

    assert bs.from_dlpack(Producer()).to_pylist() == [0, 1, 2]
    assert "stream" not in asked
