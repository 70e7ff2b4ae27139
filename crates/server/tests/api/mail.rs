//! Mail and contracts between the agents of the built-in organisation: seed 002, sections 2.2, 3
//! and 4, on both databases. Long, for those sections are one table of rules, and whoever checks
//! it reads this from top to bottom beside them.

use std::collections::BTreeMap;

use chancery_server::config::Config;
use chancery_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

use crate::harness::{Answer, Caller, Server};
use crate::house::{On, on_both};

on_both! {
    of_all_936_triples_those_of_the_table_are_delivered_and_no_others;
    whether_a_call_is_allowed_counts_contacts_contracts_and_approvals;
    what_an_agent_may_not_call_it_may_not_send_from_outside;
    c_01_the_ceo_reaches_managers_alone;
    c_02_a_manager_reaches_its_workers_the_ceo_and_other_managers_on_terms;
    c_03_a_worker_reaches_its_manager_alone;
    c_04_workers_do_not_write_to_one_another;
    c_05_across_departments_mail_goes_through_managers;
    c_06_what_is_not_delivered_is_recorded_with_step_and_reason;
    c_07_contracts_go_down_to_direct_reports_alone;
    a_recipient_that_is_not_there_is_a_rejection;
    a_recipient_that_is_not_active_is_told_to_the_senders_superior;
    a_mail_to_the_wrong_one_says_whom_one_may_write_to;
    a_sender_cannot_be_forged;
    three_rejections_in_ten_minutes_are_told_to_the_superior_once;
    the_first_step_that_fails_rejects;
    sizes_are_held;
    attachments_are_within_what_the_sender_reads;
    an_inbox_has_what_is_critical_first_and_then_the_oldest;
    reading_marks_read_and_only_by_its_recipient;
    only_sender_and_recipient_read_a_mail;
    no_person_is_behind_what_an_agents_token_sends;
    an_id_says_when_and_cannot_be_guessed;
    replies_are_threads_of_their_parties;
    the_board_writes_to_those_who_report_to_it;
    a_contract_goes_from_pending_to_passed;
    steps_are_made_by_those_whose_they_are;
    a_third_failure_goes_up;
    a_contract_is_cancelled_by_its_issuer_until_it_has_ended;
    who_gave_a_contract_as_the_board_is_its_issuer;
    contracts_are_seen_by_those_whom_they_concern;
    a_contract_opens_nothing_that_is_anothers;
    can_mail_says_what_sending_would_come_to;
}

pub struct Office {
    pub server: Server,
    _database: Option<TestDatabase>,
}

impl Office {
    pub async fn open(on: On) -> Office {
        Office::with(on, |config| config.mail.drives_work = false).await
    }

    pub async fn with(on: On, change: impl FnOnce(&mut Config)) -> Office {
        let database = match on {
            On::Sqlite => None,
            On::Postgres => Some(TestDatabase::create().await),
        };
        let url = database.as_ref().map(TestDatabase::url);
        let server = Server::with(|config| {
            config.database = url;
            change(config);
        });
        Office { server: server.await, _database: database }
    }

    pub async fn agent(&self, name: &str) -> Caller {
        self.server.holder(json!({"kind": "agent", "name": name})).await
    }

    pub async fn agents(&self) -> BTreeMap<&'static str, Caller> {
        let mut agents = BTreeMap::new();
        for name in AGENTS {
            agents.insert(name, self.agent(name).await);
        }
        agents
    }

    /// A contract that its holder works under.
    pub async fn contract(&self, from: &str, to: &str, more: Value) -> String {
        let issued = self.agent(from).await.issue(to, more).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        let id = issued.json()["id"].as_str().unwrap().to_owned();
        let holder = self.agent(to).await;
        for step in ["accepted", "in_progress"] {
            assert_eq!(holder.step(&id, step).await.status, 200);
        }
        id
    }
}

impl Caller {
    pub async fn mail(&self, to: &str, kind: &str) -> Answer {
        self.write(json!({"to": to, "type": kind, "subject": "s", "body": "b"})).await
    }

    pub async fn write(&self, mail: Value) -> Answer {
        self.post("/api/mail", &mail).await
    }

