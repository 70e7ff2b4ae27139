//! A batch waits until every question in it is answered: seed 001, line by line.

use serde_json::{Value, json};

use crate::harness::id;
use crate::house::{House, On, on_both};

on_both! {
    while_one_call_waits_no_call_of_the_batch_runs;
    one_decision_of_several_resumes_nothing;
    a_batch_resumes_once_however_often_and_wherever_it_is_decided;
    granted_calls_run_in_order_denied_ones_get_one_error_and_the_model_reads_both;
    a_call_that_was_granted_is_never_asked_about_again;
    a_request_carries_what_is_needed_to_decide_on_a_command;
    a_request_carries_what_is_needed_to_decide_on_a_write;
    a_request_says_of_which_kind_it_is;
    a_rule_of_the_organisation_denies_with_its_name_and_the_batch_goes_on;
    a_message_while_parked_is_read_after_the_results;
    cancelled_while_parked_a_request_is_cancelled_and_a_decision_comes_too_late;
    a_denial_may_abort_the_batch;
    an_aborted_batch_says_what_had_run_by_then;
}

async fn while_one_call_waits_no_call_of_the_batch_runs(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["note", {"to": "a"}], ["pay", {"to": "b"}], ["note", {"to": "c"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    assert_eq!(asked.len(), 1);
    // Nothing has run, not even what is allowed; and the run holds no worker.
    assert_eq!(house.ledger(), [""; 0]);
    let kinds = lin.kinds(&run).await;
    assert_eq!(kinds, ["run.created", "run.started", "batch.proposed"]);
    let house = house.restart().await;
    let lin = house.lin().await;
    assert_eq!(lin.until(&run, "waiting").await["attempt"], 1);
    assert_eq!(house.ledger(), [""; 0]);
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a", "pay b", "note c"]);
    house.close().await;
}

async fn one_decision_of_several_resumes_nothing(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}], ["deploy", {"to": "b"}], ["pay", {"to": "c"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    assert_eq!(asked.len(), 3);
    // In another order than the model's.
    for (place, left) in [(2, 2), (0, 1)] {
        let before = lin.kinds(&run).await;
        let decided = lin.grant(&asked[place]).await;
        assert_eq!((decided.status, &decided.json()["status"]), (200, &json!("granted")));
        let after = lin.kinds(&run).await;
        assert_eq!(after[before.len()..], ["permission.updated"]);
        let shown = lin.get(&format!("/api/runs/{run}")).await.json();
        assert_eq!((&shown["status"], &shown["attempt"]), (&json!("waiting"), &json!(1)));
        assert_eq!(shown["wait"]["correlation_keys"].as_array().unwrap().len(), left);
        assert_eq!(house.ledger(), [""; 0]);
    }
    lin.grant(&asked[1]).await;
    assert_eq!(lin.until(&run, "completed").await["attempt"], 2);
    assert_eq!(house.ledger(), ["pay a", "deploy b", "pay c"]);
    house.close().await;
}

async fn a_batch_resumes_once_however_often_and_wherever_it_is_decided(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}], ["pay", {"to": "b"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    let mut clicks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let (who, run) =
            (if n % 3 == 0 { house.server.operator() } else { lin.clone() }, run.clone());
        let permission = asked[n % 2].clone();
        clicks.spawn(async move {
            if n % 4 < 2 {
                return who.grant(&permission).await.status;
            }
            let body = json!({"correlation_key": permission["correlation_key"]});
            let door = if n % 4 == 2 { "jobs" } else { "runs" };
            who.post(&format!("/api/{door}/{run}/signal"), &body).await.status
        });
    }
    let statuses = clicks.join_all().await;
    assert!(statuses.iter().all(|it| *it == 200), "{statuses:?}");
    assert_eq!(lin.until(&run, "completed").await["attempt"], 2);
    let kinds = lin.kinds(&run).await;
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    let counted = (count("permission.updated"), count("tool.started"), count("batch.proposed"));
    assert_eq!(counted, (2, 2, 1), "{kinds:?}");
    assert_eq!(house.model.requests().len(), 2);
    assert_eq!(house.ledger(), ["pay a", "pay b"]);
    house.close().await;
}

async fn granted_calls_run_in_order_denied_ones_get_one_error_and_the_model_reads_both(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}], ["pay", {"to": "b"}], ["note", {"to": "c"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    let said = lin.decide(&asked[1], json!({"decision": "deny", "comment": "not b"})).await.json();
    assert_eq!((&said["status"], &said["comment"]), (&json!("denied"), &json!("not b")));
    assert_eq!((&said["decided_by"], said["decided_at"].is_string()), (&json!("lin"), true));
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay a", "note c"]);
    let results = house.results();
    assert_eq!(results.len(), 3, "{results:?}");
    assert!(results[0].contains("paid a") && results[2].contains("noted c"), "{results:?}");
    assert!(results[1].contains("User denied the request."), "{results:?}");
    // The model was asked twice: it did not ask for the same again.
    assert_eq!(house.model.requests().len(), 2);
    let ends = ["tool.started", "tool.finished", "tool.refused"];
    let kinds = lin.kinds(&run).await;
    let ends: Vec<&String> = kinds.iter().filter(|it| ends.contains(&&***it)).collect();
    let due = ["tool.started", "tool.finished", "tool.refused", "tool.started", "tool.finished"];
    assert_eq!(ends, due);
    house.close().await;
}

async fn a_call_that_was_granted_is_never_asked_about_again(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}], ["pay", {"to": "b"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    lin.grant(&asked[0]).await;
    let house = house.restart().await;
    let lin = house.lin().await;
    assert_eq!(lin.asked(&run).await.len(), 1);
    lin.grant(&asked[1]).await;
    lin.until(&run, "completed").await;
    let all = lin.get(&format!("/api/permissions?run={run}")).await.json();
    let calls: Vec<&Value> =
        all["items"].as_array().unwrap().iter().map(|it| &it["tool_call_id"]).collect();
    assert_eq!(calls, ["b0_1", "b0_2"]);
    assert_eq!(house.ledger(), ["pay a", "pay b"]);
    house.close().await;
}

async fn a_request_carries_what_is_needed_to_decide_on_a_command(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "b\u{202e}b\u{1b}[2K"}]]])).await;
    let it = &asked[0];
    let facts = (&it["tool"], &it["kind"], &it["ruling"], &it["risk"], &it["status"]);
    let due = ["pay", "command", "require_approval", "high", "pending"].map(Value::from);
    assert_eq!(facts, (&due[0], &due[1], &due[2], &due[3], &due[4]));
    assert_eq!(it["capabilities"], json!(["payment"]));
    assert_eq!(it["arguments"], json!({"to": "b\u{202e}b\u{1b}[2K"}));
    assert_eq!((&it["run_id"], &it["tool_call_id"]), (&json!(run), &json!("b0_1")));
    assert_eq!(
        (&it["agent"], &it["role"], &it["user"]),
        (&json!("pa"), &json!("clerk"), &json!("lin"))
    );
    assert_eq!(it["words"], "I shall");
    assert_eq!(it["chain"][0]["run_id"], json!(run));
    let key = format!("cap-approval-{run}:{}:b0_1", it["message_id"].as_str().unwrap());
    assert_eq!(it["correlation_key"], json!(key));
    assert_eq!(it["reasons"][0]["layer"], "risk");
    assert_eq!(it["arguments_sha256"].as_str().unwrap().len(), 64);
    let payload = &it["payload"];
    assert_eq!(
        (&payload["command_signature"], &payload["rememberable"]),
        (&json!("sh"), &json!(true))
    );
    assert_eq!(payload["command_info"]["risk"], "high");
    // What cannot be seen is spelt out where a person reads it.
    let command = payload["command"].as_str().unwrap();
    assert!(command.ends_with(r"'b\u{202e}b\u{1b}[2K'"), "{command}");
    assert_eq!(payload["argv"].as_array().unwrap().last().unwrap(), r"b\u{202e}b\u{1b}[2K");
    lin.grant(it).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay b\u{202e}b\u{1b}[2K"]);
    house.close().await;
}

