#!/usr/bin/env python3
"""Predicts what the GPU benches will show on an H200, from ptx/COSTS.md, EXECUTED.md and STATIC.md. Nothing here is measured.

    python3 benches/predict.py           writes benches/results/h200-predictions.md, and .tsv for programs
    python3 benches/predict.py --check   fails where that is not what the tables give now

The model, a launch at a time: its time is a soft maximum of four limits, and launches follow each other.

- memory: the sectors that it touches, at the rate of a copy;
- caches: the sectors that its waves ask for, at 64 bytes a clock of each processor;
- issue: the instructions of the hardware that its waves issue, at an achievable part of four schedulers' one a clock;
- latency: a wave lives for its rounds of loads, each as long as memory takes, and for its instructions one after the other;
  as many waves live at once as its registers let. Rounds are its loads over those that the code has in flight. A load of one
  sector that the launch has loaded before takes as long as the first-level cache does.

Added to that: launches, the end of the last waves, and what the device waits while the host looks at a total.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from goals import RELATIONAL, RUNS, TARGETS
from named import bench
from predicted import HEAD, PUBLIC

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "benches/results/h200-predictions.md"
# The same predictions for programs: for the doctor, and for tests/archive.
TABLE = ROOT / "doctor/src/h200-predictions.tsv"
COUNTED = 98_304  # rows in COSTS.md
PROCESSORS, SCHEDULERS, CLOCK = 132, 4, 1.755e9


@dataclass
class Assumptions:
    copy: float = 4.3e12  # bytes read and written a second: 0.9 of the data sheet's 4.8 TB/s
    achieved: float = 0.65  # of the schedulers' slots
    latency: float = 0.8e-6  # of memory under load
    cached: float = 40.0  # clocks, of the first-level cache
    dependent: float = 4.0  # clocks from an instruction to the next of its wave
    launch: float = 2e-6
    wait: float = 12e-6  # device idle while the host learns a total and launches what follows
    softness: float = 4.0


EXPECTED = Assumptions()
BEST = Assumptions(achieved=0.8, latency=0.6e-6, dependent=3.0, launch=1.5e-6, wait=8e-6, softness=8.0)
WORST = Assumptions(achieved=0.5, latency=1.0e-6, dependent=6.0, launch=3e-6, wait=20e-6, softness=3.0)


def rows_of(text, head):
    """The rows of the table whose header begins with this text, as cells."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(head):
            break
    else:
        sys.exit(f"no table {head}")
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def at_size(name, cells):
    """The counts of a launch, for each row, where there are as many rows as predictions are for."""
    entry, times, a_wave, loads, *counts = cells
    for operation, (prefix, counted, run) in RUNS.items():
        if name.startswith(operation) and entry.startswith(prefix):
            share = counted / run
            # A launch by one wave is one whatever its rows are.
            a_wave = a_wave if int(a_wave) >= COUNTED else str(round(int(a_wave) / share))
            counts = [str(float(count) * share) for count in counts]
    return [entry, times, a_wave, loads, *counts]


class Tables:
    # For an operation and an entry, the hardware's instructions for each of the PTX that is executed.
    executed = {}

    def __init__(self):
        names = ("COSTS.md", "STATIC.md", "EXECUTED.md")
        costs, static, executed = ((ROOT / "ptx" / name).read_text() for name in names)
        self.must = {cells[0]: float(cells[4]) for cells in rows_of(costs, "| operation | launches | instructions")}
        self.launches, self.entries = {}, {}
        by_entry = list(rows_of(costs, "| operation | entry"))
        for name, *cells in by_entry:
            self.launches.setdefault(name, []).append(at_size(name, cells))
        self.batches = list(rows_of(costs, "| batch"))
        for cells in rows_of(static, "| entry"):
            self.entries[cells[0]] = {"warps": int(cells[7]), "flights": cells[10], "ratio": float(cells[12])}
        rows = list(rows_of(executed, "| operation | entry"))
        if [row[:3] for row in rows] != [[name, entry, cells[4]] for name, entry, *cells in by_entry]:
            sys.exit("ptx/EXECUTED.md is stale: tools/bless costs executed")
        of_entry, self.executed = {}, {}
        for name, entry, ptx, sass in rows:
            self.executed[name, entry] = float(sass) / float(ptx)
            of_entry.setdefault(entry, []).append((float(sass), float(ptx)))
        # The entry's ratio is for operations that were not counted there, as queries are not.
        for entry, each in of_entry.items():
            self.entries[entry]["ratio"] = sum(sass for sass, _ in each) / sum(ptx for _, ptx in each)


