//! Who may answer a permission request, through which door, with what, and what comes of it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::house::{House, On, on_both};

on_both! {
    a_job_waits_for_the_signal_of_its_key_and_goes_on_by_it;
    a_signal_may_say_no;
    deciding_again_the_same_way_is_fine_and_the_other_way_a_conflict;
    a_request_of_somebody_else_is_not_there;
    not_everyone_who_sees_a_request_may_decide;
    own_requests_may_be_for_others_to_answer;
    whoever_had_a_hand_in_asking_does_not_answer_where_others_must;
    who_answers_through_the_signal_door_is_not_shown_the_run;
    edited_arguments_are_ruled_on_and_are_what_runs;
    a_decision_is_remembered_for_as_much_as_was_said;
    what_nobody_answers_in_time_expires;
    what_nobody_answers_is_put_to_others_first;
    a_request_may_wait_for_as_long_as_it_takes;
    what_cannot_be_meant_decides_nothing;
    arguments_of_a_megabyte_and_of_great_depth_are_asked_about_as_any_other;
}

fn permissions(config: &mut chancery_server::config::Config, said: Value) {
    config.permissions = serde_json::from_value(said).unwrap();
}

/// Seed 004, "与 Wait/Signal 的配合", its five steps.
async fn a_job_waits_for_the_signal_of_its_key_and_goes_on_by_it(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let waiting = lin.get(&format!("/api/runs/{run}")).await.json();
    let key = format!("cap-approval-{run}:{}:b0_1", asked[0]["message_id"].as_str().unwrap());
    assert_eq!(waiting["wait"]["correlation_keys"], json!([key]));
    let path = format!("/api/jobs/{run}/signal");
    let unknown = json!({"correlation_key": format!("{key}x")});
    lin.post(&path, &unknown).await.problem(404, "not_found");
    let odd = json!({"correlation_key": key, "payload": {"approved": "yes"}});
    lin.post(&path, &odd).await.problem(400, "bad_payload");
    let ci = house.server.holder(json!({"kind": "service", "name": "ci", "approve": true})).await;
    let signal = json!({"correlation_key": key});
    let signalled = ci.post(&path, &signal).await;
    assert_eq!(signalled.status, 200, "{signalled:?}");
    assert_ne!(signalled.json()["status"], "waiting");
    assert_eq!(lin.until(&run, "completed").await["attempt"], 2);
    assert_eq!(house.ledger(), ["pay a"]);
    let decided = lin.permission_until(&asked[0], "granted").await;
    assert_eq!(decided["decided_by"], "service:ci");
    // Delivered again it answers the same, and changes nothing.
    let before = lin.kinds(&run).await;
    for who in [&ci, &lin] {
        assert_eq!(who.post(&path, &signal).await.status, 200);
    }
    assert_eq!(lin.kinds(&run).await, before);
    assert_eq!(house.ledger(), ["pay a"]);
    house.close().await;
}

async fn a_signal_may_say_no(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let path = format!("/api/runs/{run}/signal");
    let no =
        json!({"correlation_key": asked[0]["correlation_key"], "payload": {"approved": false}});
    assert_eq!(lin.post(&path, &no).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), [""; 0]);
    assert_eq!(lin.post(&path, &no).await.status, 200);
    let yes = json!({"correlation_key": asked[0]["correlation_key"]});
    lin.post(&path, &yes).await.problem(409, "already_decided");
    house.close().await;
}

