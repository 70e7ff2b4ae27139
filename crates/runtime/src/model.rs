//! What a model is asked and what it answers, in our own words: one adapter per protocol turns
//! them into someone else's. An adapter retries what may pass by itself and says clearly what
//! will not.

pub mod anthropic;
pub mod openai;
pub mod price;
pub mod scripted;
pub mod sse;

mod calls;
pub(crate) mod exchange;
pub(crate) mod fault;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod secret;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_domain::event::{Call, CallResult, Carried, Usage};
use chancery_domain::id::{AgentId, CallId, RunId};
use metrics::counter;
use serde_json::Value;

pub use self::exchange::SetupError;
pub use self::scripted::Suggestion;
pub use self::secret::Secret;

/// Something that reads a conversation and answers with words or with calls.
#[async_trait]
pub trait Model: Send + Sync + std::fmt::Debug {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError>;

    /// What it has lines for. A model that thinks has none.
    fn suggestions(&self) -> &[Suggestion] {
        &[]
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Absent: words that belong to no run.
    pub run: Option<RunId>,
    pub agent: &'a AgentId,
    pub system: &'a str,
    /// In order; every call of an assistant's message has its result before the next words.
    pub messages: &'a [Message],
    pub tools: &'a [&'a ToolOffer],
}

#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    User { text: String },
    Assistant { text: String, calls: Vec<Arc<Call>> },
    Tool { call: CallId, result: CallResult },
}

impl From<&Carried> for Message {
    fn from(carried: &Carried) -> Message {
        match carried.clone() {
            Carried::Said { text } => Message::User { text },
            Carried::Answered { text, calls } => Message::Assistant { text, calls },
            Carried::Ended { call, result } => Message::Tool { call, result },
        }
    }
}

impl From<Message> for Carried {
    fn from(message: Message) -> Carried {
        match message {
            Message::User { text } => Carried::Said { text },
            Message::Assistant { text, calls } => Carried::Answered { text, calls },
            Message::Tool { call, result } => Carried::Ended { call, result },
        }
    }
}

/// A tool as a model is shown it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOffer {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub text: String,
    /// Empty: the text is the answer.
    pub calls: Vec<RawCall>,
    pub usage: Usage,
    /// As the far side names itself, or the name that it was asked under.
    pub model: String,
}

/// A call as the model wrote it: nothing about it can be trusted yet.
#[derive(Debug, Clone, PartialEq)]
pub struct RawCall {
    pub id: String,
    pub tool: String,
    /// The text of the arguments, which may not even be JSON.
    pub arguments: String,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// It may work later: the far side is down, busy, or broke off, and retries did not help.
    #[error("model `{model}` is unavailable after {tries} tries: {detail}")]
    Unavailable { model: String, tries: u32, detail: String },
    /// It will not work later either: a bad key, a bad request, an unknown model.
    #[error("model `{model}` refused the request: {detail}")]
    Refused { model: String, detail: String },
    /// It answered with something that is not an answer.
    #[error("model `{model}` answered with something that cannot be read: {detail}")]
    Malformed { model: String, detail: String },
}

/// How long an adapter waits, and how often it tries again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    /// For the connection and the first byte of the answer.
    pub first_byte: Duration,
    /// Between two pieces of a stream.
    pub between: Duration,
    /// For the whole answer, retries and the pauses before them included.
    pub whole: Duration,
    /// Tries after the first one.
    pub retries: u32,
    /// The first pause before a retry; it doubles, with jitter.
    pub backoff: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            first_byte: Duration::from_secs(60),
            between: Duration::from_secs(60),
            whole: Duration::from_secs(600),
            retries: 4,
            backoff: Duration::from_millis(500),
        }
    }
}

/// Which model a role talks through.
#[derive(Debug)]
pub struct Models {
    default: Arc<dyn Model>,
    by_tier: BTreeMap<String, Arc<dyn Model>>,
}

impl Models {
    pub fn new(default: Arc<dyn Model>, by_tier: BTreeMap<String, Arc<dyn Model>>) -> Models {
        Models { default, by_tier }
    }

    /// What those who talk to agents may be offered to say.
    pub fn suggestions(&self) -> &[Suggestion] {
        self.default.suggestions()
    }

    pub fn for_tier(&self, tier: &str) -> &Arc<dyn Model> {
        self.by_tier.get(tier).unwrap_or(&self.default)
    }
}

/// Asks a model for one word, so that a wrong key shows now and not in the first run.
pub async fn try_out(model: &dyn Model) -> Result<Reply, ModelError> {
    let agent = AgentId::from("chancery");
    let messages = [Message::User { text: "Answer with the one word: ready".to_owned() }];
    let system = "You are being tried out.";
    let request = Request { run: None, agent: &agent, system, messages: &messages, tools: &[] };
    model.generate(request).await
}

/// Counts what an answer used and cost, for who watches this server. The cost is counted in
/// millionths, as it is recorded: counters are whole numbers.
pub fn count(usage: Usage) {
    counter!("chancery_llm_tokens_total", "direction" => "input").increment(usage.input_tokens);
    counter!("chancery_llm_tokens_total", "direction" => "output").increment(usage.output_tokens);
    counter!("chancery_llm_cost_total").increment(usage.cost_micros);
}

/// A result as every model reads it: protocols differ in whether they can mark an error, so the
/// text says it.
fn result_text(result: &CallResult) -> String {
    match (result.is_error, &result.code) {
        (true, Some(code)) => format!("error {code}: {}", result.text),
        (true, None) => format!("error: {}", result.text),
        (false, _) => result.text.clone(),
    }
}
