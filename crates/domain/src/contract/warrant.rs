//! What a contract opens to whoever works under it.

use std::borrow::Cow;

use crate::id::ContractId;

/// What the contracts that an agent works under let it reach: what stands for
/// `{contract.workspace_scope}` and `{contract.assigned_branch}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warrant {
    pub contracts: Vec<ContractId>,
    /// Paths beneath the workspace.
    pub scopes: Vec<String>,
    pub branches: Vec<String>,
}

impl Warrant {
    /// The contract, where there is one and no other.
    pub fn only(&self) -> Option<&ContractId> {
        match &*self.contracts {
            [only] => Some(only),
            _ => None,
        }
    }

    /// An entry of a role's files with what its placeholders stand for: none, one or several.
    /// A placeholder that nothing stands for, or that is not known, leaves nothing.
    pub fn fill<'w>(&'w self, entry: &'w str) -> Vec<Cow<'w, str>> {
        const SCOPE: &str = "{contract.workspace_scope}";
        const BRANCH: &str = "{contract.assigned_branch}";
        let (mark, values) = match entry {
            _ if !entry.contains(['{', '}']) => return vec![entry.into()],
            _ if entry.contains(SCOPE) => (SCOPE, &self.scopes),
            _ if entry.contains(BRANCH) => (BRANCH, &self.branches),
            _ => return Vec::new(),
        };
        let filled = values.iter().map(|value| entry.replacen(mark, value, 1));
        filled.filter(|it| !it.contains(['{', '}'])).map(Into::into).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_that_nothing_stands_for_leaves_nothing() {
        let warrant = Warrant {
            contracts: vec![],
            scopes: vec!["src/billing".into(), "docs".into()],
            branches: vec![],
        };
        assert_eq!(warrant.fill("tests/"), ["tests/"]);
        assert_eq!(warrant.fill("{contract.workspace_scope}"), ["src/billing", "docs"]);
        assert!(warrant.fill("{contract.assigned_branch}").is_empty());
        assert!(warrant.fill("{contract.title}").is_empty());
        let sly = Warrant { scopes: vec!["{contract.workspace_scope}".into()], ..warrant };
        assert!(sly.fill("{contract.workspace_scope}").is_empty());
    }
}
