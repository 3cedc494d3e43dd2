"""What the page of predictions says around its tables: `predict.py` writes it."""

HEAD = """# PREDICTION, not measured: an H200

This is the expectation for the GPU benches, computed by `benches/predict.py` from `ptx/COSTS.md` (what the shipped PTX executes,
counted), `ptx/EXECUTED.md` (the same in the hardware's instructions) and `ptx/STATIC.md` (registers and loads in flight). **No
kernel has run on a GPU for this.** Each line is to be confirmed, or put right, by a run; the script says what the model is.

Assumed: a copy reads and writes {copy:.1f} TB/s; {processors} processors with {schedulers} schedulers at {clock:.3f} GHz. A
scheduler issues in {achieved:.2f} of its clocks: most of these instructions are of integers, which run at half of the issue
rate or less (POPC at an eighth, shuffles at a quarter), and waves stall together. Memory answers within {latency:.1f} µs under
load, an instruction waits {dependent:.0f} clocks for the one before it, a launch costs {launch:.0f} µs, a look by the host
{wait:.0f} µs. In brackets what worse and better assumptions give (slots {worst.achieved:.1f} and {best.achieved:.1f}, latency
{worst_latency:.1f} and {best_latency:.1f} µs). The figures are low rather than high, because every load counts as one that goes to
memory, but for those of a sector that the launch has loaded before ({cached:.0f} clocks).

Share: time of the bytes that must move (whole sectors of 32 bytes where rows are left out or taken at random) at the copy's
rate, over the expected time of 2^28 rows (2^27 of strings). µs by limit are sums over the launches; *all* is not their sum.
If 1 % of clustered rows are kept, all bytes would move in 13 to 18 µs: the host's look and three launches take longer.

| work | counted as | must move | moves | SASS slots | memory | caches | issue | latency | launches, waits | all, µs | limit | share | target | expected |
| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- | --- | --: | --- |
"""


PUBLIC = """
## What others have published

Other machines and other counts of bytes, for orientation only:

- CUB's partition by flags (of select's family; it keeps the other rows too) on a B200, 2^28 one-byte values: 607 to 638 µs
  (NVIDIA/cccl pull request 3617). With three bytes a row that is 1.3 TB/s: bound by the work a row, far from the memory.
- SPACE, which filters by bitmaps in three kernels as ours does, takes 1/3.55 of the time of CUB's Flagged at 1 % uniform
  and 1/1.15 at 97 % on an A100 (Euro-Par 2022, doi 10.1007/978-3-031-12597-3_12).
- A gather of wide rows on an H100 SXM reached 2.65 TB/s of 3.35 (pytorch/FBGEMM pull request 3993): an upper bound for
  narrow ones.
- cuDF's cost of a batch, whatever its size: about 300 µs on a T4 (gabotechs/libcudf-rs pull request 68).
"""
