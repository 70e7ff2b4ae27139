//! What a server is told by its operator: flag over environment over file over default.

mod escalation;
mod isolation;
mod layer;
mod mail;
mod mcp;
mod memory;
mod model;
mod oidc;
mod openai;
mod permissions;
mod smtp;
mod telemetry;
mod webhook;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chancery_domain::bucket::Rate;
use chancery_runtime::gate::Terms;
use chancery_runtime::tool::settings::{DockerSettings, GitSettings, Settings, WebSettings};
use chancery_runtime::{Limits, UnknownOutcome};
use chancery_store::Location;
use serde::{Deserialize, Serialize};

pub use escalation::EscalationConfig;
pub use isolation::{IsolationConfig, IsolationMode};
pub use layer::{ConfigError, Layers, Origin, load};
pub use mail::MailConfig;
pub use mcp::{McpConfig, OnAsk};
pub use memory::{EmbeddingsConfig, MemoryConfig};
pub use model::{ModelConfig, Provider, build_model, build_models, describe_models};
pub use oidc::{CALLBACK, OidcConfig, Standing};
pub use openai::OpenAiConfig;
pub use permissions::PermissionsConfig;
pub use smtp::{SmtpConfig, SmtpEncryption};
pub use telemetry::TelemetryConfig;
pub use webhook::{WebhookConfig, WebhookFormat};

use crate::console::Oidc;
use crate::turnstile::{Net, Turnstile};

/// Everything that can be set. Unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub listen: SocketAddr,
    /// Where people reach this server, if it is not where it listens: links begin with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// Where everything is kept that is not in a PostgreSQL.
    pub data: PathBuf,
    /// A `postgres://` URL; without one, SQLite in the data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The organisation's files; without them, the built-in organisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org: Option<PathBuf>,
    /// Where agents read and write; `workspace` in the data directory unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// Runs driven at once by this process.
    pub workers: usize,
    pub limits: LimitsConfig,
    pub tools: ToolsConfig,
    pub permissions: PermissionsConfig,
    pub escalation: EscalationConfig,
    pub audit: AuditConfig,
    pub mail: MailConfig,
    pub mcp: McpConfig,
    pub memory: MemoryConfig,
    pub isolation: IsolationConfig,
    pub openai: OpenAiConfig,
    /// Who vouches for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcConfig>,
    pub models: BTreeMap<String, ModelConfig>,
    /// Which model a role's `model_tier` means: `capable`, `balanced`, `fast`.
    pub tiers: BTreeMap<String, String>,
    /// Who is told when something happens to a run.
    pub webhooks: BTreeMap<String, WebhookConfig>,
    /// Who is told the same by mail.
    pub smtp: BTreeMap<String, SmtpConfig>,
    /// Who collects traces.
    pub telemetry: TelemetryConfig,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// How long a server that is not heard of keeps its runs.
    pub lease_seconds: u64,
    /// Claims that may end badly at one place in the log before the run fails.
    pub attempts: u32,
    /// The largest request body.
    pub body_bytes: usize,
    /// How long steps in flight may take to end when the server stops.
    pub grace_seconds: u64,
    /// Requests of one token or visit.
    pub requests_per_minute: u32,
    /// Of one address: sign-ins, and tokens that are not known.
    pub strangers_per_minute: u32,
    /// The proxies whose `X-Forwarded-For` is believed: `127.0.0.1`, `10.0.0.0/8`.
    pub trusted_proxies: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// What to do about a call that had started when a server died: `ask`, `fail` or `retry`.
    pub on_unknown_outcome: OnUnknownOutcome,
    pub git: GitSettings,
    pub docker: DockerSettings,
    pub web: WebSettings,
}

