"""Tests of streams of batches on both devices: they are lazy, keep their order, and end at errors, which they pass on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pyarrow as pa
import pytest

import bowstring as bs

SCHEMA = pa.schema({"n": pa.int64(), "odd": pa.bool_()})


def rows(start: int, stop: int) -> pa.RecordBatch:
    return pa.record_batch({"n": list(range(start, stop)), "odd": [n % 2 == 1 for n in range(start, stop)]}, SCHEMA)


def producer(log: list[int], batches: int = 10) -> Iterator[pa.RecordBatch]:
    for i in range(batches):
        log.append(i)
        yield rows(10 * i, 10 * i + 10)


def numbers(batch: bs.RecordBatch) -> list[int]:
    return pa.record_batch(batch.to(bs.Device.cpu()))["n"].to_pylist()  # type: ignore[no-any-return]


def test_nothing_is_read_before_it_is_asked_for() -> None:
    log: list[int] = []
    reader = bs.BatchReader.from_batches(SCHEMA, producer(log)).filter("odd").cast(SCHEMA)
    capsule = reader.__arrow_c_stream__()
    assert log == []
    theirs = pa.RecordBatchReader._import_from_c_capsule(capsule)
    assert theirs.read_next_batch()["n"].to_pylist() == [1, 3, 5, 7, 9]
    assert log == [0]
    theirs.read_next_batch()
    assert log == [0, 1]


def test_a_gpu_is_two_batches_ahead() -> None:
    log: list[int] = []
    gpu = bs.Device.emulated()
    reader = bs.BatchReader.from_batches(SCHEMA, producer(log)).to(gpu).filter("odd")
    first = next(reader)
    assert (first.device, log) == (gpu, [0, 1, 2])
    assert numbers(first) == [1, 3, 5, 7, 9]
    rest = [n for batch in reader for n in numbers(batch)]
    assert rest == list(range(11, 100, 2))


def test_device_streams_stay_on_the_device(nothing_leaked: None) -> None:
    gpu = bs.Device.emulated()
    there = bs.BatchReader(pa.table([rows(0, 10)[0], rows(0, 10)[1]], schema=SCHEMA)).to(gpu)

    class Producer:
        def __arrow_c_device_stream__(self, requested_schema: object = None, **kwargs: object) -> object:
            return there.__arrow_c_device_stream__()

    again = bs.BatchReader(Producer()).filter("odd")
    batch = next(again)
    assert batch.device == gpu
    assert numbers(batch) == [1, 3, 5, 7, 9]
    with pytest.raises(StopIteration):
        next(again)


def test_masks_and_indices_come_in_step() -> None:
    log: list[int] = []
    masks = (pa.array([n == i for n in range(10)]) for i in range(10))
    reader = bs.BatchReader.from_batches(SCHEMA, producer(log, 3)).filter(masks)
    assert pa.table(reader)["n"].to_pylist() == [0, 11, 22]
    indices = pa.chunked_array([[9, 0], [], [None]], pa.int8())
    reader = bs.BatchReader.from_batches(SCHEMA, producer(log, 3)).take(indices)
    assert pa.table(reader)["n"].to_pylist() == [9, 0, None]
    reader = bs.BatchReader.from_batches(SCHEMA, producer(log, 1)).take([pa.array([1, 99])], out_of_bounds="null")
    assert pa.table(reader)["n"].to_pylist() == [1, None]


def test_masks_that_end_first_are_an_error() -> None:
    reader = bs.BatchReader.from_batches(SCHEMA, producer([])).filter([pa.array([True] * 10)])
    assert len(numbers(next(reader))) == 10
    with pytest.raises(ValueError, match="ended before"):
        next(reader)
    with pytest.raises(StopIteration):
        next(reader)


def failing() -> Iterator[pa.RecordBatch]:
    yield rows(0, 4)
    yield rows(4, 8)
    raise RuntimeError("the disk is on fire") from KeyError("spark")


def test_a_producers_exception_comes_through_in_its_turn() -> None:
    for device in [bs.Device.cpu(), bs.Device.emulated()]:
        reader = bs.BatchReader.from_batches(SCHEMA, failing()).to(device).filter("odd")
        assert [numbers(next(reader)), numbers(next(reader))] == [[1, 3], [5, 7]]
        with pytest.raises(RuntimeError, match="the disk is on fire") as raised:
            next(reader)
        # The exception is the one that was raised, with its traceback and cause.
        assert "failing" in [entry.name for entry in raised.traceback]
        assert isinstance(raised.value.__cause__, KeyError)
        with pytest.raises(StopIteration):
            next(reader)


class Impatient(BaseException):
    pass


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Impatient, ValueError])
def test_exceptions_of_every_kind_arrive_as_themselves(kind: type[BaseException]) -> None:
    def raising() -> Iterator[pa.RecordBatch]:
        yield rows(0, 2)
        raise kind("now")

    def masks() -> Iterator[pa.Array]:
        yield pa.array([True] * 10)
        raise kind("of the masks")

    reader = bs.BatchReader.from_batches(SCHEMA, raising())
    next(reader)
    with pytest.raises(kind, match="now") as raised:
        next(reader)
    assert raised.type is kind
    reader = bs.BatchReader.from_batches(SCHEMA, producer([])).filter(masks())
    next(reader)
    with pytest.raises(kind, match="of the masks"):
        next(reader)


def test_what_is_asked_after_a_failure_is_the_end() -> None:
    class Stubborn:
        def __iter__(self) -> Stubborn:
            return self

        def __next__(self) -> pa.RecordBatch:
            raise RuntimeError("again")

    reader = bs.BatchReader.from_batches(SCHEMA, Stubborn())
    with pytest.raises(RuntimeError, match="again"):
        next(reader)
    with pytest.raises(StopIteration):
        next(reader)


def test_errors_reach_foreign_consumers_and_come_from_foreign_producers() -> None:
    theirs = pa.RecordBatchReader.from_stream(bs.BatchReader.from_batches(SCHEMA, failing()).filter("odd"))
    assert theirs.read_next_batch().num_rows == 2
    theirs.read_next_batch()
    with pytest.raises(OSError, match="the disk is on fire"):
        theirs.read_next_batch()

    ours = bs.BatchReader(pa.RecordBatchReader.from_batches(SCHEMA, failing()))
    next(ours), next(ours)
    with pytest.raises(OSError, match="the disk is on fire"):
        next(ours)


def test_a_batch_of_another_schema_is_an_error() -> None:
    mixed = [rows(0, 2), pa.record_batch({"n": [1]})]
    theirs = pa.RecordBatchReader.from_stream(bs.BatchReader.from_batches(SCHEMA, mixed))
    theirs.read_next_batch()
    with pytest.raises(Exception, match="in a stream of"):
        theirs.read_next_batch()


def test_batches_are_held_to_the_schema() -> None:
    def read(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch(next(bs.BatchReader.from_batches(schema, [batch])))

    n = pa.schema({"n": pa.int64()})
    for batch in [{"n": ["a"]}, {"m": [1]}, {}, {"n": [1], "m": [1]}]:
        with pytest.raises(ValueError, match="in a stream of n: int64"):
            read(n, pa.record_batch(batch))
    with pytest.raises(TypeError, match="batches: .*int"):
        read(n, 1)  # type: ignore[arg-type]
    # Batches take the stream's nullability and metadata, not their own.
    never = pa.schema([pa.field("n", pa.int64(), nullable=False)], {"who": "test"})
    assert read(never, pa.record_batch({"n": [1]})).schema.equals(never, check_metadata=True)
    assert read(n, pa.record_batch({"n": [1]}, never)).schema.equals(n, check_metadata=True)
    with pytest.raises(ValueError, match="not null"):
        read(never, pa.record_batch({"n": [None]}, n))


def slowly(started: threading.Event, go_on: threading.Event) -> Iterator[pa.RecordBatch]:
    for i in range(3):
        started.set()
        assert go_on.wait(60)
        yield rows(i, i + 1)


USES: dict[str, Callable[[bs.BatchReader], object]] = {
    "next": lambda reader: len(next(reader)),
    "cast": lambda reader: sum(len(batch) for batch in reader.cast(SCHEMA)),
    "filter": lambda reader: sum(len(batch) for batch in reader.filter("odd")),
    "to": lambda reader: sum(len(batch) for batch in reader.to(bs.Device.emulated())),
    "reader": lambda reader: sum(len(batch) for batch in bs.BatchReader(reader)),
    "capsule": lambda reader: len(pa.table(reader)),
}


@pytest.mark.parametrize("use", USES)
def test_two_threads_use_a_reader_of_a_generator(use: str) -> None:
    started, go_on = threading.Event(), threading.Event()
    reader = bs.BatchReader.from_batches(SCHEMA, slowly(started, go_on))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lambda: len(next(reader)))
        assert started.wait(60)
        second = threads.submit(USES[use], reader)
        # The second thread waits, and neither thread holds the interpreter.
        done, _ = wait([first, second], timeout=0.2)
        assert not done
        go_on.set()
        assert first.result(60) == 1
        assert second.result(60) in [1, 2]


def test_a_thread_that_waits_for_its_turn_is_interrupted() -> None:
    # A shell's background jobs ignore SIGINT from the start, and Python keeps that setting.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    started, go_on = threading.Event(), threading.Event()
    reader = bs.BatchReader.from_batches(SCHEMA, slowly(started, go_on))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lambda: len(next(reader)))
        assert started.wait(60)
        # If the signal goes unheard, the first thread finishes at last, and no exception is raised.
        last = threading.Timer(300, go_on.set)
        last.start()
        with pytest.raises(KeyboardInterrupt):
            try:
                # On a busy machine the signal may come before the wait: it is heard then, too.
                threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
                next(reader)
            finally:
                unheard = go_on.is_set()
        assert not unheard
        last.cancel()
        go_on.set()
        assert first.result(60) == 1


@pytest.mark.parametrize("use", USES)
def test_a_producer_that_asks_for_its_own_stream_is_refused(use: str) -> None:
    readers: list[bs.BatchReader] = []

    def producer() -> Iterator[pa.RecordBatch]:
        assert readers[0].column_names == ["n", "odd"]
        with pytest.raises(ValueError, match="it is being read"):
            USES[use](readers[0])
        yield rows(0, 2)

    readers.append(bs.BatchReader.from_batches(SCHEMA, producer()))
    assert len(next(readers[0])) == 2


def test_a_producer_that_reads_what_was_exported_of_it_is_refused() -> None:
    theirs: list[pa.RecordBatchReader] = []

    def producer() -> Iterator[pa.RecordBatch]:
        with pytest.raises(pa.ArrowInvalid, match="it is being read|being read"):
            theirs[0].read_next_batch()
        yield rows(0, 2)

    theirs.append(pa.RecordBatchReader.from_stream(bs.BatchReader.from_batches(SCHEMA, producer()).cast(SCHEMA)))
    assert theirs[0].read_next_batch().num_rows == 2


def test_rows_taken_from_a_stream_may_be_null() -> None:
    never = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    batches = [pa.record_batch({"n": [1, 2]}, never)] * 2
    reader = bs.BatchReader.from_batches(never, batches).take(pa.chunked_array([[None, 0], [1]]))
    assert not pa.schema(bs.BatchReader.from_batches(never, [])).field("n").nullable
    assert pa.schema(reader).field("n").nullable
    table = pa.table(reader)
    table.validate(full=True)
    assert table["n"].to_pylist() == [None, 1, 2]


def test_a_stream_cast_to_a_field_that_is_not_nullable() -> None:
    never = pa.schema([pa.field("n", pa.int8(), nullable=False)])
    batches = [pa.record_batch({"n": [1]}), pa.record_batch({"n": [None]}, pa.schema({"n": pa.int64()}))]
    reader = bs.BatchReader(pa.Table.from_batches(batches)).cast(never)
    assert pa.record_batch(next(reader)).schema == never
    with pytest.raises(ValueError, match='1 nulls in "n", which is not nullable'):
        next(reader)


def test_a_reader_is_given_away_once() -> None:
    reader = bs.BatchReader.from_batches(SCHEMA, producer([]))
    filtered = reader.filter("odd")
    for use in [lambda: next(reader), lambda: reader.filter(1), reader.__arrow_c_stream__]:
        with pytest.raises(ValueError, match="given away"):
            use()
    # A call that raises an error leaves the reader usable.
    with pytest.raises(KeyError):
        filtered.filter("even")
    with pytest.raises(TypeError, match="mask"):
        filtered.filter(None)  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="no column 2 of 2"):
        filtered.filter(2)
    with pytest.raises(IndexError, match="no column -3 of 2"):
        filtered.filter(-3)
    filtered = filtered.filter(-1)
    assert filtered.column_names == ["n", "odd"]
    assert numbers(next(filtered)) == [1, 3, 5, 7, 9]


def test_readers_that_nobody_finishes_let_go(nothing_leaked: None) -> None:
    reader = bs.BatchReader(pa.table({"n": list(range(1000))}).to_reader(10))
    next(reader)
    unused = bs.BatchReader(pa.table({"n": [1]}))
    unused.__arrow_c_device_stream__()
