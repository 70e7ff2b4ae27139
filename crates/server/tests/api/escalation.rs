//! Goals handed to groups: nested runs, what they may do, how they end, and who is told. Seed 003's
//! acceptance list, and seed 000's on what is passed down.

use serde_json::{Value, json};

use crate::harness::{Caller, id};
use crate::house::{House, On, on_both};
use crate::prices::priced;

on_both! {
    an_agent_escalates_waits_and_goes_on_with_the_groups_result;
    a_group_that_fails_is_a_clear_error_to_the_agent;
    a_group_without_output_says_so;
    unknown_and_empty_groups_make_no_child;
    a_group_that_takes_too_long_is_cancelled_and_the_agent_told_which_and_how_long;
    a_group_that_takes_too_long_may_go_on_by_itself;
    cancelling_a_run_cancels_those_beneath_it;
    several_goals_of_one_batch_are_pursued_side_by_side_and_wake_the_run_once;
    what_is_delegated_goes_down_and_only_shrinks;
    depth_and_circles_are_refused;
    what_a_group_used_is_charged_to_the_run_that_asked;
    a_group_is_chosen_by_what_it_is_for_and_the_reason_is_in_the_trace;
    a_nested_wait_survives_a_restart;
}

/// Arguments of a call that hands a script to a group.
fn goal(group: &str, lines: &Value) -> Value {
    json!({"group_id": group, "goal": lines.to_string()})
}

/// One batch that hands one script to one group.
fn escalate(group: &str, lines: &Value) -> Value {
    json!([[["escalate_to_group", goal(group, lines)]]])
}

impl Caller {
    async fn children(&self, run: &str) -> Vec<Value> {
        let page = self.get(&format!("/api/runs?parent={run}")).await.json();
        let mut found = page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone();
        found.reverse();
        found
    }

    async fn event(&self, run: &str, kind: &str) -> Value {
        let page = self.get(&format!("/api/runs/{run}/events")).await.json();
        let found = page["items"].as_array().unwrap().iter().find(|it| it["type"] == kind);
        found.unwrap_or_else(|| panic!("no `{kind}` in {page}"))["data"].clone()
    }
}

/// What the agent read as the result of its one call.
async fn handed_back(lin: &Caller, run: &str) -> Value {
    let result = lin.event(run, "child.ended").await["result"].clone();
    serde_json::from_str(result["text"].as_str().unwrap()).unwrap()
}

async fn an_agent_escalates_waits_and_goes_on_with_the_groups_result(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({
        "payer": {"calls": [[["note", {"to": "first"}]]], "say": "noted it"},
        "narrow": {"calls": [[["wait_for_signal", {"correlation_key": "go"}]]], "say": "all done"},
    });
    let run = lin.script("pa", escalate("grp_pay", &lines)).await;
    // The run waits, the child is at work: nothing of the parent is held by a worker.
    let waiting = lin.until(&run, "waiting").await;
    assert_eq!(waiting["waiting_for"], "child");
    let children = lin.children(&run).await;
    assert_eq!(children.len(), 1);
    let child = id(&children[0]);
    assert_eq!(children[0]["parent_run_id"], json!(run));
    assert_eq!(children[0]["group"], "grp_pay");
    assert_eq!(lin.until(&child, "waiting").await["waiting_for"], "signal");
    assert_eq!(lin.get(&format!("/api/runs/{run}")).await.json()["status"], "waiting");
    let tree = lin.get(&format!("/api/runs/{run}/tree")).await.json();
    assert_eq!(tree["children"][0]["id"], json!(child));
    // It ends, and in the same moment the run goes on with what it came to.
    let signal = json!({"correlation_key": "go"});
    assert_eq!(lin.post(&format!("/api/runs/{child}/signal"), &signal).await.status, 200);
    let done = lin.until(&run, "completed").await;
    assert_eq!(done["attempt"], 2, "it was woken once");
    assert_eq!(lin.until(&child, "completed").await["output"], "all done");
    assert_eq!(handed_back(&lin, &run).await, json!({"success": true, "result": "all done"}));
    // The result goes with the call that asked for it.
    let ended = lin.event(&run, "child.ended").await;
    let spawned = lin.event(&run, "child.spawned").await;
    assert_eq!((&ended["call"], &ended["child"]), (&json!("b0_1"), &json!(child)));
    assert_eq!((&spawned["call"], &spawned["child"]), (&json!("b0_1"), &json!(child)));
    assert_eq!(house.ledger(), ["note first"]);
    house.close().await;
}

