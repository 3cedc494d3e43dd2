#!/usr/bin/env python3
"""The pictures of the pages, one a page at most, as SVG: `docs/pictures.py` writes them, `--check` says whether they are what this makes.

A picture brings its own colours for light and for dark, and its own ground, so that it can be read wherever it stands."""

import sys
from html import escape
from pathlib import Path

PICTURES = Path(__file__).parent / "src" / "pictures"
LIGHT = {"ground": "#fbfbf9", "ink": "#22272e", "soft": "#6b7480", "line": "#c9ced6", "lane": "#f0f1ee"}
LIGHT |= {"own": "#1f6f8b", "ownfill": "#d9ebf1", "other": "#a2571b", "otherfill": "#f6e5d6", "host": "#5b5490", "hostfill": "#e6e3f3"}
DARK = {"ground": "#1b212b", "ink": "#dfe4ea", "soft": "#98a3b1", "line": "#454f5d", "lane": "#232b37"}
DARK |= {"own": "#6fc3de", "ownfill": "#1d4352", "other": "#e6a267", "otherfill": "#4d3421", "host": "#b1a7ee", "hostfill": "#38345a"}


def variables(colours):
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


class Picture:
    """Shapes by coordinates; colours are names of the palette."""

    def __init__(self, width, height, title):
        self.size, self.title, self.shapes = (width, height), title, []

    def box(self, x, y, width, height, fill="ground", edge="line", radius=6, dashed=False):
        dashes = " stroke-dasharray='4 4'" if dashed else ""
        self.shapes.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='{radius}' "
            f"fill='var(--{fill})' stroke='var(--{edge})'{dashes}/>"
        )

    def text(self, x, y, what, colour="ink", size=14, anchor="middle", bold=False, mono=False):
        more = (" font-weight='600'" if bold else "") + (" class='mono'" if mono else "")
        self.shapes.append(
            f"<text x='{x:g}' y='{y:g}' font-size='{size}' text-anchor='{anchor}' fill='var(--{colour})'{more}>{escape(what)}</text>"
        )

    def labelled(self, x, y, width, height, lines, kind):
        """A box of one kind (`own`, `other`, `host`) with lines of text in it."""
        self.box(x, y, width, height, kind + "fill", kind)
        first = y + height / 2 + 5 - 9 * (len(lines) - 1)
        for i, line in enumerate(lines):
            self.text(x + width / 2, first + 18 * i, line)

    def arrow(self, points, colour="soft", dashed=False):
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        dashes = " stroke-dasharray='5 4'" if dashed else ""
        self.shapes.append(
            f"<path d='{path}' fill='none' stroke='var(--{colour})' stroke-width='1.6'{dashes} marker-end='url(#{colour})'/>"
        )

    def dot(self, x, y, colour):
        self.shapes.append(f"<circle cx='{x:g}' cy='{y:g}' r='7' fill='var(--{colour})'/>")

    def svg(self):
        width, height = self.size
        heads = "".join(
            f"<marker id='{colour}' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' markerHeight='7' orient='auto-start-reverse'>"
            f"<path d='M0 0 L10 5 L0 10 z' fill='var(--{colour})'/></marker>"
            for colour in ["soft", "own", "other", "host"]
        )
        style = (
            f"svg{{{variables(LIGHT)}}}@media(prefers-color-scheme:dark){{svg{{{variables(DARK)}}}}}"
            "text{font-family:system-ui,sans-serif}.mono{font-family:ui-monospace,monospace}"
        )
        head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' role='img'>"
        ground = f"<rect width='{width}' height='{height}' rx='10' fill='var(--ground)'/>"
        return "\n".join(
            [head, f"<title>{escape(self.title)}</title>", f"<style>{style}</style>", f"<defs>{heads}</defs>", ground, *self.shapes, "</svg>", ""]
        )


