"""Chooses the families of device images that CI builds and examines again: those that changed lately, and a sample of
the others. Standard library only.

    recent.py families          their names, one a line
    recent.py changed PATH…     succeeds if a family or one of these files or folders changed lately
    recent.py today PART…       one of these parts of a check, another one each day

All say on standard error what they choose, and why. A change is recent if it is younger than two days when HEAD is
made: what differs from the last commit on HEAD's line that is older. The sample is another one each day, and
reaches every family in ten days, or in three if the tools that make them changed lately: such a change shows in most
families, or in none. All families are chosen if the history does not tell.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DAY = 24 * 60 * 60
# The runs of the next day see a failure again.
LATELY = 2 * DAY
SAMPLES, SAMPLES_OF_TOOLS = 10, 3

# The files that make images out of the sources that manifests list, and sections of Cargo.toml. An image also
# depends on the version of its package.
TOOLS = ["ptx/build.sh", "ptx/images.py", "ptx/architectures", "ptx/recent.py", "kernels/Cargo.toml"]
SECTIONS = ["workspace.package", "profile.release", "profile.device"]


class Unknown(Exception):
    """The history does not tell what has changed; the reason."""


def git(*arguments):
    try:
        run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Unknown("there is no git") from None
    if run.returncode:
        raise Unknown(f"git {arguments[0]} failed: {run.stderr.strip()}")
    return run.stdout


def day():
    """The number of the day on which HEAD was made."""
    return int(git("log", "-1", "--format=%ct")) // DAY


def base():
    """The last commit on HEAD's line that is not recent."""
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        raise Unknown("the history is cut off")
    before = int(git("log", "-1", "--format=%ct")) - LATELY
    found = git("rev-list", "-1", "--first-parent", f"--before={before}", "HEAD").strip()
    if not found:
        raise Unknown("the history is younger than what counts as recent")
    return found


def settings(manifest):
    """The sections of the workspace's manifest that images depend on."""
    return [re.findall(rf"^\[{re.escape(name)}\]\n([^\[]*)", manifest, re.M) for name in SECTIONS]


def families():
    return sorted(path.stem for path in (ROOT / "ptx" / "images").glob("*.manifest"))


def listed():
    """The sources that some manifest lists."""
    manifests = [(ROOT / "ptx" / "images" / f"{family}.manifest").read_text() for family in families()]
    return set(re.findall(r"^source \w+ \d+ (.*)$", "\n".join(manifests), re.M))


def tool(since, paths):
    """The first of the changed paths that all images depend on; None without one."""
    sources = listed()
    for path in paths:
        unlisted = path.startswith("kernels/src/") and path.removeprefix("kernels/src/") not in sources
        if path in TOOLS or unlisted:
            return path
    if settings(git("show", f"{since}:Cargo.toml")) != settings((ROOT / "Cargo.toml").read_text()):
        return "Cargo.toml"
    return None


def changed(since):
    """The paths that differ from a commit, in the working tree."""
    return git("diff", "--name-only", "--no-renames", since, "--").splitlines()


def of_images(paths):
    """The families whose archive or manifest is among the paths."""
    return {Path(path).stem for path in paths if path.startswith("ptx/images/")} & set(families())


def chosen():
    """The families to build and examine, and a sentence that says why."""
    every = families()
    try:
        since = base()
        paths = changed(since)
        new, found = of_images(paths), tool(since, paths)
        parts = SAMPLES_OF_TOOLS if found else SAMPLES
        sample = {family for at, family in enumerate(every) if at % parts == day() % parts} - new
    except Unknown as reason:
        return every, f"all {len(every)} families: {reason}"
    said = f"{len(new | sample)} of {len(every)} families: {', '.join(sorted(new)) or 'none'} changed since {since[:9]}; "
    if found:
        said += f"{found} did, which may reach all; "
    return sorted(new | sample), said + f"{', '.join(sorted(sample)) or 'none'} are today's sample of the others"


def reached(folders):
    """Whether a family or one of the files or folders changed lately, and a sentence that says so."""
    try:
        since = base()
        paths = changed(since)
        under = [path for path in paths for folder in folders if path == folder or path.startswith(folder + "/")]
        if found := tool(since, paths) or next(iter([*under, *sorted(of_images(paths))]), None):
            return True, f"{found} changed since {since[:9]}"
    except Unknown as reason:
        return True, str(reason)
    return False, f"neither an image nor {' nor '.join(folders)} changed since {since[:9]}"


def todays(parts):
    """One of the parts, and a sentence that says why; all if the history does not tell the day."""
    try:
        turn = day() % len(parts)
    except Unknown as reason:
        return " ".join(parts), f"all {len(parts)} parts: {reason}"
    return parts[turn], f"part {turn + 1} of {len(parts)} today"


def main(command, *rest):
    if command == "families":
        names, why = chosen()
        print("\n".join(names))
        print(why, file=sys.stderr)
    elif command == "changed" and rest:
        is_reached, why = reached(rest)
        print(why, file=sys.stderr)
        sys.exit(not is_reached)
    elif command == "today" and rest:
        part, why = todays(rest)
        print(part)
        print(why, file=sys.stderr)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
