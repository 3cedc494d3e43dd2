//! The groups of equal rows, by a hash table.

use arrow_schema::DataType;
use bowstring_kernels::group::dense::{CLEAR, Clear};
use bowstring_kernels::group::keys::{CHECK, Check};
use bowstring_kernels::group::table::{IDS, INSERT, Ids, Insert, NUMBER, Number, OWN, Own};
use bowstring_kernels::memory::In;
use bowstring_kernels::target::find;

use super::keys::{Key, Made, Range, check_key, fit_words, make_words, range};
use crate::array::{Bitmap, DeviceArray, outside};
use crate::engine::Groups;
use crate::gpu::sort::flat_columns;
use crate::gpu::structure::Marked;
use crate::gpu::structure::alike::{Compared, compared};
use crate::pass::{Looks, Pass, Pending, Region, bits};
use crate::rules::seeds::{seed, weak_rounds};
use crate::{Result, Stream};

/// The most rows, so that UInt32 can number twice as many slots.
const MOST: usize = 1 << 30;

/// The rounds after which equal hashes are taken for an error. Each has hashes of its own, so that keys that
/// meet in one do not meet in the next.
const ROUNDS: u64 = 8;

/// Returns the groups of equal rows of columns. It reads once in nearly all cases, and as often as it
/// takes to replace dictionaries, runs and nested types.
pub(crate) fn group(columns: &[DeviceArray], stream: &Stream) -> Result<Pending<Groups>> {
    let (columns, on) = (columns.to_vec(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let plain = flat_columns(&columns, &on).await?;
        let rows = columns.first().map_or(0, DeviceArray::len);
        let mut pass = Pass::begin("group", &on)?;
        let mut keys = vec![];
        for values in &plain {
            check_key(&pass, values)?;
            // An array without rows may have no buffers to describe.
            if rows == 0 {
                continue;
            }
            pass.input(values)?;
            let key = compared(&mut pass, values).await?;
            keys.extend(Key::new(&pass, values, key, values.possible_nulls().is_some())?);
        }
        let made = numbered(&mut pass, keys, rows, None).await?;
        let groups = Groups {
            ids: pass.array(DataType::UInt32, rows, &made.ids)?,
            firsts: pass.array(DataType::UInt32, made.count, &made.firsts)?,
        };
        pass.finish()?;
        Ok(groups)
    }))
}

/// Rows with their groups.
pub(crate) struct Numbered {
    /// The group of each row; `count` if it is in none.
    pub ids: Region,
    pub firsts: Region,
    pub count: usize,
    pub hashed: Hashed,
}

/// A table of words.
pub(crate) struct Hashed {
    pub words: Made,
    /// The range of the words, if that may be narrow.
    pub range: Option<Range>,
    pub slots: Region,
    /// The number of slots.
    pub len: usize,
    pub seed: u64,
    /// The bits of words that count.
    pub kept: u64,
    /// Whether equal words are equal keys.
    pub exact: bool,
}

/// Returns a range's arguments of launches.
pub(crate) fn ends_of(range: Option<&Range>) -> (In<u64>, u64, u64) {
    range.map_or((In::absent(), 0, u64::MAX), |range| (range.ends.input(), range.flip, range.null))
}

/// Numbers the groups of the rows that `valid` has, or of all.
pub(crate) async fn numbered(
    pass: &mut Pass,
    keys: Vec<Key>,
    rows: usize,
    valid: Option<Bitmap>,
) -> Result<Numbered> {
    if rows > MOST {
        return Err(pass.unsupported(format!("{rows} rows")));
    }
    let (len, weak) = (rows as u64, weak_rounds());
    let exact = fit_words(&keys) && weak == 0;
    let slots = (2 * rows).next_power_of_two();
    let table = pass.rows(slots, 8)?;
    if rows == 0 {
        pass.fill(&table, 0xff)?;
        let none = pass.output(0)?;
        let words = Made { words: none.input(), region: Some(none.clone()) };
        let (seed, kept) = (seed(0), u64::MAX);
        let hashed = Hashed { words, range: None, slots: table, len: slots, seed, kept, exact };
        return Ok(Numbered { ids: none.clone(), firsts: none, count: 0, hashed });
    }
    let places = pass.rows(rows, 4)?;
    let fault = pass.first_rows(1, rows)?;
    let (valid, valid_offset) = valid.as_ref().map_or((In::absent(), 0), bits);
    for round in 0..ROUNDS {
        let (seed, kept) = (seed(round), if round < weak { 1 } else { u64::MAX });
        let made = make_words(pass, &keys, rows, exact, seed, &fault)?;
        let range = match exact {
            true => range(pass, &keys, made.words, rows, (valid, valid_offset))?,
            false => None,
        };
        let (ends, flip, null) = ends_of(range.as_ref());
        let most = slots as u64 - 1;
        pass.launch(&CLEAR[0], &Clear { range: ends, most, slots: table.out() })?;
        let args = Insert {
            words: made.words,
            rows: len,
            valid,
            valid_offset,
            kept,
            seed,
            range: ends,
            flip,
            null,
            most,
            slots: table.out(),
            places: places.out(),
        };
        pass.launch(&INSERT[0], &args)?;
        let firsts = pass.zeroed(rows.div_ceil(32) * 4)?;
        let args = Own {
            slots: table.input(),
            places: places.input(),
            rows: len,
            range: ends,
            most,
            firsts: firsts.out(),
        };
        pass.launch(&OWN[0], &args)?;
        let differing = pass.zeroed(8)?;
        for key in keys.iter().filter(|_| !exact) {
            let Compared { key, values, pieces, valid: (valid, valid_offset), column } = key.compared;
            let check = find(CHECK, &[key]).ok_or_else(|| pass.unsupported("keys"))?;
            let (slots, places, differing) = (table.input(), places.input(), differing.out());
            let rows = len;
            let args = Check { values, pieces, valid, valid_offset, column, rows, slots, places, differing };
            pass.launch(check, &args)?;
        }
        let marked = Marked::new(pass, rows, &firsts)?;
        let mut looks = Looks::default();
        let [differing, fault, counters] =
            [&differing, &fault, marked.counters()].map(|region| looks.at([region]));
        let read = looks.read(pass).await?;
        if read[&fault][0] != u64::MAX {
            return Err(outside(read[&fault][0] as usize));
        }
        if read[&differing][0] > 0 {
            continue;
        }
        let count = marked.total(&read[&counters]);
        let (groups, ids, out) = (pass.rows(slots, 4)?, pass.rows(rows, 4)?, pass.rows(count, 4)?);
        let args = Number {
            firsts: marked.mask.words().0,
            offsets: marked.mask.offsets(),
            places: places.input(),
            rows: len,
            groups: groups.out(),
            out: out.out(),
        };
        pass.launch(&NUMBER[0], &args)?;
        let (groups, places, none) = (groups.input(), places.input(), count as u64);
        pass.launch(&IDS[0], &Ids { groups, places, rows: len, none, out: ids.out() })?;
        let hashed = Hashed { words: made, range, slots: table, len: slots, seed, kept, exact };
        return Ok(Numbered { ids, firsts: out, count, hashed });
    }
    Err(pass.unsupported("keys whose hashes are equal"))
}
