//! Checks that the checked-in header is what cbindgen makes of the source; `tools/bless header` writes it.

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
}
