"""Holds the interpreter of AMD's code objects against authorities that its authors did not write. Needs the packages in
requirements.txt, LLVM 22, and the interpreter's example program (`BOWSTRING_AMDI` names it, if it is not the debug build's):

    cargo build -p bowstring-amdi --example amdi
    python -m unittest discover -s amdi/authority

`BOWSTRING_AMD_CASES` says how many waves of random and extreme operands each shape of an instruction gets (default 4: of
four in a row one has all lanes, one has one and one has none), `BOWSTRING_AMD_SEED` how they are drawn."""

import collections
import os
import random
import re
import unittest

import decode
import exceptions
import machine
import rdna2
import semantics
import shipped

CASES = int(os.environ.get("BOWSTRING_AMD_CASES", "4"))
SEED = int(os.environ.get("BOWSTRING_AMD_SEED", "1"))

# What each of these is changed into must be noticed.
CHANGES = [(" + ", " - "), (" - ", " + "), (" & ", " | "), (" | ", " & "), (" >= ", " > "), (" < ", " <= "), (" > ", " >= "),
           (" <= ", " < "), (" == ", " != "), (" <> ", " == "), (" << ", " >> "), (" >> ", " << "), (" * ", " + "),
           (" ^ ", " | "), ("trunc(", "("), (" ? S1", " ? S0"), ("= S0", "= ~S0"), ("(S0", "(~S0"), ("16'I(signext", "16'I("),
           ("].b32", "].b16"), ("].b16", "].b8"), ("].u16", "].u8"), ("].u8", "].i8"),
           ("EXEC == 0x0LL", "1"), ("lane = 32'U(", "lane = 1U + 32'U("), ("= fma(S0", "= fma(~S0")]


def by_target():
    found = collections.defaultdict(list)
    for entry in shipped.encodings():
        found[entry["arch"]].append(entry)
    return found


def shown(wrong):
    each = collections.Counter(text.split()[0] for _, _, text, _ in wrong)
    lines = [" | ".join(entry) for entry in wrong[:20]]
    return f"{len(wrong)} differences, {dict(each.most_common(20))}\n" + "\n".join(lines)


class Authority(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.shipped = by_target()

    def test_every_shipped_instruction_is_decoded_and_encoded_alike(self):
        self.assertEqual(set(self.shipped), set(shipped.TARGETS))
        for target, entries in sorted(self.shipped.items()):
            with self.subTest(target):
                family = shipped.TARGETS[target][0]
                wrong = decode.check_llvm(entries) + (decode.check_independent(entries) if family else [])
                by = "LLVM and tinygrad" if family else "LLVM"
                print(f"{target}: {len(entries)} instructions by {by}, {len(wrong)} differ")
                self.assertFalse(wrong, shown(wrong))

    def pairs(self, target, draw, each=1):
        entries = semantics.chosen(self.shipped[target], each, draw)
        family, _, wave = shipped.TARGETS[target]
        if family:
            return [(entry, entry["hex"], family, wave) for entry in entries]
        pairs, without = rdna2.equivalents(entries)
        self.assertFalse(without, "no equivalent in RDNA3 or CDNA")
        return pairs

    def test_every_operation_does_what_the_pseudo_code_says(self):
        for target in sorted(self.shipped):
            with self.subTest(target):
                draw = random.Random(SEED)
                pairs = self.pairs(target, draw)
                cases, lanes, operations, wrong, uncovered = semantics.check(pairs, CASES, draw)
                print(f"{target}: {len(operations)} operations in {len(pairs)} shapes, {cases} waves, {lanes} lanes by "
                      f"pseudo-code, {len(wrong)} differ")
                self.assertFalse(wrong, shown(wrong))
                self.assertFalse(uncovered)
                # None is left out: what has no text is in the table of exceptions.
                names = {name for entry in self.shipped[target] for name in semantics.operations_of(entry)}
                self.assertEqual(names, operations)
        entries = {line.split(" | ")[0].removeprefix("| ") for line in table() if line.startswith("| ")}
        entries -= {"Exception", "---"}
        # The decoding uses one, which is there if both tests have run.
        used = set(exceptions.USED) | {"16-bit literals have an upper half"}
        self.assertEqual(entries, used, "AUTHORITY.md's table and what was used")
        print(f"exceptions: {len(used)}, each in AUTHORITY.md")

    def test_a_changed_pseudo_code_is_noticed(self):
        """Changes each operation's text in one place, and looks whether the interpreter then differs."""
        draw = random.Random(SEED)
        noticed = total = 0
        missed = []
        for target in ("gfx11-generic", "gfx90a"):
            family = shipped.TARGETS[target][0]
            texts = dict(machine.texts(family))
            by_name = collections.defaultdict(list)
            for pair in self.pairs(target, draw):
                by_name[pair[0]["name"]].append(pair)
            pairs = {}
            for name, held in by_name.items():
                pairs.setdefault(decode.plain(name), draw.choice(held))
            for name, pair in sorted(pairs.items()):
                keys = [key for key in texts if key and decode.plain(key) == name and texts[key]]
                changed = {key: change(texts[key]) for key in keys}
                if not keys or exceptions.SILENT.match(name.upper()) or not any(changed.values()):
                    continue
                machine.CACHE[family] = texts | {key: text for key, text in changed.items() if text}
                try:
                    _, _, _, wrong, outside = semantics.check([pair], max(8, CASES), draw)
                    # An address that leaves the case's memory shows as well.
                    wrong = wrong or outside
                finally:
                    machine.CACHE[family] = texts
                total += 1
                noticed += bool(wrong)
                if not wrong:
                    missed.append(f"{target} {pair[0]['text']}")
        print(f"changed pseudo-code: {noticed} of {total} noticed; missed: {missed}")
        self.assertGreaterEqual(noticed, 0.9 * total)


def change(text):
    """The text without its comments, and another sign in it; nothing where no change is known."""
    bare = re.sub(r"//[^\n]*", "", text)
    for written, other in CHANGES:
        if written in bare:
            return bare.replace(written, other, 1)
    return None


def table():
    return (shipped.HERE.parent / "AUTHORITY.md").read_text().splitlines()


if __name__ == "__main__":
    unittest.main()
