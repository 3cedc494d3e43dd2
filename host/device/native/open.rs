//! Finding a runtime's library, and opening its devices.

use std::collections::HashMap;
use std::error::Error as _;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use super::codes::{SUCCESS, UNKNOWN, outcome, refused};
use super::modules::Modules;
use super::table::{Code, Common, Table};
use super::{Found, Native, Runtime};
use crate::device::handles::Source;
use crate::device::sync::Mutex;
use crate::device::{Device, Inner, lock};
use crate::{Error, Result};

/// The library of a runtime: the installed one or a file.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Library<'a> {
    /// The library that the system finds by the runtime's names.
    Installed,
    /// The library in this file.
    At(&'a Path),
}

/// The libraries and devices of a runtime that this process has opened. Opening a device again gives the same
/// one.
pub(in super::super) struct Opened<R: Runtime> {
    libraries: Mutex<HashMap<Option<PathBuf>, &'static Found<R>>>,
    devices: Mutex<HashMap<Key, Known<R>>>,
}

/// A library's file (`None` is the installed one), and a device's number.
type Key = (Option<PathBuf>, i64);

/// A device that was opened before, and its handle while one exists.
struct Known<R: Runtime> {
    driver: Arc<Native<R>>,
    device: Weak<Inner>,
}

impl<R: Runtime> Opened<R> {
    /// Makes a registry with nothing opened.
    pub const fn new() -> LazyLock<Opened<R>> {
        LazyLock::new(|| Opened { libraries: Mutex::default(), devices: Mutex::default() })
    }

    /// Opens a device of a library; [`Error::NoDevice`] says why it cannot be used.
    pub fn device(&self, library: Library<'_>, number: i64) -> Result<Device> {
        let path = library.path();
        let found = self.found(library)?;
        let mut devices = lock(&self.devices);
        let known = devices.get(&(path.clone(), number));
        if let Some(device) = known.and_then(|known| Device::upgrade(&known.device)) {
            return Ok(device);
        }
        let driver = match known {
            Some(known) => known.driver.clone(),
            None => Arc::new(Native::open(found, number)?),
        };
        let device = Device::behind(driver.clone(), Source::Driver, None)?;
        devices.insert((path, number), Known { driver, device: device.downgrade() });
        Ok(device)
    }

