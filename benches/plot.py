"""Line plots as SVG, of text alone: axes with names, a line and a mark for each series, its name at the line's end."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 190, 56, 64
# Between the axis and the first point, whose value is written over it.
INSET = 22
# Told apart by most eyes, and by lightness on paper.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a67c00", "#3a9bd9", "#7a5195", "#8c564b"]
COPY = "#555555"
FONT = "font-family='sans-serif'"


def nice(top):
    """A round number from `top` on, and the step between its ticks."""
    step = 10 ** math.floor(math.log10(top)) if top > 0 else 1
    for factor in [0.2, 0.25, 0.5, 1, 2, 2.5, 5]:
        if top / (step * factor) <= 6:
            step *= factor
            break
    return math.ceil(top / step - 1e-9) * step, step


def number(value):
    """Three digits or so."""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def apart(wanted, least):
    """Heights at least so far apart, each near the wanted one, in their order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    for before, after in zip(order, order[1:]):
        placed[after] = max(placed[after], placed[before] + least)
    if order:
        over = max(0, placed[order[-1]] - (HEIGHT - BOTTOM))
        placed[order[-1]] -= over
        for after, before in zip(order[::-1], order[-2::-1]):
            placed[before] = min(placed[before], placed[after] - least)
    return placed


def colours(names):
    """A colour each: the library's own is the first, the copy's is grey."""
    left = iter(COLOURS[1:] * (1 + len(names) // 7))
    own = {"bowstring": COLOURS[0], "copy": COPY}
    return {name: own.get(name) or next(left) for name in names}


def text(x, y, what, anchor="middle", size=12, fill="#222222", more=""):
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size}' fill='{fill}' {FONT} {more}>"
        f"{escape(what)}</text>"
    )


def line_plot(title, x_name, y_name, ticks, series, log=False):
    """An SVG of `series`: (name, dashed, [(x, y)]). `ticks`: (x, label). A series' colour goes by its name, so a dashed
    line of the same name is another kind of the same thing; the first series' values are written at its marks."""
    xs = [x for x, _ in ticks]
    place = math.log if log else float
    low, high = place(min(xs)), place(max(xs))
    top, step = nice(1.08 * max(y for _, _, points in series for _, y in points))

    def at(x, y):
        across = (place(x) - low) / ((high - low) or 1)
        return LEFT + INSET + across * (WIDTH - LEFT - RIGHT - 2 * INSET), HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    right = WIDTH - RIGHT
    out = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>",
        f"<title>{escape(title)}</title>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>",
        text(LEFT, 26, title, "start", 15, more="font-weight='bold'"),
    ]
    for i in range(round(top / step) + 1):
        y = at(xs[0], i * step)[1]
        out.append(f"<line x1='{LEFT}' x2='{right}' y1='{y:.1f}' y2='{y:.1f}' stroke='#e2e2e2'/>")
        out.append(text(LEFT - 8, y + 4, number(i * step), "end"))
    for x, label in ticks:
        across = at(x, 0)[0]
        base = HEIGHT - BOTTOM
        out.append(f"<line x1='{across:.1f}' x2='{across:.1f}' y1='{base}' y2='{base + 5}' stroke='#222222'/>")
        out.append(text(across, base + 20, label))
    out.append(text((LEFT + right) / 2, HEIGHT - 16, x_name, size=13))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(text(20, middle, y_name, size=13, more=f"transform='rotate(-90 20 {middle})'"))
    colour = colours(list(dict.fromkeys(name for name, _, _ in series)))
    ends = apart([at(*points[-1])[1] + 4 for _, _, points in series], 15)
    for i, ((name, dashed, points), end) in reversed(list(enumerate(zip(series, ends)))):
        own = name == "bowstring"
        style = f"stroke='{colour[name]}' stroke-width='{3 if own else 1.8}'"
        dashes = "stroke-dasharray='6 4'" if dashed else ""
        where = [at(x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
        out.append(f"<polyline points='{path}' fill='none' {style} {dashes}/>")
        if name != "copy":
            for x, y in where:
                out.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{4 if own else 3}' fill='{colour[name]}'/>")
        if i == 0:
            for (x, y), (_, value) in zip(where, points):
                out.append(text(x, y - 9, number(value), size=11, fill=colour[name], more="font-weight='bold'"))
        x, y = where[-1]
        out.append(f"<line x1='{x + 5:.1f}' y1='{y:.1f}' x2='{right + 12}' y2='{end - 4:.1f}' stroke='#bbbbbb'/>")
        label = f"{name}, clustered" if dashed and name != "copy" else name
        out.append(text(right + 16, end, label, "start", 12, colour[name], "font-weight='bold'" if own else ""))
    return "\n".join([*out, "</svg>"]) + "\n"
