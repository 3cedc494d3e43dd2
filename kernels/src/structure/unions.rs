//! Unions: which member each row is of, whether that says something, and rows put in their members' order.

use super::{Selected, store, tile};
use crate::memory::{Bits, In, Out, TableRow};
use crate::scan::TILE;
use crate::target::{Lane, Wave};

kernel! {
    family "structure";
    /// Looks at each row's type id and offset, and at its member's validity.
    Members {
        /// The type ids.
        types: In<u8>,
        /// Where each row is in its member, of a dense union. Absent where that is its own number.
        offsets: In<u32>,
        /// From `In::bitmap`: which rows are looked at; of others the bit is unset. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many rows there are.
        rows: u64,
        /// A [`MemberRow`] for each member; one MUST be readable.
        members: In<u64>,
        /// How many there are.
        count: u64,
        /// Whole words: a bit for each row whose member is valid there. May be absent.
        out: Out<u32>,
        /// Receives the first row of no member, and the first that is beyond its member's last: `u64::MAX` before.
        faults: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// One entry.
    MEMBERS {
        structure_members = members,
    }
}

kernel! {
    family "structure";
    /// Which rows are of a type.
    OfType {
        /// The type ids.
        types: In<u8>,
        /// Which one, as a byte.
        id: u64,
        /// How many rows there are.
        rows: u64,
        /// Whole words: a bit for each row that is.
        out: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// One entry.
    OF_TYPE {
        structure_of_type = of_type,
    }
}

kernel! {
    family "structure";
    /// Gives the rows of one member consecutive places there.
    Spread {
        /// The rows of the member, as a selection (`In::bitmap`).
        words: In<u32>,
        /// Its bit offset.
        words_offset: u64,
        /// From [`Offsets`](crate::selection::Offsets).
        tile_offsets: In<u64>,
        /// How many rows there are.
        rows: u64,
        /// Where each row was.
        offsets: In<u32>,
        /// Where the rows of the member were, in their order.
        picked: Out<u32>,
        /// Where each of them is now. Others are left as they are.
        places: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// One entry.
    SPREAD {
        structure_spread = spread,
    }
}

/// A member in the table of [`Members`].
pub struct MemberRow {
    /// Its type id, as a byte.
    pub id: u64,
    /// How many rows it has.
    pub len: u64,
    /// From `In::bitmap`: which of them are valid. May be absent.
    pub valid: In<u32>,
    /// From `In::bitmap`.
    pub valid_offset: u64,
    /// Whether none of them is, whatever else is said.
    pub none: bool,
}

impl TableRow for MemberRow {
    type Words = [u64; 6];
    fn words(&self) -> [u64; 6] {
        let [valid, extent] = self.valid.described();
        [self.id, self.len, valid, extent, self.valid_offset, self.none.into()]
    }
}

const ROW: u64 = MemberRow::ROW;

fn members(args: &Members, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let looked_at = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        let says = wave.each(|l| {
            let row = at + u64::from(l.index());
            row < end && (looked_at.is_absent() || looked_at.get(row)) && member(args, row, l)
        });
        if !args.out.is_absent() {
            store(says, at, args.rows, args.out, wave);
        }
        at += u64::from(wave.width());
    }
}

/// Whether a row's member is valid there.
#[inline(always)]
fn member(args: &Members, row: u64, l: Lane<'_>) -> bool {
    let id = u64::from(args.types.get(row));
    let mut i = 0;
    while i < args.count && args.members.get(i * ROW) != id {
        i += 1;
    }
    if i == args.count {
        args.faults.min(l, 0, row);
        return false;
    }
    let place = if args.offsets.is_absent() { row } else { u64::from(args.offsets.get(row)) };
    let len = args.members.get(i * ROW + 1);
    if place >= len {
        args.faults.min(l, 1, row);
        return false;
    }
    let valid = Bits::new(args.members.input_of(l, i * ROW + 2), args.members.get(i * ROW + 4), len);
    args.members.get(i * ROW + 5) == 0 && (valid.is_absent() || valid.get(place))
}

fn of_type(args: &OfType, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        let is = wave.each(|l| {
            let row = at + u64::from(l.index());
            row < end && u64::from(args.types.get(row)) == args.id
        });
        store(is, at, args.rows, args.out, wave);
        at += u64::from(wave.width());
    }
}

fn spread(args: &Spread, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let selected = Selected::new(args.words, args.words_offset, args.rows, args.tile_offsets);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end && selected.has(row) {
                let place = selected.rank(row);
                args.picked.set(l, place, args.offsets.get(row));
                args.places.set(l, row, place as u32);
            }
        });
        at += u64::from(wave.width());
    }
}
