//! `[webhooks.NAME]`: who is told when something happens to a run.

use std::collections::BTreeMap;

use chancery_domain::event::Event;
use chancery_runtime::courier::{Format, Subscriber, Subscribers};
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
    /// The environment variable that holds the secret which messages are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// `generic`, `slack` or `feishu`
    #[serde(default)]
    pub format: WebhookFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    #[default]
    Generic,
    Slack,
    Feishu,
}

/// Where a person is wanted, and how it ended.
fn usual() -> Vec<String> {
    [
        "permission.requested",
        "permission.escalated",
        "wait.began",
        "run.completed",
        "run.failed",
        "run.cancelled",
        BOARD,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Nobody in the organisation has answered: the board is asked.
const BOARD: &str = "escalation.board";

fn is_topic(name: &str) -> bool {
    name == BOARD || Event::KINDS.contains(&name)
}

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    for (name, webhook) in &config.webhooks {
        let wrong = |detail: String| ConfigError::Meaning(format!("webhook `{name}`: {detail}"));
        if !webhook.url.starts_with("http://") && !webhook.url.starts_with("https://") {
            return Err(wrong("`url` begins with `http://` or `https://`".to_owned()));
        }
        if let Some(unknown) = webhook.events.iter().find(|it| !is_topic(it)) {
            return Err(wrong(format!("there is no event `{unknown}`")));
        }
    }
    Ok(())
}

impl Config {
    pub(crate) fn subscriptions(&self) -> Vec<Subscription> {
        let subscription = |(name, it): (&String, &WebhookConfig)| Subscription {
            subscriber: name.clone(),
            topics: it.events.clone(),
        };
        self.webhooks.iter().map(subscription).collect()
    }

    /// Those who are told, with their secrets. `here` is where this server is reached, unless
    /// the settings say otherwise.
    pub(crate) fn subscribers(
        &self,
        here: &str,
        environment: &BTreeMap<String, String>,
    ) -> Result<Subscribers, ConfigError> {
        let mut by_name = BTreeMap::new();
        for (name, it) in &self.webhooks {
            let secret = it.secret_env.as_ref().map(|variable| {
                environment.get(variable).filter(|it| !it.is_empty()).cloned().ok_or_else(|| {
                    let detail = format!("the environment variable `{variable}` is not set");
                    ConfigError::Meaning(format!("webhook `{name}`: {detail}"))
                })
            });
            let format = match it.format {
                WebhookFormat::Generic => Format::Generic,
                WebhookFormat::Slack => Format::Slack,
                WebhookFormat::Feishu => Format::Feishu,
            };
            let subscriber =
                Subscriber { url: it.url.clone(), secret: secret.transpose()?, format };
            by_name.insert(name.clone(), subscriber);
        }
        let public_url = self.public_url.clone().unwrap_or_else(|| here.to_owned());
        Ok(Subscribers { by_name, public_url })
    }
}
