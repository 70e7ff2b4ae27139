//! What a run may use up and how often an agent may call, as the policy says it.

use serde_json::{Value, json};

use crate::house::{House, On, on_both};

on_both! {
    an_agent_calls_a_tool_no_more_often_than_its_rate_says;
    what_was_granted_still_waits_for_its_turn;
    a_run_that_has_used_up_its_steps_calls_nothing_more_and_ends;
    a_run_that_has_used_up_its_tokens_calls_nothing_more;
    limits_that_cannot_be_meant_are_refused;
}

const REFUSED: &str = "layer `limits`";

async fn an_agent_calls_a_tool_no_more_often_than_its_rate_says(on: On) {
    let house = House::open(on).await;
    // A share comes back after half a minute.
    house.change("", "limits: {calls_per_minute: {note: 2, \"*\": 600}}\n").await;
    let lin = house.lin().await;
    let notes = |names: &[&str]| -> Value {
        let calls: Vec<Value> = names.iter().map(|it| json!(["note", {"to": it}])).collect();
        json!([calls])
    };
    let run = lin.script("pa", notes(&["a"])).await;
    lin.until(&run, "completed").await;
    // It is counted for all servers and over restarts.
    let house = house.restart().await;
    let lin = house.lin().await;
    let run = lin.script("pa", notes(&["b", "c", "d"])).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a", "note b"]);
    let results = house.results();
    assert!(results[0].contains("noted b"), "{results:?}");
    for refused in &results[1..] {
        let words = ["PERMISSION_DENIED", REFUSED, "limits.calls_per_minute.note (policy.yaml:"];
        assert!(words.iter().all(|it| refused.contains(it)), "{refused}");
    }
    // Who asks beforehand is told the same; and asking takes no turn.
    let ask = json!({"agent": "pa", "tool": "note", "arguments": {"to": "x"}});
    let said = lin.post("/api/authorize", &ask).await.json();
    let first = (&said["ruling"], &said["reasons"][0]["layer"]);
    assert_eq!(first, (&json!("deny"), &json!("limits")), "{said}");
    let other = json!({"agent": "narrow", "tool": "note", "arguments": {"to": "x"}});
    for _ in 0..5 {
        assert_eq!(lin.post("/api/authorize", &other).await.json()["ruling"], "allow");
    }
    // Another agent has turns of its own, and another tool too.
    let run = lin.script("narrow", notes(&["e"])).await;
    lin.until(&run, "completed").await;
    let run = lin.script("payer", json!([[["pay", {"to": "f"}]]])).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger()[2..], ["note e", "pay f"]);
    house.close().await;
}

async fn what_was_granted_still_waits_for_its_turn(on: On) {
    let house = House::open(on).await;
    house.change("", "limits: {calls_per_minute: {pay: 1}}\n").await;
    let lin = house.lin().await;
    let pay = |to: &str| json!([[["pay", {"to": to}]]]);
    let (one, asked) = lin.asking("pa", pay("a")).await;
    let (two, also) = lin.asking("pa", pay("b")).await;
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&one, "completed").await;
    assert_eq!(lin.grant(&also[0]).await.status, 200);
    lin.until(&two, "completed").await;
    assert_eq!(house.ledger(), ["pay a"]);
    assert!(house.results()[0].contains(REFUSED), "{:?}", house.results());
    house.close().await;
}

async fn a_run_that_has_used_up_its_steps_calls_nothing_more_and_ends(on: On) {
    let house = House::open(on).await;
    house.change("", "limits: {run_steps: 2}\n").await;
    let lin = house.lin().await;
    let step = |to: &str| json!([["note", {"to": to}]]);
    // It hears that it may not, and speaks: that is an answer.
    let run = lin.script("pa", json!([step("a"), step("b"), step("c")])).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a", "note b"]);
    let results = house.results();
    assert!(results[2].contains("limits.run_steps") && results[2].contains(REFUSED), "{results:?}");
    // It hears that it may not, and goes on: that is no way to spend.
    let steps: Vec<Value> = (0..50).map(|it| step(&it.to_string())).collect();
    let before = house.model.requests().len();
    let run = lin.script("pa", json!(steps)).await;
    let ended = lin.until(&run, "failed").await;
    assert!(ended["error"].as_str().unwrap().contains("limits.run_steps"), "{ended}");
    assert_eq!(house.model.requests().len() - before, 4);
    assert_eq!(house.ledger()[2..], ["note 0", "note 1"]);
    house.close().await;
}

async fn a_run_that_has_used_up_its_tokens_calls_nothing_more(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["note", {"to": "a"}]], [["note", {"to": "b"}]]]);
    let run = lin.script("pa", batch.clone()).await;
    let usage = lin.until(&run, "completed").await["usage"].clone();
    let tokens =
        |it: &Value| it["input_tokens"].as_u64().unwrap() + it["output_tokens"].as_u64().unwrap();
    // Three answers: with what one of them costs, the first call is made and the second is not.
    let one = tokens(&usage).div_ceil(3);
    assert!(one > 0);
    house.change("", &format!("limits: {{run_tokens: {one}}}\n")).await;
    let run = lin.script("pa", batch).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a", "note b", "note a"]);
    let results = house.results();
    assert!(
        results[1].contains("limits.run_tokens") && results[1].contains(REFUSED),
        "{results:?}"
    );
    house.close().await;
}

async fn limits_that_cannot_be_meant_are_refused(on: On) {
    let house = House::open(on).await;
    let operator = house.server.operator();
    for (limits, code) in [
        ("limits: {run_tokens: -1}", "E104"),
        ("limits: {run_steps: many}", "E104"),
        ("limits: {run_steps: 1.5}", "E104"),
        ("limits: {run_tokens: 99999999999}", "E104"),
        ("limits: {calls: 1}", "E105"),
        ("limits: {calls_per_minute: 3}", "E104"),
        ("limits: {calls_per_minute: {note: }}", "E104"),
        ("limits: 7", "E104"),
    ] {
        let body = json!({"files": {"policy.yaml": limits}});
        let request = operator.request(reqwest::Method::PUT, "/api/org?check=true");
        let refused = crate::harness::answer(request.json(&body)).await;
        assert_eq!(refused.status, 422, "{limits}: {refused:?}");
        let said = refused.json();
        let mut mistakes = said["mistakes"].as_array().unwrap().iter();
        let mistake = mistakes.find(|it| it["severity"] == "error").unwrap();
        assert_eq!((&mistake["file"], &mistake["code"]), (&json!("policy.yaml"), &json!(code)));
    }
    let body = json!({"files": {"policy.yaml": "extends: builtin\nlimits: {calls_per_minute: {nota: 3}, run_steps: 9}"}});
    let request = operator.request(reqwest::Method::PUT, "/api/org?check=true");
    let checked = crate::harness::answer(request.json(&body)).await.json();
    let text = checked.to_string();
    assert!(
        text.contains("W102") && text.contains("limits.run_steps becomes 9 (was no limit)"),
        "{text}"
    );
    house.close().await;
}
