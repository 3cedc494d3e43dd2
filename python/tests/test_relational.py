"""Sorts, groups and joins, with pyarrow as a second opinion."""

import pickle

import bowstring as bs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bowstring import col, count_all

ROWS = pa.record_batch(
    {
        "k": pa.array(["b", "a", None, "b", "a", "b"]),
        "n": pa.array([3, 1, 2, None, 5, 4], pa.int64()),
        "x": pa.array([1.5, -0.5, 2.0, 4.0, float("nan"), 0.25]),
    }
)


def test_rows_are_sorted_as_pyarrow_sorts_them():
    batch = bs.record_batch(ROWS)
    for descending in (False, True):
        ours = bs.sort_indices(ROWS["n"], descending=descending, nulls_last=True)
        order = "descending" if descending else "ascending"
        assert ours.to_pylist() == pc.sort_indices(ROWS["n"], [("", order)]).to_pylist()
    by = [("k", "descending"), ("n", "ascending")]
    theirs = pa.Table.from_batches([ROWS]).sort_by(by).select(["k", "n"])
    assert batch.sort_by(by, nulls_last=True).select(["k", "n"]).to_pydict() == theirs.to_pydict()
    assert bs.sort([3, None, 1], limit=2).to_pylist() == [None, 1]
    assert bs.array([3, None, 1]).sort(descending=True, nulls_last=True).to_pylist() == [3, 1, None]
    assert batch.sort_by("n", limit=3)["n"].to_pylist() == [None, 1, 2]


def test_ranks_say_what_equal_rows_have():
    values = [20, 10, 20, None]
    assert bs.rank(values).to_pylist() == [3, 2, 3, 1]
    assert bs.rank(values, ties="max").to_pylist() == [4, 2, 4, 1]
    assert bs.rank(values, ties="dense", nulls_last=True).to_pylist() == [2, 1, 2, 3]


def test_unique_keeps_the_first_of_equal_rows():
    assert bs.unique(ROWS["k"]).to_pylist() == ["b", "a", None]
    assert bs.array(["z", "z"]).unique().to_pylist() == ["z"]
    assert bs.record_batch({"a": [1, 1, 2], "b": ["x", "x", "x"]}).unique().num_rows == 2


def test_groups_are_aggregated():
    batch = bs.record_batch(ROWS)
    found = batch.group_by("k").aggregate([("n", "sum"), ("n", "count"), ("x", "max"), ([], "count_all")])
    assert found.column_names == ["k", "n_sum", "n_count", "x_max", "count_all"]
    theirs = pa.Table.from_batches([ROWS]).group_by("k").aggregate([("n", "sum"), ("n", "count")])
    expected = {row["k"]: (row["n_sum"], row["n_count"]) for row in theirs.to_pylist()}
    assert {row["k"]: (row["n_sum"], row["n_count"]) for row in found.to_pylist()} == expected
    assert found["count_all"].to_pylist() == [3, 2, 1]
    ours = batch.group_by([(col("n") % 2).alias("odd")]).aggregate(
        {"sum": col("n").sum(), "rows": count_all()}, where=col("n").is_not_null()
    )
    assert ours.to_pydict() == {"odd": [1, 0], "sum": [9, 6], "rows": [3, 2]}
    assert batch.group_by("k").aggregate().to_pydict() == {"k": ["b", "a", None]}


def test_groups_by_sets_of_keys_are_duckdbs():
    duckdb = pytest.importorskip("duckdb")
    rows = pa.record_batch(
        {
            "a": pa.array(["x", None, "y", "x", "x", None]),
            "b": pa.array([1, 1, 2, None, 1, 2], pa.int32()),
            "n": pa.array([5, 6, None, 8, 9, 10], pa.int64()),
        }
    )

    def sorted_rows(table):
        return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)

    forms = [("rollup", "ROLLUP (a, b)"), ("cube", "CUBE (a, b)"), ([["b"], [], [1, 0]], "GROUPING SETS ((b), (), (a, b))")]
    for sets, sql in forms:
        query = f"SELECT a, b, grouping(a, b) AS grouping_id, sum(n)::BIGINT AS s FROM t GROUP BY {sql}"
        theirs = duckdb.connect().register("t", pa.Table.from_batches([rows])).sql(query).to_arrow_table()
        batch = bs.record_batch(rows).group_by(["a", "b"], sets=sets).aggregate([("n", "sum")])
        assert batch.column_names == ["a", "b", "grouping_id", "n_sum"]
        assert sorted_rows(pa.record_batch(batch)) == sorted_rows(theirs)
        reader = bs.BatchReader(pa.Table.from_batches([rows] * 2).to_reader())
        twice = reader.group_by([col("a"), "b"], sets=sets).aggregate([("n", "sum")])
        assert sum(one.num_rows for one in twice) == batch.num_rows
    batch = bs.record_batch(rows)
    for sets, error, words in [
        ("all", ValueError, "rollup"),
        ([["c"]], KeyError, "c"),
        ([[2]], IndexError, "2"),
        ([["a", 0]], ValueError, "twice"),
        ([], ValueError, "0 sets"),
        (["a"], TypeError, "list of lists"),
        (7, TypeError, "list of lists"),
    ]:
        with pytest.raises(error, match=words):
            batch.group_by(["a", "b"], sets=sets).aggregate([("n", "sum")])


