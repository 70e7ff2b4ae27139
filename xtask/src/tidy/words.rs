//! What is written about the code, and where: the documents know every event, and nothing knows
//! a developer's machine.

use super::{Finding, SourceFile};

const EVENTS: &str = "crates/domain/src/event.rs";
const EVENTS_TOLD: &str = "docs/state-machines.md";

// Put together here, so that this file does not break its own rule.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];

pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = events_are_told(files);
    findings.extend(files.iter().flat_map(machine_paths));
    findings
}

fn events_are_told(files: &[SourceFile]) -> Vec<Finding> {
    let Some(events) = files.iter().find(|file| file.path == EVENTS) else {
        return Vec::new();
    };
    let told = files.iter().find(|file| file.path == EVENTS_TOLD);
    let told = told.map_or("", |file| file.text.as_str());
    let kinds: Vec<(usize, &str)> =
        events.lines().filter_map(|(number, line)| Some((number, kind(line)?))).collect();
    if kinds.is_empty() {
        return vec![events.finding(0, "no event kinds were found: has the macro changed?")];
    }
    kinds
        .into_iter()
        .filter(|(_, kind)| !told.contains(&format!("`{kind}`")))
        .map(|(number, kind)| {
            events.finding(number, format!("`{kind}` is missing from `{EVENTS_TOLD}`"))
        })
        .collect()
}

/// The kind in a line of the `events!` macro: `Created = "run.created";`.
fn kind(line: &str) -> Option<&str> {
    let (name, rest) = line.trim().split_once(" = \"")?;
    let kind = rest.strip_suffix("\";")?;
    name.chars().all(char::is_alphanumeric).then_some(kind)
}

fn machine_paths(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        for path in MACHINE_PATHS.iter().filter(|path| starts_a_path(line, path)) {
            let rule = format!("`{path}` is a path of someone's machine");
            findings.push(file.finding(number, rule));
        }
    }
    findings
}

/// Whether `path` is in the line and not the middle of a longer one.
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|it| !it.is_alphanumeric() && !"_-.}~".contains(it))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, printed};
    use super::*;

    #[test]
    fn an_event_that_is_not_told_of_is_found() {
        let events = file(EVENTS, "events! {\n    A = \"run.a\";\n    B = \"run.b\";\n}\n");
        let told = file(EVENTS_TOLD, "`run.a` happens.");
        assert_eq!(
            printed(&check(&[events, told])),
            ["crates/domain/src/event.rs:3: `run.b` is missing from `docs/state-machines.md`"],
        );
    }

    #[test]
    fn paths_of_a_machine_are_found_where_they_begin() {
        let path = MACHINE_PATHS[0];
        let own = file("a.md", &format!("see {path}notes\nand crates{path}notes\n"));
        let expected = format!("a.md:1: `{path}` is a path of someone's machine");
        assert_eq!(printed(&check(&[own])), [expected]);
    }
}
