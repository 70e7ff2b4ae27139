//! Commands in a talk: what a person types to decide or to ask, read before any model reads it.
//! Nothing but the exact form decides: words that sound like approval may be quoted, or planted.

mod obey;

use chancery_domain::id::{MemoryId, PermissionId};

use crate::console::Language;

pub use obey::{Decided, Done, decide, obey, question};

#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Approve(PermissionId),
    Deny(PermissionId, Option<String>),
    /// Without an id: what the talk waits for first.
    Why(Option<PermissionId>),
    Status,
    /// Said into the group that works for the talk.
    Room(String),
    Pause,
    Wrapup,
    Forget(MemoryId),
    Lang(Language),
    Help,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'t> {
    /// Something to say, without the slash that kept it from being a command.
    Said(&'t str),
    Command(Command),
    /// A command that is not written like this.
    Malformed(&'static str),
    /// It looks like a command, and is none that is known here.
    Unknown,
}

/// How each is written, in the order in which they are listed.
pub const USAGES: [&str; 10] = [
    "/approve perm_…",
    "/deny perm_… <reason>",
    "/why [perm_…]",
    "/status",
    "/room <text>",
    "/pause",
    "/wrapup",
    "/forget mem_…",
    "/lang zh|en",
    "/help",
];

/// What a message is, by its first line. What is said to a room may have more of them.
pub fn read(text: &str) -> Line<'_> {
    match text.strip_prefix('/').filter(|it| it.starts_with('/')) {
        None => plain(text),
        // A comment of some code keeps its slashes: only what would be taken for a command has one
        // to lose.
        Some(said) if plain(said) == Line::Said(said) => Line::Said(text),
        Some(said) => Line::Said(said),
    }
}

fn plain(text: &str) -> Line<'_> {
    let line = text.lines().next().unwrap_or_default().trim_end();
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let Some(word) = verb.strip_prefix('/').filter(|it| is_word(it)) else {
        return Line::Said(text);
    };
    let Some(usage) = USAGES.iter().find(|it| it.split(' ').next() == Some(verb)) else {
        return Line::Unknown;
    };
    match command(word, rest, text) {
        Some(command) => Line::Command(command),
        None => Line::Malformed(usage),
    }
}

/// A path or a fraction is no command, even if it begins with a slash.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphabetic())
}

fn command(word: &str, rest: &str, text: &str) -> Option<Command> {
    let alone = |command: Command| rest.is_empty().then_some(command);
    match word {
        "approve" => rest.parse().ok().map(Command::Approve),
        "deny" => {
            let (id, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let reason = Some(reason.trim().to_owned()).filter(|it| !it.is_empty());
            id.parse().ok().map(|id| Command::Deny(id, reason))
        }
        "why" if rest.is_empty() => Some(Command::Why(None)),
        "why" => rest.parse().ok().map(|id| Command::Why(Some(id))),
        "status" => alone(Command::Status),
        "room" => {
            let said = text.strip_prefix("/room")?.trim();
            (!said.is_empty()).then(|| Command::Room(said.to_owned()))
        }
        "pause" => alone(Command::Pause),
        "wrapup" => alone(Command::Wrapup),
        "forget" => rest.parse().ok().map(Command::Forget),
        "lang" => Language::coded(rest).map(Command::Lang),
        "help" => alone(Command::Help),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "perm_0190a0b0c0d0700080000000000000aa";
    const MEMORY: &str = "mem_0190a0b0c0d0700080000000000000aa";

    #[test]
    fn only_the_exact_form_is_a_command() {
        let id: PermissionId = ID.parse().unwrap();
        let reason = Some("not on a Friday".to_owned());
        for (text, command) in [
            (format!("/approve {ID}"), Command::Approve(id)),
            (format!("/approve {ID}  \nand thanks"), Command::Approve(id)),
            (format!("/deny {ID} not on a Friday"), Command::Deny(id, reason)),
            (format!("/deny {ID}"), Command::Deny(id, None)),
            (format!("/why {ID}"), Command::Why(Some(id))),
            ("/why".to_owned(), Command::Why(None)),
            ("/status".to_owned(), Command::Status),
            (
                "/room use canary\nten percent".to_owned(),
                Command::Room("use canary\nten percent".to_owned()),
            ),
            ("/pause ".to_owned(), Command::Pause),
            ("/wrapup".to_owned(), Command::Wrapup),
            (format!("/forget {MEMORY}"), Command::Forget(MEMORY.parse().unwrap())),
            ("/lang zh".to_owned(), Command::Lang(Language::Chinese)),
            ("/lang en".to_owned(), Command::Lang(Language::English)),
            ("/help".to_owned(), Command::Help),
        ] {
            assert_eq!(read(&text), Line::Command(command), "{text:?}");
        }
        for said in [
            String::new(),
            "I approve".to_owned(),
            format!(" /approve {ID}"),
            format!("> /approve {ID}"),
            format!("Please /approve {ID}"),
            format!("thanks\n/approve {ID}"),
            format!("\u{feff}/approve {ID}"),
            format!("/approve\u{a0}{ID}"),
            format!("/approve\t{ID}"),
            "/".to_owned(),
            "/ 2".to_owned(),
            "/etc/passwd is gone".to_owned(),
            "/批准".to_owned(),
        ] {
            assert_eq!(read(&said), Line::Said(&said));
        }
        for unknown in [format!("/Approve {ID}"), format!("/approved {ID}"), "/resume".to_owned()] {
            assert_eq!(read(&unknown), Line::Unknown, "{unknown:?}");
        }
    }

    #[test]
    fn a_command_that_is_written_otherwise_is_none_and_says_how_it_is() {
        for (text, usage) in [
            ("/approve".to_owned(), "/approve perm_…"),
            ("/approve all".to_owned(), "/approve perm_…"),
            (format!("/approve  {ID}"), "/approve perm_…"),
            (format!("/approve {ID} {ID}"), "/approve perm_…"),
            (format!("/approve {}", ID.to_uppercase()), "/approve perm_…"),
            (format!("/approve {MEMORY}"), "/approve perm_…"),
            (format!("/why {ID}?"), "/why [perm_…]"),
            ("/status now".to_owned(), "/status"),
            ("/room ".to_owned(), "/room <text>"),
            ("/pause all".to_owned(), "/pause"),
            (format!("/forget {ID}"), "/forget mem_…"),
            ("/lang fr".to_owned(), "/lang zh|en"),
        ] {
            assert_eq!(read(&text), Line::Malformed(usage), "{text:?}");
        }
    }

    #[test]
    fn two_slashes_say_what_one_would_do() {
        for (text, said) in [
            ("//approve x", "/approve x"),
            ("//resume", "/resume"),
            ("// a comment\nfn f()", "// a comment\nfn f()"),
            ("//TODO: x", "//TODO: x"),
            ("///", "///"),
            ("//", "//"),
        ] {
            assert_eq!(read(text), Line::Said(said));
        }
    }
}
