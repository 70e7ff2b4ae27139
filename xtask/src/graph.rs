//! What is built into what: packages, their licences and their edges, as `cargo tree` knows them
//! for one target and for the features that are really on, and `Cargo.lock` for the rest.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::process::{command, output};
use crate::tidy;

/// What releases are made for.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The package of the one binary.
pub const BINARY: &str = "chancery-cli";

/// A name with its version: what is in the lock is there once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// Each with its licence.
    pub packages: BTreeMap<Id, String>,
    pub edges: BTreeMap<Id, BTreeSet<Id>>,
}

/// What the lock says of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locked {
    /// Absent: it is ours.
    pub source: Option<String>,
    pub checksum: Option<String>,
    /// By name, or by name and version where there are several.
    pub dependencies: Vec<String>,
}

/// What is linked into the binary; macros that only the compiler runs are not.
pub fn of_binary() -> Result<Graph> {
    let words = ["--package", BINARY, "--edges", "normal,no-proc-macro"];
    tree(&words)
}

/// Everything that is built or run for the tests too.
pub fn of_everything() -> Result<Graph> {
    tree(&["--workspace", "--edges", "normal,build,dev"])
}

fn tree(words: &[&str]) -> Result<Graph> {
    let mut tree = command("cargo");
    tree.args(["tree", "--locked", "--target", TARGET, "--prefix", "depth"]);
    tree.args(["--format", "|{p}|{l}"]).args(words).current_dir(tidy::root());
    parse(&String::from_utf8(output(&mut tree)?)?)
}

/// `2|name v1.0.0 (path)|MIT (*)`: how deep, what, and under which licence. What was listed before
/// has a star, and its own dependencies stand there.
fn parse(text: &str) -> Result<Graph> {
    let mut graph = Graph::default();
    let mut above: Vec<Id> = Vec::new();
    for line in text.lines().filter(|it| !it.trim().is_empty()) {
        let read = || -> Option<(usize, Id, &str)> {
            let (depth, rest) = line.split_once('|')?;
            let (package, licence) = rest.split_once('|')?;
            let mut words = package.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            let id = Id { name: name.to_owned(), version: version.to_owned() };
            Some((depth.parse().ok()?, id, licence.trim_end_matches(" (*)").trim()))
        };
        let (depth, id, licence) =
            read().with_context(|| format!("`cargo tree` said what is not understood: {line}"))?;
        above.truncate(depth);
        if let Some(parent) = above.last() {
            graph.edges.entry(parent.clone()).or_default().insert(id.clone());
        }
        graph.edges.entry(id.clone()).or_default();
        graph.packages.insert(id.clone(), licence.to_owned());
        above.push(id);
    }
    Ok(graph)
}

/// `Cargo.lock`.
pub fn lock(text: &str) -> Result<BTreeMap<Id, Locked>> {
    let table: Table = text.parse().context("Cargo.lock")?;
    let packages = table.get("package").and_then(Value::as_array).context("Cargo.lock is empty")?;
    let word = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let read = |package: &Value| {
        let id = Id { name: word(package, "name")?, version: word(package, "version")? };
        let on = package.get("dependencies").and_then(Value::as_array).into_iter().flatten();
        let dependencies = on.filter_map(|it| it.as_str().map(str::to_owned)).collect();
        let (source, checksum) = (word(package, "source"), word(package, "checksum"));
        Some((id, Locked { source, checksum, dependencies }))
    };
    packages.iter().map(|it| read(it).context("Cargo.lock has a package without a name")).collect()
}

pub fn root_file(name: &str) -> Result<String> {
    let path = tidy::root().join(name);
    std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str, version: &str) -> Id {
        Id { name: name.to_owned(), version: version.to_owned() }
    }

    #[test]
    fn a_tree_becomes_packages_and_edges() {
        let text = "0|a v0.1.0 (/x/a)|MIT OR Apache-2.0\n1|b v1.0.0|MIT\n2|c v2.0.0+x|ISC\n\
                    1|c v2.0.0+x|ISC (*)\n";
        let graph = parse(text).unwrap();
        let (a, b, c) = (id("a", "0.1.0"), id("b", "1.0.0"), id("c", "2.0.0+x"));
        assert_eq!(graph.packages[&c], "ISC");
        assert_eq!(graph.edges[&a], BTreeSet::from([b.clone(), c.clone()]));
        assert_eq!(graph.edges[&b], BTreeSet::from([c.clone()]));
        assert_eq!(graph.edges[&c], BTreeSet::new());
        assert!(parse("what is this").is_err());
    }
}
