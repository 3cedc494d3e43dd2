"""The figures of the benches: criterion's folder, and the lines of JSON in it."""

import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEVICES = {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCm"}


class Bench:
    """The seconds of all contestants for one id."""

    def __init__(self, name):
        self.id = name
        self.operation, self.device, self.type, self.rows, self.kept, self.validity, self.columns = name.split("/")
        self.seconds, self.bytes, self.sectors = {}, None, None

    def ours(self):
        return self.seconds.get("bowstring")

    def peers(self):
        return {who: s for who, s in self.seconds.items() if not who.startswith("bowstring")}

    def best_peer(self):
        """The name of the fastest peer, and its time over ours; on a GPU both are the device's time."""
        peers = {who: s for who, s in self.peers().items() if not who.endswith("-wall")}
        if not peers or not self.ours():
            return None
        who = min(peers, key=peers.get)
        return who, peers[who] / self.ours()

    def moved(self):
        """Bytes that memory must move: if few rows are wanted, the sectors that contain one."""
        return self.sectors or self.bytes

    def rate(self, who):
        """Those bytes in a second."""
        return self.moved() / self.seconds[who] if self.moved() and self.seconds.get(who) else None


def lines(path):
    for line in path.read_text().splitlines():
        if line.strip().startswith("{"):
            yield json.loads(line)


def collect(folder, hours):
    """Every bench of the last run in a criterion folder, and the records about devices."""
    found = [path for path in folder.rglob("new/benchmark.json") if (path.parent / "estimates.json").exists()]
    newest = max((path.stat().st_mtime for path in found), default=0)
    benches, devices, absent = {}, {}, {}

    def note(bench, who, seconds):
        # A clock may fail; a ratio to zero, or to what is no number, would say nothing.
        if 0 < seconds < math.inf:
            bench.seconds[who] = seconds
        else:
            print(f"left out: {bench.id}, {who}: {seconds} s", file=sys.stderr)

    def of(name):
        if name.count("/") == 6 and name.split("/")[1] in DEVICES:
            return benches.setdefault(name, Bench(name))
        return None

    for path in found:
        if newest - path.stat().st_mtime > hours * 3600:
            continue
        about, estimates = json.loads(path.read_text()), json.loads((path.parent / "estimates.json").read_text())
        bench = of(about["group_id"])
        if bench:
            note(bench, about["function_id"], estimates["median"]["point_estimate"] / 1e9)
            bench.bytes = (about.get("throughput") or {}).get("Bytes", bench.bytes)
    for path in sorted(folder.glob("*.jsonl")):
        for line in lines(path):
            if "device" in line:
                devices[line["device"]] = line["name"]
                absent.pop(line["device"], None)
            elif "not_run" in line:
                absent[line["not_run"]] = line["reason"]
                devices.pop(line["not_run"], None)
            elif "who" in line and "seconds" in line:
                bench = of(line["id"])
                if bench:
                    note(bench, line["who"], line["seconds"])
                    bench.bytes = bench.bytes or line.get("bytes")
            elif line.get("id") in benches:
                benches[line["id"]].bytes = line["bytes"]
                benches[line["id"]].sectors = line["sectors"]
    return benches, devices, absent


class Copies:
    """The copy rates of each device, by the number of bytes moved."""

    def __init__(self, benches):
        self.rates = {}
        for bench in benches.values():
            if bench.operation == "copy" and bench.seconds and bench.bytes:
                best = bench.bytes / min(bench.seconds.values())
                self.rates.setdefault(bench.device, {})[bench.bytes] = best

    def near(self, device, moved):
        known = self.rates.get(device)
        if not known or not moved:
            return None
        return known[min(known, key=lambda size: abs(math.log(size / moved)))]
