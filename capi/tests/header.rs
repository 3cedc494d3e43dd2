//! Checks that the checked-in header is what cbindgen makes of the source, and that it declares what its
//! comments name; `tools/bless header` writes it.

use std::collections::BTreeSet;

/// The names of ours in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = |word: &&str| ["Bowstring", "BOWSTRING_", "bowstring_"].iter().any(|of| word.starts_with(of));
    words.filter(ours).collect()
}

#[test]
fn header() {
    let root = env!("CARGO_MANIFEST_DIR");
    let config = cbindgen::Config::from_root_or_default(root);
    let mut fresh = vec![];
    let bindings = cbindgen::Builder::new().with_crate(root).with_config(config).generate();
    bindings.expect("the header can be generated").write(&mut fresh);
    // C has no `# Safety` sections.
    let fresh = String::from_utf8(fresh).expect("the header is text").replace("// # Safety\n//\n", "");
    let path = format!("{root}/include/bowstring.h");
    if std::env::var_os("BOWSTRING_BLESS").is_some() {
        std::fs::write(&path, &fresh).expect("the header can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == fresh, "include/bowstring.h is stale: tools/bless header");

    let is_comment = |line: &&str| ["//", "/*", "* "].iter().any(|mark| line.trim_start().starts_with(mark));
    let (comments, code): (Vec<&str>, Vec<&str>) = kept.lines().partition(is_comment);
    let (comments, code) = (comments.join("\n"), code.join("\n"));
    let declared = names(&code);
    let missing: Vec<&str> = names(&comments).into_iter().filter(|name| !declared.contains(name)).collect();
    assert!(missing.is_empty(), "comments of include/bowstring.h name what it does not declare: {missing:?}");
}
