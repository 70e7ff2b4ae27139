//! Traces: a run that has ended is told to a collector as spans, once however often it is sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use chancery_server::config::Config;
use serde_json::{Value, json};

use crate::house::{House, On, on_both};
use crate::prices::priced;

on_both! {
    a_run_with_a_group_and_a_question_is_one_trace_of_the_genai_conventions;
}

type Sent = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

/// Has trouble of its own with the first; keeps them all.
async fn collector() -> (String, Sent) {
    let sent = Sent::default();
    let ears = sent.clone();
    let take = async move |headers: HeaderMap, Json(body): Json<Value>| {
        let mut sent = ears.lock().unwrap();
        sent.push((headers, body));
        if sent.len() == 1 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/traces", post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, sent)
}

/// All that was sent, by the id of the span: the same span sent again is the same span.
fn spans(sent: &Sent) -> BTreeMap<String, Value> {
    let sent = sent.lock().unwrap();
    let all = sent.iter().flat_map(|(_, body)| {
        body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    });
    all.map(|it| (it["spanId"].as_str().unwrap().to_owned(), it)).collect()
}

fn attribute<'s>(span: &'s Value, key: &str) -> &'s Value {
    let all = span["attributes"].as_array().unwrap();
    all.iter().find(|it| it["key"] == key).map_or(&Value::Null, |it| {
        let value = &it["value"];
        value.as_object().unwrap().values().next().unwrap()
    })
}

async fn a_run_with_a_group_and_a_question_is_one_trace_of_the_genai_conventions(on: On) {
    let (url, sent) = collector().await;
    let settle = |config: &mut Config| priced(config, 3.0, 15.0);
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of the house"),
        ("OTEL_SERVICE_NAME", "payroll"),
    ];
    let house = House::with_environment(on, settle, &environment).await;
    let lin = house.lin().await;
    let lines =
        json!({"narrow": {"calls": [[["pay", {"to": "a hidden account"}]]], "say": "paid"}});
    let goal = json!([[["escalate_to_group", {"group_id": "grp_pay", "goal": lines.to_string()}]]]);
    let run = lin.script("pa", goal).await;
    let child = loop {
        let tree = lin.get(&format!("/api/runs/{run}/tree")).await.json();
        if let Some(id) = tree["children"][0]["id"].as_str() {
            break id.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let waiting = lin.until(&child, "waiting").await;
    assert_eq!(waiting["waiting_for"], "permission", "{waiting}");
    let asked = lin.asked(&child).await;
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;

    let (whole, spans) = loop {
        let spans = spans(&sent);
        let ours = |it: &&Value| attribute(it, "chancery.run.id") == run.as_str();
        if let Some(whole) = spans.values().find(ours).cloned() {
            break (whole, spans);
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let named = |name: &str| {
        let found = spans.values().find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    assert_eq!((&whole["name"], &whole["parentSpanId"]), (&json!("invoke_agent pa"), &Value::Null));
    assert_eq!(attribute(&whole, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(&whole, "enduser.id"), "lin");
    let group = spans.values().find(|it| attribute(it, "chancery.run.id") == child.as_str());
    let group = group.unwrap();
    assert_eq!(group["parentSpanId"], whole["spanId"]);
    assert_eq!(attribute(group, "chancery.group"), "grp_pay");
    assert!(spans.values().all(|it| it["traceId"] == whole["traceId"]), "{spans:#?}");

    let pay = named("execute_tool pay");
    assert_eq!(attribute(pay, "gen_ai.tool.call.id"), &asked[0]["tool_call_id"]);
    assert_eq!(pay["parentSpanId"], group["spanId"]);
    let wait = named("approval.wait");
    assert_eq!(attribute(wait, "chancery.decision.id"), &asked[0]["id"]);
    assert_eq!(attribute(wait, "chancery.decision.outcome"), "granted");
    assert_eq!(attribute(wait, "chancery.decision.by"), "lin");
    assert_eq!(attribute(wait, "chancery.risk"), "high");
    assert!(attribute(wait, "chancery.policy.rule").is_string(), "{wait}");
    // It was asked, then decided, then done.
    let nanos = |it: &Value, at: &str| it[at].as_str().unwrap().parse::<i128>().unwrap();
    assert!(nanos(wait, "endTimeUnixNano") > nanos(wait, "startTimeUnixNano"), "{wait}");
    assert!(nanos(pay, "startTimeUnixNano") >= nanos(wait, "endTimeUnixNano"), "{pay} {wait}");
    let chat = named("chat fake-1");
    assert_eq!(attribute(chat, "gen_ai.request.model"), "fake-1");
    assert_eq!(attribute(chat, "chancery.usage.cost"), 0.000141);
    let answers = house.model.requests().len();
    assert_eq!(attribute(&whole, "chancery.usage.cost"), (141 * answers) as f64 / 1e6);

    let sent = sent.lock().unwrap().clone();
    assert!(sent.iter().all(|(headers, _)| headers["x-key"] == "of the house"));
    let resource = &sent[0].1["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(resource["value"]["stringValue"], "payroll");
    assert!(!format!("{sent:?}").contains("hidden"));
    house.close().await;
}
