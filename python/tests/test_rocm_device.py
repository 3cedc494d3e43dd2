"""Tests of a ROCm device through every protocol. The device is a real one, or the library that stands in for HIP (see
`tools/check python-gpus`); without either, the tests are skipped. Unlike with CUDA, DLPack numbers streams in another way, and arrays have
no CUDA array interface."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from devices import goes_there_and_back, here, opened, operates
from samples import ARRAYS

import bowstring as bs

ROCM = 10


@pytest.fixture(scope="module")
def device() -> bs.Device:
    return opened("ROCm", bs.Device.rocm)


@pytest.mark.parametrize("name", ARRAYS)
def test_every_type_goes_there_and_back(device: bs.Device, name: str) -> None:
    goes_there_and_back(name, device, ROCM)


def test_operations(device: bs.Device) -> None:
    operates(device)


def test_dlpack_streams_by_number(device: bs.Device) -> None:
    there = bs.array(np.arange(10)).to(device)
    assert there.__dlpack_device__() == (ROCM, device.device_id)
    again = bs.from_dlpack(there)
    assert again.device == device and here(again) == list(range(10))
    mine = device.stream()
    # Stream 0 and no stream are the default stream; 1 and 2 are CUDA's numbers for its two default streams.
    for stream in [None, 0, -1, mine.native]:
        for version in [None, (1, 0)]:
            assert len(bs.from_dlpack(there.__dlpack__(stream=stream, max_version=version))) == 10
    for stream in [1, 2, -2]:
        with pytest.raises(ValueError):
            there.__dlpack__(stream=stream)
    assert np.from_dlpack(there, device="cpu").tolist() == list(range(10))


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not list the libraries of a process")
def test_the_runtime_that_the_process_has_is_used(device: bs.Device, tmp_path: Path) -> None:
    """PyTorch brings a copy of HIP, whose handles mean nothing to another copy."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    found = [file for folder in folders if (file := Path(folder) / "libamdhip64.so.7").exists()]
    if not found:
        pytest.skip("HIP is not in LD_LIBRARY_PATH")
    own = tmp_path / "libamdhip64.so.6.4"
    shutil.copy(found[0], own)
    program = f"""
import ctypes, bowstring as bs
ctypes.CDLL({str(own)!r})
print(bs.Device.rocm().name)
lines = open("/proc/self/maps").read().splitlines()
print(len({{line.split()[-1] for line in lines if "libamdhip64" in line}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[1:] == ["1"], done.stdout + done.stderr


def test_it_is_no_cuda_array(device: bs.Device) -> None:
    assert not hasattr(bs.array(pa.array([1])).to(device), "__cuda_array_interface__")
