"""Do the tests notice wrong code? Changes a hundred lines of host/, each by itself, and says which changes no test notices.

    pip install -r tests/mutants/requirements.txt
    python3 tests/mutants/host.py [--count 100] [--seed 1]

One build has all changes (`rust.py`); a change that does not compile is dropped for the next one drawn. Then every test
runs in a process of its own, unchanged, which says how long it takes and which changes it comes to pass. A change is tried on
those tests only, quickest first: with few random cases, and if that notices nothing, with as many as in every run. What no
test comes to pass is a class of its own. Everything is under target/mutants/; `host.md` has the reasons for what is left."""

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import rust

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "target" / "mutants"
COPY = OUT / "host"
# Of a changed program nobody knows what it allocates.
MEMORY = 12 << 30
# Tests of what a change cannot be seen by, but which run it: those of images, and the hour's load.
LEFT_OUT = ("mutants::", "images::", "costs::", "soak::", "layers::", "circles::", "readme::")
FEW = {"BOWSTRING_CASES": "2"}
# Seconds of a processor, beyond which a test is left out of the quick run.
QUICK = 1


def candidates(seed):
    """All lines' changes in a random order, at most one of a line: (file, change)."""
    draw = random.Random(seed)
    drawn = []
    for path in sorted((ROOT / "host").rglob("*.rs")):
        name = str(path.relative_to(ROOT))
        if re.search(r"/tests/|tests?\.rs$|/testing\.rs$", name):
            continue
        by_line = {}
        for change in rust.changes(path.read_bytes()):
            by_line.setdefault(change.line, {}).setdefault(change.kind, []).append(change)
        for kinds in by_line.values():
            drawn.append((name, draw.choice(kinds[draw.choice(sorted(kinds))])))
    draw.shuffle(drawn)
    return drawn


def apart(drawn):
    """Those that do not overlap with an earlier one."""
    taken, chosen = {}, []
    for name, change in drawn:
        if all(change.end <= start or end <= change.start for start, end in taken.get(name, [])):
            taken.setdefault(name, []).append((change.start, change.end))
            chosen.append((name, change))
    return chosen


def write_copy(numbered):
    """host/ with the changes in it. Returns where they are in the copy: {file: [(from, to, number)]}."""
    places = {}
    for path in sorted((ROOT / "host").rglob("*.rs")):
        name = str(path.relative_to(ROOT))
        source, written, at = path.read_bytes(), b"", 0
        here = sorted((change.start, number, change) for number, (of, change) in numbered.items() if of == name)
        for start, number, change in here:
            text = change.written.format(f"crate::mutant::mutant({number})").encode()
            written += source[at:start]
            places.setdefault(name, []).append((len(written), len(written) + len(text), number))
            written += text
            at = change.end
        written += source[at:]
        if name == "host/lib.rs":
            written += b"\nmod mutant;\n"
        store(COPY / pathlib.Path(name).relative_to("host"), written)
    store(COPY / "mutant.rs", (HERE / "mutant.rs").read_bytes())
    return places