async fn a_request_carries_what_is_needed_to_decide_on_a_write(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let workspace = house.server.config.workspace();
    std::fs::write(workspace.join("plan.txt"), "one\ntwo\n").unwrap();
    let content = "one\ntwo \u{202e}eerht\n";
    let forged = "x\u{202e}\n+++ x\n@@ -0,0 +1 @@\n+harmless";
    let batch = json!([[
        ["write_file", {"path": "plan.txt", "content": content}],
        ["write_file", {"path": forged, "content": "harm"}],
    ]]);
    let (run, asked) = lin.asking("pa", batch).await;
    let it = &asked[0]["payload"];
    assert_eq!((&asked[0]["kind"], &it["paths"]), (&json!("write"), &json!(["plan.txt"])));
    let diff = it["diff"].as_str().unwrap();
    assert!(diff.contains("-two\n+two \\u{202e}eerht\n"), "{diff}");
    // A path cannot pass for lines of the difference.
    let diff = asked[1]["payload"]["diff"].as_str().unwrap();
    assert!(!diff.lines().any(|it| it == "+harmless"), "{diff}");
    assert!(diff.lines().any(|it| it == "+harm"), "{diff}");
    let path = r"x\u{202e}\n+++ x\n@@ -0,0 +1 @@\n+harmless";
    assert_eq!(asked[1]["payload"]["paths"], json!([path]));
    lin.deny(&asked[1]).await;
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    assert_eq!(std::fs::read_to_string(workspace.join("plan.txt")).unwrap(), content);
    assert_eq!(std::fs::read_dir(&workspace).unwrap().count(), 1);
    house.close().await;
}

