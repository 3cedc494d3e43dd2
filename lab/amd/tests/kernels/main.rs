//! Small hand-written kernels: the interpreter must reject some and accept others.

mod atomics;
mod words;

use bowstring_amdi::{Argument, Error, Instruction, Kernel, Launch, Memory, Program, Ran, Target};
use words::{bytes, words_of};

/// One contiguous range of memory.
struct Piece {
    start: u64,
    bytes: Vec<u8>,
}

impl Piece {
    fn at(&mut self, address: u64, len: usize) -> Result<&mut [u8], String> {
        let from = address.checked_sub(self.start).ok_or("before the memory")? as usize;
        self.bytes.get_mut(from..from.saturating_add(len)).ok_or_else(|| format!("no memory at {address:#x}"))
    }

    fn word(&mut self, i: usize) -> u32 {
        u32::from_le_bytes(self.at(self.start + 4 * i as u64, 4).unwrap().try_into().unwrap())
    }
}

impl Memory for Piece {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        into.copy_from_slice(self.at(address, into.len())?);
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.at(address, from.len())?.copy_from_slice(from);
        Ok(())
    }
}

/// A memory of this many words, each with its own index as value.
fn piece(words: u32) -> Piece {
    Piece { start: 0x1_0000, bytes: (0..words).flat_map(u32::to_le_bytes).collect() }
}

/// A kernel of these instructions, which takes two words.
fn kernel(target: Target, lines: &[&str]) -> Kernel {
    let word = |line: &&str| {
        let known = words_of(target).iter().find(|(text, _)| text == line);
        bytes(known.unwrap_or_else(|| panic!("{line} is not in the table")).1)
    };
    let mut descriptor = [0; 64];
    let wide = target.lanes == 64;
    // The same float mode as in the shipped kernels; the work-group's index follows the other scalar
    // registers.
    let group: u32 = if wide { 6 } else { 2 };
    descriptor[48..52].copy_from_slice(&(0xf0u32 << 12).to_le_bytes());
    descriptor[52..56].copy_from_slice(&(1u32 << 7 | group << 1).to_le_bytes());
    let properties: u32 = if wide { 0b1001 } else { 0b1000 | 1 << 10 };
    descriptor[56..60].copy_from_slice(&properties.to_le_bytes());
    let argument = |at| Argument { at, bytes: 8, is_pointer: true };
    Kernel {
        arguments: vec![argument(0), argument(8)],
        bytes: 16,
        width: target.lanes,
        vector_registers: 8,
        scalar_registers: 16,
        descriptor,
        address: 0,
        code: lines.iter().flat_map(word).collect(),
    }
}

/// Runs one block with a memory, whose address is the first argument.
fn run_as(
    target: Target,
    lines: &[&str],
    memory: &mut Piece,
    threads: u32,
    seed: Option<u64>,
) -> Result<Ran, Error> {
    let kernel = kernel(target, lines);
    let program = Program::decode(&kernel, target)?;
    let arguments = kernel.laid_out(&[memory.start, 7]).unwrap();
    let any_order = seed.is_some();
    let launch = Launch {
        program: &program,
        arguments: &arguments,
        blocks: 1,
        block_size: threads,
        seed: seed.unwrap_or(1),
        any_order,
        races: any_order,
    };
    launch.run(memory)
}

fn run(target: &str, lines: &[&str]) -> Result<Piece, String> {
    let target = Target::named(target).unwrap();
    let mut memory = piece(256);
    run_as(target, lines, &mut memory, target.lanes, None).map_err(|error| error.to_string())?;
    Ok(memory)
}

const EARLY: &str = "is used before what was loaded there was waited for";

#[track_caller]
fn fails(target: &str, lines: &[&str], reason: &str) {
    let error = run(target, lines).err().expect("it must not pass");
    assert!(error.contains(reason), "{error}");
}

#[test]
fn the_table_is_what_the_text_says() {
    for target in ["gfx90a", "gfx11-generic", "gfx12-generic"].map(|name| Target::named(name).unwrap()) {
        for (text, words) in words_of(target) {
            let made =
                Instruction::decode(target, &bytes(words)).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((made.to_string().as_str(), made.size()), (*text, 4 * words.len()));
        }
    }
}

