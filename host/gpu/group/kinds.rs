//! The kernels of folds: their entries, what they read, and what they make.

use arrow_schema::DataType;
use bowstring_kernels::group::fold::{BITS, COUNT, LEAST, ROW, SUM, SUM_FLOATS, SUM_UNSIGNED, SUM_WRAPPING};
use bowstring_kernels::memory::In;

use crate::Result;
use crate::engine::GroupFold;
use crate::expr::{Bits, Fold, Reduction};
use crate::gpu::bitmap::aligned;
use crate::gpu::rows::rows_of;
use crate::pass::Pass;
use crate::rules::words;

/// The entry of a fold, its widths, and the bits that flip.
pub(super) struct Kind {
    /// The first level, and the levels above.
    pub keys: [[u32; 2]; 2],
    /// The bytes of a result.
    pub width: usize,
    pub flips: [u64; 2],
    pub descending: u64,
}

/// Chooses the kernels of a fold.
pub(super) fn kind(one: &GroupFold, of: &DataType) -> Option<Kind> {
    let same = |key: [u32; 2], width| Kind { keys: [key; 2], width, flips: [0; 2], descending: 0 };
    let fold = match one.fold {
        Reduction::Fold(fold) => fold,
        Reduction::Bits(bits) => {
            let width = of.primitive_width()?;
            // Bits of which both values have one, and of which one has.
            let flips = match bits {
                Bits::And => [u64::MAX, 0],
                Bits::Or => [u64::MAX; 2],
                Bits::Xor => [0, u64::MAX],
            };
            return Some(Kind { flips, ..same([BITS, width as u32], width) });
        }
        Reduction::First | Reduction::Last => {
            let flips = words(&DataType::UInt32)?.first()?.order.flips(4);
            let descending = if one.fold == Reduction::Last { u32::MAX.into() } else { 0 };
            let keys = [[ROW, 0], [LEAST, 4]];
            return Some(Kind { keys, flips, descending, ..same([ROW, 0], 4) });
        }
    };
    Some(match (fold, of) {
        // Counts of counts are their sums.
        (Fold::Count, _) => Kind { keys: [[COUNT, 0], [SUM_WRAPPING, 8]], ..same([COUNT, 0], 8) },
        (Fold::Sum, DataType::Int64 | DataType::UInt64) if one.wraps => same([SUM_WRAPPING, 8], 8),
        (Fold::Sum, DataType::Int64) => Kind { keys: [[SUM, 8], [SUM_WRAPPING, 16]], ..same([SUM, 8], 16) },
        (Fold::Sum, DataType::UInt64) => {
            Kind { keys: [[SUM_UNSIGNED, 8], [SUM_WRAPPING, 16]], ..same([SUM_UNSIGNED, 8], 16) }
        }
        (Fold::Sum, DataType::Decimal128(..)) => Kind { keys: [[SUM, 16], [SUM, 32]], ..same([SUM, 16], 32) },
        (Fold::Sum, DataType::Decimal256(..)) => same([SUM, 32], 32),
        (Fold::Sum, DataType::Float32) => same([SUM_FLOATS, 4], 4),
        (Fold::Sum, DataType::Float64) => same([SUM_FLOATS, 8], 8),
        (Fold::Sum, _) => return None,
        (Fold::Min | Fold::Max, _) => {
            let width = of.primitive_width()?;
            let all = if width < 8 { u64::MAX >> (64 - 8 * width) } else { u64::MAX };
            let flips = if width > 8 { [0; 2] } else { words(of)?.first()?.order.flips(width) };
            let descending = if fold == Fold::Max { all } else { 0 };
            Kind { flips, descending, ..same([LEAST, width as u32], width) }
        }
    })
}

/// The values that a fold reads, if it reads any.
pub(super) fn values_of(pass: &mut Pass, one: &GroupFold, kind: &Kind) -> Result<In<u8>> {
    match &one.values {
        Some(values) if kind.keys[0][1] > 0 => {
            let of = values.data_type();
            let width = of.primitive_width().ok_or_else(|| pass.unsupported(of))?;
            let rows = rows_of(values, &values.buffers()[0], width);
            aligned(pass, &rows, width.min(16))
        }
        _ => Ok(In::absent()),
    }
}
