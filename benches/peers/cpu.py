"""Runs the same shapes as benches/{filter,take,cast,null_count,expressions}.rs in polars and pyarrow, which
have threads of their own.

Needs polars, pyarrow and numpy; DuckDB and DataFusion run TPC-H's sixth query as well, where they are installed. Prints
one JSON object a line: the id of the Rust bench, who ran, the median in seconds. In a `.jsonl` file in criterion's folder,
`benches/report.py` finds them. Arguments are parts of ids: only benches whose id contains one of them run.

    python benches/peers/cpu.py filter/cpu/int32 > target/criterion/peers-cpu.jsonl
"""

import datetime
import gc
import os
import sys
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from inputs import BATCH, BETWEEN, HUGE, LARGE, TINY, bits, measure, values, wanted



def filters(name, rows, nulls, percents, spreads):
    prefix = f"filter/cpu/{name}/{rows}/"
    validity = "10%-null" if nulls else "no-nulls"
    ids = {(s, p): f"{prefix}{p}%-{s}/{validity}/1" for s in spreads for p in percents}
    if not any(wanted(bench) for bench in ids.values()):
        return
    arrow = values(name, rows, nulls)
    # polars has only views, so it is compared with both of our layouts.
    polars = pl.Series(arrow).rechunk()
    for (spread, percent), bench in ids.items():
        if not wanted(bench):
            continue
        keep = bits(rows, percent, spread, 1)
        arrow_keep, polars_keep = pa.array(keep), pl.Series(keep)
        measure(bench, "polars", lambda: polars.filter(polars_keep))
        try:
            measure(bench, "pyarrow", lambda: pc.filter(arrow, arrow_keep))
        except pa.ArrowNotImplementedError:
            pass
        gc.collect()


def takes(name, rows, nulls):
    validity = "10%-null" if nulls else "no-nulls"
    ids = {order: f"take/cpu/{name}/{rows}/{order}/{validity}/1" for order in ["random", "ascending"]}
    if not any(wanted(bench) for bench in ids.values()):
        return
    arrow = values(name, rows, nulls)
    polars = pl.Series(arrow).rechunk()
    for order, bench in ids.items():
        if not wanted(bench):
            continue
        random = np.random.default_rng(4)
        numbers = random.integers(0, rows, rows, dtype=np.uint32)
        if order == "ascending":
            numbers = np.arange(rows, dtype=np.uint32)
        null = ~bits(rows, 90, "uniform", 5) if nulls else None
        indices = pa.array(numbers, mask=null)
        polars_indices = pl.Series(indices).rechunk()
        measure(bench, "polars", lambda: polars.gather(polars_indices))
        try:
            measure(bench, "pyarrow", lambda: pc.take(arrow, indices))
        except pa.ArrowNotImplementedError:
            pass
        gc.collect()


CASTS = [
    ("int32", "int64", pl.Int64, pa.int64()),
    ("int64", "int32", pl.Int32, pa.int32()),
    ("float64", "int32", pl.Int32, pa.int32()),
    ("int32", "float64", pl.Float64, pa.float64()),
    ("float64", "float32", pl.Float32, pa.float32()),
    ("int64", "decimal12818,2", pl.Decimal(18, 2), pa.decimal128(18, 2)),
    ("date32", "timestampms", pl.Datetime("ms"), pa.timestamp("ms")),
    ("date32", "timestampµs", pl.Datetime("us"), pa.timestamp("us")),
]


def numbers(name, rows, nulls):
    """Numbers that fit every type that they are cast to."""
    random = np.random.default_rng(3)
    null = ~bits(rows, 90, "uniform", 2) if nulls else None
    whole = random.integers(-(2**31), 2**31, rows, dtype=np.int64)
    if name == "int32":
        return pa.array(whole.astype(np.int32), mask=null)
    if name == "int64":
        return pa.array(whole, mask=null)
    if name == "date32":
        return pa.array((whole % 50_000).astype(np.int32), mask=null).cast(pa.date32())
    return pa.array(whole * 0.5, mask=null)


# The names of benches/written.rs: the type that is formatted, in polars, pyarrow and DuckDB.
WRITTEN = [
    ("int64", pl.Int64, pa.int64(), "BIGINT"),
    ("float64", pl.Float64, pa.float64(), "DOUBLE"),
    ("date32", pl.Date, pa.date32(), "DATE"),
    ("timestampµs", pl.Datetime("us"), pa.timestamp("us"), "TIMESTAMP"),
    ("decimal12818,2", pl.Decimal(18, 2), pa.decimal128(18, 2), "DECIMAL(18, 2)"),
]


