//! The groups of keys that are integers of a short range, batch after batch.
//!
//! The one idea: such a key finds its group in an array, at its distance from the least key, without a hash.
//! The range grows with the keys. If it becomes long for the number of groups, DataFusion's hash table goes
//! on from there.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::buffer::{NullBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Field, Int16Type, Int32Type, Int64Type, Schema, SchemaRef, UInt16Type, UInt32Type,
    UInt64Type,
};
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

use crate::places::{Places, number};
use crate::recent_groups::{RecentGroups, are_remembered, table_bytes};

/// A range of so many keys is never too long, if there is memory: its places take four megabytes.
const SHORT: u64 = 1 << 20;

/// A longer range has at most so many keys for each group.
const SPARSE: u64 = 16;

/// Whether keys of a type find their groups in an array.
pub(crate) fn has_range(of: &DataType) -> bool {
    use DataType::{Date32, Int16, Int32, Int64, UInt16, UInt32, UInt64};
    matches!(of, Int16 | Int32 | Int64 | UInt16 | UInt32 | UInt64 | Date32)
}

/// The groups of keys of a schema: in an array of at most `most_bytes` if there is one key that is an
/// integer, else DataFusion's, behind a table of recent keys if these may be in it.
pub(crate) fn groups_of(keys: &SchemaRef, most_bytes: usize) -> Result<Box<dyn GroupValues>> {
    let theirs = || -> Result<Box<dyn GroupValues>> {
        let theirs = new_group_values(keys.clone(), &GroupOrdering::None)?;
        let columns = keys.fields().len();
        let is_small = table_bytes(columns) <= most_bytes / 4;
        Ok(match is_small && are_remembered(keys.fields().iter().map(|key| key.data_type())) {
            true => Box::new(RecentGroups::before(theirs, columns)),
            false => theirs,
        })
    };
    let [key] = &keys.fields()[..] else { return theirs() };
    let most = (most_bytes / size_of::<u32>()) as u64;
    Ok(match key.data_type() {
        DataType::Int16 => Box::new(KeyRange::<Int16Type>::new(most)),
        DataType::Int32 => Box::new(KeyRange::<Int32Type>::new(most)),
        DataType::Int64 => Box::new(KeyRange::<Int64Type>::new(most)),
        DataType::UInt16 => Box::new(KeyRange::<UInt16Type>::new(most)),
        DataType::UInt32 => Box::new(KeyRange::<UInt32Type>::new(most)),
        DataType::UInt64 => Box::new(KeyRange::<UInt64Type>::new(most)),
        DataType::Date32 => Box::new(KeyRange::<Date32Type>::new(most)),
        _ => theirs()?,
    })
}

/// The groups of keys of one type, numbered in the order of their first rows.
struct KeyRange<T: ArrowPrimitiveType> {
    /// For each key, one more than its group; zero if it has none.
    places: Places<u32>,
    /// The number of places for which there is memory.
    most: u64,
    /// The key of each group. That of the null group is any.
    keys: Vec<T::Native>,
    null_group: Option<usize>,
    /// DataFusion's groups, which go on since the range became too long.
    hashed: Option<Box<dyn GroupValues>>,
}

/// The numbers of the least and the greatest key; `None` if there is none.
pub(crate) fn ends<T: ArrowPrimitiveType>(keys: &PrimitiveArray<T>) -> Option<(i64, i64)> {
    let wider = |(least, greatest): (i64, i64), key| (number(key).min(least), number(key).max(greatest));
    let (least, greatest) = match keys.null_count() {
        0 => keys.values().iter().copied().fold((i64::MAX, i64::MIN), wider),
        _ => keys.iter().flatten().fold((i64::MAX, i64::MIN), wider),
    };
    (least <= greatest).then_some((least, greatest))
}

impl<T: ArrowPrimitiveType> KeyRange<T> {
    fn new(most: u64) -> Self {
        KeyRange { places: Places::default(), most, keys: vec![], null_group: None, hashed: None }
    }