def test_groups_have_more_aggregates_than_sums():
    batch = bs.record_batch(ROWS)
    functions = ["first", "last", "count_distinct", "variance", "stddev", "min", "max"]
    ours = batch.group_by("k").aggregate([("n", function) for function in functions])
    # pyarrow keeps the order of rows, which first and last need, without threads only.
    theirs = pa.Table.from_batches([ROWS]).group_by("k", use_threads=False)
    theirs = theirs.aggregate([("n", function) for function in functions])
    expected = {row["k"]: row for row in theirs.to_pylist()}
    for row in ours.to_pylist():
        assert {name: pytest.approx(value) for name, value in expected[row["k"]].items()} == row
    assert batch.group_by("k").aggregate([("n", "median")])["n_median"].to_pylist() == [3.5, 3.0, 2.0]
    n, k = col("n"), col("k")
    row = bs.aggregate(
        batch,
        {
            "least": k.min(),
            "greatest": k.max().filter(n > 1),
            "bits": n.bit_or().filter(k == "b"),
            "common": n.bit_and().filter(n > 3),
            "odd": n.bit_xor(),
            "first": k.first_value().filter(n.is_null()),
            "last": n.last_value(),
            "keys": k.count_distinct(),
            "quarter": n.quantile(0.25),
            "spread": n.var(),
            "deviation": n.std(ddof=0),
            "rows": count_all().filter(n > 2),
        },
    ).to_pylist()
    assert row == [
        {
            "least": "a",
            "greatest": "b",
            "bits": 7,
            "common": 4,
            "odd": 3 ^ 1 ^ 2 ^ 5 ^ 4,
            "first": "b",
            "last": 4,
            "keys": 2,
            "quarter": 2.0,
            "spread": 2.5,
            "deviation": pytest.approx(2**0.5),
            "rows": 3,
        }
    ]


def test_aggregations_can_be_pickled():
    n = col("n")
    for one in [n.var(), n.std(ddof=0), n.quantile(0.5), n.first().filter(n > 1).alias("f"), n.count_distinct()]:
        again = pickle.loads(pickle.dumps(one))
        assert repr(again) == repr(one)
        row = [bs.aggregate(ROWS, [each]).to_pylist() for each in (one, again)]
        assert row[0] == row[1]


def test_values_are_counted():
    assert bs.value_counts(ROWS["k"]).to_pydict() == {"values": ["b", "a", None], "counts": [3, 2, 1]}


def test_windows_say_where_rows_are():
    batch = bs.record_batch({"k": ["a", "b", "a", "a"], "n": [5, 9, 3, 5], "t": ["w", "x", "y", "z"]})
    windows = bs.windows(batch, "k", "n")
    assert windows.row_number().to_pylist() == [2, 1, 1, 3]
    assert windows.rank().to_pylist() == [2, 1, 1, 2]
    assert windows.dense_rank().to_pylist() == [2, 1, 1, 2]
    assert windows.lag("t").to_pylist() == ["y", None, None, "w"]
    assert windows.lead(["n", "t"]).to_pydict() == {"n": [5, None, 5, None], "t": ["z", None, "w", None]}
    assert windows.nth_value("n", 2).to_pylist() == [5, None, 5, 5]
    sums = windows.aggregate([col("n").sum().alias("sum"), count_all().alias("rows")])
    assert sums.to_pydict() == {"sum": [13, 9, 13, 13], "rows": [3, 1, 3, 3]}
    assert bs.windows(batch).row_number().to_pylist() == [1, 2, 3, 4]
    last = bs.windows(batch, order_by=[("n", "descending"), "t"])
    assert last.rank().to_pylist() == [2, 1, 4, 3]


