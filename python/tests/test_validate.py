"""Tests with contents that are not valid Arrow data: they are passed on without `validate`, and refused with it."""

import bowstring as bs
import pyarrow as pa
import pytest


def text(good: bool = True) -> pa.Array:
    """Two rows of text; if not `good`, one is not valid UTF-8."""
    rows = pa.array([b"one", b"two" if good else b"\xff\xfe"], pa.binary())
    return pa.Array.from_buffers(pa.string(), 2, rows.buffers())


def keys(good: bool = True) -> pa.Array:
    indices = pa.array([0, 1 if good else 7], pa.int8())
    return pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)


def views(good: bool = True) -> pa.Array:
    whole = pa.array(["much too long for a view", "and so is this"], pa.string_view())
    _, row_views, data = whole.buffers()
    # Byte 8 of the first view is the number of its buffer.
    bad = bytearray(row_views)
    bad[8] = 0 if good else 9
    return pa.Array.from_buffers(pa.string_view(), 2, [None, pa.py_buffer(bytes(bad)), data])


SAMPLES = [text, keys, views]


def devices() -> list[bs.Device]:
    return [bs.Device.cpu(), bs.Device.emulated()]


@pytest.mark.parametrize("sample", SAMPLES)
def test_arrays_are_believed_until_asked(sample):
    for device in devices():
        good, bad = (bs.array(sample(kind)).to(device) for kind in (True, False))
        good.validate()
        bad.validate(full=False)
        with pytest.raises(ValueError, match="malformed array"):
            bad.validate()
        with pytest.raises(ValueError, match="malformed array"):
            bad.slice(1).validate() if sample is not views else bad.slice(0, 1).validate()
        with pytest.raises(ValueError, match="malformed array"):
            bs.array(bad, validate=True)
        assert len(bs.array(good, validate=True)) == 2
    assert bs.array(sample(), "Utf8", validate=True).type == "Utf8"
    with pytest.raises(ValueError, match="malformed array"):
        bs.array(sample(False), sample().type, validate=True)


@pytest.mark.parametrize("sample", SAMPLES)
def test_batches_and_streams(sample):
    good, bad = (pa.record_batch([pa.array([1, 2]), sample(kind)], ["n", "x"]) for kind in (True, False))
    for device in devices():
        bs.record_batch(good, validate=True).to(device).validate()
        there = bs.record_batch(bad).to(device)
        there.validate(full=False)
        with pytest.raises(ValueError, match=r"array.children\[1\]"):
            there.validate()
        with pytest.raises(ValueError, match=r"array.children\[1\]"):
            bs.record_batch(bad, validate=True)
        def batches() -> pa.RecordBatchReader:
            return pa.RecordBatchReader.from_batches(good.schema, [good, bad, good])

        unseen = bs.BatchReader(batches(), validate=False)
        assert len(list(unseen)) == 3
        for reader in (bs.BatchReader(batches()).to(device).validate(), bs.BatchReader(batches(), validate=True)):
            assert len(next(reader)) == 2
            with pytest.raises(ValueError, match=r"array.children\[1\]"):
                next(reader)
            assert list(reader) == []


def test_nulls_where_a_field_says_there_are_none():
    schema = pa.schema([pa.field("n", pa.int32(), nullable=False)])
    batch = pa.RecordBatch.from_arrays([pa.array([1, None], pa.int32())], schema=schema)
    with pytest.raises(ValueError, match="1 rows of n, which may have none"):
        bs.record_batch(batch).validate()
    bs.record_batch(batch.slice(0, 1)).validate()


def test_a_batch_without_columns_is_valid():
    bs.record_batch(pa.RecordBatch.from_arrays([], names=[])).validate()