async fn deciding_again_the_same_way_is_fine_and_the_other_way_a_conflict(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}], ["pay", {"to": "b"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    for (place, same, other, status) in
        [(0, "grant", "deny", "granted"), (1, "deny", "grant", "denied")]
    {
        // Before the batch is settled, and long after.
        for _ in 0..2 {
            let again = lin.decide(&asked[place], json!({"decision": same})).await;
            assert_eq!((again.status, &again.json()["status"]), (200, &json!(status)));
            let conflict = lin.decide(&asked[place], json!({"decision": other})).await;
            conflict.problem(409, "already_decided");
        }
    }
    lin.until(&run, "completed").await;
    lin.deny(&asked[0]).await.problem(409, "already_decided");
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    let edited = json!({"decision": "grant", "arguments": {"to": "z"}});
    lin.decide(&asked[0], edited).await.problem(409, "already_decided");
    assert_eq!(house.ledger(), ["pay a"]);
    house.close().await;
}

async fn a_request_of_somebody_else_is_not_there(on: On) {
    let house = House::open(on).await;
    let (lin, mei) = (house.lin().await, house.server.human("mei").await);
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let path = format!("/api/permissions/{}", asked[0]["id"].as_str().unwrap());
    mei.get(&path).await.problem(404, "not_found");
    mei.grant(&asked[0]).await.problem(404, "not_found");
    assert!(mei.asked(&run).await.is_empty());
    let signal = json!({"correlation_key": asked[0]["correlation_key"]});
    mei.post(&format!("/api/runs/{run}/signal"), &signal).await.problem(404, "not_found");
    house.server.nobody().grant(&asked[0]).await.problem(401, "unauthenticated");
    lin.permission_until(&asked[0], "pending").await;
    assert_eq!(house.ledger(), [""; 0]);
    // An operator sees to it.
    assert_eq!(house.server.operator().grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    house.close().await;
}

async fn not_everyone_who_sees_a_request_may_decide(on: On) {
    let house = House::open(on).await;
    let agent = house.server.holder(json!({"kind": "agent", "name": "pa"})).await;
    let ci = house.server.holder(json!({"kind": "service", "name": "ci"})).await;
    let (run, asked) = ci.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let signal = json!({"correlation_key": asked[0]["correlation_key"]});
    for who in [&agent, &ci] {
        for decision in ["grant", "deny"] {
            let decided = who.decide(&asked[0], json!({"decision": decision})).await;
            decided.problem(403, "forbidden");
        }
        who.post(&format!("/api/jobs/{run}/signal"), &signal).await.problem(403, "forbidden");
    }
    agent.get("/api/permissions").await.problem(403, "forbidden");
    agent.get("/api/rules").await.problem(403, "forbidden");
    let kinds = house.server.operator().kinds(&run).await;
    assert_eq!(kinds.last().unwrap(), "batch.proposed");
    let approver =
        house.server.holder(json!({"kind": "service", "name": "door", "approve": true})).await;
    assert_eq!(approver.grant(&asked[0]).await.status, 200);
    ci.until(&run, "completed").await;
    house.close().await;
}

async fn own_requests_may_be_for_others_to_answer(on: On) {
    let house = House::with(on, |config| permissions(config, json!({"own_requests": false}))).await;
    let lin = house.lin().await;
    let ci = house.server.holder(json!({"kind": "service", "name": "ci", "approve": true})).await;
    let operator = house.server.operator();
    for who in [&lin, &ci, &operator] {
        let (run, asked) = who.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
        who.grant(&asked[0]).await.problem(403, "forbidden");
        let signal = json!({"correlation_key": asked[0]["correlation_key"]});
        who.post(&format!("/api/runs/{run}/signal"), &signal).await.problem(403, "forbidden");
        let boss =
            house.server.holder(json!({"kind": "human", "name": "boss", "operator": true})).await;
        assert_eq!(boss.grant(&asked[0]).await.status, 200);
        who.until(&run, "completed").await;
    }
    house.close().await;
}

async fn whoever_had_a_hand_in_asking_does_not_answer_where_others_must(on: On) {
    let house = House::with(on, |config| permissions(config, json!({"own_requests": false}))).await;
    let operator = house.server.operator();
    let boss =
        house.server.holder(json!({"kind": "human", "name": "boss", "operator": true})).await;
    let batch = json!([[["pay", {"to": "a"}]]]).to_string();
    // The run is lin's; the operator started it, and the boss will speak into it.
    let body = json!({"agent": "pa", "input": batch, "user": "lin"});
    let run = crate::harness::id(&operator.post("/api/runs", &body).await.json());
    operator.until(&run, "waiting").await;
    let asked = operator.asked(&run).await;
    let signal = json!({"correlation_key": asked[0]["correlation_key"]});
    let path = format!("/api/runs/{run}/signal");
    operator.grant(&asked[0]).await.problem(403, "forbidden");
    operator.deny(&asked[0]).await.problem(403, "forbidden");
    operator.post(&path, &signal).await.problem(403, "forbidden");
    let said = boss.post(&format!("/api/runs/{run}/messages"), &json!({"text": "hurry"})).await;
    assert_eq!(said.status, 200, "{said:?}");
    boss.grant(&asked[0]).await.problem(403, "forbidden");
    house.lin().await.grant(&asked[0]).await.problem(403, "forbidden");
    assert_eq!(house.ledger(), [""; 0]);
    let other =
        house.server.holder(json!({"kind": "human", "name": "other", "operator": true})).await;
    assert_eq!(other.post(&path, &signal).await.status, 200);
    operator.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay a"]);
    house.close().await;
}

async fn who_answers_through_the_signal_door_is_not_shown_the_run(on: On) {
    let house = House::open(on).await;
    house.change("users: {boss: {approver: true}}\n", "").await;
    let (lin, boss) = (house.lin().await, house.server.human("boss").await);
    let door =
        house.server.holder(json!({"kind": "service", "name": "door", "approve": true})).await;
    for who in [&boss, &door] {
        let batch = json!([[["note", {"to": "a secret"}], ["pay", {"to": "a"}]]]);
        let (run, asked) = lin.asking("pa", batch).await;
        for path in ["", "/events", "/tree"] {
            who.get(&format!("/api/runs/{run}{path}")).await.problem(404, "not_found");
        }
        assert_eq!(who.get("/api/runs").await.json()["items"], json!([]));
        let signal = json!({"correlation_key": asked[0]["correlation_key"]});
        // Twice: the second time the run may have ended.
        for _ in 0..2 {
            let told = who.post(&format!("/api/jobs/{run}/signal"), &signal).await;
            assert_eq!(told.status, 200, "{told:?}");
            let shown = told.json();
            let mut names: Vec<&String> = shown.as_object().unwrap().keys().collect();
            names.sort();
            assert_eq!(names, ["id", "status", "waiting_for"]);
            assert_eq!(shown["id"], json!(run));
            lin.until(&run, "completed").await;
        }
        // To its owner the same door says all.
        let told = lin.post(&format!("/api/jobs/{run}/signal"), &signal).await.json();
        assert_eq!((&told["status"], &told["user"]), (&json!("completed"), &json!("lin")));
    }
    house.close().await;
}

async fn edited_arguments_are_ruled_on_and_are_what_runs(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let edit = async |arguments: Value| {
        lin.decide(&asked[0], json!({"decision": "grant", "arguments": arguments})).await
    };
    for bad in [json!({}), json!({"to": 7}), json!({"to": "b", "also": 1})] {
        let refused = edit(bad).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        let said = refused.json();
        assert_eq!(said["code"], "PERMISSION_DENIED");
        let reason = &said["reasons"][0];
        assert_eq!(
            (&reason["layer"], &reason["rule"]),
            (&json!("tool"), &json!("INVALID_ARGUMENTS"))
        );
    }
    for odd in [json!("b"), json!([]), json!(1)] {
        edit(odd).await.problem(400, "bad_request");
    }
    let denied = json!({"decision": "deny", "arguments": {"to": "b"}});
    lin.decide(&asked[0], denied).await.problem(400, "bad_request");
    // Nothing was recorded by any of these.
    assert_eq!(lin.kinds(&run).await.last().unwrap(), "batch.proposed");
    let edited = edit(json!({"to": "b"})).await;
    assert_eq!(edited.status, 200, "{edited:?}");
    assert_eq!(edited.json()["decided_arguments"], json!({"to": "b"}));
    assert_eq!(edited.json()["arguments"], json!({"to": "a"}));
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay b"]);
    // The model, which reads its own call, is told that it was another that ran.
    let read = house.model.requests().last().unwrap().body["messages"].to_string();
    assert!(read.contains(r"`pay` was withdrawn"), "{read}");
    assert!(read.contains(r#"with the arguments {\"to\":\"b\"}"#), "{read}");
    assert_eq!(edit(json!({"to": "b"})).await.status, 200);
    edit(json!({"to": "c"})).await.problem(409, "already_decided");
    lin.grant(&asked[0]).await.problem(409, "already_decided");
    house.close().await;
}

async fn a_decision_is_remembered_for_as_much_as_was_said(on: On) {
    let house = House::open(on).await;
    let (lin, mei) = (house.lin().await, house.server.human("mei").await);
    let twice = json!([[["pay", {"to": "a"}]], [["pay", {"to": "b"}]]]);
    let once = json!([[["pay", {"to": "c"}]]]);
    let asks = async |who: &crate::harness::Caller, agent: &str, batch: &Value| -> bool {
        let run = who.script(agent, batch.clone()).await;
        let began = std::time::Instant::now();
        loop {
            let status = who.get(&format!("/api/runs/{run}")).await.json()["status"].clone();
            match status.as_str().unwrap() {
                "waiting" => {
                    who.post(&format!("/api/runs/{run}/cancel"), &json!({})).await;
                    return true;
                }
                "completed" => return false,
                _ => assert!(began.elapsed() < Duration::from_secs(20)),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // Once: the second call is asked about too.
    let (run, asked) = lin.asking("pa", twice.clone()).await;
    lin.decide(&asked[0], json!({"decision": "grant", "remember": "once"})).await;
    lin.permission_until(&asked[0], "granted").await;
    lin.until(&run, "waiting").await;
    lin.post(&format!("/api/runs/{run}/cancel"), &json!({})).await;
    assert_eq!(lin.get("/api/rules").await.json()["items"], json!([]));
    // For this run: the second call runs by the rule; the next run asks.
    let (run, asked) = lin.asking("pa", twice.clone()).await;
    lin.decide(&asked[0], json!({"decision": "grant", "remember": "run"})).await;
    lin.until(&run, "completed").await;
    assert!(asks(&lin, "pa", &once).await);
    // For this agent, not another, and not for another's.
    let (run, asked) = lin.asking("pa", once.clone()).await;
    let agent = json!({"decision": "grant", "remember": {"scope": "agent", "expires_after": "1h"}});
    assert_eq!(lin.decide(&asked[0], agent).await.status, 200);
    lin.until(&run, "completed").await;
    assert!(!asks(&lin, "pa", &once).await);
    assert!(asks(&lin, "patterns", &once).await);
    assert!(asks(&mei, "pa", &once).await);
    // Another tool of the same program is another matter.
    assert!(asks(&lin, "pa", &json!([[["deploy", {"to": "x"}]]])).await);
    // Always: for every agent of this person's, until it is taken back.
    let (run, asked) = lin.asking("patterns", once.clone()).await;
    lin.decide(&asked[0], json!({"decision": "grant", "remember": "always"})).await;
    lin.until(&run, "completed").await;
    assert!(!asks(&lin, "narrow", &once).await);
    assert!(asks(&mei, "narrow", &once).await);
    let rules = lin.get("/api/rules").await.json();
    let scopes: Vec<&Value> =
        rules["items"].as_array().unwrap().iter().map(|it| &it["scope"]).collect();
    assert_eq!(scopes, ["always", "agent", "run"]);
    let rule = &rules["items"][0];
    let made = (&rule["tool"], &rule["signature"], &rule["made_by"], &rule["permission_id"]);
    assert_eq!(made, (&json!("pay"), &json!("sh"), &json!("lin"), &asked[0]["id"]));
    let id = rule["id"].as_str().unwrap();
    assert_eq!(mei.get("/api/rules").await.json()["items"], json!([]));
    let revoke = async |who: &crate::harness::Caller| {
        crate::harness::answer(who.request(reqwest::Method::DELETE, &format!("/api/rules/{id}")))
            .await
    };
    revoke(&mei).await.problem(404, "not_found");
    assert!(!asks(&lin, "narrow", &once).await);
    assert_eq!(revoke(&lin).await.status, 200);
    assert!(asks(&lin, "narrow", &once).await);
    // The agent's rule is still there; a short one is not for long.
    assert!(!asks(&lin, "pa", &once).await);
    let (run, asked) = lin.asking("narrow", once.clone()).await;
    let brief =
        json!({"decision": "grant", "remember": {"scope": "always", "expires_after": "1ms"}});
    lin.decide(&asked[0], brief).await;
    lin.until(&run, "completed").await;
    assert!(asks(&lin, "narrow", &once).await);
    // Nor is more remembered than what was asked, nor a denial.
    let (_, asked) = lin.asking("narrow", once.clone()).await;
    for (body, status) in [
        (json!({"decision": "deny", "remember": "always"}), 400),
        (json!({"decision": "grant", "remember": "always", "arguments": {"to": "z"}}), 400),
        (json!({"decision": "grant", "remember": "forever"}), 400),
        (json!({"decision": "grant", "remember": {"scope": "run", "expires_after": "soon"}}), 400),
        (json!({"decision": "grant", "remember": {"scope": "run", "for": "1h"}}), 400),
    ] {
        let refused = lin.decide(&asked[0], body.clone()).await;
        assert_eq!(refused.status, status, "{body}: {refused:?}");
    }
    house.close().await;
}

async fn what_nobody_answers_in_time_expires(on: On) {
    let house =
        House::with(on, |config| permissions(config, json!({"expire_after": "300ms"}))).await;
    let lin = house.lin().await;
    let run = lin.script("pa", json!([[["pay", {"to": "a"}], ["note", {"to": "b"}]]])).await;
    lin.until(&run, "completed").await;
    let asked = lin.get(&format!("/api/permissions?run={run}")).await.json()["items"].clone();
    let expired = lin.permission_until(&asked[0], "expired").await;
    assert_eq!(expired["decided_by"], "system");
    assert_eq!(house.ledger(), ["note b"]);
    assert!(house.results()[0].contains("in time"), "{:?}", house.results());
    for decision in ["grant", "deny"] {
        let late = lin.decide(&asked[0], json!({"decision": decision})).await;
        late.problem(409, "already_decided");
    }
    house.close().await;
}

async fn what_nobody_answers_is_put_to_others_first(on: On) {
    let said = json!({"expire_after": "2s", "on_expiry": "escalate"});
    let house = House::with(on, |config| permissions(config, said)).await;
    let lin = house.lin().await;
    let (run, asked) =
        lin.asking("pa", json!([[["pay", {"to": "a"}]], [["pay", {"to": "b"}]]])).await;
    let path = format!("/api/permissions/{}", asked[0]["id"].as_str().unwrap());
    let escalated = loop {
        let shown = lin.get(&path).await.json();
        if shown["escalated_at"].is_string() {
            break shown;
        }
        assert_eq!(shown["status"], "pending");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    // It stands still, for as long again, and can be answered.
    assert_eq!(escalated["status"], "pending");
    let time = |it: &Value| it.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(time(&escalated["expires_at"]) > time(&asked[0]["expires_at"]));
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    // The next one nobody answers at all.
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay a"]);
    let kinds = lin.kinds(&run).await;
    assert_eq!(kinds.iter().filter(|it| *it == "permission.escalated").count(), 2, "{kinds:?}");
    house.close().await;
}

async fn a_request_may_wait_for_as_long_as_it_takes(on: On) {
    let said = json!({"expire_after": "1ms", "on_expiry": "wait"});
    let house = House::with(on, |config| permissions(config, said)).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    assert_eq!(asked[0]["expires_at"], Value::Null);
    let house = house.restart().await;
    let lin = house.lin().await;
    lin.permission_until(&asked[0], "pending").await;
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    house.close().await;
}

async fn what_cannot_be_meant_decides_nothing(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let id = asked[0]["id"].as_str().unwrap();
    let path = format!("/api/permissions/{id}/decision");
    let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
    let deeper = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    for body in [
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "{}".to_owned(),
        r#"["grant"]"#.to_owned(),
        r#"{"decision": "Grant"}"#.to_owned(),
        r#"{"decision": "allow"}"#.to_owned(),
        r#"{"decision": true}"#.to_owned(),
        r#"{"decision": "grant", "decision": "deny"}"#.to_owned(),
        r#"{"decision": "grant", "by": "boss"}"#.to_owned(),
        r#"{"decision": "grant", "comment": ""}"#.to_owned(),
        r#"{"decision": "grant", "comment": "a\u0000b"}"#.to_owned(),
        r#"{"decision": "grant", "comment": 7}"#.to_owned(),
        format!(r#"{{"decision": "grant", "comment": "{}"}}"#, "x".repeat(4001)),
        r#"{"decision": "grant", "result": "done"}"#.to_owned(),
        r#"{"decision": "grant", "remember": 1}"#.to_owned(),
        r#"{"decision": "grant", "remember": {}}"#.to_owned(),
        format!(r#"{{"decision": "grant", "arguments": {deep}}}"#),
        format!(r#"{{"decision": "grant", "arguments": {deeper}}}"#),
    ] {
        let refused = lin.post_raw(&path, body.clone()).await;
        refused.problem(400, "bad_request");
    }
    let large = format!(r#"{{"decision": "grant", "comment": "{}"}}"#, "x".repeat(5 << 20));
    lin.post_raw(&path, large).await.problem(413, "too_large");
    let hex = &id["perm_".len()..];
    for other in [
        format!("run_{hex}"),
        format!("perm_{}", hex.to_uppercase().replace(|it: char| it.is_ascii_digit(), "A")),
        format!("perm_{}", "0".repeat(32)),
        "perm_".to_owned(),
        run.clone(),
        "%00".to_owned(),
        "..".to_owned(),
    ] {
        let decided = lin
            .post(&format!("/api/permissions/{other}/decision"), &json!({"decision": "grant"}))
            .await;
        decided.problem(404, "not_found");
        if other != ".." {
            lin.get(&format!("/api/permissions/{other}")).await.problem(404, "not_found");
        }
    }
    for query in ["status=open", "run=perm_1", "cursor=7", "limit=-1", "user=mei"] {
        lin.get(&format!("/api/permissions?{query}")).await.problem(400, "bad_request");
    }
    assert_eq!(lin.kinds(&run).await.last().unwrap(), "batch.proposed");
    assert_eq!(house.ledger(), [""; 0]);
    house.close().await;
}

async fn arguments_of_a_megabyte_and_of_great_depth_are_asked_about_as_any_other(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    // The schema of `deploy` lets more through than it names.
    let deep = (0..90).fold(json!(1), |inner, _| json!({"a": inner}));
    let too_deep = format!(r#"{{"to": "d", "x": {}1{}}}"#, "[".repeat(110), "]".repeat(110));
    let batch = json!([[
        ["deploy", {"to": "a", "x": "y".repeat(1 << 20)}],
        ["deploy", {"to": "b", "x": deep}],
        ["deploy", too_deep],
        ["deploy", "{\"to\": \"e\""],
    ]]);
    let (run, asked) = lin.asking("pa", batch).await;
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0]["arguments"]["x"].as_str().unwrap().len(), 1 << 20);
    for it in &asked {
        assert_eq!(lin.grant(it).await.status, 200);
    }
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["deploy a", "deploy b"]);
    let results = house.results();
    assert!(
        results[2].contains("INVALID_ARGUMENTS") && results[2].contains("deep"),
        "{}",
        results[2]
    );
    assert!(results[3].contains("INVALID_ARGUMENTS"), "{}", results[3]);
    house.close().await;
}