impl ToolsConfig {
    /// What the operator says of what lies outside of the workspace.
    pub fn settings(&self) -> Settings {
        let (git, docker, web) = (self.git.clone(), self.docker.clone(), self.web.clone());
        Settings { git, docker, web }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknownOutcome {
    Ask,
    Fail,
    Retry,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// What becomes of calls that are allowed without a word: `count`, or `record` with what
    /// every layer said.
    pub allows: Allows,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allows {
    #[default]
    Count,
    Record,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 7717)),
            public_url: None,
            data: PathBuf::from("chancery-data"),
            database: None,
            org: None,
            workspace: None,
            workers: Limits::default().concurrency,
            limits: LimitsConfig::default(),
            tools: ToolsConfig::default(),
            permissions: PermissionsConfig::default(),
            escalation: EscalationConfig::default(),
            audit: AuditConfig::default(),
            mail: MailConfig::default(),
            mcp: McpConfig::default(),
            memory: MemoryConfig::default(),
            isolation: IsolationConfig::default(),
            openai: OpenAiConfig::default(),
            oidc: None,
            models: BTreeMap::new(),
            tiers: BTreeMap::new(),
            webhooks: BTreeMap::new(),
            smtp: BTreeMap::new(),
            telemetry: TelemetryConfig::default(),
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> LimitsConfig {
        let limits = Limits::default();
        LimitsConfig {
            lease_seconds: limits.lease.as_secs(),
            attempts: limits.attempts,
            body_bytes: 4 * 1024 * 1024,
            grace_seconds: 30,
            requests_per_minute: 60_000,
            strangers_per_minute: 600,
            trusted_proxies: Vec::new(),
        }
    }
}

impl Default for ToolsConfig {
    fn default() -> ToolsConfig {
        let Settings { git, docker, web } = Settings::default();
        ToolsConfig { on_unknown_outcome: OnUnknownOutcome::Ask, git, docker, web }
    }
}

impl Config {
    pub fn location(&self) -> Location {
        match &self.database {
            Some(url) => Location::Postgres(url.clone()),
            None => Location::Sqlite(self.data.clone()),
        }
    }

    pub fn workspace(&self) -> PathBuf {
        self.workspace.clone().unwrap_or_else(|| self.data.join("workspace"))
    }

    /// On which terms people are asked.
    pub fn terms(&self) -> Terms {
        self.permissions.terms(self.audit.allows == Allows::Record)
    }

    /// How often somebody may come to the door.
    pub(crate) fn turnstile(&self) -> Result<Turnstile, ConfigError> {
        // A quarter of a minute's at once: what comes in bursts is a page, or a program's start.
        let rate = |a_minute: u32| Rate { burst: a_minute.div_ceil(4), a_minute };
        let limits = &self.limits;
        let proxies = limits.trusted_proxies.iter().map(|it| it.parse::<Net>());
        let proxies = proxies.collect::<Result<_, _>>().map_err(|detail| {
            ConfigError::Meaning(format!("setting `limits.trusted_proxies`: {detail}"))
        })?;
        let strangers =
            Rate { burst: limits.strangers_per_minute, a_minute: limits.strangers_per_minute };
        Ok(Turnstile::new(rate(limits.requests_per_minute), strangers, proxies))
    }

    /// Who vouches for people. `base` is where they reach this server.
    pub(crate) fn vouching(
        &self,
        base: &str,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<Arc<Oidc>>, ConfigError> {
        oidc::check(self)?;
        let Some(config) = self.oidc.clone() else { return Ok(None) };
        Ok(Some(Arc::new(Oidc { issuer: config.issuer(base, environment)?, config })))
    }

    pub fn run_limits(&self) -> Limits {
        Limits {
            concurrency: self.workers.max(1),
            lease: Duration::from_secs(self.limits.lease_seconds.max(1)),
            attempts: self.limits.attempts.max(1),
            on_unknown_outcome: match self.tools.on_unknown_outcome {
                OnUnknownOutcome::Ask => UnknownOutcome::Ask,
                OnUnknownOutcome::Fail => UnknownOutcome::Fail,
                OnUnknownOutcome::Retry => UnknownOutcome::Retry,
            },
        }
    }
}
