//! What a run was given bounds whoever acts in it: seed 000, "权限透传", as far as one run goes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::Caller;
use crate::house::{House, On, on_both};

on_both! {
    what_a_run_was_given_is_kept_with_it;
    what_the_delegation_denies_is_denied_though_the_role_has_it;
    what_the_role_denies_is_denied_though_the_delegation_has_it;
    what_is_granted_stays_within_the_delegation;
    a_pattern_is_kept_as_the_names_of_the_day_and_a_later_tool_is_not_given;
    a_delegation_that_cannot_be_meant_is_refused;
    a_refusal_by_the_delegation_says_what_it_was_and_what_a_new_run_takes;
}

async fn given(caller: &Caller, agent: &str, delegated: Value, batch: Value) -> Value {
    let body =
        json!({"agent": agent, "input": batch.to_string(), "delegated_permissions": delegated});
    let made = caller.post("/api/runs", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()
}

/// The tools that the model was last offered.
fn offered(house: &House) -> BTreeSet<String> {
    let body = house.model.requests().last().unwrap().body.clone();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|it| it["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|it| (*it).to_owned()).collect()
}

async fn what_a_run_was_given_is_kept_with_it(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    for delegated in [
        json!({"allowed_tools": ["note"], "denied_tools": ["pay"]}),
        json!({"allowed_tools": []}),
        json!({"denied_tools": ["pay"]}),
        Value::Null,
    ] {
        let run = given(&lin, "pa", delegated.clone(), json!([])).await;
        assert_eq!(run["delegated_permissions"], delegated);
        let ended = lin.until(run["id"].as_str().unwrap(), "completed").await;
        assert_eq!(ended["delegated_permissions"], delegated);
    }
    house.close().await;
}

async fn what_the_delegation_denies_is_denied_though_the_role_has_it(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    // Absent is no limit.
    let run = given(&lin, "pa", Value::Null, json!([])).await;
    lin.until(run["id"].as_str().unwrap(), "completed").await;
    let all = offered(&house);
    assert!(all.is_superset(&names(&["deploy", "note", "pay", "read_file"])), "{all:?}");
    let others: BTreeSet<String> = all.iter().filter(|it| *it != "note").cloned().collect();
    for (delegated, may, shown) in [
        (json!({"denied_tools": ["note"]}), false, &others),
        (json!({"denied_tools": ["not*"]}), false, &others),
        (json!({"allowed_tools": ["pay"]}), false, &names(&["pay"])),
        // Empty is nothing.
        (json!({"allowed_tools": []}), false, &names(&[])),
        (
            json!({"allowed_tools": ["note", "pay"], "denied_tools": ["note"]}),
            false,
            &names(&["pay"]),
        ),
        (json!({"allowed_tools": ["not*"]}), true, &names(&["note"])),
        (json!({}), true, &all),
    ] {
        let before = house.ledger().len();
        let run = given(&lin, "pa", delegated.clone(), json!([[["note", {"to": "a"}]]])).await;
        lin.until(run["id"].as_str().unwrap(), "completed").await;
        assert_eq!(house.ledger().len() - before, usize::from(may), "{delegated}");
        assert_eq!(offered(&house), *shown, "{delegated}");
        let result = house.results().pop().unwrap();
        if !may {
            let words = ["PERMISSION_DENIED", "`note`", "layer `delegation`", "tools"];
            assert!(words.iter().all(|it| result.contains(it)), "{result}");
        }
    }
    house.close().await;
}

async fn what_the_role_denies_is_denied_though_the_delegation_has_it(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    for (agent, rule) in [("narrow", "narrow.deny_tools"), ("payer", "payer.tools")] {
        let delegated = json!({"allowed_tools": ["deploy", "note"]});
        let run = given(&lin, agent, delegated, json!([[["deploy", {"to": "a"}]]])).await;
        lin.until(run["id"].as_str().unwrap(), "completed").await;
        assert_eq!(offered(&house), names(&["note"]));
        let result = house.results().pop().unwrap();
        let words = ["PERMISSION_DENIED", "`deploy`", "layer `role`", rule];
        assert!(words.iter().all(|it| result.contains(it)), "{result}");
    }
    assert_eq!(house.ledger(), [""; 0]);
    house.close().await;
}

async fn what_is_granted_stays_within_the_delegation(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    // A role that lists a tool by its name waives the risk; a pattern does not.
    for (agent, asks) in [("payer", false), ("patterns", true), ("pa", true)] {
        let delegated = json!({"allowed_tools": ["pay"]});
        let run = given(&lin, agent, delegated, json!([[["pay", {"to": "a"}]]])).await;
        let run = run["id"].as_str().unwrap();
        if asks {
            lin.until(run, "waiting").await;
            let asked = lin.asked(run).await;
            assert_eq!(lin.grant(&asked[0]).await.status, 200);
        }
        lin.until(run, "completed").await;
    }
    assert_eq!(house.ledger(), ["pay a"; 3]);
    house.close().await;
}

async fn a_pattern_is_kept_as_the_names_of_the_day_and_a_later_tool_is_not_given(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}]], [["payroll", {}]], [["note", {"to": "b"}]]]);
    for (delegated, kept) in [
        (json!({"allowed_tools": ["pay*", "note"]}), json!({"allowed_tools": ["note", "pay"]})),
        (json!({"denied_tools": ["roll*"]}), Value::Null),
    ] {
        let run = given(&lin, "pa", delegated, batch.clone()).await;
        let id = run["id"].as_str().unwrap();
        lin.until(id, "waiting").await;
        let shown =
            lin.get(&format!("/api/runs/{id}")).await.json()["delegated_permissions"].clone();
        if kept != Value::Null {
            assert_eq!(shown, kept);
        }
        let names = shown["allowed_tools"].as_array().unwrap();
        assert!(names.iter().all(|it| !it.as_str().unwrap().contains('*')), "{shown}");
        // While it waits, a tool comes that the pattern would have matched.
        let roll =
            "  payroll: {description: Pays all, command: [/bin/sh, -c, 'echo all >> ledger']}\n";
        house.change_tools(roll).await;
        let asked = lin.asked(id).await;
        assert_eq!(lin.grant(&asked[0]).await.status, 200);
        lin.until(id, "completed").await;
        let results = house.results();
        let words = ["PERMISSION_DENIED", "`payroll`", "layer `delegation`", "allowed_tools"];
        assert!(words.iter().all(|it| results[1].contains(it)), "{results:?}");
        house.change_tools("").await;
    }
    assert_eq!(house.ledger(), ["pay a", "note b", "pay a", "note b"]);
    house.close().await;
}

