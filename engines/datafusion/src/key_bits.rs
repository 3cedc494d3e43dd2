//! Sets of keys that are integers: bits of their range, or of their hashes.

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, downcast_integer_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer};
use datafusion::arrow::datatypes::{DataType, Date32Type};

use crate::key_range::ends;
use crate::places::{Places, number};

/// A range of so many keys is never too long: its bits take a megabyte.
const SHORT: u64 = 1 << 23;

/// A longer range has at most so many numbers for each key: a key takes as much memory as in a hash table.
const SPARSE: u64 = 128;

/// The words of bits of keys that lie further apart: half a megabyte.
const HASHED: usize = 1 << 16;

/// A set of integers: a bit for each of a range, or, if they lie far apart, bits at their hashes. Then it may
/// also have others, the more the fuller it is.
#[derive(Debug, Default)]
pub(crate) struct KeyBits {
    /// For each 64 numbers of the range, which of them are keys.
    range: Places<u64>,
    /// The number of keys in the range when they were last counted.
    counted: u64,
    /// The bytes that the range may have; `None` if no one limits them.
    most_bytes: Option<usize>,
    /// The bits at hashes, in place of the range.
    hashed: Option<Vec<u64>>,
}

/// The word and the bits of a key's hash.
fn hashed(key: i64) -> (usize, u64) {
    let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((hash >> 48) as usize, 1 << (hash >> 42 & 63) | 1 << (hash >> 36 & 63))
}

impl KeyBits {
    /// An empty set whose range never takes more than some bytes.
    pub fn with_at_most(bytes: usize) -> KeyBits {
        KeyBits { most_bytes: Some(bytes), ..KeyBits::default() }
    }

    /// Adds the keys of an array of integers or dates.
    pub fn add(&mut self, keys: &ArrayRef) {
        downcast_integer_array!(
            keys => self.add_all(keys),
            DataType::Date32 => self.add_all(keys.as_primitive::<Date32Type>()),
            of => unreachable!("keys of {of}"),
        )
    }

    fn add_all<T: ArrowPrimitiveType>(&mut self, keys: &PrimitiveArray<T>) {
        let Some((least, greatest)) = ends(keys) else { return };
        let all = keys.iter().flatten().map(number);
        match self.words(least >> 6, greatest >> 6, keys.len() as u64) {
            (base, Words::Range(words)) => {
                all.for_each(|key| words[(key >> 6).wrapping_sub(base) as usize] |= 1 << (key & 63));
            }
            (_, Words::Hashed(words)) => all.map(hashed).for_each(|(word, bits)| words[word] |= bits),
        }
    }

    /// The words of a range that has these words too, and the first one's number; or those of hashes. So many
    /// keys come with these words.
    fn words(&mut self, least: i64, greatest: i64, more: u64) -> (i64, Words<'_>) {
        if self.hashed.is_none() && !self.reaches(least, greatest, more) {
            let mut words = vec![0; HASHED];
            for (word, bits) in keys_in(&std::mem::take(&mut self.range)).map(hashed) {
                words[word] |= bits;
            }
            self.hashed = Some(words);
        }
        match &mut self.hashed {
            Some(words) => (0, Words::Hashed(words)),
            None => {
                let (base, words) = self.range.parts_mut();
                (base, Words::Range(words))
            }
        }
    }

    /// Makes places for words of the range. Returns whether it is still short enough. Rows may repeat a key,
    /// so keys are counted, but only if the range would else be too long.
    fn reaches(&mut self, least: i64, greatest: i64, more: u64) -> bool {
        let limit = self.most_bytes.map_or(u64::MAX, |bytes| (bytes / size_of::<u64>()) as u64);
        let most = |counted: u64| (SHORT.max((counted + more).saturating_mul(SPARSE)) / 64).min(limit);
        if self.range.reach(least, greatest, most(self.counted)) {
            return true;
        }
        self.counted = self.count();
        self.range.reach(least, greatest, most(self.counted))
    }

