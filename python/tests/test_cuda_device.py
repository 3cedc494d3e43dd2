"""Tests of a CUDA device through every protocol. The device is a real one, or the library that stands in for CUDA's driver (see
`tools/check python-gpus`); without either, the tests are skipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from devices import Only, goes_there_and_back, here, opened, operates
from samples import ARRAYS

import bowstring as bs

CUDA = 2


@pytest.fixture(scope="module")
def device() -> bs.Device:
    return opened("CUDA", bs.Device.cuda)


@pytest.mark.parametrize("name", ARRAYS)
def test_every_type_goes_there_and_back(device: bs.Device, name: str) -> None:
    goes_there_and_back(name, device, CUDA)


def test_operations(device: bs.Device) -> None:
    operates(device)


def test_kernels_are_loaded_ahead(device: bs.Device) -> None:
    device.prepare("filter", "take")
    assert device.prepare("filter", "take") == 0
    device.set_memory_kept(1 << 30)


def test_streams_of_batches(device: bs.Device) -> None:
    table = pa.table({"n": list(range(100)), "odd": [n % 2 == 1 for n in range(100)]})
    reader = bs.BatchReader(table.to_reader(7)).to(device).filter("odd")
    assert pa.table(reader)["n"].to_pylist() == list(range(1, 100, 2))


def test_another_device_than_the_first() -> None:
    try:
        second = bs.Device.cuda(1)
    except RuntimeError as error:
        pytest.skip(f"no second CUDA device: {error}")
    # The CUDA array interface does not name the device; the driver finds it by the address.
    values = bs.array(np.arange(5)).to(second)
    again = bs.from_cuda_array_interface(Only(values, "__cuda_array_interface__"))
    assert again.device == second and here(bs.cast(again, "Int8")) == list(range(5))
    with pytest.raises(BufferError, match="device 1"):
        bs.from_cuda_array_interface(Only(values, "__cuda_array_interface__"), device=bs.Device.cuda(0))
    table = pa.table({"n": list(range(20)), "odd": [n % 2 == 1 for n in range(20)]})
    odd = list(range(1, 20, 2))
    reader = bs.BatchReader(table.to_reader(7)).to(second).filter("odd")
    assert pa.table(reader)["n"].to_pylist() == odd
    there = bs.BatchReader(table.to_reader(7)).to(second)
    again = bs.BatchReader(Only(there, "__arrow_c_device_stream__"), device=second)
    assert [n for batch in again.filter("odd") for n in here(batch["n"])] == odd
    # The stream does not name its device, so it is taken for the first, which does not hold these arrays.
    there = bs.BatchReader(table.to_reader(7)).to(second)
    with pytest.raises(ValueError, match="device 1"):
        list(bs.BatchReader(Only(there, "__arrow_c_device_stream__")))


def test_dlpack(device: bs.Device) -> None:
    there = bs.array(np.arange(10)).to(device)
    assert there.__dlpack_device__() == (CUDA, device.device_id)
    again = bs.from_dlpack(there)
    assert again.device == device and here(again) == list(range(10))
    mine = device.stream()
    for stream in [None, 1, 2, -1, mine.native]:
        for version in [None, (1, 0)]:
            assert len(bs.from_dlpack(there.__dlpack__(stream=stream, max_version=version))) == 10
    with pytest.raises(ValueError, match="ambiguous"):
        there.__dlpack__(stream=0)
    assert np.from_dlpack(there, device="cpu").tolist() == list(range(10))
    fresh = bs.from_dlpack(there, copy=True)
    assert fresh.device == device and here(fresh) == list(range(10))


def test_booleans_by_dlpack(device: bs.Device) -> None:
    mask = bs.from_dlpack(bs.array(pa.array([True, False, True])).to(device))
    assert mask.type == "Boolean"
    square = bs.from_dlpack(bs.from_dlpack(np.eye(3, dtype=bool)).to(device))
    assert here(square) == np.eye(3, dtype=bool).tolist()
    assert here(bs.filter(bs.array(pa.array([1, 2, 3])).to(device), mask)) == [1, 3]


def test_the_cuda_array_interface(device: bs.Device) -> None:
    for expected in [[1, 2, 3], [True, False, True], [1.5, None, 2.5], [None, True], []]:
        there = bs.array(pa.array(expected, None if expected else pa.int8())).to(device)
        found = there.__cuda_array_interface__
        assert (found["version"], found["shape"], found["strides"]) == (3, (len(expected),), None)
        assert ("mask" in found) == (None in expected)
        again = bs.from_cuda_array_interface(Only(there, "__cuda_array_interface__"))
        assert again.device == device and here(again) == expected
    # An object with no other interface is imported by this one.
    assert here(bs.array(Only(there, "__cuda_array_interface__"))) == []
    with pytest.raises(AttributeError):
        _ = bs.array(pa.array(["text"])).to(device).__cuda_array_interface__


def test_streams_by_number(device: bs.Device) -> None:
    there = bs.array(np.arange(100)).to(device)
    owned = device.stream()
    for number in [1, 2, owned.native]:
        mine = bs.Stream(device, native=number)
        assert here(bs.cast(there, "Float32", stream=mine)) == list(range(100))
        mine.synchronise()
