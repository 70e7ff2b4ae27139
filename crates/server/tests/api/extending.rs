//! More time for a question: who may give it, how much there is, and that it decides nothing. And
//! less of a remembered answer, which is never more.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::{Answer, Caller};
use crate::house::{House, On, on_both};

on_both! {
    a_question_that_was_given_more_time_outlives_its_first;
    more_time_has_an_end_and_decides_nothing;
    only_who_may_answer_gives_more_time;
    that_there_is_more_time_stands_in_the_trace_and_in_the_talk;
    a_remembered_answer_is_narrowed_and_never_widened;
}

fn path(asked: &Value) -> String {
    format!("/api/permissions/{}/extend", asked["id"].as_str().unwrap())
}

async fn extend(who: &Caller, asked: &Value, by: Option<&str>) -> Answer {
    let body = by.map_or(json!({}), |by| json!({"by": by}));
    who.post(&path(asked), &body).await
}

fn left(permission: &Value) -> i64 {
    let time = |name: &str| permission[name].as_str().unwrap().parse::<Timestamp>().unwrap();
    time("expires_at").duration_since(time("created_at")).as_secs()
}

async fn a_question_that_was_given_more_time_outlives_its_first(on: On) {
    let said = json!({"expire_after": "2s"});
    let house =
        House::with(on, |config| config.permissions = serde_json::from_value(said).unwrap()).await;
    let lin = house.lin().await;
    let (run, asked) =
        lin.asking("pa", json!([[["pay", {"to": "a"}], ["note", {"to": "b"}]]])).await;
    let extended = extend(&lin, &asked[0], Some("1h")).await;
    assert_eq!((extended.status, left(&extended.json())), (200, 3602), "{extended:?}");
    assert_eq!(extended.json()["status"], "pending");
    // One that is asked after it, and that nobody gives more time, is over before it.
    let other = lin.script("pa", json!([[["pay", {"to": "c"}]]])).await;
    lin.until(&other, "completed").await;
    let house = house.restart().await;
    let lin = house.lin().await;
    let still = lin.permission_until(&asked[0], "pending").await;
    assert_eq!(left(&still), 3602);
    assert_eq!(house.ledger(), [""; 0]);
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay a", "note b"]);
    extend(&lin, &asked[0], None).await.problem(409, "already_decided");
    house.close().await;
}