async fn a_group_that_fails_is_a_clear_error_to_the_agent(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let run = lin.script("pa", escalate("grp_deep", &waits_for_ever())).await;
    lin.until(&run, "waiting").await;
    let child = id(&lin.children(&run).await[0]);
    lin.until(&child, "waiting").await;
    // It is ended by a hand of its own: the parent hears of it and goes on.
    assert_eq!(lin.post(&format!("/api/runs/{child}/cancel"), &json!({})).await.status, 200);
    lin.until(&run, "completed").await;
    let back = handed_back(&lin, &run).await;
    assert_eq!(back, json!({"success": false, "error": "Group run failed: it was cancelled"}));
    // And one whose model refuses.
    let run = lin.script("pa", escalate("grp_deep", &json!({"pa": {"fails": true}}))).await;
    lin.until(&run, "completed").await;
    let error = handed_back(&lin, &run).await["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("Group run failed: model `default` refused"), "{error}");
    house.close().await;
}

async fn a_group_without_output_says_so(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let run = lin.script("pa", escalate("grp_deep", &json!({"pa": {"say": ""}}))).await;
    lin.until(&run, "completed").await;
    let back = handed_back(&lin, &run).await;
    assert_eq!(back, json!({"success": true, "result": "Group completed but produced no output"}));
    house.close().await;
}

async fn unknown_and_empty_groups_make_no_child(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batches = json!([
        [["escalate_to_group", {"group_id": "grp_nowhere", "goal": "x"}]],
        [["escalate_to_group", {"group_id": "grp_gone", "goal": "x"}]],
        [["escalate_to_group", {"group_id": "grp_pay", "goal": "   "}]],
        [["escalate_to_group", {"group_id": "grp_pay"}]],
        [["escalate_to_group", {"goal": "x", "user": "mei"}]],
        [["list_available_groups", {}]],
    ]);
    let run = lin.script("pa", batches).await;
    lin.until(&run, "completed").await;
    assert!(lin.children(&run).await.is_empty());
    let results = house.results();
    assert!(results[0].contains("there is no group `grp_nowhere`"), "{results:?}");
    assert!(results[1].contains("no member that is at work"), "{results:?}");
    assert!(results[2].contains("says nothing"), "{results:?}");
    assert!(results[3].contains("goal") && results[4].contains("user"), "{results:?}");
    let listed: Value = serde_json::from_str(&results[5]).unwrap();
    let ids: Vec<_> =
        listed["groups"].as_array().unwrap().iter().map(|it| &it["group_id"]).collect();
    assert_eq!(ids, ["grp_deep", "grp_next", "grp_pay", "grp_talk"]);
    lin.post("/api/runs", &json!({"group": "grp_gone", "input": "x"}))
        .await
        .problem(400, "unknown_group");
    house.close().await;
}

fn waits_for_ever() -> Value {
    json!({"pa": {"calls": [[["wait_for_signal", {"correlation_key": "never"}]]], "say": "late"}})
}

fn hurried(config: &mut chancery_server::config::Config, on_timeout: &str) {
    let said = json!({"timeout": "1s", "on_timeout": on_timeout});
    config.escalation = serde_json::from_value(said).unwrap();
}

async fn a_group_that_takes_too_long_is_cancelled_and_the_agent_told_which_and_how_long(on: On) {
    let house = House::with(on, |config| hurried(config, "cancel")).await;
    let lin = house.lin().await;
    let run = lin.script("pa", escalate("grp_deep", &waits_for_ever())).await;
    lin.until(&run, "completed").await;
    let child = id(&lin.children(&run).await[0]);
    lin.until(&child, "cancelled").await;
    let back = handed_back(&lin, &run).await;
    let error = format!("Group run {child} did not complete within 1 seconds; it was cancelled");
    assert_eq!(back, json!({"success": false, "error": error}));
    house.close().await;
}

async fn a_group_that_takes_too_long_may_go_on_by_itself(on: On) {
    let house = House::with(on, |config| hurried(config, "detach")).await;
    let lin = house.lin().await;
    let run = lin.script("pa", escalate("grp_deep", &waits_for_ever())).await;
    lin.until(&run, "completed").await;
    let child = id(&lin.children(&run).await[0]);
    assert_eq!(lin.get(&format!("/api/runs/{child}")).await.json()["status"], "waiting");
    let signal = json!({"correlation_key": "never"});
    lin.post(&format!("/api/runs/{child}/signal"), &signal).await;
    assert_eq!(lin.until(&child, "completed").await["output"], "late");
    let ended = lin.kinds(&run).await.iter().filter(|it| *it == "child.ended").count();
    assert_eq!(ended, 1, "what comes late is not told twice");
    house.close().await;
}

async fn cancelling_a_run_cancels_those_beneath_it(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let waits = json!({"calls": [[["wait_for_signal", {"correlation_key": "never"}]]]});
    let inner = goal("grp_next", &json!({"pa": waits}));
    let outer = json!({"pa": {"calls": [[["escalate_to_group", inner]]]}});
    let run = lin.script("pa", escalate("grp_deep", &outer)).await;
    lin.until(&run, "waiting").await;
    let child = id(&lin.children(&run).await[0]);
    lin.until(&child, "waiting").await;
    let grandchild = id(&lin.children(&child).await[0]);
    lin.until(&grandchild, "waiting").await;
    let cancelled = lin.post(&format!("/api/runs/{run}/cancel"), &json!({})).await.json();
    assert_eq!(cancelled["status"], "cancelled");
    for below in [&child, &grandchild] {
        lin.until(below, "cancelled").await;
    }
    assert_eq!(lin.kinds(&run).await.last().unwrap(), "run.cancelled");
    house.close().await;
}

async fn several_goals_of_one_batch_are_pursued_side_by_side_and_wake_the_run_once(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let waits = |key: &str, say: &str| json!({"pa": {"calls": [[["wait_for_signal", {"correlation_key": key}]]], "say": say}});
    let batch = json!([[
        ["escalate_to_group", goal("grp_deep", &waits("one", "first"))],
        ["escalate_to_group", {"group_id": "grp_nowhere", "goal": "x"}],
        ["escalate_to_group", goal("grp_next", &waits("two", "second"))],
        ["note", {"to": "after"}],
    ]]);
    let run = lin.script("pa", batch).await;
    lin.until(&run, "waiting").await;
    let children: Vec<String> = lin.children(&run).await.iter().map(id).collect();
    assert_eq!(children.len(), 2);
    for child in &children {
        lin.until(child, "waiting").await;
    }
    // The second one is back first.
    for (child, key) in children.iter().zip(["one", "two"]).rev() {
        assert_eq!(house.ledger(), [""; 0]);
        let signal = json!({"correlation_key": key});
        lin.post(&format!("/api/runs/{child}/signal"), &signal).await;
        lin.until(child, "completed").await;
    }
    let done = lin.until(&run, "completed").await;
    assert_eq!(done["attempt"], 2, "it was woken once");
    assert_eq!(house.ledger(), ["note after"]);
    let results = house.results();
    assert!(results[0].contains("first"), "{results:?}");
    assert!(results[1].contains("grp_nowhere"), "{results:?}");
    assert!(results[2].contains("second"), "{results:?}");
    assert!(results[3].contains("noted after"), "{results:?}");
    house.close().await;
}

async fn what_is_delegated_goes_down_and_only_shrinks(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({
        "payer": {"calls": [[["note", {"to": "x"}], ["deploy", {"to": "x"}]]]},
        "narrow": {"calls": [[["note", {"to": "y"}], ["pay", {"to": "y"}], ["deploy", {"to": "y"}]]]},
    });
    // What the agent passes on is more than the run has: the run was given less.
    let mut asked = goal("grp_pay", &lines);
    asked["delegated_permissions"] = json!({"allowed_tools": ["note", "deploy", "pay", "burn"]});
    let batches = json!([[["escalate_to_group", asked]]]).to_string();
    let given = json!({"denied_tools": ["pay"]});
    let body = json!({"agent": "pa", "input": batches, "delegated_permissions": given});
    let run = id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "completed").await;
    let child = lin.children(&run).await.remove(0);
    let delegated = &child["delegated_permissions"];
    assert_eq!(delegated["allowed_tools"], json!(["burn", "deploy", "note"]));
    assert_eq!(delegated["denied_tools"], json!(["pay"]));
    assert_eq!(house.ledger(), ["note x", "note y"]);
    let page = lin.get(&format!("/api/runs/{}/events", id(&child))).await.json();
    let refused: Vec<String> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["type"] == "tool.refused")
        .map(|it| {
            let result = &it["data"]["result"];
            assert_eq!(result["code"], "PERMISSION_DENIED", "{result}");
            result["text"].as_str().unwrap().to_owned()
        })
        .collect();
    // The role forbids what was delegated; the delegation forbids what the role allows; both.
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused[0].contains("layer `role`"), "{refused:?}");
    assert!(refused[1].contains("layer `delegation`"), "{refused:?}");
    assert!(refused[2].contains("layer `role`"), "{refused:?}");
    // Who was refused is told by name: the member, not the run's first.
    let audit = house.server.operator().get("/api/audit?agent=narrow&ruling=deny").await.json();
    assert_eq!(audit["items"].as_array().unwrap().len(), 2, "{audit}");
    house.close().await;
}

