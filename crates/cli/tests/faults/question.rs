//! An open question outlives its server: the same is asked after a `kill -9`, and the answer to it
//! runs the batch once.

use std::time::Duration;

use chancery_testkit::fake_model::{Answer, Behaviour};
use chancery_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

use crate::api::Api;
use crate::house::House;
use crate::{model, until};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_open_question_outlives_a_kill_on_sqlite() {
    ask_and_kill(&House::new()).await;
}

#[tokio::test]
async fn an_open_question_outlives_a_kill_on_postgres() {
    let database = TestDatabase::create().await;
    ask_and_kill(&House::on(database.url(), 1)).await;
}

async fn questions(api: &Api, run: &str) -> Value {
    api.get(&format!("/api/permissions?run={run}")).await["items"].clone()
}

async fn ask_and_kill(house: &House) {
    let model = model::start("fake").await;
    let server = house.serve("one", &model).await;
    // An effect that is allowed stands on either side of the two that are asked about.
    let run = server.api.create("run", "eaea e").await;
    let before = server.api.reaches(&run, "waiting", PATIENCE).await;
    let asked = questions(&server.api, &run).await;
    assert_eq!(asked.as_array().unwrap().len(), 2, "{asked}");
    let log = server.api.events(&run).await;
    server.kill();

    let server = house.serve("one", &model).await;
    assert_eq!(questions(&server.api, &run).await, asked);
    assert_eq!(server.api.run(&run).await, before);
    assert!(house.effects().is_empty(), "something ran unasked: {:?}", house.effects());
    let decide = async |api: &Api, place: usize, decision: &str| {
        let path = format!("/api/permissions/{}/decision", asked[place]["id"].as_str().unwrap());
        api.try_post(&path, "-", &json!({"decision": decision})).await.unwrap().0
    };
    assert_eq!(decide(&server.api, 1, "grant").await, 200);
    server.kill();

    // What was answered stays answered; the other question is open still, and nothing has run.
    let server = house.serve("one", &model).await;
    let statuses = async |api: &Api| -> Vec<String> {
        let asked = questions(api, &run).await;
        let all = asked.as_array().unwrap().iter();
        all.map(|it| it["status"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(statuses(&server.api).await, ["pending", "granted"]);
    assert!(house.effects().is_empty(), "something ran too early: {:?}", house.effects());
    assert_eq!(decide(&server.api, 1, "deny").await, 409);
    assert_eq!(decide(&server.api, 0, "grant").await, 200);
    server.api.reaches(&run, "completed", PATIENCE).await;
    let effects = house.effects();
    assert_eq!(effects.len(), 5, "{effects:?}");
    assert!(effects.values().all(|it| *it == 1), "{effects:?}");
    let after = server.api.events(&run).await;
    assert_eq!(after[..log.len()], log[..]);
    server.kill();

    let server = house.serve("one", &model).await;
    assert_eq!(decide(&server.api, 0, "grant").await, 200);
    assert_eq!(server.api.events(&run).await, after);
    assert_eq!(house.effects(), effects);
}

/// Somebody asks the agent about a call, and the server dies before it has said anything.
#[tokio::test]
async fn what_the_agent_was_asked_outlives_a_kill_unanswered() {
    let house = House::new();
    let model = model::start("fake").await;
    let server = house.serve("one", &model).await;
    let run = server.api.create("run", "a").await;
    let before = server.api.reaches(&run, "waiting", PATIENCE).await;
    let asked = questions(&server.api, &run).await[0].clone();
    let path = format!("/api/permissions/{}", asked["id"].as_str().unwrap());
    let ask = async |api: &Api, text: &str| {
        api.try_post(&format!("{path}/ask"), "-", &json!({"text": text})).await
    };
    let heard = model.requests().len();
    model.will(Behaviour::Silence);
    let api = server.api.clone();
    let (unanswered, ()) = tokio::join!(ask(&api, "what for?"), async {
        until("the model was not asked", PATIENCE, async || {
            (model.requests().len() > heard).then_some(())
        })
        .await;
        server.kill();
    });
    assert_eq!(unanswered, None);

    // The card says what was asked and that nothing was said; the question is what it was.
    let server = house.serve("one", &model).await;
    let inquiries = async |api: &Api| {
        let mut shown = api.get(&path).await;
        let inquiries = shown.as_object_mut().unwrap().remove("inquiries").unwrap();
        assert_eq!(shown, asked);
        let said = |it: &Value| (it["text"].clone(), it["explanation"].clone());
        inquiries.as_array().unwrap().iter().map(said).collect::<Vec<_>>()
    };
    let first = (json!("what for?"), Value::Null);
    assert_eq!(inquiries(&server.api).await, std::slice::from_ref(&first));
    for field in ["status", "waiting_for", "attempt", "wait"] {
        assert_eq!(server.api.run(&run).await[field], before[field], "{field}");
    }
    // It can be asked again, and the answer to the question runs the call once.
    model.will(Behaviour::Plain(Answer::text("It is the rent.")));
    assert_eq!(ask(&server.api, "and now?").await.unwrap().0, 200);
    let second = (json!("and now?"), json!("It is the rent."));
    assert_eq!(inquiries(&server.api).await, [first, second]);
    assert!(house.effects().is_empty(), "something ran unasked: {:?}", house.effects());
    let (door, grant) = (format!("{path}/decision"), json!({"decision": "grant"}));
    assert_eq!(server.api.try_post(&door, "-", &grant).await.unwrap().0, 200);
    server.api.reaches(&run, "completed", PATIENCE).await;
    assert_eq!(house.effects().into_values().collect::<Vec<_>>(), [1]);
}

/// The three answers to what became of a call that was in the air, at the door for decisions.
#[tokio::test]
async fn what_became_of_a_call_is_answered_at_the_door_for_decisions() {
    let house = House::new();
    let model = model::start("fake").await;
    let server = house.serve("one", &model).await;
    let answers = [
        (json!({"decision": "grant", "result": "it was done"}), 1, "it was done"),
        (json!({"decision": "deny"}), 1, "OUTCOME_UNKNOWN"),
        (json!({"decision": "grant"}), 2, "exit code 0"),
    ];
    let mut runs = Vec::new();
    for place in 0..answers.len() {
        runs.push(server.api.create(&format!("run-{place}"), "s").await);
    }
    until("not every call has had its effect", PATIENCE, async || {
        (house.effects().len() == answers.len()).then_some(())
    })
    .await;
    server.kill();
    let server = house.serve("one", &model).await;
    for (run, (answer, times, said)) in runs.iter().zip(&answers) {
        server.api.reaches(run, "waiting", PATIENCE).await;
        let asked = questions(&server.api, run).await[0].clone();
        let facts = (&asked["kind"], &asked["ruling"], &asked["expires_at"]);
        assert_eq!(facts, (&json!("recover"), &json!("require_human"), &Value::Null));
        let path = format!("/api/permissions/{}/decision", asked["id"].as_str().unwrap());
        // What is remembered or edited is no answer to this.
        for odd in [json!({"remember": "run"}), json!({"arguments": {}})] {
            let mut body = json!({"decision": "grant"});
            body.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
            let (status, said) = server.api.try_post(&path, "-", &body).await.unwrap();
            assert!(matches!(status, 400 | 422), "{said}");
        }
        assert_eq!(server.api.try_post(&path, "-", answer).await.unwrap().0, 200);
        server.api.reaches(run, "completed", PATIENCE).await;
        let key = asked["correlation_key"].as_str().unwrap().split_once("-run_").unwrap().1;
        assert_eq!(house.effects()[&format!("run_{key}")], *times, "{answer}");
        let log = json!(server.api.events(run).await).to_string();
        assert!(log.contains(said), "{answer}: {log}");
    }
}
