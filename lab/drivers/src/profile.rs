//! The versions of CUDA and HIP that the stand-in can imitate, with what each accepts and refuses.
//!
//! `BOWSTRING_STANDIN=cuda-11.4,hip-6.3` selects profiles for a process, for either runtime or both; a test
//! selects them for its thread. The name `no-pools` selects devices that allocate no memory in stream order,
//! like some virtual GPUs.
//!
//! No version lacks a function: the stand-in exports those that the library asks for, and CUDA 11.4 and HIP
//! 6.0 have them all. The doctor's tests invent libraries that lack some.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::Duration;

/// A version of CUDA's driver.
pub struct Cuda {
    name: &'static str,
    /// The version that `cuDriverGetVersion` gives.
    pub version: i32,
    /// The newest PTX that it compiles.
    pub ptx: (u32, u32),
}

/// A version of HIP.
pub struct Hip {
    name: &'static str,
    /// The version that `hipRuntimeGetVersion` gives.
    pub version: i32,
    /// The newest version of code objects that it loads, as in their ELF header: version 5 is 3, version 6 is
    /// 4.
    pub abi: u8,
    /// The generic architectures whose code it loads.
    pub generic: &'static [&'static str],
    /// How long after the return of `hipMallocAsync` the memory exists.
    pub late: Duration,
}

const CUDA: [Cuda; 4] = [
    Cuda { name: "cuda-11.2", version: 11_020, ptx: (7, 2) },
    Cuda { name: "cuda-11.4", version: 11_040, ptx: (7, 4) },
    Cuda { name: "cuda-12.2", version: 12_020, ptx: (8, 2) },
    Cuda { name: "cuda-13", version: 13_000, ptx: (9, 0) },
];

const V5: u8 = 3;
const V6: u8 = 4;
const GENERIC: &[&str] = &["gfx9-4-generic", "gfx10-3-generic", "gfx11-generic", "gfx12-generic"];
const AT_ONCE: Duration = Duration::ZERO;

const HIP: [Hip; 5] = [
    Hip { name: "hip-6.0", version: 60_032_830, abi: V5, generic: &[], late: AT_ONCE },
    Hip { name: "hip-6.3", version: 60_342_131, abi: V6, generic: &[], late: AT_ONCE },
    Hip { name: "hip-6.4", version: 60_443_482, abi: V6, generic: GENERIC, late: AT_ONCE },
    Hip { name: "hip-7.2", version: 70_226_015, abi: V6, generic: GENERIC, late: Duration::from_millis(2) },
    // Windows has another loader, which learnt two names later.
    Hip {
        name: "hip-windows",
        version: 70_125_424,
        abi: V6,
        generic: &["gfx10-3-generic", "gfx11-generic"],
        late: AT_ONCE,
    },
];

/// The GPUs that run the code of each generic architecture, according to AMD's compiler.
const RUNS: [(&str, &[&str]); 4] = [
    ("gfx9-4-generic", &["gfx942", "gfx950"]),
    ("gfx10-3-generic", &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    (
        "gfx11-generic",
        &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

/// The meaning of a list of names: the indices of profiles in the tables, if any, and whether devices
/// allocate no memory in stream order.
#[derive(Clone, Copy, Default)]
struct Chosen {
    cuda: Option<usize>,
    hip: Option<usize>,
    no_pools: bool,
}

thread_local! {
    static CHOSEN: Cell<Chosen> = Cell::default();
    static GPU: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The choice for the process.
static USUAL: LazyLock<Chosen> = LazyLock::new(|| {
    let named = std::env::var("BOWSTRING_STANDIN").unwrap_or_default();
    chosen(&named).unwrap_or_else(|name| panic!("BOWSTRING_STANDIN: there is no {name:?}"))
});

/// The index of the profiles without any choice: CUDA 12.2, HIP 6.4.
const USUAL_VERSION: usize = 2;

/// Reads names with commas between them; on failure returns the unknown name.
fn chosen(names: &str) -> Result<Chosen, String> {
    let mut chosen = Chosen::default();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let cuda = CUDA.iter().position(|profile| profile.name == name);
        let hip = HIP.iter().position(|profile| profile.name == name);
        let no_pools = name == "no-pools";
        if cuda.or(hip).is_none() && !no_pools {
            return Err(name.to_owned());
        }
        let before = chosen;
        chosen = Chosen {
            cuda: cuda.or(before.cuda),
            hip: hip.or(before.hip),
            no_pools: no_pools || before.no_pools,
        };
    }
    Ok(chosen)
}

/// The version of CUDA that this thread sees.
pub fn cuda() -> &'static Cuda {
    &CUDA[CHOSEN.get().cuda.or(USUAL.cuda).unwrap_or(USUAL_VERSION)]
}

/// The version of HIP that this thread sees.
pub fn hip() -> &'static Hip {
    &HIP[CHOSEN.get().hip.or(USUAL.hip).unwrap_or(USUAL_VERSION)]
}

/// Whether the devices that this thread sees allocate memory in stream order.
pub fn pools() -> bool {
    !CHOSEN.get().no_pools && !USUAL.no_pools
}

/// The name that every AMD GPU has for this thread, if a test has set one.
pub fn gpu() -> Option<&'static str> {
    GPU.get()
}

/// Sets what this thread sees from now on; empty texts select the defaults. Returns whether the profiles
/// exist.
pub fn be(profiles: &str, gpu: &str) -> bool {
    GPU.set((!gpu.is_empty()).then(|| &*gpu.to_owned().leak()));
    let Ok(profiles) = chosen(profiles) else { return false };
    CHOSEN.set(profiles);
    true
}

impl Cuda {
    /// Whether it compiles a text of the PTX version that the text names.
    pub fn takes(&self, ptx: &str) -> bool {
        let version = ptx.lines().find_map(|line| line.strip_prefix(".version ")).and_then(|version| {
            let (major, minor) = version.trim().split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        version.is_none_or(|version: (u32, u32)| version <= self.ptx)
    }
}

impl Hip {
    /// Whether it loads code of this version and architecture on a GPU of this name.
    pub fn takes(&self, abi: u8, target: &str, gpu: &str) -> bool {
        let gpu = gpu.split(':').next().unwrap_or_default();
        let generic = RUNS.iter().find(|(name, _)| *name == target);
        let runs =
            generic.map_or(target == gpu, |(name, runs)| self.generic.contains(name) && runs.contains(&gpu));
        abi <= self.abi && runs
    }
}
