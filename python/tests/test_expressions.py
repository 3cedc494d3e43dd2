"""Tests of expressions on the CPU and the emulated device, compared with pyarrow's compute functions."""

from __future__ import annotations

import operator
import pickle
import threading
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import bowstring as bs
from bowstring import col, lit

Place = Callable[[Any], bs.RecordBatch]
PLACES: dict[str, Place] = {
    "cpu": lambda batch: bs.record_batch(batch),
    "emulated": lambda batch: bs.record_batch(batch).to(bs.Device.emulated()),
}
ROWS = 300
NAN = float("nan")


@pytest.fixture(params=PLACES)
def on(request: pytest.FixtureRequest) -> Place:
    return PLACES[request.param]


def here(batch: bs.RecordBatch) -> pa.RecordBatch:
    got = pa.record_batch(batch.to(bs.Device.cpu()))
    got.validate(full=True)
    return got


def samples() -> pa.RecordBatch:
    rng = np.random.default_rng(1)
    some = rng.random(ROWS) < 0.1
    floats = rng.choice([0.0, -0.0, 1.5, -2.5, NAN, float("inf")], ROWS)
    return pa.record_batch(
        {
            "a": pa.array(rng.integers(-50, 50, ROWS), pa.int32(), mask=some),
            "b": pa.array(rng.integers(1, 9, ROWS), pa.int32()),
            "l": pa.array(rng.integers(-(2**40), 2**40, ROWS), pa.int64(), mask=some[::-1]),
            "u": pa.array(rng.integers(0, 200, ROWS), pa.uint8()),
            "f": pa.array(floats, mask=some),
            "g": pa.array(rng.normal(size=ROWS)),
            "t": pa.array(rng.random(ROWS) < 0.5, mask=some),
            "d": pa.array([Decimal(int(x)) / 100 for x in rng.integers(-500, 500, ROWS)], pa.decimal128(15, 2)),
            "day": pa.array(rng.integers(-9000, 30000, ROWS).astype("int32"), pa.int32()).cast(pa.date32()),
            "when": pa.array(rng.integers(-(2**50), 2**50, ROWS), pa.int64()).cast(pa.timestamp("us")),
            "s": pa.array(rng.choice(["", "ship", "Shipped", "a ship's mail", "100 %"], ROWS), mask=some),
            "v": pa.array(rng.choice([b"", b"\xff\x00", b"more than twelve bytes"], ROWS).tolist(), pa.binary()),
            "w": pa.array(rng.choice(["AIR", "RAIL", "TRUCK"], ROWS), mask=some).dictionary_encode(),
        }
    )


BATCH = samples()
C: dict[str, pa.Array] = dict(zip(BATCH.column_names, BATCH.columns, strict=True))
NOON = datetime(2020, 2, 29, 12, 30, 15, 250)

