//! Which paths a role may touch. The first wall: the kernel, which resolves the path in the end,
//! is the second.

use super::{Layer, Reason, Ruling};
use crate::contract::Warrant;
use crate::org::Role;

/// What a call does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

impl Role {
    /// What the role's file scope says against touching a path, under the contracts that its agent
    /// holds. A role without one has no limit.
    pub fn rule_on_path(&self, access: Access, path: &str, warrant: &Warrant) -> Option<Reason> {
        let scope = self.file_scope.as_ref()?;
        let (list, entries, does) = match access {
            Access::Read => ("read", &scope.read, "read"),
            Access::Write => ("write", &scope.write, "write"),
        };
        if entries.iter().flat_map(|it| warrant.fill(&it.value)).any(|it| covers(&it, path)) {
            return None;
        }
        let place = entries.iter().find_map(|it| it.place.as_ref()).or(self.place.as_ref());
        let place = place.map(|it| format!(" ({it})")).unwrap_or_default();
        Some(Reason {
            layer: Layer::Arguments.as_str().to_owned(),
            rule: format!("{}.file_scope.{list}{place}", self.id),
            outcome: Ruling::Deny,
            detail: format!("`{path}` is outside of what role `{}` may {does}", self.id),
        })
    }
}

/// Whether a path is what an entry names, or beneath it. Whole components are compared, so that
/// `reports/qa` does not cover `reports/qa-evil`.
fn covers(entry: &str, path: &str) -> bool {
    let (Some(entry), Some(path)) = (components(entry), components(path)) else {
        return false;
    };
    path.starts_with(&entry)
}

/// The parts of a path. `None`: it goes up, or does not begin at the workspace.
pub fn components(path: &str) -> Option<Vec<&str>> {
    if path.starts_with('/') || path.contains('\\') || path.contains('\0') {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    (!parts.contains(&"..")).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::org::FileScope;

    #[test]
    fn a_path_is_within_a_scope_component_by_component() {
        let write = ["reports/qa/", "tests", "{contract.workspace_scope}"];
        let write = write.map(|it| it.to_owned().into()).to_vec();
        let none = Warrant::default();
        let file_scope = Some(FileScope { read: vec![".".to_owned().into()], write });
        let role = Role { file_scope, ..Role::unlimited("qa_worker") };
        for (path, may) in [
            ("reports/qa/a.md", true),
            ("./reports//qa/a.md", true),
            ("reports/qa", true),
            ("tests/x/y.rs", true),
            ("reports/qa-evil/a.md", false),
            ("reports/qa/../../src/main.rs", false),
            ("/reports/qa/a.md", false),
            ("src/main.rs", false),
            ("{contract.workspace_scope}/a", false),
            ("", false),
        ] {
            assert_eq!(role.rule_on_path(Access::Write, path, &none).is_none(), may, "{path}");
        }
        assert!(role.rule_on_path(Access::Read, "src/main.rs", &none).is_none());
        assert!(role.rule_on_path(Access::Read, "../etc/passwd", &none).is_some());
        assert!(Role::unlimited("x").rule_on_path(Access::Write, "../x", &none).is_none());
    }

    #[test]
    fn a_contract_opens_what_it_names_and_nothing_beside_it() {
        let write = vec!["{contract.workspace_scope}".to_owned().into()];
        let file_scope = Some(FileScope { read: vec![], write });
        let role = Role { file_scope, ..Role::unlimited("backend_worker") };
        let warrant = Warrant { scopes: vec!["src/billing".to_owned()], ..Warrant::default() };
        for (path, may) in [
            ("src/billing/a.rs", true),
            ("src/billing-evil/a.rs", false),
            ("src/main.rs", false),
            ("src/billing/../main.rs", false),
        ] {
            assert_eq!(role.rule_on_path(Access::Write, path, &warrant).is_none(), may, "{path}");
        }
        assert!(role.rule_on_path(Access::Read, "src/billing/a.rs", &warrant).is_some());
    }
}
