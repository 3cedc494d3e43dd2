#!/usr/bin/env python3
"""Makes tables from the results of the benches: benches/results/<machine>.md, and a picture of several works beside
it. A later run on the same machine replaces them. Plots of the rates go to a folder outside the tree.

    cargo bench && python3 benches/report.py

Reads criterion's folder (its medians, and `bowstring.jsonl`, in which the benches record the bytes that each
moves and the available devices), and every other `*.jsonl` in it, the output of peers, one object a line:

    {"id": "filter/cpu/int32/16777216/50%-uniform/no-nulls/1", "who": "polars", "seconds": 0.00471}

Each rate is compared with the copy of the nearest size in the same run, each time with the fastest peer's.
Pictures need matplotlib (`requirements.txt`); without it `redraw.py` has to draw the page's, and the page says so.
"""

import argparse
import datetime
import json
import math
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from targets import reached

try:
    from plot import bar_plot, line_plot
except ModuleNotFoundError as missing:
    if missing.name != "matplotlib":
        raise

    def line_plot(*_what, **_how):
        """A machine with a GPU need not have matplotlib: `redraw.py` draws from the page, elsewhere."""
        return None

    bar_plot = line_plot


ROOT = Path(__file__).resolve().parent.parent
OPERATIONS = ["filter", "coalesce", "take", "cast", "null_count", "is_null"]
DEVICES = {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCm"}
# The works in the picture of a page.
WORKS = {
    "filter/cpu/int32/16777216/50%-uniform/no-nulls/1": "filter Int32,\nhalf of the rows",
    "filter/cpu/int32/16777216/1%-uniform/no-nulls/1": "filter Int32,\n1 % of the rows",
    "filter/cpu/utf8/16777216/50%-uniform/no-nulls/1": "filter Utf8,\nhalf of the rows",
    "take/cpu/int32/16777216/random/no-nulls/1": "take Int32\nat random",
    "cast/cpu/int64-int32/16777216/all-safe/no-nulls/1": "cast Int64 to\nInt32, checked",
    "cast/cpu/float64-int32/16777216/all-safe/10%-null/1": "cast Float64 to\nInt32 with nulls",
}


class Bench:
    """The seconds of all contestants for one id."""

    def __init__(self, name):
        self.id = name
        self.operation, self.device, self.type, self.rows, self.kept, self.validity, self.columns = name.split("/")
        self.seconds, self.bytes, self.sectors = {}, None, None

    def ours(self):
        return self.seconds.get("bowstring")

    def peers(self):
        return {who: s for who, s in self.seconds.items() if not who.startswith("bowstring")}

    def best_peer(self):
        """The name of the fastest peer, and its time over ours; on a GPU both are the device's time."""
        peers = {who: s for who, s in self.peers().items() if not who.endswith("-wall")}
        if not peers or not self.ours():
            return None
        who = min(peers, key=peers.get)
        return who, peers[who] / self.ours()

    def moved(self):
        """Bytes that memory must move: if few rows are wanted, the sectors that contain one."""
        return self.sectors or self.bytes

    def rate(self, who):
        """Those bytes in a second."""
        return self.moved() / self.seconds[who] if self.moved() and self.seconds.get(who) else None


def lines(path):
    for line in path.read_text().splitlines():
        if line.strip().startswith("{"):
            yield json.loads(line)


def collect(folder, hours):
    """Every bench of the last run in a criterion folder, and the records about devices."""
    found = [path for path in folder.rglob("new/benchmark.json") if (path.parent / "estimates.json").exists()]
    newest = max((path.stat().st_mtime for path in found), default=0)
    benches, devices, absent = {}, {}, {}

    def of(name):
        if name.count("/") == 6 and name.split("/")[1] in DEVICES:
            return benches.setdefault(name, Bench(name))
        return None

    for path in found:
        if newest - path.stat().st_mtime > hours * 3600:
            continue
        about, estimates = json.loads(path.read_text()), json.loads((path.parent / "estimates.json").read_text())
        bench = of(about["group_id"])
        if bench:
            bench.seconds[about["function_id"]] = estimates["median"]["point_estimate"] / 1e9
            bench.bytes = (about.get("throughput") or {}).get("Bytes", bench.bytes)
    for path in sorted(folder.glob("*.jsonl")):
        for line in lines(path):
            if "device" in line:
                devices[line["device"]] = line["name"]
                absent.pop(line["device"], None)
            elif "not_run" in line:
                absent[line["not_run"]] = line["reason"]
                devices.pop(line["not_run"], None)
            elif "who" in line and "seconds" in line:
                bench = of(line["id"])
                if bench:
                    bench.seconds[line["who"]] = line["seconds"]
                    bench.bytes = bench.bytes or line.get("bytes")
            elif line.get("id") in benches:
                benches[line["id"]].bytes = line["bytes"]
                benches[line["id"]].sectors = line["sectors"]
    return benches, devices, absent


class Copies:
    """The copy rates of each device, by the number of bytes moved."""

    def __init__(self, benches):
        self.rates = {}
        for bench in benches.values():
            if bench.operation == "copy" and bench.seconds and bench.bytes:
                best = bench.bytes / min(bench.seconds.values())
                self.rates.setdefault(bench.device, {})[bench.bytes] = best

    def near(self, device, moved):
        known = self.rates.get(device)
        if not known or not moved:
            return None
        return known[min(known, key=lambda size: abs(math.log(size / moved)))]


def duration(seconds):
    if seconds is None:
        return "-"
    for unit, factor in [("s", 1), ("ms", 1e3), ("µs", 1e6)]:
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:,.0f} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def order(bench):
    percent = re.match(r"[\d.]+", bench.kept)
    shape = re.sub(r"^[\d.]+%-", "", bench.kept)
    return (bench.type, bench.validity, int(bench.columns), -int(bench.rows), shape, float(percent[0]) if percent else 0)