def store(path, content):
    """Leaves a file alone that is so already, so that what depends on it is not built again."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def build(quick):
    """The test programs, or the errors: (programs, errors), each error as [(file, from, to)]."""
    environment = os.environ | {"RUSTC_WRAPPER": str(HERE / "rustc.sh"), "BOWSTRING_MUTANTS_HOST": str(COPY),
                                "CARGO_TARGET_DIR": str(OUT / "build")}
    ran = subprocess.run(["cargo", "test", *([] if quick else ["--lib"]), "--test", "it", "--no-run", "--message-format=json"],
                         cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    programs, errors = {}, []
    for line in ran.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message.get("executable") and \
                message["manifest_path"] == str(ROOT / "Cargo.toml"):
            programs[message["target"]["name"]] = message["executable"]
        if message["reason"] == "compiler-message" and message["message"]["level"] == "error":
            said = message["message"]
            spans = said["spans"] + [span for child in said["children"] for span in child["spans"]]
            if spans:
                errors.append((said["message"], [
                    (name_of(span["file_name"]), span["byte_start"], span["byte_end"]) for span in spans]))
    if ran.returncode and not errors:
        sys.exit("cargo failed, and rustc's errors name no place")
    return {} if ran.returncode else programs, errors


def name_of(file):
    path = pathlib.Path(file)
    path = path if path.is_absolute() else ROOT / path
    return f"host/{path.relative_to(COPY)}" if path.is_relative_to(COPY) else str(path)


def built(count, seed, quick):
    """The programs, and the changes that compile, by number: the first so many as they were drawn, and some more."""
    drawn = apart(candidates(seed))
    # What is known of these changes from the last time is not built again.
    known = OUT / "dropped.json"
    of = hashlib.sha256(repr(drawn).encode()).hexdigest()
    before = json.loads(known.read_text()) if known.exists() else {}
    spare, dropped = count + count // 2, set(before.get(of, []))
    while True:
        numbered = dict(list((n, one) for n, one in enumerate(drawn) if n not in dropped)[:spare])
        places = write_copy(numbered)
        began = time.time()
        programs, errors = build(quick)
        wrong = {number for _, spans in errors for file, start, end in spans
                 for begin, finish, number in places.get(file, []) if start < finish and begin < end}
        print(f"built {len(numbered)} in {time.time() - began:.0f} s: {len(wrong)} do not compile", flush=True)
        if programs:
            return programs, dict(list(numbered.items())[:count]), len(dropped)
        if not wrong:
            sys.exit("\n".join(f"{said} {spans}" for said, spans in errors))
        dropped |= wrong
        known.write_text(json.dumps({of: sorted(dropped)}))


def run(program, tests, seconds, extra, processor=resource.RLIM_INFINITY):
    """Whether they pass: "passed", "timeout", or which failed. `processor` limits the seconds that they compute."""
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


def surveyed(programs, jobs, processor):
    """Of each test, how long it takes and which changes it comes to pass; those that fail unchanged, or take too long where
    that is limited, are said and left out."""
    def one(name, test):
        reached = OUT / "reached" / f"{name}.{test.replace(':', '_')}"
        reached.unlink(missing_ok=True)
        began = time.time()
        outcome = run(programs[name], [test], 600, FEW | {"BOWSTRING_MUTANTS_REACHED": str(reached)},
                      processor)
        numbers = sorted({int(line) for line in reached.read_text().split()}) if reached.exists() else []
        return name, test, outcome, time.time() - began, numbers

    shutil.rmtree(OUT / "reached", ignore_errors=True)
    (OUT / "reached").mkdir(parents=True)
    found = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(one, name, test) for name in sorted(programs) for test in listed(programs[name])]
        for future in concurrent.futures.as_completed(waiting):
            name, test, outcome, seconds, numbers = future.result()
            if outcome == "passed":
                found.append((seconds, name, test, numbers))
            else:
                print(f"left out: {name} {test}: {outcome}", flush=True)
                # It comes to pass them all the same.
                found.append((None, name, test, numbers))
    return sorted(found, key=lambda test: (test[0] is None, test))


def tried(number, survey, programs, whole):
    """Which test notices a change, "survived", or "not reached", or "not tried" where only tests that were left out do."""
    reaching = [(seconds, name, test) for seconds, name, test, numbers in survey if number in numbers]
    if not reaching:
        return "not reached"
    reaching = [test for test in reaching if test[0] is not None]
    if not reaching:
        return "not tried"
    for extra, factor in [(FEW, 1)] + ([({}, 20)] if whole else []):
        parts, sum_of = [], 0.0
        for seconds, name, test in reaching:
            sum_of += seconds
            # Quick tests first, and none waits for all of the slow ones.
            part = 0 if sum_of < 4 else 1 if sum_of < 20 else 2
            parts.append((part, name, test, seconds))
        for key in sorted({(part, name) for part, name, _, _ in parts}):
            tests = [(test, seconds) for part, name, test, seconds in parts if (part, name) == key]
            limit = 120 + 10 * factor * sum(seconds for _, seconds in tests)
            outcome = run(programs[key[1]], [test for test, _ in tests], limit, extra | {"BOWSTRING_MUTANT": str(number)})
            if outcome != "passed":
                return outcome
    return "survived"


@contextlib.contextmanager
def regressions_as_they_were():
    """Changed programs fail, and proptest writes down how: none of that is a regression."""
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="few random cases, quick tests and no unit tests")
    parser.add_argument("--only", type=int, nargs="*", help="these changes, with the last survey")
    given = parser.parse_args()
    # Whoever starts it may have been as kind already.
    os.nice(max(0, 5 - os.nice(0)))
    OUT.mkdir(parents=True, exist_ok=True)
    programs, numbered, dropped = built(given.count, given.seed, given.quick)
    kept = OUT / "survey.json"
    if given.only and kept.exists():
        survey = json.loads(kept.read_text())
    else:
        began = time.time()
        survey = surveyed(programs, given.jobs, QUICK if given.quick else resource.RLIM_INFINITY)
        kept.write_text(json.dumps(survey))
        print(f"{len(survey)} tests, surveyed in {time.time() - began:.0f} s", flush=True)
    results = {}
    with regressions_as_they_were(), concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        waiting = {pool.submit(tried, number, survey, programs, not given.quick): number
                   for number in numbered if not given.only or number in given.only}
        for future in concurrent.futures.as_completed(waiting):
            number = waiting[future]
            results[number] = future.result()
            name, change = numbered[number]
            print(f"{number} {name}:{change.line} {change.kind}: {change.shown}: {results[number]}", flush=True)
    (OUT / "results.json").write_text(json.dumps(results))
    rows = sorted((numbered[number][0], numbered[number][1].line, numbered[number][1], by) for number, by in results.items())
    lines = ["| where | kind | changed | noticed by |", "| --- | --- | --- | --- |"]
    for name, line, change, by in rows:
        lines.append(f"| `{name}:{line}` | {change.kind} | {change.shown.replace('|', chr(92) + '|')} | {by} |")
    (OUT / "table.md").write_text("\n".join(lines) + "\n")
    survived = sum(by == "survived" for by in results.values())
    unreached = sum(by == "not reached" for by in results.values())
    untried = sum(by == "not tried" for by in results.values())
    noticed = len(results) - survived - unreached - untried
    print(f"{len(results)} changes: {noticed} noticed, {survived} not, {untried} not tried, {unreached} that no test comes to "
          f"pass; {dropped} more did not compile")


if __name__ == "__main__":
    main()
