//! `[openai]`: the door for clients that speak as OpenAI's do.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenAiConfig {
    /// How long an answer is held back for somebody to decide; then the client is told that the
    /// run waits. Below what proxies allow for silence.
    pub pause_hold_seconds: u64,
}

impl Default for OpenAiConfig {
    fn default() -> OpenAiConfig {
        OpenAiConfig { pause_hold_seconds: 45 }
    }
}

impl OpenAiConfig {
    pub(crate) fn pause_hold(&self) -> Duration {
        Duration::from_secs(self.pause_hold_seconds)
    }
}
