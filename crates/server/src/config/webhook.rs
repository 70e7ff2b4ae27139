//! `[webhooks.NAME]`: who is told when something happens to a run.

use std::collections::BTreeMap;

use chancery_domain::event::Event;
use chancery_runtime::courier::{Format, Subscriber, Subscribers, WebhookSubscriber};
use chancery_store::outbox::Subscription;
use serde::{Deserialize, Serialize};

use super::{Config, ConfigError, telemetry};

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
pub(super) fn usual() -> Vec<String> {
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

pub(super) fn is_topic(name: &str) -> bool {
    name == BOARD || Event::KINDS.contains(&name)
}

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    for (name, webhook) in &config.webhooks {
        let wrong = |detail: String| ConfigError::Meaning(format!("webhook `{name}`: {detail}"));
        if !webhook.url.starts_with("http://") && !webhook.url.starts_with("https://") {
            return Err(wrong("`url` begins with `http://` or `https://`".to_owned()));
        }
        if name == telemetry::NAME {
            return Err(wrong("the name is taken by the collector of traces".to_owned()));
        }
        if let Some(unknown) = webhook.events.iter().find(|it| !is_topic(it)) {
            return Err(wrong(format!("there is no event `{unknown}`")));
        }
    }
    Ok(())
}

impl Config {
    pub(crate) fn subscriptions(
        &self,
        environment: &BTreeMap<String, String>,
    ) -> Result<Vec<Subscription>, ConfigError> {
        let subscription = |(name, it): (&String, &WebhookConfig)| Subscription {
            subscriber: name.clone(),
            topics: it.events.clone(),
        };
        let letters = self
            .smtp
            .iter()
            .map(|(name, it)| Subscription { subscriber: name.clone(), topics: it.events.clone() });
        let traces = self.telemetry.subscriber(environment)?.map(|_| Subscription {
            subscriber: telemetry::NAME.to_owned(),
            topics: telemetry::TOPICS.iter().map(|it| (*it).to_owned()).collect(),
        });
        Ok(self.webhooks.iter().map(subscription).chain(letters).chain(traces).collect())
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
            let secret = it.secret_env.as_ref().map(|it| secret(environment, it));
            let secret = secret.transpose();
            let secret = secret
                .map_err(|detail| ConfigError::Meaning(format!("webhook `{name}`: {detail}")))?;
            let format = match it.format {
                WebhookFormat::Generic => Format::Generic,
                WebhookFormat::Slack => Format::Slack,
                WebhookFormat::Feishu => Format::Feishu,
            };
            let webhook = WebhookSubscriber { url: it.url.clone(), secret, format };
            by_name.insert(name.clone(), Subscriber::Webhook(webhook));
        }
        for (name, it) in &self.smtp {
            let subscriber = it
                .subscriber(environment)
                .map_err(|detail| ConfigError::Meaning(format!("smtp `{name}`: {detail}")))?;
            by_name.insert(name.clone(), Subscriber::Smtp(Box::new(subscriber)));
        }
        if let Some(it) = self.telemetry.subscriber(environment)? {
            by_name.insert(telemetry::NAME.to_owned(), Subscriber::Otlp(it));
        }
        let public_url = self.public_url.clone().unwrap_or_else(|| here.to_owned());
        Ok(Subscribers { by_name, public_url })
    }
}

/// What an environment variable holds that must be there.
pub(super) fn secret(
    environment: &BTreeMap<String, String>,
    variable: &str,
) -> Result<String, String> {
    let held = environment.get(variable).filter(|it| !it.is_empty()).cloned();
    held.ok_or_else(|| format!("the environment variable `{variable}` is not set"))
}
