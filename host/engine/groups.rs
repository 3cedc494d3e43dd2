//! Groups of rows, parts and frames of them, and folds of their values.

use crate::DeviceArray;
use crate::expr::Reduction;

/// The groups of equal rows of columns, numbered in the order of their first rows.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The group of each row, as UInt32.
    pub(crate) ids: DeviceArray,
    /// The first row of each group, as UInt32. They ascend.
    pub(crate) firsts: DeviceArray,
}

/// Rows in parts that a hash of their keys has chosen.
#[derive(Clone, Debug)]
pub struct HashPartitions {
    /// The rows, part after part, as UInt32.
    pub(crate) order: DeviceArray,
    /// The place of each part's first row, and the number of all rows.
    pub(crate) starts: Vec<usize>,
}

/// A fold of the values of each group, which skips nulls.
///
/// | fold | values | result |
/// | --- | --- | --- |
/// | sum | Int64, UInt64 | Decimal128(38, 0), exact; the type of the values if it `wraps` |
/// | sum | Decimal128, Decimal256 | Decimal256 of 76 digits and the same scale, modulo 2^256 |
/// | sum | Float32, Float64 | the same type |
/// | min, max | values of up to 16 bytes that are numbers | the same type |
/// | count | any | Int64, never null |
/// | operations on bits | integers | the same type |
/// | first, last | any | the number of a row whose value is not null, as UInt32 |
///
/// A group without values has null, except for a count. The sum of floats starts from 0.0 and adds pieces of
/// [`PIECE`](crate::rules::PIECE) rows of the group: the values of a piece in the order of their rows, then
/// the sums of the pieces in the same way, until one is left. So it is the same on every device. NaN
/// is the canonical one.
#[derive(Clone, Debug)]
pub(crate) struct GroupFold {
    pub fold: Reduction,
    /// As many values as there are rows. Without any, all rows count.
    pub values: Option<DeviceArray>,
    /// Whether a sum of integers wraps around.
    pub wraps: bool,
}

/// Ranges of places, which may overlap, one for each place.
///
/// The sum of floats in a frame adds values and nodes: [`NODE`](crate::rules::NODE) places, counted from the
/// first of all, make a node, as many nodes make one of the next level, and a node is the sum of what it is
/// made of, from 0.0 on. A frame starts from 0.0 and adds, from its first place to its last, values up to the
/// first whole node, nodes up to the first whole one of the next level, and so on.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    /// The first place of each frame, as UInt32.
    pub starts: DeviceArray,
    /// The place after the last of each frame, as UInt32. A frame without places may end before its start.
    pub ends: DeviceArray,
    /// The length that no frame exceeds.
    pub longest: usize,
}
