//! What is written about contracts: for the agent that reads one, and for the folder that reports
//! are kept in.

use chancery_domain::contract::superiors;
use chancery_domain::id::AgentId;
use chancery_domain::org::{FileScope, Role};
use chancery_store::mail::{ContractRow, MailRow};
use serde_json::{Value, json};

use super::super::CallContext;

/// All that a contract says.
pub(super) fn contract(row: &ContractRow) -> String {
    let terms = &row.terms;
    json!({
        "id": row.contract.id,
        "from": row.contract.from,
        "to": row.contract.to,
        "state": row.contract.state,
        "failures": row.contract.failures,
        "title": terms.title,
        "body": terms.body,
        "priority": terms.priority,
        "deadline": terms.deadline,
        "deliverables": terms.deliverables,
        "acceptance_criteria": terms.acceptance_criteria,
        "workspace_scope": terms.workspace_scope,
        "assigned_branch": terms.assigned_branch,
        "cross_department": terms.cross_department,
        "parent": row.parent,
    })
    .as_object()
    .into_iter()
    .flatten()
    .filter(|(_, value)| !value.is_null())
    .map(|(name, value)| format!("{name}: {}", plain(value)))
    .collect::<Vec<_>>()
    .join("\n")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn line(row: &ContractRow) -> String {
    let it = &row.contract;
    format!("{} {} from {} to {}: {}", it.id, it.state, it.from, it.to, row.terms.title)
}

/// Where the speaker's reports go: to the folder that its superior reads.
pub(super) fn folder(context: &CallContext) -> String {
    let org = &context.org;
    let above = superiors(org, context.speaker.agent.as_str());
    let read = above.iter().find_map(|it| {
        let scope = org.role_of(&AgentId::from(&**it))?.file_scope.as_ref()?;
        reports(scope.read.iter().map(|it| &*it.value))
    });
    read.unwrap_or_else(|| by_department(org.role_of(&context.speaker.agent)))
}

/// Where the speaker writes reports itself.
pub(super) fn own_folder(context: &CallContext) -> String {
    let role = context.org.role_of(&context.speaker.agent);
    let scope: Option<&FileScope> = role.and_then(|it| it.file_scope.as_ref());
    let own = scope.and_then(|it| reports(it.write.iter().map(|it| &*it.value)));
    own.unwrap_or_else(|| by_department(role))
}

/// The first folder of reports that is not that of all.
fn reports<'s>(entries: impl Iterator<Item = &'s str>) -> Option<String> {
    let mut entries = entries.map(|it| it.trim_end_matches('/'));
    entries.find(|it| it.starts_with("reports/") && !it.contains('{')).map(str::to_owned)
}

fn by_department(role: Option<&Role>) -> String {
    let department = role.and_then(|it| it.department.as_deref()).unwrap_or("general");
    format!("reports/{}", slug(department))
}

/// Of what the mail says alone: the same mail is the same file.
pub(super) fn path(folder: &str, mail: &MailRow, context: &CallContext) -> String {
    let at = mail.created_at.strftime("%Y%m%dT%H%M%SZ");
    let (agent, title) = (slug(context.speaker.agent.as_str()), slug(&mail.subject));
    let tail: String = mail.id.as_str().chars().rev().take(4).collect();
    format!("{folder}/{at}-{agent}-{title}-{tail}.md")
}

fn slug(text: &str) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(plain).collect();
    let words = text.split('-').filter(|it| !it.is_empty()).collect::<Vec<_>>().join("-");
    let short: String = words.chars().take(40).collect();
    if short.is_empty() { "untitled".to_owned() } else { short }
}

pub(super) fn document(mail: &MailRow) -> String {
    let about = mail.contract_ref.as_ref().map(|it| format!("contract: {it}\n"));
    format!(
        "---\ntype: {}\nfrom: {}\nto: {}\nmail: {}\n{}date: {}\n---\n\n# {}\n\n{}\n",
        mail.kind,
        mail.from,
        mail.to,
        mail.id,
        about.unwrap_or_default(),
        mail.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        mail.subject,
        mail.body,
    )
}
