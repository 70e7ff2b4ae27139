//! `deny.toml` held without the program that it is written for: licences, bans and sources of
//! everything that is built. Advisories need a database from the network, and that program.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::graph::{self, Graph, Id, Locked};

/// What is allowed, as far as it is read here.
#[derive(Debug, Default)]
struct Allowed {
    licences: BTreeSet<String>,
    /// For one package alone.
    exceptions: BTreeMap<String, BTreeSet<String>>,
    banned: BTreeSet<String>,
    registries: BTreeSet<String>,
}

pub fn report() -> Result<()> {
    let allowed = Allowed::read(&graph::root_file("deny.toml")?)?;
    let (everything, lock) =
        (graph::of_everything()?, graph::lock(&graph::root_file("Cargo.lock")?)?);
    let found = allowed.findings(&everything, &lock);
    if !found.is_empty() {
        bail!("{} findings against deny.toml:\n{}", found.len(), found.join("\n"));
    }
    println!("{} packages are licensed and sourced as deny.toml says", everything.packages.len());
    Ok(())
}

impl Allowed {
    fn read(text: &str) -> Result<Allowed> {
        let table: Table = text.parse().context("deny.toml")?;
        let list = |of: &str, name: &str| -> Vec<Value> {
            let list = table.get(of).and_then(|it| it.get(name)).and_then(Value::as_array);
            list.cloned().unwrap_or_default()
        };
        let words = |list: &[Value]| -> BTreeSet<String> {
            list.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
        };
        let name = |it: &Value| {
            let name = it.get("crate").or_else(|| it.get("name"));
            name.and_then(Value::as_str).map(str::to_owned)
        };
        let exceptions = list("licenses", "exceptions");
        let exceptions = exceptions
            .iter()
            .filter_map(|it| Some((name(it)?, words(it.get("allow")?.as_array()?))));
        let allowed = Allowed {
            licences: words(&list("licenses", "allow")),
            exceptions: exceptions.collect(),
            banned: list("bans", "deny").iter().filter_map(name).collect(),
            registries: words(&list("sources", "allow-registry")),
        };
        let empty = allowed.licences.is_empty() || allowed.registries.is_empty();
        if empty || allowed.banned.is_empty() {
            bail!("deny.toml allows nothing: it is not read as it is meant");
        }
        Ok(allowed)
    }

    fn findings(&self, graph: &Graph, lock: &BTreeMap<Id, Locked>) -> Vec<String> {
        let mut found = Vec::new();
        for (Id { name, version }, licence) in &graph.packages {
            if self.banned.contains(name) {
                found.push(format!("{name} {version} is banned"));
            }
            let also = self.exceptions.get(name);
            let may =
                |it: &str| self.licences.contains(it) || also.is_some_and(|also| also.contains(it));
            if !satisfied(licence, &may) {
                found.push(format!("{name} {version} is under `{licence}`"));
            }
        }
        for (Id { name, version }, locked) in lock {
            let Some(source) = &locked.source else { continue };
            let known =
                source.strip_prefix("registry+").is_some_and(|it| self.registries.contains(it));
            if !known || locked.checksum.is_none() {
                found.push(format!("{name} {version} comes from `{source}`"));
            }
        }
        let names: BTreeSet<&str> = graph.packages.keys().map(|it| &*it.name).collect();
        for gone in self.exceptions.keys().filter(|it| !names.contains(it.as_str())) {
            found.push(format!("{gone} has an exception and is not there any more"));
        }
        found
    }
}

/// Whether an SPDX expression can be met: `OR` by either side, `AND` by both. A slash is the old
/// way to write `OR`. What cannot be read is not met.
fn satisfied(licence: &str, may: &dyn Fn(&str) -> bool) -> bool {
    let spaced = licence.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    either(&words, &mut at, may) == Some(true) && at == words.len()
}

fn either(words: &[&str], at: &mut usize, may: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = both(words, at, may)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= both(words, at, may)?;
    }
    Some(met)
}

fn both(words: &[&str], at: &mut usize, may: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = one(words, at, may)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, may)?;
    }
    Some(met)
}

fn one(words: &[&str], at: &mut usize, may: &dyn Fn(&str) -> bool) -> Option<bool> {
    let word = *words.get(*at)?;
    *at += 1;
    if word == "(" {
        let met = either(words, at, may)?;
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return closed.then_some(met);
    }
    if words.get(*at) == Some(&"WITH") {
        let whole = format!("{word} WITH {}", words.get(*at + 1)?);
        *at += 2;
        return Some(may(&whole));
    }
    Some(may(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_licences_are_met_as_they_read() {
        let may = |it: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&it);
        for (licence, met) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(GPL-3.0 OR ISC) AND MIT", true),
            ("GPL-3.0 OR ISC AND Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
            ("", false),
            ("(MIT", false),
            ("MIT ISC", false),
        ] {
            assert_eq!(satisfied(licence, &may), met, "{licence}");
        }
    }

    #[test]
    fn what_deny_toml_forbids_is_found() {
        let text = "[licenses]\nallow = [\"MIT\"]\n\
                    exceptions = [{ allow = [\"MPL-2.0\"], crate = \"css\" }, \
                                  { allow = [\"GPL-3.0\"], crate = \"gone\" }]\n\
                    [bans]\ndeny = [{ name = \"openssl\" }]\n\
                    [sources]\nallow-registry = [\"https://registry\"]\n";
        let allowed = Allowed::read(text).unwrap();
        let id = |name: &str| Id { name: name.to_owned(), version: "1.0.0".to_owned() };
        let licences =
            [("css", "MPL-2.0"), ("other", "MPL-2.0"), ("openssl", "MIT"), ("plain", "MIT")];
        let packages = licences.map(|(name, it)| (id(name), it.to_owned()));
        let graph = Graph { packages: packages.into(), ..Graph::default() };
        let from = |source: &str| Locked {
            source: Some(source.to_owned()),
            checksum: Some("00".to_owned()),
            ..Locked::default()
        };
        let lock = BTreeMap::from([
            (id("plain"), from("registry+https://registry")),
            (id("git"), from("git+https://somewhere")),
            (id("ours"), Locked::default()),
        ]);
        assert_eq!(
            allowed.findings(&graph, &lock),
            [
                "openssl 1.0.0 is banned",
                "other 1.0.0 is under `MPL-2.0`",
                "git 1.0.0 comes from `git+https://somewhere`",
                "gone has an exception and is not there any more",
            ]
        );
        assert!(Allowed::read("[licenses]\n").is_err());
    }

    #[test]
    fn everything_that_is_built_is_licensed_and_sourced_as_deny_toml_says() {
        report().unwrap();
    }
}