    /// Makes places for the keys of some rows. Returns whether the range is still short enough.
    fn reaches(&mut self, keys: &PrimitiveArray<T>) -> bool {
        let groups = self.keys.len() + keys.len();
        let most = SHORT.max(groups as u64 * SPARSE).min(self.most);
        let all = ends(keys);
        groups < u32::MAX as usize
            && all.is_none_or(|(least, greatest)| self.places.reach(least, greatest, most))
    }

    /// Has DataFusion's hash table go on with the groups so far.
    fn hashed(&mut self) -> Result<&mut Box<dyn GroupValues>> {
        let schema = Arc::new(Schema::new(vec![Field::new("key", T::DATA_TYPE, true)]));
        let mut hashed = new_group_values(schema, &GroupOrdering::None)?;
        hashed.intern(&[self.taken()], &mut vec![])?;
        Ok(self.hashed.insert(hashed))
    }

    /// Takes the keys of all groups, and forgets them.
    fn taken(&mut self) -> ArrayRef {
        let KeyRange { keys, null_group, .. } = std::mem::replace(self, KeyRange::new(self.most));
        let valid = null_group.map(|null| (0..keys.len()).map(|group| group != null).collect::<NullBuffer>());
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(keys), valid))
    }
}

impl<T: ArrowPrimitiveType> GroupValues for KeyRange<T> {
    fn intern(&mut self, columns: &[ArrayRef], groups: &mut Vec<usize>) -> Result<()> {
        if let Some(hashed) = &mut self.hashed {
            return hashed.intern(columns, groups);
        }
        let batch = columns[0].as_primitive::<T>();
        if !self.reaches(batch) {
            return self.hashed()?.intern(columns, groups);
        }
        let KeyRange { places, keys, null_group, .. } = self;
        let (base, places) = places.parts_mut();
        let mut group_of = |key: Option<T::Native>| match (key, *null_group) {
            (Some(key), _) => {
                let place = &mut places[number(key).wrapping_sub(base) as usize];
                if *place == 0 {
                    keys.push(key);
                    *place = keys.len() as u32;
                }
                *place as usize - 1
            }
            (None, Some(group)) => group,
            (None, None) => {
                keys.push(T::Native::default());
                *null_group.insert(keys.len() - 1)
            }
        };
        groups.clear();
        match batch.null_count() {
            0 => groups.extend(batch.values().iter().map(|key| group_of(Some(*key)))),
            _ => groups.extend(batch.iter().map(group_of)),
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let hashed = self.hashed.as_ref().map_or(0, |hashed| hashed.size());
        hashed + self.places.size() + self.keys.capacity() * size_of::<T::Native>()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.hashed.as_ref().map_or(self.keys.len(), |hashed| hashed.len())
    }

    fn emit(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        match (&mut self.hashed, emit_to) {
            (Some(hashed), _) => hashed.emit(emit_to),
            (None, EmitTo::All) => Ok(vec![self.taken()]),
            // Groups leave one after the other only if rows are sorted by their keys.
            (None, EmitTo::First(_)) => datafusion::common::internal_err!("groups of sorted rows"),
        }
    }

    fn clear_shrink(&mut self, _: usize) {
        *self = KeyRange::new(self.most);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int64Array, UInt64Array};

    use super::*;

    /// Groups batches of keys as DataFusion does, and returns the keys of the groups.
    fn as_theirs(batches: &[ArrayRef]) -> ArrayRef {
        let key = Field::new("key", batches[0].data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![key]));
        let mut theirs = new_group_values(schema.clone(), &GroupOrdering::None).unwrap();
        let mut ours = groups_of(&schema, usize::MAX).unwrap();
        for batch in batches {
            let (mut expected, mut groups) = (vec![], vec![7]);
            theirs.intern(std::slice::from_ref(batch), &mut expected).unwrap();
            ours.intern(std::slice::from_ref(batch), &mut groups).unwrap();
            assert_eq!(groups, expected);
            assert_eq!(ours.len(), theirs.len());
        }
        let (made, expected) = (ours.emit(EmitTo::All).unwrap(), theirs.emit(EmitTo::All).unwrap());
        assert_eq!(made, expected);
        assert!(ours.is_empty());
        made[0].clone()
    }

