"""Tests a report beside the last page of the same processor: known figures are written, changed, and written again."""

import io
import json
import math
import os
import re
import unittest
from unittest import mock

import pages
import report
import test_report

KEPT = test_report.KEPT
GPU = "filter/cuda/int32/1048576/1%-uniform/no-nulls/1"


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Changes(test_report.Folder):
    def setUp(self):
        super().setUp()
        named = {"CPU": "A processor, 2 cores (avx2), 24 GiB of memory"}
        self.named = named
        known = mock.patch.object(report, "machine", lambda *_: [f"{kind}: {what}" for kind, what in named.items()])
        for patch in [known, mock.patch.object(report, "draw")]:
            patch.start()
            self.addCleanup(patch.stop)

    def times(self, factor, groups="", whos=""):
        """Makes times in criterion's folder longer by a factor; `groups` and `whos` are patterns."""
        for path in sorted(self.folder.rglob("estimates.json")):
            about = json.loads((path.parent / "benchmark.json").read_text())
            if re.search(groups, about["group_id"]) and re.search(whos, about["function_id"]):
                known = json.loads(path.read_text())["median"]["point_estimate"]
                path.write_text(json.dumps({"median": {"point_estimate": known * factor}}))

    def gpu(self, seconds=1e-4, copy=2e-5):
        """A GPU, and its figures."""
        self.named["CUDA"] = "A GPU, compute capability 9.0, CUDA 12.2"
        self.say({"device": "cuda", "name": self.named["CUDA"]})
        test_report.figure(self.folder, GPU, "bowstring", seconds, 5_000_000)
        for who, longer in [("bowstring-wall", 2e-4), ("torch", 1e-4), ("torch-wall", 3e-4)]:
            test_report.figure(self.folder, GPU, who, longer, 5_000_000)
        test_report.figure(self.folder, "copy/cuda/bytes/1000000/-/-/1", "copy", copy, 2_000_000)

    def section(self, page):
        return re.search(r"^## Beside the last page\n(.*?)^## ", page, re.M | re.S)[1]

    def signs(self, page, sign="🔴"):
        """The benches after a sign, as the list names them."""
        return re.findall(rf"^- {sign} `(.+?)`", page, re.M)

    def test_slower_and_faster_figures_are_named(self):
        self.report("--date", "1999-12-31")
        self.assertEqual(self.status, 0)
        self.times(1.25, "/50%", "bowstring")
        self.times(0.8, "/99%", "bowstring")
        self.times(1.02, "/1%", "bowstring|arrow")
        page = self.report()
        self.assertEqual(self.status, 1)
        self.assertIn("beside those of `a-test.md` of 1999-12-31, commit ", page)
        slower = [f"filter/cpu/int32/{rows}/50%-uniform/no-nulls/1" for rows in (1048576, 131072, 8192)]
        self.assertEqual(sorted(self.signs(page)), sorted(slower))
        self.assertEqual(self.signs(page, "🟢"), [KEPT.replace("50%", "99%")])
        self.assertIn(f"- 🔴 `{KEPT}`: 500 µs, was 400 µs: 1.25, in copies 1.25; arrow-rs 1.00\n", page)
        medians = "the median of today's time over the last is 1.25, in copies 1.25, of arrow-rs 1.00."
        self.assertIn(f"- CPU, 5 figures: {medians}\n", page)
        self.assertEqual(self.row(page, f"`{KEPT}`")[1:], ["500 µs", "400 µs", "🔴 1.25", "1.25", "800 µs"])
        self.assertIn("Slower by more than 10 %: 3 of 5 figures.", page)
        self.assertIn("**Not accepted.**", page)
        for name in slower:
            self.assertIn(f"\n- {name}: ", self.printed.getvalue())
        # The tables, and what is read from them, are today's.
        self.assertEqual(pages.read(page)[0][KEPT].seconds, {"bowstring": 5e-4, "arrow-rs": 8e-4})

    def test_ten_percent_are_not_more_than_ten_percent(self):
        first = self.report()
        self.times(1.1, KEPT, "bowstring")
        self.assertEqual((self.signs(self.report()), self.status), ([], 0))
        (self.out / "a-test.md").write_text(first)
        self.times(1.005, KEPT, "bowstring")
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([KEPT], 1))
        self.assertIn("442 µs, was 400 µs: 1.11, in copies 1.11", page)

    def test_a_slower_machine_is_no_slower_library(self):
        self.report()
        self.times(1.3)
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([], 0))
        self.assertIn("not in both: 5 of 5.", page)
        self.assertIn("**The machine itself copies slower**", page)
        self.assertEqual(self.row(page, f"`{KEPT}`")[3:5], ["🟡 1.30", "1.00"])

    def test_a_machine_that_copies_faster_makes_nothing_slower(self):
        self.report()
        self.times(0.7, "^copy")
        self.times(1.02, "filter")
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([], 0))
        self.assertIn("not in both: 5 of 5.", page)

    def test_a_faster_machine_makes_nothing_faster(self):
        self.report()
        self.times(0.7)
        page = self.report()
        self.assertEqual((self.signs(page, "🟢"), self.status), ([], 0))
        self.assertNotIn("🟡", page)

    def test_a_slower_library_on_a_slower_machine_is_slower(self):
        self.report()
        self.times(1.3)
        self.times(1.2, KEPT, "bowstring")
        self.assertEqual((self.signs(self.report()), self.status), ([KEPT], 1))

    def test_without_copies_seconds_decide(self):
        for path in self.folder.glob("copy*/*/new/estimates.json"):
            path.unlink()
        self.report()
        self.times(1.3, KEPT, "bowstring")
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([KEPT], 1))
        self.assertEqual(self.row(page, f"`{KEPT}`")[3:5], ["🔴 1.30", "-"])

    def test_slower_figures_become_no_measure_by_a_second_report(self):
        self.report("--date", "1999-12-31")
        self.times(1.25, KEPT, "bowstring")
        page = self.report()
        self.assertEqual(self.section(self.report()), self.section(page))
        self.assertEqual(self.status, 1)
        # Nor does another run.
        self.times(1.01, "filter", "bowstring")
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([KEPT], 1))
        self.assertIn("of 1999-12-31", page)
        self.times(0.79, KEPT, "bowstring")
        self.assertEqual((self.signs(self.report()), self.status), ([], 0))
        self.times(1.25, KEPT, "bowstring")
        page = self.report()
        self.assertIn("beside those of `a-test.md` of 2000-01-01", page)

    def test_a_person_may_accept_slower_figures(self):
        self.report("--date", "1999-12-31")
        self.times(1.25, KEPT, "bowstring")
        self.report()
        page = self.report("--accept")
        self.assertEqual((self.signs(page), self.status), ([KEPT], 0))
        self.assertIn("Accepted although figures are slower.", page)
        self.assertNotIn("Not accepted", page)
        # The same run once more, after a peer has run.
        self.say({"id": KEPT, "who": "polars", "seconds": 0.0003}, file="peers.jsonl")
        self.assertEqual(self.section(self.report()), self.section(page))
        self.assertEqual(self.status, 0)
        self.times(1.01, "filter", "bowstring")
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([], 0))
        self.assertIn("beside those of `a-test.md` of 2000-01-01", page)

    def test_a_page_of_another_processor_is_not_compared(self):
        for other in ["Another, 2 cores (avx2), 24 GiB of memory", "A processor, 4 cores (avx2), 24 GiB of memory"]:
            (self.out / "a-test.md").unlink(missing_ok=True)
            with mock.patch.dict(self.named, CPU=other):
                self.report()
            self.times(2, "filter", "bowstring")
            page = self.report()
            self.assertEqual((self.signs(page), self.status), ([], 0))
            what = f"is of another processor ({other.removesuffix(', 24 GiB of memory')})"
            self.assertIn(f"`a-test.md` of 2000-01-01, which this page replaces, {what}: it is not compared.", page)
            self.assertNotIn("beside those of", page)

    def test_the_memory_of_a_machine_may_change(self):
        self.report()
        self.times(2, "filter", "bowstring")
        self.named["CPU"] = "A processor, 2 cores (avx2), 23 GiB of memory"
        self.report()
        self.assertEqual(self.status, 1)

    def test_the_newest_page_of_the_processor_counts(self):
        for factor, date, file in [(1, "1999-01-01", "c.md"), (2, "1999-03-03", "b.md"), (0.5, "1999-02-02", "d.md")]:
            self.times(factor, "filter", "bowstring")
            self.report("--date", date, "--accept")
            (self.out / "a-test.md").rename(self.out / file)
        (self.out / "e.md").write_text("Something else\n")
        page = self.report()
        self.assertIn("beside those of `b.md` of 1999-03-03", page)
        self.assertEqual(len(self.signs(page, "🟢")), 5)

    def test_absent_and_new_benches_are_said_to_be_so(self):
        self.report()
        gone = KEPT.replace("50%", "99%")
        (self.folder / gone.replace("/", "_") / "bowstring" / "new" / "estimates.json").unlink()
        test_report.figure(self.folder, "sort/cpu/int64/8192/all/no-nulls/1", "bowstring", 1, 4_000_000)
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([], 0))
        self.assertIn(f"- No figure today: `{gone}` (500 µs).", page)
        self.assertIn("- New benches: 1.", page)
        self.assertEqual(self.row(page, f"`{gone}`")[1:], ["-", "500 µs", "-", "-", "1 ms"])

    def test_a_refused_page_keeps_the_figure_of_an_absent_bench(self):
        self.report()
        kept = self.folder / KEPT.replace("/", "_") / "bowstring" / "new" / "estimates.json"
        known = kept.read_text()
        kept.unlink()
        self.times(2, "/1%", "bowstring")
        self.report()
        kept.write_text(known)
        self.times(2, KEPT, "bowstring")
        self.assertEqual(sorted(self.signs(self.report())), [KEPT.replace("50%", "1%"), KEPT])

    def test_a_time_that_cannot_pass_is_no_figure(self):
        first = self.report()
        for seconds in [0, math.nan]:
            test_report.figure(self.folder, KEPT, "bowstring", seconds, 4_000_000)
            (self.out / "a-test.md").write_text(first)
            with mock.patch("sys.stderr", io.StringIO()):
                self.assertIn(f"- No figure today: `{KEPT}` (400 µs).", self.report(), seconds)
            self.assertEqual(self.status, 0)
        test_report.figure(self.folder, KEPT, "bowstring", 0.0004, 4_000_000)
        self.times(1.01, "filter", "bowstring")
        for shown in ["0 ns", "nan ns", "inf s", "soon"]:
            (self.out / "a-test.md").write_text(first.replace("| 400 µs |", f"| {shown} |"))
            self.assertIn("- New benches: 1.", self.report(), shown)
            self.assertEqual(self.status, 0)

    def test_each_gpu_has_its_own_last_figures(self):
        self.gpu()
        self.report()
        self.gpu(1.5e-4)
        self.times(2, GPU, "bowstring-wall")
        self.times(1.5, GPU, "torch-wall")
        self.named["CUDA"] = "A GPU, compute capability 9.0, CUDA 13.0"
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([GPU, GPU], 1))
        self.assertIn(f"- 🔴 `{GPU}`, wall: 400 µs, was 200 µs: 2.00, in copies 2.00; torch-wall 1.50\n", page)
        self.assertIn(f"- 🔴 `{GPU}`: 150 µs, was 100 µs: 1.50, in copies 1.50; torch 1.00\n", page)
        self.assertIn("- CUDA, 2 figures: ", page)
        self.assertIn("- CPU, 5 figures: ", page)
        self.assertEqual(self.section(self.report()), self.section(page))
        self.named["CUDA"] = "Another GPU, compute capability 9.0, CUDA 13.0"
        page = self.report()
        self.assertEqual((self.signs(page), self.status), ([], 0))
        self.assertIn("is of another processor (A GPU, compute capability 9.0)", page)
        self.assertIn("- CPU, 5 figures: ", page)

    def test_a_stand_in_is_not_compared(self):
        self.gpu()
        self.named["CUDA"] = "stand-in, compute capability 7.5, CUDA 12.2"
        self.report()
        self.gpu(1)
        self.named["CUDA"] = "stand-in, compute capability 7.5, CUDA 12.2"
        page = self.report()
        self.assertEqual(self.status, 0)
        self.assertIn("CUDA is not compared", page)

    def test_a_terminal_shows_slower_figures_in_red(self):
        self.report()
        self.times(2, KEPT, "bowstring")
        self.printed = Terminal()
        with mock.patch.dict(os.environ):
            os.environ.pop("NO_COLOR", None)
            self.report()
            self.assertRegex(self.printed.getvalue(), f"\033\\[31m- {KEPT}: 800 µs, was 400 µs: 2.00.*\033\\[0m\n")
            os.environ["NO_COLOR"] = "1"
            self.report()
            self.assertNotIn("\033", self.printed.getvalue())
        self.printed = io.StringIO()
        page = self.report()
        self.assertNotIn("\033", self.printed.getvalue() + page)


if __name__ == "__main__":
    unittest.main()
