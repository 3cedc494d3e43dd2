"""How figures stand on a page: tables of them, and a reader that finds them there again."""

import math
import re

from figures import DEVICES, Bench, Copies

UNITS = {"s": 1, "ms": 1e3, "µs": 1e6, "ns": 1e9}
POWERS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}


def short(rows):
    for power, unit in [(30, "Gi"), (20, "Mi"), (10, "Ki")]:
        if rows >= 1 << power and rows % (1 << power) == 0:
            return f"{rows >> power} {unit}"
    return f"{rows:,}"


def duration(seconds):
    if seconds is None:
        return "-"
    for unit, factor in [("s", 1), ("ms", 1e3), ("µs", 1e6)]:
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:,.0f} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def rates(known):
    """Rates of copies by size, as `copy_rates` reads them."""
    sizes = ", ".join(f"{short(size)}B {rate / 1e9:,.1f}" for size, rate in sorted(known.items()))
    return f"GB/s read and written, by what is moved: {sizes}"


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


def number(shown):
    """Parses a number that may have commas; None for anything else, as people edit pages."""
    try:
        return float(shown.replace(",", ""))
    except ValueError:
        return None


def seconds(shown):
    """Parses the output of `duration`: None for what is no time that can pass."""
    value, _, unit = shown.partition(" ")
    value = number(value)
    return value / UNITS[unit] if value and unit in UNITS and 0 < value < math.inf else None


def device(shown):
    """The device in ids that a page calls so."""
    return {name: key for key, name in DEVICES.items()}.get(shown)


def copy_rates(shown, kind):
    """Parses a list of sizes and of the rates of their copies: benches of copies, by their ids."""
    benches = {}
    for size, power, rate in re.findall(r"([\d,]+) ?(\w*?)B ([\d.,]+)(?=, |$)", shown):
        moved, rate = int(number(size)) << POWERS[power], number(rate)
        if rate:
            bench = Bench(f"copy/{kind}/bytes/{moved}/-/-/1")
            bench.bytes, bench.seconds = moved, {"copy": moved / (rate * 1e9)}
            benches[bench.id] = bench
    return benches


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def read(page):
    """Every bench of a page, and its rates of copies."""
    benches, heading, columns = {}, None, None
    for line in page.splitlines():
        if line.startswith("## "):
            found = re.fullmatch(r"## (\w+) on (\w+)", line)
            heading, columns = (found[1], device(found[2])) if found and device(found[2]) else None, None
        elif found := re.match(r"Copies on (\w+), GB/s[^:]*: (.*)\.$", line):
            benches |= copy_rates(found[2], device(found[1]))
        elif heading and line.startswith("| type/rows"):
            columns = cells(line)
        elif columns and line.startswith("| ") and not line.startswith("| ---"):
            row = dict(zip(columns, cells(line)))
            name = "/".join([*heading, row.pop("type/rows/kept/validity/columns")])
            if name.count("/") == 6:
                bench = benches[name] = Bench(name)
                bench.row = row
    copies = Copies(benches)
    for bench in benches.values():
        row = getattr(bench, "row", None)
        if row:
            known = {"ours": "bowstring", "wall": "bowstring-wall"}
            figures = ["GB/s", "of copy", "of copy, sectors", "best peer / ours"]
            bench.seconds = {known.get(who, who): seconds(shown) for who, shown in row.items() if who not in figures}
            bench.seconds = {who: time for who, time in bench.seconds.items() if time}
            bench.bytes = (number(row.get("GB/s", "-")) or 0) * 1e9 * (bench.ours() or 0)
            share, copied = row.get("of copy, sectors", "-"), copies.near(bench.device, bench.bytes)
            # An unchanged share means unchanged bytes, and the rate has more digits.
            if copied and share not in ("-", row["of copy"]):
                bench.sectors = float(share) * copied * bench.ours()
    return benches, copies