CASES: dict[str, tuple[bs.Expr, Any]] = {
    "a < 24": (col("a") < 24, pc.less(C["a"], 24)),
    "a >= b": (col("a") >= col("b"), pc.greater_equal(C["a"], C["b"])),
    "a <= 3": (col("a") <= 3, pc.less_equal(C["a"], 3)),
    "reflected": (3 > col("a"), pc.greater(3, C["a"])),
    "g > 0.5": (col("g") > 0.5, pc.greater(C["g"], 0.5)),
    "==": (col("a") == 7, pc.equal(C["a"], 7)),
    "!=": (col("a") != col("b"), pc.not_equal(C["a"], C["b"])),
    "numpy's integers": (col("a") == np.int64(7), pc.equal(C["a"], 7)),
    "arrays of one row": (col("u") == pa.array([9], pa.uint8()), pc.equal(C["u"], 9)),
    "+": (col("l") + 5, pc.add(C["l"], 5)),
    "reflected +": (5 + col("l"), pc.add(C["l"], 5)),
    "-": (1 - col("a"), pc.subtract(pa.scalar(1, pa.int32()), C["a"])),
    "a - b": (col("a") - col("b"), pc.subtract(C["a"], C["b"])),
    "*": (2 * col("a") * col("b"), pc.multiply(pc.multiply(C["a"], C["b"]), pa.scalar(2, pa.int32()))),
    "/": (col("a") / col("b"), pc.divide(C["a"], C["b"])),
    "float /": (1 / col("g"), pc.divide(1.0, C["g"])),
    "negative": (-col("a"), pc.negate(C["a"])),
    "&": ((col("a") > 0) & col("t"), pc.and_kleene(pc.greater(C["a"], 0), C["t"])),
    "|": (col("t") | (col("a") > 0), pc.or_kleene(C["t"], pc.greater(C["a"], 0))),
    "reflected &": (True & col("t"), C["t"]),
    "reflected |": (True | col("t"), pa.array([True] * ROWS)),
    "~": (~col("t"), pc.invert(C["t"])),
    "is_null": (col("a").is_null(), C["a"].is_null()),
    "is_not_null": (col("a").is_not_null(), C["a"].is_valid()),
    "is_true": (col("t").is_true(), C["t"].fill_null(False)),
    "is_not_true": (col("t").is_not_true(), pc.invert(C["t"].fill_null(False))),
    "is_false": (col("t").is_false(), pc.invert(C["t"].fill_null(True))),
    "is_not_false": (col("t").is_not_false(), C["t"].fill_null(True)),
    "between": (col("a").between(-3, col("b")), pc.and_(pc.greater_equal(C["a"], -3), pc.less_equal(C["a"], C["b"]))),
    "is_in": (col("b").is_in([1, 5, 7]), pc.is_in(C["b"], pa.array([1, 5, 7], pa.int32()))),
    "text ==": (col("s") == "ship", pc.equal(C["s"], "ship")),
    "text <": ("b" > col("s"), pc.less(C["s"], "b")),
    "starts_with": (col("s").starts_with("a s"), pc.starts_with(C["s"], "a s")),
    "ends_with": (col("s").ends_with("ship"), pc.ends_with(C["s"], "ship")),
    "contains": (col("s").contains("ship"), pc.match_substring(C["s"], "ship")),
    "like": (col("s").like("_h%p%"), pc.match_like(C["s"], "_h%p%")),
    "ilike": (col("s").ilike("SHIP%"), pc.starts_with(C["s"], "SHIP", ignore_case=True)),
    "an escape": (col("s").like("%\\%"), pc.ends_with(C["s"], "%")),
    "is_in texts": (col("s").is_in(["", "ship"]), pc.or_(pc.equal(C["s"], ""), pc.equal(C["s"], "ship"))),
    "substring": (col("s").substring(1, 2), pc.utf8_slice_codeunits(C["s"], 1, 3)),
    "substring at the end": (col("s").substring(-3), pc.utf8_slice_codeunits(C["s"], -3)),
    "bytes": (col("v") == b"\xff\x00", pc.equal(C["v"], b"\xff\x00")),
    "a dictionary": (col("w") == "RAIL", pc.equal(C["w"].cast(pa.string()), "RAIL")),
    "distinct": (col("a").distinct(None), C["a"].is_valid()),
    "not_distinct": (col("a").not_distinct(None), C["a"].is_null()),
    "cast": (col("l").cast("Int8"), bs.cast(C["l"], "Int8", strict=False)),
    "cast to pyarrow's": (col("a").cast(pa.float64(), strict=True), C["a"].cast(pa.float64())),
    "coalesce": (col("a").coalesce(0), C["a"].fill_null(0)),
    "nullif": (col("b").nullif(3), pc.if_else(pc.equal(C["b"], 3), None, C["b"])),
    "if_else": (bs.if_else(col("t"), col("a"), None), pc.if_else(C["t"].fill_null(False), C["a"], None)),
    "year": (col("day").date_part("year"), pc.year(C["day"]).cast(pa.int32())),
    "month": (col("day").date_part("month"), pc.month(C["day"]).cast(pa.int32())),
    "day": (col("when").date_part("day"), pc.day(C["when"]).cast(pa.int32())),
    "hour": (col("when").date_part("hour"), pc.hour(C["when"]).cast(pa.int32())),
    "minute": (col("when").date_part("minute"), pc.minute(C["when"]).cast(pa.int32())),
    "second": (col("when").date_part("second"), pc.second(C["when"]).cast(pa.int32())),
    "dates": (col("day") >= date(1994, 1, 1), pc.greater_equal(C["day"], date(1994, 1, 1))),
    "days before 1970": (col("day") < date(1969, 12, 31), pc.less(C["day"], date(1969, 12, 31))),
    "times": (col("when") < NOON, pc.less(C["when"], pa.scalar(NOON))),
    "decimals": (col("d") > Decimal("0.5"), pc.greater(C["d"], pa.scalar(Decimal("0.50"), pa.decimal128(15, 2)))),
    "decimals by floats": (col("d") == 0.05, pc.equal(C["d"], pa.scalar(Decimal("0.05"), pa.decimal128(15, 2)))),
    "nth": (bs.nth(1), C["b"]),
    "a typed literal": (col("l") > lit(2**31, "Int64"), pc.greater(C["l"], 2**31)),
    "a date of text": (col("day") < lit("1998-09-02", "Date32"), pc.less(C["day"], date(1998, 9, 2))),
    "a null of a type": (lit(None, "Int16"), pa.nulls(ROWS, pa.int16())),
}