async fn more_time_has_an_end_and_decides_nothing(on: On) {
    let said = json!({"expire_after": "1h", "extend_up_to": "3h"});
    let house =
        House::with(on, |config| config.permissions = serde_json::from_value(said).unwrap()).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    // As long again as at first, unless somebody says how long.
    assert_eq!(left(&extend(&lin, &asked[0], None).await.json()), 2 * 3600);
    assert_eq!(left(&extend(&lin, &asked[0], Some("7d")).await.json()), 3 * 3600);
    extend(&lin, &asked[0], Some("1m")).await.problem(409, "long_enough");
    for odd in [json!({"by": "soon"}), json!({"by": "-1h"}), json!({"by": 7}), json!({"to": "1h"})]
    {
        lin.post(&path(&asked[0]), &odd).await.problem(400, "bad_request");
    }
    let kinds = lin.kinds(&run).await;
    assert_eq!(kinds[kinds.len() - 2..], ["permission.extended", "permission.extended"]);
    let audited = lin.get("/api/audit?kind=permission.extended").await.json();
    let entry = &audited["items"][0];
    assert_eq!(audited["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&entry["reference"], &entry["actor"], &entry["run_id"]),
        (&asked[0]["id"], &json!({"kind": "user", "id": "lin"}), &json!(run))
    );
    let waiting = lin.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!((&waiting["status"], &waiting["attempt"]), (&json!("waiting"), &json!(1)));
    assert_eq!(house.ledger(), [""; 0]);
    lin.deny(&asked[0]).await;
    extend(&lin, &asked[0], None).await.problem(409, "already_decided");
    house.close().await;
}

async fn only_who_may_answer_gives_more_time(on: On) {
    let house = House::open(on).await;
    let (lin, mei) = (house.lin().await, house.server.human("mei").await);
    let (_, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    extend(&mei, &asked[0], None).await.problem(404, "not_found");
    extend(&house.server.nobody(), &asked[0], None).await.problem(401, "unauthenticated");
    let agent = house.server.holder(json!({"kind": "agent", "name": "pa"})).await;
    extend(&agent, &asked[0], None).await.problem(403, "forbidden");
    let before = lin.permission_until(&asked[0], "pending").await;
    let ci = house.server.holder(json!({"kind": "service", "name": "ci"})).await;
    let (_, own) = ci.asking("pa", json!([[["pay", {"to": "b"}]]])).await;
    extend(&ci, &own[0], None).await.problem(403, "forbidden");
    assert_eq!(before["expires_at"], asked[0]["expires_at"]);
    // By a press in the console, which takes the mark of the visit.
    let browser = Browser::of(&house.server, "lin").await;
    let card = format!("/inbox/{}", asked[0]["id"].as_str().unwrap());
    let action = format!("{card}/extend");
    assert_eq!(browser.post(&action, &[]).await.status, 403);
    assert_eq!(browser.fill(&card, &action, &[("csrf", "made up")]).await.status, 403);
    assert_eq!(
        lin.permission_until(&asked[0], "pending").await["expires_at"],
        asked[0]["expires_at"]
    );
    let pressed = browser.fill(&card, &action, &[]).await;
    assert_eq!((pressed.status, pressed.header("location")), (303, &*card));
    let after = lin.permission_until(&asked[0], "pending").await;
    assert_eq!(left(&after), 2 * left(&asked[0]));
    house.close().await;
}

async fn that_there_is_more_time_stands_in_the_trace_and_in_the_talk(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}]]]).to_string();
    let body = json!({"agent": "pa", "input": batch, "session_key": "talk"});
    let run = crate::harness::id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "waiting").await;
    let asked = lin.asked(&run).await;
    let until = extend(&lin, &asked[0], Some("1h")).await.json()["expires_at"].clone();
    let until = until.as_str().unwrap().parse::<Timestamp>().unwrap();
    let shown = format!(
        "<time datetime=\"{until}\" data-time=\"at\">{}</time>",
        until.strftime("%Y-%m-%d %H:%M UTC")
    );
    let browser = Browser::of(&house.server, "lin").await;
    for page in [format!("/runs/{run}"), "/chat/talk".to_owned()] {
        let english = browser.get(&page).await.text;
        let words = format!("<span class=\"tool\">pay</span> may wait longer, until {shown}");
        assert!(english.contains(&format!("{words} · <b>lin</b>")), "{page}: {english}");
        let chinese = browser.request(reqwest::Method::GET, &page).header("accept-language", "zh");
        let chinese = crate::harness::answer(chinese).await.text;
        assert!(chinese.contains(&format!("可等待更久，直至 {shown} · <b>lin</b>")), "{chinese}");
    }
    house.close().await;
}

async fn a_remembered_answer_is_narrowed_and_never_widened(on: On) {
    let house = House::open(on).await;
    let (lin, mei) = (house.lin().await, house.server.human("mei").await);
    let once = json!([[["pay", {"to": "a"}]]]);
    let (run, asked) = lin.asking("pa", once.clone()).await;
    let always =
        json!({"decision": "grant", "remember": {"scope": "always", "expires_after": "7d"}});
    assert_eq!(lin.decide(&asked[0], always).await.status, 200);
    lin.until(&run, "completed").await;
    let rule = lin.get("/api/rules").await.json()["items"][0].clone();
    let path = format!("/api/rules/{}/narrow", rule["id"].as_str().unwrap());
    mei.post(&path, &json!({"scope": "run"})).await.problem(404, "not_found");
    for odd in [json!({"scope": "everyone"}), json!({"expires_after": "never"}), json!({"to": 1})] {
        lin.post(&path, &odd).await.problem(400, "bad_request");
    }
    lin.post(&path, &json!({"expires_after": "8d"})).await.problem(409, "not_narrower");
    let narrowed = lin.post(&path, &json!({"scope": "agent", "expires_after": "1h"})).await.json();
    assert_eq!(narrowed["scope"], "agent");
    assert!(narrowed["expires_at"].as_str() < rule["expires_at"].as_str(), "{narrowed}");
    lin.post(&path, &json!({"scope": "always"})).await.problem(409, "not_narrower");
    lin.post(&path, &json!({"expires_after": "2h"})).await.problem(409, "not_narrower");
    // It holds for the agent that asked, and for no other any more.
    let again = lin.script("pa", once.clone()).await;
    lin.until(&again, "completed").await;
    lin.asking("patterns", once.clone()).await;
    assert_eq!(lin.post(&path, &json!({"scope": "run"})).await.status, 200);
    lin.asking("pa", once).await;
    let audited = lin.get("/api/audit?kind=rule.narrowed").await.json();
    assert_eq!(audited["items"].as_array().unwrap().len(), 2);
    assert_eq!(audited["items"][0]["detail"]["scope"], "run");
    house.close().await;
}
