//! Arrays that have a place for each integer of a range, which grows with the integers.

use datafusion::arrow::datatypes::ArrowNativeType;

/// A key as a number. Each key has its own; those of large unsigned integers are negative.
pub(crate) fn number(key: impl ArrowNativeType) -> i64 {
    key.as_usize() as i64
}

/// A place for each number of a range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places<P> {
    /// The number of the first place.
    base: i64,
    places: Vec<P>,
    /// The least and the greatest number so far.
    range: Option<(i64, i64)>,
}

impl<P: Copy + Default> Places<P> {
    /// Makes places for all numbers from the least to the greatest of some. Returns `false`, and makes none,
    /// if these and all before have a range of more than `most` numbers.
    pub fn reach(&mut self, least: i64, greatest: i64, most: u64) -> bool {
        let (least, greatest) = match self.range {
            Some((first, last)) => (least.min(first), greatest.max(last)),
            None => (least, greatest),
        };
        let span = greatest.wrapping_sub(least) as u64;
        if span >= most {
            return false;
        }
        self.range = Some((least, greatest));
        let needed = span as usize + 1;
        let below = !self.places.is_empty() && least < self.base;
        let end = self.base.wrapping_add(self.places.len() as i64).wrapping_sub(1);
        if self.places.is_empty() || below || greatest > end {
            self.grow(least, needed, below, most);
        }
        true
    }

    /// Moves the places to an array for `needed` numbers from `least` on, and for more: twice as many as
    /// there were, so that numbers that come one after the other do not move them each time.
    fn grow(&mut self, least: i64, needed: usize, below: bool, most: u64) {
        let twice = (2 * self.places.len() as u64).min(most) as usize;
        let mut len = needed.max(twice);
        let room = if below { least.wrapping_sub(i64::MIN) as u64 } else { 0 };
        let base = least.wrapping_sub(room.min((len - needed) as u64) as i64);
        len = len.min((i64::MAX.wrapping_sub(base) as u64 as usize).saturating_add(1));
        let mut places = vec![P::default(); len];
        // Only the range so far has values; the rest of the old places may be outside of the new ones.
        let first = self.base.max(base);
        let skipped = first.wrapping_sub(self.base) as usize;
        if skipped < self.places.len() {
            let kept = &self.places[skipped..];
            let to = first.wrapping_sub(base) as usize;
            let count = kept.len().min(places.len() - to);
            places[to..][..count].copy_from_slice(&kept[..count]);
        }
        (self.base, self.places) = (base, places);
    }

    /// The number of the first place, and all places.
    pub fn parts_mut(&mut self) -> (i64, &mut [P]) {
        (self.base, &mut self.places)
    }

    /// The number of the first place, and all places.
    pub fn parts(&self) -> (i64, &[P]) {
        (self.base, &self.places)
    }

    /// The least and the greatest number so far.
    pub fn range(&self) -> Option<(i64, i64)> {
        self.range
    }

    /// The bytes in memory.
    pub fn size(&self) -> usize {
        self.places.capacity() * size_of::<P>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts numbers into places batch by batch, and finds them again.
    fn kept(batches: &[&[i64]]) {
        let mut places = Places::<u32>::default();
        let mut all = vec![];
        for batch in batches {
            let (least, greatest) = (*batch.iter().min().unwrap(), *batch.iter().max().unwrap());
            assert!(places.reach(least, greatest, 1 << 20), "{batch:?}");
            for number in *batch {
                let (base, places) = places.parts_mut();
                places[number.wrapping_sub(base) as usize] = *number as u32 | 1;
                all.push(*number);
            }
            let (base, places) = places.parts();
            let set: std::collections::HashSet<_> = all.iter().copied().collect();
            for (place, value) in places.iter().enumerate() {
                let number = base.wrapping_add(place as i64);
                let expected = if set.contains(&number) { number as u32 | 1 } else { 0 };
                assert_eq!(*value, expected, "{number}");
            }
        }
    }

    #[test]
    fn numbers_keep_their_values_when_the_range_grows() {
        kept(&[&[3, 1], &[2, 9], &[-4], &[100], &[-300]]);
        kept(&[&[i64::MIN, i64::MIN + 5], &[i64::MIN + 70]]);
        kept(&[&[i64::MAX], &[i64::MAX - 9], &[i64::MAX - 300]]);
        kept(&[&[i64::MIN + 1], &[i64::MIN]]);
        let down: Vec<_> = (0..90).rev().map(|number| [number * 7]).collect();
        kept(&down.iter().map(|batch| &batch[..]).collect::<Vec<_>>());
    }

    #[test]
    fn the_range_is_that_of_the_numbers() {
        let mut places = Places::<u8>::default();
        assert!(places.reach(0, 600, 1000) && places.reach(601, 601, 1000));
        // The places reach further by now, but no number does.
        assert!(places.reach(-300, -300, 1000));
        assert!(!places.reach(-400, -400, 1000) && places.range() == Some((-300, 601)));
        assert!(places.size() <= 2000);
        assert!(!places.reach(i64::MIN, i64::MAX, u64::MAX));
    }
}
