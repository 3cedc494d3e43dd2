"""Tests of functions of numbers, times and decimals on the CPU and the emulated device, compared with Python."""

from __future__ import annotations

import itertools
import math
import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bowstring as bs
from bowstring import col, lit

NAN = float("nan")


@pytest.fixture(params=["cpu", "emulated"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(device: str, columns: dict[str, Any], expr: bs.Expr, **options: Any) -> list[Any]:
    rows = bs.record_batch(columns).to(device)
    return rows.evaluate(expr, **options).to("cpu")[0].to_pylist()


def bits(values: list[float]) -> list[int]:
    return [struct.unpack("<q", struct.pack("<d", value))[0] for value in values]


def test_signs_go(device: str) -> None:
    for floats in ["total", "sql"]:
        got = made(device, {"x": [1.5, -2.5, -0.0, 0.0, -math.inf, NAN]}, abs(col("x")), floats=floats)
        assert bits(got[:5]) == bits([1.5, 2.5, 0.0, 0.0, math.inf]) and math.isnan(got[5])
    for dtype in ["float16", "float32", "int8", "int64"]:
        values = pa.array([3, -4, None, 0]).cast(dtype)
        assert made(device, {"x": values}, col("x").abs()) == [3, 4, None, 0]
    assert made(device, {"x": pa.array([7, None], pa.uint16())}, abs(col("x"))) == [7, None]
    money = [Decimal("-1.25"), Decimal("3.00"), None]
    assert made(device, {"x": pa.array(money, pa.decimal128(9, 2))}, abs(col("x"))) == [Decimal("1.25"), Decimal("3.00"), None]
    assert made(device, {"x": [timedelta(-1), timedelta(2)]}, abs(col("x"))) == [timedelta(1), timedelta(2)]
    least = {"x": pa.array([1, -128], pa.int8())}
    with pytest.raises(OverflowError, match=r"row 1: abs\(x\) overflows"):
        bs.record_batch(least).to(device).evaluate(abs(col("x"))).wait()
    assert made(device, least, abs(col("x")), overflow="null") == [1, None]


def test_what_is_no_number(device: str) -> None:
    for dtype in [np.float16, np.float32, np.float64]:
        values = np.array([NAN, -NAN, math.inf, -math.inf, 0.0, -1.5], dtype)
        for floats in ["total", "sql"]:
            assert made(device, {"x": values}, col("x").is_nan(), floats=floats) == [True, True, False, False, False, False]
    assert made(device, {"x": pa.array([None, NAN])}, col("x").is_nan()) == [None, True]


def test_quotients_are_rounded_down(device: str) -> None:
    pairs = [(a, b) for a in [-8, -7, -1, 0, 1, 7, 8, 127, -128] for b in [-3, -2, 1, 2, 3, 127]]
    for dtype in ["int8", "int32", "int64"]:
        columns = {"a": pa.array([a for a, _ in pairs], dtype), "b": pa.array([b for _, b in pairs], dtype)}
        assert made(device, columns, col("a") // col("b")) == [a // b for a, b in pairs]
        for by in [-3, 2]:
            assert made(device, columns, col("a") // by) == [a // by for a, _ in pairs]
    assert made(device, {"x": pa.array([1, 2, None, 4], pa.int32())}, 7 // col("x")) == [7, 3, None, 1]
    assert made(device, {"x": pa.array([7, 9], pa.uint8())}, col("x") // 2) == [3, 4]
    assert made(device, {"x": [1, 0]}, 7 // col("x"), division_by_zero="null") == [7, None]


def test_quotients_of_floats_are_rounded_down_as_numpy_does(device: str) -> None:
    edges = [0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 7.0, -7.5, 1e-310, math.inf, -math.inf, NAN, 2.0**53, 4503599627370497.5, 1.7e308, 2.5]
    random = np.random.default_rng(7)
    drawn = (random.standard_normal(200) * 10.0 ** random.integers(-20, 20, 200)).tolist()
    # The pairs at the end: a quotient that rounds to 10, its negative, and a float with a fraction of one
    # half.
    pairs = [(a, b) for a in edges for b in edges] + list(zip(drawn, reversed(drawn), strict=True)) + [(1.0, 0.1), (-1.0, 0.1), (2.0**51 + 0.5, 1.0)]
    for dtype in [np.float64, np.float32, np.float16]:
        with np.errstate(all="ignore"):
            a, b = (np.array([pair[side] for pair in pairs]).astype(dtype) for side in [0, 1])
            expected, by_two, seven = a // b, a // dtype(2.5), dtype(7) // b
        for floats in ["total", "sql"]:
            for expr, right in [(col("a") // col("b"), expected), (col("a") // 2.5, by_two), (7 // col("b"), seven)]:
                got = np.array(made(device, {"a": a, "b": b}, expr, floats=floats), dtype)
                same = (got == right) & (np.signbit(got) == np.signbit(right)) | np.isnan(got) & np.isnan(right)
                assert same.all(), [(expr, dtype, a[i], b[i], got[i], right[i]) for i in np.flatnonzero(~same)[:5]]
    for x, y in [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1.0, 0.1), (-1.0, 0.1), (5.0, math.inf), (-5.0, math.inf)]:
        assert made(device, {"x": [x]}, col("x") // y) == [x // y] == [(x - x % y) / y if math.isfinite(y) else x // y]
    assert made(device, {"x": [7.5, None]}, col("x") // col("x")) == [1.0, None]
    money = {"d": pa.array([Decimal("1.50")], pa.decimal128(9, 2))}
    with pytest.raises(ValueError, match="are not rounded down"):
        made(device, money, col("d") // 2)


def test_powers(device: str) -> None:
    values = [3, -2, 0, None, 1]
    for exponent in [1, 2, 3, 7, 12]:
        expected = [None if x is None else x**exponent for x in values]
        assert made(device, {"x": values}, col("x") ** exponent) == expected
    for dtype in ["int8", "float32", "float64"]:
        assert made(device, {"x": pa.array(values, dtype)}, col("x") ** 0) == [1, 1, 1, None, 1]
    assert made(device, {"x": pa.array([2], pa.int8())}, col("x") ** 6) == [64]
    with pytest.raises(OverflowError, match=r"row 1: x \*\* 7 overflows"):
        bs.record_batch({"x": pa.array([1, 2], pa.int8())}).to(device).evaluate(col("x") ** 7).wait()
    assert made(device, {"x": pa.array([Decimal("1.5")], pa.decimal128(5, 1))}, col("x") ** 3) == [Decimal("3.375")]
    for exponent in [-1, 0.5, 1001, True, "2", col("x")]:
        with pytest.raises(TypeError, match="an exponent is an int from 0 to 1000"):
            col("x") ** exponent
    with pytest.raises(TypeError, match="an exponent is an int from 0 to 1000, not x:"):
        2 ** col("x")


def test_overflows_and_divisions_by_zero_are_told_apart(device: str) -> None:
    rows = bs.record_batch({"a": pa.array([6, -128, 5], pa.int8()), "b": pa.array([2, -1, 0], pa.int8())}).to(device)
    for expr, error, words in [
        (col("a") / col("b"), OverflowError, "row 1: a / b overflows$"),
        (col("a") % col("b"), ZeroDivisionError, "row 2: a % b divides by zero$"),
        (col("a") / 0, ZeroDivisionError, "row 0: a / 0 divides by zero$"),
        (col("a") / -1, OverflowError, "row 1: a / -1 overflows$"),
        (5 / col("b"), ZeroDivisionError, "row 2: 5 / b divides by zero$"),
        (5 // col("b"), ZeroDivisionError, "row 2: 5 // b divides by zero$"),
        (col("a") * 2, OverflowError, r"row 1: a \* 2 overflows$"),
        (-col("a"), OverflowError, "row 1: -a overflows$"),
        (5 / (col("b") - 2), ArithmeticError, r"row 0: 5 / \(b - 2\) (overflows or )?divides by zero$"),
    ]:
        with pytest.raises(error, match=words):
            rows.evaluate(expr).wait()
        with pytest.raises(error, match=words):
            rows[expr == 1]
    money = bs.record_batch({"d": pa.array([Decimal("1.50"), Decimal(0)], pa.decimal128(9, 2))}).to(device)
    with pytest.raises(ZeroDivisionError, match="row 1: 1 / d divides by zero$"):
        money.evaluate(1 / col("d")).wait()


OPERATORS = [lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b]


def test_decimals_are_compared_by_their_values(device: str) -> None:
    values = [Decimal(text) for text in ["-1.25", "-0.05", "0.00", "0.05", "0.06", "999.99", "-999.99"]]
    for dtype in [pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(5, 2)]:
        columns = {"d": pa.array([*values, None], dtype)}
        others = ["0.055", "0.050", "-0.055", "1e10", "-1e10", "1e30", "-1e30", "0.000000000000000000000000000000000001", "-1.2500"]
        for other in [*map(Decimal, others), 0.055, 10000, -10000, 1e6]:
            exact = Decimal(repr(other)) if isinstance(other, float) else other
            for operator in OPERATORS:
                assert made(device, columns, operator(col("d"), other)) == [*(operator(x, exact) for x in values), None]
                assert made(device, columns, operator(lit(other), col("d"))) == [*(operator(exact, x) for x in values), None]
        assert made(device, columns, col("d").distinct(Decimal("0.055"))) == [True] * 8
        assert made(device, columns, col("d").not_distinct(Decimal("0.055"))) == [False] * 8
        assert made(device, columns, col("d").between(Decimal("-0.051"), 0.055)) == [-0.051 <= x <= 0.055 for x in values] + [None]
        assert made(device, columns, col("d").is_in([Decimal("0.055"), Decimal("0.0600"), 10**6])) == [x == Decimal("0.06") for x in values] + [None]


def test_columns_of_two_scales_are_compared(device: str) -> None:
    a = [Decimal("1.25"), Decimal("-1.25"), None, Decimal("0.10"), Decimal("2.00")]
    b = [Decimal("1.2500"), Decimal("1.2501"), Decimal("0"), Decimal("0.0999"), None]
    columns = {"a": pa.array(a, pa.decimal128(9, 2)), "b": pa.array(b, pa.decimal128(20, 4))}
    for operator in OPERATORS:
        expected = [None if x is None or y is None else operator(x, y) for x, y in zip(a, b, strict=True)]
        assert made(device, columns, operator(col("a"), col("b"))) == expected
    huge = {"a": pa.array([Decimal(10) ** 37, None], pa.decimal128(38, 0)), "b": pa.array([Decimal("0.01")] * 2, pa.decimal128(5, 2))}
    with pytest.raises(OverflowError, match="row 0: a < b overflows"):
        bs.record_batch(huge).to(device)[col("a") < col("b")]
    assert made(device, huge, col("a") < col("b"), overflow="null") == [None, None]
    assert made(device, {"d": pa.array([Decimal("1.50")], pa.decimal128(9, 2))}, col("d") + 0.125) == [Decimal("1.625")]


DAYS = [date(1993, 12, 31), date(1994, 1, 1), None, date(2024, 2, 29)]
TIMES = [datetime(1993, 12, 31, 23, 59, 59), datetime(1994, 1, 1), None, datetime(2024, 2, 29, 12, 30, 0, 250)]


def test_text_is_a_date_beside_dates(device: str) -> None:
    for dtype in [pa.date32(), pa.date64()]:
        columns = {"day": pa.array(DAYS, dtype)}
        assert made(device, columns, col("day") >= "1994-01-01") == [False, True, None, True]
        assert made(device, columns, "1994-01-01" == col("day")) == [False, True, None, False]
        assert made(device, columns, col("day").is_in(["1994-01-01", "2024-02-29"])) == [False, True, None, True]
        assert made(device, columns, col("day").between("1993-01-01", "1994-06-30")) == [True, True, None, False]
    for unit in ["us", "ns"]:
        columns = {"when": pa.array(TIMES, pa.timestamp(unit))}
        assert made(device, columns, col("when") > "1994-01-01 00:00:00") == [False, False, None, True]
        assert made(device, columns, col("when") >= "1994-01-01") == [False, True, None, True]
        assert made(device, columns, col("when") == datetime(2024, 2, 29, 12, 30, 0, 250)) == [False, False, None, True]
        assert made(device, columns, col("when") >= date(1994, 1, 1)) == [False, True, None, True]
    zoned = {"when": pa.array([datetime(1994, 1, 1)], pa.timestamp("ms", "UTC"))}
    assert made(device, zoned, col("when") == "1994-01-01T02:00:00+02:00") == [True]


def test_differences_of_times(device: str) -> None:
    first = DAYS[1]
    for dtype in [pa.date32(), pa.date64()]:
        columns = {"day": pa.array(DAYS, dtype)}
        assert made(device, columns, col("day") - first) == [None if x is None else x - first for x in DAYS]
        assert made(device, columns, first - col("day")) == [None if x is None else first - x for x in DAYS]
        assert made(device, columns, col("day") + timedelta(3)) == [None if x is None else x + timedelta(3) for x in DAYS]
        assert made(device, columns, timedelta(3) + col("day")) == [None if x is None else x + timedelta(3) for x in DAYS]
        assert made(device, columns, col("day") - timedelta(60)) == [None if x is None else x - timedelta(60) for x in DAYS]
    for unit in ["us", "ns"]:
        columns = {"when": pa.array(TIMES, pa.timestamp(unit)), "day": pa.array(DAYS), "by": pa.array([timedelta(1)] * 4, pa.duration(unit))}
        start = TIMES[1]
        assert made(device, columns, col("when") - start) == [None if x is None else x - start for x in TIMES]
        assert made(device, columns, col("when") - timedelta(hours=5)) == [None if x is None else x - timedelta(hours=5) for x in TIMES]
        assert made(device, columns, col("when") + col("by")) == [None if x is None else x + timedelta(1) for x in TIMES]
        assert made(device, columns, (col("when") - first) - col("by") + timedelta(1)) == [None if x is None else x - start for x in TIMES]
        for expr in [col("day") + col("by"), col("by") + col("day"), col("day") - col("by")]:
            with pytest.raises(ValueError, match=r"Date32 and durations of each row; cast the date to Timestamp\("):
                made(device, columns, expr)
        moved = col("day").cast(f"timestamp[{unit}]")
        later = [None if x is None else datetime(x.year, x.month, x.day) + timedelta(1) for x in DAYS]
        assert made(device, columns, moved + col("by")) == made(device, columns, col("by") + moved) == later
        assert made(device, columns, col("by") + col("when")) == [None if x is None else x + timedelta(1) for x in TIMES]
        assert made(device, columns, col("when") - col("by")) == [None if x is None else x - timedelta(1) for x in TIMES]


def test_a_moment_takes_the_unit_of_durations(device: str) -> None:
    start = datetime(2024, 2, 29, 12, 30)
    for unit in ["s", "ms", "us", "ns"]:
        columns = {"by": pa.array([timedelta(1), None, timedelta(hours=-5)], pa.duration(unit))}
        for expr, sign in [(start + col("by"), 1), (col("by") + start, 1), (start - col("by"), -1)]:
            assert made(device, columns, expr) == [start + sign * timedelta(1), None, start - sign * timedelta(hours=5)]
    seconds = {"by": pa.array([timedelta(1)], pa.duration("s"))}
    with pytest.raises(ValueError, match="is that moment; cast the duration"):
        made(device, seconds, col("by") + datetime(2024, 2, 29, 12, 30, 0, 1))
    with pytest.raises(ValueError, match="cast one"):
        made(device, {"by": pa.array([timedelta(1)], pa.duration("ms")), "when": pa.array([start], pa.timestamp("s"))}, col("when") + col("by"))


def test_times_are_printed_as_iso_8601_has_them() -> None:
    assert repr(col("day") >= date(1994, 1, 1)) == "day >= '1994-01-01'::Date32"
    assert repr(col("when") < datetime(2024, 2, 29, 12, 30, 0, 250)).startswith("when < '2024-02-29T12:30:00.000250'::Timestamp(")
    assert repr(col("day") + timedelta(days=3, hours=1)).startswith("day + 'PT262800S'::Duration(")
    assert repr(lit("12:30:01", "time32[s]")).startswith("'12:30:01'::Time32(")
    # No calendar has such a year.
    assert repr(lit(2**62, "timestamp[s]")).startswith(f"{2**62}::Timestamp(")
    assert repr(lit(None, "date32")) == "null::Date32"


def test_text_where_there_is_none(device: str) -> None:
    rows = bs.record_batch({"s": ["abc", "a"], "keep": [True, False]}).to(device)
    for text in ["abc", b"abc", bytearray(b"abc")]:
        with pytest.raises(TypeError, match="values: a list is needed, not <class '(str|bytes|bytearray)'>"):
            col("s").is_in(text)  # type: ignore[arg-type]
    assert rows.evaluate(col("s").is_in(("abc",)))[0].to_pylist() == [True, False]
    with pytest.raises(ValueError, match="more than 256 MiB of values"):
        col("s").is_in(itertools.repeat(None))
    for where, words in [("keep", "str'>: the column is col.\"keep\".$"), ([True, False], "list'>$"), (bs.count_all(), "Aggregation'>$")]:
        for aggregate in [rows.aggregate, bs.BatchReader(rows).aggregate, lambda *given, **named: bs.aggregate(rows, *given, **named)]:
            with pytest.raises(TypeError, match=f"where: a bowstring.Expr is needed, not <class '.*{words}"):
                aggregate(bs.count_all(), where=where)
