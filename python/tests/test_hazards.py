"""Tests with hostile objects and data: they may cause an error with a message, and never end the process."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import MagicMock

import hazards
import numpy as np
import pyarrow as pa
import pytest

import bowstring as bs
from bowstring._bowstring import _unpickle as unpickle


def test_objects_that_answer_with_themselves() -> None:
    hazards.run(
        """
        import bowstring as bs, numpy as np

        class AsPy:
            def as_py(self): return self
        class Item:
            dtype = 1
            def item(self): return Other()
        class Other:
            dtype = 1
            def item(self): return Item()
        class ArrowArray:
            def __arrow_array__(self): return self
        class Series:
            def to_series(self): return self
        class Array:
            def __array__(self, *a, **k):
                made = np.empty((), object)
                made[()] = self
                return made
        class Proxy:
            def __getattr__(self, name): return Proxy()
            def __call__(self, *a, **k): return Proxy()
        class Rows:
            def __iter__(self): return iter([self])

        for value in [AsPy(), Item(), Proxy(), Rows(), ArrowArray()]:
            for body in [
                lambda: bs.array([value]),
                lambda: bs.array([[{"a": value}]]),
                lambda: bs.lit(value),
                lambda: bs.col("a") == value,
                lambda: bs.fill_null(bs.array([1, None]), value),
            ]:
                fails(body, TypeError, ValueError)
        for value in [AsPy(), Item(), ArrowArray(), Series(), Array(), Proxy()]:
            for body in [
                bs.array, bs.record_batch, bs.chunks, bs.BatchReader, bs.is_null, bs.DataType, bs.Schema,
                bs.from_dlpack, bs.from_cuda_array_interface,
                lambda value: bs.filter(value, [True]),
                lambda value: bs.filter([1], value),
                lambda value: bs.record_batch({"a": value}),
                lambda value: bs.array([1])[value],
                lambda value: bs.array([1]).to(value),
            ]:
                fails(lambda: body(value), TypeError, ValueError, AttributeError)
        """
    )


def test_objects_with_every_attribute() -> None:
    # The object claims to be an integer, as it claims everything that Python asks.
    assert bs.array([MagicMock()]).to_pylist() == [1]
    with pytest.raises(TypeError, match="no value that Arrow has"):
        bs.array([MagicMock(spec=[])])


def test_scalars_are_read_as_what_they_stand_for() -> None:
    values = [pa.scalar({"a": 1}), pa.scalar([{"a": 2}])]
    assert bs.array(values[:1]).to_pylist() == [{"a": 1}]
    assert bs.array(values[1:]).to_pylist() == [[{"a": 2}]]


class Adding:
    """A column that changes its own container while it is read."""

    def __init__(self, change: Callable[[], object]) -> None:
        self.change = change

    def __iter__(self) -> Iterator[int]:
        self.change()
        return iter([1])

    def __arrow_c_array__(self, *_: object) -> Any:
        self.change()
        return pa.array([1]).__arrow_c_array__()

    def __arrow_c_schema__(self) -> Any:
        self.change()
        return pa.int64().__arrow_c_schema__()


def test_containers_that_change_while_they_are_read() -> None:
    names: dict[str, Any] = {}

    def new() -> None:
        names[f"new{len(names)}"] = 1

    reads: list[Callable[[], object]] = [
        lambda: bs.array([names]),
        lambda: bs.record_batch(names),
        lambda: bs.filter(names, [True]),
        lambda: bs.Schema(names),
        lambda: bs.fill_null(bs.record_batch({"a": [1, None], "b": [1, None]}), names),
    ]
    for read in reads:
        names.clear()
        names.update(a=Adding(new), b=Adding(new))
        with pytest.raises(RuntimeError, match="changed size"):
            read()
        names.clear()
        names.update(a=Adding(names.clear), b=Adding(names.clear))
        with pytest.raises(RuntimeError, match="changed size"):
            read()
    rows: list[Any] = []
    changes: list[Callable[[], object]] = [lambda: rows.append(1), rows.clear]
    for change in changes:
        rows[:] = [Adding(change), 1]
        with pytest.raises(RuntimeError, match="changed size"):
            bs.array(rows)
        rows[:] = [Adding(change), 1]
        with pytest.raises(RuntimeError, match="changed size"):
            bs.array([rows])


def test_no_threads_for_the_emulated_device() -> None:
    hazards.run(
        """
        import os, resource, bowstring as bs
        if os.getuid() == 0:
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            os.setuid(65534)
            for body in [bs.Device.emulated, lambda: bs.Device("emulated"), lambda: bs.array([1]).to("emulated")]:
                fails(body, RuntimeError)
        """
    )


def test_times_of_numpys_that_do_not_fit() -> None:
    for dtype in ["M8[Y]", "M8[W]", "m8[W]", "M8[h]", "m8[7us]", "M8[3D]"]:
        times = np.array([2**62, "NaT"], dtype)
        with pytest.raises((OverflowError, ValueError), match="does not fit"):
            bs.array(times)
        with pytest.raises(OverflowError, match="does not fit"):
            bs.array([times[0]])
        assert bs.array([times[1]]).to_pylist() == [None]
        assert bs.array(times[1:]).to_pylist() == [None]
    for dtype in ["M8[Y]", "M8[W]", "m8[W]", "M8[h]", "m8[7us]", "M8[3D]"]:
        times = np.array([3], dtype)
        assert bs.array(times).to_numpy()[0] == times[0] == bs.array([times[0]]).to_numpy()[0]
    with pytest.raises(ValueError, match="no whole number of nanoseconds"):
        bs.array(np.array([1], "m8[ps]"))
    assert bs.array(np.array([3000], "m8[ps]")).to_numpy()[0] == np.timedelta64(3, "ns")
    with pytest.raises(ValueError, match="no whole number of microseconds"):
        bs.array([np.datetime64(1, "ns")])
    # Python's `datetime` does not reach that far.
    assert bs.array([np.datetime64(2**60, "us")]).to_numpy().tolist() == [2**60]
    with pytest.raises(TypeError, match="no dimensions"):
        bs.array(np.array(1))


def test_more_rows_than_there_is_memory_for() -> None:
    hazards.run(
        """
        import pickle, bowstring as bs, numpy as np, pyarrow as pa

        nulls = lambda rows: pa.Array.from_buffers(pa.null(), rows, [None], null_count=rows)
        empty = lambda rows: pa.Array.from_buffers(pa.struct([]), rows, [None])
        runs = lambda rows: pa.RunEndEncodedArray.from_arrays([rows], pa.array([7]))
        inside = lambda rows: pa.LargeListArray.from_arrays([0, rows], nulls(rows))
        limit_memory(2 << 30)
        for rows in [2**31, 2**42, 2**50, 2**62]:
            for make in [nulls, empty, runs]:
                array, again = bs.array(make(rows)), bs.array(make(rows))
                batch = bs.record_batch({"a": array})
                for body in [
                    array.to_pylist, array.tolist, batch.to_pylist, batch.to_pydict, array.to_numpy,
                    lambda: np.asarray(array), lambda: np.asarray(batch), lambda: array[::3], lambda: array[::-1],
                ]:
                    fails(body, MemoryError, ValueError)
                assert len(array[-3:].to_pylist()) == 3 and array[rows - 1] in (None, {}, 7)
                assert array == again and array != array[1:] and batch == bs.record_batch({"a": again})
                assert len(pickle.loads(pickle.dumps(array))) == rows
                assert "Array" in repr(array) and "Batch" in repr(batch)
                assert array._repr_html_() and batch._repr_html_()
                next(iter(array))
            fails(bs.array(inside(rows)).to_pylist, MemoryError)
            assert "Array" in repr(bs.array(inside(rows)))
            table = bs.record_batch(pa.RecordBatch.from_struct_array(empty(rows)))
            fails(table.to_pylist, MemoryError)
            assert len(table) == rows and "Batch" in repr(table) and table == table[:]
            assert len(pickle.loads(pickle.dumps(table))) == rows
        """
    )


def test_rows_beyond_64_bits() -> None:
    def stream(batches: int) -> pa.RecordBatchReader:
        rows = pa.Array.from_buffers(pa.struct([]), 2**62, [None])
        batch = pa.RecordBatch.from_struct_array(rows)
        return pa.RecordBatchReader.from_batches(pa.schema([]), [batch] * batches)

    assert bs.BatchReader(stream(1)).read_all().num_rows == 2**62
    for batches in [2, 3, 4, 5]:
        with pytest.raises(OverflowError, match="2\\^63 rows"):
            bs.BatchReader(stream(batches)).read_all()
        with pytest.raises(OverflowError, match="2\\^63 rows"):
            bs.record_batch(stream(batches))
    nulls = pa.Array.from_buffers(pa.null(), 2**62, [None], null_count=2**62)
    for chunks in [2, 4]:
        with pytest.raises(ValueError, match="more rows than"):
            bs.array(pa.chunked_array([nulls] * chunks))


def test_no_memory_is_an_exception() -> None:
    hazards.run(
        """
        import pickle, bowstring as bs, numpy as np

        class Endless:
            def __iter__(self): return self
            def __next__(self): return 1

        numbers = bs.array(np.zeros(3_000_000, np.int64))
        times = numbers.cast("timestamp[us]")
        words = bs.array(["x" * 1_000_000]).cast("dictionary<int32, string>").take(np.zeros(1_000, np.int32))
        text = "x" * (1 << 20)
        limit_memory(60 << 20)
        for body in [
            lambda: bs.array(range(10**8)),
            lambda: bs.array([range(10**8)]),
            lambda: bs.array(Endless()),
            lambda: bs.col("a").is_in(Endless()),
            lambda: bs.array([text] * 120),
            lambda: bs.array([text] * 60),
            lambda: bs.array([text.encode()] * 120),
            lambda: bs.array([{text: 1}] * 120),
            times.to_pylist,
            bs.record_batch({"a": times}).to_pylist,
            words.to_pylist,
            lambda: [pickle.dumps(numbers) for _ in range(9)],
            lambda: [numbers[::-1] for _ in range(9)],
        ]:
            fails(body, MemoryError)
            assert bs.array([1]).to_pylist() == [1]
        """
    )


def test_readers_of_readers() -> None:
    hazards.run(
        """
        import threading, bowstring as bs, pyarrow as pa

        schema = pa.schema({"n": pa.int64()})
        first = lambda: bs.BatchReader.from_batches(schema, [pa.record_batch({"n": [1]})])
        class Capsule:
            def __init__(self, reader): self.reader = reader
            def __arrow_c_stream__(self, *a): return self.reader.__arrow_c_stream__()
        def generator(reader):
            yield from reader
        ways = [
            lambda r: r.filter(bs.col("n") >= 0),
            lambda r: r.cast({"n": "int64"}),
            lambda r: r.evaluate([bs.nth(0)]),
            lambda r: r.validate(),
            lambda r: r.to("cpu"),
            lambda r: r.take([[0]]),
            lambda r: bs.BatchReader(Capsule(r)),
            lambda r: bs.BatchReader(pa.RecordBatchReader.from_stream(r)),
            lambda r: bs.BatchReader.from_batches(schema, r),
            lambda r: bs.BatchReader.from_batches(schema, generator(r)),
        ]
        def nested(way, deep):
            reader = first()
            for _ in range(deep):
                reader = way(reader)
            return reader
        def read():
            for way in ways:
                assert nested(way, 50).read_all().num_rows == 1
                fails(nested(way, 5_000).read_all, ValueError, OSError, RecursionError)
                nested(way, 5_000)
            done.append(True)
        done = []
        threading.stack_size(2 << 20)
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        assert done
        """
    )


def test_cycles_of_readers_are_collected() -> None:
    class Rows:
        def __init__(self) -> None:
            schema = pa.schema({"n": pa.int64()})
            self.reader = bs.BatchReader.from_batches(schema, self).filter(bs.col("n") > 0)

        def __iter__(self) -> Iterator[pa.RecordBatch]:
            me = self
            for _ in range(3):
                yield pa.record_batch({"n": [1]})
            del me

    made = [Rows(), Rows(), Rows()]
    known = [weakref.ref(rows) for rows in made]
    next(made[1].reader)
    assert len([*made[2].reader]) == 3
    del made
    gc.collect()
    assert [rows() for rows in known] == [None] * 3


def test_pickles_that_somebody_has_edited(capfd: pytest.CaptureFixture[str]) -> None:
    arrays = [bs.array([1, 2, None, 4]), bs.array(["a", None]), bs.array([{"a": [1]}, None])]
    for kind, raw in [array.__reduce__()[1] for array in arrays]:
        for at in range(0, len(raw), 4):
            for edit in [b"\xff\xff\xff\xff", b"\0\0\0\x7f", b"\0\1\0\0"]:
                edited = raw[:at] + edit + raw[at + 4 :]
                try:
                    unpickle(kind, edited).to_pylist()
                except (ValueError, MemoryError, NotImplementedError, OverflowError):
                    pass
            with pytest.raises(ValueError, match="no pickle"):
                unpickle(kind, raw[: at // 2])
    assert capfd.readouterr() == ("", "")


def test_the_user_wants_to_stop() -> None:
    hazards.run(
        """
        import itertools, signal, time, bowstring as bs, numpy as np, pyarrow as pa

        def stop(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, stop)
        class Endless:
            def __iter__(self): return self
            def __next__(self): return None
        numbers = bs.array(np.zeros(50_000_000, np.int64))
        def batches():
            while True:
                yield {"a": [1]}
        class Foreign:
            # Without a line of Python for each batch.
            def __arrow_c_stream__(self, *_):
                batch = pa.record_batch({"a": [1]})
                endless = itertools.repeat(batch)
                return pa.RecordBatchReader.from_batches(batch.schema, endless).__arrow_c_stream__()
        for body in [
            lambda: bs.array(range(10**8)),
            lambda: bs.array([[*range(1000)]] * 10**6),
            lambda: bs.array(Endless()),
            lambda: bs.array([Endless()]),
            lambda: bs.col("a").is_in(Endless()),
            numbers.to_pylist,
            numbers.cast("duration[s]").to_pylist,
            bs.record_batch({"a": numbers}).to_pylist,
            lambda: bs.BatchReader.from_batches({"a": "int64"}, batches()).read_all(),
            lambda: bs.BatchReader(Foreign()).read_all(),
            lambda: bs.BatchReader(Foreign()).aggregate([bs.count_all()]),
        ]:
            # Again where Python was busy with what lets no exception pass.
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.5)
            # Time of the processor, so that other load on the machine does not count.
            begun = time.process_time()
            try:
                body()
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
            else:
                raise AssertionError("it went on")
            assert time.process_time() - begun < 3, time.process_time() - begun
        """,
        seconds=60,
    )
