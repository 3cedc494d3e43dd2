"""Plots the bench's times.csv: for each query the median of each engine, relative to DataFusion alone on
the same source. Needs matplotlib: `python plot.py times.csv times.svg`."""

import collections
import csv
import statistics
import sys

try:
    import matplotlib
except ImportError:
    sys.exit(f"this Python has no matplotlib: {sys.executable}")

matplotlib.use("svg")
import matplotlib.pyplot as plt

SOURCES = ["memory", "parquet"]
ENGINES = ["again", "bowstring", "duckdb", "polars"]
NAMES = {"again": "DataFusion again (noise)", "bowstring": "with bowstring", "duckdb": "DuckDB", "polars": "polars"}
COLOURS = {"again": "#b0b0b0", "bowstring": "#1f6f8b", "duckdb": "#d9a441", "polars": "#8a5a9e"}


def read(path):
    medians = collections.defaultdict(dict)
    with open(path, newline="") as file:
        for source, query, engine, _, _, rounds in list(csv.reader(file))[1:]:
            medians[source, engine][int(query)] = statistics.median(map(float, rounds.split()))
    return medians


def draw(medians, path):
    matplotlib.rcParams["svg.hashsalt"] = "tpch"  # the same times give the same file
    figure, axes = plt.subplots(len(SOURCES), 1, figsize=(11, 7), layout="constrained")
    for axis, source in zip(axes, SOURCES):
        alone = medians[source, "datafusion"]
        queries = sorted(alone)
        engines = [engine for engine in ENGINES if medians.get((source, engine))]
        width = 0.8 / max(len(engines), 1)
        for place, engine in enumerate(engines):
            times = medians[source, engine]
            known = [(at, times[query] / alone[query]) for at, query in enumerate(queries) if query in times]
            left = [at - 0.4 + (place + 0.5) * width for at, _ in known]
            axis.bar(left, [height for _, height in known], width, label=NAMES[engine], color=COLOURS[engine])
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_yscale("log", base=2)
        axis.set_xticks(range(len(queries)), [f"Q{query}" for query in queries])
        axis.set_ylabel("time / DataFusion alone")
        axis.set_title({"memory": "tables in memory (DuckDB's own tables, polars' frames)", "parquet": "Parquet files"}[source])
        if engines:
            axis.legend(ncols=len(engines), fontsize="small", frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(read(sys.argv[1]), sys.argv[2])