@pytest.mark.parametrize("name", CASES)
def test_is_what_pyarrow_computes(on: Place, name: str) -> None:
    expr, expected = CASES[name]
    got = here(bs.evaluate(on(BATCH), [expr.alias("x")]))
    assert got.column_names == ["x"]
    expected = pa.array(expected)
    assert got.column(0).type == expected.type
    assert got.column(0).equals(expected), name


def test_remainders_have_the_sign_of_the_dividend(on: Place) -> None:
    got = here(bs.evaluate(on(BATCH), [col("a") % col("b"), 7 % col("b"), col("g") % 0.25]))
    signed = [None if a is None else int(np.fmod(a, b)) for a, b in zip(C["a"].to_pylist(), C["b"].to_pylist())]
    assert got.column(0).to_pylist() == signed
    assert got.column(1).to_pylist() == [7 % b for b in C["b"].to_pylist()]
    assert got.column(2).equals(pa.array(np.fmod(C["g"].to_numpy(), 0.25)))


@pytest.mark.parametrize("name", [name for name, (_, expected) in CASES.items() if pa.array(expected).type == pa.bool_()])
def test_filters(on: Place, name: str) -> None:
    expr, expected = CASES[name]
    got, kept = here(bs.filter(on(BATCH), expr)), BATCH.filter(pa.array(expected))
    assert got.schema == kept.schema
    assert repr(got.to_pylist()) == repr(kept.to_pylist())  # as text, NaNs are equal


def test_floats_by_their_total_order_or_as_sql_has_it(on: Place) -> None:
    rows = on(pa.record_batch({"f": pa.array([0.0, -0.0, NAN, 1.0, None])}))

    def compared(expr: bs.Expr, **floats: Any) -> list[bool | None]:
        kept = here(bs.filter(rows, expr, **floats))
        got: list[bool | None] = here(bs.evaluate(rows, [expr], **floats)).column(0).to_pylist()
        assert kept.num_rows == got.count(True)
        return got

    assert compared(col("f") == 0.0) == [True, False, False, False, None]
    assert compared(col("f") == 0.0, floats="sql") == [True, True, False, False, None]
    assert compared(-col("f") < 0.0, floats="sql") == [False, False, False, True, None]
    assert compared(col("f") > 5, floats="sql") == [False, False, True, False, None]
    assert compared(col("f").is_in([NAN]), floats="sql") == [False, False, True, False, None]