def table(benches, copies):
    """A table of one operation on one device."""
    whos = sorted({who for bench in benches for who in bench.peers()})
    wall = any("bowstring-wall" in bench.seconds for bench in benches)
    sectors = any(bench.sectors for bench in benches)
    head = ["type/rows/kept/validity/columns", "ours", *(["wall"] if wall else []), "GB/s", "of copy"]
    head += [*(["of copy, sectors"] if sectors else []), *whos, "best peer / ours"]
    out = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for bench in sorted(benches, key=order):
        ours = bench.ours()
        copied, best = copies.near(bench.device, bench.bytes), bench.best_peer()

        def share(moved):
            return f"{moved / ours / copied:.2f}" if ours and copied and moved else "-"

        row = ["/".join(bench.id.split("/")[2:]), duration(ours)]
        row += [duration(bench.seconds.get("bowstring-wall"))] if wall else []
        rate = bench.bytes / ours if bench.bytes else None
        row += [f"{rate / 1e9:,.3g}" if rate and rate < 1e12 else f"{(rate or 0) / 1e9:,.0f}", share(bench.bytes)]
        row += [share(bench.sectors)] if sectors else []
        row += [duration(bench.seconds.get(who)) for who in whos]
        # Rounded down, so that 1.00 never hides a slower result.
        row += [f"{math.floor(best[1] * 100 + 1e-6) / 100:.2f}" if best else "-"]
        out.append("| " + " | ".join(row) + " |")
    return out


def everybody(benches):
    """The contestants whose lines a plot has."""
    whos = {who for bench in benches for who in bench.peers() if not who.endswith("-wall")}
    return ["bowstring", *sorted(whos)]


def row_plots(benches, copies):
    """Throughput against rows: every shape with three known sizes or more."""
    shapes = {}
    for bench in benches:
        if bench.ours() and bench.bytes:
            key = (bench.operation, bench.device, bench.type, bench.kept, bench.validity, bench.columns)
            shapes.setdefault(key, []).append(bench)
    for key, group in sorted(shapes.items()):
        group.sort(key=lambda bench: int(bench.rows))
        if len(group) < 3:
            continue
        series = []
        for who in everybody(group):
            points = [(int(b.rows), b.rate(who) / 1e9) for b in group if b.rate(who)]
            if points:
                series.append((who, False, points))
        copied = [(int(b.rows), copies.near(b.device, b.moved())) for b in group]
        if all(rate for _, rate in copied):
            series.append(("copy", True, [(rows, rate / 1e9) for rows, rate in copied]))
        operation, device, kind, kept, validity, columns = key
        kept = "" if kept.startswith("offset") else f", {kept}"
        title = f"{operation} of {kind} on {DEVICES[device]}{kept}" + ("" if validity == "-" else f", {validity}")
        title += "" if columns == "1" else f", {columns} columns"
        ticks = [(int(bench.rows), short(int(bench.rows))) for bench in group]
        name = "-".join(["rows", *key]).replace("%", "")
        yield name, line_plot(title, "rows", "GB/s that memory must move", ticks, series, log=True)


