//! The liberties that servers take.

use super::*;

/// The calls that are read from these deltas.
async fn calls_of(deltas: &[Value]) -> Vec<RawCall> {
    let chunk = |delta: &Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let end = "data: [DONE]\n\n".to_owned();
    let pieces: Vec<String> = deltas.iter().map(chunk).chain([end]).collect();
    let (result, _) = outcome(CHAT, PATIENCE, [Behaviour::events(pieces)]).await;
    result.unwrap().calls
}

fn fragment(fields: Value) -> Value {
    json!({"tool_calls": [fields]})
}

#[tokio::test]
async fn an_empty_finish_reason_is_none() {
    let chunk = json!({"choices": [{"delta": {"content": "half"}, "finish_reason": ""}]});
    let half = Behaviour::events([format!("data: {chunk}\n\n")]);
    let result = outcome(CHAT, PATIENCE, [half, fine()]).await;
    assert_eq!(result, (Ok(reply("fine", &[])), 2));
}

#[tokio::test]
async fn fragments_without_an_index_belong_to_the_call_before_them() {
    let calls = calls_of(&[
        fragment(json!({"id": "a", "function": {"name": "one", "arguments": "{\"x\""}})),
        fragment(json!({"function": {"arguments": ":1}"}})),
        fragment(json!({"id": "b", "function": {"name": "two", "arguments": "{"}})),
        fragment(json!({"id": "b", "function": {"arguments": "}"}})),
        fragment(json!({"function": {"name": "three", "arguments": "{}"}})),
    ])
    .await;
    let expected = [("a", "one", "{\"x\":1}"), ("b", "two", "{}"), ("call_1", "three", "{}")];
    assert_eq!(calls, reply("", &expected).calls);
}

#[tokio::test]
async fn every_fragment_may_repeat_the_id_and_the_name() {
    let piece = |text: &str| {
        let function = json!({"name": "one", "arguments": text});
        fragment(json!({"index": 0, "id": "a", "function": function}))
    };
    let calls = calls_of(&[piece("{\"x\""), piece(":1"), piece("}")]).await;
    assert_eq!(calls, reply("", &[("a", "one", "{\"x\":1}")]).calls);
}

#[tokio::test]
async fn whole_calls_in_one_chunk_may_share_an_index() {
    let calls = calls_of(&[json!({"tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "two", "arguments": "{\"x\":"}},
        {"index": 0, "id": "", "function": {"name": null, "arguments": "2}"}},
    ]})])
    .await;
    assert_eq!(calls, reply("", &[("a", "one", "{}"), ("b", "two", "{\"x\":2}")]).calls);
}

#[tokio::test]
async fn calls_come_in_the_order_of_their_indexes() {
    let calls = calls_of(&[
        fragment(json!({"index": 1, "id": "b", "function": {"name": "two"}})),
        fragment(json!({"index": 0, "id": "a", "function": {"name": "one"}})),
    ])
    .await;
    assert_eq!(calls, reply("", &[("a", "one", "{}"), ("b", "two", "{}")]).calls);
}

#[tokio::test]
async fn missing_empty_and_repeated_ids_are_made_up() {
    let calls = calls_of(&[json!({"tool_calls": [
        {"index": 0, "function": {"name": "one", "arguments": "{}"}},
        {"index": 1, "id": "", "function": {"name": "two", "arguments": "{}"}},
        {"index": 2, "id": "x", "function": {"name": "three", "arguments": "{}"}},
        {"index": 3, "id": "x", "function": {"name": "four", "arguments": "{}"}},
    ]})])
    .await;
    let expected = [("call_1", "one"), ("call_2", "two"), ("x", "three"), ("call_3", "four")];
    assert_eq!(calls, reply("", &expected.map(|(id, tool)| (id, tool, "{}"))).calls);
}

#[tokio::test]
async fn arguments_may_be_an_object() {
    let function = json!({"name": "one", "arguments": {"x": [1, "二"]}});
    let calls = calls_of(&[fragment(json!({"index": 0, "id": "a", "function": function}))]).await;
    assert_eq!(calls, reply("", &[("a", "one", "{\"x\":[1,\"二\"]}")]).calls);
}

#[tokio::test]
async fn a_call_that_names_no_tool_is_no_answer() {
    let delta = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a"}]}}]});
    let events = Behaviour::events([format!("data: {delta}\n\ndata: [DONE]\n\n")]);
    assert_malformed(outcome(CHAT, PATIENCE, [events]).await, "a call names no tool");
}

#[tokio::test]
async fn parts_other_choices_and_odd_counts_do_no_harm() {
    let chunks = [
        json!({"choices": [{"delta": {"content": [{"type": "text", "text": "a"}]}}]}),
        json!({"choices": [{"index": 1, "delta": {"content": "other"}}], "usage": null}),
        json!({"choices": [{"index": 0, "delta": {"content": "b", "tool_calls": null}}]}),
        json!({"choices": null, "usage": {"prompt_tokens": 3, "completion_tokens": "many"}}),
        json!({"choices": [{"finish_reason": "stop"}], "model": ""}),
    ];
    let pieces: Vec<String> =
        chunks.iter().map(|it| format!(": keep-alive\r\ndata: {it}\r\n\r\n")).collect();
    let result = outcome(CHAT, PATIENCE, [Behaviour::events(pieces)]).await;
    let usage = Usage { input_tokens: 3, output_tokens: 0, ..Usage::default() };
    let expected = Reply { usage, model: "asked-for".to_owned(), ..reply("ab", &[]) };
    assert_eq!(result, (Ok(expected), 1));
}

#[tokio::test]
async fn thinking_and_events_of_the_future_are_passed_over_and_cached_tokens_count() {
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1});
    let thinking = json!({"type": "thinking", "thinking": ""});
    let events = [
        json!({"type": "message_start", "message": {"model": "m-2", "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": thinking}),
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_start", "index": 1,
               "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "something_new"}),
        json!({"type": "content_block_delta", "index": 1,
               "delta": {"type": "text_delta", "text": "b"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
               "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let pieces: Vec<String> = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    let result = outcome(MESSAGES, PATIENCE, [Behaviour::events(pieces)]).await;
    let usage = Usage { input_tokens: 43, output_tokens: 9, ..Usage::default() };
    let expected = Reply { usage, model: "m-2".to_owned(), ..reply("ab", &[]) };
    assert_eq!(result, (Ok(expected), 1));
}
