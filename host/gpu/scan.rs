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
