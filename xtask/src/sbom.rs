//! What the binary is made of, as a CycloneDX 1.5 document: every package that is linked into it,
//! with version, licence, checksum and what it needs. The same tree gives the same bytes.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::graph::{self, BINARY, Graph, Id, Locked};

/// The document, with a line end.
pub fn text() -> Result<String> {
    let lock = graph::lock(&graph::root_file("Cargo.lock")?)?;
    let document = document(&graph::of_binary()?, &lock)?;
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn document(graph: &Graph, lock: &BTreeMap<Id, Locked>) -> Result<Value> {
    let root = graph.packages.keys().find(|it| it.name == BINARY);
    let root = root.context("the binary is not among what is built")?;
    let mut components = Vec::new();
    for (id, licence) in graph.packages.iter().filter(|it| it.0 != root) {
        let locked = lock.get(id).with_context(|| format!("{} is not in Cargo.lock", id.name))?;
        let mut component = json!({
            "type": "library",
            "bom-ref": purl(id),
            "name": id.name,
            "version": id.version,
            "scope": "required",
            "purl": purl(id),
            "licenses": [{ "expression": spdx(licence) }],
        });
        if let Some(checksum) = &locked.checksum {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        components.push(component);
    }
    let dependencies: Vec<Value> = graph
        .edges
        .iter()
        .map(|(id, on)| json!({ "ref": purl(id), "dependsOn": on.iter().map(purl).collect::<Vec<_>>() }))
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": purl(root),
                "name": "chancery",
                "version": root.version,
                "purl": purl(root),
                "licenses": [{ "expression": spdx(&graph.packages[root]) }],
            },
            "properties": [{ "name": "cargo:target", "value": graph::TARGET }],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The name that other tools know a package by.
fn purl(id: &Id) -> String {
    format!("pkg:cargo/{}@{}", id.name, id.version.replace('+', "%2B"))
}

/// A slash is the old way to write `OR`.
fn spdx(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All that the lock says is needed for a package, and what it needs.
    fn closure(lock: &BTreeMap<Id, Locked>, of: &Id, into: &mut BTreeSet<Id>) {
        if !into.insert(of.clone()) {
            return;
        }
        for needed in &lock[of].dependencies {
            let mut words = needed.split(' ');
            let (name, version) = (words.next().unwrap(), words.next());
            let is =
                |it: &&Id| it.name == name && version.is_none_or(|version| it.version == version);
            closure(lock, lock.keys().find(is).unwrap(), into);
        }
    }

    #[test]
    fn the_sbom_has_what_is_linked_into_the_binary_with_the_checksums_of_the_lock() {
        let written = text().unwrap();
        assert_eq!(written, text().unwrap(), "the same tree gives the same bytes");
        let document: Value = serde_json::from_str(&written).unwrap();
        let lock = graph::lock(&graph::root_file("Cargo.lock").unwrap()).unwrap();
        let root = lock.keys().find(|it| it.name == BINARY).unwrap();
        let mut needed = BTreeSet::new();
        closure(&lock, root, &mut needed);
        let mut refs = BTreeSet::from([purl(root)]);
        let word = |of: &Value, name: &str| of[name].as_str().unwrap().to_owned();
        for component in document["components"].as_array().unwrap() {
            let id = Id { name: word(component, "name"), version: word(component, "version") };
            assert!(needed.contains(&id), "{id:?} is not needed by the binary");
            let checksum = lock[&id].checksum.as_deref();
            assert_eq!(component["hashes"][0]["content"].as_str(), checksum, "{id:?}");
            assert!(refs.insert(word(component, "bom-ref")), "{id:?} is there twice");
        }
        // What every build has in it, and what no release may have.
        for there in [
            "chancery-domain",
            "tokio",
            "rustls",
            "aws-lc-sys",
            "libsqlite3-sys",
            "cedar-policy-core",
        ] {
            assert!(
                refs.iter().any(|it| it.starts_with(&format!("pkg:cargo/{there}@"))),
                "{there}"
            );
        }
        for not in ["chancery-testkit", "proptest", "insta", "serde_derive", "cc"] {
            assert!(!refs.iter().any(|it| it.starts_with(&format!("pkg:cargo/{not}@"))), "{not}");
        }
        let dependencies = document["dependencies"].as_array().unwrap();
        assert_eq!(dependencies.len(), refs.len());
        for one in dependencies {
            let on = one["dependsOn"].as_array().unwrap().iter();
            let named = on.map(|it| it.as_str().unwrap().to_owned()).chain([word(one, "ref")]);
            named.for_each(|it| assert!(refs.contains(&it), "{it} is no component"));
        }
    }
}
