//! L1: the compiled kernels, embedded: for each kernel family an archive with an image for each
//! architecture. `build.rs` writes the tables. **Not part of the public API**: hidden from the documentation,
//! for the doctor and for tests.
//!
//! The one idea: an image is inflated when it is first requested, once in the life of the process, and stays
//! in memory. A machine runs one architecture and few families, so nearly everything stays compressed.

use std::io::Read;
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// An architecture that images are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// The name that compilers use.
    pub name: &'static str,
    /// The number of lanes in a wave.
    pub lanes: u32,
    /// The first version, major and minor, of CUDA or ROCm that loads these images.
    pub since: (i32, i32),
    /// The names that compatible GPUs report; empty for NVIDIA's, because all of those run these images.
    pub gpus: &'static [&'static str],
    /// A description of the machines, for people.
    pub machines: &'static str,
}

/// The architecture whose images an AMD GPU runs, by the name that the GPU reports: the GPU's own, or the
/// generic one of its family. Features after a colon are ignored. Only known names match: gfx1250, say, does
/// not run gfx12-generic.
pub fn architecture_of(gpu: &str) -> Option<&'static Architecture> {
    let name = gpu.split(':').next().unwrap_or_default();
    ARCHITECTURES.iter().find(|architecture| architecture.gpus.contains(&name))
}

/// Finds an architecture by its name.
pub fn architecture(name: &str) -> Option<&'static Architecture> {
    ARCHITECTURES.iter().find(|architecture| architecture.name == name)
}

/// One image: its compressed bytes, and its inflated contents once they were requested.
struct Image {
    family: &'static str,
    architecture: &'static str,
    /// The compressed bytes, in the format of an `.lzma` file.
    packed: &'static [u8],
    contents: OnceLock<Option<Vec<u8>>>,
}

impl Image {
    /// The member of an archive with this start and length.
    const fn new(
        family: &'static str,
        architecture: &'static str,
        archive: &'static [u8],
        start: usize,
        bytes: usize,
    ) -> Image {
        let packed = archive.split_at(start).1.split_at(bytes).0;
        Image { family, architecture, packed, contents: OnceLock::new() }
    }

    /// Inflates the image; `None` if it is damaged.
    fn inflated(&self) -> Option<Vec<u8>> {
        // The archives use a window of 4 MiB; the limit protects against bytes that only look like ours.
        const LIMIT_KIB: u32 = 16 << 10;
        let mut reader = lzma_rust2::LzmaReader::new_mem_limit(self.packed, LIMIT_KIB, None).ok()?;
        let mut contents = Vec::new();
        reader.read_to_end(&mut contents).ok()?;
        Some(contents)
    }
}

/// The image of a kernel family for an architecture: PTX text, or an ELF file. The first call for an image
/// inflates it, which takes at most 20 ms.
pub fn find(family: &str, architecture: &str) -> Option<&'static [u8]> {
    let image = IMAGES.iter().find(|image| image.family == family && image.architecture == architecture)?;
    image.contents.get_or_init(|| image.inflated()).as_deref()
}

/// The family and architecture of every image.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    IMAGES.iter().map(|image| (image.family, image.architecture))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_inflates_once() {
        for (family, architecture) in names() {
            let image =
                find(family, architecture).unwrap_or_else(|| panic!("{family}.{architecture} is damaged"));
            let start: &[u8] = if architecture.starts_with("sm_") { b"//\n" } else { b"\x7fELF" };
            assert!(image.starts_with(start), "{family}.{architecture}");
            assert!(std::ptr::eq(image, find(family, architecture).unwrap()));
        }
        assert_eq!((find("no such family", "sm_75"), find("take", "sm_1")), (None, None));
    }

    #[test]
    fn every_image_is_for_an_architecture_of_the_list() {
        let of = |name: &str| names().filter(|(_, architecture)| *architecture == name).count();
        let listed = ARCHITECTURES.iter().map(|architecture| of(architecture.name));
        assert!(listed.clone().all(|images| images > 0), "one without images: {ARCHITECTURES:?}");
        assert_eq!(listed.sum::<usize>(), names().count());
    }

    #[test]
    fn damage_is_no_image_and_no_panic() {
        let whole = IMAGES.iter().find(|image| image.family == "scan").unwrap();
        for cut in [0, 5, 13, 100, whole.packed.len() / 2, whole.packed.len() - 1] {
            let cut = Image::new("scan", "cut off", whole.packed, 0, cut);
            assert_ne!(cut.inflated(), whole.inflated());
        }
        // This header requests a window of 4 GiB.
        let greedy: &[u8] = &[0x5d, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Image::new("scan", "greedy", greedy, 0, greedy.len()).inflated(), None);
    }
}