def test_batches_are_joined():
    left = bs.record_batch({"id": [1, 2, 3, None], "name": ["a", "b", "c", "d"]})
    right = bs.record_batch({"id": [2, 2, 4, None], "name": ["x", "y", "z", "w"]})
    inner = left.join(right, "id")
    assert inner.to_pydict() == {"id": [2, 2], "name": ["b", "b"], "name_right": ["x", "y"]}
    outer = left.join(right, "id", join_type="left outer")
    assert outer["id"].to_pylist() == [1, 2, 2, 3, None]
    assert outer["name_right"].to_pylist() == [None, "x", "y", None, None]
    assert left.join(right, "id", join_type="left semi")["name"].to_pylist() == ["b"]
    assert left.join(right, "id", join_type="left anti")["name"].to_pylist() == ["a", "c", "d"]
    assert bs.join(left, right, "id", join_type="right anti")["name"].to_pylist() == ["z", "w"]
    assert bs.join(left, right, "id", nulls_equal=True)["name_right"].to_pylist() == ["x", "y", "w"]
    for kind in ["inner", "left outer", "right outer", "full outer", "left semi", "right anti"]:
        theirs = left.to_arrow().__class__.from_arrays(left.to_arrow().columns, ["id", "name"])
        theirs = pa.Table.from_batches([theirs]).join(
            pa.table({"id": right["id"].to_pylist(), "other": right["name"].to_pylist()}), "id", join_type=kind
        )
        assert left.join(right, "id", join_type=kind).num_rows == theirs.num_rows, kind


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: bs.sort([1], "k"), TypeError, "by: columns are for batches"),
        (lambda: bs.record_batch(ROWS).sort_by([("k", "up")]), ValueError, 'not \'up\''),
        (lambda: bs.record_batch(ROWS).sort_by("none"), KeyError, "no column"),
        (lambda: bs.rank([1], ties="first"), ValueError, "ties is"),
        (lambda: bs.record_batch(ROWS).group_by([]), ValueError, "keys: there are none"),
        (lambda: bs.record_batch(ROWS).group_by("k").aggregate([("n", "product")]), ValueError, "product"),
        (lambda: bs.aggregate(ROWS, [col("n").quantile(2)]), ValueError, "between 0 and 1"),
        (lambda: bs.aggregate(ROWS, [col("k").var()]), ValueError, "no such aggregate"),
        (lambda: bs.aggregate(ROWS, [col("x").bit_and()]), ValueError, "no such aggregate"),
        (lambda: col("n").var(ddof=-1), OverflowError, "ddof"),
        (lambda: bs.record_batch(ROWS).group_by("k").aggregate([("n", 3)]), TypeError, "is a str"),
        (lambda: bs.record_batch(ROWS).group_by("k").aggregate(["n"]), TypeError, "a pair"),
        (lambda: bs.record_batch(ROWS).join(ROWS, "k", join_type="cross"), ValueError, "join_type is"),
        (lambda: bs.record_batch(ROWS).join(ROWS, "k", "n"), ValueError, "keys of"),
        (lambda: bs.record_batch(ROWS).join(ROWS, [], []), ValueError, "right_keys"),
        (lambda: bs.windows(ROWS, "none"), KeyError, "no column"),
        (lambda: bs.windows(ROWS, "k").lag("none"), KeyError, "no column"),
        (lambda: bs.windows(ROWS, "k", [("n", "up")]), ValueError, "not 'up'"),
        (lambda: bs.windows(ROWS, "k").nth_value("n", -1), OverflowError, "negative"),
        (lambda: bs.sort([1, 2], limit=-1), OverflowError, "negative"),
    ],
)
def test_hostile_arguments_are_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def reader_of(rows, length=97, device=None):
    """A reader of a table's rows, in batches of a length."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    reader = bs.BatchReader(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(length)))
    return reader if device is None else reader.to(device)


def many(count, seed=7):
    numbers = [(row * 7919 + seed) % 1009 for row in range(count)]
    return pa.table(
        {
            "k": pa.array([None if n % 31 == 0 else f"key {n % 60}" for n in numbers]),
            "n": pa.array(numbers, pa.int64()),
            "row": pa.array(range(count), pa.int64()),
        }
    )


def rows_of(reader):
    return [row for batch in reader for row in batch.to("cpu").to_pylist()]


def in_any_order(rows):
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


@pytest.fixture(params=["cpu", "emulated"])
def place(request):
    return None if request.param == "cpu" else bs.Device.emulated()


@pytest.mark.parametrize("memory", [None, 2000])
def test_readers_are_sorted_whatever_memory_there_is(place, memory):
    table = many(1000)
    expected = table.sort_by([("n", "descending"), ("row", "ascending")]).to_pylist()
    found = reader_of(table, device=place).sort_by([("n", "descending"), "row"], memory=memory)
    assert found.schema.names == ["k", "n", "row"]
    assert rows_of(found) == expected
    first = reader_of(table, device=place).sort_by([("n", "descending"), "row"], limit=5, memory=memory)
    assert rows_of(first) == expected[:5]
    batches = list(reader_of(table).sort_by("n", memory=memory))
    assert (len(batches) > 1) == (memory is not None)


@pytest.mark.parametrize("memory", [None, 2000])
def test_readers_are_grouped_whatever_memory_there_is(place, memory):
    table = many(1000)
    expected = bs.record_batch(table.combine_chunks().to_batches()[0])
    expected = expected.group_by("k").aggregate([("n", "sum"), ([], "count_all")]).to_pylist()
    grouped = reader_of(table, device=place).group_by("k")
    found = grouped.aggregate([("n", "sum"), ([], "count_all")], memory=memory)
    assert in_any_order(rows_of(found)) == in_any_order(expected)
    odd = reader_of(table).group_by((col("n") % 2).alias("odd")).aggregate(
        {"most": col("row").max()}, where=col("n") > 3, memory=memory
    )
    assert odd.schema.names == ["odd", "most"]


@pytest.mark.parametrize("memory", [None, 2000])
@pytest.mark.parametrize(
    "join_type",
    [
        "inner", "left outer", "right outer", "full outer",
        "left semi", "left anti", "right semi", "right anti",
    ],
)
def test_readers_are_joined_as_batches_are(place, memory, join_type):
    left, right = many(400).combine_chunks().to_batches()[0], many(90, 3).combine_chunks().to_batches()[0]
    expected = bs.join(left, right, ["k", "n"], join_type=join_type)
    others = reader_of(right, 20, place)
    found = reader_of(left, device=place).join(others, ["k", "n"], join_type=join_type, memory=memory)
    assert found.schema.names == expected.column_names
    assert in_any_order(rows_of(found)) == in_any_order(expected.to_pylist())
    if place is None:
        found = reader_of(left).join(right, "n", "row", join_type=join_type, suffix="_of_right", memory=memory)
        plain = bs.join(left, right, "n", "row", join_type=join_type, suffix="_of_right")
        assert (found.schema.names, found.read_all().num_rows) == (plain.column_names, plain.num_rows)


def test_readers_report_what_is_wrong():
    with pytest.raises(KeyError, match="nothing"):
        reader_of(ROWS).sort_by("nothing")
    with pytest.raises(KeyError, match="nothing"):
        reader_of(ROWS).group_by("nothing")
    with pytest.raises(ValueError, match="join_type"):
        reader_of(ROWS).join(ROWS, "k", join_type="outer")
    with pytest.raises(ValueError, match="right_keys"):
        reader_of(ROWS).join(ROWS, ["k", "n"], "k")
    with pytest.raises(OverflowError):
        reader_of(ROWS).sort_by("n", memory=-1)
    # Joins that fail use up no reader.
    left, right = reader_of(ROWS), reader_of(ROWS)
    for other, keys, options in [
        (right, "nothing", {}),
        (right, "k", {"join_type": "outer"}),
        (right, (["k"], ["n"]), {}),
        (left, "k", {}),
    ]:
        with pytest.raises((KeyError, ValueError)):
            left.join(other, *(keys if isinstance(keys, tuple) else [keys]), **options)
    used = reader_of(ROWS)
    used.sort_by("n")
    with pytest.raises(ValueError, match="given away"):
        left.join(used, "k")
    assert left.read_all().num_rows == right.read_all().num_rows == ROWS.num_rows
    taken = pa.RecordBatch.from_pydict({"k": [1], "x": [2], "x_right": [3]})
    for join in [lambda: bs.join(taken, {"k": [1], "x": [4]}, "k"), lambda: reader_of(taken).join(taken, "k")]:
        with pytest.raises(ValueError, match="two columns called"):
            join()
    reader = reader_of(ROWS)
    reader.sort_by("n")
    with pytest.raises(ValueError, match="given away"):
        reader.join(ROWS, "k")

    def broken():
        yield ROWS
        raise RuntimeError("the rows have ended")

    for use in (
        lambda rows: rows.sort_by("n", memory=10),
        lambda rows: rows.group_by("k").aggregate([("n", "sum")], memory=10),
        lambda rows: rows.join(ROWS, "k", memory=10),
        lambda rows: reader_of(ROWS).join(rows, "k", memory=10),
    ):
        reader = use(bs.BatchReader.from_batches(ROWS.schema, broken()))
        with pytest.raises(RuntimeError, match="the rows have ended"):
            rows_of(reader)
