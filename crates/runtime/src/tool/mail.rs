//! `send_mail` and `escalate`, and the mails that have a tool of their own: `approve_deployment`,
//! `request_budget`, `assign_task`. Whom an agent may write to, and what, is `domain::mail`'s.
//!
//! Each may be run again: a call that was carried out before is known by its key, and is the same
//! mail or the same rejection.

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::contract::superiors;
use chancery_domain::event::{Actor, Call, CallResult};
use chancery_domain::id::{AgentId, ContractId, MailId};
use chancery_domain::mail::{
    ATTACHMENTS_MAX, Attachment, BODY_MAX, Draft, NOT_THE_SENDERS, Priority, SUBJECT_MAX,
};
use chancery_domain::org::Org;
use chancery_domain::policy::Risk;
use chancery_domain::raise::ESCALATION;
use chancery_store::StoreError;
use chancery_store::mail::{Behalf, MailRow, Raised};
use serde_json::{Map, Value, json};

use super::spec::{object, spec};
use super::{CallContext, Done, Objection, Prospect, Tool, ToolSpec};
use crate::mailroom::{Mailroom, Posted};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Send,
    Escalate,
    ApproveDeployment,
    RequestBudget,
    AssignTask,
}

const ALL: [What; 5] =
    [What::Send, What::Escalate, What::ApproveDeployment, What::RequestBudget, What::AssignTask];

#[derive(Debug)]
pub struct MailTool {
    spec: ToolSpec,
    mailroom: Mailroom,
    what: What,
}

/// What they are without anybody to deliver.
pub fn specs() -> impl Iterator<Item = ToolSpec> {
    ALL.into_iter().map(spec_of)
}

pub fn tools(
    mailroom: &Mailroom,
    changed: impl Fn(ToolSpec) -> ToolSpec,
) -> impl Iterator<Item = MailTool> {
    ALL.into_iter().map(move |what| MailTool {
        spec: changed(spec_of(what)),
        mailroom: mailroom.clone(),
        what,
    })
}

fn spec_of(what: What) -> ToolSpec {
    let subject = json!({"type": "string", "minLength": 1, "maxLength": SUBJECT_MAX});
    let body = json!({"type": "string", "maxLength": BODY_MAX});
    let name = json!({"type": "string", "minLength": 1, "maxLength": 256});
    let priority = json!({"enum": Priority::ALL.map(Priority::as_str)});
    let contract = json!({"type": "string", "pattern": "^CTR-[0-9a-z-]{1,28}$"});
    let (tool, description, properties, required) = match what {
        What::Send => (
            "send_mail",
            "Writes to another agent, or to the board where you may. Mail is the only way to reach \
             them. You may write to your contacts alone, and only what your role may send them; \
             what is rejected is recorded, and the error says whom you may write to.",
            json!({
                "to": name,
                "type": name,
                // How long these may be is for the mailroom to say: what it rejects is recorded,
                // and what a schema refuses is not.
                "subject": {
                    "type": "string",
                    "description": format!("One line of 1 to {SUBJECT_MAX} characters"),
                },
                "body": {
                    "type": "string", "description": format!("At most {BODY_MAX} characters"),
                },
                "priority": priority,
                "attachments": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string"}, "description": {"type": "string"},
                        },
                        "required": ["path"],
                        "additionalProperties": false,
                    },
                    "description": format!(
                        "At most {ATTACHMENTS_MAX} paths of files that you may read"
                    ),
                },
                "reply_to": {"type": "string", "description": "The id of the mail that this answers"},
                "contract_ref": contract,
            }),
            &["to", "type", "subject"][..],
        ),
        What::Escalate => (
            "escalate",
            "Hands a problem that is beyond you up to your direct superior, and to nobody else. \
             Should there be no answer you may do so again after a while; the third that nobody \
             answers goes to the head of the organisation.",
            json!({"subject": subject, "body": body, "priority": priority, "contract_ref": contract}),
            &["subject", "body"][..],
        ),
        What::ApproveDeployment => (
            "approve_deployment",
            "Approves one deployment to one environment, by mail to whoever carries it out. \
             Nothing is deployed to production without it. Approve what QA has passed.",
            json!({
                "to": name,
                "environment": name,
                "deployment": {
                    "type": "string", "minLength": 1, "maxLength": 500,
                    "description": "What is deployed: the image, with its tag or digest",
                },
                "note": body,
                "contract_ref": contract,
            }),
            &["to", "environment", "deployment"][..],
        ),
        What::RequestBudget => (
            "request_budget",
            "Asks your superior for money, as a request for approval by mail.",
            json!({
                "amount": {"type": "number", "exclusiveMinimum": 0},
                "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "purpose": {"type": "string", "minLength": 1, "maxLength": 4000},
                "contract_ref": contract,
            }),
            &["amount", "currency", "purpose"][..],
        ),
        What::AssignTask => (
            "assign_task",
            "Gives one of your reports a task within a contract that they hold from you. Work that \
             needs files or a branch of its own is a contract: use `create_contract`.",
            json!({
                "to": name, "contract_ref": contract, "title": subject, "body": body,
                "priority": priority,
            }),
            &["to", "contract_ref", "title", "body"][..],
        ),
    };
    let mut parameters = object(properties, required);
    // What a type says beside these, and a sender that nobody believes.
    parameters["additionalProperties"] = json!(what == What::Send);
    let risk = if what == What::ApproveDeployment { Risk::Medium } else { Risk::Low };
    spec(tool, risk, description, parameters)
}

