//! Who there is: `list_agents`, and what changes it: `create_agent_jd`, `update_agent_jd`,
//! `deactivate_agent`, `update_org_chart`. A change needs an active contract from the caller's
//! superior, reaches only what is beneath the caller, and becomes a version like any other.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::chart::{self, Amendment};
use chancery_domain::contract::Contract;
use chancery_domain::event::{Call, CallResult};
use chancery_domain::id::{AgentId, ContractId, RoleId};
use chancery_domain::org::Org;
use chancery_domain::policy::Risk;
use chancery_store::StoreError;
use chancery_store::mail::{ContractFilter, ContractRow};
use serde_json::{Value, json};

use super::files::{FILE_BYTES_MAX, Workspace};
use super::mail::unavailable;
use super::spec::{object, spec};
use super::{CallContext, Done, Objection, Prospect, Tool, ToolSpec};
use crate::mailroom::Mailroom;

/// Whoever puts another version of the organisation in force.
#[async_trait]
pub trait Charter: Send + Sync + std::fmt::Debug {
    /// Makes a change to the organisation as it is in force by then, if whoever asks may, given
    /// the contracts that it holds. Answers the version that has the change.
    async fn amend(
        &self,
        amendment: Amendment,
        by: &AgentId,
        held: &[Contract],
    ) -> Result<u64, Unamended>;
}

/// Why the organisation stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unamended {
    #[error(transparent)]
    Refused(#[from] chart::Refusal),
    /// It could not be in force.
    #[error("{0}")]
    NotPossible(String),
}

/// Where it is found, once it is there: tools are made before the organisation that they change.
pub type CharterPlace = Arc<OnceLock<Arc<dyn Charter>>>;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    List,
    CreateJd,
    UpdateJd,
    Deactivate,
    UpdateChart,
}

const ALL: [What; 5] =
    [What::List, What::CreateJd, What::UpdateJd, What::Deactivate, What::UpdateChart];
const HELD_MAX: u32 = 200;

#[derive(Debug)]
pub struct StaffTool {
    spec: ToolSpec,
    mailroom: Mailroom,
    workspace: Arc<Workspace>,
    charter: CharterPlace,
    what: What,
}

pub fn specs() -> impl Iterator<Item = ToolSpec> {
    ALL.into_iter().map(spec_of)
}

pub fn tools(
    mailroom: &Mailroom,
    workspace: &Arc<Workspace>,
    charter: &CharterPlace,
    changed: impl Fn(ToolSpec) -> ToolSpec,
) -> impl Iterator<Item = StaffTool> {
    ALL.into_iter().map(move |what| StaffTool {
        spec: changed(spec_of(what)),
        mailroom: mailroom.clone(),
        workspace: workspace.clone(),
        charter: charter.clone(),
        what,
    })
}

fn spec_of(what: What) -> ToolSpec {
    let name = json!({"type": "string", "minLength": 1, "maxLength": 64});
    let jd = json!({"type": "string", "minLength": 1, "maxLength": 20_000});
    let (tool, description, properties, required, risk) = match what {
        What::List => (
            "list_agents",
            "Lists the agents of the organisation: role, level, department, superior, whether active.",
            json!({}),
            &[][..],
            Risk::Low,
        ),
        What::CreateJd => (
            "create_agent_jd",
            "Makes an agent under a role that exists, with its job description. Needs an active \
             contract from your superior.",
            json!({"agent": name, "role": name, "jd": jd}),
            &["agent", "role", "jd"][..],
            Risk::High,
        ),
        What::UpdateJd => (
            "update_agent_jd",
            "Rewrites an agent's job description. Needs an active contract from your superior.",
            json!({"agent": name, "jd": jd}),
            &["agent", "jd"][..],
            Risk::High,
        ),
        What::Deactivate => (
            "deactivate_agent",
            "Takes an agent out of work: it gets no mail and no run. Needs an active contract from \
             your superior.",
            json!({"agent": name, "reason": {"type": "string", "maxLength": 1000}}),
            &["agent", "reason"][..],
            Risk::High,
        ),
        What::UpdateChart => (
            "update_org_chart",
            "Gives an agent another role, or a role another superior. Needs an active contract \
             from your superior.",
            json!({
                "agent": name, "role": name,
                "reports_to": {"type": "array", "minItems": 1, "maxItems": 8, "items": name},
            }),
            &["role"][..],
            Risk::High,
        ),
    };
    // The same change twice is the same organisation.
    spec(tool, risk, description, object(properties, required))
}

#[async_trait]
impl Tool for StaffTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let given = &permit.call().arguments;
        let done = match self.what {
            What::List => Ok(list(context)),
            What::UpdateJd => self.describe_agent(given, context).await,
            _ => self.change(given, context).await,
        };
        Done::Result(done.unwrap_or_else(|it| it))
    }

    async fn objects(
        &self,
        call: &Call,
        who: &Prospect<'_>,
    ) -> Result<Option<Objection>, StoreError> {
        let Prospect { org, agent, contract, .. } = *who;
        let amendment = match self.amendment(&call.arguments, org) {
            Ok(Some(amendment)) => amendment,
            // Nothing changes, or the call says itself why it cannot be meant.
            Ok(None) | Err(_) => return Ok(None),
        };
        let held = self.held(agent, contract).await?;
        let refused = chart::check(org, agent, &amendment, &held).err();
        Ok(refused.map(|it| Objection::denied("staff", it.to_string())))
    }
}

type Answer = Result<CallResult, CallResult>;

