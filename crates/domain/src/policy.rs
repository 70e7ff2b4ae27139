//! What the rules say about a tool call. Pure: no clock, no storage, no async.
//!
//! The layers that stand so far are the tool itself, the run's delegation and the role; every
//! layer speaks, and the strictest wins.

use serde::{Deserialize, Serialize};

use crate::org::Role;

/// The policy's answer. Ordered: the strictest of several rulings wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    Allow,
    RequireApproval,
    RequireHuman,
    Deny,
}

/// One layer's word on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub layer: String,
    pub rule: String,
    pub outcome: Ruling,
    pub detail: String,
}

/// Which tools may be named at all. An absent list is no limit; an empty one allows nothing.
/// An entry is a name, or a glob with `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
}

/// Whether the tool that a call names can be called as it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitness {
    Fits,
    UnknownTool,
    /// The arguments fail the tool's schema; says how.
    BadArguments(String),
}

/// Rules on one call.
pub fn rule(
    role: &Role,
    delegated: Option<&Bounds>,
    tool: &str,
    fitness: &Fitness,
) -> (Ruling, Vec<Reason>) {
    let mut reasons = Vec::new();
    let mut speak = |layer: &str, rule: String, detail: String| {
        reasons.push(Reason { layer: layer.to_owned(), rule, outcome: Ruling::Deny, detail });
    };
    match fitness {
        Fitness::Fits => {}
        Fitness::UnknownTool => {
            speak("tool", "UNKNOWN_TOOL".to_owned(), format!("there is no tool `{tool}`"));
        }
        Fitness::BadArguments(how) => speak(
            "tool",
            "INVALID_ARGUMENTS".to_owned(),
            format!("the arguments do not fit the schema of `{tool}`: {how}"),
        ),
    }
    if let Some((list, detail)) = delegated.and_then(|bounds| bounds.refuses(tool)) {
        speak("delegation", list.to_owned(), format!("{detail} of the run's delegation"));
    }
    if let Some((list, detail)) = role.bounds.refuses(tool) {
        let list = match list {
            "allowed_tools" => "tools",
            _ => "deny_tools",
        };
        speak("role", format!("{}.{list}", role.id), format!("{detail} of role `{}`", role.id));
    }
    let ruling = reasons.iter().map(|it| it.outcome).max().unwrap_or(Ruling::Allow);
    (ruling, reasons)
}

/// Whether a model is shown a tool: its ruling, arguments aside, is not Deny.
pub fn offer(role: &Role, delegated: Option<&Bounds>, tool: &str) -> bool {
    rule(role, delegated, tool, &Fitness::Fits).0 != Ruling::Deny
}

impl Bounds {
    /// The list that stands against a tool, if one does, and a sentence's beginning.
    fn refuses(&self, tool: &str) -> Option<(&'static str, String)> {
        if let Some(entry) = self.denied_tools.iter().find(|entry| glob(entry, tool)) {
            return Some((
                "denied_tools",
                format!("`{tool}` matches `{entry}` in the denied tools"),
            ));
        }
        let allowed = self.allowed_tools.as_ref()?;
        if allowed.iter().any(|entry| glob(entry, tool)) {
            return None;
        }
        Some(("allowed_tools", format!("`{tool}` is not among the tools")))
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for any run of characters.
pub fn glob(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut rest) = name.strip_prefix(head) else {
        return false;
    };
    let mut pieces = tail.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(bounds: Bounds) -> Role {
        Role { bounds, ..Role::unlimited("worker") }
    }

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn globs_match_as_a_person_would_read_them() {
        for (pattern, name, matches) in [
            ("git_push", "git_push", true),
            ("git_push", "git_pushed", false),
            ("git_*", "git_push", true),
            ("git_*", "git", false),
            ("*", "anything", true),
            ("*", "", true),
            ("mcp__*__read", "mcp__files__read", true),
            ("mcp__*__read", "mcp__files__write", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "abcb", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(glob(pattern, name), matches, "{pattern} against {name}");
        }
    }

    #[test]
    fn an_empty_list_allows_nothing_and_an_absent_one_everything() {
        let nothing = Bounds { allowed_tools: Some(vec![]), denied_tools: vec![] };
        assert!(!offer(&role(nothing.clone()), None, "read_file"));
        assert!(!offer(&role(Bounds::default()), Some(&nothing), "read_file"));
        assert!(offer(&role(Bounds::default()), None, "read_file"));
    }

    #[test]
    fn every_layer_speaks_and_names_its_rule() {
        let role = role(Bounds { allowed_tools: None, denied_tools: list(&["git_*"]) });
        let delegated = Bounds { allowed_tools: Some(list(&["read_file"])), denied_tools: vec![] };
        let (ruling, reasons) = rule(&role, Some(&delegated), "git_push", &Fitness::UnknownTool);
        assert_eq!(ruling, Ruling::Deny);
        let layers: Vec<_> = reasons.iter().map(|it| (&*it.layer, &*it.rule)).collect();
        assert_eq!(
            layers,
            [
                ("tool", "UNKNOWN_TOOL"),
                ("delegation", "allowed_tools"),
                ("role", "worker.deny_tools")
            ]
        );
    }
}
