//! Unions: the member of each row, whether the row is valid there, and rows reordered by member.

use super::rows::{Selected, store, tile};
use crate::memory::{Bits, In, Out, TableRow};
use crate::reduce::scan::TILE;
use crate::target::{Lane, Wave};

kernel! {
    family "structure";
    /// Checks each row's type id and offset, and looks up its validity in its member.
    Members {
        /// The type id of each row, a byte.
        types: In<u8>,
        /// The place of each row in its member, for a dense union. Absent where that is the row's own index.
        offsets: In<u32>,
        /// A bit for each row to check, from `In::bitmap`; other rows get an unset bit in `out`. May be
        /// absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        rows: u64,
        /// A [`MemberRow`] for each member; at least one MUST be readable.
        members: In<u64>,
        /// The number of members.
        count: u64,
        /// A bit, in whole words, for each row that is valid in its member. May be absent.
        out: Out<u32>,
        /// Two words, `u64::MAX` before the launch. The first is lowered to the first row of no member, the
        /// second to the first row past its member's end.
        faults: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entry for all unions.
    MEMBERS {
        structure_members = members,
    }
}

kernel! {
    family "structure";
    /// Finds the rows of one type id.
    OfType {
        /// The type id of each row, a byte.
        types: In<u8>,
        /// The type id to find, as a byte.
        id: u64,
        /// The number of rows.
        rows: u64,
        /// A bit, in whole words, for each row of that type id.
        out: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entry for all unions.
    OF_TYPE {
        structure_of_type = of_type,
    }
}

kernel! {
    family "structure";
    /// Gives the rows of one member consecutive places in it.
    Spread {
        /// The rows of the member, as a selection (`In::bitmap`).
        words: In<u32>,
        /// The bit offset of `words`, from `In::bitmap`.
        words_offset: u64,
        /// The `offsets` of [`Offsets`](crate::select::selection::Offsets) for the selection.
        tile_offsets: In<u64>,
        /// The number of rows of the union.
        rows: u64,
        /// The old place of each row in its member.
        offsets: In<u32>,
        /// The old places of the member's rows, in the order of the rows.
        picked: Out<u32>,
        /// The new place of each of the member's rows. The places of other rows stay unchanged.
        places: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entry for all unions.
    SPREAD {
        structure_spread = spread,
    }
}

/// A member, as a row in the table of [`Members`].
pub struct MemberRow {
    /// The member's type id, as a byte.
    pub id: u64,
    /// The number of rows of the member.
    pub len: u64,
    /// A bit for each valid row of the member, from `In::bitmap`. May be absent.
    pub valid: In<u32>,
    /// The bit offset of `valid`, from `In::bitmap`.
    pub valid_offset: u64,
    /// Whether every row is null, whatever `valid` holds.
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

/// Whether a row is valid in its member.
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
