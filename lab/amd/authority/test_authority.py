"""Compares the interpreter of AMD's code objects with authorities that its authors did not write. Needs the
packages in requirements.txt, LLVM 22, and the interpreter's example program (`BOWSTRING_AMDI` names it,
unless it is the debug build's):

    cargo build --example amdi
    python -m unittest discover -s lab/amd/authority

`BOWSTRING_AMD_CASES` sets the number of waves of random and extreme operands for each shape of an
instruction (default 4: in four consecutive waves all, some, one and no lanes run). `BOWSTRING_AMD_SEED`
sets their random seed."""

import collections
import os
import random
import unittest
from unittest import mock

import changes
import decode
import exceptions
import machine
import rdna2
import semantics
import shipped

CASES = int(os.environ.get("BOWSTRING_AMD_CASES", "4"))
SEED = int(os.environ.get("BOWSTRING_AMD_SEED", "1"))


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
            return [(entry, code, family, wave) for entry, code in zip(entries, self.stand_ins(target, entries))]
        pairs, without = rdna2.equivalents(entries)
        self.assertFalse(without, "no equivalent in RDNA3 or CDNA")
        return pairs

    def stand_ins(self, target, entries):
        """The codes of instructions; for those that the wheel lacks, the codes of others with the same
        operands."""
        codes = [entry["hex"] for entry in entries]
        for i, entry in enumerate(entries):
            other, _ = exceptions.absent(entry["name"]) or (None, None)
            if other:
                exceptions.use("V_MAC_F32 is not in the wheel")
                text = entry["text"].replace(decode.plain(entry["name"]), other, 1)
                [codes[i]] = shipped.assemble(target, [text])
        return codes

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
                # No operation is left out: those without a text are in the table of exceptions.
                names = {name for entry in self.shipped[target] for name in semantics.operations_of(entry)}
                self.assertEqual(names, operations)
        entries = {line.split(" | ")[0].removeprefix("| ") for line in table() if line.startswith("| ")}
        entries -= {"Exception", "---"}
        # The decoding test uses one exception, which is present if both tests have run.
        used = set(exceptions.USED) | {"16-bit literals have an upper half"}
        self.assertEqual(entries, used, "AUTHORITY.md's table and what was used")
        print(f"exceptions: {len(used)}, each in AUTHORITY.md")

    def test_changed_pseudo_code_is_noticed(self):
        total = 0
        for target, family in (("gfx11-generic", "rdna3"), ("gfx90a", "cdna")):
            draw = random.Random(SEED)
            texts, changed, pairs, shapes = machine.texts(family), {}, [], collections.defaultdict(list)
            for pair in self.pairs(target, draw):
                shapes[decode.plain(pair[0]["name"])].append(pair)
            for name, written, other in changes.CHANGES[family]:
                held = shapes[decode.plain(name)]
                keys = [key for key in texts if texts[key] and decode.plain(key) == decode.plain(name)]
                for key in keys:
                    self.assertIn(written, texts[key], f"{family} {key}")
                    changed[key] = texts[key].replace(written, other)
                self.assertTrue(keys and held, f"{name} is not shipped for {target}")
                # Scalar operations get more cases: each wave gives one comparison, not one for each lane.
                pairs += draw.choices(held, k=12)
            changed = texts | changed
            with mock.patch.object(machine, "texts", lambda _, changed=changed: changed):
                _, _, _, wrong, outside = semantics.check(pairs, CASES, draw)
            differ = {decode.plain(text.split()[0]) for _, _, text, _ in wrong}
            unseen = {decode.plain(name) for name, _, _ in changes.CHANGES[family]} - differ
            self.assertFalse(unseen, f"{target}: nothing differs")
            self.assertFalse(outside)
            total += len(changes.CHANGES[family])
        print(f"changed pseudo-code: all of {total} changes are noticed")


def table():
    return (shipped.HERE.parent / "AUTHORITY.md").read_text().splitlines()


if __name__ == "__main__":
    unittest.main()