def short(rows):
    for power, unit in [(30, "Gi"), (20, "Mi"), (10, "Ki")]:
        if rows >= 1 << power and rows % (1 << power) == 0:
            return f"{rows >> power} {unit}"
    return f"{rows:,}"


def kept_plots(benches, copies):
    """Throughput against selectivity: every shape with three known percentages or more."""
    shapes = {}
    for bench in benches:
        parts = re.fullmatch(r"([\d.]+)%-(uniform|clustered)", bench.kept)
        if parts and bench.ours() and bench.bytes:
            key = (bench.operation, bench.device, bench.type, bench.rows, bench.validity, bench.columns)
            shapes.setdefault(key, []).append((float(parts[1]), parts[2], bench))
    for key, group in sorted(shapes.items()):
        if len({percent for percent, spread, _ in group if spread == "uniform"}) < 3:
            continue
        group.sort(key=lambda one: one[0])
        series = []
        for who in everybody([bench for _, _, bench in group]):
            for spread in ["uniform", "clustered"]:
                points = [(p, b.rate(who) / 1e9) for p, s, b in group if s == spread and b.rate(who)]
                # Drawing the peers' lines twice would hide ours.
                if len(points) > 1 and (spread == "uniform" or who == "bowstring"):
                    series.append((who, spread == "clustered", points))
        ticks = sorted({percent for percent, _, _ in group})
        copied = [(percent, copies.near(b.device, b.moved())) for percent, s, b in group if s == "uniform"]
        if all(rate for _, rate in copied):
            series.append(("copy", True, [(percent, rate / 1e9) for percent, rate in copied]))
        operation, device, kind, rows, validity, _ = key
        title = f"{operation} of {short(int(rows))} {kind} on {DEVICES[device]}, {validity}"
        labels = [(percent, f"{percent:g}") for percent in ticks]
        name = "-".join(["kept", *key])
        yield name, line_plot(title, "rows kept, %", "GB/s that memory must move", labels, series)