def way():
    """import, wait on the stream, launch, record, export."""
    p = Picture(940, 420, "The way of an array: imported, waited for on the stream, worked on, exported with an event")
    lanes = [("their stream", 40), ("the host", 130), ("our stream", 220), ("the next stream", 310)]
    for name, y in lanes:
        p.box(130, y, 790, 70, "lane", "lane")
        p.text(118, y + 40, name, "soft", anchor="end")
    theirs, host, ours, following = (y + 12 for _, y in lanes)
    p.labelled(145, theirs, 150, 46, ["writes the array"], "other")
    p.dot(312, theirs + 23, "other")
    p.text(326, theirs + 28, "their event", "other", anchor="start")
    p.labelled(145, host, 110, 46, ["import"], "host")
    p.text(200, host + 74, "no copy, no read", "soft", 12)
    p.labelled(330, host, 105, 46, ["filter(…)"], "host")
    p.labelled(500, host, 120, 46, ["wait(): how", "many rows?"], "host")
    p.labelled(800, host, 105, 46, ["export"], "host")
    p.box(330, ours, 46, 46, "ground", "soft", dashed=True)
    p.text(353, ours + 28, "wait", "soft", 12)
    p.labelled(392, ours, 110, 46, ["count the", "mask"], "own")
    p.labelled(640, ours, 120, 46, ["move the", "rows"], "own")
    p.dot(776, ours + 23, "own")
    p.text(790, ours + 28, "our event", "own", anchor="start")
    p.box(745, following, 46, 46, "ground", "soft", dashed=True)
    p.text(768, following + 28, "wait", "soft", 12)
    p.labelled(807, following, 98, 46, ["reads them"], "other")
    p.arrow([(312, theirs + 32), (312, ours + 23), (328, ours + 23)], "other", True)
    p.arrow([(435, host + 23), (465, host + 23), (465, ours - 2)], "host")
    p.arrow([(502, ours + 23), (560, ours + 23), (560, host + 48)], "own")
    p.arrow([(620, host + 23), (700, host + 23), (700, ours - 2)], "host")
    p.arrow([(776, ours + 32), (776, ours + 46), (768, following - 2)], "own", True)
    p.arrow([(885, host + 46), (885, following - 2)], "host")
    p.text(525, 402, "time goes to the right; the host waits once, where the device has to say a number", "soft", 12)
    return p


MASK = ["10110010", "00000000", "01101111"]


def filtered():
    """How a filter works in two phases."""
    p = Picture(940, 450, "A filter: count the mask of each tile, scan the counts, move each tile's rows to their place")
    cell, gap, left = 30, 40, 110
    width = 8 * cell
    starts = [sum(mask.count("1") for mask in MASK[:i]) for i in range(len(MASK))]
    kept = sum(mask.count("1") for mask in MASK)
    p.text(98, 74, "mask", "soft", anchor="end")
    p.text(98, 252, "values", "soft", anchor="end")
    p.text(98, 381, "result", "soft", anchor="end")
    p.text(30, 30, "1   Count and scan", bold=True, anchor="start", size=15)
    p.text(30, 208, "2   Move", bold=True, anchor="start", size=15)
    place = 0
    base = left + (3 * width + 2 * gap - kept * (cell + 4)) / 2
    for tile, mask in enumerate(MASK):
        x = left + tile * (width + gap)
        for row, bit in enumerate(mask):
            on = bit == "1"
            p.box(x + row * cell, 54, cell - 2, 30, "ownfill" if on else "lane", "own" if on else "line", 3)
            p.text(x + row * cell + cell / 2 - 1, 74, bit, "ink" if on else "soft", mono=True)
            p.box(x + row * cell, 232, cell - 2, 30, "ownfill" if on else "lane", "own" if on else "line", 3)
            value = chr(ord("a") + tile * 8 + row)
            p.text(x + row * cell + cell / 2 - 1, 252, value, "ink" if on else "soft", mono=True)
            if on:
                to = base + place * (cell + 4)
                p.box(to, 362, cell - 2, 30, "ownfill", "own", 3)
                p.text(to + cell / 2 - 1, 381, value, mono=True)
                p.arrow([(x + row * cell + cell / 2 - 1, 263), (to + cell / 2 - 1, 359)], "own")
                place += 1
        middle = x + width / 2
        p.arrow([(middle, 86), (middle, 106)])
        count = mask.count("1")
        p.labelled(middle - 118, 108, 236, 32, [f"keeps {count}" + (f", from place {starts[tile]}" if count else ": passed over")], "own")
        if tile:
            p.arrow([(middle - width - gap + 120, 124), (middle - 121, 124)])
    p.labelled(left + 3 * width / 2 + gap - 190, 152, 380, 30, [f"the host gets memory for {kept} rows"], "host")
    p.text(left + 3 * width / 2 + gap, 428, "a tile is 2,048 rows; here it is 8", "soft", 12)
    return p


KEYS = "babcab"