impl StaffTool {
    async fn change(&self, given: &Value, context: &CallContext) -> Answer {
        let Some(amendment) = self.amendment(given, &context.org)? else {
            return Ok(list(context));
        };
        let by = &context.speaker.agent;
        let held = self.held_in(context).await?;
        let charter = self.charter.get().ok_or_else(|| {
            CallResult::error("UNAVAILABLE", "the organisation cannot be changed here")
        })?;
        let hired = matches!(&amendment, Amendment::Hire { .. });
        let version = charter.amend(amendment, by, &held).await.map_err(|it| match it {
            Unamended::Refused(refusal) => refused(&refusal),
            Unamended::NotPossible(why) => CallResult::error("NOT_POSSIBLE", why),
        })?;
        let file = if hired { Some(self.write_jd(given, context).await?) } else { None };
        Ok(CallResult::ok(json!({"org_version": version, "file": file}).to_string()))
    }

    /// The change that a call is, if it is one. A description is for somebody who could be moved,
    /// and needs the same warrant.
    fn amendment(&self, given: &Value, org: &Org) -> Result<Option<Amendment>, CallResult> {
        let text = |name: &str| given[name].as_str();
        let agent = || AgentId::from(text("agent").unwrap_or_default());
        let role = || RoleId::from(text("role").unwrap_or_default());
        let above = given["reports_to"].as_array();
        let amendment = match (self.what, text("agent"), above) {
            (What::List, ..) => return Ok(None),
            (What::UpdateJd, ..) => {
                let role = org.role_of(&agent()).map(|it| it.id.clone());
                let role = role.ok_or_else(|| refused(&chart::Refusal::NoAgent(agent())))?;
                Ok(Amendment::Move { agent: agent(), role })
            }
            (What::CreateJd, ..) => Ok(Amendment::Hire { agent: agent(), role: role() }),
            (What::Deactivate, ..) => Ok(Amendment::Deactivate { agent: agent() }),
            (_, Some(_), None) => Ok(Amendment::Move { agent: agent(), role: role() }),
            (_, None, Some(above)) => Ok(Amendment::Report {
                role: role(),
                to: above.iter().filter_map(Value::as_str).map(RoleId::from).collect(),
            }),
            _ => Err(CallResult::error(
                "INVALID_ARGUMENTS",
                "give `agent` and `role`, or `role` and `reports_to`",
            )),
        };
        amendment.map(Some)
    }

    async fn describe_agent(&self, given: &Value, context: &CallContext) -> Answer {
        let (org, by) = (&context.org, &context.speaker.agent);
        let held = self.held_in(context).await?;
        if let Some(amendment) = self.amendment(given, org)? {
            chart::check(org, by, &amendment, &held).map_err(|it| refused(&it))?;
        }
        let file = self.write_jd(given, context).await?;
        Ok(CallResult::ok(json!({"file": file}).to_string()))
    }

    /// The contracts that can warrant a change: a run that was made for one has that one alone, as
    /// it has its files.
    async fn held(
        &self,
        agent: &AgentId,
        of_run: Option<&ContractId>,
    ) -> Result<Vec<Contract>, StoreError> {
        let store = self.mailroom.store();
        let found: Vec<ContractRow> = match of_run {
            Some(id) => store.contract(id).await?.into_iter().collect(),
            None => {
                let party = Some(agent.to_string());
                let filter = ContractFilter { party, ..ContractFilter::default() };
                store.contracts(&filter, HELD_MAX).await?
            }
        };
        Ok(found.into_iter().map(|it| it.contract).collect())
    }

    async fn held_in(&self, context: &CallContext) -> Result<Vec<Contract>, CallResult> {
        let held = self.held(&context.speaker.agent, context.created.contract.as_ref()).await;
        held.map_err(|it| unavailable(&it))
    }

    async fn write_jd(&self, given: &Value, context: &CallContext) -> Result<String, CallResult> {
        let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
        let (agent, jd) = (text("agent"), text("jd"));
        let role = given["role"]
            .as_str()
            .map(str::to_owned)
            .or_else(|| context.org.role_of(&AgentId::from(&*agent)).map(|it| it.id.to_string()));
        let path = format!("company/agents/{agent}.md");
        let document = format!(
            "---\nagent: {agent}\nrole: {}\nby: {}\n---\n\n{jd}\n",
            role.unwrap_or_default(),
            context.speaker.agent
        );
        let (workspace, at) = (self.workspace.clone(), path.clone());
        let write = move || workspace.write(&at, document.as_bytes(), FILE_BYTES_MAX).map(|_| ());
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => Ok(path),
            Ok(Err(error)) => Err(CallResult::error(error.code(), error.to_string())),
            Err(_) => Err(CallResult::error("OUTCOME_UNKNOWN", "the work on the file was cut off")),
        }
    }
}

fn refused(refusal: &chart::Refusal) -> CallResult {
    CallResult::error("PERMISSION_DENIED", refusal.to_string())
}

fn list(context: &CallContext) -> CallResult {
    let org = &context.org;
    let lines = org.agents().filter_map(|(id, agent)| {
        let role = org.role(&agent.role)?;
        let above: Vec<&str> = role.reports_to.iter().map(|it| it.as_str()).collect();
        Some(format!(
            "{id}: {} (role {}, level {}, department {}, reports to {}){}",
            role.display_name,
            role.id,
            role.level,
            role.department.as_deref().unwrap_or("none"),
            above.join(", "),
            if agent.active { "" } else { ", not active" },
        ))
    });
    CallResult::ok(lines.collect::<Vec<_>>().join("\n"))
}
