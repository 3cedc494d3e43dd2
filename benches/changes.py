"""What a run changed: its figures beside those of the last page of the same processor.

A figure is slower if it is so in seconds and in copies, its time divided by that of a copy of about as many bytes in
the same run. Seconds alone would blame the library for a machine that is slower today; copies alone would blame work
that memory does not bound for a machine that copies faster.

A page carries the figures that it stands beside. They stay the last ones for another report of the same run, and
until a person accepts slower figures; otherwise a second report would hold these against themselves, and find nothing.
"""

import math
import re
import statistics

from figures import DEVICES, Bench, Copies
from pages import cells, copy_rates, device, duration, order, rates, read, seconds

LIMIT = 1.10
# The signs of a change in both measures, or in one. GitHub drops the colours of HTML, and other viewers show
# the source of its formulas. A sign is red in all of them, also in a table's cell, and a search finds it.
SLOWER, UNSURE, FASTER = "🔴", "🟡", "🟢"
TITLE = "## Beside the last page"
REFUSED, ACCEPTED = "**Not accepted.**", "Accepted although figures are slower."
# Our contestants, and what stands after the id for each.
OURS = {"bowstring": "", "bowstring-wall": ", wall"}


def up(ratio):
    """A ratio of times as it is shown: rounded up, so that 1.10 never hides what is slower."""
    return math.ceil(ratio * 100 - 1e-6) / 100


def beyond(ratio):
    return up(ratio) > LIMIT


def processors(facts):
    """The processors in the lines of a page's head, without what may change on a machine: memory, the driver. What
    stands in for a GPU is none."""
    found = {}
    for fact in facts:
        named = re.match(r"(\w+): (.+)", fact)
        if named and device(named[1]) and "stand-in" not in fact:
            known = re.sub(r", (\d+ GiB of memory|(CUDA|HIP) [\d.]+)$", "", named[2])
            found.setdefault(device(named[1]), known)
    return found


class Last:
    """Figures that today's stand beside: the page that they are from, everybody's seconds by id, and the copies."""

    def __init__(self, source, times, copies):
        self.source, self.times, self.copies = source, times, copies


def carried(page):
    """The figures that a page carries; None if it stood beside no other."""
    section = re.search(rf"^{TITLE}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    source = section and re.search(r"beside those of (.+)\.$", section[1], re.M)
    if not source:
        return None
    copies, times, columns = {}, {}, None
    for line in section[1].splitlines():
        if found := re.match(r"- Copies on (\w+) in that page, GB/s[^:]*: (.*)\.$", line):
            copies |= copy_rates(found[2], device(found[1]))
        elif line.startswith("| bench |"):
            columns = cells(line)
        elif columns and (found := re.match(r"\| `([^`]+)`(.*?) \|", line)) and found[1].count("/") == 6:
            known = times.setdefault(found[1], {})
            for column, shown in zip(columns, cells(line)):
                who = {end: who for who, end in OURS.items()}.get(found[2]) if column == "last" else column[5:]
                if column.startswith("last") and who and seconds(shown):
                    known[who] = seconds(shown)
    return Last(source[1], {name: known for name, known in times.items() if known}, Copies(copies))


class Page:
    """A page as it stands in the folder."""

    def __init__(self, path, text):
        self.file, self.date = path.name, text.split(", ")[1]
        commit = re.search(r"^- commit (.+)$", text, re.M)
        benches, copies = read(text)
        source = f"`{self.file}` of {self.date}, commit {commit[1] if commit else 'unknown'}"
        self.own = Last(source, {bench.id: bench.seconds for bench in benches.values() if bench.ours()}, copies)
        self.processors = processors(re.findall(r"^- (.+)$", text, re.M))
        self.refused, self.accepted, self.carried = REFUSED in text, ACCEPTED in text, carried(text)

    def shows(self, benches):
        """Whether the page shows this run already, as after a peer has run, too."""
        known = ((benches.get(name), times["bowstring"]) for name, times in self.own.times.items())
        return all(bench and duration(bench.ours()) == duration(shown) for bench, shown in known)

    def last(self, benches):
        """The figures to stand beside, if this is the last page."""
        return self.carried if self.refused or self.shows(benches) else self.own


def standing(folder):
    """The pages of a folder, which may hold other texts."""
    for path in sorted(folder.glob("*.md")):
        text = path.read_text()
        if re.match(r"# Benches, [^,\n]+, ", text):
            yield Page(path, text)


class Change:
    """One of our times, today and in the last page, as pages show them: a reader finds the same ratio."""

    def __init__(self, bench, who, times, copies):
        self.name, self.device = f"`{bench.id}`{OURS[who]}", bench.device
        self.today, self.last = seconds(duration(bench.seconds[who])), times[who]
        self.ratio = self.today / self.last
        copy = copies.near(bench.device, bench.bytes)
        self.in_copies = self.ratio / copy if copy else None
        wall = who.endswith("-wall")
        peers = {peer: time for peer, time in bench.peers().items() if peer.endswith("-wall") == wall}
        self.peers = {peer: time / times[peer] for peer, time in sorted(peers.items()) if times.get(peer)}
        measures = [self.ratio] if self.in_copies is None else [self.ratio, self.in_copies]
        slower = [beyond(measure) for measure in measures]
        faster = all(beyond(1 / measure) for measure in measures)
        self.sign = SLOWER if all(slower) else UNSURE if any(slower) else FASTER if faster else ""

    def said(self):
        in_copies = f", in copies {up(self.in_copies):.2f}" if self.in_copies else ""
        peers = "; ".join(["", ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in self.peers.items())])
        was = f"{duration(self.today)}, was {duration(self.last)}: {up(self.ratio):.2f}{in_copies}"
        return f"- {self.sign} {self.name}: {was}{peers if self.peers else ''}"


