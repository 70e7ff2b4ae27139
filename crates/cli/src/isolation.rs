//! How far commands are isolated here, in words.

use chancery_runtime::sandbox::{Isolation, Layers, Namespaces};

/// What the line begins with where the operator wants no walls.
pub const OFF: &str = "OFF";

/// One line, and whether it is well with it.
pub fn told(isolation: &Isolation) -> (bool, String) {
    match isolation {
        Isolation::Off => (
            false,
            format!("{OFF}: commands can do whatever this server's user can (isolation.mode)"),
        ),
        Isolation::Lacking(why) => (false, format!("LACKING: commands are refused: {why}")),
        Isolation::On(launcher) => (true, layers(&launcher.layers, launcher.groups.is_some())),
    }
}

fn layers(layers: &Layers, groups: bool) -> String {
    let mut held = vec!["Landlock", "seccomp"];
    let mut missing = Vec::new();
    let spaces = "mount, process, network and IPC namespaces";
    match layers.namespaces {
        Namespaces::Own | Namespaces::Users => held.push(spaces),
        Namespaces::None => missing.push(spaces),
    }
    let users = "a user for each agent";
    if layers.users {
        held.push(users)
    } else {
        missing.push(users)
    }
    let sums = "control groups";
    if groups {
        held.push(sums)
    } else {
        missing.push(sums)
    }
    held.push("limits");
    let tried = layers.attempts.len();
    let missing = match missing.as_slice() {
        [] => String::new(),
        some => {
            let why = layers.lacking.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
            format!("; not here: {}{why}", some.join(", "))
        }
    };
    format!("{}{missing}; {tried} attempts to get out failed", held.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let none = Layers {
            namespaces: Namespaces::None,
            users: false,
            lacking: Some("mounts: no".to_owned()),
            attempts: vec!["x".to_owned()],
        };
        assert_eq!(
            layers(&none, false),
            "Landlock, seccomp, limits; not here: mount, process, network and IPC namespaces, a \
             user for each agent, control groups (mounts: no); 1 attempts to get out failed"
        );
        assert!(!told(&Isolation::Off).0);
        assert!(told(&Isolation::Lacking("no kernel".into())).1.contains("no kernel"));
    }
}