#[async_trait]
impl Tool for MailTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let given = &permit.call().arguments;
        let done = self.carry_out(given, context).await;
        Done::Result(done.unwrap_or_else(|it| it))
    }

    async fn objects(
        &self,
        call: &Call,
        who: &Prospect<'_>,
    ) -> Result<Option<Objection>, StoreError> {
        match self.draft(&call.arguments, who.org, who.agent) {
            Ok(draft) => rejection(&self.mailroom, draft, who).await,
            Err(_) => Ok(None),
        }
    }
}

type Answer = Result<CallResult, CallResult>;

impl MailTool {
    async fn carry_out(&self, given: &Value, context: &CallContext) -> Answer {
        let draft = self.draft(given, &context.org, &context.speaker.agent)?;
        if self.what == What::Escalate {
            self.check_raise(&draft, context).await?;
        }
        post(&self.mailroom, draft, context).await.map(|it| CallResult::ok(sent(&it).to_string()))
    }

    /// The mail that a call is.
    fn draft(&self, given: &Value, org: &Org, by: &AgentId) -> Result<Draft, CallResult> {
        Ok(match self.what {
            What::Send => draft(given),
            What::Escalate => {
                let (to, kind) = (superior(org, by)?, ESCALATION.to_owned());
                Draft { to, kind, ..draft(given) }
            }
            What::ApproveDeployment => approval(given),
            What::RequestBudget => budget(given, &superior(org, by)?),
            What::AssignTask => task(given),
        })
    }

