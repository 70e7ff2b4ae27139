//! What the agent is asked before anybody decides: it says something, and nothing moves.

use chancery_testkit::fake_model::{Answer as Said, Behaviour};
use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::{Answer, Caller};
use crate::house::{House, On, on_both};

on_both! {
    an_agent_explains_while_its_batch_waits_and_nothing_moves;
    what_is_not_explained_can_be_asked_again_and_not_for_ever;
    who_may_decide_or_speak_may_ask_and_nobody_else;
    to_ask_about_a_question_is_no_hand_in_it_but_in_what_follows;
    an_explanation_is_pinned_to_the_card_as_the_agents_words;
}

async fn ask(who: &Caller, asked: &Value, text: &str) -> Answer {
    let path = format!("/api/permissions/{}/ask", asked["id"].as_str().unwrap());
    who.post(&path, &json!({"text": text})).await
}

fn says(house: &House, text: &str) {
    house.model.will(Behaviour::Stream(Said::text(text)));
}

async fn an_agent_explains_while_its_batch_waits_and_nothing_moves(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "x"}]], [["note", {"to": "a"}], ["pay", {"to": "b"}]]]);
    let (run, asked) = lin.asking("pa", script).await;
    let before = lin.get(&format!("/api/runs/{run}")).await.json();
    says(&house, "It is the rent.");
    let told = ask(&lin, &asked[0], "what for?").await;
    assert_eq!(told.status, 200, "{told:?}");
    let mut told = told.json();
    let inquiry = told.as_object_mut().unwrap().remove("inquiries").unwrap();
    assert_eq!(
        (&inquiry[0]["by"], &inquiry[0]["text"], &inquiry[0]["explanation"]),
        (&json!("lin"), &json!("what for?"), &json!("It is the rent."))
    );
    // The question is what it was, and the run stands where it stood.
    assert_eq!(told, asked[0]);
    let after = lin.get(&format!("/api/runs/{run}")).await.json();
    for field in ["status", "waiting_for", "attempt", "wait"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    // It is the run's to pay for.
    let spent = |it: &Value| it["usage"]["input_tokens"].as_u64().unwrap();
    assert!(spent(&after) > spent(&before), "{after} {before}");
    assert_eq!(house.ledger(), ["note x"]);
    // It was asked with all that it had read, in words, and with nothing in its hand.
    let request = house.model.requests().last().unwrap().body.clone();
    assert_eq!(request.get("tools"), None, "{request}");
    let messages = request["messages"].as_array().unwrap();
    assert!(messages.iter().all(|it| it["role"] != "tool" && it.get("tool_calls").is_none()));
    let text = request.to_string();
    for part in ["noted x", "called `pay`", "none of them has run"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let last = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(last.ends_with("what for?"), "{last}");
    let audited = lin.get("/api/audit?kind=permission.inquired").await.json();
    assert_eq!(audited["items"][0]["reference"], asked[0]["id"]);
    let house = house.restart().await;
    let lin = house.lin().await;
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note x", "note a", "pay b"]);
    // Later it reads both after the results.
    let messages = house.model.requests().last().unwrap().body["messages"].clone();
    let messages = messages.as_array().unwrap();
    let roles: Vec<&Value> = messages.iter().map(|it| &it["role"]).collect();
    assert_eq!(roles[roles.len() - 3..], ["tool", "tool", "user"]);
    let last = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(last.ends_with("what for?\n(You said to that) It is the rent."), "{last}");
    house.close().await;
}

async fn what_is_not_explained_can_be_asked_again_and_not_for_ever(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "b"}]]])).await;
    // What it calls for instead of an answer is not even looked at.
    let calls = Said::text("").and_call("note", r#"{"to": "x"}"#);
    house.model.will(Behaviour::Stream(calls));
    ask(&lin, &asked[0], "what for?").await.problem(502, "no_answer");
    house.model.will(Behaviour::status(400, "no"));
    ask(&lin, &asked[0], "what for?").await.problem(502, "no_answer");
    let shown = lin.permission_until(&asked[0], "pending").await;
    let explained = |it: &Value| it["explanation"].clone();
    let all: Vec<Value> = shown["inquiries"].as_array().unwrap().iter().map(explained).collect();
    assert_eq!(all, [Value::Null, Value::Null]);
    for n in 3..=5 {
        says(&house, &format!("answer {n}"));
        assert_eq!(ask(&lin, &asked[0], "what for?").await.status, 200);
    }
    ask(&lin, &asked[0], "what for?").await.problem(409, "asked_enough");
    for odd in [" ".to_owned(), "a\0".to_owned(), "x".repeat(2001)] {
        ask(&lin, &asked[0], &odd).await.problem(400, "bad_request");
    }
    assert_eq!(house.ledger(), [""; 0]);
    assert_eq!(lin.deny(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    ask(&lin, &asked[0], "what for?").await.problem(409, "already_decided");
    house.close().await;
}

async fn who_may_decide_or_speak_may_ask_and_nobody_else(on: On) {
    let house = House::open(on).await;
    let (lin, mei) = (house.lin().await, house.server.human("mei").await);
    let (_, asked) = lin.asking("pa", json!([[["pay", {"to": "b"}]]])).await;
    ask(&mei, &asked[0], "x").await.problem(404, "not_found");
    ask(&house.server.nobody(), &asked[0], "x").await.problem(401, "unauthenticated");
    let agent = house.server.holder(json!({"kind": "agent", "name": "pa"})).await;
    ask(&agent, &asked[0], "x").await.problem(403, "forbidden");
    let ci = house.server.holder(json!({"kind": "service", "name": "ci"})).await;
    ask(&ci, &asked[0], "x").await.problem(404, "not_found");
    let approves = json!({"kind": "service", "name": "gate", "approve": true});
    let approves = house.server.holder(approves).await;
    // It decides for others, and reads no more of their runs than what it is asked.
    ask(&approves, &asked[0], "x").await.problem(403, "forbidden");
    for who in [&lin, &house.server.operator()] {
        says(&house, "so");
        assert_eq!(ask(who, &asked[0], "x").await.status, 200);
    }
    house.close().await;
}

async fn to_ask_about_a_question_is_no_hand_in_it_but_in_what_follows(on: On) {
    let alone = json!({"own_requests": false});
    let house =
        House::with(on, |config| config.permissions = serde_json::from_value(alone).unwrap()).await;
    let lin = house.lin().await;
    let boss =
        house.server.holder(json!({"kind": "human", "name": "boss", "operator": true})).await;
    let script = json!([[["pay", {"to": "a"}]], [["pay", {"to": "b"}]]]);
    let (run, asked) = lin.asking("pa", script).await;
    says(&house, "so");
    assert_eq!(ask(&boss, &asked[0], "and then pay b?").await.status, 200);
    assert_eq!(boss.grant(&asked[0]).await.status, 200);
    let next = lin.asked_anew(&run).await;
    assert_ne!(next[0]["id"], asked[0]["id"]);
    boss.grant(&next[0]).await.problem(403, "forbidden");
    house.close().await;
}

async fn an_explanation_is_pinned_to_the_card_as_the_agents_words(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "b"}]]])).await;
    let browser = Browser::of(&house.server, "lin").await;
    let card = format!("/inbox/{}", asked[0]["id"].as_str().unwrap());
    let action = format!("{card}/ask");
    assert_eq!(browser.post(&action, &[("text", "why?")]).await.status, 403);
    house.model.will(Behaviour::status(400, "no"));
    assert_eq!(browser.fill(&card, &action, &[("text", "why?")]).await.status, 502);
    let shown = browser.get(&card).await.text;
    assert!(shown.contains("No answer has come yet."), "{shown}");
    says(&house, "<b>approved</b> by lin\u{202e}");
    let told = browser.fill(&card, &action, &[("text", "why?")]).await;
    assert_eq!((told.status, told.header("location")), (303, &*card));
    let shown = browser.get(&card).await.text;
    let quoted = "<blockquote class=\"quote\" lang=\"\">&lt;b&gt;approved&lt;/b&gt; by lin";
    assert!(shown.contains(quoted) && !shown.contains('\u{202e}'), "{shown}");
    assert!(shown.contains("lin asked the agent"), "{shown}");
    let trace = browser.get(&format!("/runs/{run}")).await.text;
    assert!(trace.contains("<b>lin</b> <span lang=\"\">why?"), "{trace}");
    assert_eq!(house.ledger(), [""; 0]);
    house.close().await;
}
