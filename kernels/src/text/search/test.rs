//! The tests of a row of text, and their numbers.

/// A test of a row against another text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// Whether the row is less (bit 0), equal (bit 1) or greater (bit 2), compared byte by byte.
    Compare(u8),
    /// Whether the row starts with the other text.
    StartsWith,
    /// Whether the row ends with the other text.
    EndsWith,
    /// Whether the other text occurs in the row.
    Contains,
    /// Whether the row matches the other text as a pattern: `%` stands for any text, `_` for any character,
    /// and a backslash escapes the next character.
    Like,
    /// Like [`Test::Like`], but ignores case.
    ILike,
    /// Whether the row equals one of the other column's rows, which MUST ascend.
    In,
    /// Whether the row consists of the pieces of a pattern, in their order, with anything in between: the
    /// first and the last, which may be empty, are where it begins and ends.
    Pieces,
    /// As [`Test::Like`], with the pieces of the pattern, each byte with whether it is a `_`: a row of ASCII
    /// is compared with them, since a `_` is a byte there.
    Wild,
}

impl Test {
    pub(super) const COMPARE: u32 = 0;
    pub(super) const STARTS_WITH: u32 = 1;
    pub(super) const ENDS_WITH: u32 = 2;
    pub(super) const CONTAINS: u32 = 3;
    pub(super) const LIKE: u32 = 4;
    pub(super) const ILIKE: u32 = 5;
    pub(super) const IN: u32 = 6;
    pub(super) const PIECES: u32 = 7;
    pub(super) const WILD: u32 = 8;

    /// Returns the code that kernels receive.
    pub const fn code(self) -> u64 {
        let (test, detail) = match self {
            Test::Compare(bits) => (Test::COMPARE, bits),
            Test::StartsWith => (Test::STARTS_WITH, 0),
            Test::EndsWith => (Test::ENDS_WITH, 0),
            Test::Contains => (Test::CONTAINS, 0),
            Test::Like => (Test::LIKE, 0),
            Test::ILike => (Test::ILIKE, 0),
            Test::In => (Test::IN, 0),
            Test::Pieces => (Test::PIECES, 0),
            Test::Wild => (Test::WILD, 0),
        };
        (test as u64) << 8 | detail as u64
    }

    /// Returns the kind, which has an entry of its own: tests of one kind differ little.
    pub const fn kind(self) -> u32 {
        match self {
            Test::Compare(_) | Test::StartsWith | Test::EndsWith => kinds::COMPARE,
            Test::Contains => kinds::CONTAINS,
            Test::Like | Test::ILike | Test::Wild => kinds::LIKE,
            Test::In => kinds::IN,
            Test::Pieces => kinds::PIECES,
        }
    }

    /// Splits a code into the number of the test and its bits.
    #[inline(always)]
    pub(super) const fn parts(code: u64) -> (u32, u32) {
        (code as u32 >> 8, code as u32 & 0xff)
    }
}

/// The kinds of tests, by number.
pub(super) mod kinds {
    pub const COMPARE: u32 = 0;
    pub const CONTAINS: u32 = 3;
    pub const LIKE: u32 = 4;
    pub const IN: u32 = 6;
    pub const PIECES: u32 = 7;
}
