"""Do the tests notice wrong code? Changes 150 lines of `host/` and `kernels/`, one at a time, and lists the
changes that no test notices.

    pip install -r tests/mutants/requirements.txt
    python3 tests/mutants/run.py [--count 150] [--seed 1]

One build has all changes (`built.py`, `rust.py`); the next change drawn replaces one that does not compile.
Then every test runs in a process of its own, without a change; that shows how long it takes and which changes
it reaches. A change is tried only on the tests that reach it, in three rounds, each for the changes that the
one before did not notice: the quick tests with few random cases, the slow ones likewise, and all tests with
the usual number of cases. Changes that no test reaches are listed apart. All files are under target/mutants/;
`list.md` has the reasons for the changes that remain."""

import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from built import OUT, ROOT, built, store

# A changed program may allocate anything.
MEMORY = 12 << 30
# Tests that run changed lines without checking their effect: those of images, of the sources, and the load
# of an hour.
LEFT_OUT = ("mutants::", "images::", "costs::", "soak::", "layers::", "circles::", "readme::")
FEW = {"BOWSTRING_CASES": "2"}
# Seconds of a processor above which the quick round leaves a test out.
QUICK = 2
# Seconds above which no round tries a test.
SLOW = 300
ROUNDS = {"quick": (FEW, 1), "slow": (FEW, 1), "whole": ({}, 20)}
NOT_NOTICED = ("survived", "not reached", "not tried")


def run(program, tests, seconds, extra, processor=resource.RLIM_INFINITY):
    """Runs tests: "passed", "timeout", or which failed. `processor` limits their seconds of processor time."""
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (processor, resource.RLIM_INFINITY))

    process = subprocess.Popen(
        [program, "--exact", *tests, "--test-threads=1"], cwd=ROOT, env=os.environ | extra,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        preexec_fn=limited)
    try:
        said = process.communicate(timeout=seconds)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "timeout"
    if process.returncode == 0:
        return "passed"
    failed = re.findall(r"^test (\S+) \.\.\. .*?FAILED$", said, re.M) or re.findall(r"^    (\S+)$", said, re.M)
    begun = re.findall(r"^test (\S+) \.\.\. ", said, re.M)
    if -process.returncode == signal.SIGXCPU:
        return "slow"
    return failed[0] if failed else f"{begun[-1] if begun else tests[0]} (ended with {process.returncode})"


def listed(program):
    said = subprocess.run([program, "--list"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.removesuffix(": test") for line in said.splitlines()
            if line.endswith(": test") and not line.startswith(LEFT_OUT)]


def surveyed(programs, tests, jobs, processor):
    """For each test: the seconds that it takes, or None if it takes too long, and the changes that it reaches.
    Tests that fail without a change are printed and left out."""
    def one(name, test):
        reached = OUT / "reached" / f"{name}.{test.replace(':', '_')}"
        reached.unlink(missing_ok=True)
        began = time.time()
        outcome = run(programs[name], [test], 900, FEW | {"BOWSTRING_MUTANTS_REACHED": str(reached)}, processor)
        numbers = sorted({int(line) for line in reached.read_text().split()}) if reached.exists() else []
        return name, test, outcome, time.time() - began, numbers

    (OUT / "reached").mkdir(parents=True, exist_ok=True)
    found = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(one, name, test) for name, test in tests]
        for future in concurrent.futures.as_completed(waiting):
            name, test, outcome, seconds, numbers = future.result()
            if outcome in ("passed", "slow"):
                found.append((seconds if outcome == "passed" else None, name, test, numbers))
            else:
                print(f"left out: {name} {test}: {outcome}", flush=True)
    return sorted(found, key=lambda test: (test[0] is None, test))


def tried(number, tests, programs, which):
    """The test that notices a change, or "survived", "not reached", or "not tried" if only slower tests reach it."""
    reaching = [(seconds, name, test) for seconds, name, test, numbers in tests if number in numbers]
    if not reaching:
        return "not reached"
    reaching = [test for test in reaching if test[0] is not None]
    if not reaching:
        return "not tried"
    extra, factor = ROUNDS[which]
    parts, sum_of = [], 0.0
    for seconds, name, test in reaching:
        sum_of += seconds
        # Quick tests come first, so that they do not wait for the slow ones.
        parts.append((0 if sum_of < 4 else 1 if sum_of < 20 else 2, name, test, seconds))
    for key in sorted({(part, name) for part, name, _, _ in parts}):
        tests = [(test, seconds) for part, name, test, seconds in parts if (part, name) == key]
        limit = 120 + 10 * factor * sum(seconds for _, seconds in tests)
        outcome = run(programs[key[1]], [test for test, _ in tests], limit, extra | {"BOWSTRING_MUTANT": str(number)})
        if outcome != "passed":
            return outcome
    return "survived"


