//! Contracts as agents use them: `generate_contract` and `create_contract` hand work down,
//! `read_contract` takes it up, `submit_report` hands it back, `write_verdict` judges it.
//!
//! A step of a contract is the store's to make and `domain::contract`'s to allow. Each may be run
//! again: the mail is the same one, a step that was made is made, and the file has the same name.

mod report;

use std::sync::Arc;

use async_trait::async_trait;
use chancery_domain::audit::{Entry, kind};
use chancery_domain::batch::Permit;
use chancery_domain::contract::{Standing, State, superiors};
use chancery_domain::event::{Actor, Call, CallResult};
use chancery_domain::id::ContractId;
use chancery_domain::mail::{
    BODY_MAX, CONTRACT, CONTRACT_FIELDS, Draft, OUTCOME, Priority, REPORT, SUBJECT_MAX,
};
use chancery_domain::policy::Risk;
use chancery_store::StoreError;
use chancery_store::mail::{ContractFilter, ContractRow, MailRow, Stepped, WantedStep};
use serde_json::{Value, json};

use super::files::Workspace;
use super::mail::{post, priority, rejection, unavailable};
use super::spec::{object, spec};
use super::{CallContext, Done, Objection, Prospect, Tool, ToolSpec};
use crate::clock;
use crate::mailroom::Mailroom;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Generate,
    Create,
    Read,
    SubmitReport,
    WriteVerdict,
}

const ALL: [What; 5] =
    [What::Generate, What::Create, What::Read, What::SubmitReport, What::WriteVerdict];
const LISTED_MAX: u32 = 50;

#[derive(Debug)]
pub struct ContractTool {
    spec: ToolSpec,
    mailroom: Mailroom,
    workspace: Arc<Workspace>,
    what: What,
}

pub fn specs() -> impl Iterator<Item = ToolSpec> {
    ALL.into_iter().map(spec_of)
}

pub fn tools(
    mailroom: &Mailroom,
    workspace: &Arc<Workspace>,
    changed: impl Fn(ToolSpec) -> ToolSpec,
) -> impl Iterator<Item = ContractTool> {
    ALL.into_iter().map(move |what| ContractTool {
        spec: changed(spec_of(what)),
        mailroom: mailroom.clone(),
        workspace: workspace.clone(),
        what,
    })
}

fn spec_of(what: What) -> ToolSpec {
    let title = json!({"type": "string", "minLength": 1, "maxLength": SUBJECT_MAX});
    let body = json!({"type": "string", "maxLength": BODY_MAX});
    let name = json!({"type": "string", "minLength": 1, "maxLength": 256});
    let several = json!({
        "oneOf": [{"type": "string"}, {"type": "array", "maxItems": 50, "items": {"type": "string"}}],
    });
    let contract = json!({"type": "string", "pattern": "^CTR-[0-9a-z-]{1,28}$"});
    let terms = json!({
        "to": name,
        "title": title,
        "body": body,
        "priority": {"enum": Priority::ALL.map(Priority::as_str)},
        "deadline": {"type": "string", "description": "A time (RFC 3339) or a date"},
        "deliverables": several,
        "acceptance_criteria": several,
        "workspace_scope": several,
        "assigned_branch": {"type": "string", "maxLength": 200},
        "cross_department": {
            "type": "boolean",
            "description": "Whether its holder may write across departments where its role provides for it",
        },
    });
    let (tool, description, properties, required, risk) = match what {
        What::Generate => (
            "generate_contract",
            "Hands work to one of your direct reports as a contract: one outcome, a priority, a \
             deadline.",
            terms,
            &["to", "title", "body"][..],
            Risk::Medium,
        ),
        What::Create => (
            "create_contract",
            "Hands work to one of your own workers as a contract. `workspace_scope` is what they \
             may reach in the workspace, `assigned_branch` the one branch that they may push to.",
            terms,
            &["to", "title", "body"][..],
            Risk::Medium,
        ),
        What::Read => (
            "read_contract",
            "Reads a contract that you hold or gave, and takes up one that was given to you: from \
             then on what it opens is open to you. Without an id, lists yours.",
            json!({"id": contract}),
            &[][..],
            Risk::Low,
        ),
        What::SubmitReport => (
            "submit_report",
            "Reports to your superior what was done, and hands in the work of a contract: it is \
             then judged. With outcome `progress` or `blocked` it stays with you.",
            json!({
                "contract_ref": contract,
                "title": title,
                "body": body,
                "outcome": {"enum": ["completed", "progress", "blocked"]},
            }),
            &["title", "body"][..],
            Risk::Low,
        ),
        What::WriteVerdict => (
            "write_verdict",
            "Says whether the work of a contract passed its checks. Be exact about what you saw.",
            json!({
                "contract_ref": contract,
                "verdict": {"enum": ["PASS", "FAIL"]},
                "summary": {"type": "string", "minLength": 1, "maxLength": 4000},
                "findings": {"type": "array", "maxItems": 100, "items": {"type": "string"}},
            }),
            &["contract_ref", "verdict", "summary"][..],
            Risk::Low,
        ),
    };
    spec(tool, risk, description, object(properties, required))
}