    /// The number of keys in the range.
    fn count(&self) -> u64 {
        self.range.parts().1.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Adds the keys of another set.
    pub fn merge(&mut self, other: &KeyBits) {
        let (least, greatest) = match (&other.hashed, other.range.range()) {
            // No range reaches so far.
            (Some(_), _) => (i64::MIN, i64::MAX),
            (None, Some(range)) => range,
            (None, None) => return,
        };
        let (first, others) = other.range.parts();
        match (self.words(least, greatest, other.count()), &other.hashed) {
            ((base, Words::Range(words)), _) => {
                for word in least..=greatest {
                    words[word.wrapping_sub(base) as usize] |= others[word.wrapping_sub(first) as usize];
                }
            }
            ((_, Words::Hashed(words)), Some(others)) => {
                words.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
            }
            ((_, Words::Hashed(words)), None) => {
                keys_in(&other.range).map(hashed).for_each(|(word, bits)| words[word] |= bits);
            }
        }
    }

    /// Which keys of an array of integers or dates are in the set. Null is not.
    pub fn contain(&self, keys: &ArrayRef) -> BooleanArray {
        downcast_integer_array!(
            keys => self.found(keys),
            DataType::Date32 => self.found(keys.as_primitive::<Date32Type>()),
            of => unreachable!("keys of {of}"),
        )
    }

    fn found<T: ArrowPrimitiveType>(&self, keys: &PrimitiveArray<T>) -> BooleanArray {
        let found = match &self.hashed {
            Some(words) => bits(keys.values(), |key| {
                let (word, bits) = hashed(number(key));
                words[word] & bits == bits
            }),
            None => {
                let (base, words) = self.range.parts();
                bits(keys.values(), |key| {
                    let key = number(key);
                    let word = words.get((key >> 6).wrapping_sub(base) as usize).copied().unwrap_or(0);
                    word >> (key & 63) & 1 == 1
                })
            }
        };
        let found = match keys.nulls() {
            Some(valid) => &found & valid.inner(),
            None => found,
        };
        BooleanArray::new(found, None)
    }

    /// The bytes in memory.
    pub fn size(&self) -> usize {
        self.range.size() + self.hashed.as_ref().map_or(0, |words| words.len() * size_of::<u64>())
    }
}

/// The words of a set: of a range, or of hashes.
enum Words<'a> {
    Range(&'a mut [u64]),
    Hashed(&'a mut [u64]),
}

/// The keys of a range.
fn keys_in(range: &Places<u64>) -> impl Iterator<Item = i64> {
    let (base, words) = range.parts();
    let filled = (base..).zip(words).filter(|(_, word)| **word != 0);
    filled.flat_map(|(place, word)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| place << 6 | bit)
    })
}

