//! Row equality: run boundaries, and the first occurrence of each distinct row.

use arrow_schema::DataType;
use bowstring_kernels::encoded::distinct::{CLAIM, Claim, SETTLE, STRETCHES, Settle, Stretches};
use bowstring_kernels::encoded::runs::{RANKS, Ranks};
use bowstring_kernels::memory::In;
use bowstring_kernels::target::find;

use super::Marked;
use crate::array::{Bitmap, Buffer, DeviceArray, Slot, all_inside, outside};
use crate::gpu::bitmap::aligned;
use crate::gpu::mask::Mask;
use crate::gpu::rows::{rows_of, unit};
use crate::gpu::text::text_column;
use crate::pass::{BitPointer, Looks, Pass, Region, Table, bits, validity};
use crate::{Error, Result};

/// The rounds launched before the host checks whether they sufficed; in nearly all cases they do.
const ROUNDS: u64 = 4;

/// Rows in the form that kernels compare.
#[derive(Clone, Copy)]
pub(crate) struct Compared {
    /// The unit of comparison, which selects the kernel's entry.
    pub key: u32,
    pub values: In<u8>,
    pub pieces: u64,
    pub valid: BitPointer,
    pub column: In<u64>,
}

/// Describes an array's rows for comparison; `None` for types whose rows do not lie in one place.
pub(crate) async fn compared(pass: &mut Pass, array: &DeviceArray) -> Result<Option<Compared>> {
    let address = |rows: &Buffer| rows.address();
    compared_at(pass, array, address).await
}

/// Describes an array's rows for comparison with those of any other array of its type: in the same units,
/// wherever they are.
pub(crate) async fn compared_with_others(pass: &mut Pass, array: &DeviceArray) -> Result<Option<Compared>> {
    compared_at(pass, array, |_| 0).await
}

async fn compared_at(
    pass: &mut Pass,
    array: &DeviceArray,
    address: impl Fn(&Buffer) -> usize,
) -> Result<Option<Compared>> {
    let (column, valid) = (In::absent(), validity(array));
    if !array.children().is_empty() {
        return Ok(None);
    }
    let buffer = || array.buffers()[0].clone();
    Ok(match array.layout().slots().next() {
        None => None,
        Some(Slot::Bits) => {
            let (values, offset) = bits(&Bitmap { buffer: buffer(), offset: array.offset() });
            Some(Compared { key: 3, values: values.cast(), pieces: offset, valid, column })
        }
        Some(Slot::Fixed(width)) => {
            let rows = rows_of(array, &buffer(), width);
            // Values of other widths are compared in pieces: fewer entries, and the same bytes.
            let unit = match unit(width, address(&rows)) {
                _ if width == 0 => 1,
                16 => 8,
                2 => 1,
                unit => unit,
            };
            let values = aligned(pass, &rows, unit)?;
            Some(Compared { key: unit as u32, values, pieces: (width / unit) as u64, valid, column })
        }
        Some(Slot::Offsets(_) | Slot::Bytes | Slot::Views) => {
            let mut table = Table::default();
            table.push(&text_column(pass, array).await?);
            let column = pass.upload(table.words())?.input();
            Some(Compared { key: 0, values: In::absent(), pieces: 0, valid, column })
        }
    })
}

/// Writes a bit for each row that differs from the next one, and for the last row. Rows of nested types count
/// as all different.
pub(crate) async fn stretches(pass: &mut Pass, array: &DeviceArray) -> Result<Region> {
    let rows = array.len();
    let out = pass.output(rows.div_ceil(32) * 4)?;
    let Some(Compared { key, values, pieces, valid: (valid, valid_offset), column }) =
        compared(pass, array).await?
    else {
        pass.fill(&out, 0xff)?;
        return Ok(out);
    };
    let fault = pass.first_rows(1, rows)?;
    let entry = find(STRETCHES, &[key]).ok_or_else(|| pass.unsupported(array.data_type()))?;
    let (rows, out_bits) = (rows as u64, out.out());
    let args =
        Stretches { values, pieces, valid, valid_offset, column, rows, out: out_bits, fault: fault.out() };
    pass.launch(entry, &args)?;
    pass.report(&fault, all_inside)?;
    Ok(out)
}

/// The first occurrence of each row's value, and a mask of the rows that are first occurrences.
pub(crate) struct Firsts {
    of: Region,
    rows: usize,
    marked: Mask,
    /// The number of distinct rows.
    pub count: usize,
}

