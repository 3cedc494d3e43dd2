//! The tests there are, by number.

/// What is asked of a row and of what it is tried against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// Whether it is less (bit 0), equal (bit 1), more (bit 2), byte by byte.
    Compare(u8),
    /// Whether it starts with it.
    StartsWith,
    /// Whether it ends with it.
    EndsWith,
    /// Whether it is somewhere inside.
    Contains,
    /// Whether the row is of a pattern: `%` is any text, `_` any character, a backslash takes the next one as it is.
    Like,
    /// The same, where case does not count.
    ILike,
    /// Whether it is one of the other column's rows, which ascend.
    In,
}

impl Test {
    pub(super) const COMPARE: u32 = 0;
    pub(super) const STARTS_WITH: u32 = 1;
    pub(super) const ENDS_WITH: u32 = 2;
    pub(super) const CONTAINS: u32 = 3;
    pub(super) const LIKE: u32 = 4;
    pub(super) const ILIKE: u32 = 5;
    pub(super) const IN: u32 = 6;

    /// As kernels are told.
    pub const fn code(self) -> u64 {
        let (test, detail) = match self {
            Test::Compare(bits) => (Test::COMPARE, bits),
            Test::StartsWith => (Test::STARTS_WITH, 0),
            Test::EndsWith => (Test::ENDS_WITH, 0),
            Test::Contains => (Test::CONTAINS, 0),
            Test::Like => (Test::LIKE, 0),
            Test::ILike => (Test::ILIKE, 0),
            Test::In => (Test::IN, 0),
        };
        (test as u64) << 8 | detail as u64
    }

    /// What has an entry of its own: tests of a kind differ in little.
    pub const fn kind(self) -> u32 {
        match self {
            Test::Compare(_) | Test::StartsWith | Test::EndsWith => kinds::COMPARE,
            Test::Contains => kinds::CONTAINS,
            Test::Like | Test::ILike => kinds::LIKE,
            Test::In => kinds::IN,
        }
    }

    /// The test and the bits of a code.
    #[inline(always)]
    pub(super) const fn parts(code: u64) -> (u32, u32) {
        (code as u32 >> 8, code as u32 & 0xff)
    }
}

/// Kinds of tests.
pub(super) mod kinds {
    pub const COMPARE: u32 = 0;
    pub const CONTAINS: u32 = 3;
    pub const LIKE: u32 = 4;
    pub const IN: u32 = 6;
}