/// A bit for each key.
fn bits<K: Copy>(keys: &[K], is_set: impl Fn(K) -> bool) -> BooleanBuffer {
    let of_64 = |keys: &[K]| {
        let bits = keys.iter().enumerate().map(|(place, key)| u64::from(is_set(*key)) << place);
        bits.fold(0, |all, bit| all | bit)
    };
    let words: Vec<u64> = keys.chunks(64).map(of_64).collect();
    BooleanBuffer::new(Buffer::from_vec(words), 0, keys.len())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use datafusion::arrow::array::{Date32Array, Int16Array, Int64Array, UInt64Array};

    use super::*;

    fn check(batches: &[ArrayRef], probes: &[ArrayRef]) {
        let texts = |keys: &ArrayRef| {
            let shown = datafusion::arrow::compute::cast(keys, &DataType::Utf8).unwrap();
            shown.as_string::<i32>().iter().map(|key| key.map(str::to_owned)).collect::<Vec<_>>()
        };
        // In one set, and in two that are merged.
        let (mut one, mut halves) = (KeyBits::default(), [KeyBits::default(), KeyBits::default()]);
        for (place, batch) in batches.iter().enumerate() {
            one.add(batch);
            halves[place % 2].add(batch);
        }
        let [mut merged, other] = halves;
        merged.merge(&other);
        let keys: HashSet<_> = batches.iter().flat_map(texts).flatten().collect();
        for probe in probes.iter().chain(batches) {
            let expected: Vec<_> =
                texts(probe).iter().map(|key| key.as_ref().is_some_and(|key| keys.contains(key))).collect();
            for set in [&one, &merged] {
                let found = set.contain(probe);
                assert!(found.null_count() == 0 && found.values().iter().eq(expected.iter().copied()));
            }
        }
    }

    #[test]
    fn a_set_has_the_keys_that_were_added() {
        let long = |keys: Vec<Option<i64>>| Arc::new(Int64Array::from(keys)) as ArrayRef;
        let all = |range: std::ops::Range<i64>| long(range.map(Some).collect());
        check(&[], &[all(-3..3), long(vec![None])]);
        check(&[long(vec![None, Some(5), Some(-70)]), all(100..300), long(vec![])], &[all(-200..500)]);
        check(&[all(7..8)], &[all(0..200), all(-64..64), long(vec![Some(i64::MIN), None, Some(i64::MAX)])]);
        check(&[all(i64::MIN..i64::MIN + 9)], &[all(i64::MIN..i64::MIN + 99), all(i64::MAX - 9..i64::MAX)]);
        check(&[all(i64::MAX - 9..i64::MAX)], &[all(i64::MAX - 99..i64::MAX), long(vec![Some(i64::MIN)])]);
        let unsigned =
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(u64::MAX - 100)])) as ArrayRef;
        check(
            std::slice::from_ref(&unsigned),
            &[Arc::new(UInt64Array::from_iter_values([0, 1 << 63, u64::MAX - 1]))],
        );
        check(&[unsigned.slice(1, 2)], &[unsigned.slice(0, 1)]);
        check(
            &[Arc::new(Int16Array::from(vec![-5, 5]))],
            &[Arc::new(Int16Array::from_iter_values(-300..300))],
        );
        check(
            &[Arc::new(Date32Array::from(vec![9000]))],
            &[Arc::new(Date32Array::from_iter_values(8900..9100))],
        );
    }

    #[test]
    fn rows_of_the_same_keys_make_no_range_longer() {
        let long = |keys: Vec<i64>| Arc::new(Int64Array::from(keys)) as ArrayRef;
        let rows = || long((0..100_000).map(|row| row % 7).collect());
        let far = || long(vec![SHORT as i64 * 3]);
        let mut set = KeyBits::default();
        (0..50).for_each(|_| set.add(&rows()));
        set.add(&far());
        assert!(set.hashed.is_some());
        // As many keys as rows do.
        let mut set = KeyBits::default();
        set.add(&long((0..300_000).map(|key| key * 2).collect()));
        set.add(&far());
        assert!(set.hashed.is_none() && set.contain(&far()).value(0));
        // Unless there is less memory.
        let mut set = KeyBits::with_at_most(1 << 20);
        set.add(&long((0..300_000).map(|key| key * 2).collect()));
        set.add(&far());
        assert!(set.hashed.is_some() && set.contain(&far()).value(0));
        let mut other = KeyBits::with_at_most(1000);
        other.add(&long(vec![5, 6]));
        assert!(other.size() <= 1000);
        other.merge(&set);
        assert!(other.hashed.is_some() && other.contain(&long(vec![5, 6, 8])).true_count() == 3);
    }

    #[test]
    fn keys_that_lie_far_apart_are_hashed() {
        let long = |keys: Vec<i64>| Arc::new(Int64Array::from(keys)) as ArrayRef;
        let near = || long((0..5000).map(|key| key * 3 - 900).collect());
        let far = || long((0..3000).map(|key| key * ((1 << 40) + 12345) - (1 << 50)).collect());
        let ends = || long(vec![i64::MIN, i64::MAX, 0]);
        let others: Vec<i64> =
            (0..20_000).map(|key: i64| key.wrapping_mul(0x1234_5678_9abc_def1) | 1).collect();
        for batches in [
            vec![ends()],
            vec![near(), far()],
            vec![far(), near()],
            vec![near(), near(), ends()],
            vec![far(), far()],
        ] {
            let (mut one, mut halves) = (KeyBits::default(), [KeyBits::default(), KeyBits::default()]);
            for (place, batch) in batches.iter().enumerate() {
                one.add(batch);
                halves[place % 2].add(batch);
            }
            let [mut merged, other] = halves;
            merged.merge(&other);
            for set in [&one, &merged] {
                assert!(set.hashed.is_some() && set.size() == HASHED * 8);
                assert!(batches.iter().all(|batch| set.contain(batch).true_count() == batch.len()));
                // Few others are taken for keys.
                assert!(set.contain(&long(others.clone())).true_count() < 1000);
            }
        }
    }
}
