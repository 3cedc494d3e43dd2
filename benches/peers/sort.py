"""Runs the same shapes as benches/sort.rs in polars, pyarrow and DuckDB, which have threads of their own.

Needs polars, pyarrow and numpy; DuckDB runs too where it is installed. DuckDB has no indices, so it sorts a table of the
values with their row numbers into another table; with a limit, it returns the rows. Prints lines as cpu.py does.

    python benches/peers/sort.py sort/cpu/int32 > target/criterion/peers-sort.jsonl
"""

import gc

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from inputs import BATCH, GROWING, TINY, measure, values, wanted

try:
    import duckdb
except ImportError:
    duckdb = None

LARGE, FIRST = 5_000 if TINY else 10_000_000, 100


def by_duckdb(bench, table, order, limit=None):
    if duckdb is None:
        return
    engine = duckdb.connect()
    engine.register("given", table.append_column("row", pa.array(range(len(table)), pa.uint32())))
    engine.execute("CREATE TABLE t AS SELECT * FROM given")
    first = "" if limit is None else f" LIMIT {limit}"
    query = f"SELECT row FROM t ORDER BY {order}{first}"
    if limit is None:
        query = f"CREATE OR REPLACE TEMP TABLE sorted AS {query}"
    measure(bench, "duckdb", lambda: engine.execute(query).fetchall())


def one(name, rows, nulls, limit=None):
    which = "all" if limit is None else f"first-{limit}"
    bench = f"sort/cpu/{name}/{rows}/{which}/{'10%-null' if nulls else 'no-nulls'}/1"
    if not wanted(bench):
        return
    arrow = values(name, rows, nulls)
    polars = pl.Series(arrow).rechunk()
    if limit is None:
        measure(bench, "polars", lambda: polars.arg_sort())
        measure(bench, "pyarrow", lambda: pc.sort_indices(arrow, null_placement="at_start"))
    else:
        # polars has no indices of the first rows, so it returns the values.
        measure(bench, "polars", lambda: polars.bottom_k(limit))
        measure(bench, "pyarrow", lambda: pc.select_k_unstable(arrow, limit, [("", "ascending")]))
    by_duckdb(bench, pa.table({"x": arrow}), "x NULLS FIRST", limit)
    gc.collect()


def two(rows):
    bench = f"sort/cpu/int8-int64/{rows}/all/no-nulls/2"
    if not wanted(bench):
        return
    table = pa.table({"a": values("int8", rows, False), "b": values("int64", rows, False)})
    frame = pl.from_arrow(table).rechunk()
    by = pl.arg_sort_by("a", "b", descending=[True, False])
    measure(bench, "polars", lambda: frame.select(by))
    keys = [("a", "descending"), ("b", "ascending")]
    measure(bench, "pyarrow", lambda: pc.sort_indices(table, sort_keys=keys))
    by_duckdb(bench, table, "a DESC, b")
    gc.collect()


if __name__ == "__main__":
    for name in ["int32", "int64", "text12"]:
        for rows, nulls in [(LARGE, False), (BATCH, False), (BATCH, True)]:
            one(name, rows, nulls)
    one("int32", LARGE, True)
    one("utf8", LARGE, False)
    for name in ["int32", "text12"]:
        one(name, LARGE, False, FIRST)
    one("int32", BATCH, False, FIRST)
    for rows in [LARGE, BATCH]:
        two(rows)
    for rows in GROWING:
        one("int64", rows, False)
