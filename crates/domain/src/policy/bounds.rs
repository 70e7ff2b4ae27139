//! Which tools may be named at all, and how two such limits meet.

use serde::{Deserialize, Serialize};

/// An absent list is no limit; an empty one allows nothing. An entry is a name, or a glob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
}

impl Bounds {
    pub fn permits(&self, tool: &str) -> bool {
        !self.denied_tools.iter().any(|entry| glob(entry, tool))
            && self
                .allowed_tools
                .as_ref()
                .is_none_or(|allowed| allowed.iter().any(|entry| glob(entry, tool)))
    }

    pub fn is_unlimited(&self) -> bool {
        self.allowed_tools.is_none() && self.denied_tools.is_empty()
    }

    /// The same by name. Globs end here as they do in [`Bounds::meet`]; what was named in so many
    /// words stays, known or not.
    pub fn named<'t>(&self, known: impl IntoIterator<Item = &'t str> + Clone) -> Bounds {
        let mut named = self.meet(&Bounds::default(), known);
        if let Some(allowed) = &mut named.allowed_tools {
            let exact = self.allowed_tools.iter().flatten().filter(|entry| !is_glob(entry));
            allowed.extend(exact.filter(|entry| self.permits(entry)).cloned());
            allowed.sort_unstable();
            allowed.dedup();
        }
        named
    }

    /// What both sides permit of the tools that are known, by name. Never wider than either
    /// side: globs end here, so that a tool which comes later is not delegated by accident.
    pub fn meet<'t>(
        &self,
        other: &Bounds,
        known: impl IntoIterator<Item = &'t str> + Clone,
    ) -> Bounds {
        let denied = |tool: &&str| {
            [self, other].iter().any(|it| it.denied_tools.iter().any(|entry| glob(entry, tool)))
        };
        // A name that is denied stays denied, known or not; a glob stands for what is known.
        let exact = [self, other].into_iter().flat_map(|it| &it.denied_tools);
        let exact = exact.filter(|entry| !is_glob(entry)).cloned();
        let mut denied_tools: Vec<String> =
            known.clone().into_iter().filter(denied).map(str::to_owned).chain(exact).collect();
        denied_tools.sort_unstable();
        denied_tools.dedup();
        // With a glob among the denied, "everything else" would grow with the tools.
        let limited = [self, other].iter().any(|it| {
            it.allowed_tools.is_some() || it.denied_tools.iter().any(|entry| is_glob(entry))
        });
        let allowed_tools = limited.then(|| {
            let both = known.into_iter().filter(|tool| self.permits(tool) && other.permits(tool));
            let mut names: Vec<String> = both.map(str::to_owned).collect();
            names.sort_unstable();
            names.dedup();
            names
        });
        Bounds { allowed_tools, denied_tools }
    }
}

pub fn is_glob(entry: &str) -> bool {
    entry.contains('*')
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

    fn bounds(allowed: Option<&[&str]>, denied: &[&str]) -> Bounds {
        let list = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        Bounds { allowed_tools: allowed.map(list), denied_tools: list(denied) }
    }

    #[test]
    fn a_tool_that_comes_later_is_not_delegated_by_accident() {
        let known = ["git_pull", "git_push", "read_file"];
        let met = bounds(Some(&["*"]), &[]).meet(&bounds(None, &["git_*"]), known);
        assert_eq!(met, bounds(Some(&["read_file"]), &["git_pull", "git_push"]));
        assert!(!met.permits("git_force") && !met.permits("pay"));
        let met = bounds(None, &["git_*"]).meet(&bounds(None, &[]), known);
        assert!(!met.permits("git_force") && met.permits("read_file"));
    }

    #[test]
    fn what_was_named_stays_named_and_a_glob_becomes_names() {
        let known = ["git_pull", "git_push", "read_file"];
        for (given, named) in [
            (bounds(None, &[]), bounds(None, &[])),
            (bounds(Some(&[]), &[]), bounds(Some(&[]), &[])),
            (
                bounds(Some(&["git_*", "pay"]), &[]),
                bounds(Some(&["git_pull", "git_push", "pay"]), &[]),
            ),
            (bounds(Some(&["pay", "fly"]), &["p*"]), bounds(Some(&["fly"]), &[])),
            (bounds(None, &["pay"]), bounds(None, &["pay"])),
            (bounds(None, &["git_*"]), bounds(Some(&["read_file"]), &["git_pull", "git_push"])),
        ] {
            assert_eq!(given.named(known), named, "{given:?}");
            assert_eq!(named.named(known), named, "{given:?}");
        }
    }

    #[test]
    fn no_limit_meets_no_limit_and_stays_none() {
        assert!(Bounds::default().meet(&Bounds::default(), ["a"]).is_unlimited());
        let met = bounds(None, &["pay"]).meet(&Bounds::default(), ["a"]);
        assert_eq!(met, bounds(None, &["pay"]));
    }
}
