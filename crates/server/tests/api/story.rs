//! A personal agent, what it knows as it begins, and the whole story of seed 000, step 5.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Caller, id};
use crate::house::{House, On, on_both};

on_both! {
    from_a_wish_to_a_groups_decision_that_everybody_finds;
    a_personal_agent_knows_its_person_their_wishes_and_the_groups_that_it_may_call;
    what_a_group_remembers_is_no_wish_of_the_persons;
    nothing_is_deposited_of_what_failed_or_was_cancelled;
}

impl Caller {
    async fn starts(&self, body: Value) -> String {
        let made = self.post("/api/runs", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        id(&made.json())
    }

    async fn finds(&self, query: &str) -> Vec<Value> {
        let page = self.get(&format!("/api/memories/search?{query}")).await.json();
        page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
    }

    /// Deposits are made a moment after the run that they are of has ended.
    async fn finds_soon(&self, query: &str, count: usize) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let found = self.finds(query).await;
            if found.len() >= count {
                return found;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{query}: {found:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn contents(found: &[Value]) -> Vec<&str> {
    found.iter().map(|it| it["content"].as_str().unwrap()).collect()
}

async fn from_a_wish_to_a_groups_decision_that_everybody_finds(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    // The person's agent remembers what the person wants.
    let wish =
        json!({"content": "Lin wants release reports short and in Chinese", "pa_preference": true});
    let run = lin.script("pa", json!([[["memory_write", wish]]])).await;
    lin.until(&run, "completed").await;

    // It hands a goal to a group, with less than it has itself.
    let lines = json!({
        "narrow": {"say": "over to you"},
        "pa": {"calls": [
            [["record", {"kind": "DECISION", "content": "The canary release takes ten percent of the traffic"}],
             ["record", {"kind": "NOTE", "content": "The canary release cage is empty"}]],
            [["deploy", {"to": "production"}]],
        ], "say": "The canary release is planned"},
        "payer": {"say": "The canary release stands"},
    });
    let goal = json!({"group_id": "grp_talk", "goal": lines.to_string()});
    let input = json!([
        [["escalate_to_group", goal]],
        [["memory_search", {"query": "release reports"}]],
    ]);
    let run = lin
        .starts(json!({"agent": "pa", "input": input.to_string(), "project": "shop",
            "delegated_permissions": {"denied_tools": ["deploy"]}}))
        .await;
    lin.until(&run, "completed").await;
    let page = lin.get(&format!("/api/runs?parent={run}")).await.json();
    let child = &page["items"][0];
    let child_id = id(child);

    // 1. What was delegated was passed on. 2. What it forbids is refused.
    assert_eq!(child["delegated_permissions"]["denied_tools"], json!(["deploy"]));
    assert_eq!(child["project"], "shop");
    let events = lin.get(&format!("/api/runs/{child_id}/events")).await.json();
    let refused =
        events["items"].as_array().unwrap().iter().find(|it| it["type"] == "tool.refused");
    let refused = refused.unwrap()["data"]["result"].clone();
    assert_eq!(refused["code"], "PERMISSION_DENIED");
    assert!(refused["text"].as_str().unwrap().contains("layer `delegation`"), "{refused}");
    assert_eq!(house.ledger(), [""; 0]);

    // 3. The agent that searches finds what its person wants before all else.
    let results = house.results();
    let found: Value = serde_json::from_str(&results[1]).unwrap();
    let first = &found["results"][0];
    assert_eq!(first["tier"], 1, "{found}");
    assert!(first["content"].as_str().unwrap().contains("short and in Chinese"), "{found}");

    // 4. Decisions and the output are the project's knowledge, and say where they came from.
    let query = "q=canary+release&mode=flat&type=archival&project=shop";
    let found = lin.finds_soon(query, 2).await;
    let mut texts = contents(&found);
    texts.sort_unstable();
    assert_eq!(
        texts,
        ["The canary release stands", "The canary release takes ten percent of the traffic",]
    );
    for it in &found {
        assert_eq!(it["metadata"]["source_run_id"], json!(child_id));
        assert!(it["metadata"]["deposited_at"].is_string(), "{it}");
        let scope = &it["scope"];
        assert_eq!(scope["project"], "shop");
        assert!(scope["group"].is_null() && scope["user"].is_null() && scope["agent"].is_null());
    }
    // Another group of the same project finds them, and another person of the organisation.
    let other = "q=canary&mode=group&group=grp_pay&project=shop";
    assert_eq!(house.server.human("mei").await.finds(other).await.len(), 2);
    // Who takes one back takes it from everybody.
    let gone = found[0]["id"].as_str().unwrap();
    let request = lin.request(reqwest::Method::DELETE, &format!("/api/memories/{gone}"));
    assert_eq!(crate::harness::answer(request).await.status, 200);
    assert_eq!(lin.finds(query).await.len(), 1);
    house.close().await;
}

async fn a_personal_agent_knows_its_person_their_wishes_and_the_groups_that_it_may_call(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let wish = json!({"content": "Answer in one sentence", "pa_preference": true});
    let run = lin.script("pa", json!([[["memory_write", wish]]])).await;
    lin.until(&run, "completed").await;
    // What was wished has nothing in common with what is asked now.
    let run = lin.starts(json!({"agent": "pa", "input": "Where is the cellar key?"})).await;
    lin.until(&run, "completed").await;
    let system = |house: &House| {
        let request = house.model.requests().last().unwrap().body["messages"][0].clone();
        request["content"].as_str().unwrap().to_owned()
    };
    let read = system(&house);
    assert!(read.starts_with("You are a clerk."), "{read}");
    assert!(read.contains("- Answer in one sentence"), "{read}");
    assert!(read.contains("- grp_pay (Payroll): Pays salaries and invoices"), "{read}");
    assert!(!read.contains("grp_gone"), "nobody is at work there: {read}");
    let recalled = lin.kinds(&run).await;
    assert_eq!(recalled[..3], ["run.created", "run.started", "memory.recalled"]);
    // Another person's agent has other wishes, and so has another agent of this person's.
    for (who, agent) in [("mei", "pa"), ("lin", "narrow")] {
        let who = house.server.human(who).await;
        let run = who.starts(json!({"agent": agent, "input": "Where is the cellar key?"})).await;
        who.until(&run, "completed").await;
        assert!(!system(&house).contains("one sentence"), "{}", system(&house));
    }
    house.close().await;
}

async fn what_a_group_remembers_is_no_wish_of_the_persons(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let wish = json!({"content": "Lin wants it loud", "pa_preference": true});
    let fact = json!({"content": "The speaker is loud"});
    let lines = json!({"pa": {"calls": [[["memory_write", wish]], [["memory_write", fact]]]}});
    let run = lin.starts(json!({"group": "grp_deep", "input": lines.to_string()})).await;
    lin.until(&run, "completed").await;
    let results = house.results();
    assert!(results[0].contains("the person's own run"), "{results:?}");
    let run = lin.script("pa", json!([[["memory_search", {"query": "loud"}]]])).await;
    lin.until(&run, "completed").await;
    assert!(!house.results()[0].contains("loud speaker"), "{:?}", house.results());
    assert!(!lin.kinds(&run).await.contains(&"memory.recalled".to_owned()));
    house.close().await;
}

async fn nothing_is_deposited_of_what_failed_or_was_cancelled(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let record = |text: &str| json!([["record", {"kind": "DECISION", "content": text}]]);
    let waits = json!([["wait_for_signal", {"correlation_key": "never"}]]);
    let cancelled = json!({"pa": {"calls": [record("a lantern that was cancelled"), waits]}});
    let run = lin.starts(json!({"group": "grp_deep", "input": cancelled.to_string()})).await;
    lin.until(&run, "waiting").await;
    lin.post(&format!("/api/runs/{run}/cancel"), &json!({})).await;
    let whole = json!({"pa": {"calls": [record("a lantern that was lit")], "say": "lit"}});
    let run = lin.starts(json!({"group": "grp_deep", "input": whole.to_string()})).await;
    lin.until(&run, "completed").await;
    // The one that came later is there; nothing of the one before it is.
    let found = lin.finds_soon("q=lantern&mode=flat&type=archival", 1).await;
    assert_eq!(contents(&found), ["a lantern that was lit"]);
    house.close().await;
}