#[async_trait]
impl Tool for ContractTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let given = &permit.call().arguments;
        let done = match self.what {
            What::Generate | What::Create => self.issue(given, context).await,
            What::Read => self.read(given, context).await,
            What::SubmitReport => self.submit(given, context).await,
            What::WriteVerdict => self.judge(given, context).await,
        };
        Done::Result(done.unwrap_or_else(|it| it))
    }

    async fn objects(
        &self,
        call: &Call,
        who: &Prospect<'_>,
    ) -> Result<Option<Objection>, StoreError> {
        match self.what {
            What::Generate | What::Create => {
                rejection(&self.mailroom, issued(&call.arguments), who).await
            }
            What::Read | What::SubmitReport | What::WriteVerdict => Ok(None),
        }
    }
}

/// The mail that a contract is.
fn issued(given: &Value) -> Draft {
    let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
    let fields = CONTRACT_FIELDS.into_iter().filter(|it| !given[*it].is_null());
    Draft {
        subject: text("title"),
        body: text("body"),
        priority: priority(given),
        fields: fields.map(|it| (it.to_owned(), given[it].clone())).collect(),
        ..Draft::bare(&text("to"), CONTRACT)
    }
}

type Answer = Result<CallResult, CallResult>;

impl ContractTool {
    async fn issue(&self, given: &Value, context: &CallContext) -> Answer {
        let mail = post(&self.mailroom, issued(given), context).await?;
        let said = json!({"contract_id": mail.contract_ref, "mail_id": mail.id, "to": mail.to});
        Ok(CallResult::ok(said.to_string()))
    }

    async fn read(&self, given: &Value, context: &CallContext) -> Answer {
        let Some(id) = given["id"].as_str().map(ContractId::from) else {
            return self.list(context).await;
        };
        let row = self.contract(&id, context).await?;
        let mine = row.contract.to == context.speaker.agent;
        let mut row = row;
        for to in [State::Accepted, State::InProgress] {
            let next = matches!(
                (row.contract.state, to),
                (State::Pending, State::Accepted) | (State::Accepted, State::InProgress)
            );
            if mine && next {
                row = self.step(&id, to, None, context).await?;
            }
        }
        Ok(CallResult::ok(report::contract(&row)))
    }

    async fn list(&self, context: &CallContext) -> Answer {
        let party = Some(context.speaker.agent.to_string());
        let filter = ContractFilter { party, ..ContractFilter::default() };
        let found = self.mailroom.store().contracts(&filter, LISTED_MAX).await;
        let lines = found.map_err(|it| unavailable(&it))?;
        let lines: Vec<String> = lines.iter().map(report::line).collect();
        let text = if lines.is_empty() { "there are none".to_owned() } else { lines.join("\n") };
        Ok(CallResult::ok(text))
    }

    async fn submit(&self, given: &Value, context: &CallContext) -> Answer {
        let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
        let named = given["contract_ref"].as_str().map(ContractId::from);
        let under = named
            .or_else(|| context.created.contract.clone())
            .or_else(|| context.warrant.only().cloned());
        let row = match &under {
            Some(id) => Some(self.contract(id, context).await?),
            None => None,
        };
        let held = row.as_ref().filter(|it| it.contract.to == context.speaker.agent);
        let outcome = given["outcome"].as_str().unwrap_or("completed");
        let to = match held {
            Some(row) => row.contract.from.to_string(),
            None => superiors(&context.org, context.speaker.agent.as_str()).swap_remove(0),
        };
        let draft = Draft {
            subject: text("title"),
            body: text("body"),
            contract_ref: under.clone(),
            fields: [(OUTCOME.to_owned(), json!(outcome))].into_iter().collect(),
            ..Draft::bare(&to, REPORT)
        };
        let mail = post(&self.mailroom, draft, context).await?;
        let path = self.keep(&mail, report::folder(context), context).await?;
        let state = match &under {
            Some(id) => Some(self.contract(id, context).await?.contract.state),
            None => None,
        };
        let said = json!({"mail_id": mail.id, "to": mail.to, "file": path, "contract_id": under,
            "contract_state": state});
        Ok(CallResult::ok(said.to_string()))
    }

