//! The organisation, as the wire says it.

use chancery_api::org::{
    Agent, Contact, Counts, Difference, FileScope, Git, Group, MailChange, MailImpact, Mistake,
    Org, Role, Tool, Version,
};
use chancery_domain::id::{AgentId, GroupId};
use chancery_domain::org::{self, Stated};
use chancery_runtime::tool::{ToolSpec, Tools};
use chancery_store::org::OrgVersion;

use crate::organisation::difference;
use crate::organisation::impact;
use crate::organisation::mistake;
use crate::organisation::reload::State;

pub fn org(state: &State, tools: &Tools) -> Org {
    let Version { version, digest, source, at, by } = self::version(state.version.clone());
    let org = &state.loaded.org;
    Org {
        version,
        digest,
        source,
        at,
        by,
        counts: Counts {
            roles: org.roles().count(),
            agents: org.agents().count(),
            users: org.users.len(),
            groups: org.groups.len(),
            tools: tools.specs().count(),
        },
        mistakes: state.loaded.warnings.iter().map(mistake).collect(),
        pending_mistakes: state.pending.iter().map(mistake).collect(),
        files: None,
    }
}

pub fn mail_impact(found: impact::MailImpact) -> MailImpact {
    let (passed, blocked) = found.passed_and_blocked();
    let ruled = |delivered: bool| if delivered { "allow" } else { "deny" }.to_owned();
    let change = |(it, seen): (impact::MailChange, impact::MailSeen)| MailChange {
        before: ruled(!it.passes),
        after: ruled(it.passes),
        from: it.from,
        to: it.to,
        kind: it.kind,
        because: it.because,
        times: seen.times,
        run_id: seen.run.map(|it| it.to_string()),
    };
    MailImpact {
        mails: found.mails,
        cut_off: found.cut_off,
        passed,
        blocked,
        changes: found.changes.into_iter().map(change).collect(),
    }
}

pub fn version(version: OrgVersion) -> Version {
    Version {
        version: version.number,
        digest: version.digest,
        source: version.source.as_str().to_owned(),
        at: version.at,
        by: super::actor(&version.by),
    }
}

pub fn mistake(mistake: &mistake::Mistake) -> Mistake {
    Mistake {
        file: mistake.file.clone().into_owned(),
        line: mistake.line,
        column: mistake.column,
        severity: mistake.severity.as_str().to_owned(),
        code: mistake.code.to_owned(),
        detail: mistake.detail.clone(),
        hint: mistake.hint.clone(),
    }
}

pub fn difference(difference: difference::Difference) -> Difference {
    let effect = difference.effect.as_str().to_owned();
    Difference { subject: difference.subject, detail: difference.detail, effect }
}

pub fn role(org: &org::Org, role: &org::Role) -> Role {
    let texts = |list: &[Stated<String>]| list.iter().map(|it| it.value.clone()).collect();
    let agents = org.agents().filter(|(_, it)| it.role == role.id);
    let contacts = role.contacts.iter().map(|(to, it)| (to.clone(), contact(it)));
    Role {
        id: role.id.to_string(),
        display_name: role.display_name.clone(),
        level: role.level,
        department: role.department.clone(),
        reports_to: role.reports_to.iter().map(ToString::to_string).collect(),
        model_tier: role.model_tier.clone(),
        prompt: role.prompt.clone(),
        tools: role.tools.as_deref().map(texts),
        deny_tools: texts(&role.deny_tools),
        expose: role.expose.clone(),
        delegates: role.delegates.clone().map(super::delegated),
        contacts: contacts.collect(),
        file_scope: role
            .file_scope
            .as_ref()
            .map(|it| FileScope { read: texts(&it.read), write: texts(&it.write) }),
        git: role
            .git
            .as_ref()
            .map(|it| Git { branches: it.branches.clone(), protected: it.protected.clone() }),
        agents: agents.map(|(id, _)| id.to_string()).collect(),
    }
}

fn contact(contact: &org::Contact) -> Contact {
    Contact {
        types: (!contact.types.is_empty()).then(|| contact.types.clone()),
        needs: contact.needs_active_contract.then(|| "active_contract".to_owned()),
    }
}

pub fn agent(id: &AgentId, agent: &org::Agent) -> Agent {
    Agent {
        id: id.to_string(),
        role: agent.role.to_string(),
        kind: agent.personal.then(|| "personal".to_owned()),
        active: agent.active,
    }
}

pub fn group(id: &GroupId, group: &org::Group) -> Group {
    Group {
        id: id.to_string(),
        name: group.name.clone(),
        description: group.description.clone(),
        tags: group.tags.clone(),
        members: group.members.iter().map(ToString::to_string).collect(),
        lead: group.lead.as_ref().map(ToString::to_string),
        rounds: group.rounds,
    }
}

pub fn tool(spec: &ToolSpec, is_command: bool) -> Tool {
    let kind = match () {
        () if is_command => "command",
        () if spec.name.starts_with("mcp__") => "mcp",
        () => "built-in",
    };
    Tool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        risk: spec.risk.as_str().to_owned(),
        capabilities: spec.capabilities.clone(),
        kind: kind.to_owned(),
        parameters: spec.parameters.clone(),
        idempotent: spec.idempotent,
        supports_parallel: spec.supports_parallel,
    }
}
