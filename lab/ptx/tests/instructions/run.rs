//! Runs a body of PTX on words of memory.

use bowstring_ptxi::{Error, Launch, Memory, Module};

/// One contiguous range of memory.
pub struct Words {
    pub start: u64,
    bytes: Vec<u8>,
}

impl Words {
    pub fn new(words: &[u64]) -> Words {
        Words { start: 0x1000, bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect() }
    }

    pub fn words(&self) -> Vec<u64> {
        self.bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect()
    }

    fn place(&self, address: u64, bytes: usize) -> Result<usize, String> {
        let at = address.checked_sub(self.start).filter(|at| *at + bytes as u64 <= self.bytes.len() as u64);
        at.map(|at| at as usize).ok_or_else(|| format!("{bytes} bytes at {address:#x} are outside"))
    }
}

impl Memory for Words {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        let at = self.place(address, into.len())?;
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        let at = self.place(address, from.len())?;
        self.bytes[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }
}

pub const HEAD: &str = ".version 7.4\n.target sm_75\n.address_size 64\n";

/// A kernel of one warp. Its body starts with `%base`, the start of the memory, and `%me`, the lane's own
/// word in it.
pub fn kernel(body: &str) -> String {
    format!(
        "{HEAD}.visible .entry k(\n.param .u64 .ptr .align 1 k_param_0\n)\n{{
        .reg .pred %p<4>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>, %base, %me;\n.reg .b32 %lane;
        ld.param.b64 %base, [k_param_0];
        mov.u32 %lane, %laneid;
        mul.wide.u32 %me, %lane, 8;
        add.s64 %me, %me, %base;
        {body}
        ret;\n}}"
    )
}

pub fn run(body: &str, words: &[u64], seed: Option<u64>) -> Result<Vec<u64>, Error> {
    let module = Module::parse(&kernel(body))?;
    let mut memory = Words::new(words);
    let params = memory.start.to_le_bytes();
    let launch =
        Launch { module: &module, entry: "k", params: &params, blocks: 1, block_size: 32, seed, races: true };
    launch.run(&mut memory)?;
    Ok(memory.words())
}

/// The result of one instruction on up to four sources, in registers as wide as its types.
pub fn result(instruction: &str, sources: &[u64]) -> u64 {
    let to = if instruction.starts_with("setp") { "%p1" } else { "%rd0" };
    let loads: String =
        (0..sources.len()).map(|i| format!("ld.global.b64 %rd{}, [%base+{}];\n", i + 1, 8 * i)).collect();
    let operands: Vec<String> = (1..=sources.len())
        .map(|i| if instruction.starts_with("selp") && i == 3 { "%p2".into() } else { format!("%rd{i}") })
        .collect();
    let body = format!(
        "{loads} setp.ne.b64 %p2, %rd3, 0; {instruction} {to}, {};
        {} setp.ne.u32 %p3, %lane, 0; @%p3 bra $end; st.global.b64 [%base+64], %rd0; $end: ",
        operands.join(", "),
        if to == "%p1" { "selp.b64 %rd0, 1, 0, %p1;" } else { "" },
    );
    let mut words = vec![0; 32];
    words[..sources.len()].copy_from_slice(sources);
    run(&body, &words, None).unwrap_or_else(|error| panic!("{instruction}: {error}"))[8]
}