def written_values(name, rows):
    """Values with as many digits as the Rust bench's."""
    random = np.random.default_rng(7)
    whole = random.integers(0, 100_000_000, rows, dtype=np.int64)
    if name == "float64":
        return pa.array(whole / 100.0)
    if name == "date32":
        return pa.array((whole % 11_000 + 8_000).astype(np.int32)).cast(pa.date32())
    if name.startswith("timestamp"):
        return pa.array(whole * 10_000_031 + 700_000_000_000_000).cast(pa.timestamp("us"))
    if name.startswith("decimal"):
        words = np.stack([whole, np.zeros(rows, dtype=np.int64)], axis=1).copy()
        return pa.Array.from_buffers(pa.decimal128(18, 2), rows, [None, pa.py_buffer(words)])
    return pa.array(whole)


def polars_cast(series, to):
    if to == pl.Date:
        return series.str.to_date("%Y-%m-%d", strict=False)
    if isinstance(to, pl.Datetime):
        return series.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)
    return series.cast(to, strict=False)


def written(rows):
    for name, polars_type, arrow_type, sql in WRITTEN:
        there, back = (
            f"cast/cpu/{pair}/{rows}/all-safe/no-nulls/1" for pair in [f"{name}-utf8", f"utf8-{name}"]
        )
        if not wanted(there) and not wanted(back):
            continue
        values = written_values(name, rows)
        texts = values.cast(pa.string())
        if name.startswith("timestamp"):
            texts = pc.replace_substring(texts, " ", "T")
        for bench, given, to, arrow_to, sql_to in [
            (there, values, pl.String, pa.string(), "VARCHAR"),
            (back, texts, polars_type, arrow_type, sql),
        ]:
            series = pl.Series(given).rechunk()
            runs = {
                "polars": lambda: polars_cast(series, to),
                "pyarrow (strict)": lambda: pc.cast(given, arrow_to),
            }
            try:
                import duckdb

                connection = duckdb.connect()
                connection.register("given", pa.table({"x": given}))
                connection.execute("CREATE TABLE t AS SELECT x FROM given")
                runs["duckdb"] = lambda: connection.sql(f"SELECT TRY_CAST(x AS {sql_to}) FROM t").to_arrow_table()
            except ImportError:
                pass
            for who, run in runs.items():
                try:
                    measure(bench, who, run)
                except Exception as refusal:
                    print(f"{bench}: {who} does not: {refusal}"[:300], file=sys.stderr)
            gc.collect()


def casts(rows, nulls):
    for name, to, polars_type, arrow_type in CASTS:
        prefix = f"cast/cpu/{name}-{to}/{rows}/all-"
        validity = "10%-null" if nulls else "no-nulls"
        if not wanted(f"{prefix}safe/{validity}/1"):
            continue
        arrow = numbers(name, rows, nulls)
        polars = pl.Series(arrow).rechunk()
        measure(f"{prefix}safe/{validity}/1", "polars", lambda: polars.cast(polars_type, strict=False))
        # pyarrow cannot turn misfits into nulls: it either fails or does not check. Dropped fractions are
        # fine.
        options = pc.CastOptions(arrow_type, allow_float_truncate=True)
        run = lambda: pc.cast(arrow, options=options)
        try:
            measure(f"{prefix}safe/{validity}/1", "pyarrow (strict)", run)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            # A decimal type must have room for every integer of the source type, whatever the values.
            pass
        gc.collect()


