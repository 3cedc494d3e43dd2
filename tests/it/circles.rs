//! Checks in the sources that no files import each other, directly or indirectly.
//!
//! The one idea: an import is an edge from a file to the file that *defines* the imported name. Paths are
//! followed through modules and through re-exports (`pub use`), which are a module's interface and not a
//! dependency of it. Imports of test files do not count. A file that reaches itself by such edges is in a
//! circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the crates' sources that are checked: all crates of more than one file.
const CRATES: &[&str] = &[
    "host",
    "kernels/src",
    "doctor/src",
    "capi/src",
    "python/src",
    "lab/parts/src",
    "lab/drivers/src",
    "lab/ptx/src",
    "lab/amd/src",
    "engines/ballista/src",
    "engines/datafusion/src",
    "engines/tpch/src",
];

/// A module's path from its crate's root.
type Module = Vec<String>;

/// The imports of one file, and its re-exports by name.
#[derive(Default)]
struct File {
    imports: BTreeSet<Vec<String>>,
    faces: BTreeMap<String, Vec<String>>,
}

struct Crate(BTreeMap<Module, (String, File)>);

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => rust_files(&entry, into),
            false if entry.extension().is_some_and(|extension| extension == "rs") => into.push(entry),
            false => {}
        }
    }
}

/// The text without comments, strings and a test module at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    let mut code = String::new();
    for line in text.lines() {
        let mut quoted = false;
        let mut characters = line.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '/' if !quoted && characters.peek() == Some(&'/') => break,
                '\\' if quoted => drop(characters.next()),
                '"' => quoted = !quoted,
                c if !quoted => code.push(c),
                _ => {}
            }
        }
        code.push('\n');
    }
    code
}

/// The paths of a `use`, with braces expanded.
fn paths(tree: &str, before: &[String]) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let braces = tree.find('{');
    let plain = &tree[..braces.unwrap_or(tree.len())];
    let plain = plain.split(" as ").next().unwrap_or("");
    let steps = plain.split("::").map(str::trim).filter(|step| !step.is_empty()).map(str::to_owned);
    let path: Vec<String> = before.iter().cloned().chain(steps).collect();
    let Some(open) = braces else { return if tree.is_empty() { vec![] } else { vec![path] } };
    let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
    let (mut all, mut depth, mut start) = (vec![], 0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                all.extend(paths(&inner[start..at], &path));
                start = at + 1;
            }
            _ => {}
        }
    }
    all.extend(paths(&inner[start..], &path));
    all
}

/// Parses a file's text, given the names of the modules below it.
fn read(text: &str, below: &BTreeSet<&str>) -> File {
    let (text, mut file) = (code(text), File::default());
    let mut rest = String::new();
    for item in text.split_inclusive(';') {
        let words: Vec<&str> = item.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "use");
        match at.filter(|at| at + 1 < words.len() && item.ends_with(';')) {
            None => rest.push_str(item),
            Some(at) => {
                let is_face = at > 0 && words[at - 1].starts_with("pub");
                let tree = words[at + 1..].join(" ");
                for path in paths(tree.trim_end_matches(';'), &[]) {
                    let name = path.iter().rev().find(|step| *step != "self").cloned().unwrap_or_default();
                    match is_face {
                        true => drop(file.faces.insert(name, path)),
                        false => drop(file.imports.insert(path)),
                    }
                }
                rest.push_str(&words[..at].join(" "));
            }
        }
    }
    // Full paths in expressions and types count as imports too.
    for path in rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        let steps: Vec<String> = path.split("::").map(str::to_owned).collect();
        let starts = matches!(steps[0].as_str(), "crate" | "super") || below.contains(steps[0].as_str());
        if starts && steps.len() > 1 {
            file.imports.insert(steps);
        }
    }
    file
}

impl Crate {
    fn read(folder: &str) -> Crate {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut found = vec![];
        rust_files(&root, &mut found);
        let texts: BTreeMap<Module, (String, String)> = found
            .iter()
            .map(|path| {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                let mut module: Module = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
                if module.last().is_some_and(|last| ["mod", "lib"].contains(&last.as_str())) {
                    module.pop();
                }
                (module, (name, fs::read_to_string(path).unwrap()))
            })
            .collect();
        let below = |module: &Module| -> BTreeSet<&str> {
            let children = texts.keys().filter(|other| other.len() == module.len() + 1);
            children
                .filter(|other| other.starts_with(module))
                .map(|other| other.last().unwrap().as_str())
                .collect()
        };
        let files = texts.iter().map(|(module, (name, text))| {
            (module.clone(), (format!("{folder}/{name}"), read(text, &below(module))))
        });
        Crate(files.collect())
    }

