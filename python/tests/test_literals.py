"""Tests of the values that expressions take, of mistakes of type, and of how expressions are printed."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import bowstring as bs
from bowstring import col, lit

BATCH = pa.record_batch({"a": pa.array([1, None], pa.int32())})


def test_mistakes_of_type() -> None:
    with pytest.raises(TypeError, match=r"use & \| ~"):
        col("a") > 1 and col("b") > 1
    with pytest.raises(TypeError, match=r"use & \| ~"):
        1 < col("a") < 3
    for wrong in [object(), [1], pa.array([1, 2]).to_pylist]:
        with pytest.raises((TypeError, ValueError), match="expression"):
            col("a") == wrong
    with pytest.raises(ValueError, match="not one"):
        col("a") == pa.array([1, 2])
    for names in ["a", ["a"], {"x": "a"}]:
        with pytest.raises(TypeError, match=r'exprs: a bowstring.Expr is needed, .*: the column is col\("a"\)'):
            bs.evaluate(BATCH, names)  # type: ignore[arg-type]
    for exprs in [col("a"), [col("a")]]:
        with pytest.raises(TypeError, match=r"a bowstring.Aggregation is needed, .* such as .sum\(\)"):
            bs.aggregate(BATCH, exprs)  # type: ignore[arg-type]
    for wrong in [col("a").sum(), [bs.count_all()]]:
        with pytest.raises(TypeError, match=r"aggregate\(...\) takes aggregations"):
            bs.evaluate(BATCH, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="exprs: a bowstring.Expr is needed, not .*int"):
        bs.evaluate(BATCH, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="exprs: names are str"):
        bs.evaluate(BATCH, {1: col("a")})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="are no batches"):
        bs.filter(pa.array([1]), col("a") > 1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("a"))
    for keyword in ["overflow", "division_by_zero", "floats"]:
        with pytest.raises(ValueError, match=f'{keyword} is .* not "perhaps"'):
            bs.evaluate(BATCH, [], **{keyword: "perhaps"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='no part "week"'):
        col("day").date_part("week")  # type: ignore[arg-type]


def test_values_beyond_what_there_is() -> None:
    for value in [2**127, Decimal(10) ** 38, Decimal("1E-39"), Decimal("1E+38")]:
        with pytest.raises(OverflowError):
            lit(value)
    for value in [Decimal("NaN"), Decimal("-Infinity")]:
        with pytest.raises(ValueError):
            lit(value)
    with pytest.raises(ValueError):
        lit(300, "Int8")
    with pytest.raises(ValueError, match="do not compute with List"):
        lit(pa.array([[1]]))
    assert repr(lit("it's", "Utf8")) == "'it''s'"
    assert repr(lit(-(10**37))) == str(-(10**37))


def test_datetimes_know_their_zone() -> None:
    here_and_there = timezone(timedelta(hours=2))
    when = [datetime(1969, 7, 20, 20, 17, 40, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, tzinfo=timezone.utc)]
    rows = pa.record_batch({"when": pa.array(when, pa.timestamp("us", "UTC"))})
    kept = bs.filter(rows, col("when") == when[0].astimezone(here_and_there))
    assert pa.record_batch(kept).to_pylist() == [{"when": when[0]}]
    with pytest.raises(ValueError, match="cast one"):
        bs.filter(rows, col("when") > datetime(1970, 1, 1))
    with pytest.raises(ValueError, match="cast one"):
        bs.filter(rows, col("when") > date(1970, 1, 1))
    naive = pa.record_batch({"ms": pa.array([datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("ms"))})
    assert len(bs.filter(naive, col("ms") == lit(datetime(1970, 1, 1, 0, 0, 1), pa.timestamp("ms")))) == 1


def test_expressions_are_printed_as_they_are_written() -> None:
    assert repr((col("quantity") < 24) & col("discount").between(5, 7)) == "(quantity < 24) and (discount between 5 and 7)"
    assert repr((col("p") * (1 - col("d"))).sum()) == "sum(p * (1 - d))"
    assert repr(np.float64(10) > col("n")) == repr(10.0 > col("n")) == "n < 10"
    assert repr(np.int64(2) - col("n")) == "2 - n" and repr(np.int8(2) == col("n")) == "n = 2"
    assert repr(np.bool_(True) & col("t")) == repr(True & col("t"))
    with pytest.raises(ValueError, match="an array of 3 rows, not one"):
        np.arange(3) + col("n")
    assert repr(bs.if_else(~col("t"), bs.nth(2).alias("x"), None)) == "if (not t) then (#2 as x) else null"


def test_fill_null_takes_the_same_values() -> None:
    days = bs.fill_null(pa.array([None, date(2000, 1, 1)]), date(1969, 12, 31))
    assert pa.array(days).to_pylist() == [date(1969, 12, 31), date(2000, 1, 1)]
    prices = bs.fill_null(pa.array([None], pa.decimal128(9, 3)), Decimal("-1.25"))
    assert pa.array(prices).to_pylist() == [Decimal("-1.250")]
