//! Which crate may depend on which: no arrow points up, and each heavy dependency has one home.

use super::{Finding, SourceFile};

/// What one of our crates depends on among ours, and whether its tests may use the testkit.
struct Edges {
    package: &'static str,
    on: &'static [&'static str],
    testkit: bool,
}

const EDGES: &[Edges] = &[
    Edges { package: "domain", on: &[], testkit: false },
    Edges { package: "store", on: &["domain"], testkit: true },
    Edges { package: "runtime", on: &["domain", "store"], testkit: true },
    Edges { package: "api", on: &[], testkit: false },
    Edges { package: "server", on: &["domain", "store", "runtime", "api"], testkit: true },
    // `domain` and `runtime` for `chancery bench`, which drives runs without a server in between.
    Edges { package: "cli", on: &["api", "server", "store", "domain", "runtime"], testkit: true },
    Edges { package: "testkit", on: &["domain", "store", "runtime"], testkit: false },
];

/// A dependency from outside, and the crates that may have it. Tests may use what they like.
struct Home {
    dependency: &'static str,
    at: &'static [&'static str],
}

const HOMES: &[Home] = &[
    Home { dependency: "rusqlite", at: &["store"] },
    Home { dependency: "tokio-postgres", at: &["store", "testkit"] },
    Home { dependency: "deadpool-postgres", at: &["store"] },
    Home { dependency: "axum", at: &["server", "testkit"] },
    // As a client in `runtime`, as a server in `server`: each in one module.
    Home { dependency: "rmcp", at: &["runtime", "server"] },
    Home { dependency: "reqwest", at: &["runtime", "cli", "api"] },
    Home { dependency: "jsonwebtoken", at: &["runtime"] },
    Home { dependency: "anyhow", at: &["cli", "xtask"] },
];

/// The domain is pure, in its tests too.
const NEVER_IN_DOMAIN: &[&str] =
    &["tokio", "rusqlite", "tokio-postgres", "axum", "reqwest", "rand"];

const PREFIX: &str = "chancery-";

pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let package = match file.path.split('/').collect::<Vec<_>>().as_slice() {
            ["crates", package, "Cargo.toml"] => *package,
            ["xtask", "Cargo.toml"] => "xtask",
            _ => continue,
        };
        check_manifest(package, file, &mut findings);
    }
    findings
}

fn check_manifest(package: &str, file: &SourceFile, findings: &mut Vec<Finding>) {
    let dependencies = dependencies(file);
    let edges = EDGES.iter().find(|edges| edges.package == package);
    if edges.is_none() && package != "xtask" {
        findings.push(file.finding(0, "a new crate: say in `xtask/src/tidy/edges.rs` what for"));
    }
    let on = edges.map_or(&[][..], |edges| edges.on);
    for dependency in &dependencies {
        let Dependency { name, line, .. } = dependency;
        if let Some(ours) = name.strip_prefix(PREFIX) {
            let testkit = dependency.dev && ours == "testkit" && edges.is_some_and(|it| it.testkit);
            if !on.contains(&ours) && !testkit {
                findings.push(file.finding(*line, format!("`{package}` may not use `{ours}`")));
            }
            continue;
        }
        if package == "domain" && NEVER_IN_DOMAIN.contains(&name.as_str()) {
            findings.push(file.finding(*line, format!("the domain is pure: no `{name}`")));
        }
        let home = HOMES.iter().find(|home| home.dependency == name);
        if let Some(home) = home.filter(|home| !dependency.dev && !home.at.contains(&package)) {
            let rule = format!("`{name}` belongs to {} alone", home.at.join(", "));
            findings.push(file.finding(*line, rule));
        }
        if package == "api" && name == "reqwest" && !dependency.optional {
            let rule = "`reqwest` is optional in `api`: it belongs to the feature `client`";
            findings.push(file.finding(*line, rule));
        }
    }
    for ours in on {
        let name = format!("{PREFIX}{ours}");
        if !dependencies.iter().any(|it| !it.dev && it.name == name) {
            let rule = format!("`{package}` uses `{ours}` no more: say so in the list of edges");
            findings.push(file.finding(0, rule));
        }
    }
}

#[derive(Debug, PartialEq)]
struct Dependency {
    name: String,
    line: usize,
    dev: bool,
    optional: bool,
}

/// Reads the tables of dependencies, in the few shapes that manifests of ours have.
fn dependencies(file: &SourceFile) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut table = String::new();
    for (number, line) in file.lines() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            table = header.to_owned();
            // `[dependencies.name]`: a table of its own.
            if let Some((above, name)) = table.rsplit_once('.')
                && above.ends_with("dependencies")
            {
                found.push(Dependency::new(name, number, &table, false));
            }
        } else if table.ends_with("dependencies")
            && let Some((key, value)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let name = key.split('.').next().unwrap_or(key);
            let optional = value.contains("optional = true");
            // A renamed dependency is what it really is.
            let package = value.split_once("package = \"").and_then(|(_, it)| it.split_once('"'));
            let name = package.map_or(name, |(package, _)| package);
            found.push(Dependency::new(name, number, &table, optional));
        } else if let Some(last) = found.last_mut()
            && table.ends_with(&last.name)
            && line == "optional = true"
        {
            last.optional = true;
        }
    }
    found
}

impl Dependency {
    fn new(name: &str, line: usize, table: &str, optional: bool) -> Dependency {
        let name = name.trim().trim_matches('"').to_owned();
        Dependency { name, line, dev: table.contains("dev-dependencies"), optional }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, printed};
    use super::*;

    fn check_one(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(printed(&check(&[file(path, text)])), expected);
    }

    #[test]
    fn arrows_that_point_up_are_found() {
        check_one(
            "crates/store/Cargo.toml",
            "[dependencies]\nchancery-domain.workspace = true\nchancery-runtime.workspace = true\n\
             [dev-dependencies]\nchancery-testkit.workspace = true\n",
            &["crates/store/Cargo.toml:3: `store` may not use `runtime`"],
        );
    }

    #[test]
    fn an_edge_that_is_gone_is_found() {
        check_one(
            "crates/store/Cargo.toml",
            "[dependencies]\n",
            &[
                "crates/store/Cargo.toml: `store` uses `domain` no more: say so in the list of edges",
            ],
        );
    }

    #[test]
    fn the_domain_stays_pure_in_its_tests() {
        check_one(
            "crates/domain/Cargo.toml",
            "[dev-dependencies.tokio]\nversion = \"1\"\n",
            &["crates/domain/Cargo.toml:1: the domain is pure: no `tokio`"],
        );
    }

    #[test]
    fn the_client_is_a_feature() {
        let optional = "[dependencies]\nreqwest = { workspace = true, optional = true }\n";
        check_one("crates/api/Cargo.toml", optional, &[]);
        check_one(
            "crates/api/Cargo.toml",
            "[dependencies]\nhttp = { package = \"reqwest\", version = \"1\" }\n",
            &[
                "crates/api/Cargo.toml:2: `reqwest` is optional in `api`: it belongs to the feature \
               `client`",
            ],
        );
    }

    #[test]
    fn heavy_dependencies_have_one_home() {
        check_one(
            "xtask/Cargo.toml",
            "[dependencies]\nanyhow.workspace = true\naxum = \"0.8\"\n",
            &["xtask/Cargo.toml:3: `axum` belongs to server, testkit alone"],
        );
    }
}