    async fn judge(&self, given: &Value, context: &CallContext) -> Answer {
        let text = |name: &str| given[name].as_str().unwrap_or_default();
        let id = ContractId::from(text("contract_ref"));
        let row = self.contract(&id, context).await?;
        let (verdict, to) = match text("verdict") {
            "PASS" => ("PASS", State::Passed),
            _ => ("FAIL", State::Failed),
        };
        if row.contract.state != State::Review && row.contract.state != to {
            let state = row.contract.state;
            let detail = format!("contract `{id}` is {state}: only what is in review is judged");
            return Err(CallResult::error("NOT_NOW", detail));
        }
        let findings = given["findings"].as_array().into_iter().flatten();
        let findings = findings.filter_map(Value::as_str).map(|it| format!("\n- {it}"));
        let body = format!("{}\n{}", text("summary"), findings.collect::<String>());
        let subject = format!("{verdict}: {}", row.terms.title);
        let draft = Draft {
            subject: subject.chars().take(SUBJECT_MAX).collect(),
            body: body.chars().take(BODY_MAX).collect(),
            contract_ref: Some(id.clone()),
            ..Draft::bare(row.contract.from.as_str(), "verdict")
        };
        let mail = post(&self.mailroom, draft, context).await?;
        let path = self.keep(&mail, report::own_folder(context), context).await?;
        let row = self.step(&id, to, Some(text("summary")), context).await?;
        let said = json!({"mail_id": mail.id, "file": path, "contract_id": id,
            "contract_state": row.contract.state});
        Ok(CallResult::ok(said.to_string()))
    }

    /// A contract that the speaker has anything to do with; others are not there.
    async fn contract(
        &self,
        id: &ContractId,
        context: &CallContext,
    ) -> Result<ContractRow, CallResult> {
        let missing =
            || CallResult::error("NOT_FOUND", format!("there is no contract `{id}` of yours"));
        let found = self.mailroom.store().contract(id).await.map_err(|it| unavailable(&it))?;
        let row = found.ok_or_else(missing)?;
        let actor = self.actor(context);
        let standing = row.contract.standing(&context.org, &actor, false, &row.user);
        // Who judges reads what was agreed; whoever gave a contract under this one does not.
        let concerns = |it: &Standing| *it != Standing::Board;
        if standing.iter().any(concerns) { Ok(row) } else { Err(missing()) }
    }

    async fn step(
        &self,
        id: &ContractId,
        to: State,
        note: Option<&str>,
        context: &CallContext,
    ) -> Result<ContractRow, CallResult> {
        let actor = self.actor(context);
        let entry = Entry {
            reference: Some(id.to_string()),
            detail: json!({"to": to}),
            ..Entry::of_run(
                clock::new_audit_id(),
                kind::CONTRACT_CHANGED,
                actor.clone(),
                context.run,
                &context.created,
            )
        };
        let wanted = WantedStep {
            id: id.clone(),
            to,
            by: actor,
            operator: false,
            note: note.map(str::to_owned),
            at: clock::now(),
        };
        let stepped = self.mailroom.store().step_contract(&context.org, wanted, entry).await;
        match stepped.map_err(|it| unavailable(&it))? {
            Stepped::Made(row) | Stepped::Already(row) => Ok(*row),
            Stepped::Refused(refusal) => Err(CallResult::error("NOT_NOW", refusal.to_string())),
            Stepped::Absent => {
                Err(CallResult::error("NOT_FOUND", format!("there is no contract `{id}`")))
            }
        }
    }

    /// Files a mail as a document, too, under a name that is the same however often it is filed.
    async fn keep(
        &self,
        mail: &MailRow,
        folder: String,
        context: &CallContext,
    ) -> Result<String, CallResult> {
        let path = report::path(&folder, mail, context);
        let (text, workspace) = (report::document(mail), self.workspace.clone());
        let at = path.clone();
        let write =
            move || workspace.write(&at, text.as_bytes(), super::files::FILE_BYTES_MAX).map(|_| ());
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => Ok(path),
            Ok(Err(error)) => Err(CallResult::error(error.code(), error.to_string())),
            Err(_) => Err(CallResult::error("OUTCOME_UNKNOWN", "the work on the file was cut off")),
        }
    }

    fn actor(&self, context: &CallContext) -> Actor {
        Actor::Agent(context.speaker.agent.clone())
    }
}
