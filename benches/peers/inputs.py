"""The inputs of the benches of peers on the CPU, and how a run is measured."""

import json
import os
import statistics
import sys
import time

import numpy as np
import pyarrow as pa

# With tiny inputs the figures mean nothing.
TINY = os.environ.get("BOWSTRING_BENCH") == "tiny"
LARGE, BATCH, HUGE = (5000, 1000, 20_000) if TINY else (1 << 24, 8192, 1 << 29)
BETWEEN = [] if TINY else [1 << 17, 1 << 20]
ENOUGH = 0.01 if TINY else 0.5
# The rows at which growth is measured, besides LARGE.
GROWING = [100_000, 1_000_000, 100_000_000] if os.environ.get("BOWSTRING_BENCH") == "full" else []


def measure(bench, who, run):
    """The median of at least 5 runs and half a second, after one warm-up run."""
    run()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < ENOUGH and len(times) < 2000):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
        del result
    print(json.dumps({"id": bench, "who": who, "seconds": round(statistics.median(times), 9)}), flush=True)


def wanted(bench):
    return len(sys.argv) < 2 or any(part in bench for part in sys.argv[1:])


def bits(rows, percent, spread, seed):
    random = np.random.default_rng(seed)
    if spread == "uniform":
        return random.random(rows) < percent / 100
    # 1,024 neighbours at a time.
    return np.repeat(random.random(-(-rows // 1024)) < percent / 100, 1024)[:rows]


def values(name, rows, nulls):
    """An array for pyarrow, with one null in ten rows on request."""
    random = np.random.default_rng(3)
    null = ~bits(rows, 90, "uniform", 2) if nulls else None
    if name == "int32":
        return pa.array(random.integers(-(2**31), 2**31, rows, dtype=np.int32), mask=null)
    if name == "int64":
        return pa.array(random.integers(-(2**63), 2**63 - 1, rows, dtype=np.int64), mask=null)
    if name == "int8":
        return pa.array(random.integers(-(2**7), 2**7, rows, dtype=np.int8), mask=null)
    if name == "boolean":
        return pa.array(random.integers(0, 2, rows, dtype=np.uint8).astype(bool), mask=null)
    if name == "text12":
        offsets = np.arange(rows + 1, dtype=np.int32) * 12
        letters = random.integers(97, 123, 12 * rows, dtype=np.uint8)
        valid = None if null is None else pa.array(~null).buffers()[1]
        return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters), valid)
    # 0 to 24 bytes each, 12 on average.
    lengths = random.integers(0, 25, rows)
    offsets = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    text = np.frombuffer(b"abcdefghijklmnopqrstuvwx", dtype=np.uint8)
    data = text[np.arange(offsets[-1], dtype=np.int32) - np.repeat(offsets[:-1], lengths)]
    strings = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(data))
    return strings.cast(pa.string_view()) if name == "utf8view" else strings