    pub async fn issue(&self, to: &str, more: Value) -> Answer {
        let mut body = json!({"to": to, "title": "t", "body": "b", "priority": "high",
            "deadline": "2027-01-01", "deliverables": ["d"], "acceptance_criteria": ["a"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/api/contracts", &body).await
    }

    /// What would be ruled on a call.
    pub async fn ruled(&self, agent: &str, tool: &str, arguments: Value) -> Value {
        let call = json!({"agent": agent, "tool": tool, "arguments": arguments});
        let ruled = self.post("/api/authorize", &call).await;
        assert_eq!(ruled.status, 200, "{ruled:?}");
        ruled.json()
    }

    pub async fn step(&self, contract: &str, to: &str) -> Answer {
        self.post(&format!("/api/contracts/{contract}/transition"), &json!({"to": to})).await
    }

    pub async fn inbox(&self, agent: &str) -> Vec<Value> {
        let page = self.get(&format!("/api/agents/{agent}/inbox")).await.json();
        page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
    }
}

impl Answer {
    #[track_caller]
    fn rejected_at(&self, step: &str) -> Value {
        let said = self.json();
        assert_eq!((self.status, &said["step"]), (403, &json!(step)), "{said}");
        assert_eq!(said["code"], "mail_rejected");
        said
    }
}

const AGENTS: [&str; 9] = [
    "ceo",
    "it_manager",
    "hr_manager",
    "product_manager",
    "backend_worker",
    "frontend_worker",
    "devops_worker",
    "qa_worker",
    "research_worker",
];

const TYPES: [&str; 13] = [
    "contract",
    "report",
    "approval_request",
    "info",
    "escalation",
    "question",
    "verdict",
    "staffing_request",
    "tool_request",
    "tech_review",
    "feasibility_request",
    "requirement_clarification",
    "deployment_approval",
];

/// The table of the design, written out: whom, to whom, what.
fn table() -> Vec<(&'static str, &'static str, &'static str)> {
    let lines = "
        ceo > it_manager hr_manager product_manager : contract info
        it_manager hr_manager product_manager > ceo : report approval_request info escalation
        it_manager > hr_manager : tool_request staffing_request
        hr_manager > it_manager : tool_request staffing_request
        it_manager > product_manager : tech_review feasibility_request
        product_manager > it_manager : feasibility_request
        hr_manager > product_manager : staffing_request
        product_manager > hr_manager : staffing_request
        it_manager > backend_worker frontend_worker qa_worker : contract info
        it_manager > devops_worker : contract info deployment_approval
        product_manager > research_worker : contract info
        product_manager > frontend_worker : requirement_clarification
        frontend_worker > product_manager : question
        backend_worker frontend_worker devops_worker > it_manager : report approval_request info escalation question
        qa_worker > it_manager : report approval_request info escalation question verdict
        research_worker > product_manager : report approval_request info escalation question";
    let mut open = Vec::new();
    for line in lines.lines().filter(|it| !it.trim().is_empty()) {
        let (pair, types) = line.split_once(':').unwrap();
        let (from, to) = pair.split_once('>').unwrap();
        for from in from.split_whitespace() {
            for to in to.split_whitespace() {
                open.extend(types.split_whitespace().map(|kind| (from, to, kind)));
            }
        }
    }
    open
}

const NEED_A_CONTRACT: [(&str, &str, &str); 2] = [
    ("product_manager", "frontend_worker", "requirement_clarification"),
    ("frontend_worker", "product_manager", "question"),
];

async fn of_all_936_triples_those_of_the_table_are_delivered_and_no_others(on: On) {
    let office = Office::open(on).await;
    let agents = office.agents().await;
    let table = table();
    assert_eq!(table.len(), 66);
    for contracted in [false, true] {
        if contracted {
            office
                .contract("it_manager", "frontend_worker", json!({"cross_department": true}))
                .await;
        }
        let (mut tried, mut delivered) = (0, 0);
        for from in AGENTS {
            for to in AGENTS.into_iter().filter(|it| *it != from) {
                for kind in TYPES {
                    tried += 1;
                    // Who asks beforehand is told what will be.
                    let mail = json!({"to": to, "type": kind, "subject": "s", "body": "b"});
                    let ruled = agents[from].ruled(from, "send_mail", mail).await;
                    let sent = agents[from].mail(to, kind).await;
                    let bound = NEED_A_CONTRACT.contains(&(from, to, kind));
                    let open = table.contains(&(from, to, kind)) && (contracted || !bound);
                    assert_eq!(sent.status == 201, open, "{from} {to} {kind}: {sent:?}");
                    assert!(sent.status == 201 || sent.status == 403);
                    assert_eq!(ruled["ruling"], if open { "allow" } else { "deny" }, "{ruled}");
                    delivered += usize::from(open);
                }
            }
        }
        assert_eq!((tried, delivered), (936, if contracted { 66 } else { 64 }));
    }
    let closed = agents["frontend_worker"].mail("product_manager", "info").await;
    closed.rejected_at("type");
}

async fn whether_a_call_is_allowed_counts_contacts_contracts_and_approvals(on: On) {
    let office = Office::open(on).await;
    let operator = office.server.operator();
    let contract = |to: &str| json!({"to": to, "title": "t", "body": "b"});
    let image = json!({"environment": "production", "deployment": "shop/web:1"});
    let staged = json!({"environment": "staging", "deployment": "shop/web:1"});
    for (agent, tool, arguments, rule) in [
        (
            "backend_worker",
            "send_mail",
            json!({"to": "ceo", "type": "info", "subject": "s", "body": "b"}),
            "mail.contact",
        ),
        ("backend_worker", "escalate", json!({"subject": "s", "body": "b"}), ""),
        ("it_manager", "create_contract", contract("backend_worker"), ""),
        ("it_manager", "create_contract", contract("research_worker"), "mail.contact"),
        ("ceo", "generate_contract", contract("backend_worker"), "mail.contact"),
        ("devops_worker", "docker_deploy", image.clone(), "deployment_approval"),
        ("hr_manager", "deactivate_agent", json!({"agent": "qa_worker", "reason": "r"}), "staff"),
        ("pa", "read_file", json!({"path": "app/.env"}), "protected `.env`"),
        ("pa", "read_file", json!({"path": "app/env"}), ""),
        ("devops_worker", "docker_deploy", staged, ""),
    ] {
        let ruled = operator.ruled(agent, tool, arguments).await;
        if rule.is_empty() {
            assert_ne!(ruled["ruling"], "deny", "{tool}: {ruled}");
            continue;
        }
        let reason = &ruled["reasons"][0];
        let said = (&ruled["ruling"], &reason["layer"], &reason["rule"]);
        assert_eq!(said, (&json!("deny"), &json!("arguments"), &json!(rule)), "{tool}: {ruled}");
    }
    // Asking is no attempt.
    let rejections = operator.get("/api/mail/rejections").await.json();
    assert_eq!(rejections["items"], json!([]));
    let approval = json!({"to": "devops_worker", "type": "deployment_approval", "subject": "s",
        "body": "b", "environment": "production", "deployment": "shop/web:1"});
    assert_eq!(office.agent("it_manager").await.write(approval).await.status, 201);
    let ruled = operator.ruled("devops_worker", "docker_deploy", image).await;
    assert_eq!(ruled["ruling"], "require_human", "{ruled}");
}

async fn what_an_agent_may_not_call_it_may_not_send_from_outside(on: On) {
    let office = Office::open(on).await;
    let (worker, manager) =
        (office.agent("backend_worker").await, office.agent("it_manager").await);
    let law =
        |policy: &str| json!({"files": {"policy.yaml": format!("extends: builtin\n{policy}")}});
    let put = async |policy: &str| {
        let request = office.server.operator().request(reqwest::Method::PUT, "/api/org");
        assert_eq!(crate::harness::answer(request.json(&law(policy))).await.status, 200);
    };
    for word in ["deny", "require_approval"] {
        put(&format!("tools: {{send_mail: {word}, create_contract: {word}}}\n")).await;
        let mailed = worker.mail("it_manager", "info").await;
        let issued = manager.issue("backend_worker", json!({})).await;
        for refused in [mailed, issued] {
            let said = refused.json();
            assert_eq!((refused.status, &said["code"]), (403, &json!("PERMISSION_DENIED")));
            assert_eq!(said["reasons"][0]["outcome"], word, "{said}");
        }
        // What would go nowhere is rejected as ever, and kept.
        worker.mail("ceo", "info").await.rejected_at("contact");
        // The board is no agent.
        let board = json!({"to": "ceo", "type": "info", "subject": "s", "body": "b"});
        assert_eq!(office.server.operator().write(board).await.status, 201);
    }
    put("").await;
    assert_eq!(worker.mail("it_manager", "info").await.status, 201);
    assert_eq!(manager.issue("backend_worker", json!({})).await.status, 201);
}

async fn c_01_the_ceo_reaches_managers_alone(on: On) {
    let office = Office::open(on).await;
    let ceo = office.agent("ceo").await;
    for manager in ["it_manager", "hr_manager", "product_manager"] {
        assert_eq!(ceo.mail(manager, "info").await.status, 201);
    }
    for worker in &AGENTS[4..] {
        ceo.mail(worker, "info").await.rejected_at("contact");
    }
    assert_eq!(ceo.mail("board", "report").await.status, 201);
    ceo.mail("board", "info").await.rejected_at("type");
}

async fn c_02_a_manager_reaches_its_workers_the_ceo_and_other_managers_on_terms(on: On) {
    let office = Office::open(on).await;
    let manager = office.agent("it_manager").await;
    assert_eq!(manager.mail("backend_worker", "info").await.status, 201);
    assert_eq!(manager.mail("ceo", "report").await.status, 201);
    assert_eq!(manager.mail("hr_manager", "staffing_request").await.status, 201);
    manager.mail("hr_manager", "info").await.rejected_at("type");
    manager.mail("research_worker", "info").await.rejected_at("contact");
    let hr = office.agent("hr_manager").await;
    hr.mail("backend_worker", "info").await.rejected_at("contact");
}

async fn c_03_a_worker_reaches_its_manager_alone(on: On) {
    let office = Office::open(on).await;
    for (worker, manager) in [
        ("backend_worker", "it_manager"),
        ("devops_worker", "it_manager"),
        ("qa_worker", "it_manager"),
        ("research_worker", "product_manager"),
    ] {
        let caller = office.agent(worker).await;
        for to in AGENTS.into_iter().filter(|it| *it != worker) {
            assert_eq!(
                caller.mail(to, "report").await.status == 201,
                to == manager,
                "{worker} {to}"
            );
        }
        caller.mail("board", "report").await.rejected_at("contact");
    }
}

async fn c_04_workers_do_not_write_to_one_another(on: On) {
    let office = Office::open(on).await;
    for from in &AGENTS[4..] {
        let caller = office.agent(from).await;
        for to in AGENTS[4..].iter().filter(|it| *it != from) {
            caller.mail(to, "info").await.rejected_at("contact");
        }
    }
}

async fn c_05_across_departments_mail_goes_through_managers(on: On) {
    let office = Office::open(on).await;
    let backend = office.agent("backend_worker").await;
    backend.mail("product_manager", "question").await.rejected_at("contact");
    let frontend = office.agent("frontend_worker").await;
    let manager = office.agent("product_manager").await;
    frontend.mail("product_manager", "question").await.rejected_at("contract");
    // One that the higher of the two was given does not do.
    office.contract("ceo", "product_manager", json!({"cross_department": true})).await;
    frontend.mail("product_manager", "question").await.rejected_at("contract");
    manager.mail("frontend_worker", "requirement_clarification").await.rejected_at("contract");
    // A contract that does not say so does not do.
    office.contract("it_manager", "frontend_worker", json!({})).await;
    frontend.mail("product_manager", "question").await.rejected_at("contract");
    let contract =
        office.contract("it_manager", "frontend_worker", json!({"cross_department": true})).await;
    assert_eq!(frontend.mail("product_manager", "question").await.status, 201);
    assert_eq!(manager.mail("frontend_worker", "requirement_clarification").await.status, 201);
    // It ends with the contract.
    assert_eq!(office.agent("it_manager").await.step(&contract, "cancelled").await.status, 200);
    frontend.mail("product_manager", "question").await.rejected_at("contract");
}

async fn c_06_what_is_not_delivered_is_recorded_with_step_and_reason(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    worker.mail("ceo", "info").await.rejected_at("contact");
    let operator = office.server.operator();
    let found = operator.get("/api/mail/rejections").await.json();
    let one = &found["items"][0];
    assert_eq!(one["from_agent"], "backend_worker");
    assert_eq!(one["to_agent"], "ceo");
    assert_eq!(one["mail_type"], "info");
    assert_eq!(one["step"], "contact");
    assert!(one["reason"].as_str().unwrap().contains("it_manager"), "{one}");
    assert!(one["attempted_at"].as_str().unwrap().ends_with('Z'));
    // Nothing arrived, the audit has it, and other agents do not see it.
    assert!(operator.inbox("ceo").await.is_empty());
    let audit = operator.get("/api/audit?kind=mail.rejected").await.json();
    let entry = &audit["items"][0];
    assert_eq!((&entry["agent"], &entry["ruling"]), (&json!("backend_worker"), &json!("deny")));
    let reason = &entry["reasons"][0];
    assert_eq!((&reason["layer"], &reason["rule"]), (&json!("mail"), &json!("contact")), "{entry}");
    assert_eq!(reason["detail"], one["reason"], "{entry}");
    let other = office.agent("qa_worker").await;
    assert_eq!(other.get("/api/mail/rejections").await.json()["items"], json!([]));
    assert_eq!(other.get("/api/mail/rejections?agent=backend_worker").await.status, 403);
}

async fn c_07_contracts_go_down_to_direct_reports_alone(on: On) {
    let office = Office::open(on).await;
    let agents = office.agents().await;
    for (from, to, may) in [
        ("ceo", "it_manager", true),
        ("it_manager", "backend_worker", true),
        ("product_manager", "research_worker", true),
        ("it_manager", "research_worker", false),
        ("ceo", "backend_worker", false),
        ("it_manager", "ceo", false),
        ("it_manager", "hr_manager", false),
        ("backend_worker", "it_manager", false),
        ("backend_worker", "qa_worker", false),
        ("ceo", "board", false),
    ] {
        let issued = agents[from].issue(to, json!({})).await;
        assert_eq!(issued.status, if may { 201 } else { 403 }, "{from} {to} {issued:?}");
    }
}

async fn a_recipient_that_is_not_there_is_a_rejection(on: On) {
    let office = Office::open(on).await;
    let manager = office.agent("it_manager").await;
    for nobody in ["nobody", "", "Backend_Worker", "backend_worker ", "pa\u{0}", "../ceo"] {
        manager.mail(nobody, "info").await.rejected_at("recipient");
    }
    let found = manager.get("/api/mail/rejections").await.json();
    assert_eq!(found["items"].as_array().unwrap().len(), 6);
}

async fn a_recipient_that_is_not_active_is_told_to_the_senders_superior(on: On) {
    let office = Office::open(on).await;
    let roles = "extends: builtin\nagents: {backend_worker: {role: backend_worker, active: false}}";
    let files = json!({"files": {"roles.yaml": roles}});
    let request = office.server.operator().request(reqwest::Method::PUT, "/api/org");
    assert_eq!(crate::harness::answer(request.json(&files)).await.status, 200);
    let manager = office.agent("it_manager").await;
    manager.mail("backend_worker", "info").await.rejected_at("recipient");
    let told = office.agent("ceo").await.inbox("ceo").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["from"], "system");
    assert!(told[0]["subject"].as_str().unwrap().contains("backend_worker"), "{told:?}");
    // Whoever is not at work sends nothing either.
    office.agent("backend_worker").await.mail("it_manager", "report").await.rejected_at("sender");
}

async fn a_mail_to_the_wrong_one_says_whom_one_may_write_to(on: On) {
    let office = Office::open(on).await;
    let said = office.agent("backend_worker").await.mail("ceo", "info").await;
    let said = said.rejected_at("contact");
    assert_eq!(said["contacts"], json!(["it_manager"]));
    assert!(said["detail"].as_str().unwrap().contains("may not write to `ceo`"), "{said}");
}

async fn a_sender_cannot_be_forged(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    let mail = json!({"from": "ceo", "id": "MAIL-1", "status": "read", "to": "it_manager",
        "type": "report", "subject": "s", "body": "b"});
    let sent = worker.write(mail).await;
    assert_eq!(sent.status, 201, "{sent:?}");
    let sent = sent.json();
    assert_eq!((&sent["from"], &sent["status"]), (&json!("backend_worker"), &json!("delivered")));
    assert_ne!(sent["id"], "MAIL-1");
    let forged =
        json!({"from": "it_manager", "to": "ceo", "type": "report", "subject": "s", "body": "b"});
    worker.write(forged).await.rejected_at("contact");
    let by_its_other_name = json!({"from_agent": "ceo", "thread": "MAIL-1", "to": "it_manager",
        "type": "report", "subject": "s", "body": "b"});
    let sent = worker.write(by_its_other_name).await;
    assert_eq!((sent.status, &sent.json()["from"]), (201, &json!("backend_worker")), "{sent:?}");
    let manager = office.agent("it_manager").await;
    let issued = manager.issue("backend_worker", json!({"from": "ceo", "from_agent": "ceo"})).await;
    assert_eq!((issued.status, &issued.json()["from"]), (201, &json!("it_manager")), "{issued:?}");
    // What is nobody's to say is still refused.
    assert_eq!(manager.issue("backend_worker", json!({"fron": "ceo"})).await.status, 400);
}

async fn three_rejections_in_ten_minutes_are_told_to_the_superior_once(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    let manager = office.agent("it_manager").await;
    for round in 1..=5 {
        worker.mail("ceo", "info").await.rejected_at("contact");
        let told = manager.inbox("it_manager").await;
        assert_eq!(told.len(), usize::from(round >= 3), "{round}: {told:?}");
    }
    // The board's slips are nobody's to be told.
    for _ in 0..3 {
        office.server.operator().mail("backend_worker", "info").await.rejected_at("contact");
    }
    assert_eq!(manager.inbox("it_manager").await.len(), 1);
}

async fn the_first_step_that_fails_rejects(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("frontend_worker").await;
    let outside = json!([{"path": "company/org.yaml", "description": ""}]);
    let long = "x".repeat(300);
    let everything_wrong = |to: &str, kind: &str| json!({"to": to, "type": kind, "subject": long, "body": "b", "attachments": outside});
    worker.write(everything_wrong("nobody", "bribe")).await.rejected_at("recipient");
    worker.write(everything_wrong("ceo", "bribe")).await.rejected_at("contact");
    worker.write(everything_wrong("it_manager", "bribe")).await.rejected_at("type");
    worker.write(everything_wrong("product_manager", "question")).await.rejected_at("contract");
    worker.write(everything_wrong("it_manager", "report")).await.rejected_at("attachments");
    let mut rest = everything_wrong("it_manager", "report");
    rest["attachments"] = json!([]);
    worker.write(rest).await.rejected_at("fields");
}

async fn sizes_are_held(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    let mail = |subject: String, body: String, files: usize| {
        let file = json!({"path": "tests/a.rs", "description": "d"});
        json!({"to": "it_manager", "type": "report", "subject": subject, "body": body,
            "attachments": vec![file; files]})
    };
    let (subject, body) = ("题".repeat(200), "文".repeat(10_000));
    assert_eq!(worker.write(mail(subject.clone(), body.clone(), 10)).await.status, 201);
    worker.write(mail(format!("{subject}x"), String::new(), 0)).await.rejected_at("fields");
    worker.write(mail("s".into(), format!("{body}x"), 0)).await.rejected_at("fields");
    worker.write(mail("s".into(), String::new(), 11)).await.rejected_at("fields");
    worker.write(mail("a\nb".into(), String::new(), 0)).await.rejected_at("fields");
    worker.write(mail(" ".into(), String::new(), 0)).await.rejected_at("fields");
    let mut odd = mail("s".into(), String::new(), 0);
    odd["surprise"] = json!(1);
    worker.write(odd).await.rejected_at("fields");
    let mut bad = mail("s".into(), String::new(), 0);
    bad["priority"] = json!("urgent");
    assert_eq!(worker.write(bad).await.status, 400);
    assert_eq!(worker.write(json!({"to": "it_manager"})).await.status, 400);
}

async fn attachments_are_within_what_the_sender_reads(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    let with = |path: &str| {
        json!({"to": "it_manager", "type": "report", "subject": "s", "body": "b",
            "attachments": [{"path": path, "description": "d"}]})
    };
    for path in ["tests/a.rs", "agents/backend_worker/x", "agents/backend_worker/.env.example"] {
        assert_eq!(worker.write(with(path)).await.status, 201, "{path}");
    }
    for path in [
        "company/org.yaml",
        "../etc/passwd",
        "/etc/passwd",
        "tests/../company/org.yaml",
        "tests-evil/a",
        "agents/qa_worker/x",
        "src/a.rs",
        "agents/backend_worker/.env",
        "tests/certs/Server.KEY",
        "tests/.git/config",
    ] {
        worker.write(with(path)).await.rejected_at("attachments");
    }
    office.contract("it_manager", "backend_worker", json!({"workspace_scope": "src/"})).await;
    assert_eq!(worker.write(with("src/a.rs")).await.status, 201);
    // The board reads everything, but nothing outside and no secrets.
    let lin = office.server.human("lin").await;
    let with = |path: &str| json!({"type": "info", "to": "ceo", "subject": "s", "body": "b", "attachments": [{"path": path}]});
    assert_eq!(lin.write(with("company/org.yaml")).await.status, 201);
    for path in ["/etc/passwd", "../x", "a/../../x", "agents/ceo/.env"] {
        lin.write(with(path)).await.rejected_at("attachments");
    }
}

async fn an_inbox_has_what_is_critical_first_and_then_the_oldest(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    for (subject, priority) in [
        ("1", "low"),
        ("2", "critical"),
        ("3", "medium"),
        ("4", "high"),
        ("5", "critical"),
        ("6", "medium"),
    ] {
        let mail = json!({"to": "it_manager", "type": "info", "subject": subject, "body": "b",
            "priority": priority});
        assert_eq!(worker.write(mail).await.status, 201);
    }
    let manager = office.agent("it_manager").await;
    let subjects = |items: &[Value]| -> Vec<String> {
        items.iter().map(|it| it["subject"].as_str().unwrap().to_owned()).collect()
    };
    let found = manager.inbox("it_manager").await;
    assert_eq!(subjects(&found), ["2", "5", "1", "3", "4", "6"]);
    // In pages, the same order; what was sent, the newest first.
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/agents/it_manager/inbox?limit=2&cursor={cursor}");
        let page = manager.get(&path).await.json();
        seen.extend(subjects(page["items"].as_array().unwrap()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["2", "5", "1", "3", "4", "6"]);
    let sent = worker.get("/api/agents/backend_worker/sent").await.json();
    assert_eq!(subjects(sent["items"].as_array().unwrap())[..2], ["6", "5"]);
}

async fn reading_marks_read_and_only_by_its_recipient(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    let manager = office.agent("it_manager").await;
    let sent = worker.mail("it_manager", "report").await.json();
    let path = format!("/api/mail/{}", sent["id"].as_str().unwrap());
    for other in [&worker, &office.server.operator()] {
        let seen = other.get(&path).await.json();
        assert_eq!((&seen["status"], &seen["read_at"]), (&json!("delivered"), &Value::Null));
    }
    let read = manager.get(&path).await.json();
    assert_eq!(read["status"], "read");
    assert!(read["read_at"].is_string());
    assert_eq!(
        manager.get(&path).await.json()["read_at"],
        read["read_at"],
        "the first time counts"
    );
    let unread = manager.get("/api/agents/it_manager/inbox?unread=true").await.json();
    assert_eq!(unread["items"], json!([]));
}

async fn only_sender_and_recipient_read_a_mail(on: On) {
    let office = Office::open(on).await;
    let sent = office.agent("backend_worker").await.mail("it_manager", "report").await.json();
    let path = format!("/api/mail/{}", sent["id"].as_str().unwrap());
    for other in ["ceo", "qa_worker", "hr_manager"] {
        let other = office.agent(other).await;
        assert_eq!(other.get(&path).await.status, 404);
        assert_eq!(other.get("/api/agents/it_manager/inbox").await.status, 403);
        assert_eq!(other.get("/api/agents/it_manager/sent").await.status, 403);
    }
    // A person sees what is on their behalf; this is not.
    let lin = office.server.human("lin").await;
    assert_eq!(lin.get(&path).await.status, 404);
    assert!(lin.inbox("it_manager").await.is_empty());
    assert_eq!(office.server.operator().inbox("it_manager").await.len(), 1);
    assert_eq!(office.server.operator().get("/api/agents/nobody/inbox").await.status, 404);
    assert_eq!(office.server.nobody().get(&path).await.status, 401);
}

async fn no_person_is_behind_what_an_agents_token_sends(on: On) {
    let office = Office::open(on).await;
    let manager = office.agent("it_manager").await;
    let sent = manager.mail("backend_worker", "info").await.json();
    assert_eq!(sent["user"], "agent:it_manager");
    let issued = manager.issue("backend_worker", json!({})).await.json();
    assert_eq!(issued["user"], "agent:it_manager");
    manager.mail("nobody", "info").await.rejected_at("recipient");
    // Whoever is called as the agent is has no part in it.
    let namesake = office.server.human("it_manager").await;
    let (mail, contract) = (sent["id"].as_str().unwrap(), issued["id"].as_str().unwrap());
    assert_eq!(namesake.get(&format!("/api/mail/{mail}")).await.status, 404);
    assert_eq!(namesake.get(&format!("/api/contracts/{contract}")).await.status, 404);
    assert!(namesake.inbox("backend_worker").await.is_empty());
    for list in ["/api/contracts", "/api/mail/rejections"] {
        assert_eq!(namesake.get(list).await.json()["items"], json!([]), "{list}");
        let own = manager.get(list).await.json()["items"].as_array().unwrap().len();
        assert_eq!(own, 1, "the agent sees its own: {list}");
    }
    assert_eq!(manager.get(&format!("/api/mail/{mail}")).await.status, 200);
    assert_eq!(manager.step(contract, "cancelled").await.status, 200);
}

async fn an_id_says_when_and_cannot_be_guessed(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let sent = worker.mail("it_manager", "info").await.json();
        let id = sent["id"].as_str().unwrap().to_owned();
        assert!(id.len() <= 32, "{id}");
        let parts: Vec<_> = id.split('-').collect();
        assert_eq!((parts[0], parts[1].len(), parts[2].len()), ("MAIL", 14, 12), "{id}");
        let at: String =
            sent["created_at"].as_str().unwrap().chars().filter(char::is_ascii_digit).collect();
        assert_eq!(parts[1], &at[..14]);
        assert!(ids.insert(parts[2].to_owned()));
    }
}

async fn replies_are_threads_of_their_parties(on: On) {
    let office = Office::open(on).await;
    let worker = office.agent("backend_worker").await;
    let first = worker.mail("it_manager", "question").await.json();
    let reply = |to: &str, id: &Value| json!({"to": to, "type": "info", "subject": "s", "body": "b", "reply_to": id});
    let manager = office.agent("it_manager").await;
    let second = manager.write(reply("backend_worker", &first["id"])).await.json();
    let third = worker.write(reply("it_manager", &second["id"])).await.json();
    assert_eq!((&second["thread"], &third["thread"]), (&first["id"], &first["id"]));
    // Nobody replies to what they have not had.
    let other = office.agent("qa_worker").await;
    other.write(reply("it_manager", &first["id"])).await.rejected_at("fields");
    other.write(reply("it_manager", &json!("MAIL-1"))).await.rejected_at("fields");
}

async fn the_board_writes_to_those_who_report_to_it(on: On) {
    let office = Office::open(on).await;
    let lin = office.server.human("lin").await;
    let sent = lin.mail("ceo", "info").await;
    assert_eq!((sent.status, &sent.json()["from"]), (201, &json!("board")));
    lin.mail("it_manager", "info").await.rejected_at("contact");
    lin.mail("ceo", "report").await.rejected_at("type");
    assert_eq!(lin.issue("ceo", json!({})).await.status, 201);
    office.agent("ceo").await.mail("board", "report").await;
    assert_eq!(office.server.operator().inbox("board").await.len(), 1);
    let service = office.server.holder(json!({"kind": "service", "name": "ci"})).await;
    assert_eq!(service.mail("ceo", "info").await.status, 403);
}

async fn a_contract_goes_from_pending_to_passed(on: On) {
    let office = Office::open(on).await;
    let (manager, worker) =
        (office.agent("it_manager").await, office.agent("backend_worker").await);
    let more = json!({"workspace_scope": "src/billing/", "assigned_branch": "feature/price"});
    let issued = manager.issue("backend_worker", more).await.json();
    let id = issued["id"].as_str().unwrap();
    assert!(id.starts_with("CTR-") && id.len() <= 32, "{id}");
    for (field, value) in [
        ("from", json!("it_manager")),
        ("to", json!("backend_worker")),
        ("state", json!("pending")),
        ("workspace_scope", json!("src/billing/")),
        ("assigned_branch", json!("feature/price")),
        ("deliverables", json!(["d"])),
        ("cross_department", json!(false)),
        ("failures", json!(0)),
    ] {
        assert_eq!(issued[field], value, "{field}");
    }
    // It is a mail, too.
    let mail = worker.inbox("backend_worker").await;
    assert_eq!((&mail[0]["type"], &mail[0]["contract_ref"]), (&json!("contract"), &json!(id)));
    let judge = office.agent("qa_worker").await;
    for (who, to) in [
        (&worker, "accepted"),
        (&worker, "in_progress"),
        (&worker, "review"),
        (&judge, "failed"),
        (&worker, "in_progress"),
        (&worker, "review"),
        (&judge, "passed"),
    ] {
        let stepped = who.step(id, to).await;
        assert_eq!((stepped.status, &stepped.json()["state"]), (200, &json!(to)), "{stepped:?}");
        assert_eq!(who.step(id, to).await.status, 200, "the same again is the same");
    }
    let story = manager.get(&format!("/api/contracts/{id}")).await.json();
    assert_eq!(story["failures"], 1);
    let steps: Vec<_> =
        story["history"].as_array().unwrap().iter().map(|it| it["to"].clone()).collect();
    let passed = ["accepted", "in_progress", "review", "failed", "in_progress", "review", "passed"];
    assert_eq!(json!(steps), json!(passed));
    assert_eq!(story["history"][3]["by"], "agent:qa_worker");
    assert_eq!(story["mails"].as_array().unwrap().len(), 1);
}

async fn steps_are_made_by_those_whose_they_are(on: On) {
    let office = Office::open(on).await;
    let agents = office.agents().await;
    let issued = agents["it_manager"].issue("backend_worker", json!({})).await.json();
    let id = issued["id"].as_str().unwrap();
    // Who gave it does not take it up, who has it does not judge it, others do not know of it.
    assert_eq!(agents["it_manager"].step(id, "accepted").await.status, 403);
    assert_eq!(agents["qa_worker"].step(id, "accepted").await.status, 403);
    assert_eq!(agents["frontend_worker"].step(id, "accepted").await.status, 404);
    assert_eq!(agents["ceo"].step(id, "cancelled").await.status, 404);
    for to in ["in_progress", "review", "passed", "failed", "escalated", "pending"] {
        let answer = agents["backend_worker"].step(id, to).await;
        assert!(
            [409, 200].contains(&answer.status) && (answer.status == 409 || to == "pending"),
            "{to} {answer:?}"
        );
    }
    for to in ["accepted", "in_progress", "review"] {
        assert_eq!(agents["backend_worker"].step(id, to).await.status, 200);
    }
    assert_eq!(agents["backend_worker"].step(id, "passed").await.status, 403);
    assert_eq!(agents["backend_worker"].step(id, "cancelled").await.status, 403);
    assert_eq!(agents["backend_worker"].step(id, "done").await.status, 400);
    // People are above every contract.
    assert_eq!(office.server.operator().step(id, "passed").await.status, 200);
    assert_eq!(office.server.operator().step(id, "in_progress").await.status, 409);
}

async fn a_third_failure_goes_up(on: On) {
    let office = Office::open(on).await;
    let agents = office.agents().await;
    let id = office.contract("it_manager", "backend_worker", json!({})).await;
    for round in 1..=3 {
        assert_eq!(agents["backend_worker"].step(&id, "review").await.status, 200);
        let failed = agents["qa_worker"].step(&id, "failed").await.json();
        let state = if round == 3 { "escalated" } else { "failed" };
        assert_eq!((&failed["state"], &failed["failures"]), (&json!(state), &json!(round)));
        if round < 3 {
            assert_eq!(agents["backend_worker"].step(&id, "in_progress").await.status, 200);
        }
    }
    assert_eq!(agents["backend_worker"].step(&id, "in_progress").await.status, 409);
    let told = agents["ceo"].inbox("ceo").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["from"], &told[0]["contract_ref"]), (&json!("system"), &json!(id)));
    // Above the board there is the board, which is told once.
    let lin = office.server.human("lin").await;
    let given = lin.issue("ceo", json!({})).await.json();
    let id = given["id"].as_str().unwrap();
    assert_eq!(agents["ceo"].step(id, "accepted").await.status, 200);
    for _ in 0..3 {
        for (by, to) in
            [(&agents["ceo"], "in_progress"), (&agents["ceo"], "review"), (&lin, "failed")]
        {
            assert_eq!(by.step(id, to).await.status, 200, "{to}");
        }
    }
    let shown = lin.get(&format!("/api/contracts/{id}")).await.json();
    assert_eq!(shown["state"], "escalated", "{shown}");
}

