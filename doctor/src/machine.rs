//! Reads what a machine says about itself: files of the kernel and of the drivers, and environment variables.
//! All of it goes through [`Machine`], so that a test can imitate any machine.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use bowstring::ffi::DeviceType;
use bowstring::internals::library_names;

/// The machine that the doctor looks at; a test can imitate one.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The folder that takes the place of `/`.
    pub root: PathBuf,
    /// Files to use as the libraries of a kind of GPU instead of those that the system finds by their names.
    pub libraries: Vec<(DeviceType, PathBuf)>,
    /// The environment variables of the process.
    pub variables: BTreeMap<String, String>,
    /// Tries to open a device's file for reading and writing.
    pub open: fn(&Path) -> io::Result<()>,
    /// How many rows its devices are measured with at most. It bounds the work of a test, which has no use
    /// for figures, where a budget would bound the time: then a busy machine would do less of the work.
    pub rows: usize,
}

/// A file through which a GPU is reached.
pub(super) struct DeviceFile {
    pub path: String,
    /// The error if this process may not open it.
    pub refused: Option<io::Error>,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn this() -> Machine {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Machine {
            root: "/".into(),
            libraries: vec![],
            variables: std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect(),
            open: |path| OpenOptions::new().read(true).write(true).open(path).map(drop),
            rows: usize::MAX,
        }
    }

    /// The file to use as the library of a kind of GPU; `None` for the installed one.
    pub(super) fn library(&self, runtime: DeviceType) -> Option<&Path> {
        self.libraries.iter().find(|(of, _)| *of == runtime).map(|(_, path)| &**path)
    }

    /// The names that the library is looked for by.
    pub(super) fn library_names(&self, runtime: DeviceType) -> Vec<PathBuf> {
        match self.library(runtime) {
            Some(path) => vec![path.to_owned()],
            None => library_names(runtime).iter().map(PathBuf::from).collect(),
        }
    }

    /// The text of a file; `None` if it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// The value of a name in a file of lines like `name: value`.
    pub(super) fn line(&self, path: &str, name: &str) -> Option<String> {
        let text = self.text(path)?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    }

    /// Bytes of memory: available, and total.
    pub(super) fn memory(&self) -> Option<(usize, usize)> {
        let kib = |name| self.line("proc/meminfo", name)?.trim_end_matches("kB").trim().parse::<usize>().ok();
        kib("MemAvailable").zip(kib("MemTotal")).map(|(free, all)| (free << 10, all << 10))
    }

    /// The sorted names in a folder that begin with `start`.
    pub(super) fn names(&self, folder: &str, start: &str) -> Vec<String> {
        let Ok(found) = fs::read_dir(self.root.join(folder)) else { return vec![] };
        let names = found.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
        names.sort();
        names
    }

    /// The value of an environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The files that exist of those through which a kind of GPU is reached.
    pub(super) fn device_files(&self, runtime: DeviceType) -> Vec<DeviceFile> {
        let names: Vec<String> = if runtime == DeviceType::Rocm {
            let render = self.names("dev/dri", "renderD").into_iter().map(|name| format!("dev/dri/{name}"));
            self.names("dev", "kfd").iter().map(|name| format!("dev/{name}")).chain(render).collect()
        } else {
            let is_one = |name: &String| {
                let rest = &name["nvidia".len()..];
                ["ctl", "-uvm"].contains(&rest) || rest.parse::<u32>().is_ok()
            };
            self.names("dev", "nvidia").into_iter().filter(is_one).map(|name| format!("dev/{name}")).collect()
        };
        let file = |path: String| {
            let refused = (self.open)(&self.root.join(&path)).err();
            DeviceFile { path: format!("/{path}"), refused }
        };
        names.into_iter().map(file).collect()
    }

    /// The version of the kernel's driver for a kind of GPU; `None` if it is not loaded.
    pub(super) fn kernel_driver(&self, runtime: DeviceType) -> Option<String> {
        if runtime == DeviceType::Rocm {
            let version = self.text("sys/module/amdgpu/version").map(|text| text.trim().to_owned());
            let loaded = self.root.join("sys/module/amdgpu").exists();
            return version.or_else(|| loaded.then(|| "the kernel's own".to_owned()));
        }
        let text = self.text("proc/driver/nvidia/version")?;
        let is_version =
            |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
        let version = text.lines().next().unwrap_or_default().split_whitespace().find(is_version);
        Some(version.unwrap_or("of no known version").to_owned())
    }

    /// The file that a library was loaded from, by its name.
    pub(super) fn loaded_from(&self, name: &Path) -> Option<String> {
        let name = name.file_name()?.to_str()?;
        let stem = name.split(".so").next().unwrap_or(name);
        let maps = self.text("proc/self/maps")?;
        let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
        let of_it = |path: &&str| {
            let file = path.rsplit('/').next().unwrap_or_default();
            file == name || file.starts_with(&format!("{stem}.so"))
        };
        paths.filter(|path| !path.ends_with(" (deleted)")).find(of_it).map(str::to_owned)
    }
}
