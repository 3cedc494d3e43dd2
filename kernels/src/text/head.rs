//! What one comparison of a view's first eight bytes says: its length, and the four bytes that it shows.
//!
//! The one idea: where all rows are tried against the same bytes, nearly all of them are refused by that alone, and where these are
//! four at most there is nothing else to look at. The host works out what is compared; every machine compares.

use super::test::Test;

/// What a view's first eight bytes must be.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    want: u64,
    /// The bits that must be as wanted; none where nothing is compared.
    mask: u64,
    /// The least length.
    least: u32,
    /// Whether that is all there is to ask.
    decides: bool,
    /// What a row answers that is otherwise.
    otherwise: bool,
}

impl Head {
    /// Compares nothing.
    pub const NONE: Head = Head { want: 0, mask: 0, least: 0, decides: false, otherwise: false };

    /// Of a test of all rows against the same bytes.
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
            // Of nothing, every length will do.
            Test::StartsWith if shown > 0 => Head { mask: !0 >> (64 - 8 * shown) << 32, ..head },
            _ => Head::NONE,
        }
    }

    /// As kernels are told.
    pub const fn words(self) -> [u64; 3] {
        let rest = self.least as u64 | (self.decides as u64) << 32 | (self.otherwise as u64) << 33;
        [self.want, self.mask, rest]
    }

    /// Of its words.
    #[inline(always)]
    pub(super) const fn from_words([want, mask, rest]: [u64; 3]) -> Head {
        let (decides, otherwise) = (rest >> 32 & 1 != 0, rest >> 33 & 1 != 0);
        Head { want, mask, least: rest as u32, decides, otherwise }
    }

    /// Whether anything is compared.
    #[inline(always)]
    pub const fn compares(self) -> bool {
        self.mask != 0
    }

    /// What a view answers by its first eight bytes; `None` where they do not decide.
    #[inline(always)]
    pub const fn answer(self, view: u64) -> Option<bool> {
        let same = (view ^ self.want) & self.mask == 0 && view as u32 >= self.least;
        if !same || self.decides { Some(same != self.otherwise) } else { None }
    }
}
