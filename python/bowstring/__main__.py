"""`python -m bowstring`: looks at this machine's devices, tries each, and says what it found."""

# Each GPU is examined by a process of its own, so that there is a page whatever a GPU or its driver does.

import argparse
import signal
import sys

from ._bowstring import _examine_apart, _examine_only


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
    parser.add_argument("--only", metavar="WHAT", help="a library or a device (cuda, cuda:0), told in lines of JSON as it goes")
    given = parser.parse_args()
    # The examination does not look whether somebody has pressed Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if given.only:
        _examine_only(given.only, given.budget, given.devices)
        return 0
    # This very command, up to what was asked for.
    command = [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]]
    on_terminal = sys.stderr.isatty()
    report = _examine_apart(command, given.budget, given.devices, bar if on_terminal else None, given.json)
    if on_terminal:
        sys.stderr.write("\r\x1b[2K")
    print(report, end="")
    if given.json:
        print(f"The same for programs: {given.json}")
    return 0 if report.is_well else 1


if __name__ == "__main__":
    sys.exit(main())