def test_decimals_are_exact(on: Place) -> None:
    prices, discounts = [Decimal("10.05"), None, Decimal("-3.99")], [Decimal("0.05"), Decimal("0.10"), Decimal("0.07")]
    rows = on(pa.record_batch({"p": pa.array(prices, pa.decimal128(15, 2)), "q": pa.array(discounts, pa.decimal128(4, 2))}))
    made = here(bs.evaluate(rows, [col("p") * (1 - col("q")), col("p") + Decimal("0.005"), -col("p")]))
    assert made.schema.types[0].scale == 4
    assert made.column(0).to_pylist() == [Decimal("9.5475"), None, Decimal("-3.7107")]
    assert made.column(1).to_pylist() == [Decimal("10.055"), None, Decimal("-3.985")]
    assert made.column(2).to_pylist() == [Decimal("-10.05"), None, Decimal("3.99")]
    assert repr(col("p") + Decimal("-0.005")) == "p + -0.005" and repr(lit(Decimal("1E+3"))) == "1000"


def test_what_overflows(on: Place) -> None:
    rows = on(pa.record_batch({"a": pa.array([1, None, 100, -128, 5], pa.int8()), "z": pa.array([1, 0, 1, -1, 0], pa.int8())}))
    with pytest.raises(OverflowError, match=r"row 2: a \* 2 overflows$"):
        bs.evaluate(rows, [col("a") * 2]).wait()
    for wrong in [(col("a") + 28) > 0, col("a") / col("z") > 0]:
        with pytest.raises(ArithmeticError, match="row [23]"):
            bs.filter(rows, wrong)
        with pytest.raises(ArithmeticError, match="row [23]"):
            bs.aggregate(rows, [bs.count_all()], wrong)
    made = here(bs.evaluate(rows, [col("a") * 2], overflow="wrap"))
    assert made.column(0).to_pylist() == [2, None, -56, 0, 10]
    made = here(bs.evaluate(rows, [col("a") * 2, col("a") / col("z")], overflow="null", division_by_zero="null"))
    assert made.column(0).to_pylist() == [2, None, None, None, 10]
    assert made.column(1).to_pylist() == [1, None, 100, None, None]
    with pytest.raises(ValueError, match="cast"):
        bs.evaluate(on(BATCH), [col("l").cast("Int8", strict=True)]).wait()


def test_aggregates(on: Place) -> None:
    rows = on(BATCH)
    of = [col("a").sum(), col("l").min(), col("l").max(), col("a").count(), bs.count_all(), col("a").mean()]
    got = here(bs.aggregate(rows, [*of, col("d").sum(), col("t").any(), col("t").all(), (col("u") < 250).all()]))
    a, l = C["a"], C["l"]
    expected = [pc.sum(a), pc.min(l), pc.max(l), pc.count(a), pa.scalar(ROWS), pc.mean(a), pc.sum(C["d"])]
    assert [column[0].as_py() for column in got.columns[:7]] == [one.as_py() for one in expected]
    assert got.slice(0, 1).to_pylist()[0]["bool_or(t)"] is True
    assert [column[0].as_py() for column in got.columns[8:]] == [False, True]
    names = ["sum(a)", "min(l)", "max(l)", "count(a)", "count(*)", "mean(a)", "sum(d)", "bool_or(t)", "bool_and(t)"]
    assert got.column_names == [*names, "bool_and(u < 250)"]
    some = here(bs.aggregate(rows, [(col("a") * 2).sum().alias("s"), bs.count_all()], where=col("b") == 3))
    kept = BATCH.filter(pc.equal(C["b"], 3))
    assert some.to_pylist() == [{"s": 2 * pc.sum(kept["a"]).as_py(), "count(*)": kept.num_rows}]
    none = here(bs.aggregate(rows, of, col("a") > 1000)).to_pylist()[0]
    assert list(none.values()) == [None, None, None, 0, 0, None]


def test_sums_that_do_not_fit(on: Place) -> None:
    rows, total = on(pa.record_batch({"a": pa.array([2**62] * 3)})), [col("a").sum().alias("s")]
    with pytest.raises(ValueError, match="s does not fit Int64"):
        bs.aggregate(rows, total)
    assert here(bs.aggregate(rows, total, overflow="null")).to_pylist() == [{"s": None}]
    assert here(bs.aggregate(rows, total, overflow="wrap")).to_pylist() == [{"s": 3 * 2**62 - 2**64}]


