//! The adapters against a server that behaves well and badly, over real sockets. What holds for
//! both protocols is checked for both.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "models/answers.rs"]
mod answers;
#[path = "models/asked.rs"]
mod asked;
#[path = "models/liberties.rs"]
mod liberties;
#[path = "models/passing.rs"]
mod passing;
#[path = "models/staying.rs"]
mod staying;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chancery_domain::event::{Call, CallResult, Usage};
use chancery_domain::id::AgentId;
use chancery_runtime::model::{
    Message, Model, ModelError, Patience, RawCall, Reply, Request, Secret, SetupError, ToolOffer,
    anthropic, openai,
};
use chancery_testkit::fake_model::{Answer, Behaviour, End, FakeModel, Protocol, Raw};
use serde_json::{Value, json};

const KEY: &str = "sk-test-51d0c0ffee";
const RUN: &str = "run_00000000000000000000000000000007";
const CHAT: Protocol = Protocol::ChatCompletions;
const MESSAGES: Protocol = Protocol::Messages;
const BOTH: [Protocol; 2] = [CHAT, MESSAGES];

/// Long where nothing should be waited for, short where a pause is certain.
const PATIENCE: Patience = Patience {
    first_byte: Duration::from_secs(20),
    between: Duration::from_secs(20),
    whole: Duration::from_secs(40),
    retries: 2,
    backoff: Duration::from_millis(1),
};

fn chat_config(base_url: &str) -> openai::Config {
    openai::Config {
        name: "main".to_owned(),
        base_url: base_url.to_owned(),
        model: "asked-for".to_owned(),
        api_key: Some(Secret::from(KEY)),
        patience: PATIENCE,
        max_output_tokens: Some(300),
        temperature: Some(0.2),
    }
}

fn messages_config(base_url: &str) -> anthropic::Config {
    anthropic::Config {
        name: "main".to_owned(),
        base_url: base_url.to_owned(),
        model: "asked-for".to_owned(),
        api_key: Some(Secret::from(KEY)),
        patience: PATIENCE,
        max_output_tokens: Some(300),
        temperature: Some(0.2),
    }
}

fn model(protocol: Protocol, base_url: &str, patience: Patience) -> Box<dyn Model> {
    match protocol {
        Protocol::ChatCompletions => {
            let config = openai::Config { patience, ..chat_config(base_url) };
            Box::new(openai::OpenAi::new(config).unwrap())
        }
        Protocol::Messages => {
            let config = anthropic::Config { patience, ..messages_config(base_url) };
            Box::new(anthropic::Anthropic::new(config).unwrap())
        }
    }
}

fn url(server: &FakeModel, protocol: Protocol) -> String {
    match protocol {
        Protocol::ChatCompletions => server.chat_url(),
        Protocol::Messages => server.messages_url(),
    }
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

async fn ask(model: &dyn Model, messages: &[Message]) -> Result<Reply, ModelError> {
    let agent = AgentId::from("it_manager");
    let tool = ToolOffer {
        name: "read_logs".to_owned(),
        description: "Reads logs.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    let tools = [&tool];
    let run = Some(RUN.parse().unwrap());
    let request = Request { run, agent: &agent, system: "Be brief.", messages, tools: &tools };
    model.generate(request).await
}

/// What comes of one question, and how many requests it took.
async fn outcome(
    protocol: Protocol,
    patience: Patience,
    behaviours: impl IntoIterator<Item = Behaviour>,
) -> (Result<Reply, ModelError>, usize) {
    let server = FakeModel::start().await.unwrap();
    for behaviour in behaviours {
        server.will(behaviour);
    }
    let model = model(protocol, &url(&server, protocol), patience);
    let result = ask(&*model, &[user("hello")]).await;
    (result, server.requests().len())
}

fn reply(text: &str, calls: &[(&str, &str, &str)]) -> Reply {
    let call = |(id, tool, arguments): &(&str, &str, &str)| RawCall {
        id: (*id).to_owned(),
        tool: (*tool).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Reply {
        text: text.to_owned(),
        calls: calls.iter().map(call).collect(),
        usage: Usage { input_tokens: 12, output_tokens: 7, ..Usage::default() },
        model: "fake-1".to_owned(),
    }
}

fn unavailable(tries: u32, detail: &str) -> ModelError {
    ModelError::Unavailable { model: "main".to_owned(), tries, detail: detail.to_owned() }
}

fn refused(detail: &str) -> ModelError {
    ModelError::Refused { model: "main".to_owned(), detail: detail.to_owned() }
}

/// Not an answer, and not asked for again.
#[track_caller]
fn assert_malformed((result, requests): (Result<Reply, ModelError>, usize), start: &str) {
    match result {
        Err(ModelError::Malformed { model, detail }) if model == "main" => {
            assert!(detail.starts_with(start), "{detail}");
        }
        other => panic!("not malformed but {other:?}"),
    }
    assert_eq!(requests, 1);
}

fn document(document: &Value) -> Behaviour {
    Behaviour::Raw(Raw::new(200, "application/json", [document.to_string()]))
}

fn fine() -> Behaviour {
    Behaviour::Stream(Answer::text("fine"))
}

fn busy_answer() -> Answer {
    Answer::text("Two things, 先看日志 🚀.")
        .and_call("read_logs", r#"{"service": "web", "lines": 200}"#)
        .and_call("docker_build", r#"{"image":"shop/web:1.8.3","note":"定价"}"#)
}

fn busy_reply() -> Reply {
    reply(
        "Two things, 先看日志 🚀.",
        &[
            ("fake_1", "read_logs", r#"{"service": "web", "lines": 200}"#),
            ("fake_2", "docker_build", r#"{"image":"shop/web:1.8.3","note":"定价"}"#),
        ],
    )
}
