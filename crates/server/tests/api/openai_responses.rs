//! `/v1/responses`: typed questions and typed answers, and one thread from answer to answer.

use serde_json::{Value, json};

use crate::harness::Caller;
use crate::house::{On, on_both};
use crate::openai::{frames, house, refused};

on_both! {
    questions_are_items_and_so_are_their_answers;
    an_answer_goes_on_with_the_thread_of_the_one_before;
}

impl Caller {
    async fn respond(&self, input: Value, previous: Option<&Value>) -> Value {
        let body = json!({"model": "agent/pa", "input": input, "previous_response_id": previous});
        let answered = self.post("/v1/responses", &body).await;
        assert_eq!(answered.status, 200, "{answered:?}");
        answered.json()
    }
}

fn said(response: &Value) -> &str {
    assert_eq!(response["output"][0]["type"], "message", "{response}");
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

fn questions(response: &Value) -> Vec<Value> {
    let items = response["output"].as_array().unwrap().iter();
    items.filter(|it| it["type"] == "mcp_approval_request").cloned().collect()
}

fn approves(question: &Value, approve: bool) -> Value {
    json!({"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": approve})
}

async fn an_answer_goes_on_with_the_thread_of_the_one_before(on: On) {
    let house = house(on).await;
    let lin = house.lin().await;
    let first = lin.respond(json!("the first thing"), None).await;
    assert_eq!((said(&first), &first["status"]), ("done", &json!("completed")));
    assert!(first["usage"]["total_tokens"].as_u64().unwrap() > 0);
    let parts =
        json!([{"role": "user", "content": [{"type": "input_text", "text": "the second"}]}]);
    let second = lin.respond(parts, Some(&first["id"])).await;
    assert_eq!(second["previous_response_id"], first["id"]);
    let heard = house.model.requests().last().unwrap().body["messages"].to_string();
    assert!(heard.contains("the first thing") && heard.contains("the second"), "{heard}");
    lin.respond(json!("alone"), None).await;
    let heard = house.model.requests().last().unwrap().body["messages"].to_string();
    assert!(!heard.contains("the first thing"), "{heard}");
    // What is somebody else's, or was never said, is not there; nor is another model's.
    let bo = house.server.human("bo").await;
    for (who, id) in [(&bo, first["id"].clone()), (&lin, json!("resp_1")), (&lin, json!("é"))] {
        let body = json!({"model": "agent/pa", "input": "x", "previous_response_id": id});
        let answered = who.post("/v1/responses", &body).await;
        refused(&answered, 404, "invalid_request_error", "not_found");
    }
    let body = json!({"model": "agent/payer", "input": "x", "previous_response_id": first["id"]});
    let others = lin.post("/v1/responses", &body).await;
    refused(&others, 400, "invalid_request_error", "bad_request");
    house.close().await;
}

async fn questions_are_items_and_so_are_their_answers(on: On) {
    let house = house(on).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "x"}], ["pay", {"to": "y"}], ["note", {"to": "z"}]]]);
    let first = lin.respond(json!(script.to_string()), None).await;
    assert_eq!(first["status"], "completed");
    assert_eq!(first["chancery"]["status"], "waiting_approval");
    assert!(said(&first).contains("3 of 3 calls undecided"), "{first}");
    let asked = questions(&first);
    assert_eq!(asked.len(), 3);
    let expected = json!({"type": "mcp_approval_request", "id": asked[0]["id"], "name": "note",
        "arguments": "{\"to\":\"x\"}", "server_label": "chancery"});
    assert_eq!(asked[0], expected);
    // What is high is not decided here, and the answer says where.
    let answers = json!([approves(&asked[0], true), approves(&asked[1], true)]);
    let second = lin.respond(answers, Some(&first["id"])).await;
    let words = said(&second);
    assert!(words.contains("Approved: note") && words.contains("its risk is high"), "{words}");
    assert_eq!(questions(&second).len(), 2);
    let unknown = json!({"type": "mcp_approval_response", "approve": true,
        "approval_request_id": "perm_00000000000000000000000000000000"});
    let body = |input: Value| json!({"model": "agent/pa", "input": [input]});
    let answered = lin.post("/v1/responses", &body(unknown)).await;
    refused(&answered, 404, "invalid_request_error", "not_found");
    let other_way = lin.post("/v1/responses", &body(approves(&asked[0], false))).await;
    refused(&other_way, 409, "conflict_error", "already_decided");
    assert_eq!(other_way.header("x-should-retry"), "false");
    let half = json!({"type": "mcp_approval_response", "approve": true});
    let answered = lin.post("/v1/responses", &body(half)).await;
    refused(&answered, 400, "invalid_request_error", "bad_request");
    // A program's word is none here, though it may approve elsewhere.
    let ci = house.server.holder(json!({"kind": "service", "name": "ci", "approve": true})).await;
    let refusal = ci.respond(json!([approves(&asked[2], true)]), None).await;
    assert!(said(&refusal).contains("only a person decides"), "{refusal}");
    lin.deny(&asked[1]).await;
    let reasoned = json!([{"type": "mcp_approval_response", "approval_request_id": asked[2]["id"],
        "approve": false, "reason": "no more"}]);
    let last = lin.respond(reasoned, Some(&second["id"])).await;
    assert_eq!(last["chancery"]["status"], "completed", "{last}");
    assert!(said(&last).starts_with("Denied: note") && said(&last).ends_with("done"), "{last}");
    assert_eq!(questions(&last), [] as [Value; 0]);
    assert_eq!(house.ledger(), ["note x"]);
    house.close().await;
}

#[tokio::test]
async fn a_stream_tells_the_same_answer_in_the_order_that_clients_expect() {
    let house = house(On::Sqlite).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "x"}]]]).to_string();
    let body = json!({"model": "agent/pa", "input": script, "stream": true});
    let streamed = lin.post("/v1/responses", &body).await;
    let events: Vec<Value> =
        frames(&streamed).iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let named = streamed.text.lines().filter_map(|it| it.strip_prefix("event: "));
    assert_eq!(named.collect::<Vec<_>>(), kinds);
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], n);
    }
    let deltas: String = events.iter().filter_map(|it| it["delta"].as_str()).collect();
    let response = &events.last().unwrap()["response"];
    assert_eq!(deltas, said(response));
    assert_eq!(events[6]["text"], deltas);
    assert_eq!(events[10]["item"], questions(response)[0]);
    assert_eq!(events[0]["response"]["id"], response["id"]);
    // And it can be gone on with.
    let answers = json!([approves(&questions(response)[0], true)]);
    let next = lin.respond(answers, Some(&response["id"])).await;
    assert!(said(&next).ends_with("done"), "{next}");
    house.close().await;
}

#[tokio::test]
async fn a_run_that_fails_is_a_response_that_says_so() {
    let house = house(On::Sqlite).await;
    let lin = house.lin().await;
    house
        .model
        .otherwise(|_, _| chancery_testkit::fake_model::Behaviour::status(400, "no such luck"));
    let failed = lin.respond(json!("x"), None).await;
    assert_eq!(failed["status"], "failed");
    assert!(failed["error"]["message"].as_str().unwrap().contains("no such luck"), "{failed}");
    let body = json!({"model": "agent/pa", "input": "x", "stream": true});
    let streamed = frames(&lin.post("/v1/responses", &body).await);
    assert!(streamed.last().unwrap().contains("\"type\":\"response.failed\""), "{streamed:?}");
    house.close().await;
}
