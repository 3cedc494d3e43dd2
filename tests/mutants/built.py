"""Draws changes, writes copies of `host/` and `kernels/src` with these changes, and builds their test programs."""

import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import rust

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "target" / "mutants"
COPY = OUT / "copy"
# The folders of the changed crates' `lib.rs`.
PARTS = ("host", "kernels/src")
# Files that only devices run, tests, and a generated table of powers.
UNCHANGED = re.compile(r"/tests/|tests?\.rs$|/testing\.rs$|/target/(amdgpu|nvptx|nvptx_memory|truncate)\.rs$|/powers\.rs$")
# The test programs of the kernels, and the host's.
TESTS = ("fixed_width", "ranges", "temporal", "written", "it")


def candidates(part, seed):
    """The changes in a random order, at most one for each line: (file, change)."""
    draw = random.Random(f"{seed} {part}")
    drawn = []
    for path in sorted((ROOT / part).rglob("*.rs")):
        name = str(path.relative_to(ROOT))
        if UNCHANGED.search(name):
            continue
        by_line = {}
        for change in rust.changes(path.read_bytes()):
            by_line.setdefault(change.line, {}).setdefault(change.kind, []).append(change)
        for kinds in by_line.values():
            drawn.append((name, draw.choice(kinds[draw.choice(sorted(kinds))])))
    draw.shuffle(drawn)
    return drawn


def apart(drawn):
    """The changes that do not overlap with an earlier one."""
    taken, chosen = {}, []
    for name, change in drawn:
        if all(change.end <= start or end <= change.start for start, end in taken.get(name, [])):
            taken.setdefault(name, []).append((change.start, change.end))
            chosen.append((name, change))
    return chosen


def write_copies(numbered):
    """Copies the parts with the changes. Returns the changes' places in the copies: {file: [(from, to, number)]}."""
    places = {}
    for part in PARTS:
        for path in sorted(path for path in (ROOT / part).rglob("*") if path.is_file()):
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
            if name == f"{part}/lib.rs":
                written += b"\nmod mutant;\n"
            store(COPY / name, written)
        store(COPY / part / "mutant.rs", (HERE / "mutant.rs").read_bytes())
    return places


def store(path, content):
    """Writes a file unless it has this content already, so that cargo does not build its dependants again."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def cargo(command, lib):
    """Builds the test programs. Returns (programs, errors), with each error as [(file, from, to)]."""
    environment = os.environ | {"RUSTC_WRAPPER": str(HERE / "rustc.sh"), "BOWSTRING_MUTANTS": str(COPY),
                                "CARGO_TARGET_DIR": str(OUT / "build")}
    tests = [word for test in TESTS for word in ("--test", test)]
    ran = subprocess.run(["cargo", *command, *(["--lib"] if lib else []), *tests, "--message-format=json"],
                         cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    programs, errors = {}, []
    for line in ran.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message.get("executable") and \
                message["target"]["name"] in ("bowstring", *TESTS):
            programs[message["target"]["name"]] = message["executable"]
        if message["reason"] == "compiler-message" and message["message"]["level"] == "error":
            said = message["message"]
            spans = said["spans"] + [span for child in said["children"] for span in child["spans"]]
            # An error in a macro also has the place of the macro's expansion.
            for span in list(spans):
                while span.get("expansion"):
                    span = span["expansion"]["span"]
                    spans.append(span)
            if spans:
                errors.append((said["message"], [
                    (name_of(span["file_name"]), span["byte_start"], span["byte_end"]) for span in spans]))
    if ran.returncode and not errors:
        sys.exit("cargo failed, and rustc's errors name no place")
    return {} if ran.returncode else programs, errors


def name_of(file):
    path = pathlib.Path(file)
    path = path if path.is_absolute() else ROOT / path
    return str(path.relative_to(COPY)) if path.is_relative_to(COPY) else str(path)


def built(count, seed, lib):
    """The programs, the changes that compile, by number, and how many did not compile. Each part has the same
    number of changes, the first ones drawn, and the build has some more."""
    drawn = [one for part in PARTS for one in apart(candidates(part, seed))]
    # Changes that did not compile last time are not built again.
    known = OUT / "dropped.json"
    of = hashlib.sha256(repr(drawn).encode()).hexdigest()
    before = json.loads(known.read_text()) if known.exists() else {}
    dropped = set(before.get(of, []))

    def first(many):
        """The first changes of each part that were not dropped."""
        left = [(number, one) for number, one in enumerate(drawn) if number not in dropped]
        return dict(one for part in PARTS for one in [one for one in left if one[1][0].startswith(f"{part}/")][:many])

    each = count // len(PARTS)
    while True:
        numbered = first(each + each // 2)
        places = write_copies(numbered)
        began = time.time()
        # Checking types takes less time than compiling, so it comes first.
        programs, errors = cargo(["check"], False)
        if not errors:
            programs, errors = cargo(["test", "--no-run"], lib)
        wrong = {number for _, spans in errors for file, start, end in spans
                 for begin, finish, number in places.get(file, []) if start < finish and begin < end}
        print(f"built {len(numbered)} in {time.time() - began:.0f} s: {len(wrong)} do not compile", flush=True)
        if programs:
            return programs, first(each), len(dropped)
        if not wrong:
            sys.exit("\n".join(f"{said} {spans}" for said, spans in errors))
        dropped |= wrong
        known.write_text(json.dumps({of: sorted(dropped)}))
