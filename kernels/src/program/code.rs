//! The encoding of a program: an instruction is four words, and the first packs its operation.
//!
//! The one idea: an instruction fetches a second operand (a column's rows, a constant, the newest value of
//! the stack), then combines the newest value with that operand. So most steps of a program need no stack at
//! all. Comparisons and logic have their own stack of truth values, which are bits.

/// Words of an instruction.
pub const WORDS: u64 = 4;
/// The number of values that a wave keeps at once.
pub const VALUES: usize = 4;
/// The most aggregates that a program may have: each takes a lane of the narrowest wave.
pub const AGGREGATES: usize = 32;
/// Words that an aggregate leaves for each part of the rows: four for the value, one for the number of rows
/// in it.
pub const PART_WORDS: u64 = 5;

/// Declares an enum whose codes are one byte each.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$code_doc:meta])* $code:ident = $value:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$code_doc])* $code = $value,)+
        }

        impl $name {
            /// Every code of this enum.
            pub const EVERY: &[$name] = &[$($name::$code,)+];
        }
    };
}

codes! {
    /// The source of the second operand, `b`. The newest value is `a`.
    Operand {
        /// The instruction has no second operand.
        None = 0,
        /// The constant of the instruction.
        Constant = 1,
        /// A null in every row.
        Null = 2,
        /// The newest value, which leaves the stack; `a` is then the one before.
        Newest = 3,
        /// The value before the newest, which leaves the stack.
        Before = 4,
        /// A column of signed integers of one byte.
        I8 = 5,
        /// A column of signed integers of two bytes.
        I16 = 6,
        /// A column of signed integers of four bytes.
        I32 = 7,
        /// A column of signed integers of eight bytes; also of unsigned ones, in programs with values of
        /// eight bytes.
        I64 = 8,
        /// A column of signed integers of sixteen bytes.
        I128 = 9,
        /// A column of unsigned integers of one byte.
        U8 = 10,
        /// A column of unsigned integers of two bytes.
        U16 = 11,
        /// A column of unsigned integers of four bytes.
        U32 = 12,
        /// A column of unsigned integers of eight bytes, in programs with values of sixteen.
        U64 = 13,
    }
}

