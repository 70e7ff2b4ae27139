//! `[webhooks.NAME]`: who is told when something happens to a run.

use chancery_domain::event::Event;
use chancery_runtime::courier::Addresses;
use chancery_store::outbox::Subscription;
use serde::{Deserialize, Serialize};

use super::{Config, ConfigError};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    pub url: String,
    /// The kinds of events to be told of.
    #[serde(default = "usual")]
    pub events: Vec<String>,
}

/// Where a person is wanted, and how it ended.
fn usual() -> Vec<String> {
    ["permission.requested", "wait.began", "run.completed", "run.failed", "run.cancelled"]
        .map(str::to_owned)
        .to_vec()
}

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    for (name, webhook) in &config.webhooks {
        let wrong = |detail: String| ConfigError::Meaning(format!("webhook `{name}`: {detail}"));
        if !webhook.url.starts_with("http://") && !webhook.url.starts_with("https://") {
            return Err(wrong("`url` begins with `http://` or `https://`".to_owned()));
        }
        if let Some(unknown) = webhook.events.iter().find(|it| !Event::KINDS.contains(&&***it)) {
            return Err(wrong(format!("there is no event `{unknown}`")));
        }
    }
    Ok(())
}

impl Config {
    pub(crate) fn subscriptions(&self) -> (Vec<Subscription>, Addresses) {
        let subscriptions = self
            .webhooks
            .iter()
            .map(|(name, it)| Subscription { subscriber: name.clone(), topics: it.events.clone() })
            .collect();
        let addresses =
            self.webhooks.iter().map(|(name, it)| (name.clone(), it.url.clone())).collect();
        (subscriptions, addresses)
    }
}