/// `pay ` would match no tool, and `pay` would not be denied.
async fn a_delegation_that_cannot_be_meant_is_refused(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let many: Vec<String> = (0..1001).map(|n| format!("t{n}")).collect();
    for delegated in [
        json!({"denied_tools": ["pay "]}),
        json!({"denied_tools": ["pay\n"]}),
        json!({"denied_tools": [""]}),
        json!({"allowed_tools": ["\u{0}"]}),
        json!({"allowed_tools": many}),
        json!({"allowed_tools": "pay"}),
        json!({"denied": ["pay"]}),
        json!([["pay"], []]),
    ] {
        let body = json!({"agent": "pa", "input": "[]", "delegated_permissions": delegated});
        lin.post("/api/runs", &body).await.problem(400, "bad_request");
    }
    assert_eq!(lin.get("/api/runs").await.json()["items"], json!([]));
    house.close().await;
}

/// What would let the refused call of a run through, by kind.
async fn ways(caller: &Caller, run: &str) -> Vec<(String, String)> {
    let denied = caller.get(&format!("/api/audit?ruling=deny&run={run}")).await.json();
    let id = denied["items"][0]["id"].as_str().unwrap_or_else(|| panic!("{denied}")).to_owned();
    let entry = caller.get(&format!("/api/audit/{id}")).await.json();
    let word = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let text = |it: &Value| format!("{} {}", word(it, "text"), word(it, "rule"));
    let ways = entry["ways"].as_array().unwrap_or_else(|| panic!("{entry}"));
    ways.iter().map(|it| (word(it, "kind"), text(it).trim_end().to_owned())).collect()
}

async fn a_refusal_by_the_delegation_says_what_it_was_and_what_a_new_run_takes(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let only = json!({"allowed_tools": ["escalate_to_group", "note"]});
    let run = given(&lin, "pa", only.clone(), json!([[["pay", {"to": "a"}]]])).await;
    let run = run["id"].as_str().unwrap();
    lin.until(run, "completed").await;
    let own = "a new run that is given `pay`: `lin` fixed what this one has as it started: \
               allowed_tools: [escalate_to_group, note]";
    // That is asked about, in whichever run.
    let needs = [("run", own), ("person", "someone approves it")];
    assert_eq!(ways(&lin, run).await, needs.map(|(kind, text)| (kind.to_owned(), text.to_owned())));
    // The same is said to whoever asks before.
    let question = json!({"agent": "pa", "tool": "pay", "run": run});
    let asked = lin.post("/api/authorize", &question).await.json();
    assert_eq!(asked["ways"][0]["rule"], "allowed_tools: [escalate_to_group, note]", "{asked}");

    // A run beneath has it from an agent, which had no more to give.
    let goal = json!({"payer": {"calls": [[["pay", {"to": "a"}]]]}}).to_string();
    let handed = json!([[["escalate_to_group", {"group_id": "grp_pay", "goal": goal}]]]);
    let run = given(&lin, "pa", only, handed).await;
    let run = run["id"].as_str().unwrap();
    lin.until(run, "completed").await;
    let page = lin.get(&format!("/api/runs?parent={run}")).await.json();
    let child = page["items"][0]["id"].as_str().unwrap();
    let found = ways(&lin, child).await;
    let told = |part: &str| found.iter().any(|(kind, it)| kind == "run" && it.contains(part));
    assert!(told("`pa` fixed what this one has as it started: allowed_tools: ["), "{found:?}");
    let above = format!("before it, one in place of `{run}` that is given `pay`: `lin` fixed");
    assert!(told(&above), "{found:?}");
    house.close().await;
}
