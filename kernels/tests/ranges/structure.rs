//! Compares the kernels for the structure of arrays (runs, members and lists) with plain definitions.

use bowstring_kernels::encoded::rows::NONE;
use bowstring_kernels::encoded::runs::{ENDS, Ends, FIND, Find, KEPT, Kept, RANKS, Ranks};
use bowstring_kernels::encoded::unions::{MEMBERS, MemberRow, Members, OF_TYPE, OfType, SPREAD, Spread};
use bowstring_kernels::memory::{In, Out, TableRow};

use crate::device::{LENGTHS, Memory, Random, WIDTHS, run};
use crate::selection::{Selection, bits, packed, rank, unpacked};

/// Ends of runs of at most nine rows each, which cover at least so many rows.
fn ends(rng: &mut Random, rows: usize) -> Vec<u32> {
    let mut ends = vec![];
    while ends.last().is_none_or(|last| (*last as usize) < rows) {
        ends.push(ends.last().unwrap_or(&0) + 1 + rng.below(9) as u32);
    }
    ends
}

#[test]
fn rows_find_their_runs() {
    for width in WIDTHS {
        for rows in LENGTHS {
            let mut rng = Random::new(rows as u64);
            let (offset, wanted) = (rng.below(20) as usize, rng.below(100) as usize + 1);
            let ends = ends(&mut rng, offset + rows);
            let indices: Vec<u16> = (0..wanted).map(|_| rng.below(rows as u64 + 2) as u16).collect();
            let valid = bits(&mut rng, wanted, 2);
            let run_of = |row: usize| ends.partition_point(|end| *end as usize <= row + offset) as u64;
            for in_order in [true, false] {
                let (mut end, mut index) = (Memory::of(&ends), Memory::of(&indices));
                let mut valid_bits = Memory::of(&packed(&valid));
                let len = if in_order { rows } else { wanted };
                let (mut out, mut faults) = (Memory::room::<u64>(len), Memory::of(&[u64::MAX; 2]));
                let args = Find {
                    ends: end.input(),
                    runs: ends.len() as u64,
                    offset: offset as u64,
                    indices: if in_order { In::absent() } else { index.input() },
                    width: 2,
                    valid: if in_order { In::absent() } else { valid_bits.bitmap(0).0 },
                    valid_offset: valid_bits.bitmap(0).1,
                    rows: len as u64,
                    limit: rows as u64,
                    out: out.output(),
                    index_fault: faults.output(),
                    fault: faults.output().skip(1),
                };
                run(FIND, &[4], args, width);
                let is_bad = |i: usize| valid[i] && indices[i] as usize >= rows;
                let expected = |i: usize| match in_order {
                    true => run_of(i),
                    false if valid[i] && !is_bad(i) => run_of(indices[i].into()),
                    false => NONE,
                };
                assert_eq!(out.read::<u64>(len), (0..len).map(expected).collect::<Vec<_>>());
                let bad = (0..len).find(|i| !in_order && is_bad(*i)).map_or(u64::MAX, |i| i as u64);
                assert_eq!(faults.read::<u64>(2), [bad, u64::MAX]);
            }
        }
    }
}

#[test]
fn rows_of_no_run_are_found() {
    for (ends, fault) in [([2i16, 4], 4), ([-5, 3], 3), ([4, -1], 4)] {
        let (mut ends, mut out) = (Memory::of(&ends.map(|end| end as u16)), Memory::room::<u64>(6));
        let mut faults = Memory::of(&[u64::MAX]);
        let args = Find {
            ends: ends.input(),
            runs: 2,
            offset: 0,
            indices: In::absent(),
            width: 0,
            valid: In::absent(),
            valid_offset: 0,
            rows: 6,
            limit: 6,
            out: out.output(),
            index_fault: Out::absent(),
            fault: faults.output(),
        };
        run(FIND, &[2], args, 32);
        // If ends decrease, a search finds any of the existing runs.
        assert!(out.read::<u64>(6).iter().all(|run| *run < 2 || *run == NONE));
        assert!(faults.read::<u64>(1)[0] <= fault);
    }
}

