"""The library's targets on a data centre's GPU (an H200), as shares of a copy's rate in the same run, as
ratios to the best peer's time, or as wall time; and the results of a run. `report.py` puts the table above
a GPU's figures.

A share counts the sectors that contain a wanted row, if the benches report their number.
"""

import re

LARGE = "(268435456|134217728)"

# The name, the ids (without operation and device), the least share, the least ratio to the best peer.
TARGETS = [
    ("filter 4 and 8 bytes, 50-99 % uniform", "filter", f"int(32|64)/{LARGE}/(50|90|99)%-uniform/no-nulls/1", 0.85, 1.5),
    ("filter 4 and 8 bytes, 1 and 10 % uniform", "filter", f"int(32|64)/{LARGE}/(1|10)%-uniform/no-nulls/1", 0.80, 2.5),
    ("filter 4 and 8 bytes, 1-50 % clustered", "filter", f"int(32|64)/{LARGE}/(1|10|50)%-clustered/no-nulls/1", 0.85, 2.0),
    ("filter 1 and 2 bytes, 50 %", "filter", f"int(8|16)/{LARGE}/50%-uniform/no-nulls/1", 0.45, 1.5),
    ("filter booleans", "filter", f"boolean/{LARGE}/50%-uniform/no-nulls/1", 0.60, None),
    ("filter strings of 12 bytes, 50 %", "filter", f"utf8/{LARGE}/50%-uniform/no-nulls/1", 0.50, None),
    ("take 4 bytes, ascending", "take", f"int32/{LARGE}/ascending/no-nulls/1", 0.85, 1.2),
    ("take 4 and 8 bytes, random", "take", f"int(32|64)/{LARGE}/random/no-nulls/1", 0.80, 1.1),
    ("take strings of 12 bytes, random", "take", f"utf8/{LARGE}/random/no-nulls/1", 0.40, None),
    ("cast, but for division of 128 bits", "cast", f"(?!decimal)[^/]*(?<!boolean)/{LARGE}/[^/]*/[^/]*/1", 0.90, 1.0),
    ("cast with division of 128 bits", "cast", f"decimal[^/]*/{LARGE}/[^/]*/[^/]*/1", 0.50, None),
    ("null_count of 2^33 bits", "null_count", "bits/8589934592/offset-[03]/-/1", 0.90, None),
]
BATCH, BATCH_SECONDS = "int32/8192/50%-uniform/no-nulls/10", 60e-6


def verdict(met):
    return "met" if met else "**missed**"


def reached(benches, copies, device):
    """The table's lines, each with the worst of the benches that a target names."""

    def share(bench):
        copied = copies.near(device, bench.bytes)
        return (bench.sectors or bench.bytes) / bench.ours() / copied if copied else None

    known = {bench.id: bench for bench in benches if bench.device == device and bench.ours()}
    out = ["| target | least share | reached | least ratio to the best peer | reached | |", "| --- |" + " ---: |" * 4 + " --- |"]
    for name, operation, ids, least_share, least_ratio in TARGETS:
        group = [bench for key, bench in known.items() if re.fullmatch(f"{operation}/{device}/{ids}", key)]
        shares = [share for share in map(share, group) if share]
        ratios = [bench.best_peer()[1] for bench in group if bench.best_peer()]
        met = [min(shares) >= least_share] if shares else []
        met += [min(ratios) >= least_ratio] if ratios and least_ratio else []
        row = [name, f"{least_share:.2f}", f"{min(shares):.2f}" if shares else "not run"]
        row += [f"{least_ratio:.1f}" if least_ratio else "-", f"{min(ratios):.2f}" if ratios and least_ratio else "-"]
        out.append(f"| {' | '.join(row)} | {verdict(all(met)) if met else ''} |")
    # Nulls must cost no more time than the bytes that they add.
    both = [(bench, known.get(key.replace("10%-null", "no-nulls"))) for key, bench in known.items() if "10%-null" in key]
    both = [(a, b) for a, b in both if b and a.operation == "filter" and re.fullmatch(LARGE, a.rows) and share(a)]
    kept = [share(with_nulls) / share(without) for with_nulls, without in both]
    row = ["filter with 10 % nulls, to without", "0.90", f"{min(kept):.2f}" if kept else "not run", "-", "-"]
    out.append(f"| {' | '.join(row)} | {verdict(min(kept) >= 0.9) if kept else ''} |")
    batch = known.get(f"filter/{device}/{BATCH}")
    wall = batch.seconds.get("bowstring-wall") if batch else None
    row = ["filter 10 columns of 8,192 rows, wall", "60 µs", f"{wall * 1e6:.0f} µs" if wall else "not run", "-", "-"]
    out.append(f"| {' | '.join(row)} | {verdict(wall <= BATCH_SECONDS) if wall else ''} |")
    return out
