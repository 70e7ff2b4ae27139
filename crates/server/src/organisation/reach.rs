//! What one version reaches beyond another, where that is not a matter of single calls: files,
//! branches, contacts, mail, limits, what is passed on, and who decides. Rulings on calls are the
//! policy's and the rules', and are compared there.

use std::collections::BTreeSet;

use chancery_domain::org::{Contact, GitScope, Role, Stated};
use chancery_domain::policy::{glob, scope_components};

use super::Loaded;

/// Something that the later version reaches and the earlier does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beyond {
    /// Who reaches it: `agent qa`, `user lin`, `every run`.
    pub subject: String,
    pub detail: String,
}

/// All of it. What cannot be held against the other side is named as well.
pub fn beyond(old: &Loaded, new: &Loaded) -> Vec<Beyond> {
    let mut found = BTreeSet::new();
    let mut add = |subject: String, detail: String| {
        found.insert(Beyond { subject, detail });
    };
    let tools: BTreeSet<&str> = old.facts.names().chain(new.facts.names()).collect();
    for (id, _) in new.org.agents() {
        // Whoever is new may do nothing yet: its tools are told with the calls.
        let (Some(new), Some(old)) = (new.org.role_of(id), old.org.role_of(id)) else { continue };
        of_role(old, new, &tools, |detail| add(format!("agent {id}"), detail));
    }
    // Where there is no approver, people decide for themselves: the first one takes that away.
    for (id, _) in new.org.users.iter().filter(|(_, it)| it.approver) {
        if !old.org.is_approver(id) {
            add(format!("user {id}"), "decides what is asked, as an approver".to_owned());
        }
    }
    if old.org.has_approver() && !new.org.has_approver() {
        let detail = "what is asked is decided by their own person: nobody is an approver";
        add("every run".to_owned(), detail.to_owned());
    }
    for (id, new) in &new.org.mail {
        let same = old.org.mail.get(id).is_some_and(|old| {
            let fewer = match (&old.senders, &new.senders) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(old), Some(new)) => new.iter().all(|it| old.contains(it)),
            };
            fewer && old.direction == new.direction && old.fields == new.fields
        });
        if !same {
            add(format!("mail type {id}"), "is new, or sent on other terms".to_owned());
        }
    }
    of_limits(old, new, |detail| add("every run".to_owned(), detail));
    found.into_iter().collect()
}

fn of_role(old: &Role, new: &Role, tools: &BTreeSet<&str>, mut add: impl FnMut(String)) {
    if let Some(old) = &old.file_scope {
        match &new.file_scope {
            None => ["read", "write"].iter().for_each(|it| add(format!("may {it} any file"))),
            Some(new) => {
                for (does, old, new) in
                    [("read", &old.read, &new.read), ("write", &old.write, &new.write)]
                {
                    let more = new.iter().filter(|it| !covered(&it.value, old));
                    more.for_each(|it| add(format!("may {does} `{}`", it.value)));
                }
            }
        }
    }
    of_branches(old.git.as_ref(), new.git.as_ref(), &mut add);
    for (to, new) in &new.contacts {
        if !old.contacts.get(to).is_some_and(|old| within(old, new)) {
            add(format!("may write to {to}, or on other terms"));
        }
    }
    let (old, new) = (old.delegable(), new.delegable());
    let passed = tools.iter().filter(|it| new.permits(it) && !old.permits(it));
    passed.for_each(|it| add(format!("may pass on {it} to a group")));
}

/// Whether every path that an entry opens was open. A place that a contract fills in is known by
/// its name alone.
fn covered(entry: &str, old: &[Stated<String>]) -> bool {
    old.iter().any(|old| {
        if entry.contains('{') || old.value.contains('{') {
            return entry == old.value;
        }
        match (scope_components(&old.value), scope_components(entry)) {
            (Some(old), Some(entry)) => entry.starts_with(&old),
            // It opens nothing.
            (_, None) => true,
            (None, _) => false,
        }
    })
}

fn of_branches(old: Option<&GitScope>, new: Option<&GitScope>, add: &mut impl FnMut(String)) {
    let protected = |it: Option<&GitScope>| it.map(|it| it.protected.clone()).unwrap_or_default();
    for gone in protected(old).iter().filter(|it| !protected(new).contains(it)) {
        add(format!("may write to branch `{gone}`, which is protected no more"));
    }
    match (old, new) {
        (None, _) => {}
        (Some(_), None) => add("may write to any branch that is not protected".to_owned()),
        (Some(old), Some(new)) => {
            // A pattern that another matches letter by letter means nothing that it does not.
            let open = |it: &&String| !old.branches.iter().any(|old| glob(old, it));
            new.branches
                .iter()
                .filter(open)
                .for_each(|it| add(format!("may write to branch `{it}`")));
        }
    }
}

fn within(old: &Contact, new: &Contact) -> bool {
    let types = old.types.is_empty()
        || (!new.types.is_empty() && new.types.iter().all(|it| old.types.contains(it)));
    types && (new.needs_active_contract || !old.needs_active_contract)
}

fn of_limits(old: &Loaded, new: &Loaded, mut add: impl FnMut(String)) {
    let (old, new) = (&old.org.policy.limits, &new.org.policy.limits);
    let mut limit = |name: &str, old: Option<&Stated<u32>>, new: Option<&Stated<u32>>| {
        let Some(old) = old.map(|it| it.value) else { return };
        match new.map(|it| it.value) {
            None => add(format!("has no limit `{name}` any more")),
            Some(new) if new > old => add(format!("has {new} `{name}`, not {old}")),
            Some(_) => {}
        }
    };
    limit("run_tokens", old.run_tokens.as_ref(), new.run_tokens.as_ref());
    limit("run_steps", old.run_steps.as_ref(), new.run_steps.as_ref());
    for (name, old) in &old.calls_per_minute {
        limit(&format!("calls_per_minute.{name}"), Some(old), new.calls_per_minute.get(name));
    }
}