async fn a_contract_is_cancelled_by_its_issuer_until_it_has_ended(on: On) {
    let office = Office::open(on).await;
    let manager = office.agent("it_manager").await;
    let id = office.contract("it_manager", "backend_worker", json!({})).await;
    assert_eq!(manager.step(&id, "cancelled").await.status, 200);
    assert_eq!(office.agent("backend_worker").await.step(&id, "review").await.status, 409);
}

async fn who_gave_a_contract_as_the_board_is_its_issuer(on: On) {
    let office = Office::open(on).await;
    let (lin, ada) = (office.server.human("lin").await, office.server.human("ada").await);
    let ceo = office.agent("ceo").await;
    let issued = async || {
        let issued = lin.issue("ceo", json!({})).await.json();
        issued["id"].as_str().unwrap().to_owned()
    };
    let judged = issued().await;
    assert_eq!(lin.step(&judged, "accepted").await.status, 403, "that is its holder's");
    for to in ["accepted", "in_progress", "review"] {
        assert_eq!(ceo.step(&judged, to).await.status, 200);
    }
    assert_eq!(ada.step(&judged, "passed").await.status, 404, "it is not hers");
    assert_eq!(lin.step(&judged, "passed").await.status, 200);
    let called_off = issued().await;
    assert_eq!(lin.step(&called_off, "cancelled").await.status, 200);
}