def grouped():
    """How rows become groups, and a join finds them."""
    p = Picture(940, 600, "Groups: words, a table of first rows, numbers, places; and a join that looks for words in the table")
    cell, left = 44, 150
    firsts = sorted({key: KEYS.index(key) for key in KEYS}.values())
    number = {KEYS[row]: i for i, row in enumerate(firsts)}

    def row(y, name, values, kind="own"):
        p.text(left - 14, y + 22, name, "soft", anchor="end")
        for i, value in enumerate(values):
            p.box(left + i * cell, y, cell - 4, 32, kind + "fill", kind, 3)
            p.text(left + i * cell + cell / 2 - 2, y + 22, value, mono=True)

    def middle(i):
        return left + i * cell + cell / 2 - 2

    p.text(30, 34, "1   Words", bold=True, anchor="start", size=15)
    row(48, "keys", KEYS)
    row(88, "row", [str(i) for i in range(len(KEYS))], "host")
    p.text(left + 6 * cell + 10, 166, "2   A table of the first row of each word", bold=True, anchor="start", size=15)
    slots = {"b": 0, "a": 3, "c": 4}
    for i in range(6):
        key = next((key for key, slot in slots.items() if slot == i), None)
        p.box(left + i * cell, 176, cell - 4, 40, "ownfill" if key else "lane", "own" if key else "line", 3)
        if key:
            p.text(middle(i), 193, key, mono=True)
            p.text(middle(i), 210, str(KEYS.index(key)), "host", 12, mono=True)
    p.text(left - 14, 200, "slots", "soft", anchor="end")
    p.arrow([(middle(0), 121), (middle(0), 174)], "own")
    p.arrow([(middle(2), 121), (middle(0) + 12, 174)], "own", True)
    p.text(left + 6 * cell + 10, 192, "compare-and-swap claims a slot; a row with the same word", "soft", 12, "start")
    p.text(left + 6 * cell + 10, 210, "lowers the slot's row, so the least one stays", "soft", 12, "start")
    p.text(30, 254, "3   Numbers, in the order of first rows", bold=True, anchor="start", size=15)
    row(268, "group", [str(number[key]) for key in KEYS])
    p.labelled(left + 6 * cell + 10, 268, 250, 32, ["the host reads: there are 3 groups"], "host")
    p.text(30, 338, "4   Places: the rows of each group together", bold=True, anchor="start", size=15)
    order = sorted(range(len(KEYS)), key=lambda i: number[KEYS[i]])
    row(400, "row", [str(i) for i in order], "host")
    for place, i in enumerate(order):
        p.arrow([(middle(i), 352), (middle(place), 398)], "own")
    start = 0
    for group, first in enumerate(firsts):
        rows = KEYS.count(KEYS[first])
        x, width = left + start * cell, rows * cell - 4
        p.arrow([(x + width / 2, 434), (x + width / 2, 452)], "own")
        p.labelled(x, 454, width, 46, ["a lane", "folds"] if rows > 1 else ["folds"], "own")
        start += rows
    x = left + 6 * cell + 60
    p.text(x, 338, "5   A join: another side looks for its words", bold=True, anchor="start", size=15)
    for i, (key, found) in enumerate([("c", "group 2: row 3"), ("d", "none"), ("b", "group 0: rows 0, 2, 5")]):
        y = 356 + i * 44
        p.box(x, y, cell - 4, 32, "otherfill", "other", 3)
        p.text(x + cell / 2 - 2, y + 22, key, mono=True)
        p.arrow([(x + cell, y + 16), (x + cell + 34, y + 16)], "other")
        p.text(x + cell + 44, y + 21, found, anchor="start")
    p.labelled(x, 494, 250, 32, ["the host reads: 4 pairs"], "host")
    p.arrow([(x + 260, 510), (x + 290, 510)])
    p.text(x + 300, 515, "a lane a pair", "own", anchor="start")
    p.text(470, 574, "the same numbers, orders and pairs on every device, in every run", "soft", 12)
    return p


def main():
    check = "--check" in sys.argv[1:]
    PICTURES.mkdir(exist_ok=True)
    for name, picture in {"way": way(), "filter": filtered(), "groups": grouped()}.items():
        path = PICTURES / f"{name}.svg"
        if not check:
            path.write_text(picture.svg())
        elif not path.exists() or path.read_text() != picture.svg():
            sys.exit(f"{path.name} is stale: tools/bless pictures")


if __name__ == "__main__":
    main()
