//! Loading kernels before they are needed.

use std::fmt;
use std::str::FromStr;

use bowstring_kernels::every_entry;

use crate::threads::{among_threads, each_part};
use crate::{Device, Error, Result};

/// Operations whose kernels [`Device::prepare`] loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernels {
    /// Filters: [`filter`](crate::compute::filter()) and [`Selection`](crate::compute::Selection).
    Filter,
    /// Moves of rows: [`take`](crate::compute::take()) and [`concat`](crate::compute::concat()).
    Take,
    /// [`cast`](crate::compute::cast()) between numbers, decimals, times, lists and their like.
    Cast,
    /// [`cast`](crate::compute::cast()) from text and to text. If the text is inside of lists, structs or
    /// dictionaries, those of [`Cast`](Kernels::Cast) too.
    Text,
    /// [`evaluate`](crate::compute::evaluate), [`filter_where`](crate::compute::filter_where) and
    /// [`aggregate`](crate::compute::aggregate), without the kernels of their casts.
    Expressions,
    /// Sorts: [`sort_by`](crate::compute::sort_by) and [`rank`](crate::compute::rank).
    Sort,
    /// Groups: [`Query::group_by`](crate::compute::Query::group_by) and
    /// [`distinct`](crate::compute::distinct).
    Group,
    /// Joins of batches, as [`join`](crate::compute::join()) and streams do them.
    Join,
}

impl Kernels {
    /// The kernels of every operation.
    pub const ALL: [Kernels; 8] = [
        Kernels::Filter,
        Kernels::Take,
        Kernels::Cast,
        Kernels::Text,
        Kernels::Expressions,
        Kernels::Sort,
        Kernels::Group,
        Kernels::Join,
    ];

    /// The name that C and Python use.
    pub fn name(self) -> &'static str {
        match self {
            Kernels::Filter => "filter",
            Kernels::Take => "take",
            Kernels::Cast => "cast",
            Kernels::Text => "text",
            Kernels::Expressions => "expressions",
            Kernels::Sort => "sort",
            Kernels::Group => "group",
            Kernels::Join => "join",
        }
    }

    /// The families of kernels that the operations launch for some type, besides the [`USUAL`] ones.
    fn families(self) -> &'static [&'static str] {
        match self {
            Kernels::Filter => &["filter", "filter_few", "filter_small"],
            Kernels::Take => &["take", "concat", "nulls", "offsets"],
            Kernels::Cast => &[
                "cast",
                "cast_down",
                "cast_float",
                "cast_of_decimal",
                "cast_scale",
                "cast_time",
                "cast_to_decimal",
                "cast_up",
                "bitmap",
                "offsets",
                "take",
                "views",
            ],
            Kernels::Text => {
                &["print", "read", "utf8", "write", "zone", "bitmap", "offsets", "take", "views"]
            }
            Kernels::Expressions => {
                &["program", "arithmetic", "text", "filter", "filter_small", "bitmap", "offsets", "take"]
            }
            Kernels::Sort => &["sort", "bitmap", "concat", "offsets", "take", "views"],
            Kernels::Group => &[
                "group",
                "sort",
                "program",
                "arithmetic",
                "cast_up",
                "bitmap",
                "concat",
                "offsets",
                "take",
                "views",
            ],
            Kernels::Join => &["join", "group", "sort", "bitmap", "concat", "offsets", "take", "views"],
        }
    }
}

/// The families that nearly every operation launches for some type.
const USUAL: [&str; 5] = ["copy", "ranges", "scan", "selection", "structure"];

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kernels {
    type Err = Error;

    fn from_str(name: &str) -> Result<Kernels> {
        let found = Kernels::ALL.into_iter().find(|kernels| kernels.name() == name);
        found.ok_or_else(|| {
            let all = Kernels::ALL.map(Kernels::name).join(", ");
            Error::invalid("prepare", format!("no kernels have the name {name:?}; there are {all}"))
        })
    }
}

impl Device {
    /// Loads the kernels of operations, and returns how many images that took. Otherwise each kernel is
    /// loaded when an operation first needs it, which takes the operation 10 to 500 ms on CUDA unless the
    /// driver finds what it has compiled before in its cache on disk. Blocks, and uses as many threads as the
    /// CPU path. The emulator and the CPU have no images.
    pub fn prepare(&self, kernels: &[Kernels]) -> Result<usize> {
        let Some(gpu) = self.as_gpu() else { return Ok(0) };
        let before = self.images_loaded().len();
        let wanted = |family: &str| {
            let is_usual = !kernels.is_empty() && USUAL.contains(&family);
            is_usual || kernels.iter().any(|kernels| kernels.families().contains(&family))
        };
        let architecture = gpu.driver().architecture();
        let entries = every_entry().filter(|entry| {
            let is_built = architecture.is_none_or(|name| entry.makers().include(name));
            is_built && wanted(entry.family())
        });
        let entries: Vec<_> = entries.collect();
        among_threads(entries.len() > 1, |_| {
            let loaded = each_part(entries, |entry| gpu.entry(entry.family(), entry.name()).map(|_| ()))?;
            loaded.into_iter().collect::<Result<()>>()
        })?;
        Ok(self.images_loaded().len() - before)
    }
}