async fn depth_and_circles_are_refused(on: On) {
    let depth = |config: &mut chancery_server::config::Config| {
        config.escalation = serde_json::from_value(json!({"depth": 1})).unwrap();
    };
    let house = House::with(on, depth).await;
    let lin = house.lin().await;
    let inner =
        json!({"pa": {"calls": [[["escalate_to_group", {"group_id": "grp_next", "goal": "x"}]]]}});
    let run = lin.script("pa", escalate("grp_deep", &inner)).await;
    lin.until(&run, "completed").await;
    let child = id(&lin.children(&run).await[0]);
    assert!(lin.children(&child).await.is_empty());
    let refused = lin.event(&child, "tool.refused").await["result"].clone();
    assert_eq!(refused["code"], "PERMISSION_DENIED");
    let why = refused["text"].as_str().unwrap();
    assert!(why.contains("layer `limits`, rule `escalation.depth`"), "{why}");
    let audit = house.server.operator().get("/api/audit?tool=escalate_to_group&ruling=deny").await;
    assert_eq!(audit.json()["items"].as_array().unwrap().len(), 1);
    house.close().await;

    let house = House::open(on).await;
    let lin = house.lin().await;
    let inner =
        json!({"pa": {"calls": [[["escalate_to_group", {"group_id": "grp_deep", "goal": "x"}]]]}});
    let run = lin.script("pa", escalate("grp_deep", &inner)).await;
    lin.until(&run, "completed").await;
    let child = id(&lin.children(&run).await[0]);
    assert!(lin.children(&child).await.is_empty());
    let refused = lin.event(&child, "tool.finished").await["result"].clone();
    assert_eq!(refused["code"], "GROUP_ABOVE");
    house.close().await;
}

