//! The files of an organisation as they were given: read from a directory, counted, digested.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::mistake::{At, Mistakes, meant};
use super::tree::BYTES_MAX;

/// All that are read, in the order in which they are.
pub const NAMES: [&str; 5] =
    ["roles.yaml", "groups.yaml", "policy.yaml", "tools.yaml", "mail.yaml"];

const BUILT_IN: [&str; 5] = [
    include_str!("builtin/roles.yaml"),
    include_str!("builtin/groups.yaml"),
    include_str!("builtin/policy.yaml"),
    include_str!("builtin/tools.yaml"),
    include_str!("builtin/mail.yaml"),
];
const BUILT_IN_NAMES: [&str; 5] = [
    "builtin/roles.yaml",
    "builtin/groups.yaml",
    "builtin/policy.yaml",
    "builtin/tools.yaml",
    "builtin/mail.yaml",
];

/// Where rules over arguments are looked for, beside the directory itself.
const RULES_DIR: &str = "rules";
const RULES_MAX: usize = 100;

/// What was given; for what is absent, the built-in file stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    // Invariant: every name is one of `NAMES`.
    yaml: BTreeMap<&'static str, String>,
    /// Rules over arguments: `….cedar`, `rules/….cedar`.
    rules: BTreeMap<String, String>,
}

/// One of the names that are read.
fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|it| *it == name)
}

/// A file of rules: in the directory itself, or in `rules`.
fn is_rules(name: &str) -> bool {
    let name = name.strip_prefix("rules/").unwrap_or(name);
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.');
    let stem = name.strip_suffix(".cedar").unwrap_or_default();
    (1..=64).contains(&stem.len()) && stem.chars().all(plain) && !stem.starts_with('.')
}

/// The built-in file of a name, and what its places are called.
pub fn built_in(name: &str) -> (&'static str, &'static str) {
    let at = NAMES.iter().position(|it| *it == name).unwrap_or_default();
    (BUILT_IN_NAMES[at], BUILT_IN[at])
}

impl Files {
    /// Names that are none of ours are mistakes.
    pub fn new(
        given: impl IntoIterator<Item = (String, String)>,
        mistakes: &mut Mistakes,
    ) -> Files {
        let mut files = Files::default();
        for (name, text) in given {
            if text.len() > BYTES_MAX {
                mistakes.add(At::file("."), "E102", format!("`{name}` {TOO_LARGE}"));
            } else if let Some(name) = known(&name) {
                files.yaml.insert(name, text);
            } else if is_rules(&name) {
                files.rules.insert(name, text);
            } else {
                let hint = meant(&name, NAMES);
                let detail = format!("`{name}` is not a file of an organisation");
                mistakes.add_with(At::file("."), "E112", detail, hint);
            }
        }
        files.limit_rules(mistakes);
        files
    }

    /// What cannot be read is a mistake; so is a directory that is not there.
    pub fn read(dir: &Path, mistakes: &mut Mistakes) -> Files {
        let mut files = Files::default();
        if !dir.is_dir() {
            let detail = format!("`{}` is not a directory", dir.display());
            mistakes.add(At::file("."), "E112", detail);
            return files;
        }
        for name in NAMES {
            match read(&dir.join(name)) {
                Ok(Some(text)) => {
                    files.yaml.insert(name, text);
                }
                Ok(None) => {}
                Err(detail) => mistakes.add(At::file(name), "E112", detail),
            }
        }
        let names = names_in(dir);
        let nested = names_in(&dir.join(RULES_DIR));
        let nested = nested.iter().map(|it| format!("{RULES_DIR}/{it}"));
        for name in names.iter().cloned().chain(nested).filter(|it| is_rules(it)) {
            match read(&dir.join(&name)) {
                Ok(Some(text)) => {
                    files.rules.insert(name, text);
                }
                Ok(None) => {}
                Err(detail) => mistakes.add(At::file("."), "E112", format!("`{name}`: {detail}")),
            }
        }
        files.limit_rules(mistakes);
        warn_of_others(&names, mistakes);
        files
    }

    fn limit_rules(&mut self, mistakes: &mut Mistakes) {
        if self.rules.len() > RULES_MAX {
            let detail = format!("there are more than {RULES_MAX} files of rules");
            mistakes.add(At::file("."), "E102", detail);
            self.rules.clear();
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let rules = || self.rules.get(name);
        self.yaml.get(name).or_else(rules).map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.yaml.is_empty() && self.rules.is_empty()
    }

    /// What was given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let yaml = self.yaml.iter().map(|(name, text)| (*name, text.as_str()));
        yaml.chain(self.rules())
    }

    /// The rules over arguments, as they were written.
    pub fn rules(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rules.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Every file, the built-in ones where none was given.
    pub fn whole(&self) -> impl Iterator<Item = (&str, &str)> {
        let yaml = NAMES.into_iter().map(|name| (name, self.get(name).unwrap_or(built_in(name).1)));
        yaml.chain(self.rules())
    }

    /// The same for the same organisation: the built-in files are part of what it means.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        let mut part = |text: Option<&str>| {
            // No text has this length.
            hasher.update(text.map_or(u64::MAX, |it| it.len() as u64).to_be_bytes());
            hasher.update(text.unwrap_or_default());
        };
        for name in NAMES {
            part(Some(built_in(name).1));
            part(self.get(name));
        }
        for (name, text) in self.rules() {
            part(Some(name));
            part(Some(text));
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

const TOO_LARGE: &str = "is larger than a megabyte, which no file of an organisation is";

fn read(path: &Path) -> Result<Option<String>, String> {
    let unreadable = |it: std::io::Error| format!("the file cannot be read: {it}");
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        // To open a pipe is to wait for whoever writes to it.
        Ok(_) => return Err("this is not a file".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > BYTES_MAX {
        return Err(format!("the file {TOO_LARGE}"));
    }
    String::from_utf8(bytes).map(Some).map_err(|it| {
        format!("the file is not UTF-8: byte {} is not", it.utf8_error().valid_up_to() + 1)
    })
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|it| it.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// `role.yaml` would be left unread without a word.
fn warn_of_others(names: &[String], mistakes: &mut Mistakes) {
    for name in names.iter().filter(|it| known(it).is_none()) {
        let yaml = name.replace(".yml", ".yaml");
        if let Some(hint) = meant(&yaml, NAMES).filter(|_| yaml.ends_with(".yaml")) {
            let detail = format!("`{name}` is not read");
            mistakes.add_with(At::file("."), "W110", detail, Some(hint));
        }
    }
}
