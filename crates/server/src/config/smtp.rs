//! `[smtp.NAME]`: who is told by mail when something happens to a run.

use std::collections::BTreeMap;

use chancery_runtime::courier::{Encryption, SmtpSubscriber};
use serde::{Deserialize, Serialize};

use super::webhook::{is_topic, secret, usual};
use super::{Config, ConfigError};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtpConfig {
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `starttls`, `implicit`, or `none` for a server on this machine
    #[serde(default)]
    pub encryption: SmtpEncryption,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The environment variable that holds the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// `Chancery <chancery@example.org>`
    pub from: String,
    pub to: Vec<String>,
    /// The kinds of events to be told of.
    #[serde(default = "usual")]
    pub events: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmtpEncryption {
    #[default]
    Starttls,
    Implicit,
    None,
}

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    for (name, it) in &config.smtp {
        let wrong = |detail: String| Err(ConfigError::Meaning(format!("smtp `{name}`: {detail}")));
        if config.webhooks.contains_key(name) || name == super::telemetry::NAME {
            return wrong("something else that is told has the same name".to_owned());
        }
        if it.to.is_empty() {
            return wrong("`to` names nobody".to_owned());
        }
        if it.username.is_some() != it.password_env.is_some() {
            return wrong("`username` and `password_env` go together".to_owned());
        }
        let local = ["localhost", "127.0.0.1", "::1"].contains(&&*it.host);
        if it.encryption == SmtpEncryption::None && !local {
            return wrong("`encryption = \"none\"` is for a server on this machine".to_owned());
        }
        if let Some(unknown) = it.events.iter().find(|it| !is_topic(it)) {
            return wrong(format!("there is no event `{unknown}`"));
        }
    }
    Ok(())
}

impl SmtpConfig {
    pub(super) fn subscriber(
        &self,
        environment: &BTreeMap<String, String>,
    ) -> Result<SmtpSubscriber, String> {
        let (encryption, usual_port) = match self.encryption {
            SmtpEncryption::Starttls => (Encryption::Starttls, 587),
            SmtpEncryption::Implicit => (Encryption::Implicit, 465),
            SmtpEncryption::None => (Encryption::None, 25),
        };
        let login = match (&self.username, &self.password_env) {
            (Some(name), Some(variable)) => Some((name.clone(), secret(environment, variable)?)),
            _ => None,
        };
        let server = (&*self.host, self.port.unwrap_or(usual_port));
        SmtpSubscriber::new(server, encryption, login, &self.from, &self.to)
            .map_err(|it| it.to_string())
    }
}
