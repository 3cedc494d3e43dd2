#!/usr/bin/env python3
"""Draws the picture of a report again from the figures in it, with three digits: `benches/redraw.py
benches/results/cpu-2-cores.md`. For pages that were written without matplotlib, and after a change to
the style."""

import sys
from pathlib import Path

from drawings import picture
from pages import read


def main():
    for path in map(Path, sys.argv[1:]):
        benches, _ = read(path.read_text())
        if not benches:
            sys.exit(f"{path}: no figures")
        if not picture(benches, path):
            sys.exit("drawing needs matplotlib: benches/requirements.txt")


if __name__ == "__main__":
    main()
