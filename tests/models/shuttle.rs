//! Turns the one switch on: see `lab/parts/src/sync.rs`.

pub fn main() {
    println!("cargo::rustc-check-cfg=cfg(shuttle)");
    println!("cargo::rustc-check-cfg=cfg(sanitized)");
    println!("cargo::rustc-cfg=shuttle");
}