class Changes:
    """The figures of a run beside the last page of the same processor in the folder of pages. `facts` are the lines
    of today's head, `file` is the page that the run will replace, and `accept` is a person's word on slower figures."""

    def __init__(self, benches, facts, folder, file, accept):
        now, found = processors(facts), list(standing(folder))
        self.measured = {bench.id: bench for bench in benches.values() if bench.operation != "copy" and bench.ours()}
        kinds = [kind for kind in DEVICES if any(bench.device == kind for bench in self.measured.values())]

        def same(page):
            known = {name.split("/")[1] for name in page.own.times}
            return [kind for kind in kinds if kind in known and now.get(kind, "") == page.processors.get(kind)]

        chosen = max(found, key=lambda page: (len(same(page)), page.date, page.file == file), default=None)
        compared = same(chosen) if chosen else []
        self.last = chosen.last(self.measured) if compared else None
        # An accepted run stays accepted when it is reported again, as after a peer has run, too.
        self.accepted = accept or bool(compared and chosen.accepted and chosen.shows(self.measured))
        self.notes = [note for page in found if page.file == file for note in others(page, now, kinds)]
        for kind in kinds:
            if kind not in now:
                self.notes.append(f"{DEVICES[kind]} is not compared: its GPU has no name here, or is a stand-in.")
            elif kind not in compared:
                self.notes.append(f"{DEVICES[kind]} is not compared: no page of this processor is here.")
        if compared and not self.last:
            self.notes.append(f"`{chosen.file}` shows this run already, and stood beside no other page.")
        times = self.last.times if self.last else {}
        self.times = {name: known for name, known in times.items() if name.split("/")[1] in compared}
        self.rates, self.copies = Copies(benches).rates, Copies({})
        for kind in compared if self.last else []:
            before, after = self.last.copies.rates.get(kind, {}), self.rates.get(kind, {})
            # The time of a copy today over its last, by what is moved.
            self.copies.rates[kind] = {size: before[size] / after[size] for size in sorted(before) if size in after}
        self.all, self.absent, self.new = [], [], 0
        for name in sorted({*self.times, *self.measured}, key=placed):
            bench, known = self.measured.get(name), self.times.get(name, {})
            self.new += bool(bench and not known and bench.device in compared)
            for who in OURS:
                if bench and bench.seconds.get(who) and known.get(who):
                    self.all.append(Change(bench, who, known, self.copies))
                elif known.get(who):
                    self.absent.append((f"`{name}`{OURS[who]}", known[who]))

    def of(self, sign):
        """The changes of a sign, the largest first."""
        found = [change for change in self.all if change.sign == sign]
        return sorted(found, key=lambda change: max(change.ratio, 1 / change.ratio), reverse=True)

    def refused(self):
        return bool(self.of(SLOWER)) and not self.accepted

    def medians(self):
        """A line for each device: how much slower today is for us and, on the same benches, for the peers."""
        for kind in DEVICES:
            here = [change for change in self.all if change.device == kind]
            if here:
                line = f"- {DEVICES[kind]}, {len(here)} figures: the median of today's time over the last is "
                line += f"{statistics.median(change.ratio for change in here):.2f}"
                in_copies = [change.in_copies for change in here if change.in_copies]
                line += f", in copies {statistics.median(in_copies):.2f}" if in_copies else ""
                for peer in sorted({peer for change in here for peer in change.peers}):
                    theirs = statistics.median(change.peers[peer] for change in here if peer in change.peers)
                    line += f", of {peer} {theirs:.2f}"
                yield line + "."

    def copied(self):
        """Lines about the copies, the control: the last page's rates, and how their times changed."""
        for kind, changed in self.copies.rates.items():
            if changed:
                yield f"- Copies on {DEVICES[kind]} in that page, {rates(self.last.copies.rates[kind])}."
                least, most = f"{min(changed.values()):.2f}", f"{max(changed.values()):.2f}"
                yield f"- The time of a copy on {DEVICES[kind]} is {least} to {most} of that in that page."
                if any(beyond(ratio) for ratio in changed.values()):
                    yield "- **The machine itself copies slower**: seconds say little. Measure again while it is idle."

    def summary(self):
        """Everything but the table, as lines of Markdown."""
        if not self.last:
            return [f"- {note}" for note in self.notes]
        out = [f"Today's figures stand beside those of {self.last.source}.", "", *self.medians(), *self.copied()]
        out += [f"- {note}" for note in self.notes]
        unsure = self.of(UNSURE)
        if unsure:
            what = "Slower by more than 10 % in seconds or in copies, not in both"
            out += [f"- {UNSURE} {what}: {len(unsure)} of {len(self.all)}."]
        out += [f"- New benches: {self.new}."] if self.new else []
        if self.absent:
            out += ["- No figure today: " + ", ".join(f"{name} ({duration(was)})" for name, was in self.absent) + "."]
        for sign, what in [(SLOWER, "Slower"), (FASTER, "Faster")]:
            found = self.of(sign)
            out += ["", f"{what} by more than 10 %: {len(found)} of {len(self.all)} figures."]
            out += ["", *(change.said() for change in found)] if found else []
        if self.of(SLOWER):
            until = "The next page stands beside the same one, unless `benches/report.py --accept` accepts this one."
            out += ["", ACCEPTED if self.accepted else f"{REFUSED} {until}"]
        return out

    def section(self):
        """The section of a page: the summary, and every figure."""
        out = [TITLE, "", *self.summary(), ""]
        if not self.last:
            return out
        peers = sorted({who for known in self.times.values() for who in known} - set(OURS))
        head = ["bench", "today", "last", "today / last", "in copies", *(f"last {peer}" for peer in peers)]
        title = "Every figure (in copies: after each time is divided by that of a copy in its own run)"
        out += [f"<details><summary>{title}</summary>", ""]
        out += ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
        changes = {change.name: change for change in self.all}
        for name, known in sorted(self.times.items(), key=lambda one: placed(one[0])):
            for who, end in OURS.items():
                if known.get(who):
                    change = changes.get(f"`{name}`{end}")
                    row = [f"`{name}`{end}", duration(change and change.today), duration(known[who])]
                    row += [f"{change.sign} {up(change.ratio):.2f}".strip() if change else "-"]
                    row += [f"{up(change.in_copies):.2f}" if change and change.in_copies else "-"]
                    row += [duration(known.get(peer) if not end else None) for peer in peers]
                    out.append("| " + " | ".join(row) + " |")
        return [*out, "", "</details>", ""]

    def spoken(self, colours):
        """The summary for a terminal, in which colours say what the signs say on a page."""
        for line in self.summary():
            plain = re.sub(rf"{SLOWER} |{UNSURE} |{FASTER} |`|\*\*", "", line)
            colour = {f"- {SLOWER}": "31", f"- {FASTER}": "32"}.get(line[:3])
            if line and not line.startswith("- Copies on"):
                yield f"\033[{colour}m{plain}\033[0m" if colours and colour else plain


def others(page, now, kinds):
    """Lines about the page that the run replaces, if it is of another processor."""
    for kind in kinds:
        known = page.processors.get(kind)
        if known and kind in now and known != now[kind]:
            what = f"which this page replaces, is of another processor ({known})"
            yield f"`{page.file}` of {page.date}, {what}: it is not compared."


def placed(name):
    """The place of a bench in the table of all."""
    bench = Bench(name)
    return (list(DEVICES).index(bench.device), bench.operation, order(bench))
