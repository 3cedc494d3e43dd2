//! Simulates machines in a bad state: folders that look like `/dev` and `/proc`, and small libraries with
//! CUDA's or HIP's functions, which answer as the real ones do in that state. The tests compile them, so they
//! need a C compiler and the sources.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use bowstring::ffi::DeviceType::{self, Cuda, Rocm};
use bowstring_doctor::{Machine, examine_machine};

use super::{ROWS, in_seconds, json};

/// A temporary folder of this test, removed when it is dropped.
pub(super) struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("bowstring-doctor-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Creates a folder with these files and contents.
    fn with(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::new();
        for (name, text) in files {
            let path = folder.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// Compiles a shared library from this source.
    pub fn library(&self, source: &str, flags: &[&str]) -> PathBuf {
        let (code, library) = (self.0.join("fake.c"), self.0.join("libfake.so"));
        fs::write(&code, source).unwrap();
        let compiler = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-o"])
            .arg(&library)
            .arg(&code)
            .args(flags)
            .status();
        assert!(compiler.expect("a C compiler").success(), "{source}");
        library
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The functions that the library looks up, extracted from its sources.
fn functions(runtime: DeviceType) -> Vec<String> {
    let (own, start) = if runtime == Cuda { ("cuda", "\"cu") } else { ("hip", "\"hip") };
    let files = ["native/table.rs".to_owned(), format!("{own}/mod.rs")];
    let text: String = files
        .iter()
        .map(|file| fs::read_to_string(format!("{}/host/device/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap())
        .collect();
    let names =
        text.split(start).skip(1).map(|rest| format!("{}{}", &start[1..], rest.split('"').next().unwrap()));
    let functions: BTreeSet<String> =
        names.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_')).collect();
    functions.into_iter().collect()
}

/// C code for all of these functions: they return 0, except for those with bodies given here. An empty body
/// omits the function.
pub(super) fn fake(runtime: DeviceType, bodies: &[(&str, &str)]) -> String {
    let function = |name: &String| {
        let own = bodies.iter().find(|(known, _)| known == name);
        match own {
            Some((_, "")) => String::new(),
            Some((_, body)) => format!("int {name}(int *a, void *b, void *c) {{ {body} }}\n"),
            // A newer version than any that is needed.
            None if name.ends_with("GetVersion") => {
                format!("int {name}(int *a) {{ *a = 99999999; return 0; }}\n")
            }
            None => format!("int {name}(void) {{ return 0; }}\n"),
        }
    };
    let all = functions(runtime);
    let unknown = bodies.iter().find(|(name, _)| !all.iter().any(|known| known == name));
    assert!(all.len() > 30 && unknown.is_none(), "{unknown:?} of {all:?}");
    format!("#include <unistd.h>\n{}", all.iter().map(function).collect::<String>())
}

fn allowed(_: &Path) -> io::Result<()> {
    Ok(())
}

fn refused(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::PermissionDenied.into())
}

/// A machine with these files and one library, and no library of the other kind.
fn machine(root: &Folder, runtime: DeviceType, library: &Path) -> Machine {
    let other = if runtime == Cuda { Rocm } else { Cuda };
    let libraries = vec![(runtime, library.to_owned()), (other, "/nowhere/lib.so".into())];
    Machine { root: root.0.clone(), libraries, variables: Default::default(), open: allowed, rows: ROWS }
}

/// Checks the reported state of the machine's GPU and the words of the report, for a state of the library or
/// of a device.
#[track_caller]
fn is_said(machine: &Machine, state: &str, words: &[&str]) {
    let report = examine_machine(machine, &in_seconds(0.05), &mut |_| ());
    let (found, page) = (json(&report), report.to_string());
    let which = machine.libraries[0].0;
    let library =
        found["libraries"].as_array().unwrap().iter().find(|one| one["runtime"] == which.to_string());
    let mut problem = &library.unwrap()["problem"];
    if problem.is_null() {
        problem = &found["devices"][1]["problems"][0];
    }
    assert_eq!(problem["state"], state, "{page}");
    for word in words {
        let said = problem["words"].as_str().unwrap();
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    assert!(page.contains(&format!("{state}: ")), "{page}");
    let is_absent = ["no driver", "not given to us"].contains(&state);
    assert_eq!(report.is_well(), is_absent, "{page}");
}

#[test]
fn no_library() {
    let nowhere = Path::new("/nowhere/libcuda.so.1");
    is_said(&machine(&Folder::new(), Cuda, nowhere), "no driver", &["no GPU of this kind"]);
    let devices = Folder::with(&[("dev/nvidia0", ""), ("dev/nvidiactl", "")]);
    is_said(&machine(&devices, Cuda, nowhere), "not given to us", &["/dev/nvidia0", "--gpus all", "compute"]);
    let driver = Folder::with(&[("proc/driver/nvidia/version", NVRM)]);
    is_said(&machine(&driver, Cuda, nowhere), "not given to us", &["535.104.05", "container"]);
    let amd = Folder::with(&[("dev/kfd", ""), ("dev/dri/renderD128", "")]);
    is_said(&machine(&amd, Rocm, nowhere), "not given to us", &["/dev/kfd", "--device /dev/dri"]);
}

const NVRM: &str =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n";

#[test]
fn a_library_that_is_none() {
    let root = Folder::with(&[(
        "libcuda.so.1",
        "no library at all, but long enough for somebody to have a look at it",
    )]);
    is_said(
        &machine(&root, Cuda, &root.0.join("libcuda.so.1")),
        "broken library",
        &["libcuda.so.1", "cannot be loaded"],
    );
    let lacking = root.library(
        "extern int nobody_has_this(void); int cuInit(void) { return nobody_has_this(); }",
        &["-Wl,-z,now"],
    );
    is_said(&machine(&root, Cuda, &lacking), "broken library", &["nobody_has_this"]);
    // It is there, and a library that it needs is not.
    let (root, elsewhere) = (Folder::new(), Folder::new());
    let needed = elsewhere.library("int needed(void) { return 0; }", &["-Wl,-soname,libneeded.so.2"]);
    let code = "int needed(void); int cuInit(void) { return needed(); }";
    let lacking = root.library(code, &[needed.to_str().unwrap()]);
    is_said(&machine(&root, Cuda, &lacking), "broken library", &["libneeded.so.2", "cannot be loaded"]);
    let root = Folder::new();
    let other = root.library("int something_else(void) { return 0; }", &[]);
    is_said(&machine(&root, Cuda, &other), "broken library", &["no cuInit", "has its name"]);
    let root = Folder::new();
    let stub = root.library(&fake(Cuda, &[("cuInit", "return 34;")]), &[]);
    is_said(&machine(&root, Cuda, &stub), "broken library", &["stub", "LD_LIBRARY_PATH"]);
}

#[test]
fn a_missing_library_is_told_from_a_missing_part_of_it() {
    let is_absent = |why: &str| bowstring::internals::is_absent("libcuda.so.1".as_ref(), why);
    let glibc = |name: &str| format!("{name}: cannot open shared object file: No such file or directory");
    let musl = |name: &str| format!("Error loading shared library {name}: No such file or directory");
    let macos = |name: &str| format!("dlopen({name}, 0x0005): tried: '{name}' (no such file)");
    for words in [glibc, musl, macos] {
        assert!(is_absent(&words("libcuda.so.1")), "{}", words("libcuda.so.1"));
        assert!(!is_absent(&words("libcuda.so.1.2")), "{}", words("libcuda.so.1.2"));
    }
    assert!(!is_absent(&format!("{} (needed by libcuda.so.1)", musl("libc.so"))));
    let loaded = "dlopen(libcuda.so.1, 0x0005): Library not loaded: x.dylib, tried: 'x.dylib' (no such file)";
    assert!(!is_absent(loaded));
}

#[test]
fn a_driver_that_is_too_old() {
    let root = Folder::with(&[("proc/driver/nvidia/version", NVRM)]);
    let silent = ("cuDriverGetVersion", "return 1;");
    let old = root.library(&fake(Cuda, &[("cuMemAllocFromPoolAsync", ""), silent]), &[]);
    is_said(&machine(&root, Cuda, &old), "driver too old", &["cuMemAllocFromPoolAsync", "470", "535.104.05"]);
    // A library that reports its version has it in the report.
    let root = Folder::new();
    let says = ("cuDriverGetVersion", "*a = 11000; return 0;");
    let old = root.library(&fake(Cuda, &[("cuMemAllocFromPoolAsync", ""), says]), &[]);
    is_said(
        &machine(&root, Cuda, &old),
        "driver too old",
        &["no cuMemAllocFromPoolAsync, and is CUDA 11.0", "470"],
    );
    let root = Folder::new();
    let says = ("hipRuntimeGetVersion", "*a = 50731921; return 0;");
    let old = root.library(&fake(Rocm, &[("hipGetDevicePropertiesR0600", ""), says]), &[]);
    is_said(&machine(&root, Rocm, &old), "driver too old", &["and is HIP 5.7", "ROCm 6"]);
    // A newer library may lack a function because it was removed.
    let root = Folder::new();
    let says = ("cuDriverGetVersion", "*a = 15000; return 0;");
    let new = root.library(&fake(Cuda, &[("cuStreamAddCallback", ""), says]), &[]);
    is_said(
        &machine(&root, Cuda, &new),
        "failed",
        &["CUDA 15.0", "no cuStreamAddCallback", "newer bowstring"],
    );
    let root = Folder::new();
    let one = ("cuDeviceGetCount", "*a = 1; return 0;");
    let old = root.library(&fake(Cuda, &[one, ("cuDriverGetVersion", "*a = 11020; return 0;")]), &[]);
    is_said(&machine(&root, Cuda, &old), "driver too old", &["CUDA 11.4", "driver 470", "this is CUDA 11.2"]);
    let root = Folder::new();
    let other = root.library(&fake(Cuda, &[("cuInit", "return 803;")]), &[]);
    is_said(&machine(&root, Cuda, &other), "driver too old", &["do not fit together", "803"]);
}

/// A library that finds no device: its initialisation fails, or it counts none.
fn finds_none(root: &Folder, runtime: DeviceType) -> PathBuf {
    let (init, body) =
        if runtime == Cuda { ("cuInit", "return 100;") } else { ("hipGetDeviceCount", "*a = 0; return 0;") };
    root.library(&fake(runtime, &[(init, body)]), &[])
}

#[test]
fn no_device_and_why() {
    let empty = Folder::new();
    let library = finds_none(&empty, Cuda);
    is_said(&machine(&empty, Cuda, &library), "no driver", &["100"]);

    let files = &[("dev/nvidia0", ""), ("dev/nvidiactl", ""), ("proc/driver/nvidia/version", NVRM)];
    let root = Folder::with(files);
    let mut has = machine(&root, Cuda, &library);
    is_said(&has, "failed", &["/dev/nvidia0", "MIG mode"]);
    has.open = refused;
    is_said(&has, "no permission", &["/dev/nvidia0", "permission denied", "/dev/nvidiactl"]);
    has.variables.insert("CUDA_VISIBLE_DEVICES".into(), "7".into());
    is_said(&has, "no permission", &["/dev/nvidia0", "CUDA_VISIBLE_DEVICES is \"7\""]);
    has.open = allowed;
    is_said(&has, "hidden by a variable", &["CUDA_VISIBLE_DEVICES is \"7\""]);

    let parts = "proc/driver/nvidia/capabilities/gpu0/mig";
    let root = Folder::with(&[
        ("dev/nvidia0", ""),
        (&format!("{parts}/gi1/access"), ""),
        (&format!("{parts}/gi2/access"), ""),
    ]);
    is_said(&machine(&root, Cuda, &library), "MIG", &["2 MIG instances", "nvidia-smi -L"]);

    let root = Folder::with(&files[2..]);
    is_said(&machine(&root, Cuda, &library), "not given to us", &["535.104.05", "--gpus"]);

    let root = Folder::with(&[("dev/kfd", ""), ("dev/dri/renderD128", "")]);
    let library = finds_none(&root, Rocm);
    let has = Machine { open: refused, ..machine(&root, Rocm, &library) };
    is_said(&has, "no permission", &["/dev/kfd", "/dev/dri/renderD128", "render,video"]);
}

#[test]
fn a_device_that_cannot_be_used_now() {
    for (code, state, words) in [
        (2, "out of memory", "nvidia-smi"),
        (46, "in use", "exclusive mode"),
        (802, "not ready", "fabric manager"),
        (999, "not ready", "nvidia-uvm"),
    ] {
        let root = Folder::new();
        let library = root.library(&fake(Cuda, &[("cuInit", &format!("return {code};"))]), &[]);
        is_said(&machine(&root, Cuda, &library), state, &[words, &code.to_string()]);
    }
    for (code, state, words) in [
        (3, "failed", "forked"),
        (4, "failed", "reset"),
        (209, "driver too old", "470"),
        (218, "failed", "compiler"),
        (221, "broken library", "libnvidia-ptxjitcompiler.so.1"),
        (222, "driver too old", "470"),
        (223, "switched off by a variable", "CUDA_DISABLE_PTX_JIT is \"1\""),
    ] {
        let root = Folder::new();
        let refused = ("cuDevicePrimaryCtxRetain", &*format!("return {code};"));
        let one = ("cuDeviceGetCount", "*a = 1; return 0;");
        let newest = ("cuDeviceGetAttribute", "*a = 9; return 0;");
        let library = root.library(&fake(Cuda, &[one, newest, refused]), &[]);
        let mut has = machine(&root, Cuda, &library);
        has.variables.insert("CUDA_DISABLE_PTX_JIT".into(), "1".into());
        is_said(&has, state, &[words, &code.to_string()]);
    }
    let one = ("cuDeviceGetCount", "*a = 1; return 0;");
    let newest = ("cuDeviceGetAttribute", "*a = 9; return 0;");
    let root = Folder::new();
    let full = root.library(&fake(Cuda, &[one, newest, ("cuDevicePrimaryCtxRetain", "return 2;")]), &[]);
    is_said(&machine(&root, Cuda, &full), "out of memory", &["cuDevicePrimaryCtxRetain", "other processes"]);
    let root = Folder::new();
    let old = root.library(&fake(Cuda, &[one, ("cuDeviceGetAttribute", "*a = 6; return 0;")]), &[]);
    is_said(&machine(&root, Cuda, &old), "no kernels for it", &["compute capability 6.6", "Turing"]);
}

/// A device that never completes a call.
#[test]
fn a_device_that_does_not_answer_is_left_alone() {
    let root = Folder::new();
    let hangs = [
        ("cuDeviceGetCount", "*a = 1; return 0;"),
        ("cuDeviceGetAttribute", "*a = 9; return 0;"),
        ("cuMemGetInfo_v2", "for (;;) sleep(1);"),
    ];
    let library = root.library(&fake(Cuda, &hangs), &[]);
    is_said(&machine(&root, Cuda, &library), "failed", &["no answer after", "in: opening", "left alone"]);
}