def test_nan_is_the_greatest(on: Place) -> None:
    rows = on(pa.record_batch({"f": pa.array([1.0, NAN, None, -5.0])}))
    greatest, least = here(bs.aggregate(rows, [col("f").max(), col("f").min()])).columns
    assert np.isnan(greatest[0].as_py()) and least[0].as_py() == -5.0


def test_the_sixth_query_of_tpch(on: Place) -> None:
    rng = np.random.default_rng(6)
    rows = 5000

    def decimals(most: int) -> pa.Array:
        return pa.array([Decimal(int(x)).scaleb(-2) for x in rng.integers(0, most, rows)], pa.decimal128(15, 2))

    table = pa.table(
        {
            "l_quantity": decimals(5000),
            "l_extendedprice": decimals(10_000_000),
            "l_discount": decimals(11),
            "l_shipdate": pa.array(rng.integers(8000, 10500, rows).astype("int32"), pa.int32()).cast(pa.date32()),
        }
    )
    where = (
        (col("l_shipdate") >= date(1994, 1, 1))
        & (col("l_shipdate") < date(1995, 1, 1))
        & col("l_discount").between(Decimal("0.05"), 0.07)
        & (col("l_quantity") < 24)
    )
    revenue = (col("l_extendedprice") * col("l_discount")).sum().alias("revenue")
    [row] = here(bs.aggregate(on(table), [revenue], where)).to_pylist()
    expected = sum(
        row["l_extendedprice"] * row["l_discount"]
        for row in table.to_pylist()
        if date(1994, 1, 1) <= row["l_shipdate"] < date(1995, 1, 1)
        and Decimal("0.05") <= row["l_discount"] <= Decimal("0.07")
        and row["l_quantity"] < 24
    )
    assert row["revenue"] == expected != 0


def test_streams_are_lazy(on: Place) -> None:
    asked = 0

    def batches() -> Iterator[bs.RecordBatch]:
        nonlocal asked
        for i in range(100):
            asked += 1
            yield on(pa.record_batch({"n": pa.array(range(i, i + 10), pa.int32())}))

    device = on(BATCH).device
    reader = bs.BatchReader.from_batches(pa.schema({"n": pa.int32()}), batches(), device=device)
    reader = reader.filter(col("n") % 2 == 0).evaluate([(col("n") * 10).alias("m"), col("n")])
    assert asked == 0 and reader.column_names == ["m", "n"]
    assert here(next(reader)).to_pylist() == [{"m": 10 * n, "n": n} for n in range(0, 10, 2)]
    assert asked <= 3  # a GPU's filter starts up to two batches ahead
    assert here(next(reader))["n"].to_pylist() == [2, 4, 6, 8, 10]


def test_streams_are_aggregated_as_all_their_rows(on: Place) -> None:
    totals = [bs.count_all(), (col("a") * 2).sum().alias("twice"), col("d").mean(), col("s").like("%ship%").any()]
    whole = bs.aggregate(on(BATCH), totals, col("b") > 3)
    reader = bs.BatchReader(pa.table(BATCH.slice(0, 100)).to_reader(max_chunksize=30))
    assert here(reader.aggregate(totals, col("b") > 3)) == here(bs.aggregate(on(BATCH.slice(0, 100)), totals, col("b") > 3))
    with pytest.raises(ValueError, match="given away"):
        reader.aggregate(totals)
    parts = [BATCH.slice(0, 1), BATCH.slice(1, 0), BATCH.slice(1)]
    reader = bs.BatchReader(pa.RecordBatchReader.from_batches(BATCH.schema, parts))
    assert here(reader.aggregate(totals, col("b") > 3)) == here(whole)
    with pytest.raises(ArithmeticError, match="row 0"):
        bs.BatchReader(pa.table(BATCH)).aggregate([(col("b") / (col("b") - col("b"))).sum()])


