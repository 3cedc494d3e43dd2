#!/usr/bin/env python3
"""Draws the plots of reports again from the figures in them, with three digits: `benches/redraw.py
benches/results/cpu-2-cores.md`. For pages that were written without matplotlib, and after a change to
the style of plots. A page of a CPU also gets a plot of several works side by side,
`<page>-overview.svg`, which the README shows."""

import re
import sys
from pathlib import Path

from plot import bar_plot
from report import DEVICES, Bench, Copies, draw

UNITS = {"s": 1, "ms": 1e3, "µs": 1e6, "ns": 1e9}
POWERS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}
WORKS = {
    "filter/cpu/int32/16777216/50%-uniform/no-nulls/1": "filter Int32,\nhalf of the rows",
    "filter/cpu/int32/16777216/1%-uniform/no-nulls/1": "filter Int32,\n1 % of the rows",
    "filter/cpu/utf8/16777216/50%-uniform/no-nulls/1": "filter Utf8,\nhalf of the rows",
    "take/cpu/int32/16777216/random/no-nulls/1": "take Int32\nat random",
    "cast/cpu/int64-int32/16777216/all-safe/no-nulls/1": "cast Int64 to\nInt32, checked",
    "cast/cpu/float64-int32/16777216/all-safe/10%-null/1": "cast Float64 to\nInt32 with nulls",
}


def seconds(shown):
    """Parses the output of `report.duration`."""
    if shown == "-":
        return None
    value, unit = shown.replace(",", "").split()
    return float(value) / UNITS[unit]


def read(page):
    """Every bench of a page, and its rates of copies."""
    benches, heading, columns = {}, None, None
    for line in page.splitlines():
        if found := re.fullmatch(r"## (\w+) on (\w+)", line):
            device = {name: key for key, name in DEVICES.items()}.get(found[2])
            heading, columns = (found[1], device) if device else None, None
        elif found := re.match(r"Copies on (\w+), GB/s[^:]*: (.*)\.$", line):
            device = {name: key for key, name in DEVICES.items()}[found[1]]
            for size, power, rate in re.findall(r"([\d,]+) ?(\w*?)B ([\d.,]+)(?=, |$)", found[2]):
                moved = int(size.replace(",", "")) << POWERS[power]
                bench = Bench(f"copy/{device}/bytes/{moved}/-/-/1")
                bench.bytes, bench.seconds = moved, {"copy": moved / (float(rate.replace(",", "")) * 1e9)}
                benches[bench.id] = bench
        elif heading and line.startswith("| type/rows"):
            columns = [cell.strip() for cell in line.strip("|").split("|")]
        elif columns and line.startswith("| ") and not line.startswith("| ---"):
            row = dict(zip(columns, (cell.strip() for cell in line.strip("|").split("|"))))
            bench = Bench("/".join([*heading, row.pop("type/rows/kept/validity/columns")]))
            bench.row = row
            benches[bench.id] = bench
    copies = Copies(benches)
    for bench in benches.values():
        row = getattr(bench, "row", None)
        if row:
            known = {"ours": "bowstring", "wall": "bowstring-wall"}
            figures = ["GB/s", "of copy", "of copy, sectors", "best peer / ours"]
            bench.seconds = {known.get(who, who): seconds(shown) for who, shown in row.items() if who not in figures}
            bench.seconds = {who: time for who, time in bench.seconds.items() if time}
            bench.bytes = float(row["GB/s"].replace(",", "")) * 1e9 * bench.ours()
            share = row.get("of copy, sectors", "-")
            # An unchanged share means unchanged bytes, and the rate has more digits.
            if share not in ("-", row["of copy"]):
                bench.sectors = float(share) * copies.near(bench.device, bench.bytes) * bench.ours()
    return benches, copies


def overview(benches, title):
    """Several works side by side, if the page has all of them."""
    if not WORKS.keys() <= benches.keys():
        return None
    works = []
    for name, label in WORKS.items():
        times = benches[name].seconds
        works.append((label, {who.partition(" (")[0]: time / times["bowstring"] for who, time in times.items()}))
    return bar_plot(title, "time, as a multiple of bowstring's; shorter is better", works)


def main():
    for path in map(Path, sys.argv[1:]):
        page = path.read_text()
        benches, copies = read(page)
        measured = [bench for bench in benches.values() if bench.operation != "copy"]
        if not measured:
            sys.exit(f"{path}: no figures")
        for _, name, svg in draw(measured, copies, path.stem):
            # A page links to its plots: none is added, and none left out.
            if f"({name})" not in page:
                sys.exit(f"{path} does not link to {name}")
            (path.parent / name).write_text(svg)
        cpu = re.search(r"^- CPU: (.+?),", page, re.M)
        drawn = overview(benches, f"16.8 million rows on {cpu[1]}" if cpu else "16.8 million rows")
        if drawn:
            (path.parent / f"{path.stem}-overview.svg").write_text(drawn)


if __name__ == "__main__":
    main()
