#!/usr/bin/env python3
"""Draws the picture of a report again from the figures in it, with three digits: `benches/redraw.py
benches/results/cpu-2-cores.md`. For pages that were written without matplotlib, and after a change to
the style."""

import re
import sys
from pathlib import Path

from report import DEVICES, Bench, Copies, picture

UNITS = {"s": 1, "ms": 1e3, "µs": 1e6, "ns": 1e9}
POWERS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}


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


def main():
    for path in map(Path, sys.argv[1:]):
        benches, _ = read(path.read_text())
        if not benches:
            sys.exit(f"{path}: no figures")
        if not picture(benches, path):
            sys.exit("drawing needs matplotlib: benches/requirements.txt")


if __name__ == "__main__":
    main()
