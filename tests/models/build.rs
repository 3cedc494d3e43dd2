//! Embeds the images as the library's build script does, and turns shuttle's switch on.

#[allow(dead_code, reason = "its `main` is for the library")]
#[path = "../../build.rs"]
mod library;
mod shuttle;

fn main() {
    library::embed(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    shuttle::main();
}
