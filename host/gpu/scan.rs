//! Prefix sums over tiles: each tile of rows has the sum of its lengths.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::reduce::scan::{SCAN, SUMS, Scan, Sums, TILE};
use bowstring_kernels::target::find;

use crate::Result;
use crate::pass::{Pass, Region};

/// Returns the number of tiles, and so of sums, of some rows.
pub(crate) fn tiles(rows: usize) -> usize {
    rows.div_ceil(TILE as usize)
}

/// Returns the exclusive prefix sums of the tiles' sums, with the total as the last element. `total` receives
/// the total too.
pub(crate) fn scan_sums(pass: &mut Pass, sums: &Region, tiles: usize, total: Out<u64>) -> Result<Region> {
    let out = pass.scratch::<u64>(tiles + 1)?;
    let groups = tiles.div_ceil(TILE as usize);
    let (values, len, count) = (sums.input(), tiles as u64, In::absent());
    let scan = find(SCAN, &[8, 8]).ok_or_else(|| pass.unsupported("sums"))?;
    if groups <= 1 {
        let args = Scan { values, count, len, bases: In::absent(), out: out.out(), total };
        pass.launch(scan, &args)?;
        return Ok(out);
    }
    let group_sums = pass.scratch::<u64>(groups)?;
    let entry = find(SUMS, &[8]).ok_or_else(|| pass.unsupported("sums"))?;
    pass.launch(entry, &Sums { values, count, len, sums: group_sums.out() })?;
    let bases = scan_sums(pass, &group_sums, groups, total)?;
    let args = Scan { values, count, len, bases: bases.input(), out: out.out(), total: Out::absent() };
    pass.launch(scan, &args)?;
    Ok(out)
}

/// Writes the sum of the counts before each of so many counts, and the sum of all, as numbers of 4 or 8
/// bytes.
pub(crate) fn sums_before(
    pass: &mut Pass,
    counts: &Region,
    len: usize,
    width: u32,
    out: &Region,
) -> Result<()> {
    let (tiles, number) = (tiles(len), len as u64);
    let mut bases = None;
    if tiles > 1 {
        let sums = pass.scratch::<u64>(tiles)?;
        let sum = find(SUMS, &[4]).ok_or_else(|| pass.unsupported("sums"))?;
        let args = Sums { values: counts.input(), count: In::absent(), len: number, sums: sums.out() };
        pass.launch(sum, &args)?;
        bases = Some(scan_sums(pass, &sums, tiles, Out::absent())?);
    }
    let args = Scan {
        values: counts.input(),
        count: In::absent(),
        len: number,
        bases: bases.as_ref().map_or(In::absent(), Region::input),
        out: out.out(),
        total: Out::absent(),
    };
    let scan = find(SCAN, &[4, width]).ok_or_else(|| pass.unsupported("sums"))?;
    pass.launch(scan, &args)
}