async fn a_request_says_of_which_kind_it_is(on: On) {
    let house = House::open(on).await;
    let every = "tools: {read_file: require_approval, wait_for_signal: require_human, \
                 write_note: require_approval}\n";
    house.change("", every).await;
    let lin = house.lin().await;
    let wait = json!({"correlation_key": "go"});
    let batch = json!([[
        ["read_file", {"path": "plan.txt"}], ["write_file", {"path": "plan.txt", "content": "x"}],
        ["pay", {"to": "a"}], ["wait_for_signal", wait],
        ["write_note", {"title": "t", "content": "x"}],
    ]]);
    let (run, asked) = lin.asking("pa", batch).await;
    let kinds: Vec<(&Value, &Value)> = asked.iter().map(|it| (&it["tool"], &it["kind"])).collect();
    let due = [
        ("read_file", "read"),
        ("write_file", "write"),
        ("pay", "command"),
        ("wait_for_signal", "all"),
        ("write_note", "write"),
    ]
    .map(|(tool, kind)| (json!(tool), json!(kind)));
    assert_eq!(kinds, due.each_ref().map(|(tool, kind)| (tool, kind)));
    assert_eq!(asked[0]["payload"], json!({"paths": ["plan.txt"], "rememberable": true}));
    assert_eq!(asked[3]["payload"], json!({"rememberable": false}));
    assert_eq!(asked[4]["payload"], json!({"paths": ["agents/pa/notes"], "rememberable": true}));
    for it in asked[..3].iter().chain(&asked[4..]) {
        assert_eq!(lin.deny(it).await.status, 200);
    }
    // A wait is a call like any other: it begins when a person has said so.
    assert_eq!(lin.grant(&asked[3]).await.status, 200);
    let began = std::time::Instant::now();
    while lin.get(&format!("/api/runs/{run}")).await.json()["waiting_for"] != "signal" {
        assert!(began.elapsed() < std::time::Duration::from_secs(20));
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(lin.post(&format!("/api/jobs/{run}/signal"), &wait).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), [""; 0]);
    house.close().await;
}

async fn a_rule_of_the_organisation_denies_with_its_name_and_the_batch_goes_on(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch =
        json!([[["deploy", {"to": "a"}], ["note", {"to": "b"}], ["fly", {}], ["note", {}]]]);
    let run = lin.script("narrow", batch).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note b"]);
    let results = house.results();
    for (result, words) in results.iter().zip([
        &["PERMISSION_DENIED", "`deploy`", "layer `role`", "narrow.deny_tools"][..],
        &["noted b"],
        &["UNKNOWN_TOOL", "`fly`"],
        &["INVALID_ARGUMENTS", "`note`", "to"],
    ]) {
        assert!(words.iter().all(|it| result.contains(it)), "{result}: {words:?}");
    }
    assert!(lin.asked(&run).await.is_empty());
    house.close().await;
}