codes! {
    /// The operation of an instruction. "Truth" is the stack of truth values. A null value stays null through
    /// every operation that does not say otherwise.
    Op {
        /// Sets `a = b`.
        Set = 0,
        /// Pushes `b`, which becomes the newest value.
        Push = 1,
        /// Drops the newest value.
        Drop = 2,
        /// Sets `a` to `a + b`; bad where that overflows.
        Add = 3,
        /// Sets `a` to `a - b`; bad where that overflows.
        Sub = 4,
        /// Sets `a` to `a * b`; bad where that overflows.
        Mul = 5,
        /// Sets `a` to `a * 10^detail / b`, rounded towards zero; bad where `b` is zero or the quotient
        /// overflows. The product cannot. With values of eight bytes the power must be 0.
        Div = 6,
        /// Sets `a` to the remainder `a - a / b * b`; bad where `b` is zero.
        Rem = 7,
        /// Truncates `a` to the integer type in `detail`; bad where that changes the value.
        Fit = 8,
        /// Sets `a` to `a ^ b`.
        Xor = 9,
        /// Converts a float's bits to its key in the total order, or a key back to the bits.
        Key = 10,
        /// Adds floats of eight bytes.
        AddF64 = 11,
        /// Subtracts floats of eight bytes.
        SubF64 = 12,
        /// Multiplies floats of eight bytes.
        MulF64 = 13,
        /// Divides floats of eight bytes.
        DivF64 = 14,
        /// Takes the remainder of floats of eight bytes.
        RemF64 = 15,
        /// Adds floats of four bytes.
        AddF32 = 16,
        /// Subtracts floats of four bytes.
        SubF32 = 17,
        /// Multiplies floats of four bytes.
        MulF32 = 18,
        /// Divides floats of four bytes.
        DivF32 = 19,
        /// Takes the remainder of floats of four bytes.
        RemF32 = 20,
        /// Makes every zero of a float of eight bytes `+0.0` and every NaN the same NaN.
        PlainF64 = 21,
        /// Makes every zero of a float of four bytes `+0.0` and every NaN the same NaN.
        PlainF32 = 22,
        /// Pushes the truth of `a` being less than `b` (bit 0 of `detail`), equal (bit 1) or greater (bit 2).
        Compare = 23,
        /// Compares like `Compare`, except that nulls are equal to each other and to nothing else.
        Distinct = 24,
        /// Pushes whether `a` is one of the constants.
        In = 25,
        /// Pushes whether `a` is valid (`detail` 0) or null (`detail` 1).
        Valid = 26,
        /// Pushes the values of a column of booleans.
        Bits = 27,
        /// Pushes a constant truth: bit 0 of `detail` says whether it is true, bit 1 whether it is known.
        Truth = 28,
        /// Replaces the two newest truths by Kleene's and of them.
        And = 29,
        /// Replaces the two newest truths by Kleene's or of them.
        Or = 30,
        /// Negates the newest truth.
        Not = 31,
        /// Replaces the newest truth by the bit of `detail` for false (bit 0), true (bit 1) or null (bit 2).
        Test = 32,
        /// Keeps `a` where the newest truth is true, else sets it to `b`.
        Select = 33,
        /// Selects among truths; they were pushed in the order condition, then, else.
        SelectTruth = 34,
        /// Keeps `a` where it is valid, else sets it to `b`.
        Coalesce = 35,
        /// Keeps the older of the two newest truths where it is known, else takes the newest.
        CoalesceTruth = 36,
        /// Makes `a` null where the newest truth is true.
        NullIf = 37,
        /// Makes the truth before the newest null where the newest is true.
        NullIfTruth = 38,
        /// Pushes the newest truth as a value, 0 or 1.
        Value = 39,
        /// Converts a day since 1970 to its year, month or day (`detail` 0, 1, 2).
        Date = 40,
        /// Sets `a` to `a / b` rounded down; `b` is a constant above zero.
        FloorDiv = 41,
        /// Sets `a` to the remainder of the division that `FloorDiv` does.
        FloorRem = 42,
        /// Drops the rows where the newest truth is not true: they raise no errors and are not aggregated.
        Where = 43,
        /// Stores `a` into an output whose values have `1 << detail` bytes, and drops it.
        Store = 44,
        /// Stores the newest truth into an output.
        StoreTruth = 45,
        /// Stores the newest truth as the rows that a selection keeps.
        Keep = 46,
        /// Adds `a` to an aggregate, and drops it.
        Sum = 47,
        /// Adds `a`, a float of eight bytes, to an aggregate, and drops it.
        SumF64 = 48,
        /// Adds `a`, a float of four bytes, to an aggregate, and drops it.
        SumF32 = 49,
        /// Lowers an aggregate to the least `a`, and drops `a`.
        Min = 50,
        /// Raises an aggregate to the greatest `a`, and drops `a`.
        Max = 51,
        /// Counts the rows where `a` is valid, and drops `a`.
        Count = 52,
    }
}

/// The treatment of a row that an instruction finds bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bad {
    /// The row keeps the bits of the result that fit its type.
    Wraps = 0,
    /// The launch reports the row as failed.
    Fails = 1,
    /// The row becomes null.
    Null = 2,
}

/// A flag in `detail` of integer operations: values of eight bytes are unsigned.
pub const UNSIGNED: u8 = 0x80;

/// In arithmetic, a flag in `detail` of differences and quotients: the operand is the left one, and the
/// newest value the right one.
pub const TURNED: u8 = 1;

/// In arithmetic, a flag in `detail` of comparisons: the values are bits of floats, which compare by their
/// keys.
pub const KEYED: u8 = 0x40;

/// An instruction of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The operation to run.
    pub op: Op,
    /// The source of its second operand.
    pub operand: Operand,
    /// The column of the operand, the output or the aggregate; for [`Op::In`], the number of constants.
    pub slot: u16,
    /// A parameter of the operation; [`Op`] says what each reads from it.
    pub detail: u8,
    /// The treatment of bad rows.
    pub bad: Bad,
    /// The number of the node to blame in a failure's report.
    pub node: u16,
    /// The constant; for [`Op::In`], the index of the first constant's word in the code.
    pub constant: i128,
}

impl Instruction {
    /// An instruction without an operand.
    pub const fn new(op: Op) -> Instruction {
        Instruction { op, operand: Operand::None, slot: 0, detail: 0, bad: Bad::Wraps, node: 0, constant: 0 }
    }

    /// The instruction in the words that a wave reads.
    pub const fn words(&self) -> [u64; WORDS as usize] {
        let first = self.op as u64
            | (self.operand as u64) << 8
            | (self.slot as u64) << 16
            | (self.detail as u64) << 32
            | (self.bad as u64) << 40
            | (self.node as u64) << 48;
        [first, self.constant as u64, (self.constant >> 64) as u64, 0]
    }
}
