"""`python3 -m unittest discover -s benches`, with matplotlib: tests the report of a folder as criterion
leaves it, with known figures."""

import contextlib
import io
import json
import math
import os
import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from unittest import mock

import drawings
import figures
import pages
import redraw
import report

KEPT = "filter/cpu/int32/1048576/50%-uniform/no-nulls/1"


def figure(folder, group, who, seconds, moved):
    """Criterion's output for one function."""
    new = folder / group.replace("/", "_") / who / "new"
    new.mkdir(parents=True, exist_ok=True)
    about = {"group_id": group, "function_id": who, "throughput": {"Bytes": moved}}
    (new / "benchmark.json").write_text(json.dumps(about))
    (new / "estimates.json").write_text(json.dumps({"median": {"point_estimate": seconds * 1e9}}))


class Folder(unittest.TestCase):
    """A folder as criterion leaves it."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder, self.printed = Path(temporary.name) / "criterion", io.StringIO()
        self.out, self.plots = Path(temporary.name) / "out", Path(temporary.name) / "plots"
        figure(self.folder, "copy/cpu/bytes/1000000/-/-/1", "one-thread", 0.0002, 2_000_000)
        figure(self.folder, "copy/cpu/bytes/1000000/-/-/1", "all-threads", 0.0001, 2_000_000)
        for percent, seconds in [(1, 0.001), (50, 0.0004), (99, 0.0005)]:
            group = f"filter/cpu/int32/1048576/{percent}%-uniform/no-nulls/1"
            figure(self.folder, group, "bowstring", seconds, 4_000_000)
            figure(self.folder, group, "arrow-rs", 2 * seconds, 4_000_000)
        for rows in [8192, 131072]:
            group = f"filter/cpu/int32/{rows}/50%-uniform/no-nulls/1"
            figure(self.folder, group, "bowstring", rows * 4e-10, rows * 4)
        self.say({"device": "cpu", "name": "CPU"})
        self.say({"not_run": "cuda", "reason": "no library"})

    def say(self, *what, file="bowstring.jsonl"):
        with (self.folder / file).open("a") as notes:
            notes.writelines(json.dumps(one) + "\n" for one in what)

    def report(self, *more):
        arguments = ["--criterion", str(self.folder), "--out", str(self.out), "--plots", str(self.plots)]
        arguments += ["--date", "2000-01-01"]
        self.printed.truncate(self.printed.seek(0))
        with contextlib.redirect_stdout(self.printed):
            self.status = report.main([*arguments, "--machine", "A test", *more])
        return (self.out / "a-test.md").read_text()

    def row(self, page, start):
        found = [line for line in page.splitlines() if line.startswith(f"| {start}")]
        self.assertEqual(len(found), 1, page)
        return [cell.strip() for cell in found[0].strip("|").split("|")]


class Report(Folder):
    def test_rates_are_held_against_the_copy_and_the_best_peer(self):
        self.say({"id": KEPT, "who": "polars", "seconds": 0.0003}, file="peers.jsonl")
        page = self.report("--note", "nothing else ran")
        # 4 MB in 0.4 ms are 10 GB/s; the better copy reaches 20; polars is faster.
        row = self.row(page, "int32/1048576/50%")
        self.assertEqual(row[1:], ["400 µs", "10", "0.50", "800 µs", "300 µs", "0.75"])
        self.assertIn(f"Slower: `{KEPT}` (0.75, polars).", page)
        self.assertIn("Faster than every peer measured: 2 of 3 benches.", page)
        self.assertIn("- not run: CUDA (no library)", page)
        self.assertIn("- nothing else ran", page)

    def test_a_report_replaces_the_one_before(self):
        self.out.mkdir()
        self.plots.mkdir()
        for path in [self.out / "a-test.md", self.out / "another.md", self.plots / "kept-old.svg"]:
            path.write_text("old")
        page = self.report()
        self.assertIn("# Benches, 2000-01-01, a-test", page)
        old = [path.name for folder in (self.out, self.plots) for path in folder.iterdir() if path.read_text() == "old"]
        self.assertEqual(old, ["another.md"])

    def test_a_gpu_has_time_on_the_wall_and_sectors(self):
        gpu = "filter/cuda/int32/1048576/1%-uniform/no-nulls/1"
        figure(self.folder, gpu, "bowstring", 0.0001, 5_000_000)
        figure(self.folder, gpu, "bowstring-wall", 0.0002, 5_000_000)
        figure(self.folder, "copy/cuda/bytes/1000000/-/-/1", "copy", 0.00002, 2_000_000)
        self.say({"id": gpu, "bytes": 5_000_000, "sectors": 2_000_000}, {"device": "cuda", "name": "A GPU"})
        page = self.report()
        row = self.row(page, "int32/1048576/1%-uniform/no-nulls/1 | 100 µs")
        # 50 GB/s, 20 in sectors, of a copy's 100; the table has no peer.
        self.assertEqual(row[1:], ["100 µs", "200 µs", "50", "0.50", "0.20", "-"])
        self.assertIn("- CUDA: A GPU", page)

    def test_a_page_holds_every_operation(self):
        name = "sort/cpu/int64/1048576/all/no-nulls/1"
        figure(self.folder, name, "bowstring", 0.02, 4_000_000)
        page = self.report()
        self.assertEqual(self.row(page, "int64/1048576/all/no-nulls/1")[1:], ["20 ms", "0.2", "0.01", "-"])
        self.assertEqual(pages.read(page)[0][name].seconds, {"bowstring": 0.02})

    def test_a_time_that_cannot_pass_is_left_out(self):
        for name, seconds in [("int8", 0), ("int16", math.nan), ("int64", math.inf)]:
            figure(self.folder, f"filter/cpu/{name}/1048576/50%-uniform/no-nulls/1", "bowstring", seconds, 4_000_000)
        self.say({"id": KEPT, "who": "polars", "seconds": 0}, file="peers.jsonl")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            page = self.report()
        self.assertNotRegex(page, "int8|int16|int64|polars")
        self.assertEqual(said.getvalue().count("left out: filter/cpu/int"), 4, said.getvalue())

    def test_a_page_that_somebody_edited_is_read_all_the_same(self):
        page = self.report().replace("| 400 µs |", "| slow |").replace("| int32/8192/", "| 8192/")
        page += "\n## Notes\n\n| int8/8192/50%-uniform/no-nulls/1 | 1 s |\n"
        benches, _ = pages.read(page)
        self.assertEqual(benches[KEPT].seconds, {"arrow-rs": 8e-4})
        self.assertNotIn("filter/cpu/int8/8192/50%-uniform/no-nulls/1", benches)
        self.assertNotIn("filter/cpu/int32/8192/50%-uniform/no-nulls/1", benches)

    def test_targets_are_held_against_the_worst(self):
        figure(self.folder, "copy/cuda/bytes/1000000/-/-/1", "copy", 0.00002, 2_000_000)
        for name, seconds in [("int32", 0.0001), ("int64", 0.00001)]:
            gpu = f"take/cuda/{name}/268435456/random/no-nulls/1"
            figure(self.folder, gpu, "bowstring", seconds, 500_000)
            self.say({"id": gpu, "bytes": 500_000, "sectors": 900_000})
            self.say({"id": gpu, "who": "a peer", "seconds": 0.00014}, file="peers.jsonl")
        page = self.report()
        # 9 GB/s of 100 in sectors, and 1.4 times the peer; the other type has 90 and 14.
        row = self.row(page, "take 4 and 8 bytes, random")
        self.assertEqual(row[1:], ["0.80", "0.09", "1.1", "1.40", "**missed**"])
        self.assertEqual(self.row(page, "filter booleans")[2], "not run")
        figure(self.folder, "filter/cuda/int32/8192/50%-uniform/no-nulls/10", "bowstring", 0.00002, 500_000)
        figure(self.folder, "filter/cuda/int32/8192/50%-uniform/no-nulls/10", "bowstring-wall", 0.00004, 500_000)
        row = self.row(self.report(), "filter 10 columns of 8,192 rows, wall")
        self.assertEqual(row[1:], ["60 µs", "40 µs", "-", "-", "met"])

    def works(self):
        """Figures for each work in the picture of a page."""
        for at, work in enumerate(drawings.WORKS):
            figure(self.folder, work, "bowstring", 0.01, 4_000_000)
            figure(self.folder, work, "arrow-rs (one thread)", 0.02 + at / 100, 4_000_000)

    def words(self, plot):
        return [text.text for text in ElementTree.parse(plot).iter("{http://www.w3.org/2000/svg}text")]

    def test_plots_are_drawings_with_named_axes_outside_the_tree(self):
        page = self.report()
        self.assertNotIn(".svg", page)
        self.assertEqual([path.name for path in self.out.iterdir()], ["a-test.md"])
        plots = sorted(self.plots.glob("*.svg"))
        self.assertEqual(len(plots), 2)
        for plot in plots:
            for word in ["GB/s that memory must move", "bowstring", "arrow-rs", "copy"]:
                self.assertIn(word, self.words(plot))

    def test_a_page_has_one_picture(self):
        self.works()
        page = self.report()
        self.assertEqual(re.findall(r"\(([\w-]+\.svg)\)", page), ["a-test-overview.svg"])
        [drawn] = self.out.glob("*.svg")
        for word in ["bowstring", "arrow-rs", " 1.0", " 7.0", "take Int32"]:
            self.assertIn(word, self.words(drawn))

    def test_the_picture_is_drawn_again_from_the_page(self):
        self.works()
        self.say({"id": KEPT, "bytes": 4_000_000, "sectors": 3_000_000})
        benches, copies = pages.read(self.report())
        self.assertEqual(round(copies.near("cpu", 4_000_000) / 1e9, 3), 20)
        kept = benches[KEPT]
        self.assertEqual((kept.seconds, round(kept.bytes), round(kept.sectors)), ({"bowstring": 4e-4, "arrow-rs": 8e-4}, 4_000_000, 3_040_000))
        drawn = self.out / "a-test-overview.svg"
        before = drawn.read_text()
        drawn.unlink()
        with mock.patch("sys.argv", ["redraw.py", str(self.out / "a-test.md")]):
            redraw.main()
        self.assertEqual(drawn.read_text(), before)

    def test_the_readmes_figures_are_the_pages(self):
        readme = (figures.ROOT / "README.md").read_text()
        [path] = re.findall(r"\((benches/results/[\w-]+)-overview\.svg\)", readme)
        benches, _ = pages.read((figures.ROOT / f"{path}.md").read_text())
        for name, label in drawings.WORKS.items():
            ours, *peers = map(float, self.row(readme, label.replace("\n", " "))[1:])
            known = {who.partition(" (")[0]: seconds * 1e3 for who, seconds in benches[name].seconds.items()}
            for said, who in zip([ours, *peers], ["bowstring", "arrow-rs", "polars", "pyarrow"], strict=True):
                self.assertAlmostEqual(said / known[who], 1, delta=0.05, msg=f"{label}, {who}")

    def test_a_page_without_its_picture_says_so(self):
        self.works()
        none = lambda *_what, **_how: None
        with mock.patch.object(drawings, "line_plot", none), mock.patch.object(drawings, "bar_plot", none):
            page = self.report()
        self.assertIn("The picture is not drawn yet", page)
        self.assertEqual(list(self.out.glob("*.svg")), [])

    def test_figures_of_another_day_are_left_out(self):
        old = self.folder / "filter_cpu_int32_1048576_99%-uniform_no-nulls_1" / "bowstring" / "new" / "benchmark.json"
        os.utime(old, (1, 1))
        self.assertNotIn("int32/1048576/99%", self.report())

    def test_a_folder_without_figures_is_said_to_be_one(self):
        with self.assertRaises(SystemExit):
            report.main(["--criterion", str(self.out)])


if __name__ == "__main__":
    unittest.main()
