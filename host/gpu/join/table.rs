//! Tables of rows that others find by their keys.

use std::sync::Arc;

use arrow_schema::DataType::{self, UInt32, UInt64};
use bowstring_kernels::join::find::{COMPARE, Compare, FIND, Find};
use bowstring_kernels::memory::In;
use bowstring_kernels::target::find;

use super::pairs::{Ordered, pairs};
use crate::array::{Bitmap, DeviceArray, all_inside};
use crate::engine::Table;
use crate::gpu::group::ids::{Hashed, Numbered, numbered};
use crate::gpu::group::keys::{Key, Range, described, make_words};
use crate::gpu::group::segments::{placed, segments};
use crate::gpu::plain::decoded;
use crate::gpu::sort::ranked_sides;
use crate::gpu::structure::alike::{Compared, compared_with_others};
use crate::gpu::text::text_column;
use crate::pass::{Pass, Pending, Region, Table as Rows, bits, input};
use crate::rules::value_type;
use crate::{Result, Stream};

/// Rows on a device that others find by their keys.
struct DeviceTable {
    /// The keys, if some are nested: these are compared by ranks, which both sides must share.
    nested: Option<Vec<DeviceArray>>,
    keys: Vec<DeviceArray>,
    nulls_equal: bool,
    /// The words. `None` if they are the values of the only key.
    words: Option<DeviceArray>,
    /// The ends of the words' range, the bit that flips in it, and the word of a null; see [`Range`].
    range: Option<(DeviceArray, u64, u64)>,
    slots: DeviceArray,
    /// The first rows of groups.
    firsts: DeviceArray,
    ids: DeviceArray,
    seed: u64,
    kept: u64,
    exact: bool,
    /// The rows of groups. `None` if each row is a group.
    ordered: Option<Ordered>,
}

/// Makes a table of rows. It reads once in nearly all cases, and as often as a cast of dictionaries and runs
/// to their values.
pub(crate) fn table(
    keys: &[DeviceArray],
    nulls_equal: bool,
    stream: &Stream,
) -> Result<Pending<Arc<dyn Table>>> {
    let (keys, on) = (keys.to_vec(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let nested = keys.iter().any(is_nested).then(|| keys.clone());
        let keys = match &nested {
            None => keys,
            Some(nested) => {
                let none = nested.iter().map(|key| key.slice(0, 0)).collect::<Result<Vec<_>>>()?;
                sides(nested, &none, nulls_equal, &on).await?.0
            }
        };
        let keys = decoded(&keys, &on).await?;
        let rows = keys.first().map_or(0, DeviceArray::len);
        let mut pass = Pass::begin("join", &on)?;
        let (described, valid) = described(&mut pass, &keys, nulls_equal).await?;
        let Numbered { ids, firsts, count, hashed } =
            numbered(&mut pass, described, rows, valid.clone()).await?;
        let Hashed { words, range, slots, len, seed, kept, exact } = hashed;
        let unique = valid.is_none() && count == rows;
        let ordered = match unique || rows == 0 {
            true => None,
            false => {
                let order = placed(&mut pass, ids.input(), rows, count)?;
                let spans = segments(&mut pass, ids.input(), &order, rows, count)?.spans;
                let spans = pass.array(UInt64, count, &spans)?;
                Some(Ordered { spans, order: pass.array(UInt32, rows, &order)? })
            }
        };
        let mut parts = pass.array(UInt32, rows, &ids)?.into_parts();
        if let Some(valid) = valid {
            (parts.validity, parts.null_count) = (Some(valid), None);
        }
        let words = words.region.map(|words| pass.array(UInt64, rows, &words)).transpose()?;
        let range = range.map(|Range { ends, flip, null }| Ok((pass.array(UInt64, 2, &ends)?, flip, null)));
        let table = DeviceTable {
            words,
            range: range.transpose()?,
            slots: pass.array(UInt64, len, &slots)?,
            firsts: pass.array(UInt32, count, &firsts)?,
            ids: DeviceArray::try_new(parts)?,
            nested,
            keys,
            nulls_equal,
            seed,
            kept,
            exact,
            ordered,
        };
        pass.finish()?;
        Ok(Arc::new(table) as Arc<dyn Table>)
    }))
}

fn is_nested(key: &DeviceArray) -> bool {
    value_type(key.data_type()).is_nested()
}

/// Returns the keys of two sides, with ranks among the rows of both in the place of nested values.
async fn sides(
    own: &[DeviceArray],
    others: &[DeviceArray],
    nulls_equal: bool,
    stream: &Stream,
) -> Result<(Vec<DeviceArray>, Vec<DeviceArray>)> {
    let (mut own_keys, mut other_keys) = (vec![], vec![]);
    for (own, other) in own.iter().zip(others) {
        let [own, other] = match is_nested(own) {
            true => ranked_sides([own, other], nulls_equal, stream).await?,
            false => [own.clone(), other.clone()],
        };
        own_keys.push(own);
        other_keys.push(other);
    }
    Ok((own_keys, other_keys))
}

impl Table for DeviceTable {
    fn ids(&self) -> &DeviceArray {
        &self.ids
    }

    fn groups(&self) -> usize {
        self.firsts.len()
    }

    fn is_unique(&self) -> bool {
        self.ordered.is_none()
    }

