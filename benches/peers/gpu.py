"""Measures CuPy and PyTorch on the work of benches/{filter,take,cast}.rs on a CUDA device, with the same
inputs.

Needs numpy, and cupy or torch or both. Prints one JSON object a line: the id of the Rust bench, who ran, the median in
seconds, the bytes that the Rust benches count for it. Times are the device's, by events, behind work that lets the host
get ahead; where the library waits for the device in between, as it does to learn how many rows a mask keeps, that
counts too. `-wall` is the time until the result is there. Arguments are parts of ids: only what contains one of them
runs. With BOWSTRING_BENCH=tiny inputs are tiny and figures mean nothing.

    python benches/peers/gpu.py filter/cuda/int32 > gpu.jsonl

Masks have a byte a row here, indices 32 bits; nothing is checked for its range and there are no nulls. Before it is
timed, each result is compared with what numpy computes; a wrong one ends the program.
"""

import importlib
import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

TINY = os.environ.get("BOWSTRING_BENCH") == "tiny"
LARGE, BATCH = (5000, 1000) if TINY else (1 << 28, 8192)
BETWEEN = [] if TINY else [1 << power for power in (15, 17, 20, 22, 24, 26)]
CHUNK = 1 << 22
WIDTH = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float32": 4, "float64": 8}
UNIFORM, CLUSTERED = "uniform", "clustered"
ALL = [(percent, spread) for spread in (UNIFORM, CLUSTERED) for percent in (1, 10, 50, 90, 99)]
FEW = [(1, UNIFORM), (50, UNIFORM), (99, UNIFORM), (50, CLUSTERED)]
HALF = [(50, UNIFORM)]
CASTS = [
    ("int64", "int32"),
    ("float64", "int32"),
    ("int32", "int64"),
    ("float64", "float32"),
    ("int8", "int32"),
    ("int32", "int8"),
    ("int32", "float64"),
]


# The inputs of benches/support/data.rs, as signed 64-bit numbers, which every library has; overflow wraps.


def signed(number):
    return (number + 2**63) % 2**64 - 2**63


def shifted(numbers, by):
    """A shift to the right that inserts zeros."""
    return (numbers >> by) & ((1 << (64 - by)) - 1)


def random(sequence, i):
    """Numbers `i` of a SplitMix64 sequence."""
    state = (i + 1) * signed(0x9E3779B97F4A7C15) + (sequence << 48)
    state = (state ^ shifted(state, 30)) * signed(0xBF58476D1CE4E5B9)
    state = (state ^ shifted(state, 27)) * signed(0x94D049BB133111EB)
    return state ^ shifted(state, 31)


def below(sequence, i, limit):
    drawn = random(sequence, i)
    return shifted(shifted(drawn, 32) * limit + shifted((drawn & 0xFFFFFFFF) * limit, 32), 32)


