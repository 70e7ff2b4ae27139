//! Mail and contracts, as the wire shows them.

use chancery_api::mail::{Contract, ContractStep, Mail, MailAttachment, MailRejection};
use chancery_domain::contract::Step;
use chancery_store::mail::{ContractRow, MailRow, RejectionRow};

pub fn mail(it: MailRow) -> Mail {
    let attachments = it.attachments.into_iter();
    let attachments = attachments
        .map(|it| MailAttachment { path: it.path, description: it.description })
        .collect();
    Mail {
        id: it.id.0,
        from: it.from,
        to: it.to,
        kind: it.kind,
        subject: it.subject,
        body: it.body,
        priority: it.priority.as_str().to_owned(),
        attachments,
        reply_to: it.reply_to.map(|it| it.0),
        thread: it.thread.0,
        contract_ref: it.contract_ref.map(|it| it.0),
        fields: it.fields,
        status: it.status,
        created_at: it.created_at,
        delivered_at: it.delivered_at,
        read_at: it.read_at,
        user: it.user.0,
        run_id: it.run.map(|it| it.to_string()),
        answered_by_run_id: it.handed_to.map(|it| it.to_string()),
    }
}

pub fn rejection(it: RejectionRow) -> MailRejection {
    MailRejection {
        id: it.id.to_string(),
        from_agent: it.from,
        to_agent: it.to,
        mail_type: it.kind,
        step: it.step,
        reason: it.reason,
        attempted_at: it.attempted_at,
        run_id: it.run.map(|it| it.to_string()),
        audit_id: it.audit.map(|it| it.to_string()),
    }
}

pub fn contract(it: ContractRow) -> Contract {
    let state = it.contract.state.as_str().to_owned();
    Contract {
        id: it.contract.id.0,
        mail_id: it.mail.0,
        from: it.contract.from.0,
        to: it.contract.to.0,
        title: it.terms.title,
        body: it.terms.body,
        priority: it.terms.priority.as_str().to_owned(),
        deadline: it.terms.deadline,
        deliverables: it.terms.deliverables,
        acceptance_criteria: it.terms.acceptance_criteria,
        workspace_scope: it.terms.workspace_scope,
        assigned_branch: it.terms.assigned_branch,
        cross_department: it.terms.cross_department,
        status: state.clone(),
        state,
        failures: it.contract.failures,
        parent: it.parent.map(|it| it.0),
        user: it.user.0,
        created_at: it.created_at,
        updated_at: it.updated_at,
    }
}

pub fn step(it: Step) -> ContractStep {
    ContractStep {
        from: it.from.as_str().to_owned(),
        to: it.to.as_str().to_owned(),
        by: super::memory::by(it.by),
        note: it.note,
        at: it.at,
    }
}
