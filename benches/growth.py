#!/usr/bin/env python3
"""Draws how groups, joins and sorts grow with the rows, from the figures of a full run: `BOWSTRING_BENCH=full cargo bench
--bench groups --bench sort`, and peers/groups.py and peers/sort.py with the same setting. Prints the figures as a table.

    python benches/growth.py benches/results"""

import os
import re
import sys
from pathlib import Path

from figures import ROOT, collect
from pages import short
from plot import line_plot

WORKS = {
    "group": (r"group/cpu/int64/(\d+)/(\d+)/no-nulls/1", 100, "Sums by a key, a group for 100 rows"),
    "join": (r"join/cpu/int64/(\d+)/(\d+)/no-nulls/3", 10, "A join with a tenth as many unique keys"),
    "sort": (r"sort/cpu/int64/(\d+)/(all)/no-nulls/1", None, "Sorts of Int64 to row numbers"),
}
PEERS = ["bowstring", "arrow-rs", "polars", "pyarrow", "duckdb"]


def growth(benches, pattern, part):
    """The seconds of everybody, by the number of rows."""
    found = {}
    for bench in benches.values():
        named = re.fullmatch(pattern, bench.id)
        if named and int(named[1]) >= 100_000 and (part is None or int(named[2]) == int(named[1]) // part):
            found[int(named[1])] = bench.seconds
    return dict(sorted(found.items()))


def main():
    home = os.environ.get("CRITERION_HOME", Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "criterion")
    benches, _, _ = collect(Path(home), 24)
    for work, (pattern, part, title) in WORKS.items():
        found = growth(benches, pattern, part)
        if len(found) < 3:
            sys.exit(f"{work}: {len(found)} sizes; run the benches with BOWSTRING_BENCH=full")
        series = []
        print(f"| {work}: rows | " + " | ".join(PEERS) + " |\n| --: |" + " --: |" * len(PEERS))
        for rows, seconds in found.items():
            times = [f"{seconds[who] * 1e3:.3g}" if who in seconds else "" for who in PEERS]
            print(f"| {rows:,} | " + " | ".join(times) + " |")
        for who in PEERS:
            points = [(rows, rows / seconds[who] / 1e6) for rows, seconds in found.items() if who in seconds]
            if points:
                series.append((who, False, points))
        ticks = [(rows, short(rows)) for rows in found]
        picture = line_plot(title, "rows", "million rows a second", ticks, series, log=True)
        (Path(sys.argv[1]) / f"cpu-growth-{work}.svg").write_text(picture)


if __name__ == "__main__":
    main()
