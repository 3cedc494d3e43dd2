//! The keys of rows as kernels read them, and the words that are made of them.

use arrow_schema::DataType;
use bowstring_kernels::group::dense::{self, RANGE};
use bowstring_kernels::group::keys::{WORDS, Words};
use bowstring_kernels::memory::In;
use bowstring_kernels::target::find;

use crate::Result;
use crate::array::{Bitmap, DeviceArray};
use crate::gpu::bitmap::and;
use crate::gpu::structure::alike::{Compared, compared_with_others};
use crate::pass::{BitPointer, Pass, Region, bits};

/// Checks that devices compare rows of an array.
pub(crate) fn check_key(pass: &Pass, values: &DeviceArray) -> Result<()> {
    use DataType::{Dictionary, RunEndEncoded, Union};
    match values.data_type() {
        of @ (Dictionary(..) | RunEndEncoded(..) | Union(..)) => Err(pass.unsupported(of)),
        of if of.is_nested() => Err(pass.unsupported(of)),
        _ => Ok(()),
    }
}

/// A column of keys.
pub(crate) struct Key {
    pub(super) compared: Compared,
    /// The bits of a value; `None` if it has any number of them.
    bits: Option<u64>,
    /// Whether null is a value, or else rows with nulls do not count.
    nullable: bool,
    /// Whether values are signed numbers.
    signed: bool,
}

/// Words that were made of keys, one for each row.
#[derive(Clone)]
pub(crate) struct Made {
    pub words: In<u64>,
    /// The memory of the words, unless they are the values of the only key.
    pub region: Option<Region>,
}

impl Key {
    /// Describes a column; `None` if all of its rows are equal.
    pub fn new(
        pass: &Pass,
        values: &DeviceArray,
        compared: Option<Compared>,
        nullable: bool,
    ) -> Result<Option<Key>> {
        let compared = compared.ok_or_else(|| pass.unsupported(values.data_type()))?;
        let bits = match compared.key {
            0 => None,
            3 => Some(1),
            unit => Some(8 * u64::from(unit) * compared.pieces),
        };
        let signed = is_signed(values.data_type());
        Ok((bits != Some(0) || nullable).then_some(Key { compared, bits, nullable, signed }))
    }

    /// The bits of a value and of its null.
    fn packed(&self) -> Option<u64> {
        self.bits?.checked_add(self.nullable.into())
    }

    /// The word of a null, if words hold all of the keys and this is the first.
    fn null(&self) -> u64 {
        self.bits.map_or(0, |bits| 1u64.checked_shl(bits as u32).unwrap_or(0))
    }
}

/// Whether values are signed numbers of up to 8 bytes, in two's complement.
fn is_signed(of: &DataType) -> bool {
    use DataType::*;
    matches!(of, Int8 | Int16 | Int32 | Int64 | Date32 | Date64 | Time32(_) | Time64(_))
        || matches!(of, Timestamp(..) | Duration(_) | Decimal32(..) | Decimal64(..))
}

/// How far the words of a single key are apart, as the device finds out.
#[derive(Clone)]
pub(crate) struct Range {
    /// The least word, and the complement of the greatest.
    pub ends: Region,
    /// The bit that flips in words, so that they order as values do.
    pub flip: u64,
    /// The word of a null.
    pub null: u64,
}

/// Finds the range of words that may be in a narrow one: those of a single key that hold its values.
pub(super) fn range(
    pass: &mut Pass,
    keys: &[Key],
    words: In<u64>,
    rows: usize,
    (valid, valid_offset): BitPointer,
) -> Result<Option<Range>> {
    let [Key { bits: Some(bits @ 1..=64), nullable, signed, .. }] = keys else { return Ok(None) };
    let flip = if *signed { 1 << (bits - 1) } else { 0 };
    let null = if *nullable { keys[0].null() } else { u64::MAX };
    let ends = pass.upload(&[u64::MAX; 2])?;
    let args = dense::Range { words, rows: rows as u64, valid, valid_offset, flip, null, range: ends.out() };
    pass.launch(&RANGE[0], &args)?;
    Ok(Some(Range { ends, flip, null }))
}

/// Whether words hold all of the keys, so that equal words are equal keys.
pub(super) fn fit_words(keys: &[Key]) -> bool {
    let bits = keys.iter().map(Key::packed).try_fold(0u64, |sum, bits| sum.checked_add(bits?));
    bits.is_some_and(|bits| bits <= 64)
}

/// Describes keys that are compared with those of other arrays, and the rows that are compared at all; `None`
/// if all are.
pub(crate) async fn described(
    pass: &mut Pass,
    keys: &[DeviceArray],
    nulls_equal: bool,
) -> Result<(Vec<Key>, Option<Bitmap>)> {
    let rows = keys.first().map_or(0, DeviceArray::len);
    let (mut described, mut valid) = (vec![], None);
    for values in keys {
        pass.input(values)?;
        if *values.data_type() == DataType::Null {
            if !nulls_equal {
                let none = pass.zeroed(rows.div_ceil(32) * 4)?;
                valid = Some(Bitmap { buffer: none.buffer(), offset: 0 });
            }
            continue;
        }
        check_key(pass, values)?;
        // An array without rows may have no buffers to describe.
        if rows == 0 {
            continue;
        }
        let key = compared_with_others(pass, values).await?;
        described.extend(Key::new(pass, values, key, nulls_equal)?);
        if let (false, Some(own)) = (nulls_equal, values.possible_nulls()) {
            valid = Some(match valid {
                None => own.clone(),
                Some(others) => {
                    let both = pass.output(rows.div_ceil(32) * 4)?;
                    and(pass, bits(&others), bits(own), rows, &both)?;
                    Bitmap { buffer: both.buffer(), offset: 0 }
                }
            });
        }
    }
    Ok((described, valid))
}

/// Makes the words of rows. Words of 64 bits that hold the only key are its values.
pub(crate) fn make_words(
    pass: &mut Pass,
    keys: &[Key],
    rows: usize,
    exact: bool,
    seed: u64,
    fault: &Region,
) -> Result<Made> {
    if let ([Key { compared: Compared { key: 8, pieces: 1, values, .. }, .. }], true) = (keys, exact) {
        return Ok(Made { words: values.cast(), region: None });
    }
    // One column's words are read while the next one's are written.
    let out = pass.rows(rows, 8)?;
    let words = [out.clone(), if keys.len() > 1 { pass.rows(rows, 8)? } else { out }];
    if keys.is_empty() {
        pass.fill(&words[0], 0)?;
    }
    for (i, key) in keys.iter().enumerate() {
        let Compared { key: unit, values, pieces, valid: (valid, valid_offset), column } = key.compared;
        let entry = find(WORDS, &[unit]).ok_or_else(|| pass.unsupported("keys"))?;
        let (bits, seed) = match key.packed().filter(|_| exact) {
            Some(bits) => (bits, key.null()),
            None => (0, seed),
        };
        // Rows with nulls that do not count may have any word.
        let (valid, valid_offset) =
            if exact && !key.nullable { (In::absent(), 0) } else { (valid, valid_offset) };
        let args = Words {
            values,
            pieces,
            valid,
            valid_offset,
            column,
            rows: rows as u64,
            before: if i == 0 { In::absent() } else { words[(i + 1) % 2].input() },
            bits,
            seed,
            out: words[i % 2].out(),
            fault: fault.out(),
        };
        pass.launch(entry, &args)?;
    }
    let region = words[keys.len().saturating_sub(1) % 2].clone();
    Ok(Made { words: region.input(), region: Some(region) })
}