const LOADS: [&str; 10] = [
    "s_load_b64 s[2:3], s[0:1], null",
    "v_lshlrev_b32_e32 v1, 2, v0",
    "s_waitcnt lgkmcnt(0)",
    "global_load_b32 v2, v1, s[2:3]",
    "global_load_b32 v3, v1, s[2:3] offset:128",
    "s_waitcnt vmcnt(1)",
    "v_add_nc_u32_e32 v2, 7, v2",
    "global_store_b32 v1, v2, s[2:3]",
    "s_waitcnt vmcnt(0)",
    "s_endpgm",
];

#[test]
fn what_was_waited_for_may_be_used() {
    let mut memory = run("gfx11-generic", &LOADS).unwrap();
    assert_eq!([0, 1, 31, 32].map(|i| memory.word(i)), [7, 8, 38, 32]);
}

#[test]
fn what_was_not_waited_for_may_not() {
    // Missing waits for: the scalar load; the vector load; a later load than the wait covers; a load whose
    // register is overwritten.
    fails("gfx11-generic", &without(&LOADS, 2), &format!("s2 {EARLY}"));
    fails("gfx11-generic", &without(&LOADS, 5), &format!("v2 {EARLY}"));
    let with = |at: usize, line| [&LOADS[..at], &[line], &LOADS[at..]].concat();
    fails("gfx11-generic", &with(6, "v_add_nc_u32_e32 v3, 7, v3"), &format!("v3 {EARLY}"));
    fails("gfx11-generic", &with(5, "v_mov_b32_e32 v2, 1"), &format!("v2 {EARLY}"));
    // Scalar loads arrive in any order, so only a wait for all of them completes any.
    let mut some = LOADS.to_vec();
    some.splice(2..3, ["s_load_b64 s[4:5], s[0:1], 0x8", "s_waitcnt lgkmcnt(1)"]);
    fails("gfx11-generic", &some, &format!("s2 {EARLY}"));
}

/// A scalar load adds a register to its address, and the immediate offset too.
#[test]
fn scalar_loads_add_a_register_to_their_address() {
    let gfx11 = [
        "s_load_b64 s[2:3], s[0:1], null",
        "v_lshlrev_b32_e32 v1, 2, v0",
        "s_mov_b32 s6, 16",
        "s_waitcnt lgkmcnt(0)",
        "s_load_b32 s4, s[2:3], s6 offset:0x8",
        "s_waitcnt lgkmcnt(0)",
        "v_mov_b32_e32 v2, s4",
        "global_store_b32 v1, v2, s[2:3]",
        "s_endpgm",
    ];
    let gfx12 = [
        "s_load_b64 s[2:3], s[0:1], 0x0",
        "v_lshlrev_b32_e32 v1, 2, v0",
        "s_mov_b32 s6, 16",
        "s_wait_kmcnt 0x0",
        "s_load_b32 s4, s[2:3], s6 offset:0x8",
        "s_wait_kmcnt 0x0",
        "v_mov_b32_e32 v2, s4",
        "global_store_b32 v1, v2, s[2:3]",
        "s_endpgm",
    ];
    let gfx9 = [
        "s_load_dwordx2 s[2:3], s[4:5], 0x0",
        "v_lshlrev_b32_e32 v1, 2, v0",
        "s_mov_b32 s6, 16",
        "s_waitcnt lgkmcnt(0)",
        "s_load_dword s7, s[2:3], s6 offset:0x8",
        "s_waitcnt lgkmcnt(0)",
        "v_mov_b32_e32 v2, s7",
        "global_store_dword v1, v2, s[2:3]",
        "s_endpgm",
    ];
    let with = |lines: &[&'static str], at: usize, line| {
        let mut lines = lines.to_vec();
        lines[at] = line;
        lines
    };
    let back = "s_load_b32 s4, s[2:3], s6 offset:-0x8";
    for (target, lines, word) in [
        ("gfx11-generic", gfx11.to_vec(), 6),
        ("gfx12-generic", gfx12.to_vec(), 6),
        ("gfx90a", gfx9.to_vec(), 6),
        // The immediate offset is signed.
        ("gfx11-generic", with(&gfx11, 4, back), 2),
        ("gfx12-generic", with(&gfx12, 4, back), 2),
    ] {
        let mut memory = run(target, &lines).unwrap();
        assert_eq!([0, 1, 31].map(|i| memory.word(i)), [word; 3], "{target}: {}", lines[4]);
        fails(target, &without(&lines, 5), EARLY);
    }
    // The offset register is unsigned, and needs a wait like any other register.
    fails("gfx11-generic", &with(&gfx11, 2, "s_mov_b32 s6, -8"), "no memory at 0x100010000");
    let mut loaded = gfx11.to_vec();
    loaded.splice(2..4, ["s_waitcnt lgkmcnt(0)", "s_load_b32 s6, s[2:3], 0x10"]);
    fails("gfx11-generic", &loaded, &format!("s6 {EARLY}"));
}