    fn long(keys: impl IntoIterator<Item = i64>) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(keys))
    }

    #[test]
    fn keys_are_numbered_in_the_order_of_their_first_rows() {
        as_theirs(&[long([3, 1, 3, 2]), long([]), long([2, 9, 1])]);
        // Batches below those before them, by more and less than the places that are there.
        as_theirs(&[long(1000..1100), long([990, 1000]), long([-5000]), long([-5001, 1099])]);
        as_theirs(&(0..200).rev().map(|batch| long(batch * 50..batch * 50 + 60)).collect::<Vec<_>>());
    }

    #[test]
    fn nulls_are_a_group_wherever_they_come() {
        let keys = |keys: &[Option<i32>]| Arc::new(Int32Array::from(keys.to_vec())) as ArrayRef;
        let made = as_theirs(&[keys(&[Some(5), None, Some(0)]), keys(&[None, Some(-3)])]);
        assert_eq!(made.null_count(), 1);
        as_theirs(&[keys(&[None, None]), keys(&[Some(4)])]);
        as_theirs(&[keys(&[Some(1 << 30), None]), keys(&[Some(-(1 << 30)), None, Some(1)])]);
    }

    #[test]
    fn keys_at_the_ends_of_their_type_have_places() {
        as_theirs(&[long([i64::MIN, i64::MIN + 5]), long([i64::MIN + 3])]);
        as_theirs(&[long([i64::MAX]), long([i64::MAX - 9, i64::MAX])]);
        as_theirs(&[long([i64::MIN + 1]), long([i64::MIN])]);
        as_theirs(&(0..40).map(|less| long([i64::MAX - less])).collect::<Vec<_>>());
        as_theirs(&(0..40).rev().map(|more| long([i64::MIN + more])).collect::<Vec<_>>());
        as_theirs(&[long([i64::MIN]), long([i64::MAX]), long([0])]);
        let unsigned = UInt64Array::from(vec![u64::MAX, 0, 1 << 63, (1 << 63) - 1]);
        as_theirs(&[Arc::new(unsigned.slice(0, 2)), Arc::new(unsigned)]);
    }

    #[test]
    fn a_range_that_becomes_too_long_is_hashed() {
        let far = (SHORT * 3) as i64;
        as_theirs(&[long(0..100), long([far, 5]), long([far, -far, 5]), long(90..110)]);
        let mut groups = KeyRange::<Int64Type>::new(u64::MAX);
        groups.intern(&[long(0..100)], &mut vec![]).unwrap();
        assert!(groups.hashed.is_none());
        groups.intern(&[long([far])], &mut vec![]).unwrap();
        assert!(groups.hashed.is_some());
        // It is not once there are enough groups.
        let mut groups = KeyRange::<Int64Type>::new(u64::MAX);
        groups.intern(&[long(0..far)], &mut vec![]).unwrap();
        groups.intern(&[long([far * 2])], &mut vec![]).unwrap();
        assert!(groups.hashed.is_none());
        // Rows alone do not make the range longer, nor is it longer than there is memory.
        let mut groups = KeyRange::<Int64Type>::new(u64::MAX);
        groups.intern(&[long((0..far).map(|row| row % 7))], &mut vec![]).unwrap();
        groups.intern(&[long([far])], &mut vec![]).unwrap();
        assert!(groups.hashed.is_some());
        let mut groups = KeyRange::<Int64Type>::new(1000);
        groups.intern(&[long(0..1000)], &mut vec![]).unwrap();
        assert!(groups.hashed.is_none());
        groups.intern(&[long([1000])], &mut vec![]).unwrap();
        assert!(groups.hashed.is_some());
    }

    #[test]
    fn groups_that_were_taken_are_forgotten() {
        let schema = Arc::new(Schema::new(vec![Field::new("key", DataType::Int64, true)]));
        let mut ours = groups_of(&schema, usize::MAX).unwrap();
        let mut groups = vec![];
        for keys in [long([7, 8]), long([8])] {
            ours.intern(std::slice::from_ref(&keys), &mut groups).unwrap();
            assert_eq!(groups[0], 0);
            assert_eq!(&ours.emit(EmitTo::All).unwrap()[0], &keys);
            ours.clear_shrink(0);
            assert_eq!(ours.size(), 0);
        }
    }
}
