//! What is asked, in the words of each protocol.

use super::*;

fn conversation() -> Vec<Message> {
    let call = |id: &str, arguments| {
        Arc::new(Call { id: id.into(), tool: "read_logs".to_owned(), arguments })
    };
    vec![
        user("Look."),
        Message::Assistant {
            text: String::new(),
            calls: vec![call("a", json!({"n": 1})), call("b", json!("odd"))],
        },
        Message::Tool { call: "a".into(), result: CallResult::ok("line") },
        Message::Tool { call: "b".into(), result: CallResult::error("BAD_ARGUMENTS", "no") },
        user("And?"),
        Message::Assistant { text: "Nothing.".to_owned(), calls: Vec::new() },
        user("Thanks."),
    ]
}

#[tokio::test]
async fn a_conversation_is_asked_as_chat_completions_want_it() {
    let server = FakeModel::start().await.unwrap();
    server.will(fine());
    let model = model(CHAT, &format!("{}/", server.chat_url()), PATIENCE);
    ask(&*model, &conversation()).await.unwrap();
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.path, "/v1/chat/completions");
    let call = |id: &str, arguments: &str| {
        let function = json!({"name": "read_logs", "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    assert_eq!(
        seen.body,
        json!({
            "model": "asked-for",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Look."},
                {
                    "role": "assistant",
                    "content": null,
                    "tool_calls": [call("a", "{\"n\":1}"), call("b", "\"odd\"")],
                },
                {"role": "tool", "tool_call_id": "a", "content": "line"},
                {"role": "tool", "tool_call_id": "b", "content": "error BAD_ARGUMENTS: no"},
                {"role": "user", "content": "And?"},
                {"role": "assistant", "content": "Nothing."},
                {"role": "user", "content": "Thanks."},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "user": "it_manager",
            "tools": [{
                "type": "function",
                "function": {
                    "name": "read_logs",
                    "description": "Reads logs.",
                    "parameters": {"type": "object"},
                },
            }],
            "max_tokens": 300,
            "temperature": 0.2,
        })
    );
    let names = ["authorization", "x-chancery-run", "x-chancery-agent", "content-type"];
    assert_eq!(
        names.map(|name| seen.headers[name].as_str()),
        ["Bearer sk-test-51d0c0ffee", RUN, "it_manager", "application/json"]
    );
}

#[tokio::test]
async fn a_conversation_is_asked_as_the_messages_api_wants_it() {
    let server = FakeModel::start().await.unwrap();
    server.will(fine());
    let model = model(MESSAGES, &server.messages_url(), PATIENCE);
    ask(&*model, &conversation()).await.unwrap();
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.path, "/v1/messages");
    let call = |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "read_logs", "input": input});
    let result = |id: &str, content: &str, is_error: bool| json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error});
    let text = |text: &str| json!({"type": "text", "text": text});
    let calls = [call("a", json!({"n": 1})), call("b", json!({"arguments": "odd"}))];
    let results =
        [result("a", "line", false), result("b", "error BAD_ARGUMENTS: no", true), text("And?")];
    assert_eq!(
        seen.body,
        json!({
            "model": "asked-for",
            "max_tokens": 300,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": [text("Look.")]},
                {"role": "assistant", "content": calls},
                {"role": "user", "content": results},
                {"role": "assistant", "content": [text("Nothing.")]},
                {"role": "user", "content": [text("Thanks.")]},
            ],
            "stream": true,
            "metadata": {"user_id": "it_manager"},
            "tools": [{
                "name": "read_logs",
                "description": "Reads logs.",
                "input_schema": {"type": "object"},
            }],
            "temperature": 0.2,
        })
    );
    let names = ["x-api-key", "anthropic-version", "x-chancery-run", "x-chancery-agent"];
    assert_eq!(
        names.map(|name| seen.headers[name].as_str()),
        [KEY, "2023-06-01", RUN, "it_manager"]
    );
}

#[tokio::test]
async fn the_messages_api_is_never_sent_what_it_refuses() {
    let server = FakeModel::start().await.unwrap();
    server.will(fine());
    let model = model(MESSAGES, &format!("{}/v1/", server.messages_url()), PATIENCE);
    let silent = Message::Assistant { text: " ".to_owned(), calls: Vec::new() };
    let said = Message::Assistant { text: "Hello.".to_owned(), calls: Vec::new() };
    ask(&*model, &[said, user(""), silent, user("So?")]).await.unwrap();
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.path, "/v1/messages");
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        seen.body["messages"],
        json!([
            {"role": "user", "content": [text("(nothing)")]},
            {"role": "assistant", "content": [text("Hello.")]},
            {"role": "user", "content": [text("(nothing)"), text("So?")]},
        ])
    );
}

#[tokio::test]
async fn what_is_not_configured_is_not_sent() {
    let server = FakeModel::start().await.unwrap();
    server.otherwise(|_, _| fine());
    let chat = openai::OpenAi::new(openai::Config {
        api_key: None,
        max_output_tokens: None,
        temperature: None,
        ..chat_config(&server.chat_url())
    });
    let messages = anthropic::Anthropic::new(anthropic::Config {
        api_key: None,
        max_output_tokens: None,
        temperature: None,
        ..messages_config(&server.messages_url())
    });
    let models: [Box<dyn Model>; 2] = [Box::new(chat.unwrap()), Box::new(messages.unwrap())];
    let agent = AgentId::from("林");
    for model in models {
        let (run, messages) = (Some(RUN.parse().unwrap()), [user("hello")]);
        let request = Request { run, agent: &agent, system: "", messages: &messages, tools: &[] };
        model.generate(request).await.unwrap();
    }
    let [chat, messages] = server.requests().try_into().unwrap();
    assert_eq!(
        chat.body,
        json!({
            "model": "asked-for",
            "messages": [{"role": "user", "content": "hello"}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "user": "林",
        })
    );
    assert_eq!(
        messages.body,
        json!({
            "model": "asked-for",
            "max_tokens": anthropic::MAX_OUTPUT_TOKENS,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
            "stream": true,
            "metadata": {"user_id": "林"},
        })
    );
    for seen in [chat, messages] {
        assert_eq!(seen.headers.get("authorization"), None);
        assert_eq!(seen.headers.get("x-api-key"), None);
        assert_eq!(seen.headers["x-chancery-agent"], "%E6%9E%97");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_before_anything_is_asked() {
    for base_url in ["api.example.com/v1", "ftp://example.com", "localhost:11434", ""] {
        let error = openai::OpenAi::new(chat_config(base_url)).unwrap_err();
        let (model, url) = ("main".to_owned(), format!("{base_url}/chat/completions"));
        assert_eq!(error, SetupError::Address { model, url });
    }
    let with_key =
        |key: &str| openai::Config { api_key: Some(key.into()), ..chat_config("http://[::1]") };
    let error = openai::OpenAi::new(with_key("two\nlines")).unwrap_err();
    assert_eq!(error, SetupError::Key { model: "main".to_owned() });
    // A line feed after the key is what files end with.
    openai::OpenAi::new(with_key("one-line\n")).unwrap();
}