async fn contracts_are_seen_by_those_whom_they_concern(on: On) {
    let office = Office::open(on).await;
    let agents = office.agents().await;
    let id = office.contract("it_manager", "backend_worker", json!({})).await;
    let other = office.contract("it_manager", "frontend_worker", json!({})).await;
    let listed = |page: Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone();
        items.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut all = listed(agents["it_manager"].get("/api/contracts").await.json());
    all.sort();
    let mut both = vec![id.clone(), other.clone()];
    both.sort();
    assert_eq!(all, both);
    assert_eq!(listed(agents["backend_worker"].get("/api/contracts").await.json()), [&*id]);
    assert_eq!(
        agents["backend_worker"].get("/api/contracts?agent=frontend_worker").await.status,
        403
    );
    assert_eq!(agents["backend_worker"].get(&format!("/api/contracts/{other}")).await.status, 404);
    assert_eq!(agents["research_worker"].get(&format!("/api/contracts/{id}")).await.status, 404);
    let lin = office.server.human("lin").await;
    assert_eq!(lin.get(&format!("/api/contracts/{id}")).await.status, 404);
    assert!(listed(lin.get("/api/contracts").await.json()).is_empty());
    let operator = office.server.operator();
    assert_eq!(listed(operator.get("/api/contracts?state=in_progress").await.json()).len(), 2);
    assert_eq!(listed(operator.get("/api/contracts?state=passed").await.json()).len(), 0);
    assert_eq!(operator.get("/api/contracts?state=lost").await.status, 400);
}

