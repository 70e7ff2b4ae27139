//! The organisation changes from within only under a contract from the caller's superior, only
//! beneath the caller, and as a version like any other.

use chancery_testkit::fake_model::{Answer, Behaviour, Seen};
use serde_json::{Value, json};

use crate::harness::Caller;
use crate::house::{On, on_both};
use crate::mail::Office;
use crate::mailroom::{asked, office, results};

on_both! {
    without_a_contract_of_the_ceo_nothing_changes;
    under_a_contract_somebody_is_hired_moved_and_dismissed;
    nobody_changes_their_own_place_or_one_above;
    a_run_under_one_contract_changes_nothing_on_the_strength_of_another;
}

/// Makes the calls that the run's input is, one after the other.
fn follow(seen: &Seen) -> Behaviour {
    let calls: Vec<(String, Value)> = serde_json::from_str(&asked(seen)).unwrap_or_default();
    Behaviour::Stream(match calls.get(results(seen)) {
        Some((tool, arguments)) => Answer::call(tool, &arguments.to_string()),
        None => Answer::text("done"),
    })
}

/// What became of each call.
async fn carried_out(office: &Office, calls: Value) -> Vec<Value> {
    let lin = office.server.operator();
    let body = json!({"agent": "hr_manager", "input": calls.to_string()});
    let made = lin.post("/api/runs", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let run = made.json()["id"].as_str().unwrap().to_owned();
    lin.until(&run, "completed").await;
    ended(&lin, &run).await
}

async fn ended(lin: &Caller, run: &str) -> Vec<Value> {
    let events = lin.get(&format!("/api/runs/{run}/events")).await.json();
    let ended = events["items"].as_array().unwrap().iter();
    ended
        .filter(|it| it["type"] == "tool.finished" || it["type"] == "tool.refused")
        .map(|it| it["data"]["result"].clone())
        .collect()
}

async fn agents(office: &Office) -> Value {
    office.server.operator().get("/api/agents").await.json()["items"].clone()
}

fn named(agents: &Value, id: &str) -> Value {
    let found = agents.as_array().unwrap().iter().find(|it| it["id"] == id);
    found.cloned().unwrap_or_default()
}

async fn without_a_contract_of_the_ceo_nothing_changes(on: On) {
    let (office, _model) = office(on, follow).await;
    let before = office.server.operator().get("/api/org").await.json()["version"].clone();
    let calls = json!([["deactivate_agent", {"agent": "qa_worker", "reason": "r"}]]);
    let ended = carried_out(&office, calls).await;
    assert_eq!(ended[0]["code"], "PERMISSION_DENIED", "{ended:?}");
    assert_eq!(named(&agents(&office).await, "qa_worker")["active"], true);
    assert_eq!(office.server.operator().get("/api/org").await.json()["version"], before);
}

async fn under_a_contract_somebody_is_hired_moved_and_dismissed(on: On) {
    let (office, _model) = office(on, follow).await;
    office.contract("ceo", "hr_manager", json!({})).await;
    let calls = json!([
        ["create_agent_jd", {"agent": "backend_two", "role": "backend_worker", "jd": "Writes code."}],
        ["update_org_chart", {"agent": "backend_two", "role": "qa_worker"}],
        ["update_org_chart", {"role": "research_worker", "reports_to": ["it_manager"]}],
        ["deactivate_agent", {"agent": "backend_two", "reason": "r"}],
    ]);
    let ended = carried_out(&office, calls).await;
    assert!(ended.iter().all(|it| it["is_error"] != true), "{ended:?}");
    let two = named(&agents(&office).await, "backend_two");
    assert_eq!((&two["role"], &two["active"]), (&json!("qa_worker"), &json!(false)));
    let operator = office.server.operator();
    let roles = operator.get("/api/roles").await.json();
    let research =
        roles["items"].as_array().unwrap().iter().find(|it| it["id"] == "research_worker");
    assert_eq!(research.unwrap()["reports_to"], json!(["it_manager"]));
    assert!(research.unwrap()["tools"].as_array().is_some_and(|it| it.len() > 3), "the rest stays");
    let jd = office.server.config.workspace().join("company/agents/backend_two.md");
    assert!(std::fs::read_to_string(jd).unwrap().contains("Writes code."));
    let audit = operator.get("/api/audit?kind=org.changed").await.json();
    assert_eq!(audit["items"][0]["actor"]["id"], "hr_manager", "{}", audit["items"][0]);
}

async fn nobody_changes_their_own_place_or_one_above(on: On) {
    let (office, _model) = office(on, follow).await;
    office.contract("ceo", "hr_manager", json!({})).await;
    let calls = json!([
        ["deactivate_agent", {"agent": "ceo", "reason": "r"}],
        ["deactivate_agent", {"agent": "hr_manager", "reason": "r"}],
        ["update_org_chart", {"agent": "hr_manager", "role": "ceo"}],
        ["update_org_chart", {"agent": "qa_worker", "role": "it_manager"}],
        ["update_org_chart", {"role": "qa_worker", "reports_to": ["backend_worker"]}],
        ["create_agent_jd", {"agent": "boss", "role": "personal_agent", "jd": "j"}],
        ["create_agent_jd", {"agent": "../x", "role": "qa_worker", "jd": "j"}],
        ["create_agent_jd", {"agent": "board", "role": "qa_worker", "jd": "j"}],
    ]);
    let ended = carried_out(&office, calls).await;
    let codes: Vec<_> = ended.iter().map(|it| it["code"].clone()).collect();
    assert!(codes.iter().all(|it| it == "PERMISSION_DENIED"), "{ended:?}");
}

/// Hands in the work of the contract that the run was made for, and then tries a change.
fn hand_in_and_change(seen: &Seen) -> Behaviour {
    let said = asked(seen);
    let id = said.split_whitespace().find(|it| it.starts_with("CTR-"));
    let id = id.unwrap_or_default().trim_end_matches(['.', ':']);
    Behaviour::Stream(match results(seen) {
        _ if !said.contains("hand it in") => Answer::text("done"),
        0 => {
            let mail = json!({"to": "ceo", "type": "report", "subject": "s", "body": "b",
                "contract_ref": id, "outcome": "completed"});
            Answer::call("send_mail", &mail.to_string())
        }
        1 => {
            let change = json!({"agent": "qa_worker", "reason": "r"});
            Answer::call("deactivate_agent", &change.to_string())
        }
        _ => Answer::text("done"),
    })
}

async fn a_run_under_one_contract_changes_nothing_on_the_strength_of_another(on: On) {
    let (office, _model) = office(on, hand_in_and_change).await;
    let operator = office.server.operator();
    office.contract("ceo", "hr_manager", json!({})).await;
    let issued = office.agent("ceo").await.issue("hr_manager", json!({"body": "hand it in"})).await;
    let id = issued.json()["id"].as_str().unwrap().to_owned();
    let began = std::time::Instant::now();
    let run = loop {
        let runs = operator.get("/api/runs?agent=hr_manager&status=completed").await.json();
        let made = |it: &&Value| it["input"].as_str().is_some_and(|it| it.contains("hand it in"));
        match runs["items"].as_array().unwrap().iter().find(made) {
            Some(run) => break run["id"].as_str().unwrap().to_owned(),
            None => assert!(began.elapsed().as_secs() < 20, "{runs}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let story = operator.get(&format!("/api/contracts/{id}")).await.json();
    assert_eq!(story["state"], "review");
    let ended = ended(&operator, &run).await;
    assert_eq!(ended[1]["code"], "PERMISSION_DENIED", "{ended:?}");
    assert_eq!(named(&agents(&office).await, "qa_worker")["active"], true);
}