#[test]
fn a_selection_leaves_runs_and_makes_them() {
    for width in WIDTHS {
        for rows in LENGTHS {
            let mut rng = Random::new(7 + rows as u64);
            let (offset, kept) = (rng.below(20) as usize, bits(&mut rng, rows, 3));
            let ends_of = ends(&mut rng, offset + rows);
            let mut selection = Selection::of(&kept, width);
            let (words, words_offset) = selection.words();
            let runs = ends_of.len();
            let upto = |run: usize| (ends_of[run] as usize).saturating_sub(offset).min(rows);
            for all in [false, true] {
                let (mut end, mut out) = (Memory::of(&ends_of), Memory::room::<u32>(runs));
                let (mut left, mut faults) =
                    (Memory::room::<u32>(runs.div_ceil(32)), Memory::of(&[u64::MAX; 2]));
                let args = Kept {
                    ends: end.input(),
                    runs: runs as u64,
                    offset: offset as u64,
                    words,
                    words_offset,
                    tile_offsets: if all { In::absent() } else { selection.offsets.input() },
                    rows: rows as u64,
                    out: out.output(),
                    left: left.output(),
                    faults: faults.output(),
                };
                run(KEPT, &[4], args, width);
                let new = |run: usize| if all { upto(run) as u64 } else { rank(&kept, upto(run)) };
                let before = |run: usize| if run == 0 { 0 } else { new(run - 1) };
                let expected: Vec<u32> = (0..runs).map(|run| new(run) as u32).collect();
                assert_eq!(out.read::<u32>(runs), expected);
                let some: Vec<bool> = (0..runs).map(|run| new(run) > before(run)).collect();
                assert_eq!(unpacked(&left, runs), some);
                assert_eq!(faults.read::<u64>(2), [u64::MAX; 2]);
            }
            let marked: Vec<u64> = (0..rows as u64).filter(|row| kept[*row as usize]).collect();
            let numbers: Vec<u64> = (0..rows as u64).map(|row| 3 * row).collect();
            let (mut of, mut new) = (Memory::of(&numbers), Memory::room::<u16>(marked.len()));
            let mut picked = Memory::room::<u64>(marked.len());
            let args = Ends {
                words,
                words_offset,
                tile_offsets: selection.offsets.input(),
                rows: rows as u64,
                of: of.input(),
                ends: new.output(),
                picked: picked.output(),
            };
            run(ENDS, &[2], args, width);
            let plus_one: Vec<u16> = marked.iter().map(|row| *row as u16 + 1).collect();
            assert_eq!(new.read::<u16>(marked.len()), plus_one);
            assert_eq!(
                picked.read::<u64>(marked.len()),
                marked.iter().map(|row| 3 * row).collect::<Vec<_>>()
            );
            let asked: Vec<u64> = (0..40).map(|_| rng.below(rows as u64 + 3)).chain([NONE]).collect();
            let (mut at, mut ranks) = (Memory::of(&asked), Memory::room::<u32>(asked.len()));
            let args = Ranks {
                words,
                words_offset,
                tile_offsets: selection.offsets.input(),
                of: selection.rows as u64,
                at: at.input(),
                rows: asked.len() as u64,
                out: ranks.output(),
            };
            run(RANKS, &[4], args, width);
            let expected = |row: &u64| if *row < rows as u64 { rank(&kept, *row as usize) as u32 } else { 0 };
            assert_eq!(ranks.read::<u32>(asked.len()), asked.iter().map(expected).collect::<Vec<_>>());
        }
    }
}

#[test]
fn ends_that_go_back_are_found() {
    let (mut ends, mut out) = (Memory::of(&[2u32, 7, 5, 9]), Memory::room::<u32>(4));
    let (mut left, mut faults) = (Memory::room::<u32>(1), Memory::of(&[u64::MAX; 2]));
    let args = Kept {
        ends: ends.input(),
        runs: 4,
        offset: 0,
        words: In::absent(),
        words_offset: 0,
        tile_offsets: In::absent(),
        rows: 12,
        out: out.output(),
        left: left.output(),
        faults: faults.output(),
    };
    run(KEPT, &[4], args, 64);
    assert_eq!(faults.read::<u64>(2), [2, 9]);
}

