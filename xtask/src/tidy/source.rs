//! Rules about single Rust files: their name, their opening, their length, and what they may
//! not say.

use super::{Finding, SourceFile};

const LINES_MAX: usize = 500;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "common", "manager", "service"];

// Put together here, so that this file does not break its own rules.
const UNFINISHED: &[&str] =
    &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("db", "g!(")];
const IGNORED: &str = concat!("#[ig", "nore");

pub fn check(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.path.ends_with(".rs") {
        return findings;
    }
    let parts: Vec<&str> = file.path.split('/').collect();
    let is_test = parts.contains(&"tests") || file.path.ends_with("/tests.rs");
    let is_source = matches!(parts.as_slice(), ["crates", _, "src", ..] | ["xtask", "src", ..]);

    let names = parts.iter().map(|part| part.trim_end_matches(".rs"));
    for name in names.filter(|name| EMPTY_NAMES.contains(name)) {
        findings.push(file.finding(0, format!("`{name}` is no name: which question is answered?")));
    }
    // A `main` that does nothing yet has nothing to say.
    let is_stub = file.text.trim() == "fn main() {}";
    if is_source && !is_stub && !file.text.starts_with("//!") {
        findings.push(file.finding(1, "a file opens with `//!`: what it is for"));
    }
    let length = length(&file.text);
    if !is_test && length > LINES_MAX && !says_why_it_is_long(&file.text) {
        let rule = format!("{length} lines, tests apart: split it, or say on top `Long because …`");
        findings.push(file.finding(0, rule));
    }
    let may_speak_sql = matches!(parts.as_slice(), ["crates", "store" | "testkit", ..]);
    for (number, line) in file.lines().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for word in UNFINISHED.iter().filter(|word| line.contains(*word)) {
            findings.push(file.finding(number, format!("`{word}…)` is not finished")));
        }
        if line.contains(IGNORED) {
            findings.push(file.finding(number, "a test that does not run proves nothing"));
        }
        if !may_speak_sql && is_sql(line) {
            findings.push(file.finding(number, "only `store` speaks SQL"));
        }
    }
    findings
}

/// The lines of a file without its modules of tests.
fn length(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let opens_tests = line == "#[cfg(test)]"
            && lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if opens_tests {
            lines.by_ref().find(|line| *line == "}");
        } else {
            count += 1;
        }
    }
    count
}

fn says_why_it_is_long(text: &str) -> bool {
    text.lines().take_while(|line| line.starts_with("//!")).any(|it| it.contains("Long because"))
}

fn is_sql(line: &str) -> bool {
    let update = line.split_once(concat!("UPD", "ATE ")).map(|(_, rest)| rest);
    let update = update.is_some_and(|rest| rest.contains(" SET "));
    update || line.contains(concat!("SEL", "ECT ")) || line.contains(concat!("INS", "ERT INTO"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, printed};
    use super::*;

    fn check_one(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(printed(&check(&file(path, text))), expected);
    }

    #[test]
    fn a_file_opens_with_its_purpose() {
        check_one("crates/cli/src/a.rs", "//! For this.\nfn a() {}\n", &[]);
        check_one(
            "crates/cli/src/a.rs",
            "fn a() {}\n",
            &["crates/cli/src/a.rs:1: a file opens with `//!`: what it is for"],
        );
        check_one("crates/cli/tests/a.rs", "fn a() {}\n", &[]);
    }

    #[test]
    fn long_files_are_found_and_tests_do_not_count() {
        let long = "//! A.\n".to_owned() + &"fn a() {}\n".repeat(LINES_MAX);
        check_one(
            "crates/cli/src/a.rs",
            &long,
            &["crates/cli/src/a.rs: 501 lines, tests apart: split it, or say on top `Long \
               because …`"],
        );
        check_one("crates/cli/tests/a.rs", &long, &[]);
        check_one("crates/cli/src/a.rs", &format!("//! Long because.\n{long}"), &[]);
        let tests = format!("//! A.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "    \n".repeat(600));
        check_one("crates/cli/src/a.rs", &tests, &[]);
    }

    #[test]
    fn only_the_store_speaks_sql() {
        let query = format!("//! A.\nfn a() {{ \"{}1\" }}\n", concat!("SEL", "ECT "));
        check_one("crates/store/src/a.rs", &query, &[]);
        check_one(
            "crates/server/src/a.rs",
            &query,
            &["crates/server/src/a.rs:2: only `store` speaks SQL"],
        );
    }

    #[test]
    fn unfinished_work_is_found_unless_it_is_talked_about() {
        let word = UNFINISHED[0];
        check_one(
            "crates/api/src/a.rs",
            &format!("//! Not {word}).\nfn a() {{ {word}) }}\n"),
            &[&format!("crates/api/src/a.rs:2: `{word}…)` is not finished")],
        );
    }

    #[test]
    fn empty_names_are_found() {
        check_one(
            "crates/api/src/utils/a.rs",
            "//! A.\n",
            &["crates/api/src/utils/a.rs: `utils` is no name: which question is answered?"],
        );
    }
}
