"""`python -m bowstring`: looks at this machine's devices, tries each, and says what it found."""

import argparse
import signal
import sys

from . import doctor


def bar(what: str, done: int, of: int) -> None:
    """One line of the terminal, drawn over and over."""
    full = 32 * done // max(of, 1)
    sys.stderr.write(f"\r\x1b[2K{'█' * full}{'░' * (32 - full)} {done}/{of} {what}")
    sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bowstring", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write the same for programs, to send to us")
    parser.add_argument("--budget", metavar="SECONDS", type=float, default=100.0, help="the time for everything")
    parser.add_argument("--devices", metavar="NUMBER", type=int, default=8, help="how many GPUs of a kind")
    given = parser.parse_args()
    # The examination does not look whether somebody has pressed Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    on_terminal = sys.stderr.isatty()
    report = doctor(seconds=given.budget, devices=given.devices, progress=bar if on_terminal else None)
    if on_terminal:
        sys.stderr.write("\r\x1b[2K")
    print(report, end="")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            file.write(report.to_json() + "\n")
        print(f"The same for programs: {given.json}")
    return 0 if report.is_well else 1


if __name__ == "__main__":
    sys.exit(main())
