//! Tests which library is loaded of those that are installed by several names.

use std::path::Path;

use super::standin;
use crate::device::native::open::first_of;

/// A file that is no library, by a name of its own.
fn broken(name: &str) -> std::path::PathBuf {
    let file = std::env::temp_dir().join(format!("bowstring-{name}-{}.so", std::process::id()));
    std::fs::write(&file, "no library").unwrap();
    file
}

fn reason(of: &[&Path]) -> Option<String> {
    let names: Vec<&str> = of.iter().map(|path| path.to_str().unwrap()).collect();
    first_of(&names).map(drop).err()
}

#[test]
fn the_first_library_that_can_be_loaded_is_loaded() {
    let (one, other, good) = (broken("one"), broken("other"), standin());
    let absent = Path::new("libbowstring-is-not-there.so.1");
    assert_eq!(reason(&[absent, &one, &good]), None);
    assert_eq!(reason(&[&one, &other, absent, &good]), None);
    let said = |of: &[&Path], named: &Path| {
        let reason = reason(of).unwrap();
        assert!(reason.starts_with(&format!("{} was not loaded: ", named.display())), "{reason}");
    };
    // A library that is there says more than one that is not.
    said(&[absent, &one, &other], &one);
    said(&[&other, absent, &one], &other);
    said(&[absent, Path::new("libbowstring-neither.so.1")], absent);
    [one, other].iter().for_each(|file| std::fs::remove_file(file).unwrap());
}