async fn what_a_group_used_is_charged_to_the_run_that_asked(on: On) {
    let house = House::with(on, |config| priced(config, 3.0, 15.0)).await;
    let lin = house.lin().await;
    let inner = goal("grp_next", &json!({"pa": {"say": "deepest"}}));
    let outer = json!({"pa": {"calls": [[["escalate_to_group", inner]]]}});
    let run = lin.script("pa", escalate("grp_deep", &outer)).await;
    let done = lin.until(&run, "completed").await;
    let child = lin.children(&run).await.remove(0);
    let grandchild = lin.children(&id(&child)).await.remove(0);
    let used = |run: &Value| run["usage"]["input_tokens"].as_u64().unwrap();
    assert!(used(&grandchild) > 0);
    let asked = house.model.requests().len() as u64;
    assert_eq!(asked, 5, "two of the run's, two of the child's, one beneath");
    assert_eq!(used(&child), 3 * used(&grandchild));
    assert_eq!(used(&done), 5 * used(&grandchild));
    // The fake model reads 12 tokens and writes 7, each time.
    let cost = |run: &Value| run["usage"]["cost"].clone();
    assert_eq!([&grandchild, &child, &done].map(cost), [0.000141, 0.000423, 0.000705]);
    house.close().await;
}

async fn a_group_is_chosen_by_what_it_is_for_and_the_reason_is_in_the_trace(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batches = json!([
        [["escalate_to_group", {"goal": "Check the invoice and pay the salary of Mei"}]],
        [["escalate_to_group", {"goal": "Write a poem about autumn"}]],
    ]);
    let run = lin.script("pa", batches).await;
    lin.until(&run, "completed").await;
    let children = lin.children(&run).await;
    assert_eq!(children.len(), 1, "nobody is for poems");
    assert_eq!(children[0]["group"], "grp_pay");
    let why = lin.event(&run, "child.spawned").await["chosen"].clone();
    assert!(why.as_str().unwrap().contains("tag `invoic"), "{why}");
    let results = house.results();
    let list: Value = serde_json::from_str(&results[1]).unwrap_or_else(|_| panic!("{results:?}"));
    assert_eq!(list["groups"].as_array().unwrap().len(), 4, "{list}");
    house.close().await;
}

async fn a_nested_wait_survives_a_restart(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let waits = json!({"calls": [[["wait_for_signal", {"correlation_key": "go"}]]], "say": "deep"});
    let inner = goal("grp_next", &json!({"pa": waits}));
    let outer = json!({"pa": {"calls": [[["escalate_to_group", inner]]], "say": "up"}});
    let run = lin.script("pa", escalate("grp_deep", &outer)).await;
    lin.until(&run, "waiting").await;
    let child = id(&lin.children(&run).await[0]);
    lin.until(&child, "waiting").await;
    let grandchild = id(&lin.children(&child).await[0]);
    lin.until(&grandchild, "waiting").await;
    let house = house.restart().await;
    let lin = house.lin().await;
    let signal = json!({"correlation_key": "go"});
    assert_eq!(lin.post(&format!("/api/runs/{grandchild}/signal"), &signal).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(handed_back(&lin, &child).await["result"], "deep");
    assert_eq!(handed_back(&lin, &run).await["result"], "up");
    house.close().await;
}
