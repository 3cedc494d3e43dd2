#!/usr/bin/env python3
"""Makes tables from the results of the benches: benches/results/<machine>.md, and a picture of several works beside
it. A later run on the same machine replaces them. Plots of the rates go to a folder outside the tree.

    cargo bench && python3 benches/report.py

The new page stands beside the last one of the same processor (`changes.py`). If a figure is more than 10 % slower, the
page names it, and the report ends with status 1; `--accept` takes the page all the same.

Reads criterion's folder (its medians, and `bowstring.jsonl`, in which the benches record the bytes that each
moves and the available devices), and every other `*.jsonl` in it, the output of peers, one object a line:

    {"id": "filter/cpu/int32/16777216/50%-uniform/no-nulls/1", "who": "polars", "seconds": 0.00471}

Each rate is compared with the copy of the nearest size in the same run, each time with the fastest peer's.
Pictures need matplotlib (`requirements.txt`); without it `redraw.py` has to draw the page's, and the page says so.
"""

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from changes import Changes
from drawings import WORKS, draw, picture
from figures import DEVICES, ROOT, Copies, collect
from pages import rates, table
from targets import reached

# The first tables of a page; those of other operations follow by name.
OPERATIONS = ["filter", "coalesce", "take", "cast", "null_count", "is_null"]


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


def write(benches, facts, beside, out, date, name, notes):
    """Writes the report and its picture; returns the report's path."""
    copies = Copies(benches)
    measured = [bench for bench in benches.values() if bench.operation != "copy" and bench.ours()]
    page = [f"# Benches, {date}, {name}", ""]
    page += [f"- {fact}" for fact in facts]
    page += [f"- commit {commit()}", *(f"- {note}" for note in notes), ""]
    page += ["Medians. GB/s are bytes read and written by the model in `benches/support/model.rs`; \"of copy\" is that rate"]
    page += ["over what a copy of about as many bytes reaches in the same run. If few rows are kept, more than that is no"]
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
    for device, known in copies.rates.items():
        page += [f"Copies on {DEVICES[device]}, {rates(known)}.", ""]
    page += beside
    for device in ["cuda", "rocm"]:
        if any(bench.device == device for bench in measured):
            page += [f"## Targets on {DEVICES[device]}", ""]
            page += [*reached(measured, copies, device), ""]
    others = sorted({bench.operation for bench in measured} - set(OPERATIONS))
    for device in DEVICES:
        for operation in OPERATIONS + others:
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
    parser.add_argument("--accept", action="store_true", help="take the page although figures are slower")
    options = parser.parse_args(arguments)
    benches, devices, absent = collect(Path(options.criterion), options.hours)
    if not any(bench.ours() for bench in benches.values()):
        sys.exit(f"{options.criterion}: no figures; run `cargo bench` first")
    gpus = [name for kind, name in devices.items() if kind != "cpu"]
    name = options.machine or (gpus[0].split(",")[0] if gpus else f"cpu-{len(os.sched_getaffinity(0))}-cores")
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    options.out.mkdir(parents=True, exist_ok=True)
    facts = machine(devices, absent)
    changes = Changes(benches, facts, options.out, f"{name}.md", options.accept)
    print(write(benches, facts, changes.section(), options.out, options.date, name, options.note))
    draw(list(changes.measured.values()), Copies(benches), options.plots)
    print(*changes.spoken(sys.stdout.isatty() and "NO_COLOR" not in os.environ), sep="\n")
    return int(changes.refused())



if __name__ == "__main__":
    sys.exit(main())