def in_flight(flights, width):
    """The largest number of loads of a width that a lane has in flight."""
    found = [int(n) for kind in flights.split(", ") for n, of in re.findall(r"(\d+)x(\d+)", kind) if int(of) == width]
    return max(found, default=1)


@dataclass
class Prediction:
    seconds: float
    limits: dict
    moved: float
    slots: float

    def limit(self):
        return max(self.limits, key=self.limits.get)


def limits_of(of, waves, life, of_wave, touched, asked, given):
    """Seconds that each limit allows some launches of an entry, which touch and ask for so many bytes in all."""
    return {
        "memory": touched / given.copy,
        "caches": asked / (PROCESSORS * 64 * CLOCK),
        "issue": waves * of_wave / (PROCESSORS * SCHEDULERS * CLOCK * given.achieved),
        "latency": max(waves / (PROCESSORS * of["warps"]), 1.0) * life,
    }


def life_of(rounds, again, of_wave, given):
    """Seconds that a wave lives: its rounds of loads, its loads from the cache, and its instructions one after the other."""
    return rounds * given.latency + (again * given.cached + of_wave * given.dependent) / CLOCK


def together(each, given):
    """The soft maximum of the limits."""
    return sum(seconds**given.softness for seconds in each.values()) ** (1 / given.softness)


def predict(tables, name, rows, waits, extra, given):
    """`extra`: bytes for each row that memory moves beyond those touched, if each access is to a sector of
    its own."""
    limits = dict.fromkeys(["memory", "caches", "issue", "latency", "launches and waits"], 0.0)
    total = moved = slots = 0.0
    launches = tables.launches[name]
    beyond = [max(float(asked) - float(touched), 0.0) for *_, touched, asked in launches]
    for (entry, times, a_wave, loads, _, issued, touched, asked), apart in zip(launches, beyond):
        of, times, a_wave = tables.entries[entry], int(times), int(a_wave)
        sass = float(issued) * tables.executed.get((name, entry), of["ratio"])
        touched = float(touched) + extra * apart / (sum(beyond) or 1)
        moved, slots = moved + touched, slots + sass
        # The counts cover all launches of an entry; one wave has its share.
        widths = re.findall(r"([\d.]+)x(\d+)", loads)
        again = float((re.search(r"([\d.]+) again", loads) or [0, 0])[1])
        rounds = sum(float(n) / in_flight(of["flights"], int(width)) for n, width in widths)
        overhead = times * given.launch
        if a_wave >= COUNTED:
            # A single wave did the work: at any size the cost is a few waves and their round trips.
            overhead += times * life_of(rounds, again, 0, given)
            limits["launches and waits"] += overhead
            total += overhead
            continue
        waves = rows / a_wave * times
        of_wave = sass * a_wave / times / 32
        life = life_of(rounds, again, of_wave, given)
        each = limits_of(of, waves, life, of_wave, touched * rows, float(asked) * rows, given)
        for kind, seconds in each.items():
            limits[kind] += seconds
        overhead += times * life / 2
        limits["launches and waits"] += overhead
        total += together(each, given) + overhead
    limits["launches and waits"] += waits * given.wait
    return Prediction(total + waits * given.wait, limits, moved, slots)


