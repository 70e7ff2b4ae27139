//! A run that goes on from another one's log: what had ended there is not done again, and nothing
//! that was granted there, or given beyond it, counts.

use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::{Answer, Caller, id};
use crate::house::{House, On, on_both};

on_both! {
    a_fork_goes_on_from_a_point_and_runs_no_finished_call_again;
    a_fork_may_begin_with_something_new;
    what_was_granted_in_the_other_run_is_asked_about_anew;
    a_fork_is_given_no_more_than_the_other_run_was;
    only_whose_run_it_is_goes_on_from_it;
    what_cannot_be_meant_forks_nothing;
    whoever_had_a_hand_in_the_other_run_has_one_in_the_fork;
    a_fork_is_made_and_told_of_in_the_console;
}

async fn fork(who: &Caller, run: &str, body: Value) -> Answer {
    who.post(&format!("/api/runs/{run}/fork"), &body).await
}

async fn forked(who: &Caller, run: &str, body: Value) -> Value {
    let made = fork(who, run, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()
}

/// Where the events of a kind stand in a run's log.
async fn places(who: &Caller, run: &str, kind: &str) -> Vec<usize> {
    let kinds = who.kinds(run).await;
    (1..).zip(kinds).filter(|(_, it)| it == kind).map(|(seq, _)| seq).collect()
}

/// The messages that the model was last shown, without its instructions.
fn read(house: &House) -> Vec<Value> {
    let body = house.model.requests().last().unwrap().body.clone();
    let messages = body["messages"].as_array().unwrap().clone();
    messages.into_iter().filter(|it| it["role"] != "system").collect()
}

/// The last line of every result that the model was shown in a request.
fn results(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap();
    let tools = messages.iter().filter(|it| it["role"] == "tool");
    let last = |it: &Value| it["content"].as_str().unwrap().lines().last().unwrap().to_owned();
    tools.map(last).collect()
}

/// The same of the last one.
fn last_results(house: &House) -> Vec<String> {
    results(&house.model.requests().last().unwrap().body)
}

fn call(tool: &str, id: &str) -> Value {
    json!({"tool_call_id": id, "tool": tool})
}

fn dropped(tool: &str, id: &str, ran: bool, asked: bool) -> Value {
    json!({"tool_call_id": id, "tool": tool, "ran": ran, "asked": asked})
}

async fn a_fork_goes_on_from_a_point_and_runs_no_finished_call_again(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "a"}]], [["note", {"to": "b"}]]]);
    let run = lin.script("pa", script.clone()).await;
    lin.until(&run, "completed").await;
    let closed = places(&lin, &run, "batch.closed").await;
    // From amid the second batch it is back to where the first was done.
    let amid = *places(&lin, &run, "tool.started").await.last().unwrap();
    assert!(closed[0] < amid && amid < closed[1]);
    for at in [closed[0], amid] {
        let before = house.model.requests().len();
        let made = forked(&lin, &run, json!({"at": at})).await;
        assert_eq!(made["forked_from"], json!({"run_id": run, "at": closed[0]}));
        assert_eq!(made["carried"], json!([call("note", "b0_1")]));
        assert_eq!(made["dropped"], json!([dropped("note", "b1_1", true, false)]));
        assert_eq!(made["input"], script.to_string());
        let ended = lin.until(&id(&made), "completed").await;
        assert_eq!(ended["forked_from"], made["forked_from"]);
        assert_eq!(last_results(&house), ["noted a", "noted b"]);
        // Its model was asked next from there: for the second batch, and for its last word.
        let asked = house.model.requests().split_off(before);
        let asked: Vec<_> = asked.iter().map(|it| results(&it.body)).collect();
        assert_eq!(asked, [vec!["noted a"], vec!["noted a", "noted b"]]);
    }
    assert_eq!(house.ledger(), ["note a", "note b", "note b", "note b"]);
    // From the end only the last word is asked for anew.
    let made = forked(&lin, &run, json!({})).await;
    assert_eq!((&made["carried"].as_array().unwrap().len(), &made["dropped"]), (&2, &json!([])));
    lin.until(&id(&made), "completed").await;
    assert_eq!(lin.kinds(&id(&made)).await, ["run.created", "run.started", "run.completed"]);
    assert_eq!(house.ledger().len(), 4);
    // And from one that goes on itself, with all that it has read.
    let again = forked(&lin, &id(&made), json!({"at": 1})).await;
    assert_eq!(again["carried"], json!([call("note", "b0_1"), call("note", "b1_1")]));
    lin.until(&id(&again), "completed").await;
    assert_eq!(last_results(&house), ["noted a", "noted b"]);
    assert_eq!(house.ledger().len(), 4);
    // The same request twice is one run.
    let path = format!("/api/runs/{run}/fork");
    let keyed = || async {
        let request = lin.request(reqwest::Method::POST, &path).header("idempotency-key", "k");
        crate::harness::answer(request.json(&json!({"at": 1}))).await
    };
    let (first, second) = (keyed().await.json(), keyed().await.json());
    assert_eq!((&first["id"], &first["dropped"]), (&second["id"], &second["dropped"]));
    house.close().await;
}

