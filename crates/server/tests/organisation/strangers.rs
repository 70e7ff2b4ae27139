//! Files that nobody would write by accident.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{loaded, said};

/// What is refused is refused at once.
fn refused(text: &str, code: &str) {
    let began = Instant::now();
    let said = said(&[("roles.yaml", text)]);
    assert!(said.contains(code), "{}", said.chars().take(300).collect::<String>());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_file_of_more_than_a_megabyte_is_refused() {
    refused(&format!("# {}\nroles: {{}}", "x".repeat(1024 * 1024)), "E102");
}

#[test]
fn a_megabyte_of_brackets_or_of_values_is_refused() {
    refused(&"[".repeat(1024 * 1024), "E102");
    refused(&format!("[{}]", "a,".repeat(500_000)), "E102");
    refused(&"a: {".repeat(200_000), "E102");
    refused(&"- ".repeat(500_000), "E102");
}

#[test]
fn aliases_that_unfold_without_end_are_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let last = format!("*a{}", level - 1);
        let list = vec![last; 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    refused(&text, "E102");
    refused("roles: &r {a: *r}", "E101");
}

#[test]
fn a_thousand_mistakes_are_enough() {
    let text: String = (0..20_000).map(|it| format!("unknown_{it}: 1\n")).collect();
    let said = said(&[("roles.yaml", &text)]);
    assert_eq!(said.lines().count(), 1000);
    assert!(
        said.ends_with("E100 19002 more mistakes are not shown\n"),
        "{}",
        &said[said.len() - 200..]
    );
}

#[test]
fn aliases_are_read_as_what_they_stand_for() {
    let text = "roles:\n  a: {tools: &t [read_file]}\n  b: {tools: *t}\nagents: {a: {role: a}}";
    let org = loaded(&[("roles.yaml", text)]).unwrap().org;
    let tools = |role: &str| org.role(&role.into()).unwrap().tools.clone().unwrap();
    assert_eq!(tools("a")[0].value, tools("b")[0].value);
}

proptest! {
    #[test]
    fn no_text_makes_the_loader_panic(text in "\\PC{0,200}") {
        let files = [
            ("roles.yaml", &*text), ("groups.yaml", &text), ("policy.yaml", &text),
            ("tools.yaml", &text), ("mail.yaml", &text),
        ];
        let _ = said(&files);
    }

    /// Pieces of the right kind in the wrong places reach further in.
    #[test]
    fn no_mixture_of_pieces_makes_the_loader_panic(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40)
    ) {
        let text = pieces.concat();
        for name in ["roles.yaml", "groups.yaml", "policy.yaml", "tools.yaml", "mail.yaml"] {
            let _ = said(&[(name, &text)]);
        }
    }

    #[test]
    fn no_bytes_in_a_file_make_the_loader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("roles.yaml"), &bytes).unwrap();
        let (files, mistakes) = chancery_server::organisation::read_files(Some(dir.path()));
        let _ = chancery_server::organisation::load(files, mistakes);
    }
}

const PIECES: &[&str] = &[
    "roles:",
    "agents:",
    "users:",
    "groups:",
    "types:",
    "tools:",
    "commands:",
    "mcp:",
    "risk:",
    "capabilities:",
    "extends: builtin",
    "\n",
    "\n  ",
    "\n    ",
    " ",
    "a: ",
    "ceo: ",
    "b",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "*",
    "&x ",
    "*x",
    "null",
    "7",
    "-1",
    "true",
    "\"",
    "'",
    "reports_to: [a]",
    "members: [ceo]",
    "contacts: {ceo: always}",
    "level: 2",
    "role: a",
    "- ",
    "|\n",
    "!!str ",
    "---\n",
    "file_scope: {read: [a/]}",
    "lead: ceo",
    "<<: *x",
    "?",
    "# c\n",
    "command: [x]",
    "定",
];