def draw(benches, copies, folder):
    """Writes every plot of rates into a folder, in the place of those of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    for plot, svg in [*kept_plots(benches, copies), *row_plots(benches, copies)]:
        if svg:
            name = re.sub("-+", "-", re.sub(r"[^A-Za-z0-9_.-]", "", plot))
            (folder / f"{name}.svg").write_text(svg)


def picture(benches, path):
    """Draws the picture of a page, if the page links to one, and whether it could. A machine without matplotlib
    cannot."""
    page, file = path.read_text(), f"{path.stem}-overview.svg"
    if f"({file})" not in page:
        return True
    cpu = re.search(r"^- CPU: (.+?),", page, re.M)
    title = f"16.8 million rows on {cpu[1]}" if cpu else "16.8 million rows"
    works = []
    for name, label in WORKS.items():
        times = benches[name].seconds
        works.append((label, {who.partition(" (")[0]: time / times["bowstring"] for who, time in times.items()}))
    svg = bar_plot(title, "time, as a multiple of bowstring's; shorter is better", works)
    if svg:
        (path.parent / file).write_text(svg)
    return svg is not None


def said(*command):
    """The output of a program; empty if it does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=ROOT)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def machine(devices, absent):
    """The machine of the measurements, as lines."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.M)
    model = model[1] if model else platform.processor() or platform.machine()
    vectors = [name for name in ["avx512bw", "avx2", "asimd"] if re.search(rf"\b{name}\b", cpuinfo)]
    meminfo = Path("/proc/meminfo")
    memory = re.search(r"MemTotal:\s+(\d+)", meminfo.read_text()) if meminfo.exists() else None
    memory = f", {int(memory[1]) / (1 << 20):.0f} GiB of memory" if memory else ""
    out = [f"CPU: {model}, {len(os.sched_getaffinity(0))} cores" + (f" ({vectors[0]})" if vectors else "") + memory]
    for kind, name in devices.items():
        if kind != "cpu":
            out.append(f"{DEVICES.get(kind, kind)}: {name}")
            if "stand-in" in name:
                out.append(f"What stands in for {DEVICES.get(kind, kind)} here is no GPU: its figures mean nothing")
    gpus = said("nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader")
    out += [f"nvidia-smi: {gpu}" for gpu in gpus.splitlines()]
    out += [f"not run: {DEVICES.get(kind, kind)} ({reason})" for kind, reason in absent.items()]
    return out


def commit():
    # An archive of tests and benches names its commit in a file.
    beside = ROOT / "COMMIT"
    if beside.exists():
        return beside.read_text().strip()[:10]
    known = said("git", "rev-parse", "--short=10", "HEAD")
    if known:
        changed = said("git", "status", "--porcelain", "--untracked-files=no")
        return known + (" with changes that are not committed" if changed else "")
    return "unknown"


def write(benches, devices, absent, out, date, name, notes):
    """Writes the report and its picture; returns the report's path."""
    copies = Copies(benches)
    measured = [bench for bench in benches.values() if bench.operation != "copy" and bench.ours()]
    page = [f"# Benches, {date}, {name}", ""]
    page += [f"- {fact}" for fact in machine(devices, absent)]
    page += [f"- commit {commit()}", *(f"- {note}" for note in notes), ""]
    page += ["Medians. GB/s are bytes read and written by the model in `benches/support/model.rs`; \"of copy\" is that rate"]
    page += ["over what a copy of about as many bytes reaches in the same run. Where few rows are kept, more than that is no"]
    page += ["wonder: the next column counts the sectors (32 bytes on a GPU, lines of 64 on a CPU) that hold a wanted row."]
    page += ["Written by `benches/report.py`.", ""]
    if all(work in benches and benches[work].ours() for work in WORKS):
        page += [f"![Times of several works, as multiples of bowstring's]({name}-overview.svg)", ""]
    ratios = [(bench.best_peer()[1], bench) for bench in measured if bench.best_peer()]
    if ratios:
        slower = sorted(((ratio, bench) for ratio, bench in ratios if ratio < 1), key=lambda one: one[0])
        page += [f"Faster than every peer measured: {len(ratios) - len(slower)} of {len(ratios)} benches."]
        page += [f"Slower: {', '.join(f'`{b.id}` ({r:.2f}, {b.best_peer()[0]})' for r, b in slower)}."] if slower else []
        page += [""]
    for device, rates in copies.rates.items():
        sizes = ", ".join(f"{short(size)}B {rate / 1e9:,.1f}" for size, rate in sorted(rates.items()))
        page += [f"Copies on {DEVICES[device]}, GB/s read and written, by what is moved: {sizes}.", ""]
    for device in ["cuda", "rocm"]:
        if any(bench.device == device for bench in measured):
            page += [f"## Targets on {DEVICES[device]}", ""]
            page += [*reached(measured, copies, device), ""]
    for device in DEVICES:
        for operation in OPERATIONS:
            group = [bench for bench in measured if (bench.operation, bench.device) == (operation, device)]
            if group:
                page += [f"## {operation} on {DEVICES[device]}", "", *table(group, copies), ""]
    path = out / f"{name}.md"
    path.write_text("\n".join(page))
    if not picture(benches, path):
        page += ["The picture is not drawn yet, for want of matplotlib: `benches/redraw.py` draws it from this page.", ""]
        path.write_text("\n".join(page))
    return path


def main(arguments=None):
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    home = os.environ.get("CRITERION_HOME", target / "criterion")
    parser.add_argument("--criterion", type=Path, default=home, help="criterion's folder")
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "results")
    parser.add_argument("--plots", type=Path, default=target / "plots", help="the folder for plots of the rates")
    parser.add_argument("--machine", help="a short name for the file; by default the GPU, or the cores of the CPU")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("--hours", type=float, default=24, help="leave out what is so much older than the last figure")
    parser.add_argument("--note", action="append", default=[], help="a line more for the head, such as what else ran")
    options = parser.parse_args(arguments)
    benches, devices, absent = collect(Path(options.criterion), options.hours)
    if not any(bench.ours() for bench in benches.values()):
        sys.exit(f"{options.criterion}: no figures; run `cargo bench` first")
    gpus = [name for kind, name in devices.items() if kind != "cpu"]
    name = options.machine or (gpus[0].split(",")[0] if gpus else f"cpu-{len(os.sched_getaffinity(0))}-cores")
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    options.out.mkdir(parents=True, exist_ok=True)
    print(write(benches, devices, absent, options.out, options.date, name, options.note))
    draw([bench for bench in benches.values() if bench.operation != "copy" and bench.ours()], Copies(benches), options.plots)


if __name__ == "__main__":
    main()
