"""Runs the same shapes as benches/groups.rs in polars, pyarrow and DuckDB, which have threads of their own.

Needs polars, pyarrow and numpy; DuckDB runs too where it is installed. DuckDB reads tables of its own and writes the result
into another. polars and pyarrow keep no order of groups, and nor does DuckDB. Prints lines as cpu.py does.

    python benches/peers/groups.py group/cpu/int64 > target/criterion/peers-groups.jsonl
"""

import gc

import numpy as np
import polars as pl
import pyarrow as pa
from inputs import BATCH, GROWING, TINY, measure, wanted

try:
    import duckdb
except ImportError:
    duckdb = None

LARGE = 5_000 if TINY else 10_000_000


def by_duckdb(bench, tables, query):
    if duckdb is None:
        return
    engine = duckdb.connect()
    for name, table in tables.items():
        engine.register(f"given_{name}", table)
        engine.execute(f"CREATE TABLE {name} AS SELECT * FROM given_{name}")
    measure(bench, "duckdb", lambda: engine.execute(f"CREATE OR REPLACE TEMP TABLE made AS {query}").fetchall())


def grouped(name, rows, limit):
    bench = f"group/cpu/{name}/{rows}/{limit}/no-nulls/1"
    if not wanted(bench):
        return
    random = np.random.default_rng(5)
    if name == "letters":
        columns = {"k": pa.array(random.choice(["A", "N", "R"], rows)), "l": pa.array(random.choice(["F", "O"], rows))}
    else:
        keys = random.integers(0, limit, rows)
        columns = {"k": pa.array(keys) if name == "int64" else pa.array(np.char.mod("key %08d", keys))}
    table = pa.table(columns | {"x": random.integers(0, 2**40, rows)})
    frame, keys = pl.from_arrow(table).rechunk(), list(columns)
    measure(bench, "polars", lambda: frame.group_by(keys).agg(pl.col("x").sum()))
    measure(bench, "pyarrow", lambda: table.group_by(keys).aggregate([("x", "sum")]))
    by_duckdb(bench, {"t": table}, f"SELECT {', '.join(keys)}, sum(x) FROM t GROUP BY {', '.join(keys)}")
    gc.collect()


def joined(probed, built, apart=1):
    name = "join" if apart == 1 else "join_few"
    bench = f"{name}/cpu/int64/{probed}/{built}/no-nulls/3"
    if not wanted(bench):
        return
    random = np.random.default_rng(7)
    left = pa.table({"id": random.permutation(built) * apart, "y": random.integers(0, 2**40, built)})
    right = pa.table({"k": random.integers(0, built * apart, probed), "x": random.integers(0, 2**40, probed)})
    ours, theirs = pl.from_arrow(left).rechunk(), pl.from_arrow(right).rechunk()
    measure(bench, "polars", lambda: theirs.join(ours, left_on="k", right_on="id"))
    measure(bench, "pyarrow", lambda: right.join(left, keys="k", right_keys="id", join_type="inner"))
    by_duckdb(bench, {"l": left, "r": right}, "SELECT k, x, y FROM r JOIN l ON k = id")
    gc.collect()


if __name__ == "__main__":
    for rows, limit in [(LARGE, 100), (LARGE, LARGE // 100), (LARGE, LARGE), (BATCH, 100)]:
        for name in ["int64", "text"] + ["letters"] * (limit == 100):
            grouped(name, rows, limit)
    for shape in [(LARGE, LARGE // 10), (BATCH, 1000), (LARGE, LARGE // 100, 40), (BATCH, 100, 40)]:
        joined(*shape)
    for rows in GROWING:
        grouped("int64", rows, rows // 100)
        joined(rows, rows // 10)
