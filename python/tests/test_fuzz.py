"""Tests with CUDA array interfaces that are changed at random. Each gives a valid array, an exception of
ours, or the object's own exception; nothing crashes, and nothing keeps an object.

The one idea: an interface never describes more memory than exists, unless no memory could be that large. A failure names its
case, which `CASE=...` in the environment runs again; `CASES=...` sets the number of cases."""

from __future__ import annotations

import gc
import math
import os
import random
import time
import weakref
from typing import Any

import numpy as np
import pyarrow as pa

import bowstring as bs
from bowstring._bowstring import _cuda_interface as cuda_interface

GPU = bs.Device.emulated()

# The exceptions with which an object may be refused.
REFUSED = (TypeError, ValueError, BufferError, AttributeError, OverflowError, IndexError, MemoryError, RuntimeError)

EDGES = [0, -1, 1, 7, 63, 64, 2**31 - 1, 2**31, 2**32, 2**57, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63)]

ODD = [None, "x", b"|b1", 1.5, (), [], {}, True, "<i3", "<V4", ">i4", "|t1", "<t1", "|b1", "<f8", "<u8", "é1", "<t2"]


class Foreign:
    def __init__(self, interface: object, keep: object) -> None:
        self.__cuda_array_interface__ = interface
        self.keep = keep


def width(typestr: object) -> float:
    """Returns the bytes of an element according to the interface."""
    if not isinstance(typestr, str) or len(typestr) != 3 or not typestr[2].isdigit():
        return 16.0
    return 0.125 if typestr[1] == "t" else float(typestr[2])


def fits(interface: dict[str, Any], there: int) -> bool:
    """Whether the described memory exists, or is recognisably impossible."""
    shape = interface.get("shape")
    try:
        rows = math.prod(shape)  # type: ignore[arg-type]
        needed = rows * width(interface.get("typestr"))
    except (TypeError, ValueError):
        return True
    return any(size < 0 for size in shape) or needed <= there or needed > 2**60  # type: ignore[union-attr]


def stranger(chance: random.Random, depth: int = 0) -> Foreign:
    kind = chance.choice(["i1", "i2", "i4", "i8", "u1", "u4", "f2", "f4", "f8"])
    rows = chance.choice([0, 1, 5, 64, 100])
    values = np.arange(rows).astype(kind)
    if chance.random() < 0.3 and rows % 5 == 0:
        values = values.reshape(-1, 5)
    array = bs.array(values).to(GPU)
    array.wait()
    honest: dict[str, Any] = cuda_interface(array)
    told = dict(honest)
    if chance.random() < 0.4 and depth == 0:
        mask = np.arange(values.shape[0]) % 3 != 0
        told["mask"] = chance.choice([
            lambda: Foreign(cuda_interface(at := bs.array(mask.astype(np.uint8)).to(GPU)), at),
            lambda: stranger(chance, 1),
            lambda: chance.choice(ODD),
        ])()
    for _ in range(chance.choice([0, 1, 1, 2, 3])):
        key = chance.choice(["version", "shape", "typestr", "data", "strides", "stream", "mask", "descr"])
        told[key] = chance.choice([
            lambda: chance.choice(EDGES),
            lambda: chance.choice(ODD),
            lambda: (chance.choice(EDGES), chance.choice([1, 5, *EDGES])),
            lambda: tuple(chance.choice([0, 1, 2, 5, *EDGES]) for _ in range(chance.choice([1, 2, 65]))),
            lambda: None,
        ])()
        if chance.random() < 0.1:
            del told[key]
        # A wrong address or stream cannot always be recognised, so most are set back to the honest one.
        for pointer in ["data", "stream"]:
            if isinstance(told.get(pointer), (tuple, int)) and told[pointer] != honest[pointer]:
                told[pointer] = honest[pointer] if chance.random() < 0.9 else chance.choice(ODD[:7])
        if not fits(told, values.nbytes):
            told["shape"], told["typestr"] = honest["shape"], honest["typestr"]
    return Foreign(told if chance.random() < 0.98 else chance.choice(ODD), array)


def use(foreign: Foreign) -> bool:
    try:
        array = bs.from_cuda_array_interface(foreign, device=GPU)
    except REFUSED:
        return False
    for rows in [array, array.slice(len(array) // 3, len(array) // 2)]:
        pa.array(rows.to(bs.Device.cpu())).validate(full=True)
        bs.null_count(rows)
    return True


def one(case: int) -> bool:
    foreign = stranger(random.Random(case))
    gone = weakref.ref(foreign)
    taken = use(foreign)
    del foreign
    # Work under way keeps the object until it has passed and another call has noticed that.
    for _ in range(200):
        gc.collect()
        if gone() is None:
            return taken
        bs.array(pa.array([1])).to(GPU).wait()
        time.sleep(0.01)
    raise AssertionError("an object was kept")


def test_changed_interfaces_are_arrays_or_exceptions() -> None:
    only = os.environ.get("CASE")
    cases = [int(only)] if only else range(int(os.environ.get("CASES", "200")))
    taken = 0
    for case in cases:
        try:
            taken += one(case)
        except BaseException as error:
            raise AssertionError(f"CASE={case}") from error
    assert only or len(cases) // 10 < taken < len(cases) * 9 // 10, f"{taken} of {len(cases)}"
