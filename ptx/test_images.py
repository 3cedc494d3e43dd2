"""Tests images.py on a small tree of sources, and that archives come back as they went in.

    python3 -m unittest discover -s ptx
"""

import random
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import images

SOURCES = {
    "lib.rs": "pub mod alone; pub mod both; mod far; mod near; mod shared;",
    "alone.rs": '    family "alone", blocks 3,\n        threads 256 for large larger;\nuse crate::folder::inner::Inner;\nuse crate::near::{self, Near};',
    "both.rs": '    family "alone";\n    family "other", blocks 2 for few;\nuse super::shared::deep::{Deep as D, more::{A, B}};',
    "near.rs": "fn near() { crate::far::far::<u8>(); written!() }",
    "far.rs": "// crate::unused::comment\nfn far() {}",
    "macros.rs": "macro_rules! written { () => {} }",
    "shared/mod.rs": "pub mod deep; mod implementations; trait Trait {}",
    "shared/implementations.rs": "impl super::Trait for u8 {}",
    "shared/deep.rs": "pub struct Deep;",
    "folder/mod.rs": "//! A list.\n#[macro_use]\npub mod inner;\npub(crate) mod beside;\n\nhost_only! {\n    static ALL: u8 = inner::ALL;\n}\n",
    "folder/inner.rs": "pub struct Inner;",
    "folder/beside.rs": "use crate::alone;",
    "unused.rs": "use crate::alone;",
    "target/mod.rs": "/// family \"told of\";\nuse crate::vocabulary::Word;",
    "target/host.rs": "use crate::unused;",
    "vocabulary.rs": "pub struct Word;",
}


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.kept = images.SOURCES, images.IMAGES
        self.addCleanup(lambda: (setattr(images, "SOURCES", self.kept[0]), setattr(images, "IMAGES", self.kept[1])))
        images.SOURCES, images.IMAGES = self.folder / "src", self.folder / "images"
        images.IMAGES.mkdir()
        for name, text in SOURCES.items():
            self.write(name, text)

    def write(self, name, text):
        path = images.SOURCES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Sources(Tree):
    def test_a_family_reaches_what_it_mentions_and_no_more(self):
        files = images.sources()
        self.assertEqual(images.families(files), ["alone", "other"])
        shared = ["shared/deep.rs", "shared/implementations.rs", "shared/mod.rs"]
        other = ["both.rs", *shared, "target/mod.rs", "vocabulary.rs"]
        self.assertEqual(images.reach("other", files), other)
        self.assertEqual(images.reach("alone", files), sorted([*other, "alone.rs", "far.rs", "folder/inner.rs", "macros.rs", "near.rs"]))

    def test_a_source_outdates_the_families_that_reach_it(self):
        raw = self.folder / "raw"
        raw.mkdir()
        for family in ("alone", "other"):
            (raw / f"{family}.sm_75.ptx").write_text("text")
        (images.IMAGES / "gone.a").write_text("of a family that is no more")
        self.assertEqual(list(images.stale(images.sources())), ["alone", "other"])
        images.pack(raw, images.IMAGES, "rustc", ["alone", "other"], images.sources())
        self.assertEqual(list(images.stale(images.sources())), [])
        self.assertEqual(len(list(images.IMAGES.iterdir())), 4)
        for name, outdated in {
            "far.rs": ["alone"],
            "shared/deep.rs": ["alone", "other"],
            "target/mod.rs": ["alone", "other"],
            "target/host.rs": [],
            "folder/inner.rs": ["alone"],
            "folder/beside.rs": [],
            "folder/mod.rs": [],
            "unused.rs": [],
            "lib.rs": [],
        }.items():
            self.write(name, SOURCES[name] + "\n")
            self.assertEqual(list(images.stale(images.sources())), outdated, name)
            self.write(name, SOURCES[name])

    def test_what_a_family_says_reaches_the_compiler(self):
        files = images.sources()
        self.assertEqual(images.tuning("alone", files), ["blocks 3", "threads 256 for large larger"])
        ptx = self.folder / "other.ptx"
        entry = ".visible .entry {}(\n\t.param .u64 {}_param_0\n)\n{{\n\t// begin inline asm\n\tret;\n}}\n"
        ptx.write_text(entry.format("few", "few") + entry.format("fewer", "fewer"))
        images.finish("other", ptx, files)
        bounded = entry.replace("\n)\n", "\n)\n.maxntid 256\n.minnctapersm {}\n").replace("\t// begin inline asm\n", "")
        self.assertEqual(ptx.read_text(), bounded.format("few", "few", 2) + bounded.format("fewer", "fewer", 4))
        ptx.write_text(entry.format("fewer", "fewer"))
        with self.assertRaisesRegex(AssertionError, "other has no few"):
            images.finish("other", ptx, files)


class Archives(Tree):
    def test_they_come_back_and_other_tools_read_them(self):
        path = self.folder / "take.a"
        contents = {"sm_75": b"odd", "gfx10-3-generic": bytes(range(256)) * 100, "gfx90a": b""}
        images.write_archive(path, contents)
        self.assertEqual(images.read_archive(path), contents)
        images.unpack(self.folder / "out", self.folder)
        self.assertEqual((self.folder / "out" / "take.sm_75.ptx").read_bytes(), b"odd")
        if shutil.which("ar"):
            listed = subprocess.run(["ar", "t", path], capture_output=True, text=True, check=True).stdout
            self.assertEqual(listed.split(), sorted(contents))

    def test_the_same_contents_leave_it_alone(self):
        path = self.folder / "take.a"
        images.write_archive(path, {"sm_75": b"one" * 99})
        # Simulates the output of another compressor.
        images.FILTERS[0]["lc"] = 0
        self.addCleanup(images.FILTERS[0].pop, "lc")
        before = path.read_bytes()
        images.write_archive(path, {"sm_75": b"one" * 99})
        self.assertEqual(path.read_bytes(), before)
        images.write_archive(path, {"sm_75": b"two" * 99})
        self.assertNotEqual(path.read_bytes(), before)

    def test_what_is_wrong_is_said(self):
        raw = self.folder / "raw"
        raw.mkdir()
        (raw / "alone.sm_75.ptx").write_text("text")
        (raw / "other.sm_75.ptx").write_bytes(random.Random(1).randbytes(420_000))
        for architecture, abi in [("gfx90a", 4), ("gfx942", 3), ("gfx11-generic", 4), ("gfx12-generic", 3)]:
            (raw / f"objects.{architecture}.hsaco").write_bytes(b"\x7fELF\2\1\1@" + bytes([abi]))
        images.pack(raw, images.IMAGES, "rustc", ["alone", "objects", "other"], images.sources())
        about = lambda family: [said for said in images.wrong() if said.startswith(family)]
        self.assertEqual(about("alone"), [])
        says = "objects.{}: its ELF header says ABI {}, not {}"
        self.assertEqual(about("objects"), [says.format("gfx12-generic", 3, 4), says.format("gfx90a", 4, 3)])
        self.assertRegex(about("other")[0], "other: 42.... bytes, 420000 allowed")
        images.write_archive(images.IMAGES / "alone.a", {"sm_75": b"tex?"})
        self.assertEqual(about("alone"), ["alone: the archive is not what the manifest says"])


if __name__ == "__main__":
    unittest.main()
