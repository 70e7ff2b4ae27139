//! The tools of the organisation that work on files, programs and the repository, under roles
//! like those that are built in: each call is ruled on by its role first, as at the gate.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod docker;
mod files;
mod git;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chancery_domain::contract::Warrant;
use chancery_domain::event::{Call, CallResult, Member};
use chancery_domain::id::RunId;
use chancery_domain::org::{Agent, Contact, Direction, FileScope, GitScope, MailType, Org, Role};
use chancery_runtime::authority::{Authority, Case, Given};
use chancery_runtime::tool::config::{Place, ToolsConfig, build};
use chancery_runtime::tool::{CallContext, Done, Tools};
use chancery_testkit::permit;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

#[derive(Debug)]
pub struct House {
    pub dir: TempDir,
    pub tools: Arc<Tools>,
    pub org: Arc<Org>,
    pub warrant: Arc<Warrant>,
}

/// A role as `roles.yaml` has it.
fn role(id: &str, department: &str, read: &[&str], write: &[&str]) -> Role {
    let entries = |it: &[&str]| it.iter().map(|it| (*it).to_owned().into()).collect();
    Role {
        department: Some(department.to_owned()),
        file_scope: Some(FileScope { read: entries(read), write: entries(write) }),
        ..Role::unlimited(id)
    }
}

pub fn org() -> Org {
    let git = GitScope {
        branches: vec!["{contract.assigned_branch}".to_owned()],
        protected: ["main", "master", "production"].map(str::to_owned).to_vec(),
    };
    let scope = "{contract.workspace_scope}";
    let worker = ["agents/backend_worker/", scope, "tests/"];
    let types = vec!["deployment_approval".to_owned()];
    let contact = Contact { types, needs_active_contract: false };
    let roles = [
        role("ceo", "executive", &["agents/ceo/", "reports/"], &["agents/ceo/"]),
        Role {
            level: 2,
            contacts: [("devops_worker".to_owned(), contact)].into(),
            ..role(
                "it_manager",
                "it",
                &[
                    "agents/it_manager/",
                    "equipment/",
                    "reports/tech/",
                    "agents/backend_worker/WORKSPACE/",
                ],
                &["agents/it_manager/", "equipment/", "reports/tech/"],
            )
        },
        role(
            "product_manager",
            "product",
            &["agents/product_manager/", "backlog/", "docs/prd/", "reports/product/"],
            &["agents/product_manager/", "backlog/", "docs/prd/", "reports/product/"],
        ),
        Role { git: Some(git), ..role("backend_worker", "it", &worker, &worker) },
        Role {
            reports_to: vec!["it_manager".into()],
            ..role(
                "devops_worker",
                "it",
                &["agents/devops_worker/", ".github/workflows/", "docker/", "logs/"],
                &["agents/devops_worker/", ".github/workflows/", "docker/"],
            )
        },
        role("research_worker", "product", &["docs/", "reports/research/"], &["reports/research/"]),
        Role::unlimited("personal_agent"),
    ];
    let mut agents: Vec<_> =
        roles.iter().map(|it| (it.id.as_str().into(), Agent::of(it.id.as_str()))).collect();
    agents.push(("pa".into(), Agent::of("personal_agent")));
    let mut org = Org::new(roles, agents).unwrap();
    let approval = MailType {
        description: String::new(),
        senders: Some(vec!["it_manager".into()]),
        direction: Direction::Down,
        fields: ["environment", "deployment"].map(str::to_owned).to_vec(),
        place: None,
    };
    org.mail.insert("deployment_approval".to_owned(), approval);
    org
}

impl House {
    pub async fn new() -> House {
        House::with("", |_| {}).await
    }

    pub async fn with(tools: &str, change: impl FnOnce(&mut Place)) -> House {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        let config = ToolsConfig::parse("tools.yaml", tools).unwrap();
        let mut place = Place::here(&dir.path().join("ws"), dir.path());
        change(&mut place);
        let (tools, _) = build(&config, &place).await.unwrap();
        let warrant = Warrant {
            contracts: vec!["CTR-1".into()],
            scopes: vec!["src/billing".to_owned()],
            branches: vec!["feature/billing".to_owned()],
        };
        House { dir, tools: Arc::new(tools), org: Arc::new(org()), warrant: Arc::new(warrant) }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    pub fn put(&self, path: &str, content: &str) {
        put(&self.at(path), content);
    }

    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|it| panic!("{path}: {it}"))
    }

    pub fn context(&self, agent: &str, key: &str) -> CallContext {
        let agent: chancery_domain::id::AgentId = agent.into();
        CallContext {
            run: RunId(Uuid::from_u128(1)),
            created: Arc::new(chancery_testkit::created("pa", "lin")),
            speaker: Member { role: self.org.role_of(&agent).unwrap().id.clone(), agent },
            org: self.org.clone(),
            warrant: self.warrant.clone(),
            idempotency_key: key.to_owned(),
            cancelled: CancellationToken::new(),
        }
    }

    /// The gate's word, and then the call.
    pub async fn call(&self, agent: &str, tool: &str, arguments: Value) -> CallResult {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let key = format!("key-{}", CALLS.fetch_add(1, Ordering::Relaxed));
        self.call_as(agent, tool, arguments, &key).await
    }

    pub async fn call_as(&self, agent: &str, tool: &str, given: Value, key: &str) -> CallResult {
        let call = Call { id: "call_1".into(), tool: tool.to_owned(), arguments: given.clone() };
        let authority = Authority::new(self.org.clone(), self.tools.clone());
        let judged = authority.judge(Case {
            agent,
            user: "lin",
            delegated: None,
            call: &call,
            given: Given::Whole,
            task: None,
            now: jiff::Timestamp::UNIX_EPOCH,
            warrant: &self.warrant,
            record: None,
            limits: &[],
        });
        if judged.ruling == chancery_domain::policy::Ruling::Deny {
            let said = judged.reasons.first().map(|it| it.detail.clone()).unwrap_or_default();
            return CallResult::error("DENIED_AT_THE_GATE", said);
        }
        self.past_the_gate(agent, tool, given, key).await
    }

    /// The tool alone: its own walls.
    pub async fn past_the_gate(
        &self,
        agent: &str,
        tool: &str,
        given: Value,
        key: &str,
    ) -> CallResult {
        match self.tools.call(permit(tool, given), &self.context(agent, key)).await {
            Done::Result(result) => result,
            other => panic!("{other:?} where a result was due"),
        }
    }
}

pub fn put(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub fn code(result: &CallResult) -> &str {
    result.code.as_deref().unwrap_or("OK")
}

pub fn json(result: &CallResult) -> Value {
    assert_eq!(code(result), "OK", "{}", result.text);
    serde_json::from_str(&result.text).unwrap()
}
