"""Streams of batches: lazy, in order, broken off by errors that come through, on either device."""

from __future__ import annotations

from collections.abc import Iterator

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
    raise RuntimeError("the disk is on fire")


def test_a_producers_exception_comes_through_in_its_turn() -> None:
    for device in [bs.Device.cpu(), bs.Device.emulated()]:
        reader = bs.BatchReader.from_batches(SCHEMA, failing()).to(device).filter("odd")
        assert [numbers(next(reader)), numbers(next(reader))] == [[1, 3], [5, 7]]
        with pytest.raises(OSError, match="the disk is on fire"):
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


def test_a_reader_is_given_away_once() -> None:
    reader = bs.BatchReader.from_batches(SCHEMA, producer([]))
    filtered = reader.filter("odd")
    for use in [lambda: next(reader), lambda: reader.filter(1), reader.__arrow_c_stream__]:
        with pytest.raises(ValueError, match="given away"):
            use()
    # What is not possible gives nothing away.
    with pytest.raises(KeyError):
        filtered.filter("even")
    with pytest.raises(TypeError):
        filtered.filter(None)  # type: ignore[arg-type]
    assert filtered.column_names == ["n", "odd"]
    assert numbers(next(filtered)) == [1, 3, 5, 7, 9]


def test_readers_that_nobody_finishes_let_go(nothing_leaked: None) -> None:
    reader = bs.BatchReader(pa.table({"n": list(range(1000))}).to_reader(10))
    next(reader)
    unused = bs.BatchReader(pa.table({"n": [1]}))
    unused.__arrow_c_device_stream__()