WIDTHS = {"Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8}
# The bytes that memory moves for a random string of 0 to 24 bytes beyond the string: its sectors, on average
# 1.31 of them.
TEXT, TEXT_SECTORS = 12.0, 24 / 25 * (1 + 11.5 / 32) * 32


def bound(tables, name):
    """Bytes for each row that memory must move, in whole sectors if rows are left out or taken at random."""
    if found := re.match(r"filter (Int\d+), (\d+) % (uniform|in runs of \d+)(, nulls)?$", name):
        width, p = WIDTHS[found[1]], float(found[2]) / 100
        if found[3] == "uniform":
            read = width * (1 - (1 - p) ** (32 / width))
        else:
            # Runs are long, so the bytes read are the bytes kept; the counted mask kept this share.
            p = (tables.must[name] - 0.125) / (2 * width)
            read = width * p
        return 0.125 + read + width * p + ((1 + p) / 8 if found[4] else 0)
    if name.startswith("filter Boolean"):
        return 0.25 + 0.5 / 8
    if name.startswith("filter Utf8"):
        # All offsets are read; eleven twelfths of the text's sectors contain a kept row.
        return 0.125 + 4 + TEXT * 11 / 12 + 0.5 * (4 + TEXT)
    if found := re.match(r"take (Int\d+), (ascending|random)$", name):
        width = WIDTHS[found[1]]
        return 4 + width + (32 if found[2] == "random" else width)
    if name.startswith("take Utf8"):
        return 4 + 32 * 9 / 8 + TEXT_SECTORS + 4 + TEXT
    return 0.125 if name == "null_count" else tables.must[name]


def scattered(name):
    """Bytes for each random row that memory moves beyond the counts, which come from a table that fits a
    cache."""
    if found := re.match(r"take (Int\d+), random", name):
        return 32 - WIDTHS[found[1]]
    if name.startswith("take Utf8, random"):
        return 32 * 9 / 8 - 4 + TEXT_SECTORS - TEXT
    return 0.0


def waits(name):
    """The number of times that the device waits while the host reads a result. Bits are filtered before
    that."""
    if name.startswith("filter Boolean"):
        return 0
    looking = ("filter", "take Utf8", "sum", "sort_to_indices", "pairs")
    return 1 if name.startswith(looking) else 0


class Row:
    def __init__(self, tables, name, rows, must=None, extra=None):
        self.name, self.rows, self.bound = name, rows, must or bound(tables, name)
        given = (rows, waits(name), scattered(name) if extra is None else extra)
        self.expected, self.best, self.worst = (predict(tables, name, *given, of) for of in (EXPECTED, BEST, WORST))
        share = lambda found, of: self.bound * rows / of.copy / found.seconds
        self.share = share(self.expected, EXPECTED)
        self.most, self.least = share(self.best, BEST), share(self.worst, WORST)

    def verdict(self, target):
        if self.least >= target:
            return "met"
        if self.share >= target:
            return "met, if barely"
        return "missed, unless all goes well" if self.most >= target else "missed"

    def cells(self, work, target):
        found, micro = self.expected, lambda seconds: f"{seconds * 1e6:.0f}"
        limits = [micro(found.limits[kind]) for kind in ("memory", "caches", "issue", "latency", "launches and waits")]
        return [
            work,
            self.name,
            f"{self.bound:.2f}",
            f"{found.moved:.2f}",
            f"{found.slots:.1f}",
            *limits,
            micro(found.seconds),
            found.limit(),
            f"{self.share:.2f} ({self.least:.2f}–{self.most:.2f})",
            f"{target:.2f}",
            self.verdict(target),
        ]


def line(cells):
    return "| " + " | ".join(cells) + " |\n"


def peers(tables, rows):
    """The bytes that a peer must move at least, and the share of a copy's rate at which it ties with the
    target."""
    out = (
        "\n## Against the peers\n\n"
        "Nothing of theirs was run either. *moves*: bytes a row that they cannot do without: CUB's Flagged reads a byte of\n"
        "flag and every row; a boolean index of torch's also writes the 8-byte places of the kept rows and reads them again;\n"
        "gathers read and write what ours do. *at 0.8*: their time over ours as predicted, if they move that at 0.8 of a\n"
        "copy's rate. *needs*: the share of a copy's rate that they may reach at most, or the target is missed.\n\n"
        "| work | peer | moves | at 0.8 | target | needs |\n| --- | --- | --: | --: | --: | --: |\n"
    )
    for row in rows:
        plan = []
        if found := re.match(r"filter (Int\d+), (\d+) % (uniform|in runs of 1024)$", row.name):
            width, p = WIDTHS[found[1]], float(found[2]) / 100
            target = 2.0 if found[3] != "uniform" else 2.5 if p <= 0.1 else 1.5
            plan.append(("CUB Flagged, byte flags", 1 + width + p * width, target))
            if p >= 0.5 and found[3] == "uniform" and width >= 4:
                plan.append(("torch, boolean index", 2 + 16 * p + 2 * p * width + (1 - p) * width * 0.9, 1.5))
        elif row.name == "take Int32, ascending":
            plan.append(("torch index_select", row.bound, 1.2))
        elif re.match(r"take Int\d+, random$", row.name):
            plan.append(("torch index_select", row.bound, 1.1))
        elif re.match(r"cast (Int64 to Int32|Float64 to Float32)", row.name):
            plan.append(("torch, unchecked, no nulls", row.bound - 0.25, 1.0))
        for who, moves, target in plan:
            at = lambda share: moves * row.rows / (share * EXPECTED.copy) / row.expected.seconds
            most = at(1) / target
            needs = f"≤ {most:.2f}" if most < 1 else "any"
            out += line([row.name, who, f"{moves:.2f}", f"{at(0.8):.1f}×", f"{target:.1f}×", needs])
    return out


CALLS = {"copy_in": 3.0, "copy_out": 3.0, "fill": 2.5, "launch": 2.5, "record": 0.8, "wait": 0.8, "synchronise_event": 8.0}


def batches(tables):
    """Time on the wall: the driver's calls one after the other, the device's own work, our code in between."""
    out = (
        "\n## Batches\n\n"
        "Time on the wall, from the driver's calls that `COSTS.md` counts: "
        + ", ".join(f"{name} {micro:g} µs" for name, micro in CALLS.items())
        + ";\nour own code 5 µs and 0.3 µs a column; 3 µs for each launch that the host waits behind. All of these are guesses.\n\n"
        "| batch | calls | launches | wall, µs | target |\n| --- | --: | --: | --: | --- |\n"
    )
    for name, launches, host_waits, calls, of in tables.batches:
        made = {call: int(n) for n, call in re.findall(r"(\d+) (\w+)", of)}
        columns = int(name.split()[0])
        micro = sum(CALLS.get(call, 2.5) * n for call, n in made.items()) + 5 + 0.3 * columns + 3 * int(launches)
        target = ""
        if columns == 10:
            target = f"≤ 60 µs: {'met' if micro <= 60 else 'missed'}"
        if columns == 100:
            target = "launches by distinct widths: met" if int(launches) <= 8 else "launches by distinct widths: missed"
        out += line([name, calls, launches, f"{micro:.0f}", target])
    return out


def table(rows):
    """One line for each prediction: its name, the bench, rows, bytes for each row that must move, seconds."""
    out = "work\tbench\trows\tbytes\texpected\tbest\tworst\n"
    for row in rows:
        seconds = (row.expected.seconds, row.best.seconds, row.worst.seconds)
        cells = [row.name, bench(row.name, row.rows), str(row.rows), f"{row.bound:.3f}", *(f"{s:.4e}" for s in seconds)]
        out += "\t".join(cells) + "\n"
    return out


def documents():
    """The contents of each output file."""
    tables = Tables()
    out = HEAD.format(
        copy=EXPECTED.copy / 1e12,
        processors=PROCESSORS,
        schedulers=SCHEDULERS,
        clock=CLOCK / 1e9,
        achieved=EXPECTED.achieved,
        latency=EXPECTED.latency * 1e6,
        dependent=EXPECTED.dependent,
        launch=EXPECTED.launch * 1e6,
        wait=EXPECTED.wait * 1e6,
        cached=EXPECTED.cached,
        worst=WORST,
        best=BEST,
        worst_latency=WORST.latency * 1e6,
        best_latency=BEST.latency * 1e6,
    )
    all_rows = {}
    for work, counted, rows, target in TARGETS:
        names = [name for name in tables.launches if re.match(counted, name)]
        if not names:
            sys.exit(f"nothing counted for {work}")
        for name in names:
            row = all_rows[name] = Row(tables, name, rows)
            goal = target if target is not None else 0.9 * all_rows[name.removesuffix(", nulls")].share
            out += line(row.cells(work, goal))
    for work, name, must, anywhere, target in RELATIONAL:
        beyond = sum(max(float(asked) - float(touched), 0) for *_, touched, asked in tables.launches[name])
        out += line(Row(tables, name, 1 << 28, must, beyond if anywhere else 0.0).cells(work, target))
    page = out + peers(tables, all_rows.values()) + batches(tables) + PUBLIC
    return {OUT: page, TABLE: table(all_rows.values())}


def main():
    for file, text in documents().items():
        if "--check" not in sys.argv[1:]:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            sys.exit(f"{file.relative_to(ROOT)} is stale: python3 benches/predict.py")


if __name__ == "__main__":
    main()
