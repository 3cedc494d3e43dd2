//! Search for bytes in a text, in time proportional to the text and without memory.
//!
//! The one idea: a plain search is the quickest, and wastes little on a short needle. If more bytes than that
//! match in vain, the text repeats itself, and its period gives the distance to the next possible match. The
//! bytes that matched, and the next one that did not, are in the text. So the period is computed there as the
//! search goes on, and the search remembers nothing about the needle (Crochemore, "String-matching on ordered
//! alphabets", 1992).

use crate::text::bytes::Bytes;

/// Needles of at most this many bytes are searched for plainly. A pattern may compare this many bytes in vain
/// before it looks for repetitions.
pub const SPARE: u64 = 16;

/// Returns whether `needle` occurs in `text`. `spare` is [`SPARE`], except in tests.
#[inline(always)]
pub fn contains(text: impl Bytes, needle: impl Bytes, spare: u64) -> bool {
    let len = needle.len();
    if len == 0 {
        return true;
    }
    if len > text.len() {
        return false;
    }
    if len > spare {
        return find(text, 0, needle, 0, len, true).is_some();
    }
    let first = needle.at(0);
    let (mut at, last) = (0, text.len() - len);
    while at <= last {
        if text.at(at) == first {
            let mut same = 1;
            while same < len && text.at(at + same) == needle.at(same) {
                same += 1;
            }
            if same == len {
                return true;
            }
        }
        at += 1;
    }
    false
}

/// Returns the first position from `at` on at which `text` has bytes `start..end` of `needle`; this range
/// MUST NOT be empty. Makes at most about four comparisons for each byte of the text. If `quick`, it skips
/// positions whose first byte differs without further work, which takes a register.
#[inline(always)]
pub fn find(
    text: impl Bytes,
    mut at: u64,
    needle: impl Bytes,
    start: u64,
    end: u64,
    quick: bool,
) -> Option<u64> {
    let (len, first) = (end - start, if quick { needle.at(start) } else { 0 });
    // `same` bytes match at `at`. These bytes and the next one have a largest suffix, in the order of bytes.
    // `largest` is the start of that suffix, and `period` its period. `other` is the start of the suffix that
    // it is being compared with, and `alike` the number of bytes that these two have in common so far. All of
    // this stays true when more bytes match.
    let (mut same, mut largest, mut other, mut alike, mut period) = (0, 0, 1, 0, 1);
    while at <= text.len() && text.len() - at >= len {
        if quick && same == 0 && text.at(at) != first {
            at += 1;
            continue;
        }
        while text.at(at + same) == needle.at(start + same) {
            same += 1;
            if same == len {
                return Some(at);
            }
        }
        while other + alike <= same {
            let (of_largest, of_other) = (text.at(at + largest + alike), text.at(at + other + alike));
            if of_largest == of_other {
                alike += 1;
                if alike == period {
                    (other, alike) = (other + period, 0);
                }
            } else if of_largest > of_other {
                (other, alike) = (other + alike + 1, 0);
                period = other - largest;
            } else {
                (largest, other, alike, period) = (other, other + 1, 0, 1);
            }
        }
        // The period applies to all these bytes if those before the largest suffix repeat with it, too.
        let mut before = 0;
        while before < largest && largest <= period && text.at(at + before) == text.at(at + period + before) {
            before += 1;
        }
        let repeats = before == largest;
        at += if repeats { period } else { largest.max(other.min(same - largest)) + 1 };
        same = if repeats { same.saturating_sub(period) } else { 0 };
        if repeats && other - largest > period {
            other -= period;
        } else {
            (largest, other, alike, period) = (0, 1, 0, 1);
        }
    }
    None
}
