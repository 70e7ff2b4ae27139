//! What models cost: charged when they answer, at the prices of that moment, to the run that asked.

use chancery_server::config::{Config, ModelConfig, Provider};
use chancery_testkit::fake_model::{Answer as Said, Behaviour, FakeModel};
use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::{Caller, Server, id};
use crate::house::{House, On, on_both};

on_both! {
    a_run_of_two_answers_costs_what_they_cost_to_the_last_millionth;
    without_a_price_nothing_is_said_of_a_cost;
    a_price_that_changes_later_changes_no_run_that_has_ended;
    what_is_explained_to_a_person_is_charged_to_the_run;
}

/// The fake model reads 12 tokens and writes 7 each time: 3.6 and 8.75 millionths, which are 12
/// rounded and would be 25 for two answers if only their sum were.
const INPUT: f64 = 0.3;
const OUTPUT: f64 = 1.25;

/// Prices for the model that everybody talks through.
pub fn priced(config: &mut Config, input: f64, output: f64) {
    let model = config.models.get_mut("default").unwrap();
    (model.input_price, model.output_price) = (Some(input), Some(output));
}

async fn dear(on: On) -> House {
    House::with(on, |config| priced(config, INPUT, OUTPUT)).await
}

async fn usage(lin: &Caller, run: &str) -> Value {
    lin.get(&format!("/api/runs/{run}")).await.json()["usage"].clone()
}

/// A run that calls a tool and then answers: the model is asked twice.
async fn two_answers(lin: &Caller) -> String {
    let run = lin.script("pa", json!([[["note", {"to": "x"}]]])).await;
    lin.until(&run, "completed").await;
    run
}

async fn a_run_of_two_answers_costs_what_they_cost_to_the_last_millionth(on: On) {
    let house = dear(on).await;
    let lin = house.lin().await;
    let run = two_answers(&lin).await;
    let whole = json!({"input_tokens": 24, "output_tokens": 14, "cost": 0.000024});
    assert_eq!(usage(&lin, &run).await, whole);
    assert_eq!(lin.get("/api/runs").await.json()["items"][0]["usage"], whole);
    let events = lin.get(&format!("/api/runs/{run}/events")).await.json();
    let used: Vec<Value> = events["items"].as_array().unwrap().iter().map(used).collect();
    let each = json!({"input_tokens": 12, "output_tokens": 7, "cost_micros": 12});
    assert_eq!(
        used.into_iter().filter(|it| !it.is_null()).collect::<Vec<_>>(),
        [each.clone(), each]
    );
    // Where its tokens are shown and counted, its cost is.
    let page = Browser::of(&house.server, "lin").await.get(&format!("/runs/{run}")).await.text;
    assert!(page.contains("38 tokens · cost 0.000024 ·"), "{page}");
    let counted = house.server.operator().get("/metrics").await.text;
    assert!(counted.contains("\nchancery_llm_cost_total 24\n"), "{counted}");
    house.close().await;
}

fn used(event: &Value) -> Value {
    event["data"]["usage"].clone()
}

async fn without_a_price_nothing_is_said_of_a_cost(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let run = two_answers(&lin).await;
    assert_eq!(usage(&lin, &run).await, json!({"input_tokens": 24, "output_tokens": 14}));
    let events = lin.get(&format!("/api/runs/{run}/events")).await.text;
    assert!(events.contains("output_tokens") && !events.contains("cost"), "{events}");
    let page = Browser::of(&house.server, "lin").await.get(&format!("/runs/{run}")).await.text;
    assert!(page.contains("38 tokens · <code"), "{page}");
    house.close().await;
}

async fn a_price_that_changes_later_changes_no_run_that_has_ended(on: On) {
    let mut house = dear(on).await;
    let lin = house.lin().await;
    let ended = two_answers(&lin).await;
    let (waits, asked) = lin.asking("pa", json!([[["pay", {"to": "mei"}]]])).await;
    priced(&mut house.server.config, 10.0, 100.0);
    let house = house.restart().await;
    let lin = house.server.elsewhere(&lin);
    assert_eq!(usage(&lin, &ended).await["cost"], 0.000024);
    // What was answered before costs what it did then, what is answered now what it does now.
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&waits, "completed").await;
    assert_eq!(usage(&lin, &waits).await["cost"], 0.000832);
    house.close().await;
}

async fn what_is_explained_to_a_person_is_charged_to_the_run(on: On) {
    let house = dear(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "mei"}]]])).await;
    assert_eq!(usage(&lin, &run).await["cost"], 0.000012);
    house.model.will(Behaviour::Stream(Said::text("It is the rent.")));
    let path = format!("/api/permissions/{}/ask", asked[0]["id"].as_str().unwrap());
    assert_eq!(lin.post(&path, &json!({"text": "what for?"})).await.status, 200);
    assert_eq!(usage(&lin, &run).await["cost"], 0.000024);
    house.close().await;
}

#[tokio::test]
async fn an_answer_has_its_cost_whichever_protocol_it_came_by() {
    let fake = FakeModel::start().await.unwrap();
    fake.otherwise(|_, _| Behaviour::Stream(Said::text("hello")));
    let at = |provider, url| {
        let base_url = Some(url);
        ModelConfig { base_url, model: Some("m".to_owned()), ..ModelConfig::new(provider) }
    };
    for model in [
        at(Provider::Openai, fake.chat_url()),
        at(Provider::Anthropic, fake.messages_url()),
        ModelConfig::new(Provider::Scripted),
    ] {
        let settle = |config: &mut Config| {
            config.models.insert("default".to_owned(), model.clone());
            priced(config, 3.0, 15.0);
        };
        let server = Server::with(settle).await;
        let run = id(&server.operator().run("x").await);
        let done = server.operator().until(&run, "completed").await;
        let count = |it: &str| done["usage"][it].as_u64().unwrap();
        let micros = count("input_tokens") * 3 + count("output_tokens") * 15;
        assert!(micros > 0 && done["usage"]["cost"] == micros as f64 / 1e6, "{model:?} {done}");
        server.running.stop().await;
    }
}

#[tokio::test]
async fn the_document_says_what_a_cost_is() {
    let server = Server::start().await;
    let document = server.nobody().get("/openapi.json").await.json();
    let usage = &document["components"]["schemas"]["Usage"];
    assert_eq!(usage["required"], json!(["input_tokens", "output_tokens"]));
    let cost = &usage["properties"]["cost"];
    assert_eq!((&cost["type"], &cost["minimum"]), (&json!(["number", "null"]), &json!(0)));
    assert!(cost["description"].as_str().unwrap().contains("money"), "{cost}");
    server.running.stop().await;
}
