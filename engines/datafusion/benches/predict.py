#!/usr/bin/env python3
"""Predicts the device time of TPC-H's queries, from the counts of `counts.rs`, ptx/STATIC.md and EXECUTED.md. No GPU runs.

    cargo bench --workspace --bench counts -- --scale 0.05 > counts.tsv
    python3 datafusion/benches/predict.py counts.tsv 0.05 > ../benches/results/engines-predictions.md

The model is that of benches/predict.py, launch by launch. Counts grow with the scale, except those of launches by a single
wave, which work on totals or on tables of a few rows.
"""

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benches"))

import predict  # noqa: E402

# An H100 with HBM3: nine tenths of 3.35 TB/s.
H100 = {kind: replace(given, copy=3.0e12) for kind, given in [("expected", predict.EXPECTED), ("worst", predict.WORST)]}
PCIE = 50e9  # bytes a second, of PCIe 5 with 16 lanes
BATCH = 1 << 24  # rows that are uploaded together
LINEITEM = 6_001_215  # rows at scale 1

HEAD = """# Predicted device times of TPC-H's queries on an H100

**Predictions: no GPU has run a query.** The shipped PTX was interpreted under all 22 queries as DataFusion runs them with our
operators, at scale {scale} (`cargo bench --workspace --bench counts` in `engines/`), and its counts were made times by the model
of [benches/predict.py](../predict.py): {processors} processors, {clock:.3f} GHz, {copy:.1f} TB/s, {launch:.0f} µs a launch, {wait:.0f} µs
whenever the host looks. Rows arrive in batches of {batch:,}.

- *cached*: hash tables and rows that are found by a key stay in the caches. *not cached*: each access is to memory, 64 bytes at
  a time, and all assumptions are pessimistic. At scale 10 most tables of a build side fit the L2 cache (50 MB); at 100 few do.
- *upload*: the bytes that go up, once, over PCIe 5 at {pcie:.0f} GB/s. Tables that are on the device cost nothing.
- *looks*: how often the host waits for a number at scale {scale}; more batches look more often.

| query | launches | looks | scale 10, cached, ms | not cached, ms | upload, ms | scale 100, cached, ms | not cached, ms | upload, ms |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |
"""

FOOT = """
## What dominates

{largest}

The first counts, on 28 November 2026, said 52.9 ms for query 13, of which `text_like` had 44.7, and 291 ms for all: it read a byte at
a time. `text_pieces` has taken its place. Before programs kept their values in registers (30 November), the
counts said 236 ms for all, and 31.4 ms for query 1, of which `program_b16` had 13.6.

## Published figures of others

None is of the same machine, and all are measured: four GB200 ran Sirius' queries at scale 1000 in 20.7 s (sirius#1194), and one
GH200 was 7 times as fast as DuckDB at scale 100 and equal rental cost (arXiv 2508.04701). With Velox and cuDF, 85 % of the time
at scale 100 was the scan (VeloxCon 2025); scans are not in this table.
"""


def time(launches, entries, factor, batches, waits, given, cached):
    """Seconds of a query's launches, when there are `factor` times as many rows in so many batches."""
    total = waits * batches * given.wait
    for entry, count, waves, issued, asked, touched, loads, again in launches:
        of = entries[entry]
        count, one_wave = count * batches, waves <= count
        more = 1 if one_wave else factor
        rounds = sum(n / predict.in_flight(of["flights"], width) for width, n in loads.items()) / waves
        again, of_wave = again / waves, issued * of["ratio"] / waves
        if one_wave:
            total += count * (given.launch + predict.life_of(rounds, again, 0, given))
            continue
        waves, touched, asked = waves * more, touched * more, asked * more
        moved = touched if cached else touched + 2 * max(asked - touched, 0)
        life = predict.life_of(rounds, again, of_wave, given)
        each = predict.limits_of(of, waves, life, of_wave, moved, asked, given)
        total += predict.together(each, given) + count * (given.launch + life / 2)
    return total


def largest(queries, entries, factor):
    """The entries that take most time of the longest queries."""
    alone = lambda launch: time([launch], entries, factor, 1, 0, H100["expected"], True) * 1e3
    lines = []
    by_time = sorted(queries, key=lambda number: -sum(map(alone, queries[number])))
    for number in by_time[:5]:
        first = sorted(queries[number], key=alone, reverse=True)[:3]
        lines.append(f"- Query {number}: " + ", ".join(f"`{launch[0]}` {alone(launch):.1f} ms" for launch in first) + ".")
    return "At scale 10, cached:\n\n" + "\n".join(lines)


def main():
    counts, scale = Path(sys.argv[1]), float(sys.argv[2])
    entries = predict.Tables().entries
    queries, waits, uploads = defaultdict(list), {}, {}
    for line in counts.read_text().splitlines()[1:]:
        number, family, entry, *cells = line.split("\t")
        if family == "-":
            waits[int(number)], uploads[int(number)] = int(cells[0]), int(cells[2])
            continue
        launches, waves, issued, asked, touched, *loads, again = map(int, cells)
        loads = {1 << i: n for i, n in enumerate(loads) if n}
        queries[int(number)].append((entry, launches, waves, issued, asked, touched, loads, again))
    given = H100["expected"]
    out = HEAD.format(
        scale=f"{scale:g}",
        processors=predict.PROCESSORS,
        clock=predict.CLOCK / 1e9,
        copy=given.copy / 1e12,
        launch=given.launch * 1e6,
        wait=given.wait * 1e6,
        batch=BATCH,
        pcie=PCIE / 1e9,
    )
    sums = [0.0] * 6
    for number, launches in sorted(queries.items()):
        cells = [str(number), str(sum(launch[1] for launch in launches)), str(waits[number])]
        found = []
        for target in (10, 100):
            factor, batches = target / scale, max(1, round(LINEITEM * target / BATCH))
            of = (launches, entries, factor, batches, waits[number])
            found += [time(*of, H100["expected"], True), time(*of, H100["worst"], False)]
            found.append(uploads[number] * factor / PCIE)
        sums = [sum + one for sum, one in zip(sums, found)]
        out += predict.line(cells + [f"{seconds * 1e3:.1f}" for seconds in found])
    out += predict.line(["sum", "", ""] + [f"{seconds * 1e3:.0f}" for seconds in sums])
    print(out + FOOT.format(largest=largest(queries, entries, 10 / scale)), end="")


if __name__ == "__main__":
    main()
