"""Frames of windows, rows in parts by a hash, and lists of groups."""

import bowstring as bs
import polars as pl
import pyarrow as pa
import pytest
from bowstring import col, count_all

ROWS = pa.record_batch(
    {
        "k": pa.array(["b", "a", "b", "b", "a", None, "b"]),
        "day": pa.array([4, 1, 2, 2, 3, 1, 1]),
        "n": pa.array([3, 1, None, 5, 2, 7, 4], pa.int64()),
    }
)


def test_running_sums_are_those_of_polars():
    windows = bs.windows(ROWS, "k", "day")
    ours = windows.aggregate([col("n").sum().alias("sum")], (None, 0))
    frame = pl.DataFrame(ROWS).sort("day", maintain_order=True)
    sums = frame.select("k", "day", "n", sum=pl.col("n").fill_null(0).cum_sum().over("k"))
    # Rows by a row of theirs, because polars has them in the order.
    theirs = {(k, day, n): total for k, day, n, total in sums.rows()}
    assert ours["sum"].to_pylist() == [theirs[row] for row in pl.DataFrame(ROWS).rows()]


def test_frames_have_bounds_of_three_kinds():
    windows = bs.windows(ROWS, "k", "day")
    rows = [count_all().alias("rows")]
    assert windows.aggregate(rows, (None, None)).to_pydict() == windows.aggregate(rows).to_pydict()
    assert windows.aggregate(rows, (None, "peers"))["rows"].to_pylist() == [4, 1, 3, 3, 2, 1, 1]
    assert windows.aggregate(rows, ("peers", "peers"))["rows"].to_pylist() == [1, 1, 2, 2, 1, 1, 1]
    assert windows.aggregate(rows, (-1, 1))["rows"].to_pylist() == [2, 2, 3, 3, 2, 1, 2]
    assert windows.aggregate(rows, (5, 9))["rows"].to_pylist() == [0] * 7
    both = windows.aggregate([col("n").min().alias("min"), col("k").max().alias("max")], (-1, 0))
    assert both.to_pydict() == {"min": [3, 1, 4, 5, 1, 7, 4], "max": ["b", "a", "b", "b", "a", None, "b"]}


def test_parts_have_equal_keys_together():
    parts = bs.partition_by_hash(ROWS, "k", 3)
    assert len(parts) == 3 and sum(len(part) for part in parts) == len(ROWS)
    for key in ["a", "b", None]:
        found = [part for part in parts if key in part["k"].to_pylist()]
        assert len(found) == 1
        days = [day for k, day in zip(found[0]["k"].to_pylist(), found[0]["day"].to_pylist()) if k == key]
        assert days == [day for k, day in zip(ROWS["k"].to_pylist(), ROWS["day"].to_pylist()) if k == key]
    other = bs.partition_by_hash(pa.record_batch({"key": ROWS["k"].cast(pa.large_string())}), ["key"], 3)
    assert [part["key"].to_pylist() for part in other] == [part["k"].to_pylist() for part in parts]


def test_a_table_is_joined_with_many():
    right = bs.record_batch({"id": [2, 2, None], "name": ["x", "y", "z"]})
    table = bs.JoinTable(right, "id")
    assert len(table) == 3
    for ids in ([1, 2, None], [2], []):
        left = bs.record_batch({"n": list(range(len(ids))), "id": pa.array(ids, pa.int64())})
        for kind in ("inner", "left outer", "left semi", "left anti"):
            ours = table.join(left, join_type=kind)
            theirs = bs.join(left, right, "id", join_type=kind)
            assert ours.to_pydict() == theirs.to_pydict() and ours.schema == theirs.schema
    other = bs.record_batch({"key": [2], "name": ["left"]})
    assert table.join(other, "key").to_pydict() == {
        "key": [2, 2],
        "name": ["left", "left"],
        "name_right": ["x", "y"],
    }


def test_sorted_rows_are_parted():
    assert bs.partition(bs.record_batch(ROWS).sort_by("k"), "k").to_pylist() == [0, 1, 3]


def test_groups_list_their_values():
    made = bs.record_batch(ROWS).group_by("k").aggregate([col("n").array_agg().alias("n")])
    assert made.to_pydict() == {"k": ["b", "a", None], "n": [[3, None, 5, 4], [1, 2], [7]]}
    one = bs.aggregate(ROWS, [col("day").array_agg().filter(col("day") > 2).alias("days")])
    assert one.to_pydict() == {"days": [[4, 3]]}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: bs.partition_by_hash(ROWS, "k", 0), ValueError, "0 parts"),
        (lambda: bs.partition_by_hash(ROWS, "k", -1), OverflowError, "negative"),
        (lambda: bs.partition_by_hash(ROWS, [], 2), ValueError, "no columns"),
        (lambda: bs.partition_by_hash(ROWS, "none", 2), KeyError, "no column"),
        (lambda: bs.partition(ROWS, []), ValueError, "no columns"),
        (lambda: bs.JoinTable(ROWS, []), ValueError, "no keys"),
        (lambda: bs.JoinTable(ROWS, "none"), KeyError, "no column"),
        (lambda: bs.JoinTable(ROWS, "k").join(ROWS, ["k", "n"]), ValueError, "2 columns for 1"),
        (lambda: bs.JoinTable(ROWS, "k").join(ROWS, "n"), ValueError, "keys of Int64"),
        (lambda: bs.JoinTable(ROWS, "k").join({"x": [1]}), KeyError, "no column"),
        (lambda: bs.JoinTable(ROWS, "k").join(ROWS, join_type="full outer"), ValueError, "join_type of a table"),
        (lambda: bs.windows(ROWS).aggregate([count_all()], (None,)), TypeError, "pair of bounds"),
        (lambda: bs.windows(ROWS).aggregate([count_all()], 3), TypeError, "pair of bounds"),
        (lambda: bs.windows(ROWS).aggregate([count_all()], (0, "row")), ValueError, "not 'row'|not \"row\""),
        (lambda: bs.windows(ROWS).aggregate([count_all()], (0, 1.5)), TypeError, "float"),
        (lambda: bs.windows(ROWS).aggregate([count_all()], (0, 1 << 70)), OverflowError, "large"),
        (lambda: bs.windows(ROWS).aggregate([col("n").median()], (0, 0)), ValueError, "frames have"),
    ],
)
def test_hostile_arguments_are_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
