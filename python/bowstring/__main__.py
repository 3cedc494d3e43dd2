"""`python -m bowstring`: examine the devices of this machine, and report the results."""

# A process of its own examines each GPU, so that the report is complete even if a GPU or its driver fails.

import argparse
import signal
import sys

from ._bowstring import _examine_apart, _examine_only


def bar(what: str, done: int, of: int) -> None:
    """Draw the progress over the current line of the terminal."""
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
    # The examination does not check for Ctrl-C, so let it end the process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if given.only:
        _examine_only(given.only, given.budget, given.devices)
        return 0
    # The command that started this process, without its arguments.
    command = [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]]
    on_terminal = sys.stderr.isatty()
    progress = bar if on_terminal else None
    report, problem = _examine_apart(command, given.budget, given.devices, progress, given.json)
    if on_terminal:
        sys.stderr.write("\r\x1b[2K")
    print(report, end="")
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    if given.json:
        print(f"The same for programs: {given.json}")
    return 0 if report.is_well else 1


if __name__ == "__main__":
    sys.exit(main())
