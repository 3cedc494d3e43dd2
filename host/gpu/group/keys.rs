//! The keys of rows as kernels read them, and the words that are made of them.

use arrow_schema::DataType;
use bowstring_kernels::group::keys::{WORDS, Words};
use bowstring_kernels::memory::In;
use bowstring_kernels::target::find;

use crate::Result;
use crate::array::{Bitmap, DeviceArray};
use crate::gpu::bitmap::and;
use crate::gpu::structure::alike::{Compared, compared_with_others};
use crate::pass::{Pass, Region, bits};

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
        Ok((bits != Some(0) || nullable).then_some(Key { compared, bits, nullable }))
    }

    /// The bits of a value and of its null.
    fn packed(&self) -> Option<u64> {
        self.bits?.checked_add(self.nullable.into())
    }
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

/// Makes the words of rows.
pub(crate) fn make_words(
    pass: &mut Pass,
    keys: &[Key],
    rows: usize,
    exact: bool,
    seed: u64,
    words: &[Region; 2],
    fault: &Region,
) -> Result<Region> {
    if keys.is_empty() {
        pass.fill(&words[0], 0)?;
    }
    for (i, key) in keys.iter().enumerate() {
        let Compared { key: unit, values, pieces, valid: (valid, valid_offset), column } = key.compared;
        let entry = find(WORDS, &[unit]).ok_or_else(|| pass.unsupported("keys"))?;
        let (bits, seed) = match key.packed().filter(|_| exact) {
            Some(bits) => (bits, key.bits.map_or(0, |bits| 1u64.checked_shl(bits as u32).unwrap_or(0))),
            None => (0, seed),
        };
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
    Ok(words[keys.len().saturating_sub(1) % 2].clone())
}