def keeps(percent, spread):
    limit = int(percent / 100 * 2**32)
    return lambda i: shifted(random(1, i if spread == UNIFORM else i // 1024), 32) < limit


def values(i):
    return random(3, i)


def indices(rows, order):
    return lambda i: below(4, i, rows) if order == "random" else i


def numbers(of):
    """The input of casts: as `numbers` in data.rs if all values fit, except for the halves in its floats."""
    bits = 8 if of == "int8" else 32
    return lambda i: ((random(7, i) & ((1 << bits) - 1)) ^ (1 << (bits - 1))) - (1 << (bits - 1))


class NotHere(Exception):
    pass


class Cupy:
    name = "CuPy"

    def __init__(self):
        self.lib = importlib.import_module("cupy")
        try:
            devices = self.lib.cuda.runtime.getDeviceCount()
        except self.lib.cuda.runtime.CUDARuntimeError:
            devices = 0
        if not devices:
            raise NotHere("no CUDA device")
        self.out_of_memory = self.lib.cuda.memory.OutOfMemoryError
        self.event = self.lib.cuda.Event
        self.elapsed = self.lib.cuda.get_elapsed_time
        self.empty = self.lib.empty
        self.range = lambda start, end: self.lib.arange(start, end, dtype="int64")
        self.synchronise = self.lib.cuda.Device().synchronize

    def fill(self, column):
        column.fill(1)

    def free(self):
        self.lib.get_default_memory_pool().free_all_blocks()

    def filters(self):
        return {"CuPy": lambda column, mask: column[mask]}

    def takes(self):
        return {"CuPy": lambda column, at: column.take(at)}

    def to(self, column, to):
        return column.astype(to)


class Torch:
    name = "torch"

    def __init__(self):
        self.lib = importlib.import_module("torch")
        if not self.lib.cuda.is_available():
            raise NotHere("no CUDA device")
        self.out_of_memory = self.lib.cuda.OutOfMemoryError
        self.event = lambda: self.lib.cuda.Event(enable_timing=True)
        self.elapsed = lambda start, stop: start.elapsed_time(stop)
        self.empty = lambda rows, dtype: self.lib.empty(rows, dtype=getattr(self.lib, dtype), device="cuda")
        self.range = lambda start, end: self.lib.arange(start, end, dtype=self.lib.int64, device="cuda")
        self.synchronise = self.lib.cuda.synchronize

    def fill(self, column):
        column.fill_(1)

    def free(self):
        self.lib.cuda.empty_cache()

    def filters(self):
        return {"torch": lambda column, mask: column[mask], "torch masked_select": self.lib.masked_select}

    def takes(self):
        return {"torch": lambda column, at: self.lib.index_select(column, 0, at)}

    def to(self, column, to):
        return column.to(getattr(self.lib, to))


def chunks(rows):
    return [(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK)]


def sums(column, place):
    """The count, the sum, and the sum weighted by position, so that order matters."""
    return len(column), int(column.sum()), int(((2 * place + 1) * column).sum())


def added(parts):
    """Combines the sums of consecutive parts."""
    count, placed = 0, 0
    for length, plain, by_place in parts:
        placed += by_place + 2 * count * plain
        count += length
    return count, placed % 2**64


def on_host(rows, chunk):
    """numpy's result for the rows, chunk by chunk."""
    import numpy

    def part(bounds):
        column = chunk(numpy.arange(*bounds, dtype="int64")).astype("int64")
        return sums(column, numpy.arange(len(column), dtype="int64"))

    with ThreadPoolExecutor() as threads:
        return added(threads.map(part, chunks(rows)))


class Peer:
    """A library with its inputs, and the work that it runs."""

    def __init__(self, lib):
        self.lib = lib
        self.busy = lib.empty(16 << 20, "int8")

    def made(self, dtype, rows, f):
        column = self.lib.empty(rows, dtype)
        for start, end in chunks(rows):
            column[start:end] = f(self.lib.range(start, end))
        return column

    def sums(self, column):
        whole = lambda start, end: self.lib.to(column[start:end], "int64")
        return added(sums(whole(start, end), self.lib.range(0, end - start)) for start, end in chunks(len(column)))

    def seconds(self, run):
        """The medians of the device's time and of the wall time."""
        device, wall, begin = [], [], time.perf_counter()
        while len(device) < 11 or (time.perf_counter() - begin < 0.4 and len(device) < 101):
            for _ in range(8):
                self.lib.fill(self.busy)
            start, stop = self.lib.event(), self.lib.event()
            start.record()
            result = run()
            stop.record()
            stop.synchronize()
            device.append(self.lib.elapsed(start, stop) / 1e3)
            del result
            self.lib.synchronise()
            now = time.perf_counter()
            result = run()
            self.lib.synchronise()
            wall.append(time.perf_counter() - now)
            del result
        return statistics.median(device), statistics.median(wall)

    def measure(self, bench, who, moved, right, run, result_of=lambda result: result):
        """Checks the result, which also warms up, then measures."""
        found = self.sums(result_of(run()))
        if found != right:
            sys.exit(f"{bench}: {who} is wrong: {found[0]} values, not {right[0]}, or others")
        for name, seconds in zip([who, f"{who}-wall"], self.seconds(run)):
            print(json.dumps({"id": bench, "who": name, "seconds": seconds, "bytes": moved}), flush=True)

    def filters(self, of, rows, masks, columns=1):
        ids = {mask: f"filter/cuda/{of}/{rows}/{mask[0]}%-{mask[1]}/no-nulls/{columns}" for mask in masks}
        for (percent, spread), bench in ids.items():
            if not wanted(bench):
                continue
            keep = keeps(percent, spread)
            all_columns = [self.made(of, rows, values) for _ in range(columns)]
            mask = self.made("bool", rows, keep)
            right = on_host(rows, lambda i: values(i).astype(of)[keep(i)])
            moved = rows // 8 + columns * WIDTH[of] * (rows + right[0])
            for who, one in self.lib.filters().items():
                run = lambda: [one(column, mask) for column in all_columns]
                self.measure(bench, who, moved, right, run, lambda results: results[-1])

    def takes(self, of, rows):
        for order in ["random", "ascending"]:
            bench = f"take/cuda/{of}/{rows}/{order}/no-nulls/1"
            if not wanted(bench):
                continue
            at = indices(rows, order)
            column, places = self.made(of, rows, values), self.made("int32", rows, at)
            right = on_host(rows, lambda i: values(at(i)).astype(of))
            for who, one in self.lib.takes().items():
                self.measure(bench, who, rows * (4 + 2 * WIDTH[of]), right, lambda: one(column, places))

    def casts(self, rows):
        for of, to in CASTS:
            bench = f"cast/cuda/{of}-{to}/{rows}/all-safe/no-nulls/1"
            if wanted(bench):
                by = 0.5 if of == "float64" else 1
                column = self.made(of, rows, numbers(of))
                column *= by
                right = on_host(rows, lambda i: (numbers(of)(i).astype(of) * by).astype(to))
                moved = rows * (WIDTH[of] + WIDTH[to])
                self.measure(bench, self.lib.name, moved, right, lambda: self.lib.to(column, to))

    def copies(self, power):
        bench = f"copy/cuda/bytes/{1 << power}/-/-/1"
        if wanted(bench):
            column = self.made("int64", 1 << (power - 3), values)
            out = self.lib.empty(1 << (power - 3), "int64")

            def run():
                out[:] = column
                return out

            self.measure(bench, self.lib.name, 2 << power, self.sums(column), run)


def wanted(bench):
    return len(sys.argv) < 2 or any(part in bench for part in sys.argv[1:])


def cases(peer):
    """Everything to measure, as callables."""
    yield from (lambda power=power: peer.copies(power) for power in ([15] if TINY else range(15, 32, 2)))
    plan = [("int32", LARGE, ALL), ("int64", LARGE, ALL), ("int8", LARGE, FEW), ("int16", LARGE, FEW)]
    plan += [(of, BATCH, FEW) for of in ("int32", "int64")]
    plan += [(of, rows, HALF) for of in ("int32", "int64") for rows in BETWEEN]
    for of, rows, masks in plan:
        yield from (lambda of=of, rows=rows, mask=mask: peer.filters(of, rows, [mask]) for mask in masks)
    for rows, columns in [(BATCH, 10), (BATCH, 100), (2000 if TINY else 1 << 20, 100)]:
        yield lambda rows=rows, columns=columns: peer.filters("int32", rows, HALF, columns)
    for rows in [LARGE, BATCH] + BETWEEN:
        for of in ("int8", "int16", "int32", "int64") if rows in (LARGE, BATCH) else ("int32",):
            yield lambda of=of, rows=rows: peer.takes(of, rows)
    for rows in [LARGE, BATCH]:
        yield lambda rows=rows: peer.casts(rows)


def main():
    for kind in [Cupy, Torch]:
        try:
            lib = kind()
        except (ImportError, NotHere) as reason:
            print(json.dumps({"not_run": kind.name, "reason": str(reason)}), flush=True)
            continue
        peer = Peer(lib)
        for case in cases(peer):
            try:
                case()
            except lib.out_of_memory as reason:
                print(f"not run by {lib.name}, too little memory: {reason}", file=sys.stderr)
            lib.free()


if __name__ == "__main__":
    main()