def test_streams_of_other_libraries_and_their_errors() -> None:
    table = pa.Table.from_batches([BATCH, BATCH.slice(5), BATCH.slice(0, 0)])
    got = pa.table(bs.BatchReader(table).filter(col("a") < 24))
    assert repr(got.to_pylist()) == repr(table.filter(pc.field("a") < 24).to_pylist())
    reader = bs.BatchReader(table).evaluate([col("u") + 250])
    with pytest.raises(ArithmeticError):
        list(reader)
    kept = pa.table(bs.BatchReader(table).evaluate([col("u") + 250], overflow="null"))
    assert kept.column(0).null_count > 0


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (col("a") == "text", "'text' is no value of Int32"),
        (col("v").like(b"%"), "like of Binary"),
        (col("s") == b"\xff", "x'ff' is no value of Utf8"),
        (col("a") > 0.5, "0.5 is no value of Int32"),
        (col("u") == 256, "256 is no value of UInt8"),
        (col("a") + col("l") > 0, "Int32 and Int64; cast one"),
        (col("a") & col("t"), "Int32, not Boolean"),
        (col("a") == Decimal("0.5"), r"Int32 and Decimal128\(1, 1\); cast one"),
        (bs.if_else(col("t"), col("d"), Decimal("0.055")) > 0, r"Decimal128\(15, 2\) and Decimal128\(3, 3\)"),
        (col("day") > "1994-13-01", "'1994-13-01' is no value of Date32"),
        (col("day") > lit("1994-01-01", "Utf8"), "Date32 and Utf8; cast one"),
        (col("day") + 1 > "1994-01-01", "1 is no value of Date32"),
        (col("day") + timedelta(hours=1) > "1994-01-01", "no value of Date32 is so much later"),
        (col("day") + col("when") > "1994-01-01", r"Date32 and Timestamp\(µs\); cast one"),
        (col("a").is_nan(), "no value of Int32 is NaN"),
        (col("d") // 2 > 0, r"quotients of Decimal128\(15, 2\) are not rounded down"),
        (abs(col("t")), "Boolean has no negative values"),
        (col("s") ** 2 > 0, "no arithmetic of Utf8"),
        (lit(None), "a null without a type"),
        (col("a"), "a: Int32, not Boolean"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_said_at_once(expr: bs.Expr, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bs.filter(BATCH, expr)


def test_what_grows_without_end_is_refused(on: Place) -> None:
    for grow in [lambda x: x + 1, lambda x: x * x, lambda x: x.between(x, x), lambda x: x.is_null()]:
        expr = col("a")
        with pytest.raises(ValueError, match="more than"):
            for _ in range(1000):
                expr = grow(expr)
        with pytest.raises(ValueError):
            bs.evaluate(on(BATCH), [grow(expr)])
    most = reduce(operator.or_, (col("b") == i for i in range(2, 190)))
    assert here(bs.evaluate(on(BATCH), [most])).column(0).equals(pc.greater_equal(C["b"], 2))


def test_filters_of_an_aggregation_are_bounded_and_its_names_replace_each_other() -> None:
    for grow in [lambda x: x.filter(col("b") > 1), lambda x: x.filter(col("b") > 1).alias("x")]:
        aggregation = col("b").sum()
        with pytest.raises(ValueError, match="more than"):
            for _ in range(1000):
                aggregation = grow(aggregation)
        del aggregation
    # Python frees what is nested on the stack, which a million names would overflow.
    named = bs.count_all()
    for i in range(300_000):
        named = named.alias(str(i))
    assert str(pickle.loads(pickle.dumps(named))) == str(named) == "299999"
    del named


def test_threads_share_expressions() -> None:
    expr, failures = (col("a") * 2 + 1).sum(), []

    def work() -> None:
        for _ in range(20):
            got = pa.record_batch(bs.aggregate(BATCH, [expr])).column(0)[0].as_py()
            if got != 2 * pc.sum(C["a"]).as_py() + pc.count(C["a"]).as_py():
                failures.append(got)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