#[test]
fn members_are_looked_at_and_spread() {
    for width in WIDTHS {
        for rows in LENGTHS {
            let mut rng = Random::new(11 + rows as u64);
            let types: Vec<u8> = (0..rows).map(|_| [9, 4, 250][rng.below(3) as usize]).collect();
            let offsets: Vec<u32> = (0..rows).map(|_| rng.below(50) as u32).collect();
            let valid = bits(&mut rng, 50, 2);
            let mut valid_bits = Memory::shifted(&packed(&valid), 1);
            let (bitmap, bit_offset) = valid_bits.bitmap(0);
            let member = |id: u8, valid: In<u32>, none: bool| {
                MemberRow { id: id.into(), len: 50, valid, valid_offset: bit_offset, none }.words()
            };
            let table =
                [member(9, bitmap, false), member(4, In::absent(), false), member(250, In::absent(), true)];
            let (mut table, mut ids) = (Memory::of(&table.concat()), Memory::of(&types));
            let (mut places, mut out) = (Memory::of(&offsets), Memory::room::<u32>(rows.div_ceil(32)));
            let mut faults = Memory::of(&[u64::MAX; 2]);
            let args = Members {
                types: ids.input(),
                offsets: places.input(),
                valid: In::absent(),
                valid_offset: 0,
                rows: rows as u64,
                members: table.input(),
                count: 3,
                out: out.output(),
                faults: faults.output(),
            };
            run(MEMBERS, &[], args, width);
            let says = |row: usize| match types[row] {
                9 => valid[offsets[row] as usize],
                id => id == 4,
            };
            assert_eq!(unpacked(&out, rows), (0..rows).map(says).collect::<Vec<_>>());
            assert_eq!(faults.read::<u64>(2), [u64::MAX; 2]);
            // With one member fewer, and a shorter one.
            let short = [member(9, bitmap, false), MemberRow { len: 7, ..row_of(4) }.words()];
            let mut table = Memory::of(&short.concat());
            run(
                MEMBERS,
                &[],
                Members { members: table.input(), count: 2, out: Out::absent(), ..args },
                width,
            );
            let first = |is: &dyn Fn(usize) -> bool| {
                (0..rows).find(|row| is(*row)).map_or(u64::MAX, |row| row as u64)
            };
            let expected =
                [first(&|row| types[row] == 250), first(&|row| types[row] == 4 && offsets[row] >= 7)];
            assert_eq!(faults.read::<u64>(2), expected);
            let mut of_type = Memory::room::<u32>(rows.div_ceil(32));
            let args = OfType { types: ids.input(), id: 250, rows: rows as u64, out: of_type.output() };
            run(OF_TYPE, &[], args, width);
            let kept: Vec<bool> = types.iter().map(|id| *id == 250).collect();
            assert_eq!(unpacked(&of_type, rows), kept);
            let mut selection = Selection::of(&kept, width);
            let (words, words_offset) = selection.words();
            let total = rank(&kept, rows) as usize;
            let (mut picked, mut new) = (Memory::room::<u32>(total), Memory::padded(&vec![77u32; rows]));
            let args = Spread {
                words,
                words_offset,
                tile_offsets: selection.offsets.input(),
                rows: rows as u64,
                offsets: places.input(),
                picked: picked.output(),
                places: new.output(),
            };
            run(SPREAD, &[], args, width);
            let expected: Vec<u32> = (0..rows).filter(|row| kept[*row]).map(|row| offsets[row]).collect();
            assert_eq!(picked.read::<u32>(total), expected);
            let place = |row: usize| if kept[row] { rank(&kept, row) as u32 } else { 77 };
            assert_eq!(new.read::<u32>(rows), (0..rows).map(place).collect::<Vec<_>>());
        }
    }
}

fn row_of(id: u64) -> MemberRow {
    MemberRow { id, len: 50, valid: In::absent(), valid_offset: 0, none: false }
}