async fn a_fork_may_begin_with_something_new(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let run = lin.script("pa", json!([[["note", {"to": "a"}]]])).await;
    lin.until(&run, "completed").await;
    let made = forked(&lin, &run, json!({"input": "and now?"})).await;
    assert_eq!(made["input"], "and now?");
    let ended = lin.until(&id(&made), "completed").await;
    assert_eq!(ended["output"], "done and now?");
    let roles: Vec<Value> = read(&house).iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(house.ledger(), ["note a"]);
    house.close().await;
}

async fn what_was_granted_in_the_other_run_is_asked_about_anew(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "a"}]], [["pay", {"to": "b"}]]]);
    let (run, asked) = lin.asking("pa", script).await;
    // While it is asked about, too, a fork stands before the question.
    let early = forked(&lin, &run, json!({})).await;
    assert_eq!(early["dropped"], json!([dropped("pay", "b1_1", false, true)]));
    let grant = json!({"decision": "grant", "remember": {"scope": "run", "expires_after": "1d"}});
    assert_eq!(lin.decide(&asked[0], grant).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a", "pay b"]);
    let at = places(&lin, &run, "batch.closed").await[0];
    let late = forked(&lin, &run, json!({"at": at})).await;
    assert_eq!(late["dropped"], json!([dropped("pay", "b1_1", true, true)]));
    for made in [early, late] {
        let waiting = lin.until(&id(&made), "waiting").await;
        assert_eq!(waiting["waiting_for"], "permission");
        let anew = lin.asked(&id(&made)).await;
        assert_ne!(anew[0]["id"], asked[0]["id"]);
        // An answer to the other run's question is none to this one's.
        let signal = json!({"correlation_key": asked[0]["correlation_key"]});
        let path = format!("/api/runs/{}/signal", id(&made));
        lin.post(&path, &signal).await.problem(404, "not_found");
    }
    assert_eq!(house.ledger(), ["note a", "pay b"]);
    house.close().await;
}

async fn a_fork_is_given_no_more_than_the_other_run_was(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "a"}]], [["deploy", {"to": "b"}]]]).to_string();
    let given = json!({"allowed_tools": ["note"], "denied_tools": ["pay"]});
    let body = json!({"agent": "pa", "input": script, "delegated_permissions": given});
    let run = id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "completed").await;
    for wider in [
        json!({"delegated_permissions": {"allowed_tools": ["deploy"]}}),
        json!({"delegated_permissions": null}),
        json!({"agent": "payer"}),
        json!({"user": "mei"}),
        json!({"forked": {}}),
    ] {
        fork(&lin, &run, wider).await.problem(400, "bad_request");
    }
    for at in [1, places(&lin, &run, "batch.closed").await[0]] {
        let made = forked(&lin, &run, json!({"at": at})).await;
        assert_eq!(made["delegated_permissions"], given);
        lin.until(&id(&made), "completed").await;
        assert!(house.results()[1].contains("PERMISSION_DENIED"), "{:?}", house.results());
        let offered = house.model.requests().last().unwrap().body["tools"].clone();
        let offered: Vec<&Value> =
            offered.as_array().unwrap().iter().map(|it| &it["function"]["name"]).collect();
        assert_eq!(offered, ["note"]);
    }
    assert_eq!(house.ledger(), ["note a", "note a"]);
    house.close().await;
}

async fn only_whose_run_it_is_goes_on_from_it(on: On) {
    let house = House::open(on).await;
    let (lin, mei) = (house.lin().await, house.server.human("mei").await);
    let run = lin.script("payer", json!([])).await;
    lin.until(&run, "completed").await;
    fork(&mei, &run, json!({})).await.problem(404, "not_found");
    fork(&house.server.nobody(), &run, json!({})).await.problem(401, "unauthenticated");
    let agent = house.server.holder(json!({"kind": "agent", "name": "pa"})).await;
    fork(&agent, &run, json!({})).await.problem(403, "forbidden");
    // An operator acts for whoever's it is, and not as another.
    let made = forked(&house.server.operator(), &run, json!({})).await;
    assert_eq!((&made["user"], &made["agent"]), (&json!("lin"), &json!("payer")));
    lin.until(&id(&made), "completed").await;
    // Who is not at work any more is not gone on with.
    house.dismiss("payer").await;
    fork(&lin, &run, json!({})).await.problem(400, "unknown_agent");
    house.close().await;
}

