//! What a map is launched with, and how its rows are dealt to lanes. The one idea: neither depends on which function is
//! mapped, but on the widths of what it reads and writes.

use crate::function::ValueFunction;
use crate::function::words::WORDS;

/// Accesses of a lane that are loaded together.
pub(super) const HALF: u32 = 4;

/// What every map takes: the one list of these arguments.
macro_rules! with_arguments {
    ($then:ident! { $($rest:tt)* }) => {
        $then! {
            {
                /// The values, numbers too, from `In::bitmap`.
                values: $crate::memory::In<u32>,
                /// From `In::bitmap`.
                offset: u64,
                /// From `In::bitmap`: which rows are valid. May be absent.
                valid: $crate::memory::In<u32>,
                /// From `In::bitmap`.
                valid_offset: u64,
                /// How many rows; not 0.
                len: u64,
                /// How many tiles a wave does, one after another.
                tiles: u64,
                /// The new values, on a 16-byte boundary and writable up to one. Whole words of booleans.
                out: $crate::memory::Out<u8>,
                /// Which rows are valid and fit. Whole words; bits past the end are zero. May be absent.
                out_valid: $crate::memory::Out<u32>,
                /// Two words: receives, added to what is there, how many rows are not valid or do not fit; and, if
                /// less than what is there, the first row that is valid and does not fit. May be absent, and then no
                /// validity is written. Not touched by functions that always fit.
                status: $crate::memory::Out<u64>,
            }
            $($rest)*
        }
    };
}

macro_rules! task {
    ({ $($(#[$doc:meta])* $field:ident: $ty:ty,)+ }) => {
        /// What an entry is launched with, whatever its family.
        #[derive(Clone, Copy)]
        pub struct MapTask {
            $($(#[$doc])* pub $field: $ty,)+
            /// The parameters.
            pub words: [u64; WORDS],
        }
    };
}

with_arguments! { task! {} }

/// How rows are dealt to lanes.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Bytes of a value.
    pub(super) from: u32,
    /// Bytes of a new one.
    pub(super) to: u32,
    /// Rows in an access of a lane.
    pub(super) rows: u32,
    /// Accesses of a lane in a tile: `HALF`, or twice that where there is more to do for a tile than for its rows and
    /// registers are left. With the rows they make 32 bits at most.
    pub(super) steps: u32,
}

impl Shape {
    /// Of a function.
    #[inline(always)]
    pub const fn of<F: ValueFunction>() -> Shape {
        Shape::new(size_of::<F::From>(), size_of::<F::To>(), !F::ALWAYS || F::FILLS_NULLS)
    }

    /// Between types of these many bytes (a boolean counts as one), and whether there is more to do than the values.
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

    /// Rows in a tile.
    #[inline(always)]
    pub const fn tile(&self, width: u32) -> u32 {
        self.steps * self.rows * width
    }

    /// Bytes that are loaded at once.
    #[inline(always)]
    pub(super) const fn unit(&self) -> u32 {
        let bytes = self.rows * self.from;
        if bytes < 16 { bytes } else { 16 }
    }

    /// Those in an access.
    #[inline(always)]
    pub(super) const fn units(&self) -> u32 {
        self.rows * self.from / self.unit()
    }
}