fn without<'a>(lines: &[&'a str], at: usize) -> Vec<&'a str> {
    lines.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, line)| *line).collect()
}

#[test]
fn each_generation_counts_its_own_way() {
    // On gfx9 a store counts with the loads, so one of two may stay in flight.
    let gfx9 = [
        "s_load_dwordx2 s[2:3], s[4:5], 0x0",
        "v_lshlrev_b32_e32 v1, 2, v0",
        "s_waitcnt lgkmcnt(0)",
        "global_load_dword v2, v1, s[2:3]",
        "global_store_dword v1, v1, s[2:3]",
        "s_waitcnt vmcnt(1)",
        "v_mov_b32_e32 v3, v2",
        "s_endpgm",
    ];
    run("gfx90a", &gfx9).unwrap();
    fails("gfx90a", &without(&gfx9, 4), &format!("v2 {EARLY}"));
    let gfx12 = [
        "s_load_b64 s[2:3], s[0:1], 0x0",
        "v_lshlrev_b32_e32 v1, 2, v0",
        "s_wait_kmcnt 0x0",
        "global_load_b32 v2, v1, s[2:3]",
        "s_wait_loadcnt 0x0",
        "ds_bpermute_b32 v3, v1, v2",
        "s_wait_dscnt 0x0",
        "v_mov_b32_e32 v2, v3",
        "global_store_b32 v1, v2, s[2:3]",
        "s_endpgm",
    ];
    run("gfx12-generic", &gfx12).unwrap();
    for wait in [2, 4, 6] {
        fails("gfx12-generic", &without(&gfx12, wait), EARLY);
    }
    // On gfx12 a wait for loads does not cover a store.
    let mut stored = gfx12.to_vec();
    stored.splice(4..5, ["global_store_b32 v1, v2, s[2:3]", "s_wait_loadcnt 0x1"]);
    fails("gfx12-generic", &stored, &format!("v2 {EARLY}"));
}

#[test]
fn races_are_seen_between_waves_and_between_lanes() {
    let target = Target::named("gfx11-generic").unwrap();
    let start = ["s_load_b64 s[2:3], s[0:1], null", "v_mov_b32_e32 v2, 1", "s_waitcnt lgkmcnt(0)"];
    let race = |lines: &[&str], threads| {
        let lines = [&start[..], lines, &["s_endpgm"]].concat();
        run_as(target, &lines, &mut piece(64), threads, Some(5)).err().map(|error| error.reason)
    };
    // Each lane has its own byte; the lanes of another wave have other bytes.
    assert_eq!(race(&["global_store_b8 v0, v2, s[2:3]"], 64), None);
    let all_to_one = ["v_mov_b32_e32 v1, 0", "global_store_b32 v1, v2, s[2:3]"];
    assert!(race(&all_to_one, 32).is_some_and(|reason| reason.contains("a race at 0x10000")));
    let one_lane = ["v_mov_b32_e32 v1, 0", "s_mov_b32 exec_lo, 1", "global_store_b32 v1, v2, s[2:3]"];
    assert_eq!(race(&one_lane, 32), None);
    assert!(race(&one_lane, 64).is_some_and(|reason| reason.contains("a race at 0x10000")));
    // The memory itself orders updates.
    let mut memory = piece(64);
    let lines =
        [&start[..], &["v_mov_b32_e32 v1, 0", "global_atomic_add_u32 v1, v2, s[2:3]", "s_endpgm"]].concat();
    run_as(target, &lines, &mut memory, 256, Some(9)).unwrap();
    assert_eq!(memory.word(0), 256);
}