/// Finds the first occurrence of each row's value; null rows have none. Needs at least one row. `None` for
/// types whose rows cannot be compared. Reads once in nearly all cases.
pub(crate) async fn firsts(pass: &mut Pass, array: &DeviceArray) -> Result<Option<Firsts>> {
    let Some(Compared { key, values, pieces, valid: (valid, valid_offset), column }) =
        compared(pass, array).await?
    else {
        return Ok(None);
    };
    let (Some(claim), Some(settle)) = (find(CLAIM, &[key]), find(SETTLE, &[key])) else { return Ok(None) };
    let rows = array.len();
    let too_many = || pass.unsupported(format!("{rows} rows"));
    let slots = rows.checked_next_power_of_two().ok_or_else(too_many)?;
    let most = slots as u64 - 1;
    let slots = pass.rows(slots, 8)?;
    // One buffer is read while the other is written.
    let both = [pass.rows(rows, 8)?, pass.rows(rows, 8)?];
    let (bits, fault) = (pass.output(rows.div_ceil(32) * 4)?, pass.first_rows(1, rows)?);
    let mut round = 0;
    loop {
        let left = pass.zeroed(8 * ROUNDS as usize)?;
        for i in 0..ROUNDS {
            pass.fill(&slots, 0xff)?;
            let now = (round % 2) as usize;
            let before = if round == 0 { In::absent() } else { both[1 - now].input() };
            let (rows, seed) = (rows as u64, seed(round));
            let args = Claim {
                values,
                pieces,
                valid,
                valid_offset,
                column,
                rows,
                before,
                seed,
                most,
                slots: slots.out(),
                fault: fault.out(),
            };
            pass.launch(claim, &args)?;
            let args = Settle {
                values,
                pieces,
                valid,
                valid_offset,
                column,
                rows,
                before,
                seed,
                most,
                slots: slots.input(),
                after: both[now].out(),
                firsts: bits.out(),
                left: left.out().skip(i),
            };
            pass.launch(settle, &args)?;
            round += 1;
        }
        let marked = Marked::new(pass, rows, &bits)?;
        let mut looks = Looks::default();
        let [left, fault, counters] = [&left, &fault, marked.counters()].map(|region| looks.at([region]));
        let words = looks.read(pass).await?;
        if words[&fault][0] != u64::MAX {
            return Err(outside(words[&fault][0] as usize));
        }
        // Each round settles at least the rows equal to the first unsettled one, so the loop ends.
        if words[&left][ROUNDS as usize - 1] == 0 {
            let count = marked.total(&words[&counters]);
            let of = both[((round - 1) % 2) as usize].clone();
            return Ok(Some(Firsts { of, rows, marked: marked.mask, count }));
        }
    }
}

/// Returns a hash seed for a round; every bit depends on the round.
fn seed(round: u64) -> u64 {
    let mixed = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl Firsts {
    /// Returns the first occurrences as a selection.
    pub fn mask(&self) -> &Mask {
        &self.marked
    }

    /// Writes keys of a type: for each row, the rank of its first occurrence among all first occurrences.
    pub fn keys(&self, pass: &mut Pass, key: &DataType) -> Result<Region> {
        let width = key.primitive_width().ok_or_else(|| Error::invalid("cast", format!("keys of {key}")))?;
        let out = pass.rows(self.rows, width)?;
        let (words, words_offset) = self.marked.words();
        let args = Ranks {
            words,
            words_offset,
            tile_offsets: self.marked.offsets(),
            of: self.rows as u64,
            at: self.of.input(),
            rows: self.rows as u64,
            out: out.out::<u8>(),
        };
        let entry = find(RANKS, &[width as u32]).ok_or_else(|| pass.unsupported(key))?;
        pass.launch(entry, &args)?;
        Ok(out)
    }
}

/// Writes the row numbers as keys. The caller checks that the type can hold them.
pub(crate) fn own_keys(pass: &mut Pass, rows: usize, key: &DataType) -> Result<Region> {
    let width = key.primitive_width().ok_or_else(|| Error::invalid("cast", format!("keys of {key}")))?;
    let (at, out) = (super::counted(pass, 0, rows, 8)?, pass.rows(rows, width)?);
    let args = Ranks {
        words: In::absent(),
        words_offset: 0,
        tile_offsets: In::absent(),
        of: u64::MAX,
        at: at.input(),
        rows: rows as u64,
        out: out.out::<u8>(),
    };
    let entry = find(RANKS, &[width as u32]).ok_or_else(|| pass.unsupported(key))?;
    pass.launch(entry, &args)?;
    Ok(out)
}
