"""Tests of memory that CUDA shares with the host, pinned and managed, as another library makes it. The device is a real one, or
the library that stands in for CUDA's driver (see `tools/check python-gpus`); without either, the tests are skipped."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from devices import Only, here, opened
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


@pytest.mark.parametrize("typestr", ["|b1", "|i1", "|t1"])
@pytest.mark.parametrize("masks", ["device", "same", "pinned"])
def test_a_mask_is_where_the_values_can_be_read(kind: int, masks: str, typestr: str) -> None:
    valid = np.arange(20) % 3 > 0
    expected = [n if n % 3 else None for n in range(20)]
    elements = np.packbits(valid, bitorder="little") if typestr == "|t1" else valid.astype("u1")
    for values_in in [kind, CUDA]:
        mask_in = {"device": CUDA, "same": values_in, "pinned": PINNED}[masks]
        mask = there(mask_in, elements, typestr=typestr, shape=(20,))
        ours = bs.from_cuda_array_interface(there(values_in, np.arange(20), mask=mask))
        shared = typestr == "|t1" and mask_in == values_in
        assert ours.device_type == (values_in if shared else CUDA)
        assert here(ours) == expected and bs.null_count(ours) == 7
        assert here(bs.cast(ours, "Int8", stream=ours.device.stream())) == expected


def test_masks_and_bytes_are_made_where_the_device_reads_them(kind: int) -> None:
    bits = there(kind, np.packbits(np.arange(20) % 3 > 0, bitorder="little"), typestr="|t1", shape=(20,))
    for foreign in [there(kind, np.arange(20), mask=bits), bits]:
        ours = bs.from_cuda_array_interface(foreign)
        assert ours.device_type == kind
        again = bs.from_cuda_array_interface(Only(ours, "__cuda_array_interface__"))
        assert here(again) == here(ours)


def test_booleans_of_several_dimensions(device: bs.Device) -> None:
    expected = np.arange(600).reshape(200, 3) % 7 < 3
    ours = bs.from_dlpack(expected).to(device)
    found = ours.__cuda_array_interface__
    assert (found["typestr"], found["shape"]) == ("|b1", (200, 3))
    gc.collect()
    others = [bs.array(np.full(600, 9, "u1")).to(device) for _ in range(4)]
    assert here(bs.from_cuda_array_interface(Foreign(**(found | {"typestr": "|u1"})))) == expected.astype(int).tolist()
    del ours, others


def test_what_the_interface_cannot_describe_has_no_such_attribute(device: bs.Device) -> None:
    pairs = pa.array([[1, 2], None], pa.list_(pa.int32(), 2))
    for values in [pa.array(["text"]), pairs]:
        assert not hasattr(bs.array(values).to(device), "__cuda_array_interface__")