    fn find(self: Arc<Self>, keys: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
        let (keys, on) = (keys.to_vec(), stream.clone());
        Ok(Pending::begin(stream, async move {
            if let Some(own) = self.nested.as_ref().filter(|_| keys.iter().any(|key| !key.is_empty())) {
                // Groups are numbered by their first rows, so they have the same numbers in a table of other
                // ranks.
                let (own, keys) = sides(own, &keys, self.nulls_equal, &on).await?;
                let table = table(&own, self.nulls_equal, &on)?.await?;
                return table.find(&keys, &on)?.await;
            }
            let keys = decoded(&keys, &on).await?;
            let rows = keys.first().map_or(0, DeviceArray::len);
            let mut pass = Pass::begin("join", &on)?;
            if rows == 0 {
                let none = pass.output(0)?;
                let none = pass.array(UInt32, 0, &none)?;
                pass.finish()?;
                return Ok(none);
            }
            let (described, valid) = described(&mut pass, &keys, self.nulls_equal).await?;
            let range = self.range.as_ref().map(|(ends, ..)| ends);
            for array in [&self.slots, &self.firsts, &self.ids].into_iter().chain(&self.words).chain(range) {
                pass.input(array)?;
            }
            let (found, found_valid) = self.found(&mut pass, described, &keys, rows, valid).await?;
            let mut parts = pass.array(UInt32, rows, &found)?.into_parts();
            parts.validity = Some(Bitmap { buffer: found_valid.buffer(), offset: 0 });
            parts.null_count = None;
            let found = DeviceArray::try_new(parts)?;
            pass.finish()?;
            Ok(found)
        }))
    }

    fn pairs(
        &self,
        found: &DeviceArray,
        first: usize,
        outer: bool,
        most: u64,
        stream: &Stream,
    ) -> Result<Pending<[DeviceArray; 2]>> {
        pairs(self.ordered.as_ref(), found, first, (outer, most), stream)
    }
}

impl DeviceTable {
    /// Returns the group of each row, and a bit for each row that has one.
    async fn found(
        &self,
        pass: &mut Pass,
        keys: Vec<Key>,
        arrays: &[DeviceArray],
        rows: usize,
        valid: Option<Bitmap>,
    ) -> Result<(Region, Region)> {
        if self.firsts.is_empty() {
            return Ok((pass.rows(rows, 4)?, pass.zeroed(rows.div_ceil(32) * 4)?));
        }
        let fault = pass.first_rows(1, rows)?;
        let words = make_words(pass, &keys, rows, self.exact, self.seed, &fault)?.words;
        pass.report(&fault, all_inside)?;
        let (valid, valid_offset) = valid.as_ref().map_or((In::absent(), 0), bits);
        let out_valid = pass.output(rows.div_ceil(32) * 4)?;
        let mut found = pass.rows(rows, 4)?;
        let table_words = match &self.words {
            Some(words) => input(&words.buffers()[0]),
            None => self.only_values(pass).await?,
        };
        let (range, flip, null) = match &self.range {
            Some((ends, flip, null)) => (input(&ends.buffers()[0]), *flip, *null),
            None => (In::absent(), 0, u64::MAX),
        };
        let args = Find {
            words,
            rows: rows as u64,
            valid,
            valid_offset,
            table_words,
            range,
            flip,
            null,
            kept: self.kept,
            seed: self.seed,
            most: self.slots.len() as u64 - 1,
            slots: input(&self.slots.buffers()[0]),
            // If all rows differ, a row has the number of its group.
            ids: if self.is_unique() { In::absent() } else { input(&self.ids.buffers()[0]) },
            out: found.out(),
            out_valid: out_valid.out(),
        };
        pass.launch(&FIND[0], &args)?;
        if self.exact {
            return Ok((found, out_valid));
        }
        for (own, others) in arrays.iter().zip(&self.keys) {
            if *own.data_type() == DataType::Null {
                continue;
            }
            pass.input(others)?;
            let after = pass.rows(rows, 4)?;
            self.compare(pass, own, others, rows, &found, (&after, &out_valid)).await?;
            found = after;
        }
        Ok((found, out_valid))
    }

    /// The values of the only key that has any: keys of which all rows are equal add nothing to words.
    async fn only_values(&self, pass: &mut Pass) -> Result<In<u64>> {
        for key in &self.keys {
            pass.input(key)?;
            if let Some(Compared { key: 8, pieces: 1, values, .. }) = compared_with_others(pass, key).await? {
                return Ok(values.cast());
            }
        }
        Ok(In::absent())
    }

    /// Compares a column with the table's.
    async fn compare(
        &self,
        pass: &mut Pass,
        own: &DeviceArray,
        others: &DeviceArray,
        rows: usize,
        before: &Region,
        (after, after_valid): (&Region, &Region),
    ) -> Result<()> {
        let of = own.data_type();
        let (columns, own, others) = match compared_with_others(pass, own).await? {
            Some(Compared { key: 0, .. }) => {
                let mut table = Rows::default();
                table.push(&text_column(pass, own).await?);
                table.push(&text_column(pass, others).await?);
                let columns = pass.upload(table.words())?;
                (Some(columns), None, None)
            }
            own => (None, own, compared_with_others(pass, others).await?),
        };
        let nothing = Compared {
            key: 0,
            values: In::absent(),
            pieces: 0,
            valid: (In::absent(), 0),
            column: In::absent(),
        };
        let [own, others] = [own, others].map(|side| side.unwrap_or(nothing));
        let entry = find(COMPARE, &[own.key]).ok_or_else(|| pass.unsupported(of))?;
        let args = Compare {
            values: own.values,
            pieces: own.pieces,
            valid: own.valid.0,
            valid_offset: own.valid.1,
            columns: columns.as_ref().map_or(In::absent(), Region::input),
            rows: rows as u64,
            table_values: others.values,
            table_offset: others.pieces,
            table_valid: others.valid.0,
            table_valid_offset: others.valid.1,
            table_rows: self.ids.len() as u64,
            firsts: input(&self.firsts.buffers()[0]),
            before: before.input(),
            out: after.out(),
            out_valid: after_valid.out(),
        };
        pass.launch(entry, &args)
    }
}
