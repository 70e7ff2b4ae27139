//! Which branches a role may write to.

use super::{Layer, Reason, Ruling, glob};
use crate::contract::Warrant;
use crate::org::Role;

/// What nobody writes to whose role does not say otherwise.
pub const PROTECTED_BRANCHES: [&str; 3] = ["main", "master", "production"];

const BRANCH_MAX: usize = 200;

/// As git has it, and a little stricter: it is never taken for an option or for a range.
pub fn is_branch_name(branch: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || "-_./+".contains(it);
    branch.len() <= BRANCH_MAX
        && branch.starts_with(|it: char| it.is_ascii_alphanumeric())
        && branch.chars().all(plain)
        && !branch.contains("..")
        && !branch.contains("//")
        && !branch.ends_with(['/', '.'])
        && !branch.split('/').any(|it| it.starts_with('.') || it.ends_with(".lock"))
        && branch != "HEAD"
}

impl Role {
    /// What the role says against writing to a branch, under the contracts that its agent holds.
    /// A role that says nothing of branches writes to all but those that are protected anyway.
    pub fn rule_on_branch(&self, branch: &str, warrant: &Warrant) -> Option<Reason> {
        let place = self.place.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        let deny = |list: &str, detail: String| {
            Some(Reason {
                layer: Layer::Arguments.as_str().to_owned(),
                rule: format!("{}.git.{list}{place}", self.id),
                outcome: Ruling::Deny,
                detail,
            })
        };
        if !is_branch_name(branch) {
            return deny("branches", format!("`{branch}` is not the name of a branch"));
        }
        if self.is_protected(branch) {
            return deny("protected", format!("branch `{branch}` is protected"));
        }
        let git = self.git.as_ref()?;
        if git.branches.iter().any(|it| gives(it, branch, warrant)) {
            return None;
        }
        let given = self.branches(warrant).join("`, `");
        let given = if given.is_empty() { "none".to_owned() } else { format!("`{given}`") };
        deny(
            "branches",
            format!("role `{}` may not write to branch `{branch}`: it may to {given}", self.id),
        )
    }

    /// Whether nobody writes there. Without regard to case, which some file systems have none of.
    pub fn is_protected(&self, branch: &str) -> bool {
        let branch = branch.to_ascii_lowercase();
        match &self.git {
            Some(git) if !git.protected.is_empty() => {
                git.protected.iter().any(|it| glob(&it.to_ascii_lowercase(), &branch))
            }
            // Where nobody said what is protected, a branch is open by its very name alone.
            Some(git) => PROTECTED_BRANCHES.contains(&&*branch) && !git.branches.contains(&branch),
            None => PROTECTED_BRANCHES.contains(&&*branch),
        }
    }

    /// The branches that it may write to, as they are written, with what contracts stand for.
    pub fn branches(&self, warrant: &Warrant) -> Vec<String> {
        let entries = self.git.iter().flat_map(|it| &it.branches);
        entries.flat_map(|it| warrant.fill(it)).map(|it| it.into_owned()).collect()
    }
}

/// What a contract says is a name and never a pattern: whoever issues it does not widen the role.
fn gives(entry: &str, branch: &str, warrant: &Warrant) -> bool {
    if entry.contains('{') {
        warrant.fill(entry).iter().any(|it| it == branch)
    } else {
        glob(entry, branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::org::GitScope;

    #[test]
    fn a_branch_is_the_contracts_and_never_a_protected_one() {
        let texts = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let git = GitScope {
            branches: texts(&["{contract.assigned_branch}", "spike/*"]),
            protected: texts(&["main", "release/*"]),
        };
        let worker = Role { git: Some(git), ..Role::unlimited("backend_worker") };
        let branches = texts(&["feature/pay", "main", "*"]);
        let under = Warrant { branches, ..Warrant::default() };
        let none = Warrant::default();
        for (branch, warrant, may) in [
            ("feature/pay", &under, true),
            ("feature/pay", &none, false),
            ("spike/a", &none, true),
            ("feature/other", &under, false),
            ("main", &under, false),
            ("MAIN", &under, false),
            ("release/1", &under, false),
            ("spike/../main", &under, false),
            ("--force", &under, false),
            ("refs/heads/main", &under, false),
            ("*", &under, false),
            ("", &under, false),
        ] {
            assert_eq!(worker.rule_on_branch(branch, warrant).is_none(), may, "{branch}");
        }
        let free = Role::unlimited("pa");
        assert!(free.rule_on_branch("anything", &none).is_none());
        assert!(free.rule_on_branch("Master", &none).is_some());
    }
}