def null_counts(rows):
    bench = f"null_count/cpu/bits/{rows}/offset-0/-/1"
    if not wanted(bench):
        return
    random = np.random.default_rng(2)
    bitmap = pa.py_buffer(random.integers(0, 2**64 - 1, rows // 64 + 1, dtype=np.uint64))
    values = pa.py_buffer(np.zeros(rows, dtype=np.int8))

    def count():
        # A new array for each run, because an array caches its count.
        return pa.Array.from_buffers(pa.int8(), rows, [bitmap, values]).null_count

    measure(bench, "pyarrow", count)


def decimals(unscaled):
    """Decimals with two decimal places."""
    halves = np.stack([unscaled, unscaled >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(unscaled), [None, pa.py_buffer(halves.tobytes())])


def compared(name, rows, nulls):
    """Numbers, half of which are negative."""
    random = np.random.default_rng(3)
    null = ~bits(rows, 90, "uniform", 2) if nulls else None
    whole = random.integers(-(2**31), 2**31, rows, dtype=np.int64)
    if name == "decimal128":
        made = decimals(whole)
        return made if null is None else pc.if_else(pa.array(null), pa.scalar(None, made.type), made)
    kinds = {"int32": np.int32, "int64": np.int64, "float64": np.float64}
    return pa.array(whole.astype(kinds[name]), mask=null)


def comparisons(rows, nulls):
    validity = "10%-null" if nulls else "no-nulls"
    for name in ["int32", "int64", "float64", "decimal128"]:
        bench = f"less_than/cpu/{name}/{rows}/50%/{validity}/1"
        if not wanted(bench):
            continue
        arrow = compared(name, rows, nulls)
        zero, polars = pa.scalar(Decimal(0) if name == "decimal128" else 0, arrow.type), pl.Series(arrow).rechunk()
        polars_zero = Decimal(0) if name == "decimal128" else 0
        measure(bench, "polars", lambda: polars < polars_zero)
        measure(bench, "pyarrow", lambda: pc.less(arrow, zero))
        gc.collect()


def three_terms(rows):
    bench = f"three_terms/cpu/int32-int64-float64/{rows}/-/10%-null/3"
    if not wanted(bench):
        return
    a, b, c = (compared(name, rows, True) for name in ["int32", "int64", "float64"])
    frame = pl.DataFrame({"a": pl.Series(a), "b": pl.Series(b), "c": pl.Series(c)}).rechunk()
    expr = (pl.col("a") > 0) & ((pl.col("b") < 1_000_000) | (pl.col("c") >= 0.5))
    measure(bench, "polars", lambda: frame.select(expr))
    million = pa.scalar(1_000_000, pa.int64())
    either = lambda: pc.or_kleene(pc.less(b, million), pc.greater_equal(c, 0.5))
    measure(bench, "pyarrow", lambda: pc.and_kleene(pc.greater(a, 0), either()))
    gc.collect()


def texts(name, rows):
    """Strings, half of which are short enough to be inline in a view."""
    tests = {
        "text_equal": (lambda a: a == "ship 07", lambda a: pc.equal(a, pa.scalar("ship 07", a.type))),
        "text_starts_with": (lambda a: a.str.starts_with("ship"), lambda a: pc.starts_with(a, "ship")),
        "text_ends_with": (lambda a: a.str.ends_with("mode 1"), lambda a: pc.ends_with(a, "mode 1")),
        "text_contains": (lambda a: a.str.contains("mode", literal=True), lambda a: pc.match_substring(a, "mode")),
        # polars has no LIKE, so it runs the equivalent regular expression.
        "text_like": (lambda a: a.str.contains("(?s)5.*mode .$"), lambda a: pc.match_like(a, "%5%mode _")),
    }
    tests = {f"{test}/cpu/{name}/{rows}/-/no-nulls/1": runs for test, runs in tests.items()}
    if not any(map(wanted, tests)):
        return
    numbers = np.random.default_rng(31).integers(0, 64, rows)
    each = [f"ship {i:02}" if i < 32 else f"rail {i} in the mode {i % 10}" for i in range(64)]
    arrow = pa.array(each).take(pa.array(numbers))
    polars = pl.Series(arrow).rechunk()
    if name == "utf8view":
        arrow = arrow.cast(pa.string_view())
    for bench, (by_polars, by_arrow) in tests.items():
        if not wanted(bench):
            continue
        if name == "utf8view":  # polars has no other layout
            measure(bench, "polars", lambda: by_polars(polars))
        try:
            by_arrow(arrow)
        except pa.ArrowNotImplementedError:
            continue
        measure(bench, "pyarrow", lambda: by_arrow(arrow))
    gc.collect()


def sixth_query(rows):
    """TPC-H's sixth query, on a table in each library's own format, with as many threads as processors."""
    bench = f"tpch_q6/cpu/decimal128-date32/{rows}/2%/no-nulls/4"
    if not wanted(bench):
        return
    random = np.random.default_rng(6)
    quantity = decimals(100 * random.integers(1, 51, rows))
    price, discount = decimals(random.integers(90_000, 10_495_000, rows)), decimals(random.integers(0, 11, rows))
    shipped = pa.array(random.integers(8036, 10562, rows).astype(np.int32)).cast(pa.date32())
    table = pa.table({"quantity": quantity, "price": price, "discount": discount, "shipped": shipped})
    first, after = datetime.date(1994, 1, 1), datetime.date(1995, 1, 1)
    five, seven, pieces = Decimal("0.05"), Decimal("0.07"), Decimal(24)

    # Its products have the scale of their factors, so the sum is not exact.
    frame, column = pl.from_arrow(table).rechunk(), pl.col
    kept = column("shipped").is_between(first, after, closed="left") & column("discount").is_between(five, seven)
    kept &= column("quantity") < pieces
    revenue = (column("price") * column("discount")).sum()
    measure(bench, "polars", lambda: frame.lazy().filter(kept).select(revenue).collect())

    def arrow():
        of = [(pc.greater_equal, shipped, first), (pc.less, shipped, after), (pc.greater_equal, discount, five)]
        of += [(pc.less_equal, discount, seven), (pc.less, quantity, pieces)]
        terms = [compare(values, pa.scalar(end, values.type)) for compare, values, end in of]
        mask = terms[0]
        for term in terms[1:]:
            mask = pc.and_kleene(mask, term)
        return pc.sum(pc.multiply(pc.filter(price, mask), pc.filter(discount, mask)))

    measure(bench, "pyarrow", arrow)
    query = (
        "select sum(price * discount) from lines where shipped >= date '1994-01-01' and shipped < date '1995-01-01' "
        "and discount between 0.05 and 0.07 and quantity < 24"
    )
    try:
        import duckdb

        engine = duckdb.connect()
        engine.register("given", table)
        engine.execute("create table lines as select * from given")
        measure(bench, "duckdb", lambda: engine.execute(query).fetchall())
    except ImportError:
        pass
    try:
        import datafusion

        context = datafusion.SessionContext(
            datafusion.SessionConfig().with_target_partitions(os.cpu_count() or 1)
        )
        each = -(-rows // (os.cpu_count() or 1))
        batches = [table.slice(at, each).combine_chunks().to_batches(8192) for at in range(0, rows, each)]
        context.register_record_batches("lines", batches)
        measure(bench, "datafusion", lambda: context.sql(query).collect())
    except ImportError:
        pass


def main():
    percents, spreads = [1, 10, 50, 90, 99], ["uniform", "clustered"]
    for name in ["int32", "int64"]:
        for nulls in [False, True]:
            filters(name, LARGE, nulls, percents, spreads)
    for name in ["utf8", "utf8view"]:
        filters(name, LARGE, False, [1, 50, 99], ["uniform"])
        filters(name, LARGE, False, [50], ["clustered"])
    for name in ["int8", "boolean"]:
        filters(name, LARGE, False, [50], ["uniform"])
    for rows in BETWEEN:
        filters("int32", rows, False, [50], ["uniform"])
        takes("int32", rows, False)
    for name in ["int32", "int64", "utf8", "utf8view"]:
        filters(name, BATCH, False, [1, 50, 99], ["uniform"])
    filters("int32", BATCH, True, [1, 50, 99], ["uniform"])
    for name in ["int32", "int64"]:
        for nulls in [False, True]:
            takes(name, LARGE, nulls)
    for name in ["utf8", "utf8view"]:
        takes(name, LARGE, False)
    for name in ["int32", "int64", "utf8", "utf8view"]:
        takes(name, BATCH, False)
    takes("int32", BATCH, True)
    for rows in [LARGE, BATCH]:
        casts(rows, False)
        casts(rows, True)
    for rows in [HUGE, LARGE, BATCH]:
        null_counts(rows)
    for rows in [LARGE, BATCH]:
        comparisons(rows, False)
        comparisons(rows, True)
        three_terms(rows)
        for name in ["utf8", "utf8view"]:
            texts(name, rows)
    for rows in [20_000 if TINY else 6_001_215, BATCH]:
        sixth_query(rows)
    for rows in [5000 if TINY else 1 << 22, BATCH]:
        written(rows)


if __name__ == "__main__":
    main()