    /// The same problem is handed up again only when its time is over.
    async fn check_raise(&self, draft: &Draft, context: &CallContext) -> Result<(), CallResult> {
        let outgoing = self.mailroom.outgoing(draft.clone(), context);
        match self.mailroom.store().raised(&outgoing).await {
            Ok(Raised::Fresh) => Ok(()),
            Ok(Raised::Waits(until)) => Err(CallResult::error(
                "ALREADY_RAISED",
                format!("this waits for an answer until {until}; after that it may be sent again"),
            )),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

/// Sends a mail in the name of whoever calls.
pub(super) async fn post(
    mailroom: &Mailroom,
    draft: Draft,
    context: &CallContext,
) -> Result<MailRow, CallResult> {
    match mailroom.post(draft, context).await {
        Ok(Posted::Delivered(mail)) => Ok(*mail),
        Ok(Posted::Rejected(rejection)) => Err(CallResult::error(
            "MAIL_REJECTED",
            json!({
                "step": rejection.step.as_str(),
                "reason": rejection.reason,
                "contacts": rejection.contacts,
            })
            .to_string(),
        )),
        Err(error) => Err(unavailable(&error)),
    }
}

/// Why a mail would not be delivered. It is the mailroom that says so when it is sent, and keeps
/// that it was tried.
pub(super) async fn rejection(
    mailroom: &Mailroom,
    draft: Draft,
    who: &Prospect<'_>,
) -> Result<Option<Objection>, StoreError> {
    let behalf = Behalf {
        user: who.user.clone(),
        project: None,
        delegated: None,
        run: None,
        contract: who.contract.cloned(),
    };
    let by = Actor::Agent(who.agent.clone());
    let outgoing = mailroom.from_outside(draft, who.agent.as_str(), by, behalf);
    let rejected = mailroom.store().try_mail(who.org, outgoing).await?;
    Ok(rejected.map(|it| Objection::told(&format!("mail.{}", it.step), it.reason)))
}

pub(super) fn unavailable(error: &chancery_store::StoreError) -> CallResult {
    tracing::warn!(%error, "A mail call failed: {error}");
    CallResult::error("UNAVAILABLE", "mail cannot be reached just now")
}

fn sent(mail: &MailRow) -> Value {
    let mut said = json!({"mail_id": mail.id, "to": mail.to, "status": mail.status});
    if let Some(contract) = &mail.contract_ref {
        said["contract_id"] = json!(contract);
    }
    said
}

const COMMON: [&str; 8] =
    ["to", "type", "subject", "body", "priority", "attachments", "reply_to", "contract_ref"];

/// A mail of the names that it has on the wire; what is beside them is its type's own.
pub fn draft(given: &Value) -> Draft {
    let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
    let attachments = given["attachments"].as_array().into_iter().flatten();
    let attachments = attachments.map(|it| Attachment {
        path: it["path"].as_str().unwrap_or_default().to_owned(),
        description: it["description"].as_str().unwrap_or_default().to_owned(),
    });
    let beside = given.as_object().into_iter().flatten();
    let beside = beside.filter(|(name, value)| {
        !NOT_THE_SENDERS.contains(&&***name) && !COMMON.contains(&&***name) && !value.is_null()
    });
    Draft {
        to: text("to"),
        kind: text("type"),
        subject: text("subject"),
        body: text("body"),
        priority: priority(given),
        attachments: attachments.collect(),
        reply_to: given["reply_to"].as_str().map(MailId::from),
        contract_ref: given["contract_ref"].as_str().map(ContractId::from),
        fields: beside.map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

pub(super) fn priority(given: &Value) -> Priority {
    given["priority"].as_str().and_then(Priority::parse).unwrap_or_default()
}

/// The one superior that a problem goes to: the first of the role's line.
fn superior(org: &Org, agent: &AgentId) -> Result<String, CallResult> {
    let above = superiors(org, agent.as_str());
    above.into_iter().next().ok_or_else(|| CallResult::error("NOT_HERE", "there is nobody above"))
}

fn approval(given: &Value) -> Draft {
    let text = |name: &str| given[name].as_str().unwrap_or_default();
    let (environment, deployment) = (text("environment"), text("deployment"));
    let fields = [("environment", environment), ("deployment", deployment)];
    let shown: String = deployment.chars().take(100).collect();
    let place: String = environment.chars().take(60).collect();
    Draft {
        kind: "deployment_approval".to_owned(),
        subject: format!("{shown} may go to {place}"),
        body: text("note").to_owned(),
        priority: Priority::High,
        fields: fields.map(|(name, value)| (name.to_owned(), json!(value))).into_iter().collect(),
        contract_ref: given["contract_ref"].as_str().map(ContractId::from),
        ..Draft::bare(text("to"), "")
    }
}

fn budget(given: &Value, superior: &str) -> Draft {
    let (amount, currency) = (&given["amount"], given["currency"].as_str().unwrap_or_default());
    Draft {
        kind: "approval_request".to_owned(),
        subject: format!("Budget: {amount} {currency}"),
        body: given["purpose"].as_str().unwrap_or_default().to_owned(),
        contract_ref: given["contract_ref"].as_str().map(ContractId::from),
        fields: Map::new(),
        ..Draft::bare(superior, "")
    }
}

fn task(given: &Value) -> Draft {
    let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
    Draft {
        kind: "info".to_owned(),
        subject: text("title"),
        body: text("body"),
        priority: priority(given),
        contract_ref: given["contract_ref"].as_str().map(ContractId::from),
        ..Draft::bare(&text("to"), "")
    }
}