async fn a_message_while_parked_is_read_after_the_results(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let spoken = lin.post(&format!("/api/jobs/{run}/message"), &json!({"text": "hurry"})).await;
    assert_eq!((spoken.status, &spoken.json()["status"]), (200, &json!("waiting")));
    assert_eq!(house.ledger(), [""; 0]);
    lin.grant(&asked[0]).await;
    let ended = lin.until(&run, "completed").await;
    assert_eq!(ended["output"], "done hurry");
    let last = house.model.requests().last().unwrap().body["messages"].clone();
    let roles: Vec<&Value> = last.as_array().unwrap().iter().map(|it| &it["role"]).collect();
    assert_eq!(roles[roles.len() - 3..], ["assistant", "tool", "user"]);
    house.close().await;
}

async fn cancelled_while_parked_a_request_is_cancelled_and_a_decision_comes_too_late(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) =
        lin.asking("pa", json!([[["pay", {"to": "a"}], ["pay", {"to": "b"}]]])).await;
    lin.grant(&asked[0]).await;
    let cancelled = lin.post(&format!("/api/runs/{run}/cancel"), &json!({})).await.json();
    assert_eq!((id(&cancelled), &cancelled["status"]), (run.clone(), &json!("cancelled")));
    assert!(lin.asked(&run).await.is_empty());
    lin.permission_until(&asked[0], "granted").await;
    lin.permission_until(&asked[1], "cancelled").await;
    for decision in ["grant", "deny"] {
        lin.decide(&asked[1], json!({"decision": decision})).await.problem(409, "run_ended");
        let body = json!({"correlation_key": asked[1]["correlation_key"], "payload": {"approved": decision == "grant"}});
        lin.post(&format!("/api/runs/{run}/signal"), &body).await.problem(409, "run_ended");
    }
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    assert_eq!(house.ledger(), [""; 0]);
    house.close().await;
}

async fn a_denial_may_abort_the_batch(on: On) {
    let house = House::with(on, |config| {
        config.permissions =
            serde_json::from_value(json!({"on_partial_deny": "abort_batch"})).unwrap();
    })
    .await;
    let lin = house.lin().await;
    let batch = json!([[["note", {"to": "a"}], ["pay", {"to": "b"}], ["pay", {"to": "c"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    lin.grant(&asked[1]).await;
    lin.deny(&asked[0]).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), [""; 0]);
    let results = house.results();
    let said = "Another call of the same batch was denied, so this one did not run; no call of the \
                batch was begun.";
    assert!(results[0].contains(said) && results[2].contains(said), "{results:?}");
    assert!(results[1].contains("User denied the request."), "{results:?}");
    house.close().await;
}

/// Some of a batch may have run when a rule that has become stricter has the next call asked about
/// again: whoever denies that ends the rest, and what is said of it is true.
async fn an_aborted_batch_says_what_had_run_by_then(on: On) {
    let house = House::with(on, |config| {
        config.permissions =
            serde_json::from_value(json!({"on_partial_deny": "abort_batch"})).unwrap();
    })
    .await;
    let lin = house.lin().await;
    let door =
        house.server.holder(json!({"kind": "service", "name": "door", "approve": true})).await;
    let batch = json!([[["note", {"to": "a"}], ["pay", {"to": "b"}], ["pay", {"to": "c"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    assert_eq!(door.grant(&asked[0]).await.status, 200);
    house.change("", "tools: {pay: require_human}\n").await;
    assert_eq!(lin.grant(&asked[1]).await.status, 200);
    let again = lin.asked_anew(&run).await;
    assert_eq!(house.ledger(), ["note a"]);
    assert_eq!(lin.deny(&again[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a"]);
    let results = house.results();
    assert!(results[0].contains("noted a"), "{results:?}");
    assert!(results[1].contains("User denied the request."), "{results:?}");
    let said = "so this one did not run; begun before that: `note` (b0_1).";
    assert!(results[2].contains(said), "{results:?}");
    house.close().await;
}
