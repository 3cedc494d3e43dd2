//! The arguments of a map, and how its rows are dealt to lanes. The one idea: neither depends on the
//! function, but only on the widths of the values that it reads and writes.

use super::function::ValueFunction;
use super::function::words::WORDS;

/// Accesses of a lane that are loaded together.
pub(super) const HALF: u32 = 4;

/// The arguments of every map. This is the only list of them.
macro_rules! with_arguments {
    ($then:ident! { $($rest:tt)* }) => {
        $then! {
            {
                /// The values, from `In::bitmap` for numbers too.
                values: $crate::memory::In<u32>,
                /// The bit offset of `values`, from `In::bitmap`.
                offset: u64,
                /// A bit for each valid row, from `In::bitmap`. May be absent.
                valid: $crate::memory::In<u32>,
                /// The bit offset of `valid`, from `In::bitmap`.
                valid_offset: u64,
                /// The number of rows; not 0.
                len: u64,
                /// The number of tiles that a wave takes, one after another.
                tiles: u64,
                /// The new values, on a 16-byte boundary and writable up to one. Booleans fill whole words.
                out: $crate::memory::Out<u8>,
                /// A bit for each row that is valid and fits, in whole words; bits past the end are zero. May
                /// be absent.
                out_valid: $crate::memory::Out<u32>,
                /// Two words. The first gains the number of rows that are not valid or do not fit. The second
                /// is lowered to the first row that is valid and does not fit. May be absent, and then no
                /// validity is written. Functions that always fit do not touch it.
                status: $crate::memory::Out<u64>,
            }
            $($rest)*
        }
    };
}

macro_rules! task {
    ({ $($(#[$doc:meta])* $field:ident: $ty:ty,)+ }) => {
        /// The arguments of a map's entry, whatever its family.
        #[derive(Clone, Copy)]
        pub struct MapTask {
            $($(#[$doc])* pub $field: $ty,)+
            /// The parameters of the function.
            pub words: [u64; WORDS],
        }
    };
}

with_arguments! { task! {} }

/// The way in which a map deals rows to lanes.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Bytes of a value that is read.
    pub(super) from: u32,
    /// Bytes of a value that is written.
    pub(super) to: u32,
    /// Rows in one access of a lane.
    pub(super) rows: u32,
    /// Accesses of a lane in a tile: `HALF`, or twice that where a tile costs more than its rows and
    /// registers are left. The rows of all accesses fit 32 bits.
    pub(super) steps: u32,
}

impl Shape {
    /// The shape for a function's types.
    #[inline(always)]
    pub const fn of<F: ValueFunction>() -> Shape {
        Shape::new(size_of::<F::From>(), size_of::<F::To>(), !F::ALWAYS || F::FILLS_NULLS)
    }

    /// The shape for types of these many bytes (a boolean counts as one). `checked` says that a tile has work
    /// beyond its values.
    #[inline(always)]
    const fn new(from: usize, to: usize, checked: bool) -> Shape {
        let wider = if from > to { from } else { to } as u32;
        let rows = match wider {
            1 => 8,
            2..=16 => 16 / wider,
            _ => 1,
        };
        Shape {
            from: from as u32,
            to: to as u32,
            rows,
            steps: if checked && rows < 8 && wider < 32 && !(from == 8 && to == 8) { 2 * HALF } else { HALF },
        }
    }

    /// Rows in a tile, at this width of a wave.
    #[inline(always)]
    pub const fn tile(&self, width: u32) -> u32 {
        self.steps * self.rows * width
    }

    /// Bytes of one load of a lane.
    #[inline(always)]
    pub(super) const fn unit(&self) -> u32 {
        let bytes = self.rows * self.from;
        if bytes < 16 { bytes } else { 16 }
    }

    /// Loads in an access of a lane.
    #[inline(always)]
    pub(super) const fn units(&self) -> u32 {
        self.rows * self.from / self.unit()
    }
}
