//! Sets the name by which programs link to the shared library: see `install.sh`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        let number = |name| std::env::var(name).unwrap_or_default();
        let (major, minor) = (number("CARGO_PKG_VERSION_MAJOR"), number("CARGO_PKG_VERSION_MINOR"));
        // Before 1.0 each minor version is an interface of its own, as in cargo.
        let interface = if major == "0" { format!("0.{minor}") } else { major };
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbowstring.so.{interface}");
    }
}
