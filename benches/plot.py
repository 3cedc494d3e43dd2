"""Plots as SVG, by matplotlib: rates against the size of the input, and the times of several works side by
side. Text stays text, and the same figures give the same file."""

import io

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

# Colours that most eyes can tell apart, and that differ in lightness on paper.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a67c00", "#3a9bd9", "#7a5195", "#8c564b"]
COPY = "#555555"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "bowstring",
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
}


def number(value):
    """Formats a number with about three digits."""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def colours(names):
    """A colour for each name: the library has the first, the copy is grey."""
    left = iter(COLOURS[1:] * (1 + len(names) // 7))
    own = {"bowstring": COLOURS[0], "copy": COPY}
    return {name: own.get(name) or next(left) for name in names}


def svg(figure):
    """The figure as SVG text; closes the figure."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    plt.close(figure)
    return out.getvalue()


def apart(wanted, least, top):
    """Heights with a minimum distance and none above `top`, each near the wanted one, in the same order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    for before, after in zip(order, order[1:]):
        placed[after] = max(placed[after], placed[before] + least)
    for i, after in enumerate(reversed(order)):
        placed[after] = min(placed[after], top - i * least)
    return placed


def line_plot(title, x_name, y_name, ticks, series, log=False):
    """An SVG of `series`: (name, dashed, [(x, y)]). `ticks`: (x, label). A series' colour goes by its name, so a dashed
    line of the same name is another kind of the same thing; the first series' values are written at its marks."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8.6, 4.4), layout="constrained")
        colour = colours(list(dict.fromkeys(name for name, _, _ in series)))
        top = 1.08 * max(y for _, _, points in series for _, y in points)
        ends = apart([points[-1][1] for _, _, points in series], top / 20, top)
        for i, (name, dashed, points) in reversed(list(enumerate(series))):
            own = name == "bowstring"
            xs, ys = zip(*points)
            axes.plot(
                xs, ys, color=colour[name], linewidth=2.6 if own else 1.6, linestyle="--" if dashed else "-",
                marker=None if name == "copy" else "o", markersize=6 if own else 4,
            )
            if i == 0:
                for x, y in points:
                    axes.annotate(number(y), (x, y), (0, 7), textcoords="offset points", ha="center", color=colour[name], fontsize=9)
            label = f"{name}, clustered" if dashed and name != "copy" else name
            axes.annotate(
                label, points[-1], (1.03, ends[i]), textcoords=axes.get_yaxis_transform(), va="center", color=colour[name],
                fontweight="bold" if own else "normal", annotation_clip=False, arrowprops={"arrowstyle": "-", "color": "#cccccc"},
            )
        if log:
            axes.set_xscale("log")
        axes.set_xticks([x for x, _ in ticks], [label for _, label in ticks])
        axes.set_xticks([], minor=True)
        axes.set_ylim(0, top)
        axes.grid(axis="y", color="#e4e4e4")
        axes.set(title=title, xlabel=x_name, ylabel=y_name)
        return svg(figure)


def bar_plot(title, x_name, works):
    """An SVG of `works`: (name, {who: times as long as the library itself takes}). Shorter is better."""
    with plt.rc_context(STYLE):
        whos = list(dict.fromkeys(who for _, times in works for who in times))
        colour, width = colours(whos), 0.84 / len(whos)
        figure, axes = plt.subplots(figsize=(8.6, 0.6 + 0.75 * len(works)), layout="constrained")
        for at, who in enumerate(whos):
            known = [(place + (at + 0.5) * width - 0.42, times[who]) for place, (_, times) in enumerate(works) if who in times]
            bars = axes.barh([y for y, _ in known], [time for _, time in known], width, color=colour[who], label=who)
            axes.bar_label(bars, [f" {time:.1f}" for _, time in known], fontsize=8, color="#444444")
        axes.set_yticks(range(len(works)), [name for name, _ in works])
        axes.invert_yaxis()
        axes.margins(x=0.08)
        axes.grid(axis="x", color="#e4e4e4")
        axes.set(title=title, xlabel=x_name)
        axes.legend(frameon=False, loc="lower right")
        return svg(figure)