async fn a_contract_opens_nothing_that_is_anothers(on: On) {
    let office = Office::open(on).await;
    let manager = office.agent("it_manager").await;
    for scope in
        [".", "/", "../", "agents/ceo/", "company", "reports/hr", "docker/", "{x}", "a/../../b"]
    {
        let issued = manager.issue("backend_worker", json!({"workspace_scope": scope})).await;
        assert_eq!(issued.status, 403, "{scope} {issued:?}");
        issued.rejected_at("fields");
    }
    for branch in ["-x", "a..b", "x.lock", "a b", "HEAD", "refs//x", ".x", "x/"] {
        let issued = manager.issue("backend_worker", json!({"assigned_branch": branch})).await;
        issued.rejected_at("fields");
    }
    for scope in [json!("src/"), json!(["src/a", "lib"]), json!("tests/x")] {
        let issued = manager.issue("backend_worker", json!({"workspace_scope": scope})).await;
        assert_eq!(issued.status, 201, "{issued:?}");
    }
}

async fn can_mail_says_what_sending_would_come_to(on: On) {
    let office = Office::open(on).await;
    let operator = office.server.operator();
    let ask = async |from: &str, to: &str, kind: &str| {
        operator.get(&format!("/api/mail/check?from={from}&to={to}&type={kind}")).await.json()
    };
    assert_eq!(ask("ceo", "it_manager", "info").await["allowed"], true);
    let no = ask("backend_worker", "ceo", "info").await;
    assert_eq!((&no["allowed"], &no["step"]), (&json!(false), &json!("contact")));
    assert_eq!(no["contacts"], json!(["it_manager"]));
    let bound = ask("frontend_worker", "product_manager", "question").await;
    assert_eq!((&bound["step"], &bound["needs_contract"]), (&json!("contract"), &json!(true)));
    let recorded = operator.get("/api/mail/rejections").await.json();
    assert_eq!(recorded["items"], json!([]), "asking is no attempt");
}
