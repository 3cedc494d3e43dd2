//! Comparison of a view's first eight bytes: its length, and the first four bytes of the text.
//!
//! The one idea: if all rows are compared with the same bytes, this comparison alone rejects nearly all of
//! them, and if there are at most four such bytes, it decides. The host prepares the comparison; every
//! machine makes it.

use super::test::Test;

/// The condition on a view's first eight bytes.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    want: u64,
    /// The bits that must equal those of `want`; zero if nothing is compared.
    mask: u64,
    /// The least length of a row that meets the condition.
    least: u32,
    /// Whether the condition alone decides that a row matches.
    decides: bool,
    /// The answer for a row that does not meet the condition.
    otherwise: bool,
}

impl Head {
    /// The condition that compares nothing.
    pub const NONE: Head = Head { want: 0, mask: 0, least: 0, decides: false, otherwise: false };

    /// Builds the condition for a test of all rows against the same bytes.
    pub fn of(test: Test, needle: &[u8]) -> Head {
        let Ok(len) = u32::try_from(needle.len()) else { return Head::NONE };
        let shown = needle.len().min(4);
        let mut want = 0;
        for (i, byte) in needle[..shown].iter().enumerate() {
            want |= u64::from(*byte) << (32 + 8 * i);
        }
        let head = Head { want, mask: 0, least: len, decides: len <= 4, otherwise: false };
        match test {
            Test::Compare(bits @ (2 | 5)) => {
                Head { want: want | u64::from(len), mask: !0, otherwise: bits == 5, ..head }
            }
            // An empty needle is a prefix of every text, of any length.
            Test::StartsWith if shown > 0 => Head { mask: !0 >> (64 - 8 * shown) << 32, ..head },
            _ => Head::NONE,
        }
    }

    /// Packs the condition into the words that kernels receive.
    pub const fn words(self) -> [u64; 3] {
        let rest = self.least as u64 | (self.decides as u64) << 32 | (self.otherwise as u64) << 33;
        [self.want, self.mask, rest]
    }

    /// Unpacks a condition from its words.
    #[inline(always)]
    pub(super) const fn from_words([want, mask, rest]: [u64; 3]) -> Head {
        let (decides, otherwise) = (rest >> 32 & 1 != 0, rest >> 33 & 1 != 0);
        Head { want, mask, least: rest as u32, decides, otherwise }
    }

    /// Returns whether the condition compares anything.
    #[inline(always)]
    pub const fn compares(self) -> bool {
        self.mask != 0
    }

    /// Returns the answer for a view by its first eight bytes; `None` if they do not decide.
    #[inline(always)]
    pub const fn answer(self, view: u64) -> Option<bool> {
        let same = (view ^ self.want) & self.mask == 0 && view as u32 >= self.least;
        if !same || self.decides { Some(same != self.otherwise) } else { None }
    }
}
