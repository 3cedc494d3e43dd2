//! The device images that are built in: see `build.rs`, which makes the table.

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// The image of a kernel family for an architecture.
pub(super) fn find(family: &str, architecture: &str) -> Option<&'static [u8]> {
    let found = IMAGES.iter().find(|(of, on, _)| *of == family && *on == architecture);
    found.map(|(_, _, bytes)| *bytes)
}

/// Every family that there is an image of for an architecture.
#[cfg(test)]
pub(super) fn families(architecture: &str) -> impl Iterator<Item = &'static str> {
    IMAGES.iter().filter(move |(_, on, _)| *on == architecture).map(|(of, ..)| *of)
}

/// Every architecture that there are images for.
pub(super) fn architectures() -> impl Iterator<Item = &'static str> {
    IMAGES.iter().map(|(_, on, _)| *on)
}
