"""Tests recent.py on a small repository, whose commits have dates.

    python3 -m unittest discover -s ptx
"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import recent

FAMILIES = [f"family_{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
# git does not take small numbers for dates.
START = 20_000
CARGO = '[workspace.package]\nversion = "1"\n\n[package]\nname = "it"\n\n[profile.device]\nopt-level = 3\n'


class Repository(unittest.TestCase):
    def setUp(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        self.addCleanup(setattr, recent, "ROOT", recent.ROOT)
        recent.ROOT = folder
        self.git("init", "-q", "-b", "main")
        self.write("Cargo.toml", CARGO)
        self.write("kernels/src/lib.rs", "")
        for family in FAMILIES:
            self.write(f"ptx/images/{family}.manifest", f"source 1 2 {family}.rs\n")
            self.write(f"kernels/src/{family}.rs", "")
        self.commit(0)
        self.write("host/lib.rs", "old")
        self.commit(3)

    def git(self, *arguments, day=0):
        date = f"{(START + day) * recent.DAY + 60} +0000"
        of_us = {name: "test" for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL")}
        environment = os.environ | of_us | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(["git", *arguments], cwd=recent.ROOT, env=environment, check=True, capture_output=True)

    def write(self, name, text):
        path = recent.ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, day):
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "a change", day=day)

    def chosen(self):
        names, why = recent.chosen()
        self.assertIn(f"{len(names)} of 26" if len(names) < 26 else "all 26 families: ", why)
        return names

    def test_a_change_of_the_host_leaves_a_sample_that_changes_each_day(self):
        found = []
        for day in range(10, 20):
            self.write("host/lib.rs", str(day))
            self.commit(day)
            found.append(self.chosen())
            self.assertLessEqual(len(found[-1]), 3)
        self.assertEqual(sorted(sum(found, [])), FAMILIES)
        self.assertFalse(recent.reached(["lab/amd"])[0])
        self.assertTrue(recent.reached(["lab/amd", "host"])[0])
        self.assertTrue(recent.reached(["host/lib.rs"])[0])
        self.assertFalse(recent.reached(["hos"])[0])

    def test_another_part_runs_each_day(self):
        found = []
        for day in range(10, 13):
            self.commit(day)
            found.append(recent.todays(["a", "b", "c"])[0])
        self.assertEqual(sorted(found), ["a", "b", "c"])

    def test_a_family_is_chosen_for_two_days(self):
        self.write("ptx/images/family_c.manifest", "source 3 4 family_c.rs\n")
        self.write("kernels/src/family_c.rs", "new")
        self.commit(10)
        names, why = recent.chosen()
        self.assertEqual(names, ["family_a", "family_c", "family_k", "family_u"])
        self.assertIn("family_c changed since", why)
        self.assertTrue(recent.reached(["lab/amd"])[0])
        self.commit(11)
        self.assertIn("family_c", self.chosen())
        self.commit(13)
        self.assertNotIn("family_c", self.chosen())

    def test_what_is_not_committed_counts(self):
        self.commit(10)
        self.write("ptx/images/family_z.manifest", "source 3 4 family_z.rs\n")
        self.assertIn("family_z", self.chosen())

    def test_a_merge_brings_what_its_branch_has_however_old(self):
        self.git("checkout", "-q", "-b", "other")
        self.write("ptx/images/family_c.manifest", "source 3 4 family_c.rs\n")
        self.commit(4)
        self.git("checkout", "-q", "main")
        self.commit(10)
        self.assertNotIn("family_c", self.chosen())
        self.git("merge", "-q", "--no-ff", "-m", "a merge", "other", day=10)
        self.assertIn("family_c", self.chosen())

    def test_a_change_of_the_tools_has_a_larger_sample(self):
        for name, text in {
            "ptx/build.sh": "new",
            "kernels/Cargo.toml": "new",
            "kernels/src/lib.rs": "what no manifest lists",
            "Cargo.toml": CARGO.replace("3", "2"),
        }.items():
            self.commit(10)
            self.assertLess(len(self.chosen()), 4)
            self.write(name, text)
            self.commit(10)
            self.assertIn(len(self.chosen()), (8, 9), name)
            self.assertIn(name, recent.chosen()[1])
            self.assertTrue(recent.reached(["lab/amd"])[0])
            self.git("reset", "-q", "--hard", "HEAD~2")
        self.write("Cargo.toml", CARGO.replace("it", "other"))
        self.commit(10)
        self.assertLess(len(self.chosen()), 4)

    def test_all_are_chosen_where_the_history_does_not_tell(self):
        kept = recent.ROOT
        for reason, of in {"cut off": ["clone", "-q", "--depth", "1", f"file://{kept}", "."], "failed": ["--version"]}.items():
            recent.ROOT = Path(tempfile.mkdtemp())
            self.addCleanup(shutil.rmtree, recent.ROOT)
            self.git(*of)
            if not (recent.ROOT / "ptx").exists():
                shutil.copytree(kept / "ptx", recent.ROOT / "ptx")
            names, why = recent.chosen()
            self.assertEqual(names, FAMILIES)
            self.assertIn(reason, why)
            self.assertTrue(recent.reached(["lab/amd"])[0])
        recent.ROOT = kept
        self.git("checkout", "-q", "--orphan", "young")
        self.commit(10)
        self.assertEqual(self.chosen(), FAMILIES)


if __name__ == "__main__":
    unittest.main()
