"""Helpers for the tests of all kinds of GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from samples import ARRAYS

import bowstring as bs


def opened(name: str, device: Callable[[], bs.Device]) -> bs.Device:
    try:
        return device()
    except RuntimeError as error:
        pytest.skip(f"no {name} device: {error}")


def here(array: Any) -> list[Any]:
    got = pa.array(array.to(bs.Device.cpu()))
    got.validate(full=True)
    return got.to_pylist()  # type: ignore[no-any-return]


class Only:
    """An object with a single method, taken from another object."""

    def __init__(self, obj: object, name: str) -> None:
        setattr(self, name, getattr(obj, name))


def goes_there_and_back(name: str, device: bs.Device, device_type: int) -> None:
    expected = ARRAYS[name].slice(3)
    there = bs.array(expected).to(device)
    assert (there.device, there.device_type) == (device, device_type)
    assert here(there) == expected.to_pylist()
    again = bs.array(Only(there, "__arrow_c_device_array__"))
    assert again.device == device and here(again) == expected.to_pylist()


def operates(device: bs.Device) -> None:
    values = bs.array(pa.array([1, None, 300, -4] * 100)).to(device)
    mask = bs.array(pa.array([True, True, False, None] * 100)).to(device)
    assert here(bs.filter(values, mask)) == [1, None] * 100
    assert here(bs.cast(values, "Int8", strict=False)) == [1, None, None, -4] * 100
    assert bs.null_count(values) == 100
    with pytest.raises(IndexError):
        bs.take(values, bs.array(pa.array([400])).to(device)).wait()
