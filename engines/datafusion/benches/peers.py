"""Runs TPC-H's queries with DuckDB and polars on the Parquet files that the bench wrote, and on their own tables in
memory (DuckDB's native tables, polars' frames); prints one CSV line for each query, engine and source, as
benches/tpch/report.rs reads them. Needs duckdb and polars.

Each query of each engine runs in a process of its own, limited in memory and time: polars does not support
all of them, and some would not end. A query that an engine refuses or does not finish has no line, and a
reason on standard error.
"""

import argparse
import itertools
import multiprocessing
import os
import pathlib
import re
import resource
import sys
import time

TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]
SOURCES = ["memory", "parquet"]
QUERIES = pathlib.Path(__file__).resolve().parents[2] / "tpch" / "queries"


def duckdb_runner(source, data, tables, threads):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"set threads = {threads}")
    kind = {"memory": "table", "parquet": "view"}[source]
    for table in tables:
        connection.execute(f"create {kind} {table} as select * from read_parquet('{data}/{table}/*.parquet')")
    return lambda text: connection.sql(text).to_arrow_table().num_rows


def polars_runner(source, data, tables, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    read = {"memory": polars.read_parquet, "parquet": polars.scan_parquet}[source]
    frames = {table: read(f"{data}/{table}/*.parquet") for table in tables}
    context = polars.SQLContext(frames)
    return lambda text: context.execute(text).collect().height


RUNNERS = {"duckdb": duckdb_runner, "polars": polars_runner}


def measure(engine, source, data, threads, rounds, text, gigabytes, pipe):
    """Runs in the child process; sends (rows, milliseconds of each round) or the error."""
    resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))
    try:
        tables = [table for table in TABLES if re.search(rf"\b{table}\b", text)]
        run = RUNNERS[engine](source, data, tables, threads)
        times = []
        for round_ in range(rounds + 1):
            start = time.perf_counter()
            rows = run(text)
            if round_ > 0:
                times.append((time.perf_counter() - start) * 1e3)
        pipe.send((rows, times))
    except BaseException as error:  # polars turns panics into one that is no Exception
        pipe.send(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--queries", default=",".join(str(number) for number in range(1, 23)))
    parser.add_argument("--seconds", type=float, default=120, help="for all rounds of a query")
    parser.add_argument("--gigabytes", type=int, default=12, help="address space of a process")
    arguments = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    for number, source, engine in itertools.product(map(int, arguments.queries.split(",")), SOURCES, RUNNERS):
        text = (QUERIES / f"q{number:02}.sql").read_text()
        receiver, sender = processes.Pipe(duplex=False)
        limits = (arguments.threads, arguments.rounds, text, arguments.gigabytes)
        process = processes.Process(target=measure, args=(engine, source, str(arguments.data), *limits, sender))
        process.start()
        sender.close()
        try:
            result = receiver.recv() if receiver.poll(arguments.seconds) else "took too long"
        except EOFError:
            result = "the process died"
        process.kill()
        process.join()
        if isinstance(result, str):
            print(f"{engine}, query {number}, {source}: {result}", file=sys.stderr)
            continue
        rows, times = result
        print(f"{source},{number},{engine},{rows},0,{' '.join(f'{ms:.3f}' for ms in times)}", flush=True)


if __name__ == "__main__":
    main()