    /// The number of devices that a library finds.
    pub fn count(&self, library: Library<'_>) -> Result<usize> {
        let (found, mut count) = (self.found(library)?, 0);
        let function = &found.common.device_count;
        // SAFETY: the function writes a number.
        let made = outcome(function.name, unsafe { (function.call)(&mut count) });
        made.map_err(|failure| {
            R::forget_error(found);
            none::<R>(&refused(failure))
        })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The functions of a library, which is loaded at its first use.
    pub fn found(&self, library: Library<'_>) -> Result<&'static Found<R>> {
        let mut libraries = lock(&self.libraries);
        if let Some(found) = libraries.get(&library.path()) {
            return Ok(found);
        }
        // A failure may pass, once a service runs.
        let found = Found::load(library)?;
        libraries.insert(library.path(), found);
        Ok(found)
    }
}

impl Library<'_> {
    fn path(self) -> Option<PathBuf> {
        match self {
            Library::Installed => None,
            Library::At(path) => Some(path.to_owned()),
        }
    }
}

fn load(path: &Path) -> std::result::Result<libloading::Library, String> {
    // SAFETY: loading a GPU runtime's library runs its initialisers, which are meant to run then.
    let opened = unsafe { libloading::Library::new(path) };
    opened.map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

/// The file of a runtime's library that this process has loaded already: PyTorch's packages bring their own,
/// and the handles of one copy mean nothing to another. `None` if there is none, or the system does not say.
fn mapped(names: &[&str]) -> Option<PathBuf> {
    let is_one = |path: &&Path| {
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let mut stems = names.iter().filter_map(|name| Some(&name[..name.find(".so")? + 3]));
        stems.any(|stem| file.starts_with(stem))
    };
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    // The path is the sixth column, and may have blanks.
    let mut paths = maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
    paths.find(is_one).map(Path::to_owned)
}

/// The reason why a library of this name, or at this path, cannot be loaded; `None` if it can.
pub fn why_not(path: &Path) -> Option<String> {
    load(path).err()
}

/// Whether the reason why a library was not loaded is that there is none of this name. If another one is
/// missing that it needs, the reason names that one.
pub fn is_absent(path: &Path, why: &str) -> bool {
    let name = path.display().to_string();
    // In the words of the loaders of glibc, musl and macOS.
    let own = why.starts_with(&format!("{name}: "))
        || why.contains(&format!(" {name}: "))
        || why.contains(&format!("({name}, "));
    let needed = ["needed by", "Library not loaded"].iter().any(|words| why.contains(words));
    let missing = ["No such file", "no such file", "image not found"].iter().any(|words| why.contains(words));
    own && missing && !needed
}

/// Loads the first library of these names that can be loaded. Otherwise the error gives the reason for the
/// first that is there, or for the first. A name that is another system's may count as there, because not
/// all loaders say which file is missing.
pub(super) fn first_of(names: &[&str]) -> std::result::Result<libloading::Library, String> {
    let mut reasons = vec![];
    for name in names.iter().map(Path::new) {
        match load(name) {
            Ok(library) => return Ok(library),
            Err(why) => reasons.push((name, why)),
        }
    }
    let there = reasons.iter().find(|(name, why)| !is_absent(name, why));
    let reason = there.or(reasons.first());
    Err(reason.map_or_else(String::new, |(name, why)| format!("{} was not loaded: {why}", name.display())))
}

fn none<R: Runtime>(reason: &str) -> Error {
    Error::NoDevice { device: R::DEVICE, reason: reason.into() }
}

/// Why a library that has no function of a name is of no use to us, with its version where it says that.
fn lacks<R: Runtime>(library: &libloading::Library, function: &str) -> String {
    let mut number = 0;
    // SAFETY: the name is the runtime's, whose function has this type and writes a number.
    let said = unsafe {
        let version = library.get::<unsafe extern "C" fn(*mut i32) -> Code>(R::VERSION.as_bytes());
        version.is_ok_and(|version| version(&mut number) == SUCCESS && number > 0)
    };
    let (has, least) = (R::version_of(number), R::LEAST);
    let has = format!("this is {} {}.{}", R::NAME, has.0, has.1);
    match said {
        false => format!("the driver is too old: it has no {function}"),
        true if R::version_of(number) < least => {
            format!(
                "the driver is too old: {} {}.{} is needed, and {has}; it has no {function}",
                R::NAME,
                least.0,
                least.1
            )
        }
        true => format!("{has}, {UNKNOWN}: it has no {function}"),
    }
}

impl<R: Runtime> Found<R> {
    /// Loads a library and initialises the runtime.
    fn load(library: Library<'_>) -> Result<&'static Found<R>> {
        let open = |path: &Path| {
            load(path).map_err(|why| none::<R>(&format!("{} was not loaded: {why}", path.display())))
        };
        let library = match library {
            Library::At(path) => open(path),
            Library::Installed => match mapped(R::LIBRARIES).and_then(|path| open(&path).ok()) {
                Some(library) => Ok(library),
                None => first_of(R::LIBRARIES).map_err(|reason| none::<R>(&reason)),
            },
        }?;
        let too_old = |name| none::<R>(&lacks::<R>(&library, name));
        // SAFETY: the names are the runtime's, whose functions have these types; `Found` is never dropped.
        let (common, own) = unsafe {
            let common = Common::find(&library, R::COLUMN).map_err(too_old)?;
            (common, R::Own::find(&library, 0).map_err(too_old)?)
        };
        // SAFETY: the function only takes flags, of which there are none.
        let made = outcome(common.init.name, unsafe { (common.init.call)(0) });
        made.map_err(|failure| none::<R>(&refused(failure)))?;
        Ok(Box::leak(Box::new(Found { common, own, _library: library })))
    }
}

impl<R: Runtime> Native<R> {
    fn open(found: &'static Found<R>, number: i64) -> Result<Native<R>> {
        Native::look(found, number).map_err(|reason| {
            R::forget_error(found);
            none::<R>(&reason)
        })
    }

    /// Opens a device by its number; the error says why it cannot be used.
    pub(super) fn look(found: &'static Found<R>, number: i64) -> Result<Native<R>, String> {
        let common = &found.common;
        let (mut count, mut device, mut ordered, mut name) = (0, 0, 0, [0 as c_char; 256]);
        // SAFETY: each function writes what it is given room for.
        unsafe {
            outcome(common.device_count.name, (common.device_count.call)(&mut count)).map_err(refused)?;
            let ordinal = i32::try_from(number).ok().filter(|ordinal| (0..count).contains(ordinal));
            let ordinal = ordinal.ok_or_else(|| format!("there is no number {number} of {count}"))?;
            outcome(common.device.name, (common.device.call)(&mut device, ordinal)).map_err(refused)?;
            let version = R::version(found).map_err(refused)?;
            let attribute = (common.attribute.call)(&mut ordered, R::ORDERED_MEMORY, device);
            let ordered_memory = attribute == SUCCESS && ordered != 0 && R::trusts_ordered_memory(version);
            let made = (common.device_name.call)(name.as_mut_ptr(), name.len() as i32 - 1, device);
            outcome(common.device_name.name, made).map_err(refused)?;
            let runtime = R::open(found, device, version)?;
            let name = CStr::from_ptr(name.as_ptr()).to_string_lossy();
            let name = format!("{name}, {}", runtime.describe());
            Ok(Native { found, runtime, ordinal, name, ordered_memory, modules: Modules::default() })
        }
    }
}