@contextlib.contextmanager
def regressions_as_they_were():
    """Removes the regressions that proptest records when a changed program fails."""
    folder = ROOT / "tests" / "proptest-regressions"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    try:
        yield
    finally:
        for path in folder.rglob("*"):
            if path.is_file() and path not in before:
                path.unlink()
        for path, content in before.items():
            store(path, content)


def table(numbered, results):
    rows = sorted((numbered[number][0], numbered[number][1].line, numbered[number][1].kind, numbered[number][1].shown, by)
                  for number, by in results.items())
    lines = ["| where | kind | changed | noticed by |", "| --- | --- | --- | --- |"]
    for name, line, kind, shown, by in rows:
        lines.append(f"| `{name}:{line}` | {kind} | {shown.replace('|', chr(92) + '|')} | {by} |")
    store(OUT / "table.md", ("\n".join(lines) + "\n").encode())


def survey_of(which, programs, jobs, again):
    """The survey that a round needs: of all tests, cut off if they are slow, and later of the slow ones in full."""
    kept = OUT / "survey.json"
    survey = json.loads(kept.read_text()) if again and kept.exists() else None
    began = time.time()
    if survey is None:
        shutil.rmtree(OUT / "reached", ignore_errors=True)
        tests = [(name, test) for name in sorted(programs) for test in listed(programs[name])]
        survey = surveyed(programs, tests, jobs, QUICK)
    if which != "quick" and any(test[0] is None for test in survey):
        slow = surveyed(programs, [tuple(test[1:3]) for test in survey if test[0] is None], jobs, SLOW)
        survey = [test for test in survey if test[0] is not None] + slow
    kept.write_text(json.dumps(survey))
    print(f"{len(survey)} tests, surveyed in {time.time() - began:.0f} s", flush=True)
    return survey


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="the first round only, and no unit tests")
    parser.add_argument("--only", type=int, nargs="*", help="these changes, with the last survey")
    given = parser.parse_args()
    # The parent process may have lowered the priority already.
    os.nice(max(0, 5 - os.nice(0)))
    OUT.mkdir(parents=True, exist_ok=True)
    programs, numbered, dropped = built(given.count, given.seed, not given.quick)
    left = [number for number in numbered if not given.only or number in given.only]
    results, quick = {}, set()
    for which in ["quick"] if given.quick else ROUNDS:
        survey = survey_of(which, programs, given.jobs, given.only or results)
        if which == "quick":
            quick = {(name, test) for seconds, name, test, _ in survey if seconds is not None}
        if which == "slow":
            survey = [test for test in survey if tuple(test[1:3]) not in quick]
        with regressions_as_they_were(), concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            waiting = {pool.submit(tried, number, survey, programs, which): number for number in left}
            for future in concurrent.futures.as_completed(waiting):
                number = waiting[future]
                outcome = future.result()
                # A quick test may have reached a change that no slow one reaches.
                results[number] = "survived" if (outcome, results.get(number)) == ("not reached", "survived") else outcome
                name, change = numbered[number]
                print(f"{which}: {number} {name}:{change.line} {change.kind}: {change.shown}: {results[number]}", flush=True)
                (OUT / "results.json").write_text(json.dumps(results))
                table(numbered, results)
        left = [number for number in left if results[number] in NOT_NOTICED]
    for part in ("host", "kernels"):
        of = [by for number, by in results.items() if numbered[number][0].startswith(part)]
        survived, unreached, untried = (of.count(by) for by in NOT_NOTICED)
        print(f"{part}: {len(of)} changes: {len(of) - survived - unreached - untried} noticed, {survived} not, {untried} not "
              f"tried, {unreached} that no test comes to pass")
    print(f"{dropped} more did not compile")


if __name__ == "__main__":
    main()