    /// The file that defines the target of a path; `None` if no file of the crate does.
    fn defines(&self, module: &Module, path: &[String], depth: usize) -> Option<&Module> {
        let (mut at, mut path) = (module.clone(), path);
        match path.first()?.as_str() {
            "crate" => (at, path) = (vec![], &path[1..]),
            "self" => path = &path[1..],
            "super" => {
                while path.first().is_some_and(|step| step == "super") {
                    at.pop();
                    path = &path[1..];
                }
            }
            first => {
                self.0.get(&[&at[..], &[first.to_owned()]].concat())?;
            }
        }
        while let Some(step) = path.first() {
            let below = [&at[..], std::slice::from_ref(step)].concat();
            if self.0.contains_key(&below) {
                (at, path) = (below, &path[1..]);
                continue;
            }
            let face = self.0.get(&at)?.1.faces.get(step);
            if let Some(face) = face.filter(|_| depth < 8) {
                let on: Vec<String> = face.iter().chain(&path[1..]).cloned().collect();
                if let Some(found) = self.defines(&at, &on, depth + 1) {
                    return Some(found);
                }
            }
            break;
        }
        self.0.get_key_value(&at).map(|(module, _)| module)
    }

    /// The files that a file imports from.
    fn imports<'a>(&'a self, module: &'a Module) -> BTreeSet<&'a Module> {
        let (name, file) = &self.0[module];
        if name.ends_with("tests.rs") {
            return BTreeSet::new();
        }
        let found = file.imports.iter().filter_map(|path| self.defines(module, path, 0));
        found.filter(|found| *found != module).collect()
    }

    /// A shortest path from a file back to itself; `None` if the file is in no circle.
    fn circle(&self, start: &Module) -> Option<Vec<&str>> {
        let (start, _) = self.0.get_key_value(start)?;
        let mut came_from: BTreeMap<&Module, &Module> = BTreeMap::new();
        let mut now = vec![start];
        while !now.is_empty() {
            let mut next = vec![];
            for from in now {
                for to in self.imports(from) {
                    if to == start {
                        let mut way = vec![self.0[start].0.as_str()];
                        let mut at = from;
                        while at != start {
                            way.push(&self.0[at].0);
                            at = came_from[at];
                        }
                        way.push(&self.0[start].0);
                        way.reverse();
                        return Some(way);
                    }
                    if !came_from.contains_key(to) {
                        came_from.insert(to, from);
                        next.push(to);
                    }
                }
            }
            now = next;
        }
        None
    }
}

#[test]
fn no_files_import_each_other() {
    let mut circles = vec![];
    for folder in CRATES {
        let files = Crate::read(folder);
        assert!(files.0.keys().any(|module| !files.imports(module).is_empty()), "{folder} imports nothing");
        let ways = files.0.keys().filter_map(|module| files.circle(module));
        circles.extend(ways.map(|way| way.join(" -> ")));
    }
    assert!(circles.is_empty(), "files that import themselves:\n{}", circles.join("\n"));
}

#[test]
fn a_circle_is_seen_through_faces_and_braces() {
    let file = |text: &str, below: &[&str]| read(text, &below.iter().copied().collect());
    let mut files = BTreeMap::new();
    let mut add = |module: &[&str], file| {
        let module: Module = module.iter().map(|step| (*step).to_owned()).collect();
        files.insert(module.clone(), (module.join("/"), file));
    };
    add(&[], file("mod a; mod b;", &["a", "b"]));
    add(&["a"], file("mod inner; pub use inner::Thing;", &["inner"]));
    add(&["a", "inner"], file("use std::fmt;\nuse crate::{b::{self, other as renamed}};", &[]));
    add(&["b"], file("// use crate::a::inner\nfn f() -> crate::a::Thing { \"super::a\" }", &[]));
    let files = Crate(files);
    let circle = files.circle(&vec!["b".to_owned()]);
    assert_eq!(circle, Some(vec!["b", "a/inner", "b"]));
    assert_eq!(files.circle(&vec!["a".to_owned()]), None);
}