async fn what_cannot_be_meant_forks_nothing(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let run = lin.script("pa", json!([])).await;
    lin.until(&run, "completed").await;
    let end = lin.kinds(&run).await.len();
    for odd in [
        json!({"at": 0}),
        json!({"at": -1}),
        json!({"at": 1.5}),
        json!({"at": "1"}),
        json!({"at": 1u64 << 63}),
        json!({"input": " "}),
        json!({"input": "a\u{0}"}),
        json!({"from": 1}),
        json!([]),
    ] {
        fork(&lin, &run, odd).await.problem(400, "bad_request");
    }
    for beyond in [end as u64 + 1, i64::MAX as u64] {
        fork(&lin, &run, json!({"at": beyond})).await.problem(422, "no_such_place");
    }
    fork(&lin, &format!("run_{}", "0".repeat(32)), json!({})).await.problem(404, "not_found");
    let group = json!({"group": "grp_talk", "input": "{}"});
    let group = id(&lin.post("/api/runs", &group).await.json());
    fork(&lin, &group, json!({})).await.problem(422, "not_forkable");
    assert_eq!(lin.get("/api/runs").await.json()["items"].as_array().unwrap().len(), 2);
    house.close().await;
}

async fn whoever_had_a_hand_in_the_other_run_has_one_in_the_fork(on: On) {
    let alone = json!({"own_requests": false});
    let house =
        House::with(on, |config| config.permissions = serde_json::from_value(alone).unwrap()).await;
    let lin = house.lin().await;
    let boss =
        house.server.holder(json!({"kind": "human", "name": "boss", "operator": true})).await;
    let wait = json!([["wait_for_signal", {"correlation_key": "go"}]]);
    let spoken = lin.script("pa", json!([wait, [["pay", {"to": "b"}]]])).await;
    lin.until(&spoken, "waiting").await;
    let said = boss.post(&format!("/api/runs/{spoken}/messages"), &json!({"text": "pay"})).await;
    assert_eq!(said.status, 200, "{said:?}");
    let signal = json!({"correlation_key": "go"});
    assert_eq!(lin.post(&format!("/api/runs/{spoken}/signal"), &signal).await.status, 200);
    lin.asked_anew(&spoken).await;
    let heard = forked(&lin, &spoken, json!({})).await;
    let asked = lin.asked_anew(&id(&heard)).await;
    boss.grant(&asked[0]).await.problem(403, "forbidden");
    let unheard = forked(&lin, &spoken, json!({"at": 1})).await;
    lin.until(&id(&unheard), "waiting").await;
    lin.post(&format!("/api/runs/{}/signal", id(&unheard)), &signal).await;
    let asked = lin.asked_anew(&id(&unheard)).await;
    assert_eq!(boss.grant(&asked[0]).await.status, 200);
    lin.until(&id(&unheard), "completed").await;
    assert_eq!(house.ledger(), ["pay b"]);
    house.close().await;
}

async fn a_fork_is_made_and_told_of_in_the_console(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, _) =
        lin.asking("pa", json!([[["note", {"to": "a"}]], [["pay", {"to": "<b>"}]]])).await;
    let browser = Browser::of(&house.server, "lin").await;
    let (page, action) = (format!("/runs/{run}"), format!("/runs/{run}/fork"));
    assert_eq!(browser.post(&action, &[]).await.status, 403);
    assert_eq!(browser.fill(&page, &action, &[("csrf", "made up")]).await.status, 403);
    assert_eq!(browser.fill(&page, &action, &[("at", "x")]).await.status, 400);
    assert_eq!(browser.fill(&page, &action, &[("at", "99")]).await.status, 422);
    let mei = Browser::of(&house.server, "mei").await;
    let mark = mei.mark("/inbox").await;
    assert_eq!(mei.post(&action, &[("csrf", &mark)]).await.status, 404);
    let at = places(&lin, &run, "batch.closed").await[0].to_string();
    let shown = browser.get(&page).await.text;
    assert!(shown.contains(&format!("<option value=\"{at}\">event {at}, after note</option>")));
    let made = browser.fill(&page, &action, &[("at", &at), ("input", "")]).await;
    assert_eq!(made.status, 303, "{made:?}");
    let there = made.header("location").to_owned();
    let new = there.strip_prefix("/runs/").unwrap().to_owned();
    assert_eq!(
        lin.get(&format!("/api/runs/{new}")).await.json()["forked_from"],
        json!({"run_id": run, "at": at.parse::<u64>().unwrap()})
    );
    lin.until(&new, "waiting").await;
    let told = browser.get(&there).await.text;
    let link = format!("forked from <a href=\"/runs/{run}\"><code>{run}</code></a> at {at}");
    assert!(told.contains(&link), "{told}");
    for words in [
        "Carried over, and not made again: <span class=\"tool\">note</span>.",
        "<span class=\"tool\">pay</span> (was asked about there).",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let chinese = browser.request(reqwest::Method::GET, &there).header("accept-language", "zh");
    let chinese = crate::harness::answer(chinese).await.text;
    assert!(chinese.contains("分叉自") && chinese.contains("已沿用"), "{chinese}");
    assert_eq!(house.ledger(), ["note a"]);
    house.close().await;
}
