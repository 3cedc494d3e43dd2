"""Tests of what a new user tries: brackets, expressions alone and in dictionaries, heads, tables of several parts, pickles."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bowstring as bs
from bowstring import col, lit

ROWS = bs.record_batch({"n": [3, None, 1], "s": ["a", "b", None], "t": [True, False, True]})


def test_one_expression_several_or_a_dictionary() -> None:
    double = col("n") * 2
    assert bs.evaluate(ROWS, double).to_pydict() == {"n * 2": [6, None, 2]}
    assert ROWS.evaluate(double.alias("m")).column_names == ["m"]
    assert ROWS.evaluate({"m": double, "s": col("s")}).to_pydict() == {"m": [6, None, 2], "s": ["a", "b", None]}
    assert ROWS.evaluate(iter([double])).column_names == ["n * 2"]
    assert ROWS.aggregate(col("n").sum()).to_pylist() == [{"sum(n)": 4}]
    totals = {"all": col("n").sum(), "rows": bs.count_all()}
    expected = [{"all": 4, "rows": 2}]
    assert ROWS.aggregate(totals, col("t")).to_pylist() == bs.aggregate(ROWS, totals, where=col("t")).to_pylist() == expected
    reader = bs.BatchReader(pa.table({"n": [1, 2]}))
    assert reader.evaluate({"m": double}).aggregate({"all": col("m").sum()}).to_pylist() == [{"all": 6}]
    with pytest.raises(ArithmeticError):
        ROWS.evaluate(col("n").cast("int8") * 100).wait()
    assert ROWS.evaluate(col("n").cast("int8") * 100, overflow="null")[0].to_pylist() == [None, None, 100]


def test_brackets() -> None:
    assert ROWS[["s", "n"]].column_names == ["s", "n"]
    assert ROWS[np.array(["s"])].column_names == ROWS[pd.Index(["s"])].column_names == ["s"]
    assert ROWS[[]].shape == (3, 0)
    for mask in [[True, False, True], np.array([True, False, True]), pa.array([True, None, True]), ROWS["t"], col("n") > 0]:
        assert ROWS[mask]["n"].to_pylist() == [3, 1]
    assert ROWS["n"].to_pylist() == ROWS[0].to_pylist() == ROWS[np.int64(-3)].to_pylist() == [3, None, 1]
    for numbers in [[0, 1], np.array([0]), range(2)]:
        with pytest.raises(TypeError, match=r"take\(...\) rows by their numbers"):
            ROWS[numbers]
    with pytest.raises(TypeError, match="name or number, not .*bool"):
        ROWS[True]


def test_heads_and_sizes() -> None:
    assert ROWS.head(2).to_pydict()["n"] == [3, None] and len(ROWS.head()) == 3 and len(ROWS.head(0)) == 0
    with pytest.raises((OverflowError, ValueError)):
        ROWS.head(-1)
    numbers = bs.array(np.arange(1000))
    assert numbers.nbytes == numbers.slice(10).nbytes == 8000
    assert bs.record_batch({"a": numbers, "b": numbers}).nbytes == 16000
    words = pa.array(["ab", None, "c"] * 100)
    assert bs.array(words).nbytes >= words.nbytes
    assert bs.array(words.dictionary_encode()).nbytes > 300 * 4


def test_other_libraries_by_method(monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in [ROWS, ROWS.to(bs.Device.emulated())]:
        assert rows.to_arrow().to_pydict() == ROWS.to_pydict() and isinstance(rows.to_arrow(), pa.RecordBatch)
        assert rows["n"].to_arrow() == pa.array([3, None, 1])
        assert rows.to_pandas()["s"][0] == "a" and isinstance(rows.to_pandas(), pd.DataFrame)
        assert rows["t"].to_pandas().tolist() == [True, False, True]


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_parts_become_one(device: str) -> None:
    one, other = ROWS.to(device), bs.record_batch({"n": [7], "s": ["é"], "t": [None]}).cast({"t": "bool"}).to(device)
    whole = bs.concat([one, other, one[:1]])
    assert whole.device == one.device
    assert whole.to("cpu").to_pydict()["n"] == [3, None, 1, 7, 3]
    assert whole.to("cpu").to_pydict()["s"] == ["a", "b", None, "é", "a"]
    assert bs.concat(iter([one["n"], other["n"]])).to("cpu").to_pylist() == [3, None, 1, 7]


def test_parts_that_do_not_fit() -> None:
    assert bs.concat([pa.array([1]), pa.chunked_array([[2], [3]])]).to_pylist() == [1, 2, 3]
    never = pa.field("n", pa.int64(), nullable=False)
    parts = [bs.record_batch(pa.record_batch([pa.array([1])], pa.schema([field]))) for field in [never, pa.field("n", pa.int64())]]
    assert bs.concat(parts).schema["n"].nullable and not bs.concat(parts[:1]).schema["n"].nullable
    with pytest.raises(ValueError, match="there are none"):
        bs.concat([])
    with pytest.raises(ValueError, match="batch 1 has m: Int64, and batch 0 n: Int64"):
        bs.concat([bs.record_batch({"n": [1]}), {"m": [1]}])
    with pytest.raises(ValueError, match="Utf8 after Int64"):
        bs.concat([pa.array([1]), pa.array(["a"])])
    with pytest.raises(ValueError, match=r"values\[1\] is on EMULATED:0, and values\[0\] on CPU"):
        bs.concat([ROWS, ROWS.to("emulated")])
    with pytest.raises(TypeError, match="do not go together"):
        bs.concat([ROWS, ROWS["n"]])
    for whole in [ROWS, pa.table({"n": [1]}), pa.array([1])]:
        with pytest.raises(TypeError, match="a list of arrays or batches is needed"):
            bs.concat(whole)


MISSING: dict[str, Callable[[], object]] = {
    "[]": lambda: ROWS["m"],
    "[[]]": lambda: ROWS[["m"]],
    "column": lambda: ROWS.column("m"),
    "select": lambda: ROWS.select(["m"]),
    "schema": lambda: ROWS.schema["m"],
    "filter": lambda: bs.filter(ROWS, "m"),
    "drop_null": lambda: ROWS.drop_null(subset=["m"]),
    "fill_null": lambda: ROWS.fill_null({"m": 1}),
    "cast": lambda: ROWS.cast({"m": "int8"}),
    "from_pydict": lambda: bs.RecordBatch.from_pydict({"m": [1]}, {"n": "int8"}),
    "expression": lambda: ROWS.evaluate(col("m") + 1),
    "predicate": lambda: ROWS[col("m") > 1],
    "aggregate": lambda: ROWS.aggregate(bs.count_all(), where=col("m")),
    "reader's expression": lambda: bs.BatchReader(pa.table({"n": [1]})).filter(col("m") > 1),
    "reader": lambda: bs.BatchReader(pa.table({"n": [1]})).filter("m"),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_column_is_one_kind_of_error(name: str) -> None:
    with pytest.raises(KeyError) as raised:
        MISSING[name]()
    # The message has only the user's name and a similar one.
    assert raised.value.args[0].startswith('no column "m"')


def test_a_column_beyond_the_last_is_one_kind_of_error() -> None:
    for asked in [lambda: ROWS[7], lambda: ROWS.select([7]), lambda: ROWS.evaluate(bs.nth(7)), lambda: ROWS[bs.nth(7)]]:
        with pytest.raises(IndexError, match="no column 7 of 3"):
            asked()
    with pytest.raises(KeyError, match='no column "age"; did you mean "ages"'):
        bs.evaluate({"ages": [1]}, col("age"))


def test_truth_values_are_no_columns() -> None:
    for mask in [True, np.True_]:
        with pytest.raises(TypeError):
            bs.BatchReader(pa.table({"n": [1], "m": [True]})).filter(mask)
        with pytest.raises(TypeError):
            bs.filter(ROWS, mask)


EXPRESSIONS = [
    col("n") + 1,
    1 - col("n") * Decimal("0.5") / lit(2, "int8") % 3,
    -(10 / bs.nth(1)),
    ~(col("t") | False) & (True & col("t")) | (False | (col("s") != "x")),
    (col("n") <= 1.5) & (2 >= col("n")) & (col("n") == None),  # noqa: E711
    bs.if_else(col("t").is_true(), col("s"), None).coalesce(b"x").nullif("y"),
    col("n").between(1, np.int64(5)).is_not_false().is_not_true().is_false(),
    col("n").is_in([1, None, np.int8(5), Decimal(7)]),
    col("s").starts_with("a") & col("s").ends_with("b") & col("s").contains("c") & col("s").like("%") & col("s").ilike("_"),
    col("n").cast("Int8").cast(pa.decimal128(9, 2), strict=True).distinct(1).not_distinct(True),
    col("day").date_part("year") + lit(date(2000, 1, 1)).date_part("month"),
    (lit(datetime(2000, 1, 1)) > lit(timedelta(1))).is_null().is_not_null().alias("a name"),
    col("n") == pa.array([9], pa.uint8()),
    lit(np.array([1], np.int16)),
    lit(pa.scalar(5)),
    *[getattr(col("n") + 1, name)().alias("x") for name in ["sum", "min", "max", "count", "mean", "all", "any"]],
    abs(col("n")).abs() // 2 + 7 // col("n") ** 3,
    col("f").is_nan(),
    col("s").substring(1, 2).substring(-1),
    bs.count_all(),
    (col("n") * 2).sum(),
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_expressions_are_pickled_and_copied(expr: Any) -> None:
    for protocol in [2, pickle.HIGHEST_PROTOCOL]:
        again = pickle.loads(pickle.dumps(expr, protocol))
        assert type(again) is type(expr) and repr(again) == repr(expr)
        assert repr(pickle.loads(pickle.dumps(again))) == repr(expr)
    assert copy.copy(expr) is expr and copy.deepcopy([expr])[0] is expr


def test_pickled_expressions_compute_the_same() -> None:
    exprs = [col("n") + 1, col("n").is_in([1, 5]), bs.if_else(col("t"), col("n"), 0), col("n").cast("int8", strict=True)]
    again = pickle.loads(pickle.dumps(exprs))
    assert ROWS.evaluate(again) == ROWS.evaluate(exprs)
    deep = col("n")
    for _ in range(190):
        deep = deep + 1
    assert repr(pickle.loads(pickle.dumps(deep))) == repr(deep)


def test_everything_public_says_what_it_is() -> None:
    classes = [bs.Aggregation, bs.Array, bs.BatchReader, bs.DataType, bs.Device, bs.Expr, bs.Field, bs.RecordBatch, bs.Schema, bs.Stream]
    silent = [
        f"{of.__name__}.{name}"
        for of in classes
        for name in dir(of)
        if not name.startswith("_") and not getattr(of, name).__doc__
    ]
    silent += [name for name in dir(bs) if not name.startswith("_") and not getattr(bs, name).__doc__]
    assert silent == []
