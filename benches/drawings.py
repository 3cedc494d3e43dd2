"""The plots of the rates, and the picture of a page."""

import re

from figures import DEVICES
from pages import short

try:
    from plot import bar_plot, line_plot
except ModuleNotFoundError as missing:
    if missing.name != "matplotlib":
        raise

    def line_plot(*_what, **_how):
        """A machine with a GPU need not have matplotlib: `redraw.py` draws from the page, elsewhere."""
        return None

    bar_plot = line_plot


# The works in the picture of a page.
WORKS = {
    "filter/cpu/int32/16777216/50%-uniform/no-nulls/1": "filter Int32,\nhalf of the rows",
    "filter/cpu/int32/16777216/1%-uniform/no-nulls/1": "filter Int32,\n1 % of the rows",
    "filter/cpu/utf8/16777216/50%-uniform/no-nulls/1": "filter Utf8,\nhalf of the rows",
    "take/cpu/int32/16777216/random/no-nulls/1": "take Int32\nat random",
    "cast/cpu/int64-int32/16777216/all-safe/no-nulls/1": "cast Int64 to\nInt32, checked",
    "cast/cpu/float64-int32/16777216/all-safe/10%-null/1": "cast Float64 to\nInt32 with nulls",
}


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
