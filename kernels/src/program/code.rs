//! How a program is written down: an instruction is four words, of which the first packs what it does.
//!
//! The one idea: an instruction fetches a second operand (a column's rows, a constant, the newest value of the stack), and
//! then does something to the newest value and that operand. So most steps of a program need no stack at all. Comparisons
//! and logic have a stack of their own, of truth values, which are bits.

/// Words of an instruction.
pub const WORDS: u64 = 4;
/// Values at hand at once.
pub const VALUES: usize = 4;
/// The most aggregates of a program: a lane of the narrowest wave has each.
pub const AGGREGATES: usize = 32;
/// Words that an aggregate leaves for each part of the rows: four of the value, and how many rows it is of.
pub const PART_WORDS: u64 = 5;

/// Numbers by name, of one byte.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$code_doc:meta])* $code:ident = $value:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$code_doc])* $code = $value,)+
        }

        impl $name {
            /// All there are.
            pub const EVERY: &[$name] = &[$($name::$code,)+];
        }
    };
}

codes! {
    /// Where the second operand, `b`, comes from. The newest value is `a`.
    Operand {
        /// There is none.
        None = 0,
        /// The constant.
        Constant = 1,
        /// A null.
        Null = 2,
        /// The newest value, which leaves the stack: `a` is the one before.
        Newest = 3,
        /// The value before the newest, which leaves the stack.
        Before = 4,
        /// A column of signed integers of one byte.
        I8 = 5,
        /// Of two.
        I16 = 6,
        /// Of four.
        I32 = 7,
        /// Of eight; also unsigned ones where values have eight bytes.
        I64 = 8,
        /// Of sixteen.
        I128 = 9,
        /// Of unsigned integers of one byte.
        U8 = 10,
        /// Of two.
        U16 = 11,
        /// Of four.
        U32 = 12,
        /// Of eight, where values have sixteen.
        U64 = 13,
    }
}

codes! {
    /// What is done. "Truth" is the stack of truth values; a value that is null is null whatever becomes of it, unless said.
    Op {
        /// `a = b`
        Set = 0,
        /// `b` becomes the newest value.
        Push = 1,
        /// The newest value leaves.
        Drop = 2,
        /// `a + b`; bad where that overflows.
        Add = 3,
        /// `a - b`; bad where that overflows.
        Sub = 4,
        /// `a * b`; bad where that overflows.
        Mul = 5,
        /// `a / b`, towards zero; bad where `b` is zero, or that overflows.
        Div = 6,
        /// `a - a / b * b`; bad where `b` is zero.
        Rem = 7,
        /// `a`, cut to the integer type that `detail` says; bad where that is not `a`.
        Fit = 8,
        /// `a ^ b`
        Xor = 9,
        /// The total order's key of a float's bits, and back.
        Key = 10,
        /// Floats of eight bytes.
        AddF64 = 11,
        /// Likewise.
        SubF64 = 12,
        /// Likewise.
        MulF64 = 13,
        /// Likewise.
        DivF64 = 14,
        /// Likewise.
        RemF64 = 15,
        /// Floats of four bytes.
        AddF32 = 16,
        /// Likewise.
        SubF32 = 17,
        /// Likewise.
        MulF32 = 18,
        /// Likewise.
        DivF32 = 19,
        /// Likewise.
        RemF32 = 20,
        /// A float of eight bytes whose zero is `+0.0` and whose NaN is one.
        PlainF64 = 21,
        /// Of four.
        PlainF32 = 22,
        /// The truth of `a` being less than `b` (bit 0 of `detail`), equal (bit 1), more (bit 2), onto truth.
        Compare = 23,
        /// The same, where nulls are equal to each other and to nothing else.
        Distinct = 24,
        /// Whether `a` is one of the constants, onto truth.
        In = 25,
        /// Whether `a` is valid (`detail` 0), or null (1), onto truth.
        Valid = 26,
        /// A column of booleans, onto truth.
        Bits = 27,
        /// A constant, onto truth: bit 0 whether true, bit 1 whether known.
        Truth = 28,
        /// Kleene's and, of the two newest truths.
        And = 29,
        /// Kleene's or.
        Or = 30,
        /// Not, of the newest.
        Not = 31,
        /// Of the newest what `detail` says for false (bit 0), true (bit 1) and null (bit 2).
        Test = 32,
        /// `a` where the newest truth is true, else `b`.
        Select = 33,
        /// The same among truths: condition, then, else.
        SelectTruth = 34,
        /// `a`, or `b` where that is null.
        Coalesce = 35,
        /// The same among truths.
        CoalesceTruth = 36,
        /// `a`, but null where the newest truth is true.
        NullIf = 37,
        /// The same among truths.
        NullIfTruth = 38,
        /// The newest truth becomes the newest value, 0 or 1.
        Value = 39,
        /// The year, month or day (`detail` 0, 1, 2) of a day since 1970.
        Date = 40,
        /// `a / b` rounded down, where `b` is a constant above zero.
        FloorDiv = 41,
        /// What that leaves.
        FloorRem = 42,
        /// Only rows where the newest truth is true go on: others are no errors, and are not aggregated.
        Where = 43,
        /// `a` into an output whose values have `1 << detail` bytes, and leaves.
        Store = 44,
        /// The newest truth into an output.
        StoreTruth = 45,
        /// The newest truth is which rows a selection keeps.
        Keep = 46,
        /// Adds `a` to an aggregate, and leaves.
        Sum = 47,
        /// The same, of floats of eight bytes.
        SumF64 = 48,
        /// Of four.
        SumF32 = 49,
        /// The least.
        Min = 50,
        /// The greatest.
        Max = 51,
        /// How many are valid.
        Count = 52,
    }
}

/// What becomes of a row that an instruction says is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bad {
    /// Nothing: the result is what remains of it in the type's bits.
    Wraps = 0,
    /// The row is reported.
    Fails = 1,
    /// The result is null.
    Null = 2,
}

/// In `detail` of operations on integers: values of eight bytes are unsigned.
pub const UNSIGNED: u8 = 0x80;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// Its second operand.
    pub operand: Operand,
    /// The column of the operand, the output or the aggregate; of [`Op::In`], how many constants there are.
    pub slot: u16,
    /// More about what it does.
    pub detail: u8,
    /// What happens to bad rows.
    pub bad: Bad,
    /// Who is told to have failed.
    pub node: u16,
    /// The constant; of [`Op::In`], the word of the code from which on constants lie.
    pub constant: i128,
}

impl Instruction {
    /// Without an operand.
    pub const fn new(op: Op) -> Instruction {
        Instruction { op, operand: Operand::None, slot: 0, detail: 0, bad: Bad::Wraps, node: 0, constant: 0 }
    }

    /// Its words.
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
