//! Lengths, offsets, masks and indices at which bugs show.

use arrow_array::{ArrayRef, BooleanArray, make_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::{Nulls, Random, bitmap};

/// The lengths of arrays under test.
pub const LENGTHS: &[usize] = &[
    0,    // nothing to do, and buffers that may be missing
    1,    // one row: the first is the last
    7,    // less than a byte of bitmap
    31,   // a wave of 32 lanes, less one
    32,   // a wave
    33,   // a wave and one
    63,   // the same for waves of 64 lanes, which are also words of 64 bits
    64,   //
    65,   //
    1023, // the same for a tile of 1,024 rows
    1024, //
    1025, //
    2055, // two tiles and 7: a tile that is neither first nor last, and a last one that ends inside a byte
    8199, // several tiles and 7: more tiles than lanes scan at once on the smaller machines
];

/// The numbers of rows that a slice skips.
pub const OFFSETS: &[usize] = &[
    0,  // none
    1,  // a bit into a byte
    7,  // the last bit of a byte
    8,  // a whole byte, not a whole word
    31, // around a 32-bit word
    32, //
    33, //
    63, // around a 64-bit word
    64, //
];

/// The percentages of rows that masks keep.
pub const SELECTIVITIES: &[f64] = &[
    0.0,   // nothing: empty outputs
    1.0,   // most tiles keep no row or one
    50.0,  // all tiles keep some: the worst case for branches
    99.0,  // most words are full
    100.0, // everything: the output is the input
];

/// The properties of a mask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mask {
    /// The percentage of rows that it keeps.
    pub percent: f64,
    /// The average number of equal rows in succession.
    pub run: usize,
    /// The pattern of null rows, which are dropped.
    pub nulls: Nulls,
}

/// Masks of every kind: uniform and clustered, nothing and everything, with and without nulls.
pub const MASKS: &[Mask] = &[
    Mask { percent: 0.0, run: 1, nulls: Nulls::None },
    Mask { percent: 100.0, run: 1, nulls: Nulls::None },
    Mask { percent: 1.0, run: 1, nulls: Nulls::None },
    Mask { percent: 50.0, run: 1, nulls: Nulls::Some },
    Mask { percent: 50.0, run: 100, nulls: Nulls::None },
    Mask { percent: 99.0, run: 1, nulls: Nulls::Unused },
    Mask { percent: 99.0, run: 1, nulls: Nulls::Runs },
    Mask { percent: 100.0, run: 1, nulls: Nulls::Some },
    Mask { percent: 100.0, run: 1, nulls: Nulls::All },
];

/// A mask of this kind. The values under its nulls are set or not, like all others.
pub fn mask(kind: Mask, len: usize, rng: &mut Random) -> BooleanArray {
    let values = bitmap(len, kind.percent, kind.run, rng);
    BooleanArray::new(values, validity(kind.nulls, len, rng))
}

fn validity(nulls: Nulls, len: usize, rng: &mut Random) -> Option<NullBuffer> {
    super::array(&DataType::Int8, len, nulls, rng).nulls().cloned()
}

/// Indices of an integer type into `among` rows: in bounds except under nulls, which have arbitrary values. A
/// narrow type reaches only the first rows. If there are no rows, all indices are null.
pub fn indices(data_type: &DataType, len: usize, among: usize, nulls: Nulls, rng: &mut Random) -> ArrayRef {
    let nulls = if among == 0 { Nulls::All } else { nulls };
    let validity = validity(nulls, len, rng);
    let width = data_type.primitive_width().expect("indices are integers");
    let signed = data_type.is_signed_integer();
    let limit = 1u128 << (8 * width - usize::from(signed));
    let reach = u128::min(limit, among as u128) as usize;
    let mut bytes: Vec<u8> = vec![];
    let mut ascending = 0;
    for i in 0..len {
        let index = match &validity {
            Some(validity) if validity.is_null(i) => rng.bits(),
            // A run of neighbours, the last row, or any row.
            _ => match rng.below(4) {
                0 | 1 => {
                    ascending = (ascending + 1) % reach;
                    ascending as u64
                }
                2 => reach as u64 - 1,
                _ => rng.below(reach) as u64,
            },
        };
        bytes.extend(&index.to_le_bytes()[..width]);
    }
    let data = ArrayData::builder(data_type.clone()).len(len).nulls(validity);
    make_array(data.add_buffer(Buffer::from(bytes)).build().expect("integers"))
}