#[test]
fn one_lane_is_written_by_its_number_in_the_wave() {
    let lines = |first, wait, store| {
        [
            first,
            "v_lshlrev_b32_e32 v1, 2, v0",
            "v_mov_b32_e32 v2, 0",
            "s_mov_b32 s6, 16",
            "v_writelane_b32 v2, 7, 33",
            "v_writelane_b32 v2, s6, s6",
            wait,
            store,
            "s_endpgm",
        ]
    };
    let store = "global_store_b32 v1, v2, s[2:3]";
    for (target, lines) in [
        ("gfx11-generic", lines("s_load_b64 s[2:3], s[0:1], null", "s_waitcnt lgkmcnt(0)", store)),
        ("gfx12-generic", lines("s_load_b64 s[2:3], s[0:1], 0x0", "s_wait_kmcnt 0x0", store)),
    ] {
        let mut memory = run(target, &lines).unwrap();
        assert_eq!([0, 1, 2, 16, 31].map(|i| memory.word(i)), [0, 7, 0, 16, 0]);
    }
}

#[test]
fn registers_start_as_rubbish() {
    let target = Target::named("gfx11-generic").unwrap();
    let lines = [
        "s_load_b64 s[2:3], s[0:1], null",
        "v_lshlrev_b32_e32 v1, 2, v0",
        "s_waitcnt lgkmcnt(0)",
        "global_store_b32 v1, v2, s[2:3]",
        "s_endpgm",
    ];
    let stored = |seed| {
        let mut memory = piece(64);
        run_as(target, &lines, &mut memory, 32, Some(seed)).unwrap();
        memory.bytes
    };
    assert_ne!(stored(3), stored(4));
    assert_eq!(stored(3), stored(3));
}

#[test]
fn lanes_that_do_not_run_keep_what_they_have_and_count_for_nothing() {
    let target = Target::named("gfx11-generic").unwrap();
    let mut lines = LOADS.to_vec();
    lines.insert(6, "s_mov_b32 exec_lo, 1");
    let mut memory = piece(256);
    let ran = run_as(target, &lines, &mut memory, 32, None).unwrap();
    assert_eq!([0, 1].map(|i| memory.word(i)), [7, 1]);
    // Three vector instructions run on all lanes, two on one.
    assert_eq!(ran, Ran { lanes: 3 * 32 + 2, waves: 11, scalar: 6 });
}

#[test]
fn memory_that_is_not_there_is_an_error_with_its_place() {
    let target = Target::named("gfx11-generic").unwrap();
    let mut memory = piece(16);
    let error = run_as(target, &LOADS, &mut memory, 32, None).unwrap_err();
    assert_eq!(error.instruction, "global_load_b32 v2, v1, s[2:3]");
    assert_eq!((error.at, error.reason.as_str()), (16, "block 0 thread 16: no memory at 0x10040"));
    // Only atomic accesses must be aligned.
    let mut odd = LOADS.to_vec();
    odd[3] = "global_atomic_add_u32 v1, v2, s[2:3] offset:2";
    fails("gfx11-generic", &odd, "4 bytes at 0x10002 are misaligned");
}

#[test]
fn what_is_outside_of_the_subset_is_an_error_before_anything_runs() {
    let target = Target::named("gfx11-generic").unwrap();
    fails("gfx11-generic", &["s_branch 16", "s_endpgm"], "a branch to no instruction");
    fails(
        "gfx11-generic",
        &["v_mov_b32_e32 v200, v2", "s_endpgm"],
        "uses a register that the kernel has not",
    );
    fails("gfx11-generic", &["v_mov_b32_e32 v2, 1"], "ran past the end of the kernel");
    fails("gfx11-generic", &["s_branch 65535", "s_endpgm"], "the kernel does not end");
    let refused = |change: &dyn Fn(&mut Kernel)| {
        let mut kernel = kernel(target, &["s_endpgm"]);
        change(&mut kernel);
        Program::decode(&kernel, target).err().map(|error| error.reason)
    };
    assert_eq!(refused(&|_| {}), None);
    // Local memory; another float mode; waves of 64; no address of the arguments; a barrier; half an
    // instruction.
    let changes: [&dyn Fn(&mut Kernel); 6] = [
        &|kernel| kernel.descriptor[0] = 4,
        &|kernel| kernel.descriptor[50] = 0,
        &|kernel| kernel.width = 64,
        &|kernel| kernel.descriptor[56] = 0,
        &|kernel| kernel.code = bytes(&[0xbfbd_0000, 0xbfb0_0000]),
        &|kernel| kernel.code = bytes(&[0xdc52_0000]),
    ];
    for change in changes {
        assert!(refused(change).is_some());
    }
}
